"""`holdfast run`: signs in, and becomes another program that has the session in its environment."""

import argparse
import os
import signal

from holdfast.identity.sessions import MAX_SECONDS
from holdfast_cli.api import own_sessions
from holdfast_cli.config import arguments
from holdfast_cli.errors import NoProgramError, NotStartedError
from holdfast_cli.terminal.declaration import Command, option

COMMAND = Command()


@COMMAND.define(
    """\
Sign in as `holdfast login` does, and run a program with the session in its
environment: TF_HTTP_USERNAME, TF_HTTP_PASSWORD, TF_TOKEN_… of the API's host and
HOLDFAST_ADDRESS. Signals, input, output and the exit code are the program's own; the
exit code is 127 if the program does not exist, and 126 if it cannot be started. The
program can be Terraform, OpenTofu, Terragrunt, `holdfast` or a script.

The command stores a session from AWS credentials in ~/.cache/holdfast, or in holdfast
below XDG_CACHE_HOME. It uses this session again until half of its duration has passed,
or until the API refuses it. It does not store a session from an ID token.""",
    """\
  holdfast run -- terraform apply
  holdfast run --oidc -- tofu apply -auto-approve
  holdfast run --profile staging --aws-profile platform -- terragrunt run --all plan
""",
    arguments.sign_in(MAX_SECONDS),
    arguments.ADDRESS_OR_TEAM,
    option("command", nargs="+", metavar="COMMAND", help="the program and its arguments, after --"),
)
def _run(args: argparse.Namespace) -> None:
    if not args.command[0]:
        raise NoProgramError("The program's name is empty. Write a program after --.")
    chosen, address = own_sessions.resolve(args)
    session = own_sessions.reuse(args, chosen, address)
    variables = {**os.environ, **own_sessions.environment(session, address)}
    # Python ignores both signals, and an ignored signal stays ignored in the program.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(args.command[0], args.command, variables)  # noqa: S606 the user typed it
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoProgramError(f"{args.command[0]} cannot be started: {error.strerror}.") from error
    except OSError as error:
        raise NotStartedError(f"{args.command[0]} cannot be started: {error.strerror}.") from error
