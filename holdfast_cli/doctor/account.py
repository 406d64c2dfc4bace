"""`holdfast doctor --account` before a deployment: the AWS account, and what the teams ask of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast_cli.doctor.findings import Finding, ok

if TYPE_CHECKING:
    import boto3


def check(session: "boto3.Session", team: str | None) -> Iterator[Finding]:  # noqa: ARG001 comes next
    """Yield what is found in the account."""
    identity = session.client("sts").get_caller_identity()
    yield ok("credentials", f"The credentials are those of {identity['Arn']}.")
