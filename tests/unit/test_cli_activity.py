"""`holdfast activity`: what its options select, and how it follows a trail whose events may arrive late."""

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.names import RESERVED
from holdfast_cli.bucket.audit import LATEST
from holdfast_cli.commands.table import parser
from holdfast_cli.main import main
from tests.support import terminal
from tests.support.api_stub import ApiStub, Asked, Reply
from tests.support.cli_account import HOLDFAST
from tests.support.management import answer, environment, failure, page, refusal, run

ADA = "token:k2v9x0q7m3c1d8f5a6b4"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PAUSE = timedelta(seconds=5)


class Trail:
    """An API whose trail a test writes. It adds an event for each search, as the real one does.

    `present` is its clock. A page has `size` events, the newest first. `faults` are sent first.
    """

    size = 2

    def __init__(self) -> None:
        self.present = NOW
        self.events: list[dict[str, str]] = []
        self.faults: list[Reply] = []
        self.asked: list[dict[str, list[str]]] = []

    def add(self, name: str, time: datetime, event: str = "state.written", **fields: str) -> None:
        text = time.isoformat(timespec="milliseconds")
        self.events.append({"id": name, "time": text, "event": event, "principal": ADA, **fields})

    def reply(self, asked: Asked) -> Reply:
        url = urlsplit(asked.path)
        query = parse_qs(url.query)
        if url.path == "/health":
            return answer({"status": "ok"})
        self.asked.append(query)
        if self.faults:
            return self.faults.pop(0)
        since = datetime.fromisoformat(query["since"][0])
        found = [one for one in self.events if datetime.fromisoformat(one["time"]) >= since]
        found.sort(key=lambda one: one["time"], reverse=True)
        first = int(query.get("cursor", ["0"])[0])
        if not first:
            self.add(f"search {len(self.asked)}", self.present, "activity.read")
        more = str(first + self.size) if len(found) > first + self.size else None
        return page("events", *found[first : first + self.size], next_=more)


@pytest.fixture
def trail(stub: ApiStub, monkeypatch: pytest.MonkeyPatch) -> Trail:
    found = Trail()
    monkeypatch.setattr(stub, "next_reply", found.reply)
    monkeypatch.setattr(
        BaseHTTPRequestHandler, "date_time_string", lambda *_: format_datetime(found.present, usegmt=True)
    )
    return found


Follow = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def follow(
    stub: ApiStub, trail: Trail, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Follow:
    """Follow a trail. Between two searches the next step of the test is done; after the last comes Ctrl-C."""
    for name, value in environment(stub).items():
        monkeypatch.setenv(name, value)

    def run(steps: Iterator[None], *arguments: str) -> tuple[int, list[str], str]:
        def sleep(seconds: float) -> None:
            if seconds == PAUSE.total_seconds():  # others are before a retry
                trail.present += PAUSE
                try:
                    next(steps)
                except StopIteration:
                    raise KeyboardInterrupt from None

        monkeypatch.setattr("time.sleep", sleep)
        code = main(["activity", "--follow", "--json", *arguments])
        printed = capsys.readouterr()
        return code, [json.loads(line)["id"] for line in printed.out.splitlines()], printed.err

    return run


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), ["written", "deleted", "no scope", "denied"]),
        (("--all",), ["read", "none", "probe", "written", "deleted", "no scope", "denied"]),
        (("--writes",), ["written", "deleted"]),
        (("--writes", "--limit", "1"), ["deleted"]),
        (("--event", "state.read"), ["read"]),
        (("--principal", "token:other"), ["written"]),
        (("--principal", ADA.removeprefix("token:")), ["deleted", "no scope", "denied"]),
        (("--principal", ADA, "--writes"), ["deleted"]),
        (("--event", "state.restored"), []),
        (("--version-id", "v1"), ["written"]),
        (("--lock-id", "l1"), ["deleted"]),
    ],
)
def test_options_select_events_over_all_pages(
    stub: ApiStub, trail: Trail, options: tuple[str, ...], found: list[str]
) -> None:
    trail.add("read", NOW - 4 * PAUSE, "state.read")
    trail.add("none", NOW - 4 * PAUSE, "request.refused", error="no_state")
    trail.add("probe", NOW - 4 * PAUSE, state=f"{RESERVED}/{32 * 'a'}")
    trail.add("written", NOW - 3 * PAUSE, principal="token:other", version_id="v1")
    trail.add("deleted", NOW - 2 * PAUSE, "state.deleted", lock_id="l1")
    trail.add("no scope", NOW - 2 * PAUSE, "request.refused", error="not_allowed")
    trail.add("denied", NOW - PAUSE, "sign_in.refused", principal="", token=ADA.removeprefix("token:"))
    trail.events[-1].pop("principal")

    shown = json.loads(run(stub, "activity", *options, "--json").stdout)

    assert [one["id"] for one in shown] == found


