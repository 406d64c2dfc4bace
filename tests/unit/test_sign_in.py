"""Sign-in, without S3: the table of credentials, a damaged record, and what is read at once."""

import time
from datetime import UTC, datetime
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest

from gateway import authorizer_context
from holdfast.identity import credentials, sessions, trust
from holdfast.identity.authentication import Authenticated, Denied
from holdfast.identity.credentials import Credentials, IdToken, SessionCredentials, TokenCredentials
from holdfast.identity.oidc import keys
from holdfast.identity.sign_in import sign_in
from holdfast.identity.trust import Records
from tests.support.events import ANYWHERE
from tests.support.id_tokens import RSA, Published, aws_record, claims, record, signed
from tests.support.sign_ins import ATTEMPTS, SCOPE, Attempt, World, malformed
from tests.unit.test_sessions import NOW, bearer

ID = "a1" * 10
SESSION, SECRET = sessions.create(bearer(aws_record()), now=NOW, seconds=sessions.MAX_SECONDS)
BY_SESSION = SessionCredentials(SESSION.id, SECRET)
STORED = {SESSION.key: SESSION.to_json()}


class Bucket:
    """A bucket in memory. `asked` has the key of each request."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []

    def read(self, key: str) -> SimpleNamespace | None:
        self.asked.append(key)
        return SimpleNamespace(body=self.objects[key]) if key in self.objects else None


def world_of(bucket: Bucket) -> World:
    network, deployers = record(scope=[SCOPE]), aws_record("deployers", scope=[SCOPE])
    bucket.objects[trust.KEY] = Records((network, deployers)).to_json()
    return World(bucket.objects.__setitem__, network, deployers, RSA)


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_credentials_have_the_outcome_of_the_table(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "process_issuers", Published(RSA).issuers)
    bucket = Bucket()
    sent = credentials.parse(attempt.sent(world_of(bucket)))
    store: Any = bucket

    outcome = authorizer_context.bounded(sign_in(sent, store, ANYWHERE, time.monotonic() + 9))

    assert (outcome.reason if isinstance(outcome, Denied) else "") == attempt.reason
    assert len(bucket.asked) == attempt.requests


def test_a_header_that_can_be_no_credentials_holds_none() -> None:
    for header in malformed(world_of(Bucket())):
        assert credentials.parse(header) is None, header


@pytest.mark.parametrize(
    ("sent", "damaged"),
    [
        pytest.param(TokenCredentials(ID, "x"), f"tokens/{ID}.json", id="token"),
        pytest.param(BY_SESSION, SESSION.key, id="session"),
        pytest.param(BY_SESSION, trust.KEY, id="session's trust record"),
        pytest.param(IdToken(signed(RSA, claims())), trust.KEY, id="ID token's trust record"),
    ],
)
def test_a_damaged_record_is_raised_and_not_an_outcome(sent: Credentials, damaged: str) -> None:
    store: Any = Bucket()
    store.objects = {**STORED, damaged: b"{}"}
    with pytest.raises(ValueError, match=r"valid (token|session|trust) record"):
        sign_in(sent, store, ANYWHERE, time.monotonic() + 9)


def test_a_session_and_its_trust_record_are_read_at_once() -> None:
    granted = aws_record()
    session, secret = sessions.create(bearer(granted), now=datetime.now(UTC), seconds=300)
    bodies = {session.key: session.to_json(), trust.KEY: trust.Records((granted,)).to_json()}
    both = Barrier(2, timeout=5)

    class Together(Bucket):
        def read(self, key: str) -> SimpleNamespace | None:
            both.wait()
            return super().read(key)

    store: Any = Together()
    store.objects = bodies
    sent = SessionCredentials(session.id, secret)
    assert isinstance(sign_in(sent, store, ANYWHERE, time.monotonic() + 9), Authenticated)
