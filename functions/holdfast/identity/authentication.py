"""The outcome of an authentication: who the caller is and how they proved it, or why they are denied."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from holdfast import audit
from holdfast.access import Caller
from holdfast.audit import Event


class AuthMethod(StrEnum):
    """The ways to authenticate. Logs, session records and the authorizer's context contain the value."""

    TOKEN = "token"  # noqa: S105 the name of a method, not a secret
    SESSION = "session"
    OIDC = "oidc"
    AWS = "aws"


class DenialReason(StrEnum):
    """The reasons for a denial. The log contains the value; the response does not."""

    MALFORMED = "malformed"
    UNKNOWN_OR_WRONG = "unknown_or_wrong"
    EXPIRED = "expired"
    REVOKED = "revoked"
    TRUST_REMOVED = "trust_removed"
    TRUST_UNREADABLE = "trust_unreadable"
    UNKNOWN_ISSUER = "unknown_issuer"
    WRONG_AUDIENCE = "wrong_audience"
    NOT_TRUSTED = "not_trusted"
    WRONG_ALGORITHM = "wrong_algorithm"
    UNKNOWN_KEY = "unknown_key"
    WRONG_SIGNATURE = "wrong_signature"
    NOT_YET_VALID = "not_yet_valid"
    NOT_SIGNED = "not_signed"
    TOO_LARGE = "too_large"
    WRONG_NETWORK = "wrong_network"


LOGGED: Final = ("principal", "owner", "role", "source", "trust", "subject")
"""The fields of a log line that identify the caller."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """An authenticated caller.

    Attributes:
        trust: the name of the trust record; for a token it is empty, and so are `trust_id` and `subject`.
        ends: when an ID token expires, in seconds since 1970; 0 for other methods. Caches may keep it longer.
        expires: when the credentials expire, in seconds since 1970; 0 if they never do, or it is unknown.
        networks: the networks of the token or trust record, for the decision about the address.
    """

    caller: Caller
    method: AuthMethod
    trust: str = ""
    trust_id: str = ""
    subject: str = ""
    ends: int = 0
    expires: int = 0
    networks: tuple[str, ...] = ()

    @property
    def expires_at(self) -> datetime | None:
        """When the credentials expire; None if never, or if the time is unknown or not a valid `datetime`."""
        if self.expires:
            with suppress(OSError, OverflowError, ValueError):
                return datetime.fromtimestamp(self.expires, UTC)
        return None

    def log_fields(self) -> dict[str, str]:
        """Return the `LOGGED` fields."""
        roles = ", ".join(grant.role for grant in self.caller.grants)
        values = (
            *(self.caller.principal, self.caller.owner, roles),
            *(self.method.value, self.trust, self.subject),
        )
        return dict(zip(LOGGED, values, strict=True))


@dataclass(frozen=True, slots=True)
class Denied:
    """A caller who is not authenticated. Only the log contains the reason."""

    reason: DenialReason


def refused(reason: DenialReason) -> tuple[Event, dict[str, str | None]]:
    """Return the event and the fields by which every log line of a refused sign-in is counted and audited.

    A malformed one is logged without the mark of the audit trail: it tries nothing, and anyone can send many.
    """
    mark = None if reason is DenialReason.MALFORMED else audit.MARK
    return Event.SIGN_IN_REFUSED, {"reason": reason.value, audit.MARK_FIELD: mark}
