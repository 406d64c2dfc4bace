"""The text of `reference.md`: every command with its line of help and its options, from the parser."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from holdfast_cli.commands.table import COMMANDS, parser
from holdfast_cli.terminal.parser import HIDDEN, Parser

_INTRODUCTION: Final = """\
# Command reference

For people who type `holdfast`: find a command, and what its options mean. The commands have the
sections of `holdfast --help`. `holdfast <command> --help` also has examples.

<!-- Begin of the commands: generated from holdfast_cli/ by `make generated`. -->
"""
_END: Final = "\n\n<!-- End of the commands. -->\n"
_CREDENTIALS: Final = {
    "look and undo": "These commands use the API, usually with [Terraform's credentials]"
    "(command.md#set-up).\n",
    "for operators, with AWS credentials": "These commands use AWS directly, mainly the team's bucket or "
    "audit log.\n",
}
"""Group of the help -> what its section says first."""
_MANY: Final = 3
"""How many commands have an option, with the same help, that is listed once for all of them."""

_Option = tuple[str, str]
"""An option as it is typed, with the name of its value, and its help."""


def text() -> str:
    """Return the whole document."""
    commands = list(_leaves(parser(), ""))
    counts = Counter(option for command, _ in commands for option in _options(command))
    # Of one option with several helps, the help that most commands have is the shared one.
    most = {typed: help_ for (typed, help_), count in reversed(counts.most_common()) if count >= _MANY}
    shared = list(most.items())
    return (
        "\n".join(
            (_INTRODUCTION, *_groups(commands), *_shared(shared), *_own(commands, set(shared)))
        ).rstrip()
        + _END
    )


def _groups(commands: Iterable[tuple[Parser, str]]) -> Iterator[str]:
    rows: dict[str, list[str]] = {group: [] for group, _ in COMMANDS.values()}
    for command, line in commands:
        typed = _typed(command).replace("|", "\\|")
        rows[COMMANDS[command.prog.split()[1]][0]].append(f"| `{typed}` | {line} |")
    assert _CREDENTIALS.keys() <= rows.keys()
    for group in sorted(rows, key=lambda group: group == HIDDEN):
        yield f"## {'For programs' if group == HIDDEN else group[0].upper() + group[1:]}\n"
        if group in _CREDENTIALS:
            yield _CREDENTIALS[group]
        yield "\n".join(("| Command | Does |", "| --- | --- |", *rows[group], ""))


def _shared(options: Iterable[_Option]) -> Iterator[str]:
    yield "## Options of several commands\n"
    yield _table(sorted(options))


def _own(commands: Iterable[tuple[Parser, str]], shared: set[_Option]) -> Iterator[str]:
    yield "## Options of each command\n"
    for command, _ in commands:
        own = [option for option in _options(command) if option not in shared]
        others = [f"`{typed}`" for typed, help_ in _options(command) if (typed, help_) in shared]
        if own or others:
            yield f"### {command.prog}\n"
        if own:
            yield _table(own)
        if others:
            yield f"{'It also has' if own else 'It has'} {', '.join(others)}.\n"


def _table(options: Iterable[_Option]) -> str:
    rows = (f"| `{typed}` | {help_} |" for typed, help_ in options)
    return "\n".join(("| Option | Meaning |", "| --- | --- |", *rows, ""))


def _options(command: Parser) -> Iterator[_Option]:
    """Yield the options of a command, but not that for its help."""
    for action in command._actions:  # noqa: SLF001 they have no other name
        if action.option_strings and action.dest != "help" and action.help != argparse.SUPPRESS:
            typed = "/".join(action.option_strings)
            value = "" if action.nargs == 0 else f" {_value(action)}"
            meaning = command._get_formatter()._expand_help(action)  # noqa: SLF001
            yield f"{typed}{value}", _escaped(meaning)


def _value(action: argparse.Action) -> str:
    """Return the name of an option's value, or its choices."""
    if action.choices is not None and action.metavar is None:
        return " or ".join(str(choice) for choice in action.choices)
    return _name(action)


def _escaped(meaning: str) -> str:
    """Return a help as a cell of a table, in which `*` and `<name>` mean themselves."""
    shown = " ".join(meaning.split()).replace("|", "\\|").split("`")
    return "`".join(
        part if number % 2 else part.replace("<", "&lt;").replace("*", "\\*")
        for number, part in enumerate(shown)
    )


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
