"""The route that lists events of the audit trail, from event to response, on a CloudWatch Logs server."""

import contextlib
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from holdfast import audit, audit_log
from holdfast.access import Caller, Grant, Role
from tests.contract.conftest import Answer, Handle, Server, error, started
from tests.support.documents import OPERATOR
from tests.support.events import Context, manage_request

HOUR = 3_600_000
NETWORK = Caller("token:network", (Grant(Role.MAINTAINER, ("network/*",)),))


@dataclass
class Activity:
    """The function, and a log group to which events are written.

    `module` queries CloudWatch Logs. `now` is the start of the test in milliseconds since 1970.
    """

    handle: Handle
    module: Any
    logs: Any
    group: str
    now: int = 0

    def write(self, *events: dict[str, Any], ago: int = 0) -> None:
        """Write events a millisecond apart. `ago` is the age of the first in milliseconds."""
        for number, event in enumerate(events):
            self.write_line(json.dumps(event), self.now - ago + number)

    def write_line(self, message: str, timestamp: int) -> None:
        where = {"logGroupName": self.group, "logStreamName": audit_log.stream("backend", timestamp)}
        with contextlib.suppress(self.logs.exceptions.ResourceAlreadyExistsException):
            self.logs.create_log_stream(**where)
        self.logs.put_log_events(**where, logEvents=[{"timestamp": timestamp, "message": message}])

    def ask(self, caller: Caller = OPERATOR, **query: str) -> Answer:
        return self.handle(manage_request("GET", "activity", caller=caller, query=query), Context())

    def page(self, caller: Caller = OPERATOR, **query: str) -> tuple[list[Any], str | None]:
        answer = self.ask(caller, **query)
        assert answer["statusCode"] == 200, answer
        document = json.loads(answer["body"])
        assert set(document) == {"events", "next"}
        return document["events"], document["next"]

    def all(self, caller: Caller = OPERATOR, **query: str) -> list[Any]:
        """Return the events of every page."""
        found, cursor = self.page(caller, **query)
        while cursor:
            more, cursor = self.page(caller, **{**query, "cursor": cursor})
            found += more
        return found


def event(state: str | None = "network/prod", **more: Any) -> dict[str, Any]:
    found = {"id": uuid4().hex, "event": "state.written", "function": "backend", **more}
    return found if state is None else {**found, "state": state}


@pytest.fixture(scope="module")
def function(server: Server) -> Iterator[Activity]:
    settings = {"HOLDFAST_BUCKET": "holdfast-activity", "AWS_ENDPOINT_URL": server.direct.meta.endpoint_url}
    with started(server, "management", **settings) as handlers:
        module = import_module("management.activity")
        yield Activity(handlers["management"], module, boto3.Session().client("logs"), "")


@pytest.fixture
def activity(function: Activity, monkeypatch: pytest.MonkeyPatch) -> Iterator[Activity]:
    """The function, with a log group for this test alone."""
    group = f"/holdfast/{uuid4().hex}/audit"
    monkeypatch.setattr(function.module, "_AUDIT_GROUP", group)
    function.logs.create_log_group(logGroupName=group)
    yield replace(function, group=group, now=int(time.time() * 1000))
    function.logs.delete_log_group(logGroupName=group)


def ids(events: list[Any]) -> list[str]:
    return [found["id"] for found in events]


def test_the_newest_event_comes_first_with_its_fields_and_no_others(activity: Activity) -> None:
    old = event(principal="token:ada", trust=None, more="than is told")
    new = event(serial=7)
    activity.write(old, new, ago=HOUR)
    newest, oldest = activity.all()
    assert newest == new
    assert oldest == {name: old[name] for name in ("id", "event", "function", "principal", "state")}
    assert set(newest) <= {*audit.FIELDS, *audit.ADDED_FIELDS}


def test_an_event_that_was_delivered_twice_is_told_once_and_what_is_no_event_never(
    activity: Activity,
) -> None:
    once = event()
    activity.write(once, once, ago=2)
    for message in ("START", "[]", "{"):
        activity.write_line(message, activity.now)
    assert ids(activity.all()) == [once["id"]]


