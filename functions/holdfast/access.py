"""Who may do what to which states: roles, scopes and access tokens."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
import string
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum, auto
from fnmatch import fnmatchcase

from holdfast import json_object
from holdfast.errors import InvalidName, NotAllowed
from holdfast.names import StateName, parse


class Action(Enum):
    """What can be done to a state."""

    READ_OUTPUTS = auto()
    READ = auto()
    LOCK = auto()
    UNLOCK = auto()
    WRITE = auto()
    FORCE_UNLOCK = auto()
    DELETE = auto()


class Role(StrEnum):
    """A named set of actions; each includes the one before it."""

    OUTPUTS = "outputs"
    READER = "reader"
    WRITER = "writer"
    MAINTAINER = "maintainer"


_OUTPUTS = frozenset({Action.READ_OUTPUTS})
_READER = _OUTPUTS | {Action.READ}
_WRITER = _READER | {Action.LOCK, Action.UNLOCK, Action.WRITE}
_MAINTAINER = _WRITER | {Action.FORCE_UNLOCK, Action.DELETE}

_ALLOWED = {
    Role.OUTPUTS: _OUTPUTS,
    Role.READER: _READER,
    Role.WRITER: _WRITER,
    Role.MAINTAINER: _MAINTAINER,
}


def check_pattern(pattern: str) -> str:
    """Return a scope pattern unchanged if a state can have a name that it covers.

    `*` alone is every state, a trailing `/*` everything below, elsewhere `*` stays within a segment.

    Raises:
        ValueError: with the rule that it broke.
    """
    try:
        parse(pattern.replace("*", "x"))
    except InvalidName as error:
        raise ValueError(
            f"the scope pattern {pattern!r} covers no possible state, as 'network/*' would: {error.message}"
        ) from None
    return pattern


def matches(pattern: str, name: StateName) -> bool:
    """Whether a scope pattern covers a state.

    >>> from holdfast.names import parse
    >>> matches("network/*", parse("network/prod/eu")), matches("*/prod", parse("network/eu/prod"))
    (True, False)
    """
    if pattern == "*":
        return True
    wanted = pattern.split("/")
    segments = name.value.split("/")
    if wanted[-1] == "*" and len(segments) > len(wanted):
        segments = segments[: len(wanted)]
    return len(wanted) == len(segments) and all(map(fnmatchcase, segments, wanted))


@dataclass(frozen=True, slots=True)
class Caller:
    """A verified caller.

    Attributes:
        principal: who it is, stable over retries, such as `token:3f9a…`.
        role: what it may do.
        scope: the patterns of the states that it may do it to.
    """

    principal: str
    role: Role
    scope: tuple[str, ...]

    def may(self, action: Action, name: StateName) -> bool:
        """Whether this caller may do this to that state."""
        return action in _ALLOWED[self.role] and any(matches(pattern, name) for pattern in self.scope)

    def require(self, action: Action, name: StateName) -> None:
        """Do nothing if the caller may do this.

        Raises:
            NotAllowed: the role or the scope does not cover it.
        """
        if action not in _ALLOWED[self.role]:
            enough = next(role for role in Role if action in _ALLOWED[role])
            verb = action.name.lower().replace("_", " ")
            raise NotAllowed(
                f"The role '{self.role}' of {self.principal} does not allow to {verb}; "
                f"use a token with the role '{enough}'."
            )
        if not self.may(action, name):
            raise NotAllowed(
                f"The scope of {self.principal} does not cover the state '{name}'; use a token that does."
            )


# --- access tokens -------------------------------------------------------------------------------

_TOKEN_ID = re.compile(r"[a-z0-9]{20}", re.ASCII)
_ID_ALPHABET = string.ascii_lowercase + string.digits
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
# 256 bits in base 62, then a CRC-32 of that, so that a secret scanner can tell a secret from a word.
_SECRET_PREFIX = "holdfast_"  # noqa: S105 the public part of every secret
_SECRET_LENGTH = 43
_CHECKSUM_LENGTH = 6


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, rest = divmod(number, 62)
        digits.append(_BASE62[rest])
    return "".join(reversed(digits))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Token:
    """An access token's record, as it lies in the bucket; it holds the secret's hash, never the secret.

    Attributes:
        id: the user name of HTTP Basic.
        secret_sha256: SHA-256 of the secret, hexadecimal.
        role: what the bearer may do.
        scope: to which states.
        description: the operator's note.
        created: when.
        created_by: the AWS identity that made it.
        expires: when it ends, or None for never.
    """

    id: str
    secret_sha256: str
    role: Role
    scope: tuple[str, ...]
    description: str
    created: datetime
    created_by: str
    expires: datetime | None = None

    @property
    def key(self) -> str:
        """The S3 key of the record."""
        return token_key(self.id)

    @property
    def caller(self) -> Caller:
        """The caller that a bearer of this token is."""
        return Caller(f"token:{self.id}", self.role, self.scope)

    def to_json(self) -> bytes:
        """The record as it is stored."""
        return json.dumps(
            {
                "id": self.id,
                "secret_sha256": self.secret_sha256,
                "role": self.role,
                "scope": self.scope,
                "description": self.description,
                "created": self.created.isoformat(timespec="seconds"),
                "created_by": self.created_by,
                "expires": self.expires.isoformat(timespec="seconds") if self.expires else None,
            },
            indent=2,
        ).encode()

    @classmethod
    def from_json(cls, body: bytes) -> "Token":
        """Read a stored record.

        Raises:
            ValueError: it is no token record.
        """
        document = json_object.parse(body)
        try:
            return cls(
                id=_text(document["id"]),
                secret_sha256=_text(document["secret_sha256"]),
                role=Role(document["role"]),
                scope=_scope(document["scope"]),
                description=_text(document["description"]),
                created=_time(document["created"]),
                created_by=_text(document["created_by"]),
                expires=None if document["expires"] is None else _time(document["expires"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no token record: {error!r}") from error


# A record may be edited by hand. What is not exactly of its form must fail closed.


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def _scope(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise TypeError("expected a list of scope patterns")
    return tuple(check_pattern(_text(pattern)) for pattern in value)


def _time(value: object) -> datetime:
    time = datetime.fromisoformat(_text(value))
    if time.tzinfo is None:
        raise ValueError("expected a time with its zone")
    return time


def token_key(token_id: str) -> str:
    """The S3 key of a token's record."""
    return f"tokens/{token_id}.json"


