"""The audit function with a topic and an archive: the log is first, and no step loses an event."""

import gzip
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast import audit, notification
from tests.contract.conftest import Server
from tests.contract.test_audit_trail import Trail, line, now
from tests.support.environment import set_environment
from tests.support.events import Context
from tests.unit.test_audit_events import changed, delivery
from tests.unit.test_notification import REFUSED, SILENT, WORST, Sns

TOPIC = "arn:aws:sns:eu-central-1:123456789012:holdfast"


@dataclass(frozen=True)
class Watched:
    """The function's trail, its archive, and a stub of SNS."""

    trail: Trail
    sns: Sns
    s3: Any
    bucket: str

    def handle(self, event: dict[str, Any]) -> None:
        self.trail.handle(event, Context(60_000))

    def written(self) -> list[dict[str, Any]]:
        return [event for events in self.trail.streams().values() for event in events]

    def archived(self) -> list[list[dict[str, Any]]]:
        listed = self.s3.list_object_versions(Bucket=self.bucket).get("Versions", [])
        bodies = [self.s3.get_object(Bucket=self.bucket, Key=one["Key"])["Body"].read() for one in listed]
        return [[*map(json.loads, gzip.decompress(body).splitlines())] for body in bodies]


@pytest.fixture
def watched(ministack: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    s3, group, bucket = ministack.direct, f"/holdfast/{uuid4().hex[:20]}/audit", uuid4().hex
    set_environment(
        monkeypatch,
        HOLDFAST_AUDIT_GROUP=group,
        HOLDFAST_NOTIFY_TOPIC=TOPIC,
        HOLDFAST_NOTIFY_EVENTS="state.written token.changed",
        HOLDFAST_AUDIT_ARCHIVE=bucket,
        HOLDFAST_AUDIT_ARCHIVE_OWNER="123456789012",
        AWS_ENDPOINT_URL=s3.meta.endpoint_url,
    )
    s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    logs = boto3.Session().client("logs")
    logs.create_log_group(logGroupName=group)
    monkeypatch.delitem(sys.modules, "audit_trail.handler", raising=False)
    module = import_module("audit_trail.handler")
    sns = Sns()
    monkeypatch.setattr(module, "_sns", sns)
    yield Watched(Trail(module.handle, logs, group), sns, s3, bucket)
    del sys.modules["audit_trail.handler"]
    logs.delete_log_group(logGroupName=group)


def fail(monkeypatch: pytest.MonkeyPatch, client: str, call: str, code: str) -> None:
    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": code}}, call)

    monkeypatch.setattr(vars(sys.modules["audit_trail.handler"])[client], call, refuse)


def test_the_chosen_events_reach_the_topic_and_every_event_the_archive(watched: Watched) -> None:
    watched.handle(delivery(line(), line(message="state.read"), "START", since=now()))
    watched.handle(changed("tokens/k2v9x0q7m3c1d8f5a6b4.json"))

    team = watched.trail.group.split("/")[2]
    assert [one["Subject"] for one in watched.sns.published] == [
        f"Holdfast: {event} in team {team}" for event in ("state.written", "token.changed")
    ]
    assert 'id: "id0"' in watched.sns.published[0]["Message"]
    assert sorted(len(events) for events in watched.archived()) == [1, 2]
    assert sorted(map(str, watched.written())) == sorted(
        str(one) for each in watched.archived() for one in each
    )


def test_many_events_of_many_callers_do_not_keep_the_last_one_from_the_topic(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks) / 10)  # a message takes a tenth of a second
    monkeypatch.setattr(notification, "time", clock)

    watched.handle(delivery(*(line(principal=f"token:{number}") for number in range(150)), since=now()))

    assert len(watched.sns.published) == 150


