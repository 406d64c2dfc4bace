"""Access tokens: create, rotate and revoke them, and authenticate their bearers."""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from holdfast import json_object, timestamp
from holdfast.access import Caller, Grant, check_grants
from holdfast.identity import records
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason, Denied
from holdfast.identity.credentials import TokenCredentials, is_token_id, new_id, new_secret, secret_sha256
from holdfast.identity.records import whole_seconds, written

DEFAULT_LIFETIME: Final = timedelta(days=90)
"""The lifetime of a token if its creator does not choose a lifetime."""
DEFAULT_KEPT: Final = timedelta(hours=24)
"""The time for which a rotation by default keeps the old secret valid."""

Status = Literal["active", "expired", "revoked"]

_NO_SECRET = secret_sha256("")  # compared if the record does not exist; it never counts as a match


@dataclass(frozen=True, slots=True)
class Previous:
    """The secret that a rotation replaced, and the time at which this secret expires."""

    secret_sha256: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Token:
    """An access token's record.

    Attributes:
        id: the user name of HTTP Basic.
        rotated: when the token was last rotated.
        previous: the secret before that rotation; None if the rotation ended its validity at once.
        owner: the person who uses the token, as its creator says; empty if they named nobody.
        networks: from where it may be used; empty for everywhere.
    """

    id: str
    secret_sha256: str
    grants: tuple[Grant, ...]
    description: str
    created: datetime
    created_by: str
    expires: datetime | None = None
    rotated: datetime | None = None
    rotated_by: str = ""
    previous: Previous | None = None
    revoked: datetime | None = None
    revoked_by: str = ""
    owner: str = ""
    networks: tuple[str, ...] = ()
    newer: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def key(self) -> str:
        return token_key(self.id)

    @property
    def caller(self) -> Caller:
        return Caller(f"token:{self.id}", self.grants, self.owner)

    def status(self, now: datetime) -> Status:
        """Return the token's status at a time. An expired token that was revoked has the status "revoked"."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and now >= self.expires:
            return "expired"
        return "active"

    def to_json(self) -> bytes:
        return json.dumps({**self._members(), **self.newer}, indent=2).encode()

    def _members(self) -> dict[str, Any]:
        previous = self.previous
        return {
            "schema": records.schema(self.grants, self.networks),
            "id": self.id,
            "secret_sha256": self.secret_sha256,
            **records.of_grants(self.grants, self.networks),
            "description": self.description,
            "created": written(self.created),
            "created_by": self.created_by,
            "expires": written(self.expires),
            "rotated": written(self.rotated),
            "rotated_by": self.rotated_by,
            "previous": previous
            and {"secret_sha256": previous.secret_sha256, "until": written(previous.until)},
            "revoked": written(self.revoked),
            "revoked_by": self.revoked_by,
            "owner": self.owner,
        }

    @classmethod
    def from_json(cls, body: bytes) -> "Token":
        """Parse a stored record, of any schema (see `records`); raise `ValueError` if it is invalid."""
        try:
            document = json_object.parse(body)
            records.check_schema(document)
            token = cls(
                id=_id(document["id"]),
                secret_sha256=records.sha256(document["secret_sha256"]),
                grants=records.grants(document),
                description=records.text(document["description"]),
                created=records.time(document["created"]),
                created_by=records.text(document["created_by"]),
                expires=records.optional_time(document["expires"]),
                # Not in the records of version 0.1.0.
                rotated=records.optional_time(document.get("rotated")),
                rotated_by=records.text(document.get("rotated_by", "")),
                previous=_previous(document.get("previous")),
                revoked=records.optional_time(document.get("revoked")),
                revoked_by=records.text(document.get("revoked_by", "")),
                # Not in the records of earlier versions. They ignore it.
                owner=records.owner(document.get("owner", "")),
                networks=records.networks(document),
            )
            return replace(token, newer=records.newer(document, token._members()))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a valid token record: {error!r}") from error


def _id(value: object) -> str:
    if not is_token_id(records.text(value)):
        raise ValueError("expected a token ID")
    return records.text(value)


def _previous(value: Any) -> Previous | None:
    if value is None:
        return None
    return Previous(records.sha256(value["secret_sha256"]), records.time(value["until"]))


def token_key(token_id: str) -> str:
    """Return the S3 key of a token's record."""
    return f"tokens/{token_id}.json"


