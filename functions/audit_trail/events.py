"""Convert lines of the functions' logs to events of the audit trail, without sending requests.

A line becomes an event if it is a JSON object with the mark of `holdfast.audit`. The event keeps only the
fields that `holdfast.audit` lists.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

from holdfast import audit, audit_log

# Limits of one PutLogEvents request (API reference of CloudWatch Logs).
MAX_EVENTS: Final = 10_000
MAX_BYTES: Final = 1_048_576
BYTES_BESIDE_EACH: Final = 26


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """An event of the audit log.

    Attributes:
        stream: the log stream, such as `backend/2026-11-20`.
        timestamp: milliseconds since 1970.
        message: a JSON object in ASCII.
    """

    stream: str
    timestamp: int
    message: str


def received(event: Mapping[str, Any]) -> list[AuditEvent]:
    """Return the events in a delivery of a subscription filter, in their order.

    Args:
        event: Lambda's event; `awslogs` contains compressed lines of one log group.
    """
    delivery = json.loads(gzip.decompress(base64.b64decode(event["awslogs"]["data"])))
    # CloudWatch also sends its own messages, to check whether the function can be reached.
    if delivery["messageType"] != "DATA_MESSAGE":
        return []
    function = delivery["logGroup"].rpartition("/")[2]
    found = (_event(function, line) for line in delivery["logEvents"])
    return [one for one in found if one is not None]


def _event(function: str, line: Mapping[str, Any]) -> AuditEvent | None:
    try:
        logged = json.loads(line["message"])
    except (ValueError, RecursionError):
        return None
    if not isinstance(logged, dict) or logged.get(audit.MARK_FIELD) != audit.MARK:
        return None
    when = datetime.fromtimestamp(line["timestamp"] / 1000, UTC)
    # CloudWatch may deliver a line twice, with the same ID.
    added = (line["id"], when.isoformat(timespec="milliseconds"), logged.get("message"), function)
    kept = {name: logged[name] for name in audit.FIELDS if _is_kept(logged.get(name))}
    return AuditEvent(
        audit_log.stream(function, line["timestamp"]),
        line["timestamp"],
        json.dumps(dict(zip(audit.ADDED_FIELDS, added, strict=True)) | kept),
    )


def _is_kept(value: object) -> bool:
    return isinstance(value, str | int | float) and value != ""  # bool is an int


def batches(events: Iterable[AuditEvent]) -> Iterator[Sequence[AuditEvent]]:
    """Yield batches for one request each: events of one stream (so of one day), ordered by time."""
    ordered = sorted(events, key=lambda event: (event.stream, event.timestamp))
    for _, of_stream in groupby(ordered, key=lambda event: event.stream):
        batch: list[AuditEvent] = []
        size = 0
        for event in of_stream:
            own = len(event.message) + BYTES_BESIDE_EACH
            if batch and (len(batch) == MAX_EVENTS or size + own > MAX_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(event)
            size += own
        yield batch
