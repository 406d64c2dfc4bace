"""Cursors: where the next page of a list begins, as a text that clients send back unchanged.

A cursor grants nothing: what it leads to is read with the rights of its sender.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, Final

from holdfast.errors import InvalidRequest

_LONGEST: Final = 8192
"""Characters of a cursor; a key of 1,024 bytes takes a third of them at worst."""


def encode(kind: str, fields: Sequence[Any]) -> str:
    """Return the cursor of a list, with what it says as JSON values."""
    document = json.dumps([kind, *fields], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(document).decode().rstrip("=")


def decode(kind: str, text: str, *types: type) -> list[Any]:
    """Return what a cursor of this list says, each value of the type that it must have.

    Raises:
        InvalidRequest: `encode` did not make it, or made it for another list.
    """
    if len(text) > _LONGEST:
        raise invalid()
    try:
        document = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise invalid() from None
    if not isinstance(document, list) or document[:1] != [kind]:
        raise invalid()
    fields = document[1:]
    if [type(field) for field in fields] != list(types) or encode(kind, fields) != text:
        raise invalid()
    # Neither a key nor an ID holds a control character or a lone surrogate.
    if not all(field.isprintable() for field in fields if isinstance(field, str)):
        raise invalid()
    return fields


def invalid() -> InvalidRequest:
    """Return the error for a cursor that no list gave."""
    return InvalidRequest(
        "The 'cursor' is not one that this list returned as 'next'. Ask for the first page again, without it."
    )
