"""Strict reading of the fields of stored records: one that was edited by hand must fail closed."""

import re
from datetime import UTC, datetime

from holdfast.access import check_pattern

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


def text(value: object) -> str:
    """Return a text unchanged.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def matching(value: object, form: "re.Pattern[str]") -> str:
    """Return a text unchanged that is wholly of a form.

    Raises:
        TypeError: it is no text.
        ValueError: it has another form.
    """
    if not form.fullmatch(text(value)):
        raise ValueError(f"expected {form.pattern}")
    return text(value)


def sha256(value: object) -> str:
    """Return a SHA-256 in hexadecimal unchanged.

    Raises:
        TypeError: it is no text.
        ValueError: it is none.
    """
    return matching(value, _SHA256)


def scope(value: object) -> tuple[str, ...]:
    """Return scope patterns.

    Raises:
        TypeError: it is no list of them, or an empty one.
        ValueError: a pattern is malformed.
    """
    if not isinstance(value, list | tuple) or not value:
        raise TypeError("expected a list of scope patterns")
    return tuple(check_pattern(text(pattern)) for pattern in value)


def time(value: object) -> datetime:
    """Read a time.

    Raises:
        TypeError: it is no text.
        ValueError: it is no time, has no zone, or is none of the years 1 to 9999 in UTC.
    """
    read = datetime.fromisoformat(text(value))
    if read.tzinfo is None:
        raise ValueError("expected a time with its zone")
    try:
        return read.astimezone(UTC)
    except OverflowError:
        raise ValueError("expected a time of the years 1 to 9999") from None


def optional_time(value: object) -> datetime | None:
    """Read a time that may be null.

    Raises:
        TypeError: it is neither null nor text.
        ValueError: it is no time, or has no zone.
    """
    return None if value is None else time(value)


def whole_seconds(moment: datetime) -> datetime:
    """The time as a record keeps it: UTC, cut to seconds."""
    return moment.astimezone(UTC).replace(microsecond=0)


def written(moment: datetime | None) -> str | None:
    """The text of a time that may be missing."""
    return None if moment is None else moment.isoformat(timespec="seconds")
