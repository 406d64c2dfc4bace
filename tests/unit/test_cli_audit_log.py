"""How `holdfast audit` finds the newest events and new ones, in a log of this process."""

import argparse
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from holdfast_cli.bucket import audit
from holdfast_cli.bucket.audit import Following, Log, Search
from holdfast_cli.clock import Clock
from holdfast_cli.commands import audit as command
from holdfast_cli.errors import CommandError, UnavailableError
from holdfast_cli.terminal import output
from tests.support.management import run

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
MILLISECOND = timedelta(milliseconds=1)
QUIET = output.Progress()


class MovedClock(Clock):
    """A clock of AWS that the test moves."""

    present = NOW
    is_heard = True

    def now(self) -> datetime:
        return self.present


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


class Logs:
    """CloudWatch Logs with one log, whose pages have at most two events and may be empty."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, dict[str, Any]]] = []
        self.asked: list[dict[str, Any]] = []
        self.errors: list[Exception] = []

    def add(self, event_id: str, happened: datetime, what: str = "state.written", **fields: str) -> None:
        time = happened.isoformat(timespec="milliseconds")
        event = {"id": event_id, "time": time, "event": what, **fields}
        self.lines.append((round(happened.timestamp() * 1000), event))

    def get_paginator(self, name: str, /) -> "Logs":
        assert name == "filter_log_events"
        return self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        self.asked.append(request)
        if self.errors:
            raise self.errors.pop(0)
        found = sorted(
            (time, json.dumps(event))
            for time, event in self.lines
            if request["startTime"] <= time <= request.get("endTime", time)
        )
        lines = [{"eventId": "unused", "timestamp": time, "message": message} for time, message in found]
        yield {"events": []}
        for start in range(0, len(lines), 2):
            yield {"events": lines[start : start + 2]}


@pytest.fixture
def logs() -> Logs:
    return Logs()


@pytest.fixture
def log(logs: Logs, clock: MovedClock) -> Log:
    return Log(logs, "payments", "eu-central-1", clock)


def search(since: datetime = NOW - 30 * DAY, until: datetime | None = None) -> Search:
    return Search({}, since, until)


# --- the newest ---------------------------------------------------------------------------------


@pytest.mark.parametrize("until", [None, NOW])
def test_the_newest_events_are_the_last_of_all_wherever_the_spans_that_are_read_border(
    logs: Logs, log: Log, until: datetime | None
) -> None:
    assert list(log.newest(search(until=until), 1, QUIET)) == []
    borders = [one["startTime"] for one in logs.asked]
    for border in borders:
        for offset in (-1, 0, 0, 1):
            happened = datetime.fromtimestamp((border + offset) / 1000, UTC)
            logs.add(f"{border + offset}", happened)  # the middle one is delivered twice
    every = list(log.read(search(until=until)))
    assert len(every) == 3 * len(borders) - 1  # one is before the first of all

    for count in range(1, len(every) + 2):
        assert list(log.newest(search(until=until), count, QUIET)) == every[-count:]


def test_the_spans_join_from_the_end_to_the_beginning_and_grow(logs: Logs, log: Log) -> None:
    log.newest(search(NOW - 3650 * DAY, NOW), 1, QUIET)

    starts = [one["startTime"] for one in logs.asked]
    assert [one["endTime"] for one in logs.asked] == [
        round(NOW.timestamp() * 1000) - 1,
        *(start - 1 for start in starts[:-1]),
    ]
    assert starts[-1] == round((NOW - 3650 * DAY).timestamp() * 1000)
    assert len(starts) == 11


def test_older_events_are_not_read_once_there_are_enough(logs: Logs, log: Log) -> None:
    for number in range(20):
        logs.add(f"{number}", NOW - number * MINUTE)

    assert list(log.newest(search(), 3, QUIET)) == ["2", "1", "0"]
    assert list(log.newest(search(), 11, QUIET)) == [f"{number}" for number in range(10, -1, -1)]
    assert len(logs.asked) == 2


def test_an_event_of_a_clock_that_is_fast_is_among_the_newest(logs: Logs, log: Log) -> None:
    logs.add("fast", NOW + 4 * MINUTE)

    assert list(log.newest(search(), 1, QUIET)) == ["fast"]


def test_the_newest_since_the_first_day_that_there_is_are_found(logs: Logs, log: Log) -> None:
    logs.add("old", NOW - 9 * DAY)

    assert list(log.newest(search(datetime(1, 1, 1, tzinfo=UTC)), 2, QUIET)) == ["old"]


def test_writes_alone_are_filtered_by_cloudwatch_and_with_more_by_this_command(logs: Logs, log: Log) -> None:
    logs.add("read", NOW - MINUTE, "state.read", state="a")
    logs.add("a", NOW - MINUTE, state="a")
    logs.add("b", NOW - MINUTE, state="b")
    writes = ("state.written", "state.deleted")

    assert list(log.read(Search({}, NOW - DAY, kinds=writes))) == ["a", "b"]
    assert list(log.read(Search({"state": "a"}, NOW - DAY, kinds=writes))) == ["a"]
    assert [one["filterPattern"] for one in logs.asked] == [
        '{ ($.event = "state.written") || ($.event = "state.deleted") }',
        '"a"',
    ]


# --- new ones -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "count", "begun"),
    [
        (NOW - 30 * DAY, 0, []),
        (NOW - 30 * DAY, 2, ["hour", "minute"]),
        (NOW - 30 * DAY, None, ["day", "hour", "minute"]),
        (NOW - 2 * MINUTE, None, ["minute"]),
        (NOW - 2 * MINUTE, 2, ["minute"]),
    ],
)
def test_following_begins_with_as_many_as_were_asked_for_and_goes_on_with_what_comes(
    logs: Logs, log: Log, since: datetime, count: int | None, begun: list[str]
) -> None:
    for name, age in {"day": DAY, "hour": 60 * MINUTE, "minute": MINUTE}.items():
        logs.add(name, NOW - age)
    following = Following(log, search(since))

    assert list(following.begin(count, QUIET)) == begun
    assert list(following.new()) == []
    logs.add("new", NOW)
    assert list(following.new()) == ["new"]
    assert list(following.new()) == []


def test_a_new_event_is_found_once_however_late_or_often(logs: Logs, log: Log, clock: MovedClock) -> None:
    following = Following(log, search())
    following.begin(0, QUIET)
    seen = []
    for number in range(60):  # two minutes
        clock.present = NOW + number * timedelta(seconds=2)
        logs.add(f"at once {number}", clock.present)
        logs.add(f"late {number}", clock.present - audit.LATEST + MINUTE)
        logs.add(f"at once {number // 2}", NOW + number // 2 * timedelta(seconds=2))  # once more
        seen.append(list(following.new()))

    assert seen == [[f"late {number}", f"at once {number}"] for number in range(60)]


def test_no_more_ids_are_remembered_than_those_of_minutes(logs: Logs, log: Log, clock: MovedClock) -> None:
    following = Following(log, search())
    for number in range(100):
        logs.add(f"{number}", NOW - number * MINUTE)
    assert len(following.begin(None, QUIET)) == 100

    following.new()

    assert len(following._known) == 11  # noqa: SLF001 no public attribute shows the known events
    clock.present = NOW + DAY
    following.new()
    following.new()
    assert len(following._known) == 0  # noqa: SLF001


def test_what_came_while_aws_did_not_respond_is_found_later(logs: Logs, log: Log, clock: MovedClock) -> None:
    following = Following(log, search())
    following.begin(0, QUIET)
    logs.errors = [EndpointConnectionError(endpoint_url="https://logs")]
    logs.add("meanwhile", NOW + MINUTE)
    clock.present = NOW + DAY
    with pytest.raises(UnavailableError):
        following.new()

    assert list(following.new()) == ["meanwhile"]


def response(code: str, status: int) -> ClientError:
    metadata: Any = {"HTTPStatusCode": status}
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": metadata}, "FilterLogEvents")


class EndedError(Exception):
    """The test has seen enough."""


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([], []),
        ([EndpointConnectionError(endpoint_url="https://logs")], ["AWS does not respond"]),
        ([response("ThrottlingException", 400)] * 2, ["ThrottlingException"]),
        ([response("ServiceUnavailableException", 503)], ["ServiceUnavailable"]),
    ],
)
def test_following_goes_on_after_errors_that_pass_and_tells_them_once(
    logs: Logs,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    errors: list[Exception],
    told: list[str],
) -> None:
    def pause(_: float) -> None:
        """Have AWS fail after each pause, once for each error; then add an event."""
        if errors:
            logs.errors = [errors.pop()]
        elif not logs.lines:
            logs.add("new", NOW, state="a")
        else:
            raise EndedError

    monkeypatch.setattr("time.sleep", pause)
    errors = [*errors]
    with pytest.raises(EndedError):
        command.follow(log, search(), asked(), "", 2)  # the loop has no end

    printed = capsys.readouterr()
    assert [line.split() for line in printed.out.splitlines()] == [
        ["2026-11-22T12:00:00Z", "state.written", "-", "a", "-"]
    ]
    lines = printed.err.splitlines()
    assert len(lines) == len(told)
    assert all(part in line for part, line in zip(told, lines, strict=True))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (response("ExpiredTokenException", 400), "The AWS session has expired"),
        (response("AccessDeniedException", 400), "AWS refused FilterLogEvents"),
        (
            response("ResourceNotFoundException", 400),
            "There is no log group /holdfast/payments/audit .*`holdfast configure list` shows",
        ),
    ],
)
def test_following_ends_with_errors_that_stay(
    logs: Logs, log: Log, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: logs.errors.append(error))

    with pytest.raises(CommandError, match=line) as raised:
        command.follow(log, search(), asked(), "", 2)

    assert not isinstance(raised.value, UnavailableError)


def asked() -> argparse.Namespace:
    return argparse.Namespace(json=False, limit=None, since=None, long=False, state=None)


# --- its lines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [None, 40])
def test_a_line_is_one_line_in_a_pipe_and_whole_words_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int | None
) -> None:
    event = {
        "time": NOW.isoformat(timespec="milliseconds"),
        "event": "lock.acquired",
        "principal": "token:k2v9x0q7m3c1d8f5a6b4",
        "state": "network/prod",
        "lock_id": "4fe1e2a0-7fd3-48d1-a1a4-9ad1cf0d6c38",
        "operation": "OperationTypeApply",
        "who": "ada\x1b@laptop",
    }
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    lines = command._line(event).splitlines()  # noqa: SLF001

    assert " ".join(lines).split() == [
        *("2026-11-22T12:00:00Z", "lock.acquired", "token:k2v9x0q7m3c1d8f5a6b4", "network/prod"),
        "lock_id=4fe1e2a0-7fd3-48d1-a1a4-9ad1cf0d6c38",
        *("operation=OperationTypeApply", "who=ada?@laptop"),
    ]
    assert all(len(line) <= (columns or 1000) or " " not in line.strip() for line in lines)
    assert lines[0].startswith("2026-11-22T12:00:00Z  lock.acquired")
    assert all(line.startswith("  ") for line in lines[1:])
    assert [line.startswith("  ") for line in lines] == [False, *[True] * (len(lines) - 1)]
    assert (len(lines) > 1) == (columns is not None)


EVENTS = tuple(
    {"time": time.isoformat(), "event": kind, "principal": "token:k2v9", "source_ip": "192.0.2.1", **fields}
    for time, kind, fields in (
        (NOW - timedelta(days=9), "lock.acquired", {"who": "kim@desk", "operation": "OperationTypeApply"}),
        (
            NOW - timedelta(hours=5),
            "lock.force_unlocked",
            {"who": "bea@desk", "held_by": "token:x", "reason": "the job is gone"},
        ),
        (
            NOW - timedelta(minutes=9),
            "request.refused",
            {"owner": "ada", "error": "not_allowed", "principal": "token:a"},
        ),
        (
            NOW - timedelta(seconds=8),
            "state.written",
            {"state": "a/b", "serial": 12, "serial_before": 11, "operation": "state-mv"},
        ),
        (NOW - timedelta(seconds=7), "state.written", {"state": "a/b", "serial": 15, "serial_before": 12}),
        (
            NOW,
            "state.restored",
            {"state": "a/b", "serial": 16, "operation": "restore", "restored_serial": 12, "reason": "undo"},
        ),
        (NOW, "state.unfrozen", {"held_by": "token:z", "principal": "token:o", "owner": "olga"}),
        (NOW, "state.frozen", {"held_by": "token:k2v9", "reason": 70 * "x"}),
        (NOW, "request.refused", {"error": "locked", "held_by": "token:o"}),
        (NOW, "sign_in.refused", {"principal": None, "subject": "arn:aws:sts::1:x"}),
        (NOW, "states.listed", {"principal": None, "time": "at dusk"}),
    )
)


def test_a_terminal_gets_an_event_in_words_with_its_age_names_and_details(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    assert (
        command.table(EVENTS, NOW, asked())
        == f"""\