def create_token(
    role: Role,
    scope: Sequence[str],
    *,
    description: str,
    created_by: str,
    now: datetime,
    expires: datetime | None = None,
) -> tuple[Token, str]:
    """Make an access token.

    Returns:
        The record to store, and the secret to show once.

    Raises:
        ValueError: the scope is empty or a pattern is malformed.
    """
    if not scope:
        raise ValueError("a token needs at least one scope pattern; '*' is every state")
    random = _base62(secrets.randbits(256), _SECRET_LENGTH)
    secret = f"{_SECRET_PREFIX}{random}{_base62(zlib.crc32(random.encode()), _CHECKSUM_LENGTH)}"
    token = Token(
        id="".join(secrets.choice(_ID_ALPHABET) for _ in range(20)),
        secret_sha256=_hash(secret),
        role=role,
        scope=tuple(check_pattern(pattern) for pattern in scope),
        description=description,
        created=now.astimezone(UTC),
        created_by=created_by,
        expires=expires.astimezone(UTC) if expires else None,
    )
    return token, secret


@dataclass(frozen=True, slots=True)
class Credentials:
    """A token's ID and secret as a request brought them."""

    token_id: str
    secret: str

    def __repr__(self) -> str:
        return f"Credentials({self.token_id!r}, …)"


def parse_basic(authorization: str) -> Credentials | None:
    """Read an `Authorization: Basic …` header (RFC 7617).

    Returns:
        The credentials, or None if the header holds nothing that could be an access token.
    """
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    if not colon or not _TOKEN_ID.fullmatch(user):
        return None
    return Credentials(user, password)


def verify(credentials: Credentials, token: Token | None, *, now: datetime) -> Caller | None:
    """Decide whether credentials are those of a token.

    An unknown ID costs the same comparison as a wrong secret, so the two cannot be told apart.

    Returns:
        The caller, or None for an unknown, wrong or expired token.
    """
    stored = token.secret_sha256 if token else _hash("")
    same = hmac.compare_digest(_hash(credentials.secret), stored)
    if token is None or not same or token.id != credentials.token_id:
        return None
    if token.expires is not None and now >= token.expires:
        return None
    return token.caller
