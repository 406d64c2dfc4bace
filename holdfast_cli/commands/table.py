"""The table of all commands. A command's module is imported when the command is run."""

from functools import partial
from importlib import import_module
from keyword import iskeyword
from typing import Final

import holdfast
from holdfast_cli.terminal.parser import HIDDEN, Parser

_LOOK: Final = "look and undo"
_SET_UP: Final = "set up"
_MOVE: Final = "move states in"
_OPERATE: Final = "for operators, with AWS credentials"

COMMANDS: Final = {
    "state": (_LOOK, "list, compare, restore and freeze states"),
    "lock": (_LOOK, "show locks, and break the lock of a killed client"),
    "activity": (_LOOK, "show the audit events of the states in your scope"),
    "console": (_LOOK, "open the console in a browser, signed in"),
    "init": (_SET_UP, "write the files of a deployment into an empty folder"),
    "configure": (_SET_UP, "write a profile: address, team and region"),
    "login": (_SET_UP, "sign in with AWS credentials or an ID token"),
    "run": (_SET_UP, "sign in, and run a program with the session"),
    "whoami": (_SET_UP, "show your principal, role and scope"),
    "backend-config": (_SET_UP, "print a backend block for a state"),
    "doctor": (_SET_UP, "find problems in a setup, and say what to do"),
    "completion": (_SET_UP, "print a script with which a shell completes commands"),
    "credentials-helper": (HIDDEN, "return a host's token to Terraform"),
    "import": (_MOVE, "move many states from another backend to Holdfast"),
    "token": (_OPERATE, "create, show, update, rotate and revoke access tokens"),
    "trust": (_OPERATE, "let CI jobs and people sign in without a stored secret"),
    "watch": (_OPERATE, "show what needs attention, and test the API every hour"),
    "audit": (_OPERATE, "show the events of the team's audit log"),
    "recover": (_OPERATE, "make the replica in another region the team's state bucket"),
}
"""Command -> its group in the help, or `HIDDEN`, and its line there.

A command's module has the same name, with `_` for `-`, and a `COMMAND`.

A name that is a keyword of Python has a `_` at its end."""


def parser() -> Parser:
    """Return the parser of all commands."""
    top = Parser(
        prog="holdfast",
        description="Terraform and OpenTofu state in S3, with locks and a history.",
        epilog='Start: `holdfast configure`, then `eval "$(holdfast login)"`, then `holdfast state list`.',
    )
    top.add_argument("--version", action="version", version=f"holdfast {holdfast.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (group, line) in COMMANDS.items():
        commands.add_parser(name, help=line, fill=partial(_fill, module(name)), group=group)
    return top


def module(command: str) -> str:
    """Return the name of a command's module."""
    return f"{command}_" if iskeyword(command) else command.replace("-", "_")


def _fill(module: str, parser: Parser) -> None:
    import_module(f"holdfast_cli.commands.{module}").COMMAND.fill(parser)
