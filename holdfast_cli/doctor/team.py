"""`holdfast doctor` after a deployment: the stack of a team."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast import team as names
from holdfast_cli import stack
from holdfast_cli.doctor.findings import Finding, ok

if TYPE_CHECKING:
    import boto3


def check(session: "boto3.Session", team: str | None) -> Iterator[Finding]:
    """Yield what is found in the stack of a team.

    Args:
        session: from `stack.sign_in`.
        team: the team; None for the only one that is deployed.

    Raises:
        CommandError: there is no such stack, or AWS does not respond.
    """
    found = stack.find(session, team)
    yield ok(
        "stack", f"The stack {names.stack_name(found.team)} is deployed; its API is {found.api_address}."
    )
