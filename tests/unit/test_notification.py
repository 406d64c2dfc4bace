"""Messages that anybody's text cannot suppress or use, and how they are published."""

import json
import re
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from holdfast import notification
from holdfast.audit import Event
from holdfast.notification import LONGEST, Message

WORST = {
    "line breaks": "a\r\nMore: holdfast delete\u2028\x0b\x00",
    "emoji": "\N{FIRE}" * LONGEST,
    "half of a pair": "\ud83d",
    "10 KB": "x" * 10_000,
    "mention": "<!channel> @here <@U123> &lt;!channel&gt;",
    "bare domain": "www.example.com/login ada@example.com *now* _or_ ~never~",
    "link": "http://example.com///x [text](//example.com) `$(id)`",
}
HELD: dict[str, object] = {
    "id": "3812",
    "event": "lock.force_unlocked",
    "state": "network/prod",
    "principal": "token:0123",
    "reason": "left behind",
    "serial": 4,
}


def test_a_message_says_what_happened_and_how_to_see_more() -> None:
    told = notification.of_event("payments", HELD)

    assert told.subject == "Holdfast: lock.force_unlocked in team payments"
    assert told.body.splitlines() == [
        told.subject,
        "",
        'id: "3812"',
        'state: "network/prod"',
        'principal: "token:0123"',
        'reason: "left behind"',
        "serial: 4",
        "",
        "More: holdfast audit --team payments network/prod",
    ]


def test_a_message_says_what_was_left_out_before_it_and_that_more_will_be() -> None:
    told = notification.of_event("payments", HELD, others=290, is_full=True)

    assert told.body.splitlines()[-3:] == [
        "Since the previous message, further events of this kind and principal got no message of their own. "
        "Their number is 290. "
        "In this hour, most further events of this kind get no message of their own. A later message says "
        "how many there were.",
        "",
        "More: holdfast audit --team payments --event lock.force_unlocked",
    ]


def test_names_of_states_times_and_ids_stay_readable() -> None:
    known = {
        "id": "a_1.b",
        "time": "2026-11-28T03:00:00.123+00:00",
        "state": "team_a/prod.eu",
        "version_id": "a.b_c~d",
        "source_ip": "203.0.113.5",
    }
    told = notification.of_event("payments", {"event": "state.deleted", **known})

    assert told.body.splitlines()[2:-2] == [f'{name}: "{value}"' for name, value in known.items()]


@pytest.mark.parametrize("text", WORST.values(), ids=WORST)
@pytest.mark.parametrize("field", HELD)
def test_a_text_can_neither_suppress_a_message_nor_mention_link_or_format_anything(
    field: str, text: str
) -> None:
    fields = {**HELD, "event": "state.deleted", field: text}
    if field == "event":  # it is always one of ours
        with pytest.raises(ValueError, match="name of an event"):
            notification.of_event("payments", fields)
        return
    told = notification.of_event("payments", fields)

    assert told.subject == "Holdfast: state.deleted in team payments"
    assert told.body.isascii()
    assert not re.search(r"[<>&@`\[\]]|//", told.body)
    lines = told.body.split("\n")
    assert len(lines) == len(fields) + 3
    (line,) = (line for line in lines if line.startswith(f"{field}: "))
    assert field == "id" or not re.search(r"[*~]|\w\.com|_or", line)  # nobody types an ID
    shown = json.loads(line.partition(": ")[2])
    assert shown.removesuffix("...") == text[:LONGEST]
    assert len(line) < 13 * LONGEST
    assert lines[-1].removeprefix("More: ") in {
        "holdfast audit --team payments network/prod",
        "holdfast audit --team payments --event state.deleted",
    }


@pytest.mark.parametrize("event", Event)
def test_sns_accepts_the_subject_of_every_event(event: Event) -> None:
    subject = notification.message("a" * 25, event, {}, "").subject
    assert subject.isascii()
    assert subject.isprintable()
    assert len(subject) < 100


class Sns:
    """A stub of SNS, which raises the given errors in turn."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.published: list[dict[str, Any]] = []

    def publish(self, **request: Any) -> None:
        if self.errors and (error := self.errors.pop(0)):
            raise error
        self.published.append(request)


REFUSED = ClientError({"Error": {"Code": "InvalidParameter", "Message": "secret"}}, "Publish")
SILENT = ConnectTimeoutError(endpoint_url="https://sns.example.com")
ONE = Message("state.deleted", "subject", "body")
PLENTY = 60_000


def test_a_message_is_published_with_its_event_to_filter_by() -> None:
    sns = Sns()
    assert notification.publish(sns, "topic", [ONE], PLENTY) == {}
    assert sns.published == [
        {
            "TopicArn": "topic",
            "Subject": "subject",
            "Message": "body",
            "MessageAttributes": {"event": {"DataType": "String", "StringValue": "state.deleted"}},
        }
    ]


@pytest.mark.parametrize(
    ("errors", "failed", "published"),
    [
        ([REFUSED], {"messages": 1, "error": "InvalidParameter"}, 2),
        ([None, SILENT], {"messages": 2, "error": "ConnectTimeoutError"}, 1),
        ([REFUSED, SILENT], {"messages": 3, "error": "ConnectTimeoutError"}, 0),
    ],
)
def test_a_failure_is_returned_and_never_raised(
    errors: list[Exception | None], failed: dict[str, Any], published: int
) -> None:
    sns = Sns(*errors)
    assert notification.publish(sns, "topic", [ONE] * 3, PLENTY) == failed
    assert len(sns.published) == published


@pytest.mark.parametrize(("left", "published"), [(PLENTY, 150), (23_000, 100), (2_000, 0)])
def test_messages_are_published_for_as_long_as_the_function_runs_and_for_half_a_minute_at_most(
    monkeypatch: pytest.MonkeyPatch, left: int, published: int
) -> None:
    sns = Sns()
    monkeypatch.setattr("time.monotonic", lambda: len(sns.published) / 5 + 0.1 * bool(sns.published))

    failed = notification.publish(sns, "topic", [ONE] * 200, left)

    assert len(sns.published) == published
    assert failed == {"messages": 200 - published, "error": "TooMany"}


def test_a_request_gives_up_after_two_seconds_and_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    client: Any = notification.connect()
    config = client.meta.config
    assert config.connect_timeout + config.read_timeout == 2
    assert config.retries["total_max_attempts"] == 1
