"""Without any one of its permissions a function fails, as far as the local AWS enforces permissions.

test_permissions.py tests the permissions that the local AWS does not enforce.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import pytest

from holdfast.identity import tokens
from infra.functions import (
    AUDIT_ARCHIVE,
    AUDIT_TRAIL,
    LOCKS,
    METRICS,
    ROLES,
    STAGING_BUCKET,
    STATE_BUCKET,
    TRANSFERS_ROLE,
    Grant,
    Place,
)
from local_aws.server import LocalAws
from tests.support import permissions_drive as parts
from tests.support.deployed import DeployedRole, client, function_name
from tests.support.permissions_judged import Roles
from tests.support.team import Team
from tests.support.watch import drive_watch

Part = Callable[[Team, str], None]


def _workspace(team: Team, state: str) -> None:
    parts.workspace(team, state, declared=False)


PARTS: Final[Mapping[str, tuple[Part, ...]]] = {
    "backend": (parts.states, parts.locks, parts.retained_lock, parts.probe),
    "cloud": (_workspace,),
    "management": (parts.management, parts.retained_freeze, parts.download),
    "authorizer": (parts.sign_in, parts.sessions),
    "sessions": (parts.sessions,),
    "transfers": (_workspace, parts.download),
}
"""The parts that make a role's user send every call. A part ends with the first wrong response."""


def _audited(aws: LocalAws, team: Team, state: str) -> None:
    """Notify the audit function of a changed record, as the bucket does."""
    record = {
        "eventTime": datetime.now(UTC).isoformat(),
        "eventName": "ObjectCreated:Put",
        "userIdentity": {"principalId": "somebody"},
        "requestParameters": {"sourceIPAddress": "127.0.0.1"},
        "s3": {"object": {"key": tokens.token_key(state), "sequencer": state}},
    }
    invoked = client(aws, "lambda").invoke(
        FunctionName=function_name(aws, f"Holdfast-{team.name}", "audittrail"),
        Payload=json.dumps({"Records": [record]}),
    )
    assert "FunctionError" not in invoked, invoked["Payload"].read().decode()


INVOKED: Final = {"audit_trail": _audited, "watch": drive_watch}
"""The same of the functions that are not behind the API."""

_UNSEEN: Final = frozenset(
    {
        *("kms:Decrypt", "kms:GenerateDataKey", "s3:PutObjectTagging", "s3:PutObjectRetention"),
        *("s3:DeleteObjectVersion", "logs:CreateLogStream", "logs:PutLogEvents"),
        "sns:Publish",  # nothing is retried for a notification
        "sts:AssumeRole",  # a process keeps the credentials, and other tests make it assume the role before
    }
)
"""Permissions that the local AWS does not enforce, or whose lack changes no response."""


def _is_seen(function: str, action: str, place: Place) -> bool:
    if action == "s3:ListBucket":  # the local AWS enforces what lists, and not the 404 for a missing key
        return function in ("cloud", "management") and place == STATE_BUCKET
    if action == "s3:DeleteObject":  # a commit does not wait for it, nor a release that removes the version
        return place.resource != STAGING_BUCKET.resource and (function, place) != ("cloud", LOCKS)
    return action not in _UNSEEN


def _cases() -> Iterator[tuple[str, Grant, str, Place]]:
    for spec in ROLES:
        for grant in spec.grants:
            for action in grant.actions:
                yield from (
                    (spec.name, grant, action, place)
                    for place in grant.on
                    if _is_seen(spec.name, action, place)
                )


def _arn(role: DeployedRole, place: Place) -> str:
    if place in (AUDIT_TRAIL, TRANSFERS_ROLE):
        return role.reach.audit_group_arn if place == AUDIT_TRAIL else role.reach.transfers_arn
    if place == METRICS:
        return "*"
    buckets = {
        STATE_BUCKET.resource: role.reach.bucket,
        STAGING_BUCKET.resource: role.reach.staging_bucket,
        AUDIT_ARCHIVE.resource: role.reach.archive_bucket,
    }
    bucket = buckets[place.resource]
    return f"arn:aws:s3:::{bucket}/{place.keys}".removesuffix("/")


@pytest.mark.parametrize(
    ("function", "grant", "action", "place"),
    [pytest.param(*case, id=f"{case[0]}-{case[2]}-{case[3].keys or case[3].resource}") for case in _cases()],
)
def test_without_a_permission_something_breaks(
    aws: LocalAws,
    teams: dict[str, Team],
    roles: Roles,
    state: str,
    function: str,
    grant: Grant,
    action: str,
    place: Place,
) -> None:
    if function in INVOKED:
        role = roles["watched", function]
        refused = r"AccessDenied|403|cannot be read"
        with role.lacking(action, _arn(role, place)), pytest.raises(AssertionError, match=refused):
            INVOKED[function](aws, teams["watched"], state)
        return
    name = "whole" if grant.when == "declared" else "strict"
    of_function = (parts.undeclared,) if grant.when == "declared" else PARTS[function]
    role = roles[name, function]

    def ask_for_everything() -> None:
        for number, part in enumerate(of_function):
            part(teams[name], f"{state}/{number}")

    with role.lacking(action, _arn(role, place)), pytest.raises(AssertionError, match=r"status=500|403"):
        ask_for_everything()
