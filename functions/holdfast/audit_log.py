"""Name the audit log's streams, parse its events from responses of FilterLogEvents; spans for a search."""

import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from holdfast import json_object

FIRST_SPAN: Final = timedelta(minutes=10)
"""How far back the search for the newest events begins: a response lists the oldest events first."""
GROWTH: Final = 4
"""Each further request of the search covers this many times the span of the request before."""

AUDITED: Final = ("authorizer", "backend", "cloud", "management", "sessions")
"""The functions whose events the audit log has."""
_MOST_STREAMS: Final = 100
"""The most streams that a request of FilterLogEvents may name (API reference)."""
_DAY: Final = 86_400_000


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


def stream(function: str, timestamp: int) -> str:
    """Return the stream of a function's event, whose timestamp is in milliseconds since 1970.

    >>> stream("backend", 1795219200000)
    'backend/2026-11-21'
    """
    return f"{function}/{time.strftime('%Y-%m-%d', time.gmtime(timestamp // 1000))}"


def streams(first: int, last: int) -> list[str]:
    """Return the streams of all events between two timestamps, both included; none if there are too many."""
    days = range(first // _DAY, last // _DAY + 1)
    if len(days) * len(AUDITED) > _MOST_STREAMS:
        return []
    return [stream(function, day * _DAY) for day in days for function in AUDITED]
