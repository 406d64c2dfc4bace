"""Encode and decode bodies for Lambda and API Gateway."""

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Final

from holdfast import json_object
from holdfast.errors import TooLarge
from holdfast.team import LAMBDA_PAYLOAD

MAX_BYTES: Final = LAMBDA_PAYLOAD

_BESIDE_BODY: Final = 2048  # status, headers and punctuation of the response
_WORTH_COMPRESSING: Final = 1024
_PIECE: Final = 1024 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_LEVELS: Final = (3, 4)
"""The levels of compression in the order in which they are tried.

Level 4 takes half as much time again, and makes a state of 5 MB a twenty-fifth smaller. So it is for bodies
that would not fit otherwise.
"""
_UNQUOTED: Final = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
"""The characters that JSON does not change."""
_LARGER: Final = (
    'To store larger states, use a "cloud" block, which needs a state name of two or more segments.'
)


@dataclass(frozen=True, slots=True)
class Payload:
    """The body of a function's response.

    Attributes:
        text: the body, in base64 if `is_base64`.
        headers: the headers that describe it.
    """

    text: str
    is_base64: bool
    headers: dict[str, str] = field(default_factory=dict)


def encode(body: bytes, *, accepts_gzip: bool) -> Payload:
    """Encode a body for a response, compressed if possible; raise `TooLarge` if it does not fit."""
    if accepts_gzip and len(body) >= _WORTH_COMPRESSING and (packed := _compressed(body)):
        return Payload(_base64(packed), is_base64=True, headers={"Content-Encoding": "gzip"})
    plain = _plain(body)
    if plain is None:
        raise TooLarge(
            f"The state, or the part of it that you requested, has {len(body)} bytes, but a response can "
            f"have at most {MAX_BYTES} bytes, including JSON escapes. {_LARGER} Otherwise, save the state "
            "with 'holdfast state get', and split it into smaller states."
        )
    return plain


def require_room(body: bytes) -> None:
    """Raise `TooLarge` unless a body fits into a response without compression, for clients without gzip."""
    if not _has_room(_in_base64(len(body))) and not _is_text_with_room(body):
        raise TooLarge(
            f"The state has {len(body)} bytes, but an uncompressed response can have at most {MAX_BYTES} "
            "bytes, including JSON escapes, so some clients could not read the state again. Nothing was "
            f"written. {_LARGER} Otherwise, split the state into smaller states."
        )


def decode(text: str, *, is_base64: bool) -> bytes:
    """Return the body of a function's event; raise `ValueError` for invalid base64."""
    return base64.b64decode(text, validate=True) if is_base64 else text.encode()


def _compressed(body: bytes) -> bytes | None:
    """Return a compressed body; None if it does not fit into a response."""
    return next(filter(None, (_compressed_at(level, body) for level in _LEVELS)), None)


def _compressed_at(level: int, body: bytes) -> bytes | None:
    """Return a compressed body; stop and return None as soon as it does not fit into a response."""
    compressor = zlib.compressobj(level, wbits=_GZIP)
    pieces, size = [], 0
    whole = memoryview(body)
    for start in range(0, len(body), _PIECE):
        pieces.append(compressor.compress(whole[start : start + _PIECE]))
        size += len(pieces[-1])
        if not _has_room(_in_base64(size)):
            return None
    packed = b"".join((*pieces, compressor.flush()))
    return packed if _has_room(_in_base64(len(packed))) else None


def _plain(body: bytes) -> Payload | None:
    """Return a body as text, or else as base64; None if both are too large."""
    if _is_text_with_room(body):
        return Payload(body.decode(), is_base64=False)
    if _has_room(_in_base64(len(body))):
        return Payload(_base64(body), is_base64=True)
    return None


def _is_text_with_room(body: bytes) -> bool:
    """Return whether a body is UTF-8, and fits as text, which JSON quoting can lengthen."""
    if not _has_room(len(body)) or not json_object.is_utf8(body):
        return False
    # A byte becomes at most six (\\u0000), so most bodies need not be measured.
    return _has_room(6 * len(body)) or _has_room(_quoted(body))


def _quoted(body: bytes) -> int:
    """Return the size of UTF-8 text as JSON in ASCII. Only the characters that JSON changes are encoded."""
    special = body.translate(None, _UNQUOTED)
    return len(body) - len(special) + len(json.dumps(special.decode()))


def _base64(body: bytes) -> str:
    return base64.b64encode(body).decode()


def _in_base64(size: int) -> int:
    return -(-size // 3) * 4


def _has_room(size: int) -> bool:
    return size + _BESIDE_BODY <= MAX_BYTES