def test_a_terminal_gets_a_line_an_event_and_a_pipe_or_long_gets_all_fields(
    stub: ApiStub, trail: Trail
) -> None:
    trail.add("1", NOW - timedelta(minutes=9), owner="ada", state="network/prod", role="writer")
    plain = environment(stub, TERM="dumb")

    def shown(*options: str, columns: int = 80) -> list[list[str]]:
        lines = terminal.run([HOLDFAST, "activity", "--writes", *options], plain, columns=columns)
        return [line.split() for line in lines.splitlines()]

    assert shown() == [
        ["AGE", "EVENT", "WHO", "STATE", "DETAIL"],
        ["9", "min", "state", "written", "ada", "network/prod"],
    ]
    assert shown("network/prod") == [
        ["AGE", "EVENT", "WHO", "DETAIL"],
        ["9", "min", "state", "written", "ada"],
    ]
    assert "network/prod" in run(stub, "activity", "network/prod", "--writes").stdout
    piped = run(stub, "activity", "--writes").stdout
    assert "(9 min ago)" in piped
    assert "role=writer" in piped
    assert "  state.written  " in piped
    assert run(stub, "activity", "--writes", "--long").stdout == piped
    assert shown("--long", columns=400) == [line.split() for line in piped.splitlines()]


def test_a_machine_counts_only_for_events_of_its_own_lock(stub: ApiStub, trail: Trail) -> None:
    times = (NOW - timedelta(minutes=minutes) for minutes in range(11, 0, -1))
    other, job = "token:z9v9x0q7m3c1d8f5a6b4", "oidc:https://gitlab.com#project_path:acme/network"
    here = {"source_ip": "192.0.2.1"}
    refused = {"error": "locked", **here}
    trail.add("1", next(times), "lock.acquired", who="deploy@build", lock_id="l1", **here)
    trail.add("2", next(times), "request.refused", held_by=ADA, **refused)
    trail.add("3", next(times), "request.refused", held_by=ADA, lock_id="l1", **refused)
    trail.add("4", next(times), "state.read", **here)
    trail.add("5", next(times), "lock.released", lock_id="l1", source_ip="198.51.100.9")
    trail.add("6", next(times), "lock.force_unlocked", held_by=ADA, who="deploy@build", lock_id="l1", **here)
    trail.add("7", next(times), "lock.force_unlocked", who="s3@build", lock_id="l2", **here)
    trail.add("8", next(times), "lock.released", lock_id="l2", **here)
    trail.add("9", next(times), "session.created", principal=job, trust="network-main")
    trail.add("10", next(times), "request.refused", principal=other, held_by=job, **refused)
    trail.add("11", next(times), "lock.released", principal=other, lock_id="l1")

    rows = [re.split(r"  +", line) for line in shown(stub, trail, "--all", columns=120)]

    assert [(row[2], *row[4:]) for row in rows] == [
        ('"deploy@build"',),
        ("token k2v9x0q7…", "locked by token k2v9x0q7…"),
        ("token k2v9x0q7…", 'locked by "deploy@build"'),
        ("token k2v9x0q7…",),
        ('"deploy@build"',),
        ("token k2v9x0q7…", 'held by "deploy@build"'),
        ("token k2v9x0q7…",),
        ("token k2v9x0q7…",),
        ("trust network-main",),
        ("token z9v9x0q7…", "locked by trust network-main"),
        ("token z9v9x0q7…",),
    ]


