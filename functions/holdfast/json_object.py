"""Parse a JSON object strictly, as Go's decoder does: UTF-8 only, no NaN, no other top level."""

import json
from typing import Any, Final

_DECODER: Final = json.JSONDecoder()


def parse(body: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        ValueError: it is not one; the message completes "The body …".
    """
    if not body:
        raise ValueError("is empty")
    try:
        document = json.loads(body.decode(), parse_constant=_refuse)
    # json gives up on deep nesting with RecursionError.
    except (ValueError, RecursionError):
        raise ValueError("is not a JSON document") from None
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 a wrong value, not a programming error
    return document


def parse_unique(body: bytes) -> dict[str, Any]:
    """Parse a JSON object in which no object has a member twice.

    Raises:
        ValueError: it is not one, or an object has; the message completes "The body …".
    """
    document = parse(body)  # from here on it is well formed
    try:
        json.loads(body.decode(), object_pairs_hook=_unique)
    except _TwiceError:
        raise ValueError("has a member twice") from None
    return document


def members(body: bytes) -> dict[str, str]:
    """Return the members of a JSON object, each value as the text in the document.

    Python would round long numbers; their text does not change.

    Raises:
        ValueError: as `parse`.
    """
    parse(body)  # from here on it is well formed
    text = body.decode()
    found = {}
    position = _after(" \t\n\r{", text, 0)
    while text[position] != "}":
        name, position = _DECODER.raw_decode(text, position)
        start = _after(" \t\n\r:", text, position)
        _, end = _DECODER.raw_decode(text, start)
        found[name] = text[start:end]
        position = _after(" \t\n\r,", text, end)
    return found


def _after(skipped: str, text: str, position: int) -> int:
    while text[position] in skipped:
        position += 1
    return position


def is_unicode(text: str) -> bool:
    """Return whether a text has a UTF-8 form; JSON can escape a lone surrogate, which has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _TwiceError(Exception):
    """An object has a member twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found


def _refuse(constant: str) -> None:
    raise ValueError(constant)
