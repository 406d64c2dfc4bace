"""The `holdfast` command: what it takes, what it prints, and its exit codes.

Exit codes: 0 done, 1 failed (one line on standard error says what to do), 2 wrong usage, 130 interrupted (one
line where something may have been changed).
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import holdfast
from cli import backend_config
from cli.errors import CommandError, with_notes
from holdfast import names
from holdfast.access import Role, check_pattern
from holdfast.errors import InvalidName

if TYPE_CHECKING:
    from cli.stack import Stack
    from holdfast.states import Undeleted
    from holdfast.tokens import Token

_TEAM = re.compile(r"[a-z][a-z0-9-]{0,24}", re.ASCII)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments without the program's name; None for those of the process.

    Returns:
        The exit code: 0, 1 or 130.

    Raises:
        SystemExit: with 2 for wrong usage, with 0 after --help and --version.
    """
    try:
        with _output():
            arguments = _parser().parse_args(argv)
        arguments.run(arguments)
    except CommandError as failure:
        print(f"holdfast: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        if line := with_notes("", interrupt):
            print(f"holdfast: Interrupted.{line}", file=sys.stderr)
        return 130
    return 0


# --- what it takes -------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast",
        description="Terraform and OpenTofu state in S3: locked, fenced, with its history.",
        epilog="""\
examples:
  holdfast token create --role writer --scope 'network/*'
  holdfast backend-config network/prod > backend.tf
  eval "$(holdfast backend-config network/prod --env)"
  holdfast state undelete network/prod
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"holdfast {holdfast.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_token(commands)
    _add_backend_config(commands)
    _add_state(commands)
    return parser


def _add_token(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    token = commands.add_parser(
        "token",
        help="make access tokens",
        description="Access tokens: what Terraform signs in with, as user name and password.",
        epilog="""\
examples:
  holdfast token create --role writer --scope 'network/*'
  holdfast token create --help
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    create = token.add_subparsers(title="commands", metavar="COMMAND", required=True).add_parser(
        "create",
        help="make an access token",
        description="""\
Make an access token and show its secret, once. Needs AWS credentials that may
write to the team's bucket; for the local AWS: set -a; . .local/aws.env; set +a.""",
        epilog="""\
roles:
  outputs      read a state reduced to its outputs
  reader       read states
  writer       read, lock and write states
  maintainer   also force-unlock and delete

examples:
  holdfast token create --role writer --scope 'network/*' --description 'network pipeline'
  holdfast token create --role reader --scope network/prod --scope 'shared/*' --team payments
  holdfast token create --role maintainer --scope '*' --json
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    create.add_argument("--role", required=True, choices=[role.value for role in Role], help="what it may do")
    create.add_argument(
        "--scope",
        required=True,
        action="append",
        type=_scope,
        metavar="PATTERN",
        help="to which states: 'a/*' is everything below a, '*' alone is every state; may be repeated",
    )
    create.add_argument("--description", default="", metavar="TEXT", help="a note on what it is for")
    _add_team(create)
    create.add_argument("--json", action="store_true", help="print one JSON object")
    create.set_defaults(run=_token_create)


def _add_backend_config(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    config = commands.add_parser(
        "backend-config",
        help="print the backend block of a state",
        description="""\
Print the backend "http" block of a state. Without --address, the address is
read from the team's stack, which needs AWS credentials;
for the local AWS: set -a; . .local/aws.env; set +a.""",
        epilog="""\
examples:
  holdfast backend-config network/prod > backend.tf
  holdfast backend-config network/prod --team payments --read-only
  holdfast backend-config network/prod --address https://abc123.execute-api.eu-central-1.amazonaws.com
  eval "$(holdfast backend-config network/prod --env)"
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    config.add_argument("state", type=_state, metavar="STATE", help="the state's name, such as network/prod")
    config.add_argument("--env", action="store_true", help="print TF_HTTP_* exports instead of HCL")
    config.add_argument(
        "--read-only", action="store_true", help="leave the lock out, for those who only plan"
    )
    where = config.add_mutually_exclusive_group()
    _add_team(where)
    where.add_argument("--address", type=_address, metavar="URL", help="the API's base URL")
    config.set_defaults(run=_backend_config)


def _add_state(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    state = commands.add_parser(
        "state",
        help="bring a deleted state back",
        description="States: what cannot be done through Terraform.",
        epilog="""\
examples:
  holdfast state undelete network/prod
  holdfast state undelete --help
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    undelete = state.add_subparsers(title="commands", metavar="COMMAND", required=True).add_parser(
        "undelete",
        help="bring a deleted state back",
        description="""\
Write the newest version of a deleted state anew, under a lock. A state that is
not deleted stays as it is. Needs AWS credentials that may list, read and write
the versions of the team's bucket; for the local AWS: set -a; . .local/aws.env;
set +a.""",
        epilog="""\
examples:
  holdfast state undelete network/prod
  holdfast state undelete network/prod --team payments
  holdfast state undelete network/prod --json
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    undelete.add_argument(
        "state", type=_state, metavar="STATE", help="the state's name, such as network/prod"
    )
    _add_team(undelete)
    undelete.add_argument("--json", action="store_true", help="print one JSON object")
    undelete.set_defaults(run=_state_undelete)


def _add_team(parser: "argparse._ActionsContainer") -> None:
    parser.add_argument(
        "--team",
        type=_team,
        default=os.environ.get("HOLDFAST_TEAM") or None,
        metavar="TEAM",
        help="whose stack; default: HOLDFAST_TEAM, or else the only one that is deployed",
    )


def _team(value: str) -> str:
    if not _TEAM.fullmatch(value):
        raise argparse.ArgumentTypeError(
            f"{value!r} is no team name: lower-case letters, digits and '-', 25 at most, a letter first"
        )
    return value


def _scope(value: str) -> str:
    try:
        return check_pattern(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _state(value: str) -> names.StateName:
    try:
        return names.parse(value)
    except InvalidName as error:
        raise argparse.ArgumentTypeError(error.message) from error


def _address(value: str) -> str:
    try:
        return backend_config.check_address(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


# --- what it does: the SDK is loaded only by what talks to AWS -----------------------------------


def _token_create(arguments: argparse.Namespace) -> None:
    from cli import stack, tokens

    session = stack.sign_in()
    found = stack.find(session, arguments.team)
    token, secret = tokens.create(
        session, found.bucket, Role(arguments.role), arguments.scope, arguments.description
    )
    text = (_token_json if arguments.json else _token_text)(found, token, secret)
    try:
        _print(text)
    except CommandError as failure:
        raise CommandError(
            f"{failure} The token {token.id} was made and its secret is lost: remove it with "
            f"`aws s3 rm s3://{found.bucket}/{token.key}`."
        ) from failure


def _backend_config(arguments: argparse.Namespace) -> None:
    address = arguments.address
    if address is None:
        from cli import stack

        address = stack.find(stack.sign_in(), arguments.team).api_address
    write = backend_config.to_env if arguments.env else backend_config.to_hcl
    _print(write(address, arguments.state, read_only=arguments.read_only))


def _state_undelete(arguments: argparse.Namespace) -> None:
    from cli import stack, states

    session = stack.sign_in()
    found = stack.find(session, arguments.team)
    undeleted = states.undelete(session, found, arguments.state)
    text = (_undeleted_json if arguments.json else _undeleted_text)(found, arguments.state, undeleted)
    try:
        _print(text)
    except CommandError as failure:
        raise CommandError(
            f"{failure} The state {arguments.state} is back as version {undeleted.version_id}."
        ) from failure


def _token_json(stack: "Stack", token: "Token", secret: str) -> str:
    return json.dumps(
        {
            "id": token.id,
            "secret": secret,
            "role": token.role,
            "scope": token.scope,
            "team": stack.team,
            "description": token.description,
            "address": stack.api_address,
        },
        indent=2,
    )


def _token_text(stack: "Stack", token: "Token", secret: str) -> str:
    return f"""\
Made a token for the team {stack.team}: {token.role} of {", ".join(token.scope)}

  ID      {token.id}
  secret  {secret}

The secret is shown this once and kept nowhere: store it now. Terraform and OpenTofu use it with

  export TF_HTTP_USERNAME='{token.id}'
  export TF_HTTP_PASSWORD='{secret}'

and a backend block from `holdfast backend-config STATE --team {stack.team}`."""


def _undeleted_json(stack: "Stack", name: names.StateName, undeleted: "Undeleted") -> str:
    return json.dumps(
        {
            "state": name.value,
            "team": stack.team,
            "serial": undeleted.position.serial,
            "lineage": undeleted.position.lineage,
            "from_version": undeleted.from_version,
            "from_time": undeleted.from_time.isoformat(timespec="seconds"),
            "version": undeleted.version_id,
            "retention": None if stack.retention is None else str(stack.retention),
        },
        indent=2,
    )


def _undeleted_text(stack: "Stack", name: names.StateName, undeleted: "Undeleted") -> str:
    lines = [
        f"The state {name} of the team {stack.team} is back.",
        "",
        f"  serial        {undeleted.position.serial}",
        f"  from version  {undeleted.from_version}, of {undeleted.from_time:%Y-%m-%d %H:%M:%S} UTC",
        f"  now version   {undeleted.version_id}",
    ]
    if stack.retention is not None:
        lines.append(f"  retention     {stack.retention} days")
    return "\n".join([*lines, "", "Run `terraform plan` to see whether it still matches what it describes."])


# --- how it prints -------------------------------------------------------------------------------


def _print(text: str) -> None:
    with _output():
        print(text)


@contextmanager
def _output() -> Iterator[None]:
    """See that what is printed inside has left this process at the end.

    Raises:
        CommandError: standard output does not take it.
    """
    if sys.stdout is None:  # it was closed before the command was started
        raise CommandError("Standard output is closed.")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        # At its end Python writes what is left once more (note on SIGPIPE in the documentation of `signal`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CommandError(f"The output could not be written: {error.strerror}.") from error


if __name__ == "__main__":
    sys.exit(main())