def create(
    grants: Sequence[Grant],
    *,
    description: str,
    created_by: str,
    now: datetime,
    expires: datetime | None,
    owner: str = "",
    networks: Sequence[str] = (),
) -> tuple[Token, str]:
    """Create an access token; return its record and its secret.

    Raise `ValueError` for invalid grants (see `check_grants`), an invalid owner, invalid networks or an
    `expires` in the past.
    """
    secret = new_secret()
    token = Token(
        id=new_id(),
        secret_sha256=secret_sha256(secret),
        grants=check_grants(grants),
        description=description,
        created=whole_seconds(now),
        created_by=created_by,
        expires=_end(expires, now),
        owner=records.owner(owner),
        networks=records.check_new_networks(networks) if networks else (),
    )
    return token, secret


def rotate(
    token: Token, *, rotated_by: str, now: datetime, keep: timedelta, expires: datetime | None
) -> tuple[Token, str]:
    """Replace a token's secret; return the new record and secret. Only the replaced secret may stay valid.

    Raise `ValueError` if the token is revoked or expired, or `expires` is in the past.

    Args:
        keep: how long the old secret stays valid, not negative; it expires with the token at the latest.
        expires: when the rotated token expires.
    """
    status = token.status(now)
    if status != "active":
        raise ValueError(f"the token {token.id} is {status}; create a new token")
    if keep < timedelta(0):
        raise ValueError("the old secret cannot stay valid for a negative time")
    secret = new_secret()
    expires = _end(expires, now)
    until = whole_seconds(now) + keep
    rotated = replace(
        token,
        secret_sha256=secret_sha256(secret),
        expires=expires,
        rotated=whole_seconds(now),
        rotated_by=rotated_by,
        previous=Previous(token.secret_sha256, min(until, expires or until)) if keep else None,
    )
    return rotated, secret


def _end(expires: datetime | None, now: datetime) -> datetime | None:
    if expires is None:
        return None
    if expires <= now:
        raise ValueError(f"the expiry time {timestamp.sentence(expires)} is in the past")
    return whole_seconds(expires)


def lifetime(token: Token) -> timedelta | None:
    """Return a token's lifetime, from its creation or last rotation to its expiry; None if it never expires.

    By default, a rotation renews the token for this time.
    """
    return None if token.expires is None else token.expires - (token.rotated or token.created)


def update(token: Token, *, description: str | None, owner: str | None) -> Token:
    """Return the token with another description or owner; None means no change.

    Raise `ValueError` for an owner that cannot be shown to others.
    """
    return replace(
        token,
        description=token.description if description is None else description,
        owner=token.owner if owner is None else records.owner(owner),
    )


def revoke(token: Token, *, revoked_by: str, now: datetime) -> Token:
    """Return the token, permanently revoked; a revoked token is returned unchanged."""
    if token.revoked is not None:
        return token
    return replace(token, revoked=whole_seconds(now), revoked_by=revoked_by)


def authenticate(
    credentials: TokenCredentials, token: Token | None, *, now: datetime
) -> Authenticated | Denied:
    """Decide whether credentials belong to a valid token.

    An unknown ID costs the same comparisons as a wrong secret, so their response times do not differ.

    Args:
        token: the token record with the credentials' ID; None if it does not exist.
    """
    has_secret = _has_secret(credentials, token, now)
    if token is None or not has_secret:
        return Denied(DenialReason.UNKNOWN_OR_WRONG)
    match token.status(now):
        case "active":
            return Authenticated(
                token.caller,
                AuthMethod.TOKEN,
                expires=_end_of(credentials, token),
                networks=token.networks,
            )
        case "expired":
            return Denied(DenialReason.EXPIRED)
        case "revoked":
            return Denied(DenialReason.REVOKED)


def _end_of(credentials: TokenCredentials, token: Token) -> int:
    """Return when the sent secret expires, in seconds since 1970; 0 if it never expires."""
    previous = token.previous
    is_previous = previous and hmac.compare_digest(secret_sha256(credentials.secret), previous.secret_sha256)
    end = previous.until if previous and is_previous else token.expires
    return int(end.timestamp()) if end else 0


def _has_secret(credentials: TokenCredentials, token: Token | None, now: datetime) -> bool:
    previous = token.previous if token else None
    given = secret_sha256(credentials.secret)
    is_current = hmac.compare_digest(given, token.secret_sha256 if token else _NO_SECRET)
    is_previous = hmac.compare_digest(given, previous.secret_sha256 if previous else _NO_SECRET)
    if token is None or token.id != credentials.token_id:
        return False
    return is_current or (is_previous and previous is not None and now < previous.until)