def test_a_terminal_says_of_which_token_a_record_was_changed(stub: ApiStub, trail: Trail) -> None:
    operation = "ObjectCreated:Put"
    trail.add("1", NOW - 3 * PAUSE, "token.changed", operation=operation, token="z9v9x0q7m3c1d8f5a6b4")
    trail.add("2", NOW - 2 * PAUSE, "trust.changed", operation=operation)
    trail.add("3", NOW - PAUSE, "trust.changed", operation="ObjectRemoved:DeleteMarkerCreated")

    lines = terminal.run([HOLDFAST, "activity"], environment(stub, TERM="dumb"), columns=80).splitlines()

    place = lines[0].index("DETAIL")
    assert [line[place:] for line in lines[1:]] == ["token z9v9x0q7…", "", "removed"]


def test_a_terminal_has_words_for_what_a_pipe_has_codes_for(stub: ApiStub, trail: Trail) -> None:
    trail.size = 50
    trail.add("1", NOW - 8 * PAUSE, "request.refused", error="not_allowed", operation="OperationTypeApply")
    trail.add("2", NOW - 7 * PAUSE, "request.refused", error="unlock_undecided")
    trail.add("3", NOW - 6 * PAUSE, "request.failed", error="KeyError")
    trail.add("4", NOW - 5 * PAUSE, "sign_in.refused", error="not_allowed", reason="unknown_or_wrong")
    trail.add("5", NOW - 4 * PAUSE, "state.restored", reason="not_allowed")  # typed by a person
    trail.add("6", NOW - 3 * PAUSE, "state.deleted", operation="ObjectRemoved:DeleteMarkerCreated")
    trail.add("7", NOW - 2 * PAUSE, "lock.released", trust="ci-1")
    trail.add("8", NOW - PAUSE, "session.created", trust="ci-1", who="runner@fv-az1")

    lines = terminal.run([HOLDFAST, "activity"], environment(stub, TERM="dumb"), columns=120).splitlines()

    place = lines[0].index("DETAIL")
    assert [line[place:] for line in lines[1:]] == [
        "the role or scope does not allow it",
        "the outcome is unknown",
        "a fault of Holdfast",
        "unknown ID or wrong secret",
        "not_allowed",
        "deleted",
        "",
        "trust ci-1",
    ]
    piped = run(stub, "activity").stdout
    assert "error=not_allowed" in piped
    assert "reason=unknown_or_wrong" in piped
    assert "operation=ObjectRemoved:DeleteMarkerCreated" in piped


def shown(stub: ApiStub, trail: Trail, *options: str, columns: int = 80) -> list[str]:
    """Return the rows that a terminal shows."""
    trail.size = 200
    plain = environment(stub, TERM="dumb")
    return terminal.run([HOLDFAST, "activity", *options], plain, columns=columns).splitlines()[1:]


