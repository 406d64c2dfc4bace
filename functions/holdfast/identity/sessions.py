"""Sessions: what somebody signs in with for some hours who proved in another way who it is."""

import hmac
import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from holdfast import json_object
from holdfast.access import Caller
from holdfast.errors import InvalidBody
from holdfast.identity import records as record_fields
from holdfast.identity.credentials import SessionCredentials, is_session_id, new_id, new_secret, secret_sha256
from holdfast.identity.records import whole_seconds, written
from holdfast.identity.trust import Records

DEFAULT_SECONDS: Final = 3600
MIN_SECONDS: Final = 300
MAX_SECONDS: Final = 43_200

Source = Literal["oidc", "aws"]

_SOURCE = re.compile(r"oidc|aws", re.ASCII)
_NO_SECRET = secret_sha256("")  # compared with where there is no other, and never taken for a match


@dataclass(frozen=True, slots=True)
class Session:
    """A session's record, as it lies in the bucket; it holds the secret's hash, never the secret.

    What its bearer may do stands in the trust record, so that it ends with that.

    Attributes:
        id: the user name of HTTP Basic.
        secret_sha256: SHA-256 of the secret, hexadecimal.
        principal: who its bearer is, stable over that one's sessions.
        subject: the same in full: `<issuer>#<subject>`, or the caller's ARN.
        trust: the name of the trust record that it rests on.
        trust_id: the ID of that record.
        source: how its bearer proved who it is.
        created: when.
        expires: when it ends.
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
        """The S3 key of the record."""
        return session_key(self.id)

    def to_json(self) -> bytes:
        """The record as it is stored."""
        return json.dumps(
            {
                "id": self.id,
                "secret_sha256": self.secret_sha256,
                "principal": self.principal,
                "subject": self.subject,
                "trust": self.trust,
                "trust_id": self.trust_id,
                "source": self.source,
                "created": written(self.created),
                "expires": written(self.expires),
            },
            indent=2,
        ).encode()

    @classmethod
    def from_json(cls, body: bytes) -> "Session":
        """Read a stored record.

        Raises:
            ValueError: it is no session record.
        """
        try:
            document = json_object.parse(body)
            principal, subject, trust, trust_id = (
                record_fields.text(document[name]) for name in ("principal", "subject", "trust", "trust_id")
            )
            return cls(
                id=_id(document["id"]),
                secret_sha256=record_fields.sha256(document["secret_sha256"]),
                principal=principal,
                subject=subject,
                trust=trust,
                trust_id=trust_id,
                source=_source(document["source"]),
                created=record_fields.time(document["created"]),
                expires=record_fields.time(document["expires"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no session record: {error!r}") from error


def _id(value: object) -> str:
    if not is_session_id(record_fields.text(value)):
        raise ValueError("expected the ID of a session")
    return record_fields.text(value)


def _source(value: object) -> Source:
    return "oidc" if record_fields.matching(value, _SOURCE) == "oidc" else "aws"


def session_key(session_id: str) -> str:
    """The S3 key of a session's record."""
    return f"sessions/{session_id}.json"


def create(
    *,
    principal: str,
    subject: str,
    trust: str,
    trust_id: str,
    source: Source,
    now: datetime,
    seconds: int,
) -> tuple[Session, str]:
    """Make a session.

    Args:
        principal: who its bearer is.
        subject: the same in full.
        trust: the name of the trust record that it rests on.
        trust_id: the ID of that record.
        source: how the bearer proved who it is.
        now: the time.
        seconds: how long it lasts.

    Returns:
        The record to store, and the secret to show once.
    """
    secret = new_secret()
    session = Session(
        id=f"session-{new_id()}",
        secret_sha256=secret_sha256(secret),
        principal=principal,
        subject=subject,
        trust=trust,
        trust_id=trust_id,
        source=source,
        created=whole_seconds(now),
        expires=whole_seconds(now) + timedelta(seconds=seconds),
    )
    return session, secret


def verify(
    credentials: SessionCredentials, session: Session | None, records: Records | None, *, now: datetime
) -> Caller | None:
    """Decide whether credentials are those of a session whose trust record is still there.

    Args:
        credentials: what the request brought.
        session: the record of that ID, if there is one.
        records: the team's trust records, if there are any.
        now: the time.

    Returns:
        The caller, with the role and scope that the trust record has now; or None for an unknown, wrong or
        expired session and for one whose trust record is gone or was made anew.
    """
    has_secret = _has_secret(credentials, session)
    if session is None or not has_secret or now >= session.expires or records is None:
        return None
    record = records.named(session.trust)
    if record is None or record.id != session.trust_id:
        return None
    return Caller(session.principal, record.role, record.scope)


def why_refused(
    credentials: SessionCredentials, session: Session | None, *, now: datetime
) -> Literal["unknown_or_wrong", "expired", "trust_removed"]:
    """Why `verify` refused credentials; for the log, as it tells more than the bearer may learn."""
    if session is None or not _has_secret(credentials, session):
        return "unknown_or_wrong"
    return "expired" if now >= session.expires else "trust_removed"


def _has_secret(credentials: SessionCredentials, session: Session | None) -> bool:
    given = secret_sha256(credentials.secret)
    same = hmac.compare_digest(given, session.secret_sha256 if session else _NO_SECRET)
    return same and session is not None and session.id == credentials.session_id


def seconds(body: bytes) -> int:
    """How long a session shall last, by the body of a request for one: empty, or as `{"seconds": 3600}`.

    Raises:
        InvalidBody: with the rule that it broke.
    """
    if not body:
        return DEFAULT_SECONDS
    try:
        document = json_object.parse_unique(body)
    except ValueError as error:
        raise InvalidBody(f'The body {error}; send none, or {{"seconds": {DEFAULT_SECONDS}}}.') from None
    if unknown := sorted(document.keys() - {"seconds"}):
        raise InvalidBody(f"The body has a member {unknown[0][:40]!r}; only 'seconds' is known.")
    asked = document.get("seconds", DEFAULT_SECONDS)
    if not isinstance(asked, int) or not MIN_SECONDS <= asked <= MAX_SECONDS:
        raise InvalidBody(f"'seconds' must be a whole number from {MIN_SECONDS} to {MAX_SECONDS}.")
    return asked
