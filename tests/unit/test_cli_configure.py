"""`holdfast configure`: what it writes into the file of profiles, asks, removes and shows."""

import json
import os
import shlex
import stat
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Final
from unittest import mock

import pytest

from holdfast_cli.config import profiles
from holdfast_cli.main import main
from tests.support.terminal import Terminal
from tests.unit.test_commands import COMMANDS

ADDRESS: Final = "https://abc.example.com"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "home" / "holdfast" / "config.toml"


@pytest.fixture
def holdfast(file: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the command in this process."""

    def run(*arguments: str, answers: StringIO | None = None, **environment: str) -> int:
        environment = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(file.parents[1])} | environment
        nobody = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
        plain = {"COLUMNS": "1000", "NO_COLOR": "1"}
        monkeypatch.setattr("sys.stdin", answers or StringIO())
        if answers:
            monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        with mock.patch.dict(os.environ, nobody | plain | environment, clear=True):
            try:
                return main(arguments)
            except SystemExit as end:
                return int(end.code or 0)

    return run


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_options_are_written_without_asking_and_the_rest_stays(
    holdfast: Callable[..., int], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert holdfast("configure", "--address", f"{ADDRESS}/", "--team", "payments") == 0
    assert holdfast("configure", "--profile", "staging", "--region", "eu-west-1") == 0
    capsys.readouterr()
    assert holdfast("configure", "--team", "staging", HOLDFAST_PROFILE="staging") == 0

    assert profiles.read(file) == {
        "default": {"address": ADDRESS, "team": "payments"},
        "staging": {"region": "eu-west-1", "team": "staging"},
    }
    assert capsys.readouterr() == (
        f"Wrote the profile staging to {file}:\n\n  team    staging\n  region  eu-west-1\n\n"
        "Use it with --profile staging or HOLDFAST_PROFILE=staging.\n",
        "",
    )
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert list(file.parent.iterdir()) == [file]


SHAPES: Final = {
    "comments": (
        "# mine\n[profiles.a]  # first\nteam = 'a' # note\n\n[profiles.staging]\nteam = 'old' # note\n# end\n"
    ),
    "a comment above": "[profiles.staging]\nteam = 'old'\n\n# about a\n[profiles.a]\nteam = 'a' # note\n",
    "no end of line": "[profiles.a]\nteam = 'a'",
    "end of line of Windows": "\ufeff[profiles.a]\r\nteam = 'a' # note\r\n",
    "ends of lines of both kinds": "[profiles.a]\nteam = 'a' # note\r\n",
    "no profile yet": "# mine\n[profiles]\n",
    "dots": "profiles.a.team = 'a' # note\n",
}


@pytest.mark.parametrize("content", SHAPES.values(), ids=SHAPES)
def test_what_a_person_wrote_stays(holdfast: Callable[..., int], file: Path, content: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(content)
    file.chmod(0o640)
    others = {name: values for name, values in profiles.read(file).items() if name != "staging"}

    assert holdfast("configure", "--profile", "staging", "--team", "new", "--region", "eu-west-1") == 0
    assert profiles.read(file) == {**others, "staging": {"team": "new", "region": "eu-west-1"}}
    if "]\r\n" in content:
        assert file.read_bytes().count(b"\r\n") == len(file.read_bytes().splitlines()) > content.count("\n")
    for comment in ("# mine", "# first", "# note", "# about a", "# end"):
        assert file.read_text().count(comment) == content.count(comment)

    assert holdfast("configure", "remove", "staging", "team", "team") == 0
    assert profiles.read(file) == {**others, "staging": {"region": "eu-west-1"}}
    assert holdfast("configure", "remove", "staging") == 0
    assert profiles.read(file) == others
    for comment in ("# mine", "# first", "# about a", "# end"):
        assert file.read_text().count(comment) == content.count(comment)
    assert mode(file) == 0o640


@pytest.mark.parametrize(
    "content",
    [
        "profiles = {a = {team = 'x'}}\n",
        "profiles.b.team = 'x'\n",
        "profiles.b = {team = 'x'}\n",
        "[profiles.b]\nteam = '''\nx'''\n",
    ],
)
def test_a_profile_in_another_form_is_to_be_edited_by_hand(
    holdfast: Callable[..., int], file: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(content)
    before = file.read_bytes()

    assert holdfast("configure", "--profile", "b", "--team", "y") == 1

    line = (
        f"holdfast: This command cannot change {file}, because the file uses TOML syntax such as inline "
        "tables or dotted keys. Edit the file by hand.\n"
    )
    assert capsys.readouterr() == ("", line)
    assert file.read_bytes() == before


def test_a_link_stays_a_link(holdfast: Callable[..., int], file: Path, tmp_path: Path) -> None:
    file.parent.mkdir(parents=True)
    file.symlink_to(tmp_path / "dotfiles" / "holdfast.toml")

    assert holdfast("configure", "--team", "payments") == 0

    assert file.is_symlink()
    assert profiles.read(tmp_path / "dotfiles" / "holdfast.toml") == {"default": {"team": "payments"}}


def test_each_setting_is_asked_with_its_present_value_until_the_answer_is_valid(
    holdfast: Callable[..., int], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    holdfast("configure", "--team", "payments", "--region", "eu-west-1")

    answers = Terminal("abc.example.com\nhttps://abc.example.com\n\neu-west-3\n")
    assert holdfast("configure", answers=answers) == 0

    assert profiles.read(file) == {"default": {"address": ADDRESS, "team": "payments", "region": "eu-west-3"}}
    assert capsys.readouterr().err == (
        f"Settings of the profile default in {file}. `cdk deploy` and `make up` print the API's address. "
        "Press Enter to keep the value in brackets.\n"
        "API address [none]: the address has no scheme: put https:// before it\n"
        "API address [none]: Team [payments]: AWS region [eu-west-1]: "
    )


@pytest.mark.parametrize(
    ("answers", "code", "says"),
    [
        (Terminal("\n\n\n"), 0, "API address [none]: "),
        (Terminal("https://abc.example.com\n"), 1, "holdfast: The input ended. Nothing was changed."),
        (
            mock.Mock(readline=mock.Mock(side_effect=["https://a.b\n", KeyboardInterrupt])),
            130,
            "holdfast: Interrupted. Nothing was changed.",
        ),
        (
            None,
            2,
            "holdfast: There is nothing to write. Use --address, --team or --region. Without these ",
        ),
    ],
)
def test_without_answers_nothing_is_changed(
    holdfast: Callable[..., int],
    file: Path,
    capsys: pytest.CaptureFixture[str],
    answers: StringIO | None,
    code: int,
    says: str,
) -> None:
    assert holdfast("configure", answers=answers) == code

    output, errors = capsys.readouterr()
    assert output == ("" if code else "Nothing was changed.\n")
    assert errors.splitlines()[-1].startswith(says)
    assert not file.parent.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["remove", "nobody"], "no profile nobody"),
        (["remove", "default", "region"], "has no region"),
        (["remove", "default", "zone"], "address, team, region"),
        (["--team", "x", "remove", "default"], "`holdfast configure remove` does not accept --team"),
        (["--profile", "x", "remove", "x"], "Remove --profile. Name the profile as an argument"),
        (["remove"], "arguments are required: NAME\n"),
        (["--team", "x", "list"], "`holdfast configure list` does not accept --team"),
        (["--address", "ftp://x"], "base URL"),
        (["--profile", "-x"], "expected one argument"),
    ],
)
def test_wrong_usage_changes_nothing(
    holdfast: Callable[..., int],
    file: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    holdfast("configure", "--team", "payments")
    before = file.read_bytes()
    capsys.readouterr()

    assert holdfast("configure", *arguments) == 2

    output, errors = capsys.readouterr()
    assert output == ""
    assert says in errors.splitlines(keepends=True)[-1]
    assert file.read_bytes() == before


def test_a_file_that_cannot_be_written_is_one_line_and_leaves_nothing(
    holdfast: Callable[..., int], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    holdfast("configure", "--team", "payments")
    before = file.read_bytes()
    capsys.readouterr()

    with mock.patch.object(Path, "replace", side_effect=OSError(28, "No space left on device")):
        assert holdfast("configure", "--team", "x") == 1
    assert holdfast("configure", "--team", "x", HOLDFAST_CONFIG_FILE=os.devnull) == 1

    assert capsys.readouterr() == (
        "",
        f"holdfast: {file} cannot be written: No space left on device. Nothing was changed.\n"
        f"holdfast: {os.devnull} is not a regular file. Nothing was changed.\n",
    )
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
    assert holdfast("configure", "--team", "x", XDG_CONFIG_HOME="") == 2  # and no HOME


def test_the_list_says_where_each_setting_comes_from(
    holdfast: Callable[..., int], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    holdfast("configure", "--address", ADDRESS, "--region", "eu-west-1")
    holdfast("configure", "--profile", "staging", "--team", "payments")
    capsys.readouterr()

    assert holdfast("configure", "list", HOLDFAST_TEAM="platform") == 0
    assert capsys.readouterr().out == (
        "SETTING  VALUE      FROM\n"
        "profile  default    -\n"
        "address  -          the team's stack (HOLDFAST_TEAM)\n"
        "team     platform   HOLDFAST_TEAM\n"
        "region   eu-west-1  profile default\n"
        f"\n{file} has default, staging.\n"
    )

    of_staging = ("configure", "--profile", "staging", "list", "--json")
    assert holdfast(*of_staging, AWS_DEFAULT_REGION="us-east-1") == 0
    assert json.loads(capsys.readouterr().out) == {
        "profile": {"value": "staging", "from": "--profile"},
        "address": {"value": None, "from": None},
        "team": {"value": "payments", "from": "profile staging"},
        "region": {"value": "us-east-1", "from": "AWS_DEFAULT_REGION"},
        "file": str(file),
        "profiles": ["default", "staging"],
    }


def test_the_list_shows_the_region_of_the_aws_profile(
    holdfast: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "aws").write_text("[profile ours]\nregion = eu-west-2\n")

    aws = {"AWS_CONFIG_FILE": str(tmp_path / "aws"), "AWS_PROFILE": "ours"}
    assert holdfast("configure", "list", **aws) == 0

    assert "region   eu-west-2  the AWS profile\n" in capsys.readouterr().out

    assert holdfast("configure", "list", **aws | {"AWS_PROFILE": "nope"}) == 0
    assert (
        "region   -        The config profile (nope) could not be found: name a "
        "profile that `aws configure list-profiles` prints.\n" in capsys.readouterr().out
    )


def test_every_example_of_the_help_works_as_it_stands(holdfast: Callable[..., int], tmp_path: Path) -> None:
    holdfast("configure", "--profile", "staging", "--address", ADDRESS)
    for command in COMMANDS:
        if command.prog.startswith("holdfast configure"):
            _, _, examples = str(command.epilog).partition("examples:\n")
            for example in examples.splitlines():
                options = "--address https://a.b --team a --region eu-west-1"
                holdfast("configure", "--profile", "staging", *options.split())
                done = holdfast(*shlex.split(example)[1:], answers=Terminal("\n\n\n"), HOME=str(tmp_path))
                assert done == 0, example
