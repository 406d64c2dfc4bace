"""Write a time as text, in whole seconds, and parse it (RFC 3339)."""

from datetime import UTC, datetime
from typing import Final

END: Final = 253_402_300_800
"""The first second of the year 10000, in seconds since 1970. ISO 8601 cannot write it with four digits."""


def write(time: datetime) -> str:
    """Return a time as the API's documents and lock infos have it.

    >>> write(datetime.fromisoformat("2027-02-19T16:44:05.9+01:00"))
    '2027-02-19T15:44:05Z'
    """
    # A list contains up to a thousand times, and `strftime` takes five times as long.
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def sentence(time: datetime) -> str:
    """Return a time for a sentence.

    >>> sentence(datetime.fromisoformat("2027-02-19T16:44:05.9+01:00"))
    '2027-02-19 15:44:05 UTC'
    """
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def parse(text: str) -> datetime:
    """Parse a time to UTC.

    Raise `ValueError` for another text, a time without an offset, and one outside of the years 1 to 9999.
    """
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError("expected a time with an offset from UTC")
    try:
        return parsed.astimezone(UTC)
    except OverflowError:
        raise ValueError("expected a time in a year from 1 to 9999, in UTC") from None
