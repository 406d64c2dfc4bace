"""Every help fits the terminal, and its examples can be pasted."""

import shlex
from collections.abc import Iterator

import pytest

from holdfast_cli.commands.table import parser
from holdfast_cli.terminal.parser import Parser


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
