"""`holdfast login`: creates a session from AWS credentials or from a CI job's ID token."""

import argparse
import shlex
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.identity.sessions import DEFAULT_SECONDS
from holdfast_cli.api import own_sessions
from holdfast_cli.config import arguments, cloud_config, rules
from holdfast_cli.terminal import grants, output
from holdfast_cli.terminal.declaration import Command

if TYPE_CHECKING:
    from holdfast_cli.api.sessions import Session

_DEFAULT = rules.shown(timedelta(seconds=DEFAULT_SECONDS))

COMMAND = Command()


@COMMAND.define(
    f"""\
Sign in, by default for {_DEFAULT}, and print exports for a shell to evaluate. Terraform
and OpenTofu use these variables. By default, the command signs in with the AWS
credentials of the shell; a trust record must name their IAM role. With --oidc, it signs
in with an ID token of a CI job: from a file, from HOLDFAST_ID_TOKEN or, in GitHub
Actions, requested from GitHub.

The API's address comes from the first of these that is set: --address or the stack of
--team; --profile; HOLDFAST_ADDRESS or the stack of HOLDFAST_TEAM; the profile of
HOLDFAST_PROFILE or `default`. If none is set, it comes from the only deployed stack. To
find a stack, the command needs AWS credentials. For the local AWS, run
`set -a; . .local/aws.env; set +a`.""",
    """\
  eval "$(holdfast login --team platform)"
  eval "$(holdfast login --profile staging)"
  exports=$(holdfast login --duration 8h) && eval "$exports"
  holdfast login --address https://abc123.execute-api.eu-central-1.amazonaws.com --json
  eval "$(holdfast login --oidc --address https://states.example.com)"
  holdfast login --oidc --id-token-file id-token.txt
""",
    arguments.sign_in(DEFAULT_SECONDS),
    arguments.ADDRESS_OR_TEAM,
    arguments.as_json("one JSON object, not exports"),
)
def _run(args: argparse.Namespace) -> None:
    chosen, address = own_sessions.resolve(args)
    session = own_sessions.create(args, chosen, address, args.duration)
    until = output.moment(session.expires)
    with output.after(
        f"A session was created, but its secret is lost; the session expires {until}. Run the command again."
    ):
        output.write(_json(session, address) if args.json else _exports(session, address))
    if not args.json:
        who = output.plain(f"{session.principal}: {grants.text(session.grants)}")
        output.tell(f"Signed in at {address} as {who}, until {until}.")


def _exports(session: "Session", address: str) -> str:
    variables = own_sessions.environment(session, address)
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def _json(session: "Session", address: str) -> str:
    cloud = cloud_config.credentials_document(address, session.id, session.secret)
    return own_sessions.to_json(session, address=address, cloud=cloud)
