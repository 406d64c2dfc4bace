"""The `holdfast` command: its commands, and its exit codes.

Exit codes: 0 done, 1 failed (one line on standard error says what to do), 2 wrong usage, 130 interrupted (one
line where something may have been changed).
"""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import holdfast
from holdfast_cli.commands import (
    activity as activity_command,
)
from holdfast_cli.commands import (
    audit as audit_command,
)
from holdfast_cli.commands import (
    backend_config as backend_config_command,
)
from holdfast_cli.commands import (
    completion as completion_command,
)
from holdfast_cli.commands import (
    configure as configure_commands,
)
from holdfast_cli.commands import (
    doctor as doctor_command,
)
from holdfast_cli.commands import (
    lock as lock_commands,
)
from holdfast_cli.commands import (
    login as login_command,
)
from holdfast_cli.commands import (
    state as state_commands,
)
from holdfast_cli.commands import (
    token as token_commands,
)
from holdfast_cli.commands import (
    trust as trust_commands,
)
from holdfast_cli.commands import (
    whoami as whoami_command,
)
from holdfast_cli.errors import CommandError, OutputClosedError, UsageError, with_notes
from holdfast_cli.terminal import output
from holdfast_cli.terminal.parser import Parser
from holdfast_cli.terminal.secrets import hidden


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments without the program's name; None for those of the process.

    Returns:
        The exit code: 0, 1, 2 or 130.

    Raises:
        SystemExit: with 2 for wrong usage, with 0 after --help and --version.
    """
    if sys.stderr is None:
        # It was closed before the command was started. What is meant for it would be printed on standard
        # output, which a shell may be about to evaluate.
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 for as long as the process lives
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A description may hold letters that the terminal has not. argparse is silent where it cannot write:
        # flushing fails instead, if PYTHONUNBUFFERED leaves something to flush.
        sys.stdout.reconfigure(errors="replace", write_through=False)
    try:
        with output.checked():
            arguments = parser().parse_args(argv)
        arguments.run(arguments)
    except OutputClosedError:
        return 0
    except CommandError as failure:
        words = sys.argv[1:] if argv is None else argv
        if isinstance(failure, UsageError):
            output.complain(hidden(f"{failure}", words))
            return 2
        output.complain(hidden(f"{failure}", words, longest=None))
        return 1
    except KeyboardInterrupt as interrupt:
        if line := with_notes("", interrupt):
            output.complain(f"Interrupted.{line}")
        return 130
    return 0


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
    configure_commands.add(commands)
    login_command.add(commands)
    whoami_command.add(commands)
    backend_config_command.add(commands)
    state_commands.add(commands)
    lock_commands.add(commands)
    activity_command.add(commands)
    token_commands.add(commands)
    trust_commands.add(commands)
    audit_command.add(commands)
    doctor_command.add(commands)
    completion_command.add(commands, top)
    return top
