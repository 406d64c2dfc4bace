"""The text of `reference.md`: every command with its line of help, from the parser."""

import argparse
from collections.abc import Iterator
from typing import Final

from holdfast_cli.commands.table import parser
from holdfast_cli.terminal.parser import Parser

_INTRODUCTION: Final = """\
# Command reference

For everybody who types `holdfast`: find a command. `holdfast <command> --help` shows options and examples.
"""
_SECTIONS: Final = {
    "## Set up and check": "",
    "## States, locks and activity": (
        "These commands use the API, with [Terraform's credentials](command.md#set-up).\n"
    ),
    "## Access": "These commands use the team's bucket and audit log, with AWS credentials.\n",
}


def text() -> str:
    """Return the whole document."""
    sections: dict[str, list[str]] = {heading: [] for heading in _SECTIONS}
    for command, line in _leaves(parser(), ""):
        typed = _typed(command).replace("|", "\\|")
        sections[_section(command)].append(f"| `{typed}` | {line} |")
    tables = (
        "\n".join(
            [
                "",
                heading,
                "",
                *filter(None, [_SECTIONS[heading]]),
                "| Command | Does |",
                "| --- | --- |",
                *rows,
            ]
        )
        for heading, rows in sections.items()
    )
    return _INTRODUCTION + "\n".join(tables) + "\n"


def _section(command: Parser) -> str:
    """Return the heading of a command, by whether it finds an API or a stack, or either."""
    options = command._option_string_actions  # noqa: SLF001 they have no other name
    set_up, states, access = _SECTIONS
    if ("--address" in options) == ("--team" in options):
        return set_up
    return states if "--address" in options else access


def _leaves(group: Parser, line: str) -> Iterator[tuple[Parser, str]]:
    """Yield the commands that can be run, each with its line of help."""
    group.load()
    if group.get_default("run"):
        yield group, line
    for action in group._actions:  # noqa: SLF001 they have no other name
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for choice in action._choices_actions:  # noqa: SLF001
                yield from _leaves(action.choices[choice.dest], choice.help or "")


def _name(action: argparse.Action) -> str:
    return str(action.metavar or action.dest.upper())


def _typed(command: Parser) -> str:
    """Return a command with its arguments and the options that it requires."""
    words = [command.prog]
    told: list[argparse.Action] = []
    for group in command._mutually_exclusive_groups:  # noqa: SLF001
        one = [" ".join((*each.option_strings[-1:], _name(each))) for each in group._group_actions]  # noqa: SLF001
        if group.required:
            words.append(f"({' or '.join(one)})")
            told += group._group_actions  # noqa: SLF001
    for action in command._actions:  # noqa: SLF001
        name = _name(action)
        if isinstance(action, argparse._SubParsersAction) or action in told:  # noqa: SLF001
            continue
        if action.option_strings:
            words += [f"{action.option_strings[-1]} {name}"] if action.required else []
        else:
            words.append(
                {
                    "?": f"[{name}]",
                    "*": f"[{name} …]",
                    "+": f"{'-- ' * (action.dest == 'command')}{name} …",
                }.get(str(action.nargs), name)
            )
    return " ".join(words)