def test_hundreds_of_events_of_one_caller_are_a_few_messages_with_their_number_however_they_arrive(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 1000.0)
    monkeypatch.setattr(sys.modules["audit_trail.handler"], "time", clock)
    for _ in range(5):
        watched.handle(delivery(line(principal="token:loud"), since=now()))
    watched.handle(delivery(*[line(principal="token:loud")] * 295, since=now()))
    watched.handle(delivery(line(principal="token:quiet"), since=now()))
    assert len(watched.written()) == 301
    bodies = [one["Message"] for one in watched.sns.published]
    assert len(bodies) == 10 + 4 + 1
    assert "token:quiet" in bodies[-1]
    clock.monotonic = lambda: 1000.0 + 3600

    watched.handle(delivery("START", since=now()))

    # The 300th is in the message itself.
    assert "got no message of their own. Their number is 139." in watched.sns.published[-1]["Message"]
    assert len(watched.sns.published) == len(bodies) + 1


def test_a_callers_own_broken_lock_is_in_the_trail_and_no_message(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["audit_trail.handler"], "_NOTIFIED", audit.NOTIFIED)
    broken = {"message": "lock.force_unlocked", "principal": "token:a", "lock_id": "one"}
    own, others, unheld = (
        line(**broken, held_by="token:a"),
        line(**broken, held_by="token:b", who="token:a"),
        line(**{**broken, "lock_id": None}),
    )
    of_another_program = line(**broken)

    watched.handle(delivery(own, others, unheld, of_another_program, since=now()))

    assert len(watched.written()) == 4
    first, second = (one["Message"] for one in watched.sns.published)
    assert 'held_by: "token:b"' in first
    assert "held_by" not in second


def test_a_delivery_without_events_is_neither_archived_nor_published(watched: Watched) -> None:
    watched.handle(delivery("START", since=now()))
    assert (watched.archived(), watched.sns.published) == ([], [])


@pytest.mark.parametrize("text", WORST.values(), ids=WORST)
def test_no_text_of_a_caller_keeps_an_event_from_the_topic(watched: Watched, text: str) -> None:
    watched.handle(delivery(line(state=text, who=text, reason=text), since=now()))
    (published,) = watched.sns.published
    assert published["Message"].isascii()


@pytest.mark.parametrize("error", [REFUSED, SILENT], ids=["refused", "down"])
def test_while_sns_fails_an_event_is_once_in_the_log_and_nothing_is_raised(
    watched: Watched, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    watched.sns.errors = [error] * 2
    watched.handle(delivery(line(), line(), since=now()))

    assert [event["id"] for event in watched.written()] == ["id0", "id1"]
    logged = vars(caplog.records[-1])
    assert (logged["message"], logged["messages"]) == ("notify.failed", 2)
    assert logged["error"] in ("InvalidParameter", "ConnectTimeoutError")
    assert "network/prod" not in str(logged)
    assert "secret" not in str(logged)


def test_what_the_log_did_not_accept_is_archived_once_but_not_published_and_raised(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, "_logs", "put_log_events", "ServiceUnavailableException")
    same = delivery(line(), since=now())
    for _ in range(2):  # as Lambda does
        with pytest.raises(ClientError, match="ServiceUnavailable"):
            watched.handle(same)
    assert ([len(events) for events in watched.archived()], watched.sns.published) == ([1], [])


def test_a_repeated_delivery_is_archived_once_and_published_with_the_same_id(watched: Watched) -> None:
    same = delivery(line(), since=now())
    for _ in range(2):
        watched.handle(same)

    assert len(watched.archived()) == 1
    bodies = {one["Message"] for one in watched.sns.published}
    assert (len(watched.sns.published), len(bodies)) == (2, 1)


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchBucket", "ConditionalRequestConflict"])
def test_an_archive_that_fails_is_raised_so_that_lambda_tries_again_but_the_topic_is_notified(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    fail(monkeypatch, "_s3", "put_object", code)
    with pytest.raises(ClientError, match=code):
        watched.handle(delivery(line(), since=now()))
    assert len(watched.written()) == len(watched.sns.published) == 1
