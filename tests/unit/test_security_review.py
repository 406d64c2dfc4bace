"""`security-review.md` names those who can read a state, as roles and policies have them."""

import re

from holdfast import audit
from holdfast.access import Action, roles_with
from holdfast_cdk.functions import ROLES, STATES, TOKENS, Place, RoleSpec
from tests.support.pages import page, text

TEXT = text(page("security-review.md"))


def row(begin: str) -> str:
    """Return the first cell of the row that begins with some words."""
    [found] = [line for line in TEXT.splitlines() if line.startswith(f"| {begin}")]
    return found.split(" | ")[0]


def reads(spec: RoleSpec, place: Place) -> bool:
    return any(
        place in grant.on and not {"s3:GetObject", "s3:GetObjectVersion"}.isdisjoint(grant.actions)
        for grant in spec.grants
    )


def test_the_functions_that_can_read_a_state_are_named_and_no_other() -> None:
    named = re.findall("`([a-z_]+)`", row("the functions"))

    assert sorted(named) == sorted(spec.name for spec in ROLES if reads(spec, STATES))


def test_the_roles_that_read_whole_states_are_named_and_no_other() -> None:
    named = re.findall("`([a-z]+)`", row("`reader`"))

    assert named == [*roles_with(Action.READ)]


def test_no_function_reads_both_states_and_tokens() -> None:
    states = {spec.name for spec in ROLES if reads(spec, STATES)}
    tokens = {spec.name for spec in ROLES if reads(spec, TOKENS)}

    assert "authorizer" in tokens
    assert states & tokens == set()


def test_the_events_that_reach_a_topic_by_default_are_sent_by_default() -> None:
    named = set(re.findall(r"`((?:token|trust)\.changed)`", TEXT))

    assert named == {"token.changed", "trust.changed"}
    assert named <= {event.value for event in audit.NOTIFIED}
