"""Each permission of each role is needed by a call of its function, and each needed permission is allowed.

These tests make the functions send every kind of call. The fixture `teams` checks the calls of the other
end-to-end tests when a worker ends.
"""

import time
from collections.abc import Mapping

import pytest

from holdfast.team import replication_role
from local_aws.server import ACCOUNT, REGION, LocalAws
from tests.e2e.conftest import TEAMS, TEAMS_AND_ROLES
from tests.support import permissions_refused
from tests.support.aws_permissions import Demand, allowed, missing, superfluous, without
from tests.support.deployed import DeployedRole, callers, client
from tests.support.iam_policy import Request, evaluate
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
def test_no_function_lacks_a_permission_for_what_it_does(
    needed: Needed, roles: Roles, team: str, function: str
) -> None:
    assert missing(needed[team, function], statements(roles[team, function])) == []


@each_role
def test_no_function_has_a_permission_that_it_does_not_use(
    needed: Needed, roles: Roles, team: str, function: str
) -> None:
    assert superfluous(needed[team, function], roles[team, function].statements) == []


@each_role
def test_every_single_permission_would_be_missed(
    needed: Needed, roles: Roles, team: str, function: str
) -> None:
    role = roles[team, function]

    for action, resource in allowed(role.statements):
        found = missing(needed[team, function], without(statements(role), action, resource))
        assert {sentence.partition(" is demanded")[0] for sentence in found} == {f"{action} on {resource}"}


@each_role
def test_what_is_judged_is_what_is_deployed(aws: LocalAws, roles: Roles, team: str, function: str) -> None:
    role, iam = roles[team, function], client(aws, "iam")

    (name,) = iam.list_role_policies(RoleName=role.name)["PolicyNames"]
    document = iam.get_role_policy(RoleName=role.name, PolicyName=name)["PolicyDocument"]

    assert document["Statement"] == role.statements
    assert iam.list_attached_role_policies(RoleName=role.name)["AttachedPolicies"] == []


@pytest.mark.parametrize("team", TEAMS)
def test_neither_the_bucket_nor_the_key_allows_a_function_more(roles: Roles, team: str) -> None:
    role = roles[team, "backend"]

    assert list(allowed(role.bucket_policy)) == []
    # The account's own principal is everybody whom its policies allow. `replica` adds the role for copies.
    assert [statement["Principal"] for statement in role.key_policy] in (
        [],
        [{"AWS": f"arn:aws:iam::{ACCOUNT}:root"}],
        [
            {"AWS": f"arn:aws:iam::{ACCOUNT}:{who}"}
            for who in ("root", f"role/{replication_role(team, REGION)}")
        ],
    )


@each_role
def test_no_function_may_do_what_is_refused_to_it(roles: Roles, team: str, function: str) -> None:
    role = roles[team, function]
    bucket = f"arn:aws:s3:::{role.reach.bucket}"
    context = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.2", "s3:ResourceAccount": ACCOUNT}

    for refused in permissions_refused.REFUSED:
        for action, place in [(action, place) for action in refused.actions for place in refused.on]:
            if place == permissions_refused.KEY and role.reach.key_arn is None:
                continue
            name = place.replace("*", "any").format(
                team=team,
                account=ACCOUNT,
                region=REGION,
                key=role.reach.key_arn,
                staging=role.reach.staging_bucket,
                transfers=role.reach.transfers_arn,
            )
            arn = name if name.startswith("arn:") else f"{bucket}/{name}" if name else bucket
            request = Request(action, arn, role.principal, context)
            if function in refused.functions:
                assert evaluate(statements(role), request) != "allow", request
            if refused.by_bucket:
                assert evaluate(role.bucket_policy, request) == "deny", request