def test_a_caller_sees_events_of_states_in_the_scope_and_others_only_with_every_state_in_it(
    activity: Activity,
) -> None:
    events = [event(), event("dns/prod"), event(None), event("network//odd"), event("network/eu")]
    activity.write(*events, ago=100)
    assert ids(activity.all()) == [one["id"] for one in reversed(events)]
    assert ids(activity.all(NETWORK)) == [events[4]["id"], events[0]["id"]]


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.MAINTAINER, Role.READER])
def test_a_caller_sees_the_freezes_of_patterns_that_the_scope_covers_whole(
    activity: Activity, role: Role
) -> None:
    seen = [event("network/*", event="state.frozen"), event("network/*/eu")]
    activity.write(*seen, event("*"), event("net*/prod"), event("network//*"), event("x/*" * 99), ago=100)
    caller = Caller("token:a", (Grant(role, ("network/*",)), Grant(Role.AUDITOR, ("dns",))))
    expected = [] if role is Role.READER else [seen[1]["id"], seen[0]["id"]]
    assert ids(activity.all(caller)) == expected


def test_the_events_of_one_state_are_not_those_of_one_whose_name_begins_alike(activity: Activity) -> None:
    mine = event()
    activity.write(mine, event("network/prod/eu"), event(who="network/prod", state="dns"), ago=100)
    assert ids(activity.all(state="network/prod")) == [mine["id"]]


def test_a_time_span_includes_its_beginning_and_excludes_its_end(activity: Activity) -> None:
    second = activity.now // 1000 * 1000
    ids_by_ago = {}
    for ago in (2000, 1000, 0):
        one = event()
        activity.write(one, ago=activity.now - second + ago)
        ids_by_ago[ago] = one["id"]
    since, until = (
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000)) for at in (second - 2000, second)
    )
    assert ids(activity.all(since=since, until=until)) == [ids_by_ago[1000], ids_by_ago[2000]]


def test_without_a_time_the_last_24_hours_are_searched(activity: Activity) -> None:
    recent = event()
    activity.write(event(), ago=25 * HOUR)
    activity.write(recent, ago=23 * HOUR)
    assert ids(activity.all()) == [recent["id"]]


# --- pages ----------------------------------------------------------------------------------------------


@dataclass
class Logs:
    """A CloudWatch Logs that returns few events per response, and sometimes none.

    `events` are timestamp and ID, in order of time. `size` is the most events of a response. The request
    number `fails_at` raises an error. Each search begins with `empty` responses without events, and a search
    that names no streams with `others` more. The streams of the `idle` days do not exist.
    """

    events: list[tuple[int, str]]
    size: int
    requests: int = 0
    fails_at: int = 0
    empty: int = 0
    others: int = 0
    idle: frozenset[str] = frozenset()
    kinds: list[str] = field(default_factory=list)

    def filter_log_events(self, **asked: Any) -> dict[str, Any]:
        self.requests += 1
        if self.requests == self.fails_at:
            raise ConnectTimeoutError(endpoint_url="logs")
        names = asked.get("logStreamNames")
        if names is not None and {name.rpartition("/")[2] for name in names} & self.idle:
            raise refusal("ResourceNotFoundException", 400)
        assert names is None or 0 < len(names) <= 100
        within = [
            one
            for one in self.events
            if asked["startTime"] <= one[0] <= asked["endTime"]
            and (names is None or audit_log.stream("cloud", one[0]) in names)
        ]
        kind = "all" if names is None else "named"
        self.kinds.append(kind)
        of, _, number = asked.get(
            "nextToken", f"{kind}:{-self.empty - self.others * (names is None)}"
        ).partition(":")
        assert of == kind, "a token continues only the request that returned it"
        first = int(number)
        if first < 0:
            return {"events": [], "nextToken": f"{kind}:{first + 1}"}
        shown = [] if self.requests % 3 == 0 else within[first : first + self.size]
        after = first + len(shown)
        lines = [
            {"timestamp": at, "eventId": name, "message": json.dumps({"id": name})} for at, name in shown
        ]
        return {"events": lines, **({"nextToken": f"{kind}:{after}"} if after < len(within) else {})}