def test_at_80_columns_at_most_one_event_of_ten_takes_two_lines(stub: ApiStub, trail: Trail) -> None:
    people = ("ada@example.com", "bea@example.com", "carl@example.com")
    places = ("payments/gateway", "payments/ledger", "network/transit", "data/warehouse", "platform/cluster")
    names = [f"{place}/{stage}" for place in places for stage in ("dev", "staging", "prod")]
    times = (NOW - timedelta(minutes=minutes) for minutes in range(95, 0, -1))
    for number, name in enumerate(names):
        owner = people[number % len(people)]
        of_lock = {"state": name, "owner": owner, "principal": f"token:{owner}", "lock_id": f"l{number}"}
        apply = {"operation": "OperationTypeApply"}
        trail.add(f"1 {name}", next(times), "sign_in.accepted", owner=owner, principal=f"token:{owner}")
        trail.add(f"2 {name}", next(times), "lock.acquired", who="x@y", **of_lock, **apply)
        trail.add(f"3 {name}", next(times), "state.read", **of_lock)
        trail.add(f"4 {name}", next(times), "state.written", serial="12", **of_lock, **apply)
        trail.add(f"5 {name}", next(times), "lock.released", **of_lock)
    ada = {"owner": "ada@example.com", "principal": "token:ada"}
    job = {
        "principal": "oidc:https://token.actions.githubusercontent.com#repo:acme/network:ref:refs/heads/main"
    }
    trail.add("6", next(times), "session.created", trust="network-main", **job)
    trail.add("7", next(times), "sign_in.accepted", trust="network-main", **job)
    trail.add("8", next(times), "state.deleted", state="apps/search/dev", reason="the service is gone", **ada)
    trail.add("9", next(times), "request.refused", state=names[0], error="locked", owner=people[2])
    trail.add("10", next(times), "state.frozen", state=names[2], reason="key ceremony, ask on-call", **ada)
    trail.add("11", next(times), "lock.force_unlocked", state=names[2], reason="the runner was killed", **ada)

    for options in ((), ("--all",), ("--writes",)):
        lines = shown(stub, trail, *options, "--limit", "200")
        below = [line for line in lines if line.startswith(" ")]
        assert max(map(len, lines)) <= 80
        assert len(lines) - len(below) >= len(names)
        assert len(below) * 10 <= len(lines) - len(below), below


