"""Credentials: the forms of the `Authorization` header, IDs and secrets."""

import base64
import binascii
import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass, field
from typing import Final

OIDC_USER: Final = "oidc"
"""The user name of HTTP Basic whose password is an ID token."""

# IDs are random. A session ID has a prefix, which distinguishes it from a token ID.
_ID_ALPHABET = string.ascii_lowercase + string.digits
_ID_LENGTH = 20
_SESSION_PREFIX = "session-"
_ID = re.compile(rf"[{_ID_ALPHABET}]{{{_ID_LENGTH}}}", re.ASCII)

_HEADER = re.compile(r"(basic|bearer) +([!-~]+) *", re.ASCII | re.IGNORECASE)
# RFC 7515 section 3.1: header, claims, signature. API Gateway accepts headers of at most 10,240 bytes.
_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_MAX_JWT = 10_240

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
# 256 bits in base 62, then their CRC-32, by which a secret scanner recognizes a secret.
_PREFIX = "holdfast_"
_RANDOM_LENGTH = 43
_CHECKSUM_LENGTH = 6
_SECRET = re.compile(
    rf"{_PREFIX}([0-9A-Za-z]{{{_RANDOM_LENGTH}}})([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class TokenCredentials:
    """An access token's ID and secret as a request brought them; neither is verified."""

    token_id: str
    secret: str = field(repr=False)

    def log_fields(self) -> dict[str, str]:
        """Return the fields of these credentials that may be logged."""
        return {"token": self.token_id}


@dataclass(frozen=True, slots=True)
class SessionCredentials:
    """A session's ID and secret as a request brought them; neither is verified."""

    session_id: str
    secret: str = field(repr=False)

    def log_fields(self) -> dict[str, str]:
        return {"session": self.session_id}


@dataclass(frozen=True, slots=True)
class IdToken:
    """An OIDC ID token as a request brought it, unverified: three parts of base64url."""

    jwt: str = field(repr=False)

    def log_fields(self) -> dict[str, str]:
        """Return no fields: an unverified ID token is not logged."""
        return {}


Credentials = TokenCredentials | SessionCredentials | IdToken


def parse(authorization: str) -> Credentials | None:
    """Parse an `Authorization` header: Basic (RFC 7617) or Bearer (RFC 6750); None if it has no known form.

    `Bearer` is followed by an ID token, which has three parts, or by an ID and a secret joined by `bearer`.
    A returned ID is well-formed, so that it can be part of an S3 key.
    """
    header = _HEADER.fullmatch(authorization)
    if header is None:
        return None
    if header[1].lower() == "bearer":
        record_id, dot, secret = header[2].partition(".")
        return _with_secret(record_id, secret) if dot and "." not in secret else _id_token(header[2])
    try:
        user, colon, password = base64.b64decode(header[2], validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    if not colon:
        return None
    if user == OIDC_USER:
        return _id_token(password)
    return _with_secret(user, password)


def basic(username: str, password: str) -> str:
    """Return the Authorization header for a user name and a password (RFC 7617).

    >>> parse(basic("k2v9x0q7m3c1d8f5a6b4", "holdfast_secret"))
    TokenCredentials(token_id='k2v9x0q7m3c1d8f5a6b4')
    """
    # Bytes of an environment variable that are not UTF-8 are sent unchanged.
    pair = f"{username}:{password}".encode(errors="surrogateescape")
    return f"Basic {base64.b64encode(pair).decode()}"


def bearer(record_id: str, secret: str) -> str:
    """Join the ID and the secret of a token or a session, as clients send them after `Bearer`.

    >>> parse("Bearer " + bearer("k2v9x0q7m3c1d8f5a6b4", "holdfast_secret"))
    TokenCredentials(token_id='k2v9x0q7m3c1d8f5a6b4')
    """
    return f"{record_id}.{secret}"


def _with_secret(record_id: str, secret: str) -> TokenCredentials | SessionCredentials | None:
    if is_token_id(record_id):
        return TokenCredentials(record_id, secret)
    if is_session_id(record_id):
        return SessionCredentials(record_id, secret)
    return None


def _id_token(text: str) -> IdToken | None:
    return IdToken(text) if len(text) <= _MAX_JWT and _JWT.fullmatch(text) else None


def is_record_id(text: str) -> bool:
    """Return whether a text is the ID of a token or a trust record: twenty lower-case letters and digits."""
    return _ID.fullmatch(text) is not None


def is_token_id(text: str) -> bool:
    return is_record_id(text)


def is_session_id(text: str) -> bool:
    return text.startswith(_SESSION_PREFIX) and is_record_id(text.removeprefix(_SESSION_PREFIX))


def new_id() -> str:
    """Return a new ID of a token or of a trust record."""
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))


def new_session_id() -> str:
    return _SESSION_PREFIX + new_id()


def new_secret() -> str:
    """Return a new secret: 256 random bits with a prefix and a checksum."""
    random = _base62(secrets.randbits(256), _RANDOM_LENGTH)
    return f"{_PREFIX}{random}{_checksum(random)}"


def is_secret(text: str) -> bool:
    """Return whether a text has the form of a secret and a valid checksum.

    >>> is_secret(new_secret()), is_secret("holdfast_" + 49 * "0")
    (True, False)
    """
    secret = _SECRET.fullmatch(text)
    return secret is not None and _checksum(secret[1]) == secret[2]


def secret_sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _checksum(random: str) -> str:
    return _base62(zlib.crc32(random.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, rest = divmod(number, 62)
        digits.append(_BASE62[rest])
    return "".join(reversed(digits))
