"""Bodies in the form in which Lambda and API Gateway carry them."""

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Final

from holdfast.errors import TooLarge

MAX_BYTES: Final = 6_291_456
"""Bytes of a function's whole event and of its whole response, as JSON (Lambda quotas)."""

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
    """A body as a function's response carries it.

    Attributes:
        text: the body, base64 if `is_base64`.
        headers: what the client must know about it.
    """

    text: str
    is_base64: bool
    headers: dict[str, str] = field(default_factory=dict)


def encode(body: bytes, *, accepts_gzip: bool) -> Payload:
    """Return a body in the form that carries it to the client."""
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
    """Check that a body can be sent to every client, also to one that does not accept gzip."""
    if _plain(body) is None:
        raise TooLarge(
            f"The state has {len(body)} bytes, and a read of it would exceed what the platform carries: "
            f"{MAX_BYTES} bytes a response, quotation included. Nothing was written. {_LARGER} "
            "Otherwise split the state."
        )


def decode(text: str, *, is_base64: bool) -> bytes:
    """Return the body of a function's event; `ValueError` if it is not valid base64."""
    return base64.b64decode(text, validate=True) if is_base64 else text.encode()


def _compressed(body: bytes) -> bytes | None:
    """Return a body compressed; None, with the rest of it left alone, once it has no room in a response."""
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
    """Return quoted text or base64, whichever is small enough; quotation doubles the length of some texts."""
    if not _has_room(len(body)):
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = None
    # At worst every byte becomes six (\\u0000), so that most bodies need not be measured.
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
