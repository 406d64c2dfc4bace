"""What the functions of the deployed teams have called, against what their roles allow."""

from collections.abc import Iterable, Mapping
from typing import Any

from local_aws.server import LocalAws
from tests.support import aws_caller
from tests.support.aws_permissions import WRITES_LOG, Demand, demands, distinct, missing
from tests.support.deployed import DeployedRole, callers, client, deploying_roles

Roles = Mapping[tuple[str, str], DeployedRole]
"""The deployed roles, by the names of team and function."""


def needed(aws: LocalAws, role: DeployedRole) -> list[Demand]:
    """Return what AWS demands for every call of a function so far, and of Lambda in its name."""
    logs = client(aws, "logs")
    streams = logs.describe_log_streams(logGroupName=role.log_group)["logStreams"]
    calls = [*role.calls(), *([WRITES_LOG] if streams else [])]
    return distinct(demand for call in calls for demand in demands(call, role.reach, role.principal))


def statements(role: DeployedRole) -> list[Any]:
    """Return what decides whether a call is allowed: the role's policy, and the bucket's deny statements."""
    return [*role.statements, *(one for one in role.bucket_policy if one["Effect"] == "Deny")]


def unknown_callers(aws: LocalAws, roles: Iterable[DeployedRole]) -> set[str]:
    """Return the names of the roles that have called and belong to no function, no test and not to CDK."""
    # The isolation tests send requests in a role's name, and CDK has roles of its own for a deployment.
    known = {principal for role in roles for principal in (role.principal, role.by_hand)}
    others = {one.rpartition("/")[0].rpartition("/")[2] for one in callers(aws) - known}
    return {one for one in others - deploying_roles(aws) if not one.startswith(aws_caller.PREFIX)}


def judge(aws: LocalAws, roles: Roles) -> None:
    """Check everything that the functions have been made to do on this local AWS.

    AssertionError: a function's role does not allow a call of its own, or somebody unknown has called.
    """
    assert unknown_callers(aws, roles.values()) == set()
    lacking = {key: missing(needed(aws, role), statements(role)) for key, role in roles.items()}
    assert {key: sentences for key, sentences in lacking.items() if sentences} == {}
