"""Sign-in with a record that is damaged; tests/contract/test_sign_in.py has everything else."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.identity import sessions, trust
from holdfast.identity.credentials import Credentials, IdToken, SessionCredentials, TokenCredentials
from holdfast.identity.sign_in import sign_in
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
        sign_in(credentials, store, lambda: 9.0)
