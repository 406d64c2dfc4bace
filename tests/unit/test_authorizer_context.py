"""The authorizer's context: as API Gateway passes it on, and malformed."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gateway.authorizer_context import Key, decode, encode
from holdfast.access import Caller, Grant, Role
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.team import LOGGED_PRINCIPAL

SUBJECT = 'https://issuer.example#repo:acme/"x"'
BEARER = Authenticated(
    Caller(f"oidc:{SUBJECT}", (Grant(Role.WRITER, ("network/*", "dns")),)),
    AuthMethod.OIDC,
    trust="network",
    trust_id="t" * 20,
    subject=SUBJECT,
    ends=1_790_000_000,
    expires=1_789_999_940,
)


def test_the_context_has_these_names_and_texts() -> None:
    assert encode(BEARER) == {
        "principal": f"oidc:{SUBJECT}",
        "role": "writer",
        "source": "oidc",
        "trust": "network",
        "scope": '["network/*", "dns"]',
        "trust_id": "t" * 20,
        "subject": SUBJECT,
        "ends": "1790000000",
        "expires": "1789999940",
        "access_log": "oidc:https://issuer.example%23repo:acme/%22x%22",
    }
    assert set(encode(BEARER)) == set(Key) - {Key.GRANTS, Key.OWNER}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("method", AuthMethod)
def test_whoever_is_encoded_is_decoded(role: Role, method: AuthMethod) -> None:
    bearer = Authenticated(Caller("token:a", (Grant(role, ("*",)),)), method)
    assert decode(encode(bearer)) == bearer
    assert decode(encode(BEARER)) == BEARER


def test_the_text_that_the_access_log_names_is_the_encoded_principal() -> None:
    quoted = Authenticated(Caller('token:"a"', (Grant(Role.READER, ("*",)),)), AuthMethod.TOKEN)
    assert encode(quoted)[LOGGED_PRINCIPAL] == "token:%22a%22"


@pytest.mark.parametrize("context", [None, {}, "", "principal", 7, ["principal"], [("principal", "x")]])
def test_what_is_not_a_context_stands_for_nobody(context: object) -> None:
    assert decode(context) is None


NEEDED = (Key.PRINCIPAL, Key.ROLE, Key.SOURCE, Key.SCOPE)
OPTIONAL = (Key.ACCESS_LOG, Key.EXPIRES, Key.GRANTS, Key.OWNER)
TOKEN = Authenticated(BEARER.caller, AuthMethod.TOKEN)


@pytest.mark.parametrize(
    ("bearer", "key"),
    [
        *((BEARER, key) for key in Key if key not in OPTIONAL),
        *((TOKEN, key) for key in NEEDED),
    ],
)
def test_a_context_without_a_needed_value_stands_for_nobody(bearer: Authenticated, key: Key) -> None:
    assert decode({name: value for name, value in encode(bearer).items() if name != key}) is None


def test_a_context_of_an_older_authorizer_does_not_say_when_the_credentials_end() -> None:
    older = {name: value for name, value in encode(BEARER).items() if name != Key.EXPIRES}
    assert decode(older) == replace(BEARER, expires=0)


@pytest.mark.parametrize(
    ("expires", "at"),
    [(0, None), (1_790_000_000, datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)), (10**17, None)],
)
def test_when_the_credentials_end_is_a_time_of_the_calendar(expires: int, at: datetime | None) -> None:
    assert replace(BEARER, expires=expires).expires_at == at


def test_what_a_token_does_not_have_may_be_missing() -> None:
    assert decode({name: value for name, value in encode(TOKEN).items() if value != ""}) == TOKEN
    assert decode({name: value for name, value in encode(TOKEN).items() if name in NEEDED}) == TOKEN


@pytest.mark.parametrize("key", [key for key in Key if key is not Key.ACCESS_LOG])
def test_a_context_with_a_wrong_value_stands_for_nobody(key: Key) -> None:
    wrong_values: tuple[object, ...] = (None, 7, True, [], {}, ["*"])
    for wrong in wrong_values:
        assert decode({**encode(BEARER), key: wrong}) is None


GARBLED = {
    "role": ["king", ""],
    "source": ["cookie", "OIDC"],
    "scope": ["", "*", "null", '"*"', '{"*": 1}', "[7]", "[" * 100_000],
    "ends": ["", "soon", "1.5"],
    "expires": ["never"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in GARBLED for text in GARBLED[name]])
def test_a_garbled_context_stands_for_nobody(name: str, text: str) -> None:
    assert decode({**encode(BEARER), name: text}) is None
