"""`holdfast whoami`: who the API takes the credentials of the environment for."""

import argparse
import json

from holdfast_cli.api import management
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import moment
from holdfast_cli.config import arguments
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command

COMMAND = Command()


@COMMAND.define(
    """\
Show as whom the credentials of the environment sign in: principal, role, scope and
when they expire. They are those of Terraform: TF_HTTP_USERNAME and
TF_HTTP_PASSWORD, or TF_TOKEN_… of the API's host. No AWS credentials are used.""",
    """\
  holdfast whoami
  holdfast whoami --json
  holdfast whoami --address https://abc123.execute-api.eu-central-1.amazonaws.com
""",
    arguments.API,
    arguments.as_json(),
)
def _run(asked: argparse.Namespace) -> None:
    api = sign_in(asked)
    found = api.get("whoami")
    if asked.json:
        output.write(json.dumps({**found, "address": api.address}, indent=2))
        return
    scope = found.get("scope")
    fields = [
        ("principal", management.text(found, "principal") or "-"),
        ("role", management.text(found, "role") or "-"),
        ("scope", ", ".join(map(str, scope)) if isinstance(scope, list) else "-"),
        ("signed in", management.text(found, "method") or "-"),
        *([("trust", management.text(found, "trust"))] if management.text(found, "trust") else []),
        ("expires", moment(found, "expires") or "never"),
        ("credentials", f"of {api.source}"),
        ("address", api.address),
    ]
    output.write(output.listed(fields))
