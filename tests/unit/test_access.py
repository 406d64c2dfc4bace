"""Roles, scopes and callers."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import names
from holdfast.access import Action, Caller, Grant, Role, check_pattern, matches, roles_with
from holdfast.errors import NotAllowed
from holdfast.identity.principals import principal
from holdfast.s3 import object_metadata

PROD = names.parse("network/prod")
PATTERNS: Final = Path(__file__).parents[1] / "support" / "patterns.json"
"""Names, and patterns that cover them or not. The console tests its own `covers` with the same."""

READING = {Action.READ_METADATA, Action.READ_OUTPUTS, Action.READ_HISTORY, Action.READ}
ALLOWED = {
    Role.OUTPUTS: {Action.READ_METADATA, Action.READ_OUTPUTS},
    Role.AUDITOR: {Action.READ_METADATA, Action.READ_HISTORY, Action.READ_ACTIVITY},
    Role.READER: READING,
    Role.WRITER: READING | {Action.LOCK, Action.UNLOCK, Action.WRITE},
    Role.MAINTAINER: set(Action),
}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("action", Action)
def test_a_role_allows_its_actions_within_its_scope_and_nothing_else(role: Role, action: Action) -> None:
    allowed = action in ALLOWED[role]
    caller = Caller("token:x", (Grant(role, ("network/*",)),))
    assert caller.may(action, PROD) is allowed
    assert not caller.may(action, names.parse("dns/prod"))
    if allowed:
        caller.require(action, PROD)
        with pytest.raises(NotAllowed, match="scope"):
            caller.require(action, names.parse("dns/prod"))
    else:
        with pytest.raises(NotAllowed, match="role"):
            caller.require(action, PROD)


@pytest.mark.parametrize("action", Action)
def test_the_roles_with_an_action_are_those_that_allow_it(action: Action) -> None:
    assert roles_with(action) == tuple(role for role in Role if action in ALLOWED[role])


@pytest.mark.parametrize("case", json.loads(PATTERNS.read_text()), ids=str)
def test_a_star_stays_within_its_segment_but_at_the_end(case: dict[str, Any]) -> None:
    assert matches(case["pattern"], names.parse(case["name"])) is case["covered"]


def test_a_pattern_may_cover_the_names_that_are_reserved() -> None:
    probe = names.parse(f"holdfast-doctor/{'0' * 32}")
    for pattern in ("holdfast-doctor/*", "*", str(probe)):
        assert check_pattern(pattern) == pattern
        assert matches(pattern, probe)


@pytest.mark.parametrize(
    "pattern", ["", "/", "a//b", "a/", "a b", "a[b]", "a?", "ü", "../x", "-*", "*/" * 8 + "*", "x" * 201]
)
def test_a_pattern_that_covers_no_possible_name_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="scope pattern"):
        check_pattern(pattern)


ROLE = "arn:aws-us-gov:sts::123456789012:assumed-role"
ISSUER = "https://token.actions.githubusercontent.com"


@pytest.mark.parametrize(
    "identity",
    [
        "arn:aws:sts::123456789012:assumed-role/Admin/ada@corp.com",
        f"{ROLE}/{'r' * 64}/{'s' * 64}",
        f"{ROLE}/Admin/ada=x@corp.com",
        f"oidc:{ISSUER}#repo:acme/network:ref:refs/heads/main",
    ],
)
def test_an_identity_stands_for_itself(identity: str) -> None:
    assert principal(identity) == identity


@pytest.mark.parametrize(
    ("identity", "kind"),
    [
        (f"{ROLE}/{'r' * 64}/{'=' * 64}", "arn-sha256"),
        (f"arn:aws:iam::123456789012:user/{'a/' * 250}ada", "arn-sha256"),
        (f"oidc:{ISSUER}#repo:acme/{'n' * 200}:ref:refs/heads/main", "oidc-sha256"),
        (f"oidc:{ISSUER}#" + "\U0001f600" * 60, "oidc-sha256"),
    ],
)
def test_an_identity_that_metadata_would_cut_still_names_one(identity: str, kind: str) -> None:
    named = principal(identity)
    assert object_metadata.fits(named)
    assert named.startswith(f"{kind}:")
    assert named.endswith(identity[-10:])
    assert principal(identity) == named
    other = identity.replace("s", "t", 1)
    assert principal(other) != named
