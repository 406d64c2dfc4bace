"""Each permission of each role is needed by a call of its function, and each needed permission is allowed.

These tests make the functions send every kind of call. The fixture `teams` checks the calls of the other
end-to-end tests when a worker ends.
"""

import time
from collections.abc import Mapping

import pytest

from local_aws.server import LocalAws
from tests.e2e.conftest import TEAMS_AND_ROLES
from tests.support.aws_permissions import Demand, allowed, missing, without
from tests.support.deployed import DeployedRole, callers, client
from tests.support.permissions_drive import drive
from tests.support.permissions_judged import Roles, statements, unknown_callers
from tests.support.permissions_judged import needed as needed_by
from tests.support.team import Team
from tests.support.watch import drive_watch

Needed = Mapping[tuple[str, str], list[Demand]]

each_role = pytest.mark.parametrize(("team", "function"), TEAMS_AND_ROLES)


@pytest.fixture(scope="module")
def needed(aws: LocalAws, teams: dict[str, Team], roles: Roles) -> Needed:
    """The demands of AWS for every call of each function, and of Lambda in its name."""
    for name, team in teams.items():
        drive(
            *(team, "permissions"),
            require_lock=name != "loose",
            locks_retained=name == "whole",
            declared=name == "whole",
        )
    drive_watch(aws, teams["watched"], "permissions/locks")
    for name in teams:
        sent = ("PutLogEvents", "PutObject", "Publish") if name == "watched" else ("PutLogEvents",)
        _wait_for_the_audit_trail(roles[name, "audit_trail"], sent)
    return {key: needed_by(aws, role) for key, role in roles.items()}


def _wait_for_the_audit_trail(role: DeployedRole, sent: tuple[str, ...]) -> None:
    """Wait for the audit function's calls: they come after the responses."""
    ends = time.monotonic() + 60
    while not {*sent} <= {call.operation for call in role.calls() if call.status == 200}:
        assert time.monotonic() < ends, "nothing came to the audit trail"
        time.sleep(0.2)


@pytest.mark.usefixtures("needed")
def test_every_noted_call_is_a_functions_or_one_of_known_others(aws: LocalAws, roles: Roles) -> None:
    calling = [
        role.principals for (_, function), role in roles.items() if function not in ("health", "console")
    ]
    assert frozenset().union(*calling) - callers(aws) == set()
    assert unknown_callers(aws, roles.values()) == set()


@each_role
def test_a_role_has_the_permissions_that_its_calls_need_and_no_others(
    needed: Needed, roles: Roles, team: str, function: str
) -> None:
    role = roles[team, function]

    assert missing(needed[team, function], statements(role)) == set()
    for permission in allowed(role.statements):
        lacking = without(role.statements, *permission)
        assert missing(needed[team, function], lacking) == {permission}, "it is superfluous, or too wide"


@each_role
def test_what_is_judged_is_what_is_deployed(aws: LocalAws, roles: Roles, team: str, function: str) -> None:
    role, iam = roles[team, function], client(aws, "iam")

    (name,) = iam.list_role_policies(RoleName=role.name)["PolicyNames"]
    document = iam.get_role_policy(RoleName=role.name, PolicyName=name)["PolicyDocument"]

    assert document["Statement"] == role.statements
    assert iam.list_attached_role_policies(RoleName=role.name)["AttachedPolicies"] == []