@pytest.fixture
def busy(activity: Activity, monkeypatch: pytest.MonkeyPatch) -> Logs:
    """Return the events of a log with short and long gaps, many in the same millisecond."""
    seed = random.Random(16)  # noqa: S311 the same in every run
    times = [activity.now - 60 * HOUR + int(seed.expovariate(1 / HOUR)) for _ in range(150)]
    times += [activity.now - seed.randrange(HOUR) for _ in range(150)]
    times += [activity.now - 30 * 60_000] * 30
    logs = Logs([(at, f"id{number}") for number, at in enumerate(sorted(times))], size=7)
    monkeypatch.setattr(activity.module, "connect", lambda: logs)
    monkeypatch.setattr(activity.module, "PAGE", 20)
    return logs


def assert_every_event_is_on_one_page(activity: Activity, busy: Logs) -> None:
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        sent = busy.requests
        events, cursor = activity.page(since="2026-01-01T00:00:00Z", cursor=cursor)
        assert busy.requests - sent <= activity.module.MAX_REQUESTS
        assert busy.requests < 10_000
        assert len(events) <= 30  # as many as happened in one millisecond
        found += ids(events)
    when = {name: at for at, name in busy.events}
    assert sorted(found) == sorted(when)
    assert [when[name] for name in found] == sorted(when.values(), reverse=True)


def test_every_event_is_on_one_page_whatever_cloudwatch_returns_at_once(
    activity: Activity, busy: Logs
) -> None:
    assert_every_event_is_on_one_page(activity, busy)


