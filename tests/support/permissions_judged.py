"""Compares the calls of the deployed teams' functions with what their roles allow."""

from collections.abc import Iterable, Mapping
from typing import Any

from local_aws.server import LocalAws
from tests.support import aws_caller
from tests.support.aws_permissions import (
    WRITES_LOG,
    Demand,
    demands,
    distinct,
    keeps_lost_deliveries,
    missing,
)
from tests.support.deployed import HANDLERS, DeployedRole, callers, client, deploying_roles

Roles = Mapping[tuple[str, str], DeployedRole]
"""The deployed roles, by the names of team and function."""


def needed(aws: LocalAws, role: DeployedRole) -> list[Demand]:
    """Return the demanded permissions of all calls so far, by a function and by Lambda with its role."""
    logs = client(aws, "logs")
    streams = logs.describe_log_streams(logGroupName=role.log_group)["logStreams"]
    calls = [*role.calls(), *([WRITES_LOG] if streams and role.function in HANDLERS else [])]
    if role.function == "audit_trail" and role.reach.archive_bucket:
        calls += keeps_lost_deliveries(role.reach)
    return distinct(demand for call in calls for demand in demands(call, role.reach, role.principal))


def statements(role: DeployedRole) -> list[Any]:
    """Return the statements that decide about a call: the role's policy, and the bucket's deny statements."""
    return [*role.statements, *(one for one in role.bucket_policy if one["Effect"] == "Deny")]


def unknown_callers(aws: LocalAws, roles: Iterable[DeployedRole]) -> set[str]:
    """Return the names of the roles that have called and belong to no function, no test and not to CDK."""
    # The isolation tests send requests with a function's role, and CDK deploys with its own roles.
    known = {principal for role in roles for principal in (*role.principals, role.by_hand)}
    others = {one.rpartition("/")[0].rpartition("/")[2] for one in callers(aws) - known}
    return {one for one in others - deploying_roles(aws) if not one.startswith(aws_caller.PREFIX)}


def judge(aws: LocalAws, roles: Roles) -> None:
    """Check every call that the functions have made on this local AWS.

    AssertionError: a function's role does not allow a call that it made, or an unknown role has called.
    """
    assert unknown_callers(aws, roles.values()) == set()
    lacking = {key: missing(needed(aws, role), statements(role)) for key, role in roles.items()}
    assert {key: found for key, found in lacking.items() if found} == {}