@pytest.mark.parametrize(
    ("machines", "columns", "shown_as"),
    [
        (("deploy@build-agent-03", "runner@ci-runner-17"), 80, ("deploy@…ent-03", "runner@…ner-17")),
        (("deploy@build-agent-03", "runner@ci-runner-17"), 100, None),
        (("deploy@build-agent-03", "deploy@buitd-agent-03"), 80, None),  # cut, they would look alike
    ],
)
def test_the_names_of_machines_are_cut_so_that_events_take_one_line(
    stub: ApiStub, trail: Trail, machines: tuple[str, str], columns: int, shown_as: tuple[str, str] | None
) -> None:
    for number in range(10, 50):
        state = f"platform/{('observability', 'eks')[number % 2]}/prod"
        lock = {"who": machines[number // 2 % 2], "lock_id": f"l{number}"}
        trail.add(f"{number}", NOW - timedelta(minutes=60 - number), state=state, serial=f"{number}", **lock)

    lines = [line for line in shown(stub, trail, columns=columns) if not line.startswith(" ")]

    assert {re.split(r"  +", line)[2] for line in lines} == {f'"{each}"' for each in shown_as or machines}
    assert (len({line.find("  serial") for line in lines}) == 1) == (shown_as is not None or columns > 80)
    assert machines[0] in run(stub, "activity").stdout


def test_details_that_would_take_a_second_line_are_cut_at_their_ends(stub: ApiStub, trail: Trail) -> None:
    reason = "the build runner is gone, ask the team"
    of = {"state": "payments/gateway/prod", "owner": "bea@example.com"}
    trail.add("1", NOW - timedelta(minutes=60), "lock.force_unlocked", **of, reason=reason)
    trail.add("2", NOW - timedelta(minutes=59), "lock.force_unlocked", **of)
    lines = shown(stub, trail)

    assert len(lines) == 2
    assert sum(line.endswith("  the build runner…") for line in lines) == 1
    assert reason in " ".join(" ".join(shown(stub, trail, "--long")).split())


def test_a_terminal_shows_the_freeze_of_a_pattern_once_and_an_unfreeze_of_a_state_by_its_name(
    stub: ApiStub, trail: Trail
) -> None:
    frozen = {"freeze": "f1", "reason": "incident 4711", "owner": "ada"}
    times = (NOW - timedelta(minutes=minutes) for minutes in range(20, 0, -1))
    for number, name in enumerate(("network/*", "network/dns", "network/eu", "network/*", "network/us")):
        trail.add(f"1 {number}", next(times), "state.frozen", state=name, **frozen)
    trail.add("2", next(times), "state.frozen", state="app", freeze="f2", owner="ada")
    trail.add("3", next(times), "state.unfrozen", state="network/dns", freeze="f1", owner="ada")
    trail.add("4", next(times), "state.unfrozen", state="network/eu", freeze="f1", owner="ada")
    trail.add("5", next(times), "state.frozen", state="x/*", freeze="f3", owner="ada", reason="none yet")
    trail.add("6", next(times), "state.frozen", state="y/a", freeze="f4", owner="ada")
    trail.add("7", next(times), "state.frozen", state="y/*", freeze="f4", owner="ada")

    assert [re.split(r"  +", line) for line in shown(stub, trail)] == [
        ["20 min", "state frozen", "ada", "network/*", "3 states: incident 4711"],
        ["15 min", "state frozen", "ada", "app"],
        ["14 min", "state unfrozen", "ada", "network/dns"],
        ["13 min", "state unfrozen", "ada", "network/eu"],
        ["12 min", "state frozen", "ada", "x/*", "none yet"],
        ["10 min", "state frozen", "ada", "y/*", "1 state"],
    ]
    assert run(stub, "activity").stdout.count("state.frozen") == 9


def test_who_is_the_owner_else_the_client_of_the_same_lock_else_the_trust_record(
    stub: ApiStub, trail: Trail
) -> None:
    times = (NOW - timedelta(minutes=minutes) for minutes in range(9, 0, -1))
    owned, job = "token:z9v9x0q7m3c1d8f5a6b4", "oidc:https://gitlab.com#project_path:acme/network"
    trail.add("1", next(times), "lock.acquired", who="ci@one", lock_id="l1", source_ip="192.0.2.1")
    trail.add("2", next(times), "lock.acquired", who="ci@two", lock_id="l2", source_ip="192.0.2.1")
    trail.add("3", next(times), "lock.released", lock_id="l1", source_ip="192.0.2.1")
    trail.add("4", next(times), "lock.released", lock_id="l2", source_ip="192.0.2.9")
    trail.add("5", next(times), "session.created", source_ip="192.0.2.1")
    trail.add("6", next(times), "lock.acquired", principal=owned, owner="ada", who="ada@desk", lock_id="l3")
    trail.add("7", next(times), "lock.released", principal=owned, lock_id="l3")
    trail.add("8", next(times), "lock.released", principal="token:other", lock_id="l1")
    trail.add("9", next(times), "session.created", principal=job, trust="network-main")

    assert [re.split(r"  +", line)[2] for line in shown(stub, trail)] == [
        *('"ci@one"', '"ci@two"', '"ci@one"', '"ci@two"', "token k2v9x0q7…"),
        *("ada", "ada", "token other", "trust network-main"),
    ]


def test_each_new_event_is_printed_once_however_late_or_often_it_arrives(
    trail: Trail, follow: Follow
) -> None:
    trail.add("before", NOW - timedelta(hours=1))
    trail.size = 50
    expected, times = [], []

    def steps() -> Iterator[None]:
        for number in range(50):  # 25 minutes, more than an event may be late
            trail.present += 5 * PAUSE
            times.append(trail.present)
            trail.add(f"at once {number}", trail.present)
            trail.add(f"late {number}", trail.present - LATEST + PAUSE)  # older than the last one seen
            trail.add(f"at once {number // 2}", times[number // 2])  # delivered again
            expected.extend([f"late {number}", f"at once {number}"])
            yield

    assert follow(steps()) == (130, expected, "")


def test_what_happened_while_the_api_did_not_respond_is_printed_afterwards(
    trail: Trail, follow: Follow
) -> None:
    def steps() -> Iterator[None]:
        trail.add("lost", trail.present)
        trail.faults = [Reply(lost=True)] * 3
        yield
        trail.present += timedelta(hours=1)
        trail.faults = [refusal(503, "undecided", "CloudWatch Logs did not return the trail.")] * 3
        yield
        trail.faults = [refusal(429, "too_many_requests", "")] * 3
        yield
        trail.add("later", trail.present)
        yield

    code, printed, told = follow(steps())

    assert (code, printed) == (130, ["lost", "later"])
    [line] = told.splitlines()
    assert (
        "The command continues to search for new events after an error: The connection to 127.0.0.1" in line
    )


def test_credentials_that_ended_end_it(trail: Trail, follow: Follow) -> None:
    def steps() -> Iterator[None]:
        trail.faults = [Reply(401)]
        yield

    code, printed, told = follow(steps())

    assert (code, printed) == (1, [])
    assert "does not accept the credentials" in told


def test_the_api_is_asked_for_the_state_and_the_time(stub: ApiStub, trail: Trail) -> None:
    span = ("--since", "2026-11-01", "--until", "2026-11-02")

    run(stub, "activity", "network/prod", *span)

    times = {"since": ["2026-11-01T00:00:00Z"], "until": ["2026-11-02T00:00:00Z"]}
    assert trail.asked == [{"state": ["network/prod"], **times}]


def test_a_time_that_ends_before_it_begins_is_wrong_usage(stub: ApiStub, trail: Trail) -> None:
    said = failure(stub, "activity", "--since", "1h", "--until", "2h", code=2)

    assert said == "holdfast: --since must be before --until."
    assert trail.asked == []


def test_activity_and_audit_select_events_alike() -> None:
    commands = parser().commands()

    def typed(command: str) -> set[str]:
        group = commands[command]
        return {word for action in group.actions() for word in (action.option_strings or [action.dest])}

    connect = {"--address", "--profile", "--team", "--region"}
    assert typed("audit") - connect - {"--gaps"} == typed("activity") - connect - {"--all"}
    assert "holdfast activity" in commands["audit"].format_help()
    assert "holdfast audit" in commands["activity"].format_help()


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ((), ["new"]),
        (("--limit", "1"), ["recent", "new"]),
        (("--since", "2h"), ["hour", "recent", "new"]),
        (("--since", "2h", "--principal", "token:other"), ["hour"]),
        (("--event", "activity.read"), ["search 1", "search 2"]),
    ],
)
def test_it_begins_with_what_was_asked_for_and_leaves_out_its_own_searches_unless_these_are(
    trail: Trail, follow: Follow, options: tuple[str, ...], printed: list[str]
) -> None:
    trail.add("day", NOW - timedelta(days=1))
    trail.add("hour", NOW - timedelta(hours=1), principal="token:other")
    trail.add("recent", NOW - PAUSE)

    def steps() -> Iterator[None]:
        trail.add("new", trail.present)
        yield
        yield

    assert follow(steps(), *options)[1][: len(printed)] == printed
    assert all("state" not in query for query in trail.asked)


def test_ctrl_c_ends_it_quietly(stub: ApiStub, trail: Trail) -> None:
    trail.present = datetime.now(UTC)
    trail.add("first", trail.present)
    command = [str(HOLDFAST), "activity", "--follow", "--limit", "1"]

    with subprocess.Popen(
        command, env=environment(stub), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        line = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert (*following.communicate(timeout=60), following.returncode) == ("", "", 130)

    assert f"state.written        {ADA}  -  -\n" in line
