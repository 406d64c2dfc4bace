"""Strict reading of a JSON object, as Go's decoder reads it: UTF-8 only, no NaN, no other top level."""

import json
from typing import Any


def parse(body: bytes) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ValueError: it is none; the message completes "The body …".
    """
    if not body:
        raise ValueError("is empty")
    try:
        document = json.loads(body.decode(), parse_constant=_refuse)
    # json gives up on deep nesting with RecursionError.
    except (ValueError, RecursionError):
        raise ValueError("is no JSON document") from None
    if not isinstance(document, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004 a wrong value, not a programming error
    return document


def _refuse(constant: str) -> None:
    raise ValueError(constant)