def test_no_event_is_lost_if_the_time_of_a_page_ends_at_any_moment(
    activity: Activity, busy: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = random.Random(17)  # noqa: S311 the same in every run
    monkeypatch.setattr(activity.module._Budget, "is_spent", property(lambda _: spent.random() < 0.3))  # noqa: SLF001
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        events, cursor = activity.page(since="2026-01-01T00:00:00Z", cursor=cursor)
        found += ids(events)
    assert sorted(found) == sorted(name for _, name in busy.events)


def test_fifty_empty_responses_before_the_first_event_do_not_keep_a_search_from_its_end(
    activity: Activity, busy: Logs
) -> None:
    busy.events, busy.empty = busy.events[-120:], 50
    assert_every_event_is_on_one_page(activity, busy)


def test_a_search_names_the_streams_of_its_days_and_leaves_those_of_years_alone(
    activity: Activity, busy: Logs
) -> None:
    busy.others = 50
    found, cursor = activity.page()
    assert found
    assert cursor
    assert busy.requests <= activity.module.MAX_REQUESTS


@pytest.mark.parametrize("others", [0, 50])
def test_days_without_events_are_searched_without_names(activity: Activity, busy: Logs, others: int) -> None:
    """Their streams do not exist, so that CloudWatch Logs refuses to search them by name."""
    busy.others = others
    with_events = {audit_log.stream("", at) for at, _ in busy.events}
    days = {audit_log.stream("", activity.now - ago * 24 * HOUR) for ago in range(400)}
    busy.idle = frozenset(day.removeprefix("/") for day in days - with_events)
    assert busy.idle
    assert_every_event_is_on_one_page(activity, busy)
    assert "named" in busy.kinds[busy.kinds.index("all") :]


@pytest.mark.parametrize("empty", [0, 50])
def test_a_stream_that_was_never_created_hides_no_event(activity: Activity, busy: Logs, empty: int) -> None:
    busy.empty, busy.events = empty, busy.events[-60:]
    busy.idle = frozenset(audit_log.stream("", at).removeprefix("/") for at, _ in busy.events)
    assert_every_event_is_on_one_page(activity, busy)


def test_a_millisecond_with_more_events_than_a_page_may_ask_for_is_on_several_pages(
    activity: Activity, busy: Logs
) -> None:
    busy.events = [(activity.now - HOUR, f"id{number}") for number in range(150)]
    assert sorted(ids(activity.all())) == sorted(name for _, name in busy.events)


def test_a_token_that_cloudwatch_does_not_know_is_bad_input(
    activity: Activity, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise refusal("InvalidParameterException", 400)

    monkeypatch.setattr(activity.module.connect(), "filter_log_events", fail)
    assert error(activity.ask(cursor="4-5-1-made/up+token==")) == (400, "invalid_request")
    assert error(activity.ask()) == (500, "storage_refused")


def test_a_fault_in_the_middle_of_a_page_keeps_what_was_found(activity: Activity, busy: Logs) -> None:
    busy.events = [(activity.now - 5 * HOUR, "old"), (activity.now - 60_000, "new")]
    busy.fails_at = 2
    events, cursor = activity.page()
    assert ids(events) == ["new"]
    assert cursor
    assert ids(activity.all(cursor=cursor)) == ["old"]


# --- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"state": "network//prod"}, 400, "invalid_state_name"),
        ({"since": "yesterday"}, 400, "invalid_request"),
        ({"since": "2026-11-20T14:00:00"}, 400, "invalid_request"),
        ({"until": "7"}, 400, "invalid_request"),
        ({"since": "9999-12-31T00:00:00Z"}, 400, "invalid_request"),
        ({"since": "2026-11-20T14:00:00Z", "until": "2026-11-20T14:00:00Z"}, 400, "invalid_request"),
        ({"cursor": "x"}, 400, "invalid_request"),
        ({"cursor": "5-4-1"}, 400, "invalid_request"),
        ({"cursor": "4-5-0"}, 400, "invalid_request"),
        ({"cursor": "-1-5-1"}, 400, "invalid_request"),
        ({"cursor": f"0-{10**15}-1"}, 400, "invalid_request"),
        ({"cursor": "0-\N{ARABIC-INDIC DIGIT FIVE}-1"}, 400, "invalid_request"),
        ({"status": "network/prod"}, 400, "invalid_request"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    activity: Activity, query: dict[str, str], status: int, code: str
) -> None:
    assert error(activity.ask(NETWORK, **query)) == (status, code)


def test_times_beyond_every_calendar_find_nothing(activity: Activity) -> None:
    activity.write(event())
    assert activity.all(until="0001-01-01T00:00:00Z") == []
    assert activity.all(since="0001-01-01T00:00:00Z", until="1970-01-02T00:00:00Z") == []
    assert len(activity.all(until="9999-12-31T23:59:59Z")) == 1


def refusal(code: str, status: int) -> ClientError:
    response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "FilterLogEvents")


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (refusal("ThrottlingException", 400), 503, "undecided"),
        (refusal("ServiceUnavailableException", 503), 503, "undecided"),
        (refusal("SomethingNew", 500), 503, "undecided"),
        (ConnectTimeoutError(endpoint_url="logs"), 503, "undecided"),
        (refusal("AccessDeniedException", 400), 500, "storage_refused"),
        (refusal("ResourceNotFoundException", 400), 500, "storage_refused"),
    ],
)
def test_a_fault_of_cloudwatch_is_told_from_one_of_the_deployment(
    activity: Activity, monkeypatch: pytest.MonkeyPatch, fault: Exception, status: int, code: str
) -> None:
    def fail(**_: object) -> None:
        raise fault

    monkeypatch.setattr(activity.module.connect(), "filter_log_events", fail)
    assert error(activity.ask()) == (status, code)


@pytest.mark.parametrize("cut", [{}, {"events": [{"timestamp": 1, "eventId": "x"}]}])
def test_a_response_that_was_cut_short_is_not_taken_for_no_events(
    activity: Activity, monkeypatch: pytest.MonkeyPatch, cut: dict[str, Any]
) -> None:
    monkeypatch.setattr(activity.module.connect(), "filter_log_events", lambda **_: cut)
    assert error(activity.ask()) == (503, "undecided")


def test_the_log_says_whose_activity_was_read(activity: Activity, log: list[str]) -> None:
    activity.ask(state="network/prod")
    line = json.loads(log[-1])
    assert (line["message"], line["state"]) == ("activity.read", "network/prod")
