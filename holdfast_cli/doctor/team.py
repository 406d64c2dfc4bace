"""`holdfast doctor` after a deployment: the stack of a team."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast import team as names
from holdfast_cli import stack
from holdfast_cli.doctor.findings import Finding, ok

if TYPE_CHECKING:
    import boto3


def check(
    session: "boto3.Session",
    team: str | None,
    address: str | None = None,
) -> Iterator[Finding]:
    """Yield what is found in the stack of a team.

    Args:
        session: from `stack.sign_in`.
        team: the team; None for the only one that is deployed.
        address: where clients reach the API, without a slash at its end; None for the stack's own.

    Raises:
        CommandError: there is no such stack, or AWS does not respond.
    """
    found = stack.find(session, team)
    yield ok(
        "stack",
        f"The stack {names.stack_name(found.team)} is deployed; its API is {address or found.api_address}.",
    )
