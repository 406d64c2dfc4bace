"""`holdfast backend-config`: a real Terraform and a real shell read its output."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import names
from holdfast_cli.config.backend_config import check_address, quote_hcl, to_hcl, to_outputs
from holdfast_cli.config.cloud_config import credentials_document
from local_aws import loopback, up
from local_aws.home import Connection
from local_aws.terraform import Terraform, terraforms
from tests.support import forked_command
from tests.support.pages import page

HOLDFAST = Path(sys.executable).with_name("holdfast")
LOCAL_ADDRESS = "http://127.0.0.1:4566/_aws/execute-api/abc123/$default"
PACKAGED = terraforms()[-1]
EMPTY_BLOCK = 'terraform {\n  backend "http" {}\n}\n'
BLOCKS = Path(__file__).parents[1] / "support" / "backend_blocks.json"
"""Addresses and names with their blocks. The console tests its own blocks with the same."""
NO_AWS = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true"}


def backend_config(*arguments: str) -> str:
    done = forked_command.run(["backend-config", *arguments], NO_AWS, timeout=60)
    assert (done.returncode, done.stderr == "") == (0, "--env" not in arguments), done.stderr
    return done.stdout


def usage_error(*arguments: str) -> str:
    done = forked_command.run(["backend-config", *arguments], NO_AWS, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("case", json.loads(BLOCKS.read_text()), ids=lambda case: case["name"])
def test_the_blocks_are_those_that_the_console_copies(case: dict[str, str]) -> None:
    name = names.parse(case["name"])
    assert to_hcl(case["address"], name, read_only=False) == case["backend"]
    assert to_outputs(case["address"], name) == case["outputs"]


@pytest.mark.parametrize(
    "options",
    [
        *((), ("--tfbackend",), ("--env",), ("--outputs",), ("--cloud",), ("--cloud", "--tags", "a")),
        *(("--read-only",), ("--read-only", "--tfbackend"), ("--read-only", "--env")),
    ],
)
def test_no_sentence_in_a_comment_is_wider_than_79_columns(options: tuple[str, ...]) -> None:
    printed = backend_config("network/prod", "--address", LOCAL_ADDRESS, *options)

    comments = [line for line in printed.splitlines() if line.lstrip().startswith("#")]
    assert [line for line in comments if len(line) > 79 and LOCAL_ADDRESS not in line] == []
    assert comments


class EmptyBackend(loopback.Handler):
    """Answers every read with "no state yet", takes every lock, and notes paths, with credentials if any."""

    paths: list[str]

    def respond(self) -> None:
        self.paths.append(" ".join([self.path, *self.headers.get_all("Authorization", [])]))
        self.read_body()
        self.answer(204 if self.command == "GET" else 200)


@pytest.fixture
def empty_backend() -> Iterator[tuple[str, list[str]]]:
    """Address of an API that has no states, and the paths that it was asked for."""
    paths: list[str] = []
    with loopback.serving(type("Handler", (EmptyBackend,), {"paths": paths})) as address:
        yield address, paths


def run_terraform(
    terraform: Terraform, folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a real Terraform in a folder."""
    return subprocess.run(
        [*terraform.argv, f"-chdir={folder}", *arguments, "-no-color"],
        env={"HOME": str(folder), "PATH": os.environ["PATH"], "CHECKPOINT_DISABLE": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def terraform_reads(hcl: str, folder: Path, *options: str, **environment: str) -> dict[str, object]:
    """The backend settings that a real `terraform init` makes of a configuration."""
    (folder / "backend.tf").write_text(hcl)
    done = run_terraform(PACKAGED, folder, "init", *options, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    noted = json.loads((folder / ".terraform/terraform.tfstate").read_text())
    return {key: value for key, value in noted["backend"]["config"].items() if value is not None}


def shell_exports(*scripts: str) -> dict[str, str]:
    """The TF_HTTP_* variables of a program that a real shell starts after it evaluated the scripts."""
    done = subprocess.run(
        ["sh", "-euc", 'for script in "$@"; do eval "$script"; done; exec env', "sh", *scripts],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    variables = (line.partition("=") for line in done.stdout.splitlines())
    return {name: value for name, _, value in variables if name.startswith("TF_HTTP_")}


def test_terraform_takes_the_printed_block_and_reads_the_state_at_its_address(
    empty_backend: tuple[str, list[str]], tmp_path: Path
) -> None:
    address, paths = empty_backend
    base = address + '/$default/a${b}/c%7B/e$${f}/g"h/i\\j'

    config = terraform_reads(backend_config("network/prod", "--address", base), tmp_path)

    assert config == {
        "address": f"{base}/states/network/prod",
        "lock_address": f"{base}/locks/network/prod",
        "lock_method": "PUT",
        "unlock_address": f"{base}/unlocks/network/prod",
        "unlock_method": "POST",
    }
    assert {path.endswith("/states/network/prod") for path in paths} == {True}


def test_a_read_only_block_has_no_lock(empty_backend: tuple[str, list[str]], tmp_path: Path) -> None:
    address, _ = empty_backend

    block = backend_config("network/prod", "--read-only", "--address", address)

    assert terraform_reads(block, tmp_path) == {"address": f"{address}/states/network/prod"}
    assert "plan -lock=false" in block


def test_no_text_is_a_template_once_it_is_quoted_for_hcl(
    empty_backend: tuple[str, list[str]], tmp_path: Path
) -> None:
    address, _ = empty_backend
    text = '${a} $${b} $$${c} %{d} %%{e} "f" \\ $ % {'
    hcl = 'terraform {\n  backend "http" {\n    address = %s\n    username = %s\n  }\n}\n'

    config = terraform_reads(hcl % (quote_hcl(address), quote_hcl(text)), tmp_path)

    assert config["username"] == text


@pytest.mark.parametrize("address", [LOCAL_ADDRESS, "https://api.example.com/it's/`x`/$(y)/\\z"])
def test_a_shell_sees_the_exports_unchanged(address: str) -> None:
    exports = backend_config("network/prod", "--env", "--address", address)

    assert shell_exports(exports) == {
        "TF_HTTP_ADDRESS": f"{address}/states/network/prod",
        "TF_HTTP_LOCK_ADDRESS": f"{address}/locks/network/prod",
        "TF_HTTP_LOCK_METHOD": "PUT",
        "TF_HTTP_UNLOCK_ADDRESS": f"{address}/unlocks/network/prod",
        "TF_HTTP_UNLOCK_METHOD": "POST",
    }


def test_read_only_exports_drop_the_lock_of_an_earlier_export() -> None:
    before = backend_config("network/prod", "--env", "--address", LOCAL_ADDRESS)
    exports = backend_config("network/dev", "--env", "--read-only", "--address", LOCAL_ADDRESS)

    assert shell_exports(before, exports) == {"TF_HTTP_ADDRESS": f"{LOCAL_ADDRESS}/states/network/dev"}
    assert "plan -lock=false" in exports


# --- several environments ---------------------------------------------------------------------------


def write_environments(folder: Path, address: str) -> None:
    """An empty backend block, and a file for each of two environments."""
    (folder / "backend.tf").write_text(EMPTY_BLOCK)
    for name in ("dev", "prod"):
        printed = backend_config(f"network/{name}", "--tfbackend", "--address", address)
        (folder / f"{name}.tfbackend").write_text(printed)


@pytest.mark.parametrize("terraform", terraforms(), ids=lambda terraform: terraform.name)
def test_terraform_stays_with_the_file_that_it_was_initialized_with(
    empty_backend: tuple[str, list[str]], tmp_path: Path, terraform: Terraform
) -> None:
    address, paths = empty_backend
    write_environments(tmp_path, address)

    def run(*arguments: str, **environment: str) -> tuple[int, str, set[str]]:
        paths.clear()
        done = run_terraform(terraform, tmp_path, *arguments, "-input=false", **environment)
        return done.returncode, done.stdout + done.stderr, {path.partition("?")[0] for path in paths}

    def requests_for(name: str) -> set[str]:
        return {f"/{route}/network/{name}" for route in ("states", "locks", "unlocks")}

    without_init, said, requested = run("plan")
    assert (without_init, requested) == (1, set())
    assert "initialization required" in said

    assert run("init", "-backend-config=dev.tfbackend")[0] == 0
    exports = shell_exports(backend_config("network/prod", "--env", "--address", address))
    planned, said, requested = run("plan", **exports)
    assert (planned, requested) == (0, requests_for("dev")), said

    refused, said, requested = run("init", "-backend-config=prod.tfbackend")
    assert (refused, requested) == (1, set())
    assert "Backend configuration changed" in said
    assert run("plan")[2] == requests_for("dev")

    assert run("init", "-reconfigure", "-backend-config=prod.tfbackend")[0] == 0
    assert run("plan")[2] == requests_for("prod")


# --- outputs of another state -----------------------------------------------------------------------


def test_terraform_takes_the_printed_data_source_with_the_credentials_of_the_environment(
    empty_backend: tuple[str, list[str]], tmp_path: Path
) -> None:
    address, paths = empty_backend
    base = f"{address}/a${{b}}"

    (tmp_path / "network.tf").write_text(backend_config("network/prod", "--outputs", "--address", base))

    assert run_terraform(PACKAGED, tmp_path, "fmt", "-check", "-diff").stdout == ""
    assert run_terraform(PACKAGED, tmp_path, "init").returncode == 0
    planned = run_terraform(PACKAGED, tmp_path, "plan", TF_HTTP_USERNAME="me", TF_HTTP_PASSWORD="secret")
    assert "Unable to find remote state" in planned.stderr  # this backend has none
    assert set(paths) == {"/a$%7Bb%7D/outputs/network/prod Basic bWU6c2VjcmV0"}


@pytest.mark.parametrize(
    ("state", "name"),
    [
        ("network/prod", "network_prod"),
        ("apps/shop/eu-central-1", "apps_shop_eu_central_1"),
        ("2024.q1/web_front", "_2024_q1_web_front"),
    ],
)
def test_the_data_source_is_named_after_the_state(tmp_path: Path, state: str, name: str) -> None:
    printed = backend_config(state, "--outputs", "--address", LOCAL_ADDRESS)
    assert f"Any role except auditor is enough, if its scope covers {state}." in printed

    assert f'data "terraform_remote_state" "{name}" {{' in printed
    (tmp_path / "network.tf").write_text(printed)
    assert run_terraform(PACKAGED, tmp_path, "init").returncode == 0
    validated = run_terraform(PACKAGED, tmp_path, "validate")
    assert validated.returncode == 0, validated.stderr


# --- cloud and remote ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terraform", "form"),
    [
        *((terraform, ("--cloud",)) for terraform in terraforms()),
        (PACKAGED, ("--cloud", "--tags", "a,b:c")),
        (PACKAGED, ("--remote",)),
    ],
    ids=lambda value: getattr(value, "name", None) or " ".join(value),
)
def test_terraform_comes_to_the_organization_with_the_printed_block_and_the_printed_variable(
    empty_backend: tuple[str, list[str]], tmp_path: Path, terraform: Terraform, form: tuple[str, ...]
) -> None:
    address, paths = empty_backend
    base = f"{address}/_aws/execute-api/abc123/$default"
    printed = backend_config("network/eu/prod", *form, "--address", base)
    (tmp_path / "cloud.tf").write_text(printed)
    block = printed.partition("# host ")[2]
    (tmp_path / "cloud.tfrc").write_text("host " + block.replace("\n# ", "\n"))
    environment = {"TF_CLI_CONFIG_FILE": str(tmp_path / "cloud.tfrc")}

    assert run_terraform(terraform, tmp_path, "fmt", "-check", "-diff", **environment).stdout == ""
    sent = credentials_document(base, "k2v9x0q7m3c1d8f5a6b4", "secret")
    run_terraform(terraform, tmp_path, "init", **environment, **{sent["variable"]: sent["token"]})

    asked = "/_aws/execute-api/abc123/$default/api/v2/organizations/network/entitlement-set"
    assert f"{asked} Bearer k2v9x0q7m3c1d8f5a6b4.secret" in paths


@pytest.mark.parametrize(
    ("address", "host", "variable"),
    [
        ("https://api.example.com", "api.example.com", "TF_TOKEN_api_example_com"),
        ("https://API.Example.com:443", "api.example.com", "TF_TOKEN_api_example_com"),
        ("https://a-b.c--d.example", "a-b.c--d.example", "TF_TOKEN_a__b_c____d_example"),
        ("https://192.0.2.7", "192.0.2.7", "TF_TOKEN_192_0_2_7"),
        ("http://api.example.com", "holdfast.local", "TF_TOKEN_holdfast_local"),
        ("https://api.example.com:8443", "holdfast.local", "TF_TOKEN_holdfast_local"),
        ("https://api.example.com/holdfast", "holdfast.local", "TF_TOKEN_holdfast_local"),
        ("https://[::1]", "holdfast.local", "TF_TOKEN_holdfast_local"),
        (LOCAL_ADDRESS, "holdfast.local", "TF_TOKEN_holdfast_local"),
    ],
)
def test_the_host_name_is_one_that_a_variable_can_name(address: str, host: str, variable: str) -> None:
    assert credentials_document(address, "id", "secret") == {
        "hostname": host,
        "variable": variable,
        "token": "id.secret",
    }
    printed = backend_config("network/prod", "--cloud", "--address", address)
    assert f' "{host}"\n' in printed
    assert f"# {variable}.\n" in printed


def test_the_host_block_is_the_one_that_make_up_writes() -> None:
    _, _, block = backend_config("network/prod", "--cloud", "--address", LOCAL_ADDRESS).partition("# host ")
    written = up.cloud_config(Connection(LOCAL_ADDRESS, "id", "secret"))

    assert written.split("\n\n")[0].split() == f"host {block}".replace("\n# ", "\n").split()


def test_a_state_that_cloud_cannot_reach_is_told_how_to_get_another_name() -> None:
    said = usage_error("prod", "--cloud", "--address", LOCAL_ADDRESS)

    assert "holdfast backend-config GROUP/prod --cloud" in said
    assert "terraform init" in said


# --- what is never printed, and wrong usage ---------------------------------------------------------


@pytest.mark.parametrize("form", [[], ["--env"], ["--tfbackend"], ["--outputs"]])
def test_credentials_of_the_shell_are_never_printed(form: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NO_AWS, "TF_HTTP_USERNAME", "abcdefghij0123456789")
    monkeypatch.setitem(NO_AWS, "TF_HTTP_PASSWORD", "holdfast_very-secret")

    printed = backend_config("network/prod", *form, "--address", LOCAL_ADDRESS)

    assert "TF_HTTP_PASSWORD" in printed  # it says where they go
    assert "very-secret" not in printed
    assert "abcdefghij0123456789" not in printed


@pytest.mark.parametrize("form", [[], ["--outputs"], ["--cloud"]])
def test_the_page_on_the_block_shows_what_is_printed(form: list[str]) -> None:
    text = page("clients.md").read_text(encoding="utf-8")
    address = "https://abc123.execute-api.eu-central-1.amazonaws.com"

    printed = backend_config("network/prod", *form, "--address", address)

    assert f"\n{printed}```\n" in text


def test_a_trailing_slash_of_the_address_is_dropped() -> None:
    printed = backend_config("x", "--address", "https://api.example.com/")

    assert '"https://api.example.com/states/x"' in printed
    assert check_address("http://[::1]:4566/x/") == "http://[::1]:4566/x"


OPTIONS = {
    "Only the http backend supports --read-only": ["--cloud --read-only", "--remote --read-only"],
    "--outputs and --read-only cannot be used together": ["--outputs --read-only"],
    "--tags needs --cloud": ["--remote --tags a", "--tags a"],
    "not a valid list of tags": ["--cloud --tags ''", "--cloud --tags a,,b", "--cloud --tags 'a b'"],
    "not allowed with": [
        *("--env --tfbackend", "--env --outputs", "--tfbackend --outputs", "--cloud --env"),
        *("--cloud --remote", "--team payments"),
    ],
}
STATES = {
    "segment 1 is empty": [""],
    "segment 2 must start with a letter or a digit": ["network/../prod"],
    "at most 8": ["a/b/c/d/e/f/g/h/i"],
    "at most 200": ["x" * 201],
}
ADDRESSES = {
    "put https:// before it": ["api.example.com"],
    "base URL": [
        *("ftp://api.example.com", "https://"),
        *("https://api.example.com/states/network/prod", "https://api.example.com/locks"),
    ],
    "not a valid URL": [
        *("https://api.example.com:port", "https://[::1", "https://:443", "https://h:", "https://a..b"),
        *("https://user%3Ahunter2%40x.example.com", "https://-", "https://h\\x", "https://h'x"),
    ],
    "must not contain credentials": ["https://me:hunter2@api.example.com"],
    "without /outputs": ["https://api.example.com/outputs/network/prod"],
    "without /unlocks": ["https://api.example.com/unlocks/network/prod"],
    "'?'": ["https://api.example.com/?x=y"],
    "'#'": ["https://api.example.com/#x"],
    "without spaces": ["https://api.example.com/a b"],
    "hexadecimal": ["https://api.example.com/%zz"],
    "printable": ["https://api.example.com/\n}"],
    "ASCII": ["https://büro.example.com"],
}
WRONG = [
    *((why, ["a/b", "--address", LOCAL_ADDRESS, *shlex.split(x)]) for why in OPTIONS for x in OPTIONS[why]),
    *((why, [state, "--address", LOCAL_ADDRESS]) for why in STATES for state in STATES[why]),
    *((why, ["a/b", "--address", address]) for why in ADDRESSES for address in ADDRESSES[why]),
]


@pytest.mark.parametrize(("reason", "arguments"), WRONG)
def test_wrong_usage_names_the_rule(reason: str, arguments: list[str]) -> None:
    said = usage_error(*arguments)

    assert reason in said
    assert "hunter2" not in said
