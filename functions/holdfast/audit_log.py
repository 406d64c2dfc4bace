"""The events in responses of FilterLogEvents about the audit log, and how far back to look for the newest."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from holdfast import json_object

FIRST_SPAN: Final = timedelta(minutes=10)
"""How far back the search for the newest events looks first: the oldest come first in a response."""
GROWTH: Final = 4
"""How many times as far each further look goes."""


class Line(NamedTuple):
    """An event of the audit log, with its fields.

    Attributes:
        id: an event is delivered at least once, and a duplicate has the same ID.
        timestamp: in milliseconds since 1970.
    """

    id: str
    timestamp: int
    event: Mapping[str, Any]


def is_complete(page: Mapping[str, Any]) -> bool:
    """Return whether a response was not cut short.

    The SDK reads a missing body as an empty one, and an event without what it must have.
    """
    return all(line.keys() >= {"message", "timestamp", "eventId"} for line in page.get("events", [{}]))


def lines(page: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the events of a complete response; other lines of the log are left out."""
    for line in page["events"]:
        try:
            event = json_object.parse(line["message"].encode())
        except ValueError:
            continue
        yield Line(str(event.get("id", line["eventId"])), line["timestamp"], event)


def milliseconds(when: datetime) -> int:
    """Return a time as FilterLogEvents takes it; none is before 1970."""
    return max(0, int(when.timestamp() * 1000))
