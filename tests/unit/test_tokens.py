"""Access tokens: their records and their ends; test_sign_in.py has whose credentials they accept."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast.access import Caller, Grant, Role
from holdfast.identity import records, tokens
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.identity.credentials import TokenCredentials
from holdfast.identity.tokens import Token, authenticate

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def new_token(expires: datetime | None = None) -> tuple[Token, str]:
    return tokens.create(
        [Grant(Role.WRITER, ("network/*",))],
        description="CI",
        created_by="arn:aws:iam::1:user/x",
        now=NOW,
        expires=expires,
    )


def rotated(token: Token, *, now: datetime = NOW, keep: timedelta = HOUR) -> tuple[Token, str]:
    return tokens.rotate(token, rotated_by="arn:aws:iam::1:user/y", now=now, keep=keep, expires=token.expires)


def revoked(token: Token, *, now: datetime = NOW) -> Token:
    return tokens.revoke(token, revoked_by="arn:aws:iam::1:user/z", now=now)


def is_valid(token: Token, secret: str, now: datetime = NOW) -> bool:
    outcome = authenticate(TokenCredentials(token.id, secret), token, now=now)
    return isinstance(outcome, Authenticated)


def test_the_secret_that_was_shown_once_authenticates_a_tokens_bearer() -> None:
    token, secret = new_token()
    stored = Token.from_json(token.to_json())
    assert stored == token
    caller = Caller(f"token:{token.id}", (Grant(Role.WRITER, ("network/*",)),))
    outcome = authenticate(TokenCredentials(token.id, secret), stored, now=NOW)
    assert outcome == Authenticated(caller, AuthMethod.TOKEN)
    assert token.key == f"tokens/{token.id}.json"


@pytest.mark.parametrize("expires", [None, NOW + DAY])
def test_a_tokens_bearer_learns_when_the_secret_that_was_sent_ends(expires: datetime | None) -> None:
    token, old = new_token(expires)
    token, new = rotated(token)
    for secret, end in ((new, expires), (old, NOW + HOUR)):
        outcome = authenticate(TokenCredentials(token.id, secret), token, now=NOW)
        assert isinstance(outcome, Authenticated)
        assert outcome.expires_at == end


def test_the_record_holds_no_secret_and_says_who_made_it() -> None:
    token, secret = new_token()
    later, new_secret = rotated(token)
    assert secret.encode() not in token.to_json() + later.to_json()
    assert new_secret.encode() not in later.to_json()
    assert json.loads(token.to_json())["created_by"] == "arn:aws:iam::1:user/x"


@pytest.mark.parametrize("whole", [True, False])
def test_a_record_comes_back_as_it_was_stored(whole: bool) -> None:
    token, _ = tokens.create(
        [Grant(Role.READER, ("a",))],
        description="",
        created_by="x",
        now=NOW + timedelta(milliseconds=7),
        expires=None,
    )
    if whole:
        token, _ = new_token(NOW.astimezone(timezone(2 * HOUR)) + DAY)
        token = revoked(rotated(token, now=NOW + timedelta(milliseconds=7))[0])
    assert Token.from_json(token.to_json()) == token


def test_a_record_of_the_first_version_is_still_a_token() -> None:
    record = {
        "id": "a" * 20,
        "secret_sha256": "0" * 64,
        "role": "reader",
        "scope": ["*"],
        "description": "",
        "created": "2026-11-20T10:00:00+00:00",
        "created_by": "arn:aws:iam::1:user/x",
        "expires": None,
    }
    token = Token.from_json(json.dumps(record).encode())
    assert token.status(NOW) == "active"
    assert (token.rotated, token.previous, token.revoked) == (None, None, None)


def test_a_record_says_its_schema_version_and_one_of_a_newer_command_is_still_read() -> None:
    token, secret = new_token()
    document = json.loads(token.to_json())
    assert document["schema"] == 1
    newer = {**document, "schema": 7, "labels": {"team": "network"}}
    assert is_valid(Token.from_json(json.dumps(newer).encode()), secret)


def test_a_change_keeps_what_a_newer_command_stored() -> None:
    of_newer = {"schema": 7, "labels": {"team": "network"}}
    document = {**json.loads(rotated(new_token()[0])[0].to_json()), **of_newer}
    token = Token.from_json(json.dumps(document).encode())
    for changed in (rotated(token)[0], revoked(token)):
        stored = json.loads(changed.to_json())
        assert {name: stored[name] for name in of_newer} == of_newer
        assert Token.from_json(changed.to_json()) == changed != token


@pytest.mark.parametrize(
    ("body", "newer"),
    [
        (b'{"schema": 4, "role": "king"}', True),
        (b'{"schema": 3, "role": "king"}', False),
        (b'{"schema": 1}', False),
        (b'{"schema": true}', False),
        (b'{"schema": "2"}', False),
        (b"{}", False),
        (b"[2]", False),
        (b"\xff", False),
    ],
)
def test_a_record_that_says_so_is_of_a_newer_release_also_where_it_cannot_be_read(
    body: bytes, newer: bool
) -> None:
    assert records.is_newer(body) is newer


def test_a_rotation_keeps_the_old_secret_for_the_stated_time() -> None:
    token, old = new_token(expires=NOW + DAY)
    token, new = rotated(token)
    assert new != old
    for secret, now, expected in (
        (old, NOW, True),
        (old, NOW + HOUR - SECOND, True),
        (old, NOW + HOUR, False),
        (new, NOW, True),
        (new, NOW + HOUR, True),
        (new, NOW + DAY, False),
    ):
        assert is_valid(token, secret, now) is expected
    assert (token.rotated, token.rotated_by) == (NOW, "arn:aws:iam::1:user/y")


def test_a_second_rotation_or_one_that_keeps_nothing_ends_the_old_secret_at_once() -> None:
    token, first = new_token()
    token, second = rotated(token)
    token, third = rotated(token)
    assert [is_valid(token, secret) for secret in (first, second, third)] == [False, True, True]
    token, fourth = rotated(token, keep=timedelta(0))
    assert token.previous is None
    assert [is_valid(token, secret) for secret in (third, "", fourth)] == [False, False, True]


def test_an_old_secret_does_not_outlive_its_token() -> None:
    token, _ = rotated(new_token(expires=NOW + HOUR)[0], keep=DAY)
    assert token.previous is not None
    assert token.previous.until == NOW + HOUR


def test_a_rotation_renews_for_as_long_as_the_token_was_made_for() -> None:
    token, _ = new_token(expires=NOW + DAY)
    assert tokens.lifetime(token) == DAY
    later = NOW + HOUR
    token, _ = tokens.rotate(token, rotated_by="x", now=later, keep=HOUR, expires=later + DAY)
    assert tokens.lifetime(token) == DAY
    assert tokens.lifetime(new_token()[0]) is None


def test_what_has_ended_is_not_rotated() -> None:
    token, _ = new_token(expires=NOW + DAY)
    with pytest.raises(ValueError, match="is expired"):
        rotated(token, now=NOW + DAY)
    with pytest.raises(ValueError, match="is revoked"):
        rotated(revoked(token))
    with pytest.raises(ValueError, match="cannot stay valid for a negative time"):
        rotated(token, keep=-SECOND)
    with pytest.raises(ValueError, match="is in the past"):
        tokens.rotate(token, rotated_by="x", now=NOW, keep=HOUR, expires=NOW)


def test_a_revocation_keeps_who_and_when_and_a_second_one_changes_nothing() -> None:
    token, secret = new_token()
    token, _ = rotated(token)
    once = revoked(token)
    assert (once.revoked, once.revoked_by) == (NOW, "arn:aws:iam::1:user/z")
    assert not is_valid(once, secret)
    assert tokens.revoke(once, revoked_by="somebody else", now=NOW + DAY) == once


def test_a_token_without_a_valid_scope_or_that_has_ended_already_is_not_created() -> None:
    for grants in ([], [Grant(Role.READER, ())], [Grant(Role.READER, ("a b",))]):
        with pytest.raises(ValueError, match="scope"):
            tokens.create(grants, description="", created_by="x", now=NOW, expires=None)
    with pytest.raises(ValueError, match="the expiry time 2026-11-20 10:00:00 UTC is in the past"):
        new_token(expires=NOW)


@pytest.mark.parametrize("record", [b"", b"{}", b"[]", b"null", b"not json", b'{"id": 1, "role": "king"}'])
def test_what_is_no_record_is_an_error_and_not_a_denial(record: bytes) -> None:
    with pytest.raises(ValueError, match="not a valid token record"):
        Token.from_json(record)


HASH = "0" * 64
DAMAGE: Mapping[str, list[object]] = {
    "scope": ["network/*", [], ["a b"], [7], None],
    "role": ["king"],
    "expires": ["2026-11-20T10:00:00", 0, "", False, "0001-01-01T00:00:00+14:00"],
    "schema": [0, None, True, "1"],
    "id": [7, "../states/a"],
    "secret_sha256": [None, "", "é" * 64, HASH + "\n"],
    "revoked": ["", False, "yesterday"],
    "revoked_by": [None],
    "rotated": [7],
    "previous": [
        *({}, False, HASH, {"secret_sha256": HASH}, {"secret_sha256": HASH, "until": None}),
        {"secret_sha256": "", "until": "2026-11-20T10:00:00+00:00"},
    ],
}


@pytest.mark.parametrize(("member", "value"), [(name, each) for name in DAMAGE for each in DAMAGE[name]])
def test_a_damaged_record_opens_nothing(member: str, value: object) -> None:
    token, _ = new_token()
    record = json.dumps({**json.loads(token.to_json()), member: value}).encode()
    with pytest.raises(ValueError, match="not a valid token record"):
        Token.from_json(record)