AGE      EVENT            WHO               STATE  DETAIL
9 d      lock acquired    "kim@desk"        -      apply
5 h      lock broken      token k2v9        -      held by "bea@desk": the job is gone
9 min    request refused  ada               -      the role or scope does not allow it
8 s      state written    token k2v9        a/b    mv, serial 12
7 s      state written    token k2v9        a/b    serial 12 to 15
0 s      state restored   token k2v9        a/b    serial 16, restored from serial 12: undo
0 s      state unfrozen   olga              -      frozen by token z
0 s      state frozen     token k2v9        -      {70 * "x"}
0 s      request refused  token k2v9        -      locked by olga
0 s      sign-in refused  arn:aws:sts::1:x
at dusk  states listed"""
    )


def test_a_pipe_has_the_codes_of_events() -> None:
    piped = command.table(EVENTS, NOW, asked()).splitlines()

    assert [re.split(r"  +", line)[1] for line in piped] == ["EVENT", *[one["event"] for one in EVENTS]]


def test_the_words_of_an_event_as_an_option_name_its_code() -> None:
    done = run(None, "audit", "--event", "Lock broken")

    assert done.returncode == 2
    assert "'Lock broken' is not the code of an event; type lock.force_unlocked" in done.stderr


def test_an_event_that_follows_has_its_time_on_a_terminal_too(
    logs: Logs, log: Log, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    logs.add("1", NOW - MINUTE, owner="ada", principal="token:k2v9", state="network/prod", serial="3")
    brief, long = asked(), asked()
    long.long = True

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupt)

    printed = []
    for args in (brief, long):
        args.limit = 5
        with pytest.raises(KeyboardInterrupt):
            command.follow(log, search(), args, "", 2)
        printed.append(capsys.readouterr().out.split())

    assert printed[0][1:] == ["state", "written", "ada", "network/prod", "serial", "3"]
    assert printed[1][1:] == ["state.written", "ada", "(token:k2v9)", "network/prod", "serial=3"]
    assert printed[0][0] == printed[1][0]
