"""`holdfast credentials-helper`: answers Terraform, which asks for the token of every host.

The protocol: https://developer.hashicorp.com/terraform/internals/credentials-helpers
"""

import argparse
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from holdfast.identity import credentials
from holdfast.identity.sessions import MAX_SECONDS
from holdfast_cli.api import own_sessions
from holdfast_cli.config import arguments, cloud_config, rules, settings
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, option
from holdfast_cli.terminal.parser import hidden

COMMAND = Command()


@COMMAND.define(
    """\
Sign in as `holdfast login` does, and print the session for `cloud {}`. Terraform and
OpenTofu run this command once `holdfast configure helper` has installed it. The command
signs in only at hosts in the profiles or in HOLDFAST_ADDRESS, and sends no request to
other hosts.

The command stores sessions in the same way as `holdfast run`. `forget` removes the
sessions of a host or address.""",
    """\
  holdfast credentials-helper get abc123.execute-api.eu-central-1.amazonaws.com
  holdfast credentials-helper --oidc get abc123.execute-api.eu-central-1.amazonaws.com
  holdfast credentials-helper forget abc123.execute-api.eu-central-1.amazonaws.com
  holdfast credentials-helper forget https://api.example.com/states-of-all
""",
    arguments.sign_in(MAX_SECONDS),
    option("verb", choices=("get", "store", "forget"), metavar="VERB", help="get, store or forget"),
    option("host", metavar="HOST", help="the host, and its port unless that is 443"),
)
def _run(args: argparse.Namespace) -> None:
    if args.verb == "store":
        variable = "" if ":" in args.host else f", or export {cloud_config.token_variable(args.host)}"
        raise CommandError(
            "Nothing was stored: holdfast signs in by itself, and does not store tokens from `terraform "
            f"login` or `tofu login`. To use a token for {args.host}, write a `credentials` block into the "
            f"CLI configuration{variable}."
        )
    try:
        if args.verb == "forget":
            for address in _named(args.host):
                own_sessions.forget(address)
        elif not _choose(args):
            output.write("{}")
        else:
            session = own_sessions.reuse(args, *own_sessions.resolve(args))
            output.write(json.dumps({"token": credentials.bearer(session.id, session.secret)}))
    except CommandError as failure:
        _show(failure)
        raise


def _show(failure: CommandError) -> None:
    """Print a failure on the terminal: under `cloud {}`, Terraform reports a missing token alone."""
    if not sys.stderr.isatty():
        with suppress(OSError), Path("/dev/tty").open("w", errors="replace") as terminal:
            terminal.write(f"holdfast: {output.plain(hidden(str(failure), sys.argv, longest=None))}\n")


def _named(host: str) -> list[str]:
    """Return the addresses of the APIs at a host name, or the address that was typed instead."""
    if "://" in host:
        try:
            return [rules.address(host)]
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"HOST: {error}") from error
    addresses = [address for _, address in settings.apis(os.environ)]
    return [each for each in addresses if _is_at(host, each) or host == cloud_config.hostname(each)]


def _is_at(host: str, address: str) -> bool:
    return host.isascii() and host.lower() == cloud_config.host(address)


def _choose(args: argparse.Namespace) -> bool:
    """Choose the API whose host is exactly the asked one; return False for any other host.

    If the configuration cannot be read, a line says so, and no host is known to have the API.

    The host may come from the `source` of somebody's module. Some letters become ASCII in lower case.
    """
    try:
        for profile, address in settings.apis(os.environ):
            if _is_at(args.host, address):
                mine = None if profile else address
                vars(args).update(profile=profile, address=mine, team=None, region=None)
                return True
    except UsageError as failure:  # Terraform stops at a failure, also one for a host of others
        output.complain(failure)
        _show(failure)
    return False
