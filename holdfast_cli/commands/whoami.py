"""`holdfast whoami`: shows the principal and grants of the credentials in the environment."""

import argparse

from holdfast.access import named
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import moment
from holdfast_cli.config import arguments
from holdfast_cli.terminal import grants, output
from holdfast_cli.terminal.declaration import Command

COMMAND = Command()


@COMMAND.define(
    """\
Show the principal, role, scope and expiry time of the credentials in the environment.
These are Terraform's credentials: TF_HTTP_USERNAME and TF_HTTP_PASSWORD, or TF_TOKEN_…
of the API's host. The command uses no AWS credentials.""",
    """\
  holdfast whoami
  holdfast whoami --json
  holdfast whoami --address https://abc123.execute-api.eu-central-1.amazonaws.com
""",
    arguments.API,
    arguments.as_json(),
)
def _run(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    caller = api.get(v1.Principal, "whoami")
    if args.json:
        output.write_json({**caller.raw, "address": api.address})
        return
    fields = [
        # An API of an earlier version does not send them.
        *([("team", f"{caller.team} (AWS account {caller.account})")] if caller.team else []),
        ("principal", named(caller.principal or "-", caller.owner or "")),
        *grants.fields(caller.grants or [v1.Grant(role=caller.role or "-", scope=caller.scope or ())]),
        ("signed in", caller.method or "-"),
        *([("trust", caller.trust)] if caller.trust else []),
        ("expires", moment(caller, "expires") or "never"),
        ("credentials", f"from {api.source}"),
        ("address", api.address),
    ]
    output.write(output.listed(fields))
