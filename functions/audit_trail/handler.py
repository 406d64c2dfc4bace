"""Receive lines of the functions' logs, and write the events of the audit trail to the audit log group.

CloudWatch invokes the function asynchronously. After any error Lambda invokes it again with the same lines,
so an event is written at least once. The function's own log contains the number of events, never their text.

After the audit log come the archive and the topic, if the team has them. If the log fails, the archive gets
the events all the same, but the topic is not notified. If the archive fails, the topic is notified. Then the
function raises, so all three get the events again, with the same IDs.
"""

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
from botocore.exceptions import ClientError

from audit_trail.events import AuditEvent, archived, batches, received
from holdfast import audit_log
from holdfast.policy import Deployment, Policy

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


class LogsClient(Protocol):
    """The requests to CloudWatch Logs that this function sends."""

    def put_log_events(self, **request: Any) -> dict[str, Any]: ...

    def create_log_stream(self, **request: Any) -> object: ...


_CONFIG: Final = Config(
    connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 5}
)


def connect() -> LogsClient:
    """Return a client that retries requests that CloudWatch Logs throttles."""
    client: LogsClient = boto3.Session().client("logs", config=_CONFIG)
    return client


_NOTIFIED: Final = Policy.from_environment("notified").notified
_DEPLOYMENT: Final = Deployment.from_environment(
    "audit_group", "notify_topic", "audit_archive", "audit_archive_owner"
)
_GROUP: Final = _DEPLOYMENT.audit_group
_TEAM: Final = _GROUP.split("/")[2]
_TOPIC: Final = _DEPLOYMENT.notify_topic
_ARCHIVE: Final = _DEPLOYMENT.audit_archive

_log = Logger()
_logs = connect()
_sns = None
_s3: Any = None
if _TOPIC:
    from audit_trail.bound import Bound, is_of_nobody_else
    from holdfast import notification

    _bound = Bound()
    _sns = notification.connect()
if _ARCHIVE:
    _s3 = boto3.Session().client("s3", config=_CONFIG)


def handle(event: dict[str, Any], context: "LambdaContext") -> None:
    """Write the events of one delivery of a subscription filter or of S3.

    Raises:
        ClientError: CloudWatch Logs or S3 did not accept the events; some of the events may be written.
    """
    events = received(event)
    written = False
    try:
        _write_all(events)
        written = True
    finally:
        try:
            if _ARCHIVE and events:
                _archive(_ARCHIVE, events)
        finally:
            if written and _sns and _TOPIC:
                _notify(_sns, _TOPIC, events, context.get_remaining_time_in_millis())


def _write_all(events: Sequence[AuditEvent]) -> None:
    """Write events to the audit log."""
    for batch in batches(events):
        if refused := _write(batch):
            # A retry would be refused, too.
            _log.error("audit.refused", extra={"events": len(batch), **refused})
    _log.info("audit.written", extra={"events": len(events)})


def _archive(bucket: str, events: Sequence[AuditEvent]) -> None:
    """Store events in one object, unless an earlier delivery stored it. The bucket adds the retention."""
    key, content = archived(events)
    try:
        _s3.put_object(
            Bucket=bucket,
            ExpectedBucketOwner=_DEPLOYMENT.audit_archive_owner,
            Key=key,
            Body=content,
            ContentType="application/gzip",
            ChecksumAlgorithm="SHA256",
            IfNoneMatch="*",
        )
    except ClientError as error:
        if _code(error) != "PreconditionFailed":
            raise


def _notify(sns: "notification.SnsClient", topic: str, events: Sequence[AuditEvent], left: int) -> None:
    """Publish the chosen events. A failure is logged and not raised: the events are written."""
    parsed = (json.loads(event.message) for event in events)
    chosen = [event for event in parsed if event["event"] in _NOTIFIED and not is_of_nobody_else(event)]
    due = _bound.due(chosen, time.monotonic())
    messages = [
        notification.of_event(_TEAM, told.event, others=told.others, is_full=told.is_full) for told in due
    ]
    if failed := notification.publish(sns, topic, messages, left):
        _log.error("notify.failed", extra=failed)


def _write(batch: Sequence[AuditEvent]) -> dict[str, int]:
    """Write events of one stream; return CloudWatch's `rejectedLogEventsInfo`, empty if it accepted all."""
    where = {"logGroupName": _GROUP, "logStreamName": batch[0].stream}
    lines = [{"timestamp": event.timestamp, "message": event.message} for event in batch]
    try:
        response = _logs.put_log_events(**where, logEvents=lines)
    except ClientError as error:
        if _code(error) != "ResourceNotFoundException":
            raise
        _create_streams(batch[0].timestamp)
        response = _logs.put_log_events(**where, logEvents=lines)
    refused: dict[str, int] = response.get("rejectedLogEventsInfo") or {}
    return refused


def _create_streams(timestamp: int) -> None:
    """Create the streams of a day for all functions: a search may name only streams that exist."""
    for stream in audit_log.streams(timestamp, timestamp):
        try:
            _logs.create_log_stream(logGroupName=_GROUP, logStreamName=stream)
        except ClientError as error:
            if _code(error) != "ResourceAlreadyExistsException":  # another invocation was first
                raise


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]
