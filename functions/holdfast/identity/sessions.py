"""Sessions: credentials that are valid for some hours, for callers with an ID token or AWS credentials."""

import hmac
import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from holdfast import json_object
from holdfast.access import Caller
from holdfast.errors import InvalidBody
from holdfast.identity import records
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason, Denied
from holdfast.identity.credentials import (
    SessionCredentials,
    is_session_id,
    new_secret,
    new_session_id,
    secret_sha256,
)
from holdfast.identity.records import whole_seconds, written
from holdfast.identity.trust import Records, Unreadable

DEFAULT_SECONDS: Final = 3600
"""The lifetime of a session in seconds if its request does not name a lifetime."""
MIN_SECONDS: Final = 300
MAX_SECONDS: Final = 43_200

Source = Literal[AuthMethod.OIDC, AuthMethod.AWS]
"""The methods whose credentials can be exchanged for a session; tokens and sessions cannot be exchanged."""

_MAX_BYTES: Final = 64 * 1024
"""Bytes of the largest body that asks for a session."""
_NO_SECRET = secret_sha256("")  # compared if the record does not exist; it never counts as a match


@dataclass(frozen=True, slots=True)
class Session:
    """A session's record.

    Its grants are those of the trust record, so the session ends when the trust record is removed. The ID is
    the user name of HTTP Basic.
    """

    id: str
    secret_sha256: str
    principal: str
    subject: str
    trust: str
    trust_id: str
    source: Source
    created: datetime
    expires: datetime

    @property
    def key(self) -> str:
        return session_key(self.id)

    def to_json(self) -> bytes:
        times = {"created": written(self.created), "expires": written(self.expires)}
        return json.dumps({"schema": records.FIRST_SCHEMA, **asdict(self), **times}, indent=2).encode()

    @classmethod
    def from_json(cls, body: bytes) -> "Session":
        """Parse a stored record, of any schema (see `records`); raise `ValueError` if it is invalid."""
        try:
            document = json_object.parse(body)
            records.check_schema(document)
            principal, subject, trust, trust_id = (
                records.text(document[name]) for name in ("principal", "subject", "trust", "trust_id")
            )
            return cls(
                id=_id(document["id"]),
                secret_sha256=records.sha256(document["secret_sha256"]),
                principal=principal,
                subject=subject,
                trust=trust,
                trust_id=trust_id,
                source=_source(document["source"]),
                created=records.time(document["created"]),
                expires=records.time(document["expires"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a valid session record: {error!r}") from error


def _id(value: object) -> str:
    if not is_session_id(records.text(value)):
        raise ValueError("expected a session ID")
    return records.text(value)


def _source(value: object) -> Source:
    return source_of(AuthMethod(records.text(value)))


def source_of(method: AuthMethod) -> Source:
    """Return a method unchanged; raise `ValueError` if its credentials cannot be exchanged for a session."""
    match method:
        case AuthMethod.OIDC | AuthMethod.AWS:
            return method
        case AuthMethod.TOKEN | AuthMethod.SESSION:
            raise ValueError(f"a {method} cannot be exchanged for a session")


def session_key(session_id: str) -> str:
    """Return the S3 key of a session's record."""
    return f"sessions/{session_id}.json"


def create(bearer: Authenticated, *, now: datetime, seconds: int) -> tuple[Session, str]:
    """Create a session with a lifetime in seconds; return its record and its secret.

    Raise `ValueError` unless the bearer authenticated with an ID token or with AWS credentials.
    """
    secret = new_secret()
    session = Session(
        id=new_session_id(),
        secret_sha256=secret_sha256(secret),
        principal=bearer.caller.principal,
        subject=bearer.subject,
        trust=bearer.trust,
        trust_id=bearer.trust_id,
        source=source_of(bearer.method),
        created=whole_seconds(now),
        expires=whole_seconds(now) + timedelta(seconds=seconds),
    )
    return session, secret


def authenticate(
    credentials: SessionCredentials, session: Session | None, trusted: Records, *, now: datetime
) -> Authenticated | Denied:
    """Decide whether credentials belong to a valid session whose trust record still exists.

    The caller gets the current grants of the trust record. A session whose trust record was removed
    or re-created is denied.

    Args:
        session: the session record with the credentials' ID; None if it does not exist.
    """
    has_secret = _has_secret(credentials, session)
    if session is None or not has_secret:
        return Denied(DenialReason.UNKNOWN_OR_WRONG)
    if now >= session.expires:
        return Denied(DenialReason.EXPIRED)
    record = trusted.named(session.trust)
    if record is None or record.id != session.trust_id:
        return Denied(DenialReason.TRUST_REMOVED)
    if isinstance(record, Unreadable):
        return Denied(DenialReason.TRUST_UNREADABLE)
    return Authenticated(
        Caller(session.principal, record.grants, record.owner),
        AuthMethod.SESSION,
        trust=session.trust,
        trust_id=session.trust_id,
        subject=session.subject,
        expires=int(session.expires.timestamp()),
        networks=record.networks,
    )


def _has_secret(credentials: SessionCredentials, session: Session | None) -> bool:
    given = secret_sha256(credentials.secret)
    same = hmac.compare_digest(given, session.secret_sha256 if session else _NO_SECRET)
    return same and session is not None and session.id == credentials.session_id


def seconds(body: bytes) -> int:
    """Parse the requested lifetime in seconds from a body, which is empty or like `{"seconds": 3600}`.

    Raise `InvalidBody` with the broken rule if the body is invalid.
    """
    if not body:
        return DEFAULT_SECONDS
    if len(body) > _MAX_BYTES:
        raise InvalidBody(f"The body has {len(body)} bytes; this route accepts at most {_MAX_BYTES}.")
    try:
        document = json_object.parse_unique(body)
    except ValueError as error:
        raise InvalidBody(
            f'The body of the request {error}. Send no body, or {{"seconds": {DEFAULT_SECONDS}}}.'
        ) from None
    if unknown := sorted(document.keys() - {"seconds"}):
        raise InvalidBody(f"The body has the unknown member {unknown[0][:40]!r}; only 'seconds' is allowed.")
    seconds = document.get("seconds", DEFAULT_SECONDS)
    if not isinstance(seconds, int) or not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise InvalidBody(f"'seconds' must be a whole number from {MIN_SECONDS} to {MAX_SECONDS}.")
    return seconds
