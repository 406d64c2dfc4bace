"""Declares commands. A decorator with help and options is above the function that runs the command."""

import argparse
from collections.abc import Callable
from typing import Any

from holdfast_cli.terminal.parser import Parser

Run = Callable[[argparse.Namespace], None]
"""Runs a command."""
Option = Callable[["argparse._ActionsContainer"], object]  # noqa: SLF001 the type has no other name
"""A function that adds options or arguments to a parser."""


def option(*names: str, **settings: Any) -> Option:
    """Declare an option or an argument, with the parameters of `ArgumentParser.add_argument`."""
    return lambda parser: parser.add_argument(*names, **settings)


def several(*options: Option) -> Option:
    """Combine several options into a single `Option`."""

    def add(parser: "argparse._ActionsContainer") -> None:
        for each in options:
            each(parser)

    return add


def either(*options: Option, required: bool = False) -> Option:
    """Declare mutually exclusive options; with `required` the user must give one of the options."""

    return lambda parser: several(*options)(parser.add_mutually_exclusive_group(required=required))


def renamed(old: str, new: str) -> Option:
    """Declare the new name of a command of a group, or of an option: the old name is refused with it."""

    def add(parser: "argparse._ActionsContainer") -> None:
        assert isinstance(parser, Parser)  # noqa: S101 no group of options has it
        parser.renamed[old] = new

    return add


class Command:
    """A command, a group of commands, or both."""

    def __init__(self, description: str = "", examples: str = "", *options: Option) -> None:
        """Declare a group, or begin a command that `define` completes.

        The help begins with `description`, lists `options` in their order and ends with `examples`.
        """
        self._description, self._examples, self._options = description, examples, options
        self._run: Run | None = None
        self._commands: dict[str, tuple[str, Command]] = {}

    def define(self, description: str, examples: str, *options: Option) -> Callable[[Run], Run]:
        """Declare the command that the decorated function runs; the arguments are as for `Command`."""
        self._description, self._examples, self._options = description, examples, options

        def runs(run: Run) -> Run:
            self._run = run
            return run

        return runs

    def add(
        self, name: str, short: str, description: str, examples: str, *options: Option
    ) -> Callable[[Run], Run]:
        """Return a decorator that declares a command of this group; `short` is its line in the list."""
        command = Command()
        self._commands[name] = short, command
        return command.define(description, examples, *options)

    def include(self, other: "Command") -> None:
        """Add the commands of another group to this group."""
        self._commands |= other._commands  # noqa: SLF001 it is of the same class

    def fill(self, parser: Parser) -> None:
        """Add the declared help, options and commands to a parser."""
        parser.description, parser.epilog = self._description, f"examples:\n{self._examples}"
        several(*self._options)(parser)
        if self._run:
            parser.set_defaults(run=self._run)
        if self._commands:
            metavar = "[COMMAND]" if self._run else "COMMAND"
            group = parser.add_subparsers(title="commands", metavar=metavar, required=not self._run)
            for name, (short, command) in self._commands.items():
                group.add_parser(name, help=short, fill=command.fill)
