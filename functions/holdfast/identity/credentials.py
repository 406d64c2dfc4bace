"""What a request signs in with: the forms of the `Authorization` header, and secrets."""

import base64
import binascii
import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from typing import Final

OIDC_USER: Final = "oidc"
"""The user name of HTTP Basic whose password is an ID token."""

_TOKEN_ID = re.compile(r"[a-z0-9]{20}", re.ASCII)
_SESSION_ID = re.compile(r"session-[a-z0-9]{20}", re.ASCII)
_HEADER = re.compile(r"(basic|bearer) +([!-~]+) *", re.ASCII | re.IGNORECASE)
# RFC 7515 section 3.1: header, claims, signature. The gateway takes no longer header than this.
_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_MAX_JWT = 10_240

_ID_ALPHABET = string.ascii_lowercase + string.digits
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
# 256 bits in base 62, then a CRC-32 of that, so that a secret scanner can tell a secret from a word.
_PREFIX = "holdfast_"
_RANDOM_LENGTH = 43
_CHECKSUM_LENGTH = 6
_SECRET = re.compile(
    rf"{_PREFIX}([0-9A-Za-z]{{{_RANDOM_LENGTH}}})([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class TokenCredentials:
    """An access token's ID and secret as a request brought them; the secret may be anything."""

    token_id: str
    secret: str

    def __repr__(self) -> str:
        return f"TokenCredentials({self.token_id!r}, …)"


@dataclass(frozen=True, slots=True)
class SessionCredentials:
    """A session's ID and secret as a request brought them; the secret may be anything."""

    session_id: str
    secret: str

    def __repr__(self) -> str:
        return f"SessionCredentials({self.session_id!r}, …)"


@dataclass(frozen=True, slots=True)
class IdToken:
    """An OIDC ID token as a request brought it: three parts of base64url, and nothing of it is verified."""

    jwt: str

    def __repr__(self) -> str:
        return "IdToken(…)"


def parse(authorization: str) -> TokenCredentials | SessionCredentials | IdToken | None:
    """Read an `Authorization` header: Basic (RFC 7617) or Bearer (RFC 6750).

    An ID that it returns is of its form, so that it can stand in a key.

    Returns:
        What it holds, or None if that can be no credentials.
    """
    header = _HEADER.fullmatch(authorization)
    if header is None:
        return None
    if header[1].lower() == "bearer":
        return _id_token(header[2])
    try:
        user, colon, password = base64.b64decode(header[2], validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    if not colon:
        return None
    if user == OIDC_USER:
        return _id_token(password)
    if is_token_id(user):
        return TokenCredentials(user, password)
    if is_session_id(user):
        return SessionCredentials(user, password)
    return None


def _id_token(text: str) -> IdToken | None:
    return IdToken(text) if len(text) <= _MAX_JWT and _JWT.fullmatch(text) else None


def is_token_id(text: str) -> bool:
    """Whether a text has the form of a token's ID."""
    return _TOKEN_ID.fullmatch(text) is not None


def is_session_id(text: str) -> bool:
    """Whether a text has the form of a session's ID."""
    return _SESSION_ID.fullmatch(text) is not None


def new_id() -> str:
    """Twenty random lower-case letters and digits."""
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(20))


def new_secret() -> str:
    """A new secret: 256 random bits with a prefix and a checksum."""
    random = _base62(secrets.randbits(256), _RANDOM_LENGTH)
    return f"{_PREFIX}{random}{_checksum(random)}"


def is_secret(text: str) -> bool:
    """Whether a text has the form of a secret and its checksum is right, as a scanner for secrets asks.

    >>> is_secret(new_secret()), is_secret("holdfast_" + 49 * "0")
    (True, False)
    """
    secret = _SECRET.fullmatch(text)
    return secret is not None and _checksum(secret[1]) == secret[2]


def secret_sha256(secret: str) -> str:
    """What is stored of a secret: its SHA-256, hexadecimal."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _checksum(random: str) -> str:
    return _base62(zlib.crc32(random.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, rest = divmod(number, 62)
        digits.append(_BASE62[rest])
    return "".join(reversed(digits))
