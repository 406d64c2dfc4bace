"""Encode and decode bodies for Lambda and API Gateway."""

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Final

from holdfast.errors import TooLarge
from holdfast.team import LAMBDA_PAYLOAD

MAX_BYTES: Final = LAMBDA_PAYLOAD

_BESIDE_BODY: Final = 2048  # status, headers and punctuation of the response
_WORTH_COMPRESSING: Final = 1024
_PIECE: Final = 1024 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_LARGER: Final = (
    'A "cloud" block in place of backend "http" carries larger states, '
    "if their names have two segments or more."
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
            f"The state has {len(body)} bytes; the platform carries {MAX_BYTES} bytes a response, "
            f"quotation included. {_LARGER} Otherwise read it from the bucket, and split it."
        )
    return plain


def require_room(body: bytes) -> None:
    """Raise `TooLarge` unless a body fits into a response without compression, for clients without gzip."""
    if _plain(body) is None:
        raise TooLarge(
            f"The state has {len(body)} bytes, and a read of it would exceed what the platform carries: "
            f"{MAX_BYTES} bytes a response, quotation included. Nothing was written. {_LARGER} "
            "Otherwise split the state."
        )


def decode(text: str, *, is_base64: bool) -> bytes:
    """Return the body of a function's event; raise `ValueError` for invalid base64."""
    return base64.b64decode(text, validate=True) if is_base64 else text.encode()


def _compressed(body: bytes) -> bytes | None:
    """Return a compressed body; stop and return None as soon as it does not fit into a response."""
    compressor = zlib.compressobj(4, wbits=_GZIP)
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
    """Return a body as text, which JSON quoting can lengthen, or as base64; None if both are too large."""
    if not _has_room(len(body)):
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = None
    # A byte becomes at most six (\\u0000), so most bodies need not be measured.
    if text is not None and (_has_room(6 * len(body)) or _has_room(len(json.dumps(text)))):
        return Payload(text, is_base64=False)
    if _has_room(_in_base64(len(body))):
        return Payload(_base64(body), is_base64=True)
    return None


def _base64(body: bytes) -> str:
    return base64.b64encode(body).decode()


def _in_base64(size: int) -> int:
    return -(-size // 3) * 4


def _has_room(size: int) -> bool:
    return size + _BESIDE_BODY <= MAX_BYTES
