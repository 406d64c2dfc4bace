"""Log lines become events of the audit trail, and events are batched for requests to CloudWatch."""

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import pytest

from audit_trail.events import (
    BYTES_BESIDE_EACH,
    MAX_BYTES,
    MAX_EVENTS,
    AuditEvent,
    archived,
    batches,
    received,
)
from holdfast_cdk import keys

NOON = 1_795_262_400_123  # 2026-11-21T12:00:00.123Z
GROUP = "/holdfast/platform/backend"

WRITTEN: Mapping[str, Any] = {
    "level": "INFO",
    "message": "state.written",
    "timestamp": "2026-11-21 12:00:00,100+0000",
    "service": "holdfast",
    "trail": "holdfast.audit",
    "state": "network/prod",
    "principal": "token:0123",
    "role": "writer",
    "source": "token",
    "trust": "",
    "lock_id": "one",
    "serial": 4,
    "serial_before": None,
    "version_id": "v1",
    "marker_left": False,
    "bytes": 300,
    "status": 200,
    "source_ip": "192.0.2.1",
    "request_id": "r1",
}


def delivery(
    *messages: str, kind: str = "DATA_MESSAGE", group: str = GROUP, since: int = NOON
) -> dict[str, Any]:
    """The event with which a subscription filter calls the function.

    The lines are a millisecond apart; `since`, when the first was written, is in milliseconds since 1970.
    """
    document = {
        "messageType": kind,
        "owner": "123456789012",
        "logGroup": group,
        "logStream": "2026/11/21/[1]abc",
        "subscriptionFilters": ["audit"],
        "logEvents": [
            {"id": f"id{number}", "timestamp": since + number, "message": message}
            for number, message in enumerate(messages)
        ],
    }
    return {"awslogs": {"data": base64.b64encode(gzip.compress(json.dumps(document).encode())).decode()}}


def test_a_marked_line_becomes_an_event_with_the_listed_fields_and_no_other() -> None:
    (event,) = received(delivery(json.dumps(WRITTEN) + "\n"))

    assert (event.stream, event.timestamp) == ("backend/2026-11-21", NOON)
    assert json.loads(event.message) == {
        "id": "id0",
        "time": "2026-11-21T12:00:00.123+00:00",
        "event": "state.written",
        "function": "backend",
        "state": "network/prod",
        "principal": "token:0123",
        "role": "writer",
        "source": "token",
        "lock_id": "one",
        "serial": 4,
        "version_id": "v1",
        "marker_left": False,
        "status": 200,
        "source_ip": "192.0.2.1",
        "request_id": "r1",
    }


@pytest.mark.parametrize(
    "line",
    [
        "START RequestId: holdfast.audit",
        '{"message": "health"}',
        '{"message": "x", "trail": "another"}',
        '{"message": "x", "state": "holdfast.audit"}',
        '{"message": "x", "state": "\\"trail\\": \\"holdfast.audit\\""}',
        '["holdfast.audit"]',
        '{"trail": "holdfast.audit", "message": "state.wri',
        "[" * 100_000 + "holdfast.audit",
        "",
    ],
)
def test_a_line_without_the_mark_in_its_place_is_left_out(line: str) -> None:
    (event,) = received(delivery(line, json.dumps(WRITTEN)))
    assert json.loads(event.message)["id"] == "id1"


def test_a_value_that_is_no_plain_one_is_left_out() -> None:
    odd = {**WRITTEN, "state": {"resources": ["content"]}, "reason": ["content"]}
    (event,) = received(delivery(json.dumps(odd)))
    assert "content" not in event.message
    assert {"state", "reason"}.isdisjoint(json.loads(event.message))


def test_text_that_has_no_utf8_form_becomes_an_event_all_the_same() -> None:
    (event,) = received(delivery(json.dumps({**WRITTEN, "lock_id": "\ud800é"})))
    assert event.message.isascii()
    assert json.loads(event.message)["lock_id"] == "\ud800é"


def test_a_message_of_cloudwatchs_own_holds_no_event() -> None:
    assert received(delivery(json.dumps(WRITTEN), kind="CONTROL_MESSAGE")) == []


def event(stream: str = "backend/2026-11-21", timestamp: int = NOON, size: int = 10) -> AuditEvent:
    return AuditEvent(stream, timestamp, "x" * size)


def test_a_batch_is_of_one_stream_and_in_the_order_of_time() -> None:
    late, early = event(timestamp=NOON + 5), event(timestamp=NOON)
    other = event("backend/2026-11-22", NOON + 86_400_000)
    assert list(batches([other, late, early])) == [[early, late], [other]]
    assert list(batches([])) == []


def test_a_batch_has_no_more_events_than_one_request_may_have() -> None:
    sizes = [len(batch) for batch in batches([event()] * (MAX_EVENTS + 1))]
    assert sizes == [MAX_EVENTS, 1]


