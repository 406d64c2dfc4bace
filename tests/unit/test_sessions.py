"""Sessions: their records and their ends; test_sign_in.py has whose credentials they accept."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.access import Caller, Grant, Role
from holdfast.errors import InvalidBody, NotAllowed
from holdfast.identity import sessions, trust
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason, Denied
from holdfast.identity.credentials import SessionCredentials
from holdfast.identity.session_exchange import for_id_token
from holdfast.identity.sessions import Session, authenticate
from holdfast.identity.trust import Records
from tests.support.id_tokens import aws_record as record

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
ARN = "arn:aws:sts::123456789012:assumed-role/Deployer/ada"


def bearer(granted_by: trust.AwsTrust, method: AuthMethod = AuthMethod.AWS) -> Authenticated:
    caller = Caller(ARN, granted_by.grants)
    return Authenticated(caller, method, trust=granted_by.name, trust_id=granted_by.id, subject=ARN)


def new_session(granted_by: trust.AwsTrust, *, seconds: int = 3600) -> tuple[Session, str]:
    return sessions.create(bearer(granted_by), now=NOW + timedelta(milliseconds=7), seconds=seconds)


def test_a_session_has_the_role_and_scope_that_its_trust_record_has_now() -> None:
    one = record()
    session, secret = new_session(one)
    stored = Session.from_json(session.to_json())
    assert stored == session
    assert session.key == f"sessions/{session.id}.json"
    credentials = SessionCredentials(session.id, secret)
    changed = replace(one, grants=(Grant(Role.READER, ("dns",)), Grant(Role.OUTPUTS, ("a",))))
    for record_now in (one, changed):
        outcome = authenticate(credentials, stored, Records((record_now,)), now=NOW)
        ends = int(session.expires.timestamp())
        assert outcome == replace(bearer(record_now, AuthMethod.SESSION), expires=ends)


def test_the_record_holds_no_secret() -> None:
    session, secret = new_session(record())
    assert secret.encode() not in session.to_json()


def test_a_session_ends_after_its_seconds() -> None:
    one = record()
    session, secret = new_session(one, seconds=300)
    credentials = SessionCredentials(session.id, secret)
    assert session.expires == NOW + timedelta(seconds=300)
    just_before = session.expires - timedelta(seconds=1)
    outcome = authenticate(credentials, session, Records((one,)), now=just_before)
    assert isinstance(outcome, Authenticated)
    for records in (Records((one,)), Records()):
        outcome = authenticate(credentials, session, records, now=session.expires)
        assert outcome == Denied(DenialReason.EXPIRED)


def test_the_bearer_of_an_id_token_gets_a_session_until_the_token_ends() -> None:
    of_id_token = replace(bearer(record(), AuthMethod.OIDC), ends=int(NOW.timestamp()))
    assert for_id_token(of_id_token, now=NOW - timedelta(seconds=1)) == of_id_token
    with pytest.raises(NotAllowed, match="ID token has expired"):
        for_id_token(of_id_token, now=NOW)


@pytest.mark.parametrize("method", [AuthMethod.TOKEN, AuthMethod.SESSION])
def test_a_token_or_a_session_does_not_become_a_session(method: AuthMethod) -> None:
    with pytest.raises(ValueError, match=f"a {method} cannot be exchanged for a session"):
        sessions.create(bearer(record(), method), now=NOW, seconds=300)


def test_a_record_without_a_schema_version_and_one_of_a_newer_command_are_still_read() -> None:
    session, _ = new_session(record())
    document = json.loads(session.to_json())
    assert document.pop("schema") == 1
    assert Session.from_json(json.dumps(document).encode()) == session
    newer = {**document, "schema": 7, "device": {"name": "laptop"}}
    assert Session.from_json(json.dumps(newer).encode()) == session


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"null", b"not json"])
def test_what_is_no_record_is_an_error_and_not_a_denial(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a valid session record"):
        Session.from_json(body)


DAMAGE: Mapping[str, list[object]] = {
    "schema": [0, "1"],
    "id": ["a" * 20, None],
    "secret_sha256": ["", None],
    "principal": [None],
    "subject": [7],
    "trust": [None],
    "trust_id": [None],
    "source": ["token", None],
    "created": [None],
    "expires": [None, "2026-11-20T10:00:00", 1e10],
}


@pytest.mark.parametrize(("member", "value"), [(name, each) for name in DAMAGE for each in DAMAGE[name]])
def test_a_damaged_record_opens_nothing(member: str, value: object) -> None:
    session, _ = new_session(record())
    with pytest.raises(ValueError, match="not a valid session record"):
        Session.from_json(json.dumps({**json.loads(session.to_json()), member: value}).encode())


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (b"", 3600),
        (b"{}", 3600),
        (b'{"seconds": 300}', 300),
        (b'{"seconds": 3600}', 3600),
        (b'{"seconds": 43200}', 43_200),
    ],
)
def test_a_request_says_how_long_its_session_shall_last(body: bytes, seconds: int) -> None:
    assert sessions.seconds(body) == seconds


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"seconds=300", "not a JSON document"),
        (b'{"seconds": ' + b"[" * 65_536, "has 65548 bytes; this route accepts at most 65536"),
        (b"[300]", "not a JSON object"),
        (b"\xff", "not a JSON document"),
        (b'{"seconds": 3600, "seconds": 300}', "twice"),
        (b'{"seconds": 299}', "from 300 to 43200"),
        (b'{"seconds": 43201}', "from 300 to 43200"),
        (b'{"seconds": -3600}', "from 300 to 43200"),
        (b'{"seconds": 3600.0}', "whole number"),
        (b'{"seconds": "3600"}', "whole number"),
        (b'{"seconds": true}', "whole number"),
        (b'{"seconds": null}', "whole number"),
        (b'{"seconds": NaN}', "not a JSON document"),
        (b'{"second": 3600}', "only 'seconds' is allowed"),
        (b'{"seconds": 3600, "role": "maintainer"}', "'role'; only 'seconds'"),
    ],
)
def test_a_length_that_breaks_a_rule_is_refused_with_it(body: bytes, rule: str) -> None:
    with pytest.raises(InvalidBody, match=rule):
        sessions.seconds(body)
