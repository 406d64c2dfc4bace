"""Pages of lists. A cursor encodes the place where the next page begins; clients send it back unchanged.

A cursor grants no access: each request checks what its caller may read.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from holdfast.errors import InvalidRequest

_T = TypeVar("_T")

_LONGEST: Final = 8192
"""Characters of the longest accepted cursor. A key of 1,024 bytes takes up to a third of these."""


@dataclass(frozen=True, slots=True)
class Page(Generic[_T]):
    """A page of a list. It may be empty although others follow.

    `next` is the cursor of the next page; None on the last page that the caller may see.
    """

    items: Sequence[_T]
    next: str | None


def encode(kind: str, fields: Sequence[Any]) -> str:
    """Return a cursor that contains JSON values. `kind` names the list to which the cursor belongs."""
    document = json.dumps([kind, *fields], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(document).decode().rstrip("=")


def decode(kind: str, text: str, *types: type) -> list[Any]:
    """Return the values in a cursor. `kind` names the list to which the cursor belongs.

    Raises:
        InvalidRequest: the cursor is not from `encode`, is for another list, or has a value of another type.
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
    # Keys and IDs contain no control characters and no lone surrogates.
    if not all(field.isprintable() for field in fields if isinstance(field, str)):
        raise invalid()
    return fields


def invalid() -> InvalidRequest:
    """Return the error for an invalid cursor."""
    return InvalidRequest(
        "This 'cursor' is not the 'next' of an earlier page of this list. Request the first page again, "
        "without 'cursor'."
    )
