"""The table of all commands. A command's module is imported when the command is run."""

from functools import partial
from importlib import import_module
from keyword import iskeyword
from typing import Final

import holdfast
from holdfast_cli.terminal.parser import Parser

COMMANDS: Final = {
    "init": "write the files of a deployment into an empty folder",
    "configure": "write a profile: address, team and region",
    "login": "sign in with AWS credentials or an ID token",
    "run": "sign in, and run a program with the session",
    "credentials-helper": "answer Terraform, which asks for a host's token",
    "whoami": "show your principal, role and scope",
    "backend-config": "print a backend block for a state",
    "state": "list states, show their history, go back, freeze",
    "lock": "show locks, and break the lock of a killed client",
    "import": "move many states in from another backend",
    "activity": "show the audit events of the states in your scope",
    "console": "open the console in a browser, signed in",
    "token": "create, show, update, rotate and revoke access tokens",
    "trust": "let CI jobs and people sign in without a stored secret",
    "watch": "show what needs somebody, and enable the hourly probe",
    "audit": "show the events of the team's audit log",
    "recover": "use the replica of a state bucket in another region",
    "doctor": "find problems of a setup, and show what to do",
    "completion": "print a script that completes commands in a shell",
}
"""Command -> its line of help. A command's module has the same name, with `_` for `-`, and a `COMMAND`.

A name that is a keyword of Python has a `_` at its end."""


def parser() -> Parser:
    """Return the parser of all commands."""
    top = Parser(
        prog="holdfast",
        description="Terraform and OpenTofu state in S3: locked, fenced, with its history.",
        epilog="""\
examples:
  holdfast token create --role writer --scope 'network/*'
  holdfast backend-config network/prod > backend.tf
  holdfast backend-config network/prod --tfbackend > prod.tfbackend
  holdfast state history network/prod
  holdfast lock list
  holdfast trust list
""",
    )
    top.add_argument("--version", action="version", version=f"holdfast {holdfast.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        commands.add_parser(name, help=line, fill=partial(_fill, module(name)))
    return top


def module(command: str) -> str:
    """Return the name of a command's module."""
    return f"{command}_" if iskeyword(command) else command.replace("-", "_")


def _fill(module: str, parser: Parser) -> None:
    import_module(f"holdfast_cli.commands.{module}").COMMAND.fill(parser)
