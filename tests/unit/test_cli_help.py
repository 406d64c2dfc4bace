"""Every help fits the terminal, and its examples can be pasted."""

import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast_cli.commands.table import parser
from holdfast_cli.terminal.parser import HIDDEN, Parser


def helps(command: Parser) -> Iterator[tuple[Parser, str]]:
    command.load()
    yield command, command.format_help()
    for each in command.commands().values():
        yield from helps(each)


@pytest.mark.parametrize("columns", [80, 100])
def test_every_help_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))

    wide = [
        f"{command.prog}: {line}"
        for command, text in helps(parser())
        for line in text.splitlines()
        if len(line) >= columns
    ]
    assert wide == []


def test_each_command_is_below_the_heading_that_it_declares_and_a_program_s_command_below_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    top = parser()
    listed = [part.splitlines() for part in top.format_help().split("\n\n")]
    headings = {lines[0].removesuffix(":"): [line.split()[0] for line in lines[1:]] for lines in listed}

    declared: dict[str, list[str]] = {}
    for name, command in top.commands().items():
        declared.setdefault(command.group, []).append(name)
    assert declared.pop(HIDDEN) == ["credentials-helper"]
    assert {heading: headings[heading] for heading in declared} == declared
    assert "commands" not in declared  # the heading of a command that declares none
    assert "state" in next(iter(declared.values()))


def test_the_first_page_ends_with_what_to_type_first() -> None:
    shown = " ".join(parser().format_help().split("Start: ")[-1].split())

    assert shown == '`holdfast configure`, then `eval "$(holdfast login)"`, then `holdfast state list`.'


def test_no_help_says_that_a_command_takes_a_role() -> None:
    takes = [command.prog for command, text in helps(parser()) if "akes the role" in " ".join(text.split())]

    assert takes == []


def test_a_broken_example_is_the_same_for_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(text: str) -> list[list[str]]:
        lines = text.partition("examples:\n")[2].replace("\\\n", "").splitlines()
        return [shlex.split(line) for line in lines]

    broken = 0
    monkeypatch.setenv("COLUMNS", "80")
    for command, text in helps(parser()):
        broken += "\\\n" in text
        assert typed(text) == typed(str(command.epilog)), command.prog
    assert broken


def test_paragraphs_are_wrapped_lists_hang_and_no_command_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "32")
    text = "One line\nand another one, which\nends. Run `a b c d e f g h`.\n\n"
    text += "words:\n  short  a meaning that is long\n  code of a shell\n"

    shown = Parser(prog="holdfast", description=text).format_help().partition("\n\n")[2]

    assert shown.startswith(
        "One line and another one,\nwhich ends. Run\n`a b c d e f g h`.\n\n"
        "words:\n  short  a meaning that is\n         long\n  code of a shell\n"
    )


def test_a_command_in_a_list_of_a_description_keeps_its_column_and_its_apostrophe() -> None:
    text = "Look:\n  holdfast doctor         the team's stack\n  holdfast doctor STATE   a folder's backend\n"

    assert text in Parser(prog="holdfast", description=text).format_help()


IMPORTED = """
import sys
from holdfast_cli.commands.table import parser

def load(command):
    command.format_help()
    for each in command.commands().values():
        each.load()
        load(each)

load(parser())
print([name for name in ("botocore", "urllib3", "rich", "holdfast.api.v1", "difflib") if name in sys.modules])
"""


def test_no_help_waits_for_a_module_that_only_a_request_needs() -> None:
    found = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"
