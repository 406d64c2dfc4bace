"""`holdfast login`: creates a session from AWS credentials or from a CI job's ID token."""

import argparse
import json
import shlex
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.access import described
from holdfast.identity.sessions import DEFAULT_SECONDS, MAX_SECONDS, MIN_SECONDS
from holdfast.identity.trust import is_web_address
from holdfast_cli.api import id_tokens, sessions
from holdfast_cli.bucket import stack
from holdfast_cli.config import arguments, cloud_config, rules, settings
from holdfast_cli.errors import UsageError
from holdfast_cli.terminal import grants, output
from holdfast_cli.terminal.declaration import Command, option

if TYPE_CHECKING:
    from holdfast_cli.api.sessions import Session


_MIN, _DEFAULT, _MAX = (
    rules.shown(timedelta(seconds=seconds)) for seconds in (MIN_SECONDS, DEFAULT_SECONDS, MAX_SECONDS)
)

COMMAND = Command()


def _duration(value: str) -> int:
    seconds = int(rules.duration(value) / timedelta(seconds=1))
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{value!r} is not from {_MIN} to {_MAX}")
    return seconds


@COMMAND.define(
    f"""\
Sign in for {_DEFAULT}, and print exports for a shell to evaluate: Terraform and
OpenTofu use them. The AWS credentials of the shell sign in, if a trust record
names their IAM role; or, with --oidc, a CI job's ID token does: from a file, from
HOLDFAST_ID_TOKEN, or in GitHub Actions requested from GitHub.

The API is that of --address or of the stack of --team, else that of --profile, else
of HOLDFAST_ADDRESS or of the stack of HOLDFAST_TEAM, else that of another profile,
else of the only stack. Finding a stack needs AWS credentials; for the local AWS:
set -a; . .local/aws.env; set +a.""",
    """\
  eval "$(holdfast login --team platform)"
  eval "$(holdfast login --profile staging)"
  exports=$(holdfast login --duration 8h) && eval "$exports"
  holdfast login --address https://abc123.execute-api.eu-central-1.amazonaws.com --json
  eval "$(holdfast login --oidc --address https://abc123.execute-api.eu-central-1.amazonaws.com)"
  holdfast login --oidc --id-token-file id-token.txt
""",
    option("--oidc", action="store_true", help="with an ID token, not with AWS credentials"),
    option("--id-token-file", type=Path, metavar="FILE", help="with --oidc: the file with the ID token"),
    option(
        "--audience",
        type=rules.unicode_text,
        metavar="TEXT",
        help="with --oidc in GitHub Actions: for whom the ID token is; default: the API's address",
    ),
    option(
        "--duration",
        type=_duration,
        metavar="DURATION",
        help=f"how long the session lasts, from {_MIN} to {_MAX}; default: {_DEFAULT}",
    ),
    arguments.ADDRESS_OR_TEAM,
    arguments.as_json("one JSON object, not exports"),
)
def _run(asked: argparse.Namespace) -> None:
    if not asked.oidc and (asked.id_token_file is not None or asked.audience is not None):
        raise UsageError("--id-token-file and --audience go with --oidc.")

    chosen = settings.resolve(asked)
    address = stack.api_address(chosen)
    if not is_web_address(address):
        raise UsageError(f"A session is created over https:// only, and {address} does not begin so.")
    if asked.oidc:
        token = id_tokens.find(asked.id_token_file, asked.audience or address)
        session = sessions.for_id_token(token, address, asked.duration)
    else:
        session = sessions.for_aws(stack.sign_in(chosen), address, asked.duration)
    until = output.moment(session.expires)
    with output.after(f"A session was created and its secret is lost; it expires {until}."):
        output.write(_json(session, address) if asked.json else _exports(session, address))
    if not asked.json:
        who = output.plain(f"{session.principal}: {grants.text(session.grants)}")
        output.tell(f"Signed in at {address} as {who}, until {until}.")


def _exports(session: "Session", address: str) -> str:
    cloud = cloud_config.credentials_document(address, session.id, session.secret)
    return (
        f"export TF_HTTP_USERNAME={shlex.quote(session.id)}\n"
        f"export TF_HTTP_PASSWORD={shlex.quote(session.secret)}\n"
        f"export HOLDFAST_ADDRESS={shlex.quote(address)}\n"
        f"export {cloud['variable']}={shlex.quote(cloud['token'])}"
    )


def _json(session: "Session", address: str) -> str:
    document = (
        asdict(session)
        | described(session.grants)
        | {
            "expires": session.expires.isoformat(timespec="seconds"),
            "address": address,
            "cloud": cloud_config.credentials_document(address, session.id, session.secret),
        }
    )
    return json.dumps(document, indent=2)
