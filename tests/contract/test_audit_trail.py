"""The function that keeps the audit trail, on a CloudWatch Logs server."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast import audit_log
from holdfast_cdk.functions import FUNCTIONS
from tests.contract.conftest import Server
from tests.support.environment import set_environment
from tests.unit.test_audit_events import WRITTEN, delivery

DAY = 86_400_000


@dataclass(frozen=True)
class Trail:
    """The function, and the log group that it writes to."""

    handle: Callable[[dict[str, Any], object], None]
    logs: Any
    group: str

    def streams(self) -> dict[str, list[dict[str, Any]]]:
        """Return the written events by log stream."""
        found = self.logs.describe_log_streams(logGroupName=self.group)["logStreams"]
        return {
            name: [
                json.loads(event["message"])
                for event in self.logs.get_log_events(
                    logGroupName=self.group, logStreamName=name, startFromHead=True
                )["events"]
            ]
            for name in sorted(stream["logStreamName"] for stream in found)
        }


@pytest.fixture
def trail(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trail]:
    endpoint, group = server.direct.meta.endpoint_url, f"/holdfast/{uuid4().hex}/audit"
    set_environment(monkeypatch, HOLDFAST_AUDIT_GROUP=group, AWS_ENDPOINT_URL=endpoint)
    logs = boto3.Session().client("logs")
    logs.create_log_group(logGroupName=group)
    monkeypatch.delitem(sys.modules, "audit_trail.handler", raising=False)
    yield Trail(import_module("audit_trail.handler").handle, logs, group)
    del sys.modules["audit_trail.handler"]
    logs.delete_log_group(logGroupName=group)


def line(**more: Any) -> str:
    return json.dumps({**WRITTEN, **more})


def day(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(milliseconds / 1000))


def now() -> int:
    return int(time.time() * 1000)


def test_events_come_to_a_stream_of_their_function_and_day(trail: Trail) -> None:
    when = now()
    trail.handle(delivery(line(), "REPORT", line(state="b"), since=when), None)
    trail.handle(delivery(line(state="c"), since=when + 3), None)
    other = delivery(line(message="sign_in.accepted"), group="/holdfast/a/authorizer", since=when - 2 * DAY)
    trail.handle(other, None)

    found = trail.streams()

    today, before = f"backend/{day(when)}", f"authorizer/{day(when - 2 * DAY)}"
    assert [event["state"] for event in found[today]] == ["network/prod", "b", "c"]
    assert [event["event"] for event in found[before]] == ["sign_in.accepted"]


def test_the_first_event_of_a_day_creates_the_streams_of_all_functions(trail: Trail) -> None:
    """So a search may name them."""
    when = now()
    trail.logs.create_log_stream(logGroupName=trail.group, logStreamName=f"cloud/{day(when)}")

    trail.handle(delivery(line(), since=when), None)

    audited = [spec.name for spec in FUNCTIONS if spec.audited]
    assert set(trail.streams()) == {f"{name}/{day(when)}" for name in audited}
    assert set(trail.streams()) == set(audit_log.streams(when, when))


def test_lines_that_are_handed_over_twice_are_told_by_their_id(trail: Trail) -> None:
    same = delivery(line(), since=now())
    trail.handle(same, None)
    trail.handle(same, None)

    (events,) = filter(None, trail.streams().values())

    assert [event["id"] for event in events] == ["id0", "id0"]


def test_nothing_is_written_where_no_line_is_an_event(trail: Trail) -> None:
    trail.handle(delivery("START", "END", since=now()), None)
    assert trail.streams() == {}


def test_a_fault_is_raised_so_that_the_lines_are_handed_over_again(trail: Trail) -> None:
    trail.logs.delete_log_group(logGroupName=trail.group)
    try:
        with pytest.raises(ClientError, match="ResourceNotFound"):
            trail.handle(delivery(line(), since=now()), None)
    finally:
        trail.logs.create_log_group(logGroupName=trail.group)


@pytest.mark.parametrize("call", ["put_log_events", "create_log_stream"])
@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "ServiceUnavailableException", "ThrottlingException"]
)
def test_whatever_cloudwatch_refuses_is_raised_and_does_not_count_as_written(
    trail: Trail, monkeypatch: pytest.MonkeyPatch, call: str, code: str
) -> None:
    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": code}}, call)

    monkeypatch.setattr(vars(sys.modules["audit_trail.handler"])["_logs"], call, refuse)
    with pytest.raises(ClientError, match=code):
        trail.handle(delivery(line(), since=now()), None)


def test_what_cloudwatch_accepts_no_more_is_logged_without_what_it_says(
    trail: Trail, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rejected = {"rejectedLogEventsInfo": {"tooOldLogEventEndIndex": 0}}
    client = vars(sys.modules["audit_trail.handler"])["_logs"]
    monkeypatch.setattr(client, "put_log_events", lambda **_: rejected)

    trail.handle(delivery(line(), since=now()), None)

    error, written = map(vars, caplog.records[-2:])
    assert (error["message"], error["levelname"]) == ("audit.refused", "ERROR")
    assert (error["events"], error["tooOldLogEventEndIndex"]) == (1, 0)
    assert written["message"] == "audit.written"
    assert "network/prod" not in f"{error}{written}"
