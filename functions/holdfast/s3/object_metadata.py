"""User-defined metadata of S3 objects: percent-encoded, and cut to what fits."""

from typing import Final
from urllib.parse import quote

VALUE_LIMIT: Final = 200
"""The most bytes of one metadata value, encoded; all of an object's metadata must fit in S3's 2 KB."""
REASON_LIMIT: Final = 500
"""The same of the one value that people write as a sentence: a space takes three bytes."""


def encode(value: str, limit: int | None = VALUE_LIMIT) -> str:
    """Percent-encode a metadata value, cut to `limit` bytes.

    >>> encode("ada@büro")
    'ada@b%C3%BCro'
    """
    encoded = quote(value, safe="/:@+,()", errors="replace")
    if limit is None or len(encoded) <= limit:
        return encoded
    cut = encoded[:limit]
    return cut.rpartition("%")[0] if "%" in cut[-2:] else cut


def encode_named(name: str, value: str) -> str:
    """Percent-encode a metadata value, cut to what fits under its name."""
    return encode(value, REASON_LIMIT if name == "reason" else VALUE_LIMIT)


def fits(value: str) -> bool:
    """Return whether a value is kept whole."""
    return len(encode(value, limit=None)) <= VALUE_LIMIT


def cut(value: str, limit: int) -> str:
    """Return as much of the beginning of a value as has at most `limit` bytes, percent-encoded.

    >>> cut("büro", 8)
    'bür'
    """
    while len(encode(value, limit=None)) > limit:
        value = value[:-1]
    return value
