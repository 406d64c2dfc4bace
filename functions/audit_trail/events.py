"""Convert lines of the functions' logs to events of the audit trail, without sending requests.

A line becomes an event if it is a JSON object with the mark of `holdfast.audit`. The event keeps only the
fields that `holdfast.audit` lists. S3's notifications about records become events, too.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final
from urllib.parse import unquote_plus

from holdfast import audit, audit_log
from holdfast.audit import Event
from holdfast.names import STATES

# Limits of one PutLogEvents request (API reference of CloudWatch Logs).
MAX_EVENTS: Final = 10_000
MAX_BYTES: Final = 1_048_576
BYTES_BESIDE_EACH: Final = 26

_TOKENS: Final = "tokens/"
"""The prefix of tokens. The bundle lacks the module of their keys, so a test compares the two."""


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
    """Return the events in a delivery of a subscription filter or of S3, in their order.

    Args:
        event: Lambda's event; `awslogs` contains compressed lines of one log group, `Records` the
            notifications of the bucket.
    """
    if "awslogs" not in event:
        return [_notified(record) for record in event.get("Records", [])]
    delivery = json.loads(gzip.decompress(base64.b64decode(event["awslogs"]["data"])))
    # CloudWatch also sends its own messages, to check whether the function can be reached.
    if delivery["messageType"] != "DATA_MESSAGE":
        return []
    function = delivery["logGroup"].rpartition("/")[2]
    audit_events = (_event(function, delivery["logStream"], line) for line in delivery["logEvents"])
    return [audit_event for audit_event in audit_events if audit_event is not None]


def _event(function: str, log_stream: str, line: Mapping[str, Any]) -> AuditEvent | None:
    try:
        logged = json.loads(line["message"])
    except (ValueError, RecursionError):
        return None
    if not isinstance(logged, dict) or logged.get(audit.MARK_FIELD) != audit.MARK:
        return None
    when = datetime.fromtimestamp(line["timestamp"] / 1000, UTC)
    # CloudWatch may deliver a line twice, with the same ID.
    added = (line["id"], when.isoformat(timespec="milliseconds"), logged.get("message"), function)
    if "number" in logged:
        logged["stream"] = log_stream
    kept = {name: logged[name] for name in audit.FIELDS if _is_kept(logged.get(name))}
    return AuditEvent(
        audit_log.stream(function, line["timestamp"]),
        line["timestamp"],
        json.dumps(dict(zip(audit.ADDED_FIELDS, added, strict=True)) | kept),
    )


def _notified(record: Mapping[str, Any]) -> AuditEvent:
    """Return the event of a notification. S3 may notify twice, with the same version and operation."""
    subject, operation = record["s3"]["object"], record["eventName"]
    when = datetime.fromisoformat(record["eventTime"])
    key = unquote_plus(subject["key"])
    fields = {
        "id": _digest(subject["key"], operation, subject.get("versionId"), subject.get("sequencer")),
        "time": when.isoformat(timespec="milliseconds"),
        "function": "audit_trail",
        "operation": operation,
        "version_id": subject.get("versionId"),
        **(_not_copied(key, record) if operation.startswith("Replication:") else _changed(key, record)),
    }
    timestamp = int(when.timestamp() * 1000)
    return AuditEvent(
        # A stream that the audit log has had on every day: a search may name only streams that exist.
        audit_log.stream("authorizer", timestamp),
        timestamp,
        json.dumps({name: value for name, value in fields.items() if value}),
    )


def _changed(key: str, record: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields of a changed token or of changed trust records."""
    is_token = key.startswith(_TOKENS)
    return {
        "event": Event.TOKEN_CHANGED if is_token else Event.TRUST_CHANGED,
        "principal": record["userIdentity"]["principalId"],
        "token": key.removeprefix(_TOKENS).removesuffix(".json") if is_token else None,
        "source_ip": record["requestParameters"]["sourceIPAddress"],
    }


def _not_copied(key: str, record: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields of a state that S3 did not copy to the replica. No client takes part."""
    name = STATES.name(key)
    return {
        "event": Event.REPLICA_FAILED,
        "state": name.value if name else None,
        "reason": record.get("replicationEventData", {}).get("failureReason"),
    }


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:32]


def archived(events: Sequence[AuditEvent]) -> tuple[str, bytes]:
    """Return key and content of the object with the events of a delivery; a repeated one has the same key."""
    key = _digest(*(json.loads(event.message)["id"] for event in events))
    lines = "".join(f"{event.message}\n" for event in events)
    return f"events/{events[0].stream}/{key}.jsonl.gz", gzip.compress(lines.encode(), mtime=0)


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
