"""Checks that the deployed code can read a record before the command stores it."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from holdfast import team
from holdfast.access import Grant
from holdfast.identity.records import FIRST_SCHEMA, schema
from holdfast_cli.api import http
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import versions

if TYPE_CHECKING:
    from holdfast_cli.bucket.stack import Stack

_SINCE: Final = "0.3.0"
"""The release that reads the schema of several grants, and skips a trust record that it cannot read."""


def check_networks(stack: "Stack", networks: Sequence[str]) -> None:
    """Raise `CommandError` if a record has networks and the deployed stack does not decide by address.

    Only stacks of a release that reads the schema of such a record have the output.
    """
    if networks and not stack.networks:
        raise CommandError(
            f"The deployed stack of the team {stack.team} has no setting `networks`, so it would refuse a "
            "token or trust record that is restricted to networks. In [teams."
            f'{stack.team}] of teams.toml, write networks = ["0.0.0.0/0"], which allows every address, or '
            "write narrower networks. Then run "
            f"`npx cdk deploy {team.stack_name(stack.team)} -c address=<your public IPv4 address>`."
        )


def check_grants(stack: "Stack", grants: Sequence[Grant]) -> None:
    """Raise `CommandError` if the deployed code is too old for grants, or does not say its version.

    An earlier release fails for every trust record if it cannot read one of them.
    """
    if schema(grants) == FIRST_SCHEMA:
        return
    health = http.send("GET", f"{stack.api_address}/health", headers={})
    version = health.text("version") if health.status == HTTPStatus.OK else ""
    if not version:
        raise CommandError(
            f"The API of the team {stack.team} does not say its release: /health responds with "
            f"{health.status}. Functions of a release before {_SINCE} would refuse callers with these "
            f"grants, so nothing was changed. `holdfast doctor --team {stack.team}` shows what is wrong."
        )
    if not versions.is_since(version, _SINCE):
        raise CommandError(
            f"The deployed functions of the team {stack.team} are from the release {version}. They cannot "
            "read these grants, and would refuse callers that have such a grant. First deploy the release "
            f"{_SINCE} or later with `npx cdk deploy {team.stack_name(stack.team)}`."
        )
