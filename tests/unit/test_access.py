"""Roles, scopes and access tokens."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import names
from holdfast.access import (
    Action,
    Caller,
    Credentials,
    Role,
    Token,
    check_pattern,
    create_token,
    matches,
    parse_basic,
    verify,
)
from holdfast.errors import NotAllowed

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
PROD = names.parse("network/prod")

ALLOWED = {
    Role.OUTPUTS: {Action.READ_OUTPUTS},
    Role.READER: {Action.READ_OUTPUTS, Action.READ},
    Role.WRITER: {Action.READ_OUTPUTS, Action.READ, Action.LOCK, Action.UNLOCK, Action.WRITE},
    Role.MAINTAINER: set(Action),
}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("action", Action)
def test_a_role_allows_its_actions_within_its_scope_and_nothing_else(role: Role, action: Action) -> None:
    allowed = action in ALLOWED[role]
    caller = Caller("token:x", role, ("network/*",))
    assert caller.may(action, PROD) is allowed
    assert not caller.may(action, names.parse("dns/prod"))
    if allowed:
        caller.require(action, PROD)
        with pytest.raises(NotAllowed, match="scope"):
            caller.require(action, names.parse("dns/prod"))
    else:
        with pytest.raises(NotAllowed, match="role"):
            caller.require(action, PROD)


@pytest.mark.parametrize(
    ("pattern", "name", "covered"),
    [
        ("*", "a", True),
        ("*", "a/b/c", True),
        ("network/*", "network/prod", True),
        ("network/*", "network/prod/eu", True),
        ("network/*", "network", False),
        ("network/*", "networks/x", False),
        ("*/prod", "network/prod", True),
        ("*/prod", "network/eu/prod", False),
        ("*/prod", "prod", False),
        ("network", "network", True),
        ("network", "network/prod", False),
        ("network/prod", "network/prod", True),
        ("net*", "network", True),
        ("net*", "network/prod", False),
        ("a/*/c", "a/b/c", True),
        ("a/*/c", "a/b/b/c", False),
        ("a/*/*", "a/b", False),
        ("a/*/*", "a/b/c/d", True),
        ("a.b", "axb", False),
        ("Network", "network", False),
    ],
)
def test_a_star_stays_within_its_segment_but_at_the_end(pattern: str, name: str, covered: bool) -> None:
    assert matches(pattern, names.parse(name)) is covered


@pytest.mark.parametrize(
    "pattern", ["", "/", "a//b", "a/", "a b", "a[b]", "a?", "ü", "../x", "-*", "*/" * 8 + "*", "x" * 201]
)
def test_a_pattern_that_covers_no_possible_name_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="scope pattern"):
        check_pattern(pattern)


def new_token(expires: datetime | None = None) -> tuple[Token, str]:
    return create_token(
        Role.WRITER,
        ["network/*"],
        description="CI",
        created_by="arn:aws:iam::1:user/x",
        now=NOW,
        expires=expires,
    )


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_a_token_signs_in_with_the_secret_that_was_shown_once() -> None:
    token, secret = new_token()
    credentials = parse_basic(basic(f"{token.id}:{secret}"))
    assert credentials is not None
    stored = Token.from_json(token.to_json())
    assert stored == token
    assert verify(credentials, stored, now=NOW) == Caller(f"token:{token.id}", Role.WRITER, ("network/*",))


def test_the_record_holds_no_secret() -> None:
    token, secret = new_token()
    assert secret.encode() not in token.to_json()
    assert json.loads(token.to_json())["created_by"] == "arn:aws:iam::1:user/x"
    assert secret not in repr(Credentials(token.id, secret))


def test_secrets_differ_and_have_a_form_that_a_scanner_finds() -> None:
    secrets = {new_token()[1] for _ in range(50)}
    assert len(secrets) == 50
    assert all(secret.startswith("holdfast_") and len(secret) == 58 for secret in secrets)


def test_wrong_unknown_and_expired_credentials_are_refused() -> None:
    token, secret = new_token(expires=NOW + timedelta(days=1))
    other, other_secret = new_token()
    assert verify(Credentials(token.id, secret), token, now=NOW) is not None
    assert verify(Credentials(token.id, other_secret), token, now=NOW) is None
    assert verify(Credentials(token.id, secret[:-1]), token, now=NOW) is None
    assert verify(Credentials(token.id, ""), token, now=NOW) is None
    assert verify(Credentials(token.id, secret), None, now=NOW) is None
    assert verify(Credentials(token.id, ""), None, now=NOW) is None
    assert verify(Credentials(other.id, secret), token, now=NOW) is None
    assert verify(Credentials(token.id, secret), token, now=NOW + timedelta(days=1)) is None


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic ",
        "Basic !!!!",
        "Bearer abc",
        basic("no colon"),
        basic(":secret"),
        basic("../tokens/x:secret"),
        basic("A" * 20 + ":secret"),
        basic("a" * 19 + ":secret"),
        basic("a" * 19 + "\0:secret"),
        basic("a" * 20 + "/:secret"),
        "Basic " + base64.b64encode(b"\xff\xfe:x").decode(),
        basic("a" * 20 + ":secret") + ", " + basic("b" * 20 + ":secret"),
    ],
)
def test_a_header_that_is_no_access_token_is_refused_without_asking_s3(header: str) -> None:
    assert parse_basic(header) is None


def test_the_scheme_may_be_written_in_any_case_and_the_secret_may_hold_colons() -> None:
    header = basic("a" * 20 + ":b:c").replace("Basic", "bASIC")
    assert parse_basic(header) == Credentials("a" * 20, "b:c")


@pytest.mark.parametrize("scope", [[], ["a b"]])
def test_a_token_without_a_valid_scope_is_not_made(scope: list[str]) -> None:
    with pytest.raises(ValueError, match="scope"):
        create_token(Role.READER, scope, description="", created_by="x", now=NOW)


@pytest.mark.parametrize("record", [b"{}", b"[]", b"null", b"not json", b'{"id": 1, "role": "king"}'])
def test_what_is_no_record_is_an_error_and_no_refusal(record: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 any of them: it becomes a fault, which nobody remembers
        Token.from_json(record)


@pytest.mark.parametrize(
    "damage",
    [
        {"scope": "network/*"},
        {"scope": []},
        {"scope": ["a b"]},
        {"scope": [7]},
        {"scope": None},
        {"role": "king"},
        {"expires": "2026-11-20T10:00:00"},
        {"expires": 0},
        {"expires": ""},
        {"id": 7},
        {"secret_sha256": None},
    ],
)
def test_a_damaged_record_opens_nothing(damage: dict[str, object]) -> None:
    token, _ = new_token()
    record = json.dumps({**json.loads(token.to_json()), **damage}).encode()
    with pytest.raises(ValueError, match="no token record"):
        Token.from_json(record)
