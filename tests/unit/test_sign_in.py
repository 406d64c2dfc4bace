"""Sign-in: a damaged record, and what is read at once; tests/contract/test_sign_in.py has everything else."""

import time
from datetime import UTC, datetime
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.identity import sessions, trust
from holdfast.identity.authentication import Authenticated
from holdfast.identity.credentials import Credentials, IdToken, SessionCredentials, TokenCredentials
from holdfast.identity.sign_in import sign_in
from tests.support.events import ANYWHERE
from tests.support.id_tokens import RSA, aws_record, claims, signed
from tests.unit.test_sessions import NOW, bearer

ID = "a1" * 10
SESSION, SECRET = sessions.create(bearer(aws_record()), now=NOW, seconds=sessions.MAX_SECONDS)
BY_SESSION = SessionCredentials(SESSION.id, SECRET)
STORED = {SESSION.key: SESSION.to_json()}


@pytest.mark.parametrize(
    ("credentials", "damaged"),
    [
        pytest.param(TokenCredentials(ID, "x"), f"tokens/{ID}.json", id="token"),
        pytest.param(BY_SESSION, SESSION.key, id="session"),
        pytest.param(BY_SESSION, trust.KEY, id="session's trust record"),
        pytest.param(IdToken(signed(RSA, claims())), trust.KEY, id="ID token's trust record"),
    ],
)
def test_a_damaged_record_is_raised_and_not_an_outcome(credentials: Credentials, damaged: str) -> None:
    class Bucket:
        def read(self, key: str) -> SimpleNamespace:
            return SimpleNamespace(body=b"{}" if key == damaged else STORED[key])

    store: Any = Bucket()
    with pytest.raises(ValueError, match=r"valid (token|session|trust) record"):
        sign_in(credentials, store, ANYWHERE, time.monotonic() + 9)


def test_a_session_and_its_trust_record_are_read_at_once() -> None:
    granted = aws_record()
    session, secret = sessions.create(bearer(granted), now=datetime.now(UTC), seconds=300)
    bodies = {session.key: session.to_json(), trust.KEY: trust.Records((granted,)).to_json()}
    both = Barrier(2, timeout=5)

    class Bucket:
        def read(self, key: str) -> SimpleNamespace:
            both.wait()
            return SimpleNamespace(body=bodies[key])

    store: Any = Bucket()
    credentials = SessionCredentials(session.id, secret)
    assert isinstance(sign_in(credentials, store, ANYWHERE, time.monotonic() + 9), Authenticated)