def test_a_batch_has_no_more_bytes_than_one_request_may_have() -> None:
    half = event(size=MAX_BYTES // 2 - BYTES_BESIDE_EACH)
    assert [len(batch) for batch in batches([half] * 3)] == [2, 1]
    more = event(size=MAX_BYTES // 2 - BYTES_BESIDE_EACH + 1)
    assert [len(batch) for batch in batches([half, more])] == [1, 1]


def test_a_numbered_line_becomes_an_event_with_its_log_stream() -> None:
    numbered, plain = received(delivery(json.dumps({**WRITTEN, "number": 7}), json.dumps(WRITTEN)))
    event = json.loads(numbered.message)
    assert (event["stream"], event["number"]) == ("2026/11/21/[1]abc", 7)
    assert "stream" not in json.loads(plain.message)


# --- changed records -------------------------------------------------------------------------------


def changed(key: str, **more: Any) -> dict[str, Any]:
    """The event with which the bucket calls the function."""
    record = {
        "eventTime": "2026-11-21T12:00:00.123Z",
        "eventName": "ObjectCreated:Put",
        "userIdentity": {"principalId": "AWS:AROAEXAMPLE:ada"},
        "requestParameters": {"sourceIPAddress": "192.0.2.1"},
        "s3": {"object": {"key": key, "versionId": "v1", "sequencer": "0055"}},
    }
    return {"Records": [{**record, **more}]}


def not_copied(key: str, **more: Any) -> dict[str, Any]:
    """The event with which the bucket calls the function, as S3's guide shows it."""
    operation = "Replication:OperationFailedReplication"
    by_s3 = {"principalId": "s3.amazonaws.com"}
    where = {"sourceIPAddress": "s3.amazonaws.com"}
    return changed(key, eventName=operation, userIdentity=by_s3, requestParameters=where, **more)


def test_a_failed_copy_becomes_an_event_with_the_state_and_the_reason_and_no_caller() -> None:
    why = {"replicationRuleId": "states", "failureReason": "AssumeRoleNotPermitted"}
    key = keys.STATES.replace("*", "network/prod")
    (failed,) = received(not_copied(key, replicationEventData=why))

    assert (failed.stream, failed.timestamp) == ("authorizer/2026-11-21", NOON)
    event = json.loads(failed.message)
    assert event.pop("id")
    assert event == {
        "time": "2026-11-21T12:00:00.123+00:00",
        "function": "audit_trail",
        "operation": "Replication:OperationFailedReplication",
        "version_id": "v1",
        "event": "replica.failed",
        "state": "network/prod",
        "reason": "AssumeRoleNotPermitted",
    }
    (odd,) = received(not_copied("states/-.tfstate"))
    assert json.loads(odd.message).keys() == event.keys() - {"state", "reason"} | {"id"}


TOKEN = keys.TOKENS.replace("*", "k2v9x0q7m3c1d8f5a6b4")


def test_a_changed_record_becomes_an_event_with_who_and_which_but_not_what() -> None:
    (token,) = received(changed(TOKEN))
    (trust,) = received(changed(keys.TRUST, eventName="ObjectRemoved:Delete"))

    # In a stream that searches have always named.
    assert (token.stream, token.timestamp) == ("authorizer/2026-11-21", NOON)
    event = json.loads(token.message)
    assert event.pop("id")
    assert event == {
        "time": "2026-11-21T12:00:00.123+00:00",
        "event": "token.changed",
        "function": "audit_trail",
        "principal": "AWS:AROAEXAMPLE:ada",
        "operation": "ObjectCreated:Put",
        "version_id": "v1",
        "token": "k2v9x0q7m3c1d8f5a6b4",
        "source_ip": "192.0.2.1",
    }
    (stray,) = received(changed(keys.TOKENS.replace("*", "a/b+%28c%29")))
    assert json.loads(stray.message).items() >= {"event": "token.changed", "token": "a/b (c)"}.items()
    removed = json.loads(trust.message)
    assert (removed["event"], removed["operation"]) == ("trust.changed", "ObjectRemoved:Delete")
    assert "token" not in removed


def test_a_change_has_the_same_id_each_time_and_no_other_change_has_it() -> None:
    other = {"object": {"key": TOKEN, "versionId": "v2", "sequencer": "0056"}}
    changes = [changed(TOKEN), changed(TOKEN), changed(keys.TRUST), changed(TOKEN, s3=other)]
    ids = [json.loads(event.message)["id"] for one in changes for event in received(one)]
    assert ids[0] == ids[1]
    assert len({*ids}) == 3


def test_a_test_of_the_bucket_is_no_event() -> None:
    assert received({"Service": "Amazon S3", "Event": "s3:TestEvent"}) == []


def test_a_repeated_delivery_is_archived_under_the_same_key_and_another_is_not() -> None:
    line = json.dumps(WRITTEN)
    key, content = archived(received(delivery(line, line)))
    assert archived(received(delivery(line, line))) == (key, content)
    assert archived(received(delivery(line)))[0] != key
    assert key.startswith("events/backend/2026-11-21/")
    lines = gzip.decompress(content).decode().splitlines()
    assert [json.loads(one)["id"] for one in lines] == ["id0", "id1"]
