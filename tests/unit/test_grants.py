"""Grants: what several allow, how they are stored and passed on, and what earlier releases make of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloud import documents
from gateway import authorizer_context
from gateway.authorizer_context import decode, encode
from holdfast.access import (
    MAX_SCOPES,
    Action,
    Caller,
    Grant,
    OwnLocks,
    Role,
    allowed,
    check_grants,
    described,
)
from holdfast.cloud.ids import WorkspaceId
from holdfast.cloud.names import require_organization
from holdfast.cloud.workspaces import Workspace
from holdfast.errors import NotAllowed
from holdfast.identity import records, tokens, trust
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.identity.tokens import Token
from holdfast.names import parse
from holdfast.s3.object_metadata import VALUE_LIMIT
from tests.support import release_0_2
from tests.support.id_tokens import aws_record, record

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
NAMES = [parse(name) for name in ("network/prod", "network/eu/prod", "apps/web/prod", "apps/db", "dns")]
PATTERNS = ("*", "network/*", "*/prod", "apps/*", "apps/web/*", "dns", "network/prod", "a*/db", "x/*")
ONE = (Grant(Role.WRITER, ("apps/*", "shared")),)
SEVERAL = (Grant(Role.WRITER, ("apps/*", "shared")), Grant(Role.OUTPUTS, ("network/*",)))

a_grant = st.builds(
    Grant,
    st.sampled_from(Role),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True).map(tuple),
)
UNHURRIED = settings(deadline=None)
some_grants = st.lists(a_grant, min_size=1, max_size=4).map(tuple)


# --- what several grants allow ---------------------------------------------------------------------


def caller(*grants: Grant) -> Caller:
    return Caller("token:x", grants)


def succeeds(act: Callable[[], object]) -> bool:
    try:
        act()
    except NotAllowed:
        return False
    return True


def check_union(grants: Sequence[Grant]) -> None:
    """Check that several grants allow exactly what at least one of them allows alone."""
    together, alone = caller(*grants), [caller(grant) for grant in grants]
    for action in Action:
        for name in NAMES:
            by_one = any(action in allowed(grant.role) and grant.covers(name) for grant in grants)
            assert together.may(action, name) is by_one
            assert succeeds(lambda: together.require(action, name)) is by_one  # noqa: B023 called at once
        scopes = [grant.scope for grant in grants if action in allowed(grant.role)]
        assert together.somewhere(action) is bool(scopes)
        assert succeeds(lambda: together.require_somewhere(action)) is bool(scopes)  # noqa: B023
        assert together.everywhere(action) is any("*" in scope for scope in scopes)
        assert {*together.patterns(action)} == {pattern for scope in scopes for pattern in scope}
    for organization in ("network", "apps", "dns"):
        assert succeeds(lambda: require_organization(organization, together)) is any(  # noqa: B023
            succeeds(lambda: require_organization(organization, one))  # noqa: B023
            for one in alone
        )
    for name in NAMES[:-1]:
        assert permissions(name.value, together) == {
            may: any(permissions(name.value, one)[may] for one in alone) for may in permissions(name.value)
        }


def permissions(name: str, who: Caller = caller(*ONE)) -> dict[str, bool]:  # noqa: B008 it is frozen
    found: Any = documents.workspace(Workspace(WorkspaceId.mint(parse(name))), who, OwnLocks.NAMED)
    granted: dict[str, bool] = found["attributes"]["permissions"]
    return granted


@UNHURRIED
@given(some_grants)
def test_several_grants_allow_exactly_what_each_alone_allows(grants: tuple[Grant, ...]) -> None:
    check_union(grants)


@pytest.mark.parametrize(
    ("action", "name", "told"),
    [
        (Action.WRITE, "network/a", "role 'outputs' of the token x for the state 'network/a' does not allow"),
        (
            Action.READ,
            "network/a",
            "role 'outputs' of the token x does not allow you to read the whole state",
        ),
        (Action.WRITE, "dns", "The scope of the token x does not cover the state 'dns'"),
        (Action.DELETE, "apps/db", "roles 'writer' and 'outputs' of the token x do not allow you to delete"),
        (Action.DELETE, "dns", "Use credentials with the role 'maintainer'"),
    ],
)
def test_a_refusal_names_the_role_that_applies_to_the_state(action: Action, name: str, told: str) -> None:
    with pytest.raises(NotAllowed, match=told):
        caller(*SEVERAL).require(action, parse(name))


def test_a_refusal_calls_the_caller_by_the_owner_of_the_credentials() -> None:
    with pytest.raises(NotAllowed, match=r"The role 'outputs' of Ada \(token:x\) for the state"):
        replace(caller(*SEVERAL), owner="Ada").require(Action.WRITE, parse("network/a"))
    with pytest.raises(NotAllowed, match=r"The scope of Ada \(token:x\) does not cover"):
        replace(caller(*SEVERAL), owner="Ada").require(Action.WRITE, parse("dns"))


# --- the grants of a new record ------------------------------------------------------------------------


def test_grants_of_one_role_are_one_grant() -> None:
    grants = [Grant(Role.WRITER, ("a/*",)), Grant(Role.OUTPUTS, ("b",)), Grant(Role.WRITER, ("c",))]
    assert check_grants(grants) == (Grant(Role.WRITER, ("a/*", "c")), Grant(Role.OUTPUTS, ("b",)))
    assert check_grants([Grant(Role.WRITER, ("a",)), Grant(Role.WRITER, ("b",))]) == (
        Grant(Role.WRITER, ("a", "b")),
    )


@pytest.mark.parametrize(
    ("grants", "told"),
    [
        (
            ["writer:a/*", "writer:a/*"],
            "the grant writer:a/\\* is given more than once; give it once",
        ),
        (
            ["writer:a/*", "reader:a/*"],
            "the grant reader:a/\\* is redundant, because the grant writer:a/\\* includes it",
        ),
        (
            ["reader:a/b", "maintainer:*"],
            "the grant reader:a/b is redundant, because the grant maintainer:\\* includes it",
        ),
        (
            ["reader:a/b/c", "maintainer:a/*"],
            "the grant reader:a/b/c is redundant, because the grant maintainer:a/\\* includes it",
        ),
        (["writer:a b"], "scope pattern"),
        ([], "at least one scope pattern"),
    ],
)
def test_grants_that_contradict_or_repeat_are_refused(grants: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_grants([Grant(Role(one.partition(":")[0]), (one.partition(":")[2],)) for one in grants])


def rights(who: Caller) -> list[bool]:
    return [who.may(action, name) for action in Action for name in NAMES]


@UNHURRIED
@given(some_grants)
def test_only_a_grant_that_adds_nothing_is_refused(grants: tuple[Grant, ...]) -> None:
    single = [Grant(grant.role, (pattern,)) for grant in grants for pattern in grant.scope]
    try:
        kept = check_grants(single)
    except ValueError:
        without = [caller(*single[:number], *single[number + 1 :]) for number in range(len(single))]
        assert any(rights(one) == rights(caller(*single)) for one in without)
    else:
        assert len({grant.role for grant in kept}) == len(kept)
        for action in Action:
            assert {*caller(*kept).patterns(action)} == {*caller(*single).patterns(action)}


def test_patterns_that_may_not_fit_into_a_context_are_refused_when_a_record_is_made() -> None:
    most = [f"{number:03}/*" for number in range(MAX_SCOPES // 9)]
    assert check_grants([Grant(Role.READER, tuple(most))])
    for grants in (
        [Grant(Role.READER, (*most, "one/more"))],
        [Grant(Role.READER, tuple(most)), Grant(Role.OUTPUTS, ("one/more",))],
        [Grant(Role.READER, (pattern,)) for pattern in most * 40],  # too many to compare each with all
    ):
        with pytest.raises(ValueError, match=f"at most {MAX_SCOPES} characters"):
            check_grants(grants)


# --- records -----------------------------------------------------------------------------------------


def a_token(grants: Sequence[Grant]) -> Token:
    token, _ = tokens.create(grants, description="", created_by="x", now=NOW, expires=None)
    return token


def test_the_record_of_one_grant_is_what_it_was_and_of_several_has_another_member() -> None:
    one, several = (json.loads(a_token(grants).to_json()) for grants in (ONE, SEVERAL))
    assert list(one)[:6] == ["schema", "id", "secret_sha256", "role", "scope", "description"]
    assert (one["schema"], one["role"], one["scope"]) == (1, "writer", ["apps/*", "shared"])
    assert one.keys() - several.keys() == {"role", "scope"}
    assert several["schema"] == 2
    assert several["grants"] == [
        {"role": "writer", "scope": ["apps/*", "shared"]},
        {"role": "outputs", "scope": ["network/*"]},
    ]


@UNHURRIED
@given(some_grants)
def test_grants_come_back_as_they_were_stored(grants: tuple[Grant, ...]) -> None:
    token = replace(a_token(ONE), grants=grants)
    assert Token.from_json(token.to_json()) == token
    assert Token.from_json(token.to_json()).newer == {}
    stored = trust.Records((replace(record(), grants=grants), aws_record()))
    assert trust.parse(stored.to_json()) == stored
    assert trust.parse(stored.to_json()).newer == {}


@pytest.mark.parametrize(
    "members",
    [
        {"grants": [{"role": "reader", "scope": ["a"]}], "role": "maintainer", "scope": ["*"]},
        {"grants": [{"role": "reader", "scope": ["a"]}], "scope": ["*"]},
        {"grants": []},
        {"grants": None},
        {"grants": {"reader": ["a"]}},
        {"grants": ["reader"]},
        {"grants": [{"role": "reader"}]},
        {"grants": [{"role": "king", "scope": ["a"]}]},
        {"grants": [{"role": "reader", "scope": []}]},
        {"grants": [{"role": "reader", "scope": ["a"], "networks": ["10.0.0.0/8"]}]},
        {"role": "reader"},
        {},
    ],
)
def test_a_record_with_grants_of_another_form_is_rejected(members: dict[str, Any]) -> None:
    plain = json.loads(a_token(ONE).to_json())
    body = {name: value for name, value in plain.items() if name not in ("role", "scope")} | members
    with pytest.raises(ValueError, match="not a valid token record"):
        Token.from_json(json.dumps(body).encode())


# --- the authorizer's context ------------------------------------------------------------------------


def bearer(grants: tuple[Grant, ...], method: AuthMethod = AuthMethod.TOKEN, **more: Any) -> Authenticated:
    return Authenticated(Caller("token:x", grants), method, **more)


@UNHURRIED
@given(some_grants, st.sampled_from(AuthMethod))
def test_a_context_says_whose_grants_it_has_in_exactly_one_form(
    grants: tuple[Grant, ...], method: AuthMethod
) -> None:
    context = encode(bearer(grants, method))
    assert decode(context) == bearer(grants, method)
    assert context.keys() & {"role", "scope", "grants"} == (
        {"role", "scope"} if len(grants) == 1 else {"grants"}
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"role": "writer", "scope": '["*"]'},
        {"role": "writer"},
        {"scope": '["*"]'},
        *({"grants": text} for text in ("", "[]", "{}", "null", "7", '["writer"]', "[[]]", "[" * 100_000)),
        *({"grants": text} for text in ('[["king", "a"]]', '[["writer", 7]]', '[["writer", ["a"]]]')),
    ],
)
def test_a_context_with_both_forms_or_garbled_grants_stands_for_nobody(changed: dict[str, str]) -> None:
    assert decode(encode(bearer(SEVERAL)) | changed) is None


def test_what_a_record_may_hold_fits_into_a_context_with_the_longest_identity() -> None:
    roles = [role for role in Role if role is not Role.MAINTAINER]
    each = MAX_SCOPES // len(roles) // 8
    grants = tuple(Grant(role, tuple(f"{role[0]}{n:03}" for n in range(each))) for role in roles)
    assert check_grants(grants) == grants
    subject = f"https://token.actions.githubusercontent.com#{'s' * 1000}"
    somebody = Authenticated(
        Caller("oidc-sha256:" + 200 * "p", grants, owner="o" * VALUE_LIMIT),
        AuthMethod.SESSION,
        trust="t" * 63,
        trust_id="i" * 20,
        subject=subject,
        ends=2_000_000_000,
        expires=2_000_000_000,
    )
    assert authorizer_context.bounded(somebody) == somebody


# --- with functions of 0.2.0 ---------------------------------------------------------------------------


@UNHURRIED
@given(some_grants)
def test_a_function_of_0_2_sees_what_one_grant_allows_and_nobody_where_there_are_several(
    grants: tuple[Grant, ...],
) -> None:
    seen = release_0_2.decode(encode(bearer(grants)))
    assert seen == (as_0_2(grants[0]) if len(grants) == 1 and is_of_0_2(grants[0]) else None)


def as_0_2(grant: Grant, principal: str = "token:x") -> release_0_2.Caller:
    return release_0_2.Caller(principal, grant.role.value, grant.scope)


def is_of_0_2(grant: Grant) -> bool:
    return grant.role in release_0_2.ROLES


def test_a_context_that_also_had_a_role_and_a_scope_would_be_an_escalation() -> None:
    both = encode(bearer(SEVERAL)) | {"role": "writer", "scope": '["apps/*", "network/*"]'}
    assert release_0_2.decode(both) is not None
    assert decode(both) is None


@pytest.mark.parametrize("role", release_0_2.ROLES)
def test_the_context_of_an_authorizer_of_0_2_is_what_this_release_writes(role: str) -> None:
    grant = Grant(Role(role), ("apps/*", "shared"))
    older = release_0_2.encode(as_0_2(grant))
    assert decode(older) == bearer((grant,))
    assert encode(bearer((grant,))) == older


@UNHURRIED
@given(some_grants)
def test_a_record_of_one_grant_is_read_by_0_2_and_of_several_is_rejected(grants: tuple[Grant, ...]) -> None:
    token = replace(a_token(ONE), grants=grants)
    stored = trust.Records((aws_record(), replace(record(), grants=grants)))
    is_readable = len(grants) == 1 and is_of_0_2(grants[0])
    assert is_readable is (records.schema(grants) == records.FIRST_SCHEMA)
    if is_readable:
        assert release_0_2.token(token.to_json()) == as_0_2(grants[0], f"token:{token.id}")
        assert release_0_2.trust(stored.to_json())["network"].scope == grants[0].scope
    else:
        for read, body in ((release_0_2.token, token.to_json()), (release_0_2.trust, stored.to_json())):
            with pytest.raises((KeyError, ValueError)):
                read(body)


@pytest.mark.parametrize("role", Role)
def test_a_record_with_a_role_that_0_2_does_not_know_has_a_later_schema(role: Role) -> None:
    is_known = role.value in release_0_2.ROLES
    assert is_known is (records.schema((Grant(role, ("*",)),)) == records.FIRST_SCHEMA)


def test_a_schema_says_which_records_need_a_newer_release() -> None:
    auditor = (Grant(Role.AUDITOR, ("*",)),)
    assert [records.schema(grants) for grants in (ONE, SEVERAL, auditor)] == [1, 2, 2]
    assert json.loads(trust.Records((aws_record(),)).to_json())["schema"] == 1
    mixed = trust.Records((aws_record(), replace(record(), grants=SEVERAL)))
    assert json.loads(mixed.to_json())["schema"] == 2
    assert json.loads(mixed.without("network").to_json())["schema"] == 1


def test_scripts_see_role_and_scope_of_one_grant_and_null_of_several() -> None:
    assert json.loads(json.dumps(described(ONE))) == {
        "role": "writer",
        "scope": ["apps/*", "shared"],
        "grants": [{"role": "writer", "scope": ["apps/*", "shared"]}],
    }
    of_several = described(SEVERAL)
    assert (of_several["role"], of_several["scope"]) == (None, None)
    assert [grant["role"] for grant in of_several["grants"]] == ["writer", "outputs"]
