"""Errors about a wrong command line: their words, the level that prints them, and values kept out of them."""

import argparse
import shlex
from typing import Final

import pytest

from holdfast_cli.api.version_reference import reference
from holdfast_cli.commands.table import parser
from holdfast_cli.config.rules import Beginning
from holdfast_cli.main import main
from tests.unit.test_commands import COMMANDS

PARSER: Final = parser()
SECRET = "holdfast_" + 49 * "0"
WRITER = "token create --role writer --scope x"
WHO = "--role writer --scope x"


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The output for a command line that must be wrong usage: the whole output, and its last line."""
    with pytest.raises(SystemExit) as exit_:
        PARSER.parse_args(shlex.split(line))
    printed = capsys.readouterr()
    assert (exit_.value.code, printed.out) == (2, "")
    return printed.err, printed.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("line", "level", "said"),
    [
        ("tokn list", "", "there is no command 'tokn'. Did you mean token?"),
        ("token creat", " token", "there is no command 'creat'. Did you mean create?"),
        ("state undel network/prod", " state", "there is no command 'undel'. Did you mean undelete?"),
        ("lst", "", "there is no command 'lst'. Did you mean `holdfast state list`, `holdfast lock list`, "),
        ("frobnicate", "", "there is no command 'frobnicate'. The commands are state, "),
        ("help", "", "there is no command 'help'. Did you mean --help?"),
        ("find aws_vpc.a", "", "there is no command 'find'. Did you mean `holdfast state find`?"),
        ("create", "", "Did you mean `holdfast token create` or `holdfast trust create`?"),
        ("token x", " token", "no command 'x'. The commands are create, list, show, update, rotate, revoke."),
        # A misspelled required option is missing too, but the message is about its spelling.
        ("token create --role writer --scop x", " token create", "no option --scop. Did you mean --scope?"),
        ("token create --rol=writer", " token create", "there is no option --rol. Did you mean --role?"),
        (f"{WRITER} --desc x", " token create", "there is no option --desc. Did you mean --description?"),
        ("token create --role writr", " token create", "argument --role: 'writr' is not one of outputs, "),
        ("token create --role writr", " token create", ", maintainer. Did you mean writer?"),
        ("login --description x", " login", "there is no option --description."),
        ("login --duration --oidc", " login", "argument --duration: expected one argument"),
        ("login -x", " login", "there is no option -x."),
        ("--vers", "", "there is no option --vers. Did you mean --version?"),
        ("--role writer token create", "", "write the option --role after the command."),
        ("--json token list", "", "write the option --json after the command."),
        ("token --all list", " token", "write the option --all after the command."),
        ("token --al list", " token", "there is no option --al."),
        ("token list more and more", " token list", "there is one argument too many: 'more'"),
        ("token list -- more", " token list", "there is one argument too many: 'more'"),
        ("token list -- --", " token list", "there is one argument too many: --"),
        ("'\x1b[31m'", "", r"there is no command '\x1b[31m'."),
        ("'--\x1b[31m'", "", "there is no option --?[31m."),
    ],
)
def test_a_mistake_is_told_with_the_usage_of_its_level_and_the_nearest_right_word(
    line: str, level: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed, last = refused(line, capsys)

    assert printed.startswith(f"usage: holdfast{level} [-h]")
    assert last.startswith(f"holdfast{level}: error: ")
    assert said in last


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "state create network/prod",
            "holdfast state: error: create does not exist any more. Use declare instead.",
        ),
        (
            "import open move.toml --json",
            "holdfast import: error: open does not exist any more. Use reopen instead.",
        ),
        (
            "trust add ci --role reader --for bea",
            "holdfast trust: error: add does not exist any more. Use create instead.",
        ),
        (
            "token create --role reader --for bea --scope a",
            "holdfast token create: error: --for does not exist any more. Use --owner instead.",
        ),
        (
            "trust update ci --for=bea",
            "holdfast trust update: error: --for does not exist any more. Use --owner instead.",
        ),
        (
            "audit --state network/prod",
            "holdfast audit: error: --state does not exist any more. Use the argument STATE instead.",
        ),
    ],
)
def test_the_name_of_before_ends_with_2_and_one_line_with_the_name_of_now(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))

    assert ended.value.code == 2
    assert tuple(capsys.readouterr()) == ("", f"{said}\n")


@pytest.mark.parametrize("line", ["whoami --reason x", "state show x --reason y"])
def test_a_word_that_is_not_similar_is_not_suggested(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, last = refused(line, capsys)

    assert last.endswith("error: there is no option --reason.")


@pytest.mark.parametrize(("line", "command"), [("", "login"), ("token", "rotate"), ("trust", "list")])
def test_a_missing_command_prints_those_that_there_are(
    line: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed, last = refused(line, capsys)

    prog = f"holdfast {line}".rstrip()
    assert printed.startswith(f"usage: {prog} [-h]")
    assert f"\n  {command} " in printed
    assert last == f"{prog}: error: write one of these commands"


OPTIONS: Final = [
    pytest.param(command, action, id=f"{command.prog} {action.option_strings[-1]}")
    for command in COMMANDS
    for action in command._actions  # noqa: SLF001 argparse has no public list of its options
    if action.option_strings and action.nargs != 0
]


@pytest.mark.parametrize(("command", "action"), OPTIONS)
def test_an_option_is_refused_when_it_is_repeated_unless_its_values_add_up(
    command: argparse.ArgumentParser, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    path, option = command.prog.removeprefix("holdfast "), action.option_strings[-1]
    _, last = refused(f"{path} {option}=a {option}=b", capsys)

    told = (
        f"{option} accepts one value, but has 2. Run a command for each value: `{command.prog} {option}=a`; "
    )
    assert (told in last) is ("may be repeated" not in (action.help or ""))


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (
            "--role reader --scope a --role writer --scope b",
            ["--role reader --scope a", "--role writer --scope b"],
        ),
        (
            "--role outputs --scope a --role writer --scope 'b/*' --scope c --expires 1d",
            ["--expires 1d --role outputs --scope a", "--expires 1d --role writer --scope 'b/*' --scope c"],
        ),
        # The scope could belong to either role, so no line shows it.
        (
            "--scope a --role outputs --scope b --role writer",
            ["--role outputs --scope '<PATTERN>'", "--role writer --scope '<PATTERN>'"],
        ),
        # A message would cut the scope, and so show another scope.
        (
            f"--scope {31 * 'a'} --role outputs --role writer",
            ["--scope '<PATTERN>' --role outputs", "--scope '<PATTERN>' --role writer"],
        ),
        ("--role=outputs --role writer --scope a", ["--scope a --role=outputs", "--scope a --role writer"]),
    ],
)
def test_each_line_to_type_has_what_belongs_to_its_value(
    line: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, last = refused(f"token create {line}", capsys)

    typed = [set(shlex.split(one)) for one in last.split("`")[1::2]]
    assert typed == [set(shlex.split(f"holdfast token create {one}")) for one in lines]


@pytest.mark.parametrize(
    "line",
    [SECRET, f"token {SECRET}", f"token show {SECRET}", f"token show {20 * 'a'} {SECRET}"]
    + [f"login {option}" for option in (SECRET, f"--{SECRET}", f"--secret={SECRET}", f"-{SECRET}=x")]
    + [f"token create --role {SECRET}"],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed, _ = refused(line, capsys)

    assert SECRET not in printed


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{WRITER} --team {60 * 'a'}", "argument --team: 'aaaaaaaaaaaa…' is not a valid team name: "),
        (f"{WRITER} --team a{SECRET}", "argument --team: the value looks like a secret"),
        (f"{WRITER} --expires {SECRET}", "argument --expires: '…' is not a valid time: "),
        (f"{WRITER} --expires 'it'\\''s \x1b{SECRET}'", 'argument --expires: "…" is not a valid time: '),
        (f"{WRITER} --scope {SECRET},b", "argument --scope: '…' is not one scope pattern: "),
        (f"{WRITER} --json={SECRET}", "argument --json: ignored explicit argument '…'"),
    ],
)
def test_of_a_long_value_the_beginning_is_repeated_and_of_a_secret_nothing(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed, last = refused(line, capsys)

    assert said in last
    assert SECRET not in printed


@pytest.mark.parametrize(
    "line",
    [
        f"trust create {SECRET} {WHO} --issuer https://a.example --claim a=b",
        f"trust create x {WHO} --issuer {SECRET} --claim a=b",
        f"trust create x {WHO} --issuer https://user:{SECRET}@a.example --claim a=b",
        f"trust create x {WHO} --issuer 'https://user:{SECRET[:12]} {SECRET[12:]}@a.example' --claim a=b",
        f"trust create x {WHO} --issuer https://a.example --claim iss={SECRET}",
        f"trust create x {WHO} --aws-role 'a {SECRET}'",
        f"login --oidc --address https://a.example --id-token-file eyJ0.eyJ1.{SECRET}",
    ],
)
def test_a_secret_that_only_a_command_refuses_is_not_repeated_either(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_CONFIG_FILE", "/dev/null")

    assert main(shlex.split(line)) in (1, 2)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert SECRET[12:] not in printed.err


@pytest.mark.parametrize(
    "line", ["--help", "token --help --bogus", "trust create --help --bogus", "--version"]
)
def test_help_is_given_whatever_follows(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        PARSER.parse_args(shlex.split(line))

    assert exit_.value.code == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        (f"{WRITER} --description '-1'", "description", "-1"),
        (f"{WRITER} --description='--all'", "description", "--all"),
        (f"{WRITER} --description '-a note'", "description", "-a note"),
        (f"{WRITER} --description token", "description", "token"),
        ("token list --", "json", False),
        # An optional argument may follow an option.
        ("state diff a --show-values @1 --address https://x.example @2", "to", reference("@2")),
        ("state diff a --show-values -- @1", "from_", reference("@1")),
        ("state list --larger-than 4MB network/", "states", Beginning("network/")),
        ("token show -- k2v9x0q7m3c1d8f5a6b4", "id", "k2v9x0q7m3c1d8f5a6b4"),
    ],
)
def test_a_value_may_look_like_something_else(line: str, name: str, value: object) -> None:
    assert getattr(PARSER.parse_args(shlex.split(line)), name) == value
