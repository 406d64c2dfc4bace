"""`holdfast configure helper`: what it installs, and where it installs nothing."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support import forked_command

HOST: Final = "abc.example.com"
BLOCK: Final = 'credentials_helper "holdfast" { args = [] }'

Configure = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Runs `holdfast configure helper` where the profile `default` has an address."""

    def run(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        return forked_command.run(["configure", "helper", *options], own | environment, timeout=60)

    (tmp_path / ".config" / "holdfast").mkdir(parents=True)
    file = tmp_path / ".config" / "holdfast" / "config.toml"
    file.write_text(f'[profiles.default]\naddress = "https://{HOST}"\n[profiles.team]\nteam = "platform"\n')
    return run


def files(home: Path) -> dict[str, str]:
    """Return the files below a home, without Holdfast's own."""
    found = [path for path in home.rglob("*") if path.is_file() and ".config" not in path.parts]
    return {str(path.relative_to(home)): path.read_text() for path in found}


def test_the_program_and_the_block_are_written_and_removed(configure: Configure, tmp_path: Path) -> None:
    for options, arguments in (
        ([], ""),
        (["--aws-profile", 'my "own"'], r'"--aws-profile=my \"own\""'),
        (["--oidc", "--audience", "holdfast", "--duration", "8h"],
         '"--oidc", "--audience=holdfast", "--duration=28800s"'),
    ):  # fmt: skip
        done = configure(*options)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith(f"\n\nTerraform signs in by itself at {HOST}.\n")
        block = (tmp_path / ".terraform.d" / "holdfast.tfrc").read_text()
        assert block.splitlines()[1:] == [f'credentials_helper "holdfast" {{ args = [{arguments}] }}']

    program = tmp_path / ".terraform.d" / "plugins" / "terraform-credentials-holdfast"
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "json.py").write_text("raise SystemExit('a module of the folder was loaded')")
    answered = subprocess.run(
        [program, "--oidc", "get", "registry.terraform.io"],
        cwd=folder,
        env={"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path[:2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answered.returncode, answered.stdout, answered.stderr) == (0, "{}\n", "")

    assert configure("--remove").stdout == f"Removed {program} and {tmp_path}/.terraform.d/holdfast.tfrc.\n"
    assert configure("--remove").stdout == "Nothing was changed.\n"
    assert list(files(tmp_path)) == ["module/json.py"]

    program.mkdir()
    done = configure("--remove")
    assert done.returncode == 1
    assert done.stderr.startswith(f"holdfast: {program} cannot be removed: ")


@pytest.mark.parametrize(
    "file", [".terraformrc", ".tofurc", ".terraform.d/x.tfrc", "named", "xdg/opentofu/tofurc"]
)
@pytest.mark.parametrize(
    "text",
    [
        'credentials_helper "vault" {\n}\n',
        'plugin_cache_dir = "https://x" /* " */\ncredentials_helper vault {}\n',
        '# credentials_helper "holdfast" {}\ncredentials_helper\t"vault"{args=["holdfast"]}',
        f"{BLOCK}\n" + 'credentials_helper "vault" {}',
        '{"a": "https://b", "credentials_helper": {"vault": {"args": []}}}',
        '{"credentials_helper": [{"vault": [{}]}]}',
    ],
)
def test_beside_another_helper_nothing_is_installed(
    configure: Configure, tmp_path: Path, file: str, text: str
) -> None:
    place = tmp_path / (f"{file}.json" if file.endswith(".tfrc") and text[0] == "{" else file)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    (tmp_path / ".terraform.d").mkdir(exist_ok=True)
    before = files(tmp_path)
    variables = {"TF_CLI_CONFIG_FILE": str(place)} if file == "named" else {}

    done = configure(**variables, XDG_CONFIG_HOME=str(tmp_path / "xdg"), HOLDFAST_ADDRESS=f"https://{HOST}")

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{place} already has the credentials helper 'vault'" in done.stderr
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    "text",
    [
        '# credentials_helper "vault" {}\n/* credentials_helper "vault"\n{} */ // credentials_helper "x" {}',
        BLOCK,
        f'credentials "{HOST}.evil.example" {{\n  token = "x"\n}}',
    ],
)
def test_a_comment_and_the_own_block_are_no_other_helper(
    configure: Configure, tmp_path: Path, text: str
) -> None:
    (tmp_path / ".terraformrc").write_text(text)

    assert configure().returncode == configure().returncode == 0
    assert configure().stderr == ""


def test_a_token_that_terraform_prefers_is_named(configure: Configure, tmp_path: Path) -> None:
    rc, stored = tmp_path / ".terraformrc", tmp_path / ".terraform.d" / "credentials.tfrc.json"
    stored.parent.mkdir()
    rc.write_text(f'credentials "{HOST.upper()}" {{\n  token = "s3cret"\n}}\n')
    stored.write_text(f'{{"credentials": {{"a.example": {{}}, "{HOST}": {{"token": "s3cret"}}}}}}')

    done = configure(TF_TOKEN_abc_example_com="s3cret")

    told = [f"holdfast: {place} has a token for {HOST}" for place in ("TF_TOKEN_abc_example_com", rc, stored)]
    assert [line.partition(",")[0] for line in done.stderr.splitlines()] == told
    assert "s3cret" not in done.stdout + done.stderr


@pytest.mark.parametrize("variable", ["TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG"])
def test_the_only_file_that_terraform_reads_is_left_to_its_owner(
    configure: Configure, tmp_path: Path, variable: str
) -> None:
    named = tmp_path / "own.tfrc"

    done = configure(**{variable: str(named)})
    assert done.returncode == 1
    assert (
        f"because {variable} names this file. Unset the variable and run the command again, or add this line "
        f"to the file: {BLOCK}\n" in (done.stderr)
    )

    named.write_text(BLOCK)
    assert configure(**{variable: str(named)}).returncode == 0
    assert sorted(files(tmp_path)) == [".terraform.d/plugins/terraform-credentials-holdfast", "own.tfrc"]


@pytest.mark.parametrize(
    ("options", "environment", "says"),
    [
        ([], {"HOLDFAST_CONFIG_FILE": os.devnull}, "configure --address URL` first"),
        (
            [],
            {"HOLDFAST_CONFIG_FILE": os.devnull, "HOLDFAST_ADDRESS": "http://a.b"},
            "configure --address URL",
        ),
        (["--audience", "x"], {}, "need --oidc"),
        (["--duration", "1m"], {}, "5m to 12h"),
        ([], {"HOME": "", "HOLDFAST_ADDRESS": "https://a.b"}, "HOME is not set"),
    ],
)
def test_wrong_usage_writes_nothing(
    configure: Configure, tmp_path: Path, options: list[str], environment: dict[str, str], says: str
) -> None:
    done = configure(*options, **environment)

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr.splitlines()[-1]
    assert files(tmp_path) == {}


def test_what_opentofu_reads_in_its_own_folder_is_not_hidden(configure: Configure, tmp_path: Path) -> None:
    folder = tmp_path / "xdg" / "opentofu"
    folder.mkdir(parents=True)
    (folder / "tofurc").write_text("disable_checkpoint = true\n")  # it is read in any case
    stored = folder / "credentials.tfrc.json"
    stored.write_text("{}")
    own = {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "HOLDFAST_ADDRESS": f"https://{HOST}"}

    refused = configure(**own)
    assert refused.returncode == 2
    assert f"reads {stored.name} in {folder} only while" in refused.stderr
    assert not (tmp_path / ".terraform.d").exists()
    stored.unlink()
    assert configure(**own).returncode == 0
    stored.write_text("{}")  # which nobody reads any more
    assert configure(**own).returncode == 0
