"""Sign-in: which records and keys decide for each kind of credentials, without S3."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.access import Caller, Role
from holdfast.identity import sessions, tokens, trust
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason, Denied
from holdfast.identity.credentials import Credentials, IdToken, SessionCredentials, TokenCredentials
from holdfast.identity.oidc import keys
from holdfast.identity.sign_in import sign_in
from holdfast.identity.trust import Records
from tests.support.id_tokens import ISSUER, RSA, SUBJECT, Published, claims, record, signed

NOW = datetime.now(UTC)
TRUST = record()
TOKEN, TOKEN_SECRET = tokens.create(Role.READER, ["*"], description="", created_by="x", now=NOW, expires=None)
BEARER = Authenticated(
    Caller("somebody", TRUST.role, TRUST.scope),
    AuthMethod.OIDC,
    trust=TRUST.name,
    trust_id=TRUST.id,
    subject="somebody",
)
SESSION, SESSION_SECRET = sessions.create(BEARER, now=NOW, seconds=sessions.MAX_SECONDS)
EVERYTHING = {
    TOKEN.key: TOKEN.to_json(),
    SESSION.key: SESSION.to_json(),
    trust.KEY: Records((TRUST,)).to_json(),
}


@dataclass
class Bucket:
    """A store that has these objects and notes what is read."""

    objects: dict[str, bytes]
    reads: list[str] = field(default_factory=list)

    def read(self, key: str) -> SimpleNamespace | None:
        self.reads.append(key)
        return SimpleNamespace(body=self.objects[key]) if key in self.objects else None


def outcome(credentials: Credentials | None, bucket: Bucket) -> Authenticated | Denied:
    store: Any = bucket
    return sign_in(credentials, store, lambda: 9.0)


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch) -> Published:
    """The keys of the issuer, without a network."""
    published = Published(RSA)
    monkeypatch.setattr(keys, "process_issuers", published.issuers)
    return published


def id_token() -> IdToken:
    return IdToken(signed(RSA, claims()))


def test_a_tokens_record_decides_alone() -> None:
    bucket = Bucket(EVERYTHING)
    assert outcome(TokenCredentials(TOKEN.id, TOKEN_SECRET), bucket) == Authenticated(
        TOKEN.caller, AuthMethod.TOKEN
    )
    assert bucket.reads == [TOKEN.key]


def test_a_sessions_record_and_the_trust_records_decide() -> None:
    bucket = Bucket(EVERYTHING)
    assert outcome(SessionCredentials(SESSION.id, SESSION_SECRET), bucket) == Authenticated(
        BEARER.caller,
        AuthMethod.SESSION,
        trust=TRUST.name,
        trust_id=TRUST.id,
        subject="somebody",
        expires=int(SESSION.expires.timestamp()),
    )
    assert bucket.reads == [SESSION.key, trust.KEY]


def test_the_trust_records_and_the_issuers_keys_decide_about_an_id_token(published: Published) -> None:
    bucket = Bucket(EVERYTHING)
    authenticated = outcome(id_token(), bucket)
    assert isinstance(authenticated, Authenticated)
    assert authenticated.caller.principal == f"oidc:{ISSUER}#{SUBJECT}"
    assert (authenticated.method, authenticated.trust_id) == (AuthMethod.OIDC, TRUST.id)
    assert authenticated.ends > NOW.timestamp()
    assert (bucket.reads, published.fetches()) == ([trust.KEY], 1)


@pytest.mark.parametrize(
    ("credentials", "reads", "reason"),
    [
        (lambda: None, [], DenialReason.MALFORMED),
        (lambda: TokenCredentials(TOKEN.id, TOKEN_SECRET), [TOKEN.key], DenialReason.UNKNOWN_OR_WRONG),
        (
            lambda: SessionCredentials(SESSION.id, SESSION_SECRET),
            [SESSION.key, trust.KEY],
            DenialReason.UNKNOWN_OR_WRONG,
        ),
        (id_token, [trust.KEY], DenialReason.UNKNOWN_ISSUER),
    ],
)
def test_without_a_record_nobody_gets_in_after_as_many_requests_as_with_one(
    credentials: Callable[[], Credentials | None], reads: list[str], reason: DenialReason
) -> None:
    bucket = Bucket({})
    assert outcome(credentials(), bucket) == Denied(reason)
    assert bucket.reads == reads


@pytest.mark.parametrize(
    ("credentials", "key"),
    [
        (lambda: TokenCredentials(TOKEN.id, TOKEN_SECRET), TOKEN.key),
        (lambda: SessionCredentials(SESSION.id, SESSION_SECRET), SESSION.key),
        (lambda: SessionCredentials(SESSION.id, SESSION_SECRET), trust.KEY),
        (id_token, trust.KEY),
    ],
    ids=["token", "session", "session's trust record", "ID token's trust record"],
)
def test_a_damaged_record_is_raised_and_not_an_outcome(
    credentials: Callable[[], Credentials], key: str
) -> None:
    with pytest.raises(ValueError, match=r"valid (token|session|trust) record"):
        outcome(credentials(), Bucket({**EVERYTHING, key: b"{}"}))
