"""How long ago a time is, or how long it is until then, in the units that people use."""

from datetime import datetime
from itertools import pairwise
from typing import Final

_AGES: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
"""Seconds of the units in which an age is shown."""
_WEEK: Final = 7 * 86400
"""Seconds from which the time until an end is shown in days alone."""


def ago(time_: datetime, now: datetime) -> str:
    """Return how long before `now` a time is, or after it.

    >>> from holdfast import timestamp
    >>> midnight = timestamp.parse("2027-02-19T00:00Z")
    >>> ago(midnight, midnight.replace(hour=3, minute=59)), ago(midnight.replace(minute=2), midnight)
    ('3 h ago', 'in 2 min')
    """
    return f"in {_left(time_, now)}" if time_ > now else f"{span(time_, now)} ago"


def _left(time_: datetime, now: datetime) -> str:
    """Return the time until a later moment: below a week in two units, because an end is planned for.

    >>> from holdfast import timestamp
    >>> midnight = timestamp.parse("2027-02-19T00:00Z")
    >>> _left(midnight.replace(day=20, hour=23, minute=59), midnight)
    '1 d 23 h'
    """
    seconds = int((time_ - now).total_seconds())
    for (length, unit), (smaller, name) in pairwise(_AGES):
        if length <= seconds < _WEEK and (rest := seconds % length // smaller):
            return f"{seconds // length} {unit} {rest} {name}"
        if length <= seconds:
            break
    return span(time_, now)


def span(time_: datetime, now: datetime) -> str:
    """Return the time between two moments in the largest unit that it has one of, such as `3 h`."""
    seconds = int(abs((now - time_).total_seconds()))
    length, unit = next((each for each in _AGES if seconds >= each[0]), _AGES[-1])
    return f"{seconds // length} {unit}"
