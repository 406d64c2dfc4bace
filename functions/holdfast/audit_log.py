"""Parse the audit log's events from responses of FilterLogEvents; the spans of time for a search."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from holdfast import json_object

FIRST_SPAN: Final = timedelta(minutes=10)
"""How far back the search for the newest events begins: a response lists the oldest events first."""
GROWTH: Final = 4
"""Each further request of the search covers this many times the span of the request before."""


class Line(NamedTuple):
    """An event of the audit log, with its fields.

    Attributes:
        id: CloudWatch may deliver an event twice; a duplicate has the same ID.
        timestamp: milliseconds since 1970.
    """

    id: str
    timestamp: int
    event: Mapping[str, Any]


def is_complete(page: Mapping[str, Any]) -> bool:
    """Return whether a response arrived whole.

    The SDK accepts an incomplete response: it reads a missing body as empty, and events without members.
    """
    return all(line.keys() >= {"message", "timestamp", "eventId"} for line in page.get("events", [{}]))


def lines(page: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the events of a complete response; skip lines that are not JSON objects."""
    for line in page["events"]:
        try:
            event = json_object.parse(line["message"].encode())
        except ValueError:
            continue
        yield Line(str(event.get("id", line["eventId"])), line["timestamp"], event)


def milliseconds(when: datetime) -> int:
    """Return a time in milliseconds since 1970, as FilterLogEvents takes it; 0 for earlier times."""
    return max(0, int(when.timestamp() * 1000))
