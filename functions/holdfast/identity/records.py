"""The fields of stored records, parsed strictly: a record that was edited by hand must fail closed.

A member of another type than expected raises `TypeError`, a wrong value `ValueError`.

Every record has a schema version, as the member `schema`; one without has version 1. The version tells a
person which release wrote a record. No reader refuses a higher one, and this rule makes that safe:

- A higher version only adds members that a reader may ignore without granting more than the record says.
- A restriction that no reader may ignore is a change that older readers reject: a member that they need gets
  another name, or a value that they do not know.

So a function of an older deployment reads what a newer command writes, or lets nobody in. An older command
that changes such a record stores the members that it does not know as they are, and the higher version. That
holds for members of the record itself: a newer release adds none within a member, such as `previous`. The
command of 0.1.0 drops members that it does not know.
"""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from holdfast import json_object
from holdfast.access import check_pattern

SCHEMA: Final = 1
"""The schema version that this release writes."""

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


def check_schema(document: Mapping[str, Any]) -> None:
    """Check the schema version of a record; any whole number from 1 is valid."""
    version = document.get("schema", 1)
    if type(version) is not int:  # True is an int to isinstance
        raise TypeError("expected a whole number as 'schema'")
    if version < 1:
        raise ValueError("expected a 'schema' from 1")


def newer(document: Mapping[str, Any], known: Collection[str]) -> Mapping[str, Any]:
    """Return what a newer release stored in a record: unknown members, and a higher schema version.

    Args:
        known: the names of the members that this release stores.
    """
    return {
        name: value
        for name, value in document.items()
        if name not in known or (name == "schema" and value > SCHEMA)
    }


def is_newer(body: bytes) -> bool:
    """Return whether a stored record has a higher schema version, also where the rest of it is not valid."""
    try:
        version = json_object.parse(body).get("schema")
    except ValueError:
        return False
    return type(version) is int and version > SCHEMA


def text(value: object) -> str:
    """Return a text unchanged."""
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def sha256(value: object) -> str:
    """Return a SHA-256 in hexadecimal unchanged."""
    if not _SHA256.fullmatch(text(value)):
        raise ValueError("expected a SHA-256 in hexadecimal")
    return text(value)


def scope(value: object) -> tuple[str, ...]:
    """Return scope patterns; an empty list is a `TypeError`."""
    if not isinstance(value, list | tuple) or not value:
        raise TypeError("expected a list of scope patterns")
    return tuple(check_pattern(text(pattern)) for pattern in value)


def time(value: object) -> datetime:
    """Parse a time, which must have a zone and be of the years 1 to 9999 in UTC."""
    read = datetime.fromisoformat(text(value))
    if read.tzinfo is None:
        raise ValueError("expected a time with its zone")
    try:
        return read.astimezone(UTC)
    except OverflowError:
        raise ValueError("expected a time of the years 1 to 9999") from None


def optional_time(value: object) -> datetime | None:
    """Parse a time that may be null."""
    return None if value is None else time(value)


def whole_seconds(moment: datetime) -> datetime:
    """Return a time as a record keeps it: UTC, cut to seconds."""
    return moment.astimezone(UTC).replace(microsecond=0)


def written(moment: datetime | None) -> str | None:
    """Return a time as a record has its text; None if it is missing."""
    return None if moment is None else moment.isoformat(timespec="seconds")
