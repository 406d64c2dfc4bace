"""`holdfast audit`, against moto's server, and a server of ours that answers page by page."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from holdfast.audit import FIELDS
from holdfast.names import RESERVED
from holdfast_cli.bucket import audit
from holdfast_cli.commands.audit import DETAILS, NOT_DETAILS
from tests.support import api_stub
from tests.support.api_stub import Reply
from tests.support.cli_account import REGION, Aws, unread
from tests.support.free_port import free_port
from tests.unit.test_cli_token import ENDLESS

ADA = "token:k2v9x0q7m3c1d8f5a6b4"
NOW = datetime.now(UTC).replace(microsecond=0)  # other tests may run between here and these


def event(event_id: str, minutes_ago: float, what: str, **fields: object) -> dict[str, object]:
    """An event as the audit log has it."""
    time = NOW - timedelta(minutes=minutes_ago)
    return {
        "id": event_id,
        "time": time.isoformat(timespec="milliseconds"),
        "event": what,
        "function": "backend",
        "principal": ADA,
        **fields,
    }


WRITTEN = event("1", 300, "state.written", state="network/prod", serial=12, version_id="v12", lock_id="l1")
READ = event("2", 200, "state.read", state="network/prod/eu", version_id="v12")
REFUSED = event("3", 100, "sign_in.refused", reason="expired", source_ip="192.0.2.1", principal=None)


def found(aws: Aws, *arguments: str) -> list[Any]:
    """IDs of the events that the command prints."""
    lines = aws.output("audit", "--json", *arguments).splitlines()
    return [json.loads(line)["id"] for line in lines]


@pytest.mark.parametrize("who", [ADA, ADA.removeprefix("token:")])
def test_a_token_is_found_by_its_id_also_where_it_was_refused(aws: Aws, who: str) -> None:
    tried = event("4", 50, "sign_in.refused", token=ADA.removeprefix("token:"), principal=None)
    other = event("5", 40, "sign_in.refused", token="0" * 20, principal=None)
    aws.make_audit_log("payments", REFUSED, WRITTEN, tried, other)

    assert found(aws, "--principal", who) == ["1", "4"]


def test_events_are_a_table_oldest_first(aws: Aws) -> None:
    aws.make_audit_log("payments", REFUSED, WRITTEN, READ)

    head, *lines = aws.output("audit").splitlines()

    assert head.split() == ["TIME", "EVENT", "PRINCIPAL", "STATE", "DETAILS"]
    times = [f"{NOW - timedelta(minutes=ago):%Y-%m-%dT%H:%M:%SZ}" for ago in (300, 200, 100)]
    assert [" ".join(line.split()) for line in lines] == [
        f"{times[0]} (5 h ago) state.written {ADA} network/prod serial=12 version_id=v12 lock_id=l1",
        f"{times[1]} (3 h ago) state.read {ADA} network/prod/eu version_id=v12",
        f"{times[2]} (1 h ago) sign_in.refused - - reason=expired source_ip=192.0.2.1",
    ]


@pytest.mark.parametrize(
    ("option", "value", "ids"),
    [
        ("--event", "state.read", ["2"]),
        ("--principal", ADA, ["1", "2"]),
        ("--principal", ADA[:-1], []),
        ("--version-id", "v12", ["1", "2"]),
        ("--version-id", "network/prod", []),
        ("--lock-id", "l1", ["1"]),
        ("--limit", "1", ["3"]),
        ("--limit", "2", ["2", "3"]),
        ("--limit", "4", ["1", "2", "3"]),
    ],
)
def test_an_option_keeps_events_that_have_exactly_that_in_exactly_that_field_or_the_newest(
    aws: Aws, option: str, value: str, ids: list[str]
) -> None:
    aws.make_audit_log("payments", WRITTEN, READ, REFUSED)

    assert found(aws, option, value) == ids


def test_a_state_keeps_the_events_of_exactly_that_state(aws: Aws) -> None:
    aws.make_audit_log("payments", WRITTEN, READ, REFUSED)

    assert found(aws, "network/prod") == ["1"]
    assert found(aws, "network/pro") == []


def test_writes_are_what_changed_a_state_and_the_newest_of_them_can_be_asked_for(aws: Aws) -> None:
    deleted = event("4", 90, "state.deleted", state="network/prod")
    same = event("5", 80, "state.unchanged", state="network/prod")
    probe = event("6", 70, "state.written", state=f"{RESERVED}/{32 * 'a'}")
    aws.make_audit_log("payments", WRITTEN, READ, REFUSED, deleted, same, probe)

    assert found(aws, "--writes") == ["1", "4"]
    assert found(aws, "--writes", "--limit", "1") == ["4"]
    assert found(aws, "--event", "state.written") == ["1", "6"]
    assert found(aws)[-1] == "6"
    assert found(aws, "network/prod", "--writes", "--until", "2h") == ["1"]


def test_who_is_known_by_the_full_subject_alone_is_found_by_that(aws: Aws) -> None:
    arn = "arn:aws:sts::123456789012:assumed-role/Developer/ada"
    refused = event("1", 5, "sign_in.refused", principal=None, subject=arn)
    digested = event("2", 4, "state.read", principal="arn-sha256:0f:ada", subject=arn)
    aws.make_audit_log("payments", refused, digested, READ)

    assert found(aws, "--principal", arn) == ["1", "2"]
    assert found(aws, "--principal", "arn-sha256:0f:ada") == ["2"]
    assert arn in aws.output("audit", "--event", "sign_in.refused")


def test_a_value_that_json_writes_otherwise_is_found_too(aws: Aws) -> None:
    odd = 'a "lock" \\ of Büro'
    aws.make_audit_log("payments", event("1", 5, "lock.acquired", lock_id=odd), READ)

    assert found(aws, "--lock-id", odd) == ["1"]


def test_since_and_until_bound_the_time(aws: Aws) -> None:
    old = event("0", 60 * 24 * 9, "state.read")  # the log refuses events older than 14 days
    aws.make_audit_log("payments", old, WRITTEN, READ, REFUSED)

    assert found(aws, "--since", "250m") == ["2", "3"]
    assert found(aws, "--until", "150m") == ["0", "1", "2"]
    assert found(aws, "--since", "250m", "--until", "150m") == ["2"]
    assert found(aws, "--since", "10d", "--until", f"{NOW - timedelta(days=5):%Y-%m-%d}") == ["0"]
    assert found(aws, "--since", "1970-01-01") == ["0", "1", "2", "3"]


def test_an_event_that_was_delivered_twice_is_printed_once(aws: Aws) -> None:
    aws.make_audit_log("payments", WRITTEN, READ, WRITTEN)

    assert found(aws) == ["1", "2"]


def test_no_event_is_said_so_and_is_no_failure(aws: Aws) -> None:
    aws.make_audit_log("payments", READ)

    assert "no matching event since" in aws.output("audit", "--event", "state.deleted")
    assert aws.output("audit", "--event", "state.deleted", "--json") == ""


def test_control_characters_of_an_event_do_not_reach_the_terminal(aws: Aws) -> None:
    aws.make_audit_log("payments", event("1", 5, "lock.acquired", lock_id="\x1b[2J\u202e", state="x"))

    assert "lock_id=?[2J?" in aws.output("audit")
    assert "\x1b" not in aws.output("audit", "--json")


def test_what_a_client_types_cannot_pass_for_another_field_of_an_event(aws: Aws) -> None:
    typed = "ada@laptop held_by=token:ops role=maintainer"
    broken = event("1", 5, "lock.force_unlocked", lock_id=typed, held_by="token:bob", who=typed)
    aws.make_audit_log("payments", broken)

    *_, row = aws.output("audit").splitlines()

    assert f'lock_id="{typed}" held_by=token:bob who="{typed}"' in row


def test_a_named_team_needs_no_stack_to_be_looked_up(aws: Aws) -> None:
    aws.make_audit_log("other", READ)

    assert found(aws, "--team", "other") == ["2"]


def test_an_identity_without_permission_and_logs_that_nobody_serves_are_one_line(aws: Aws) -> None:
    aws.make_audit_log("payments", READ)
    nobody = {"AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": f"http://127.0.0.1:{free_port()}"}

    assert "does not respond" in aws.failure("audit", "--team", "payments", **nobody)
    line = aws.failure_of("iam:GetUser", "audit", "--team", "payments")
    assert "does not allow FilterLogEvents" in line


def test_a_team_without_a_log_is_one_line_that_says_what_to_do(aws: Aws) -> None:
    line = aws.failure("audit")

    assert "no log group /holdfast/payments/audit" in line
    assert REGION in line
    assert "npx cdk deploy Holdfast-payments" in line


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--since", "1h", "--until", "2h"], "before --until."),
        (["--until", "2020-01-01"], "By default, --since is 30d ago and --until is now"),
    ],
)
def test_a_span_that_ends_before_it_begins_is_wrong_usage(
    aws: Aws, arguments: list[str], reason: str
) -> None:
    done = aws.run("audit", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr


def test_following_prints_what_was_asked_for_first_at_once_and_ends_quietly_with_ctrl_c(aws: Aws) -> None:
    aws.make_audit_log("payments", READ, WRITTEN)
    [example] = [line.split() for line in aws.output("audit", "--help").splitlines() if line in ENDLESS]

    with subprocess.Popen(
        example, env=aws.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        line = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert (*following.communicate(timeout=60), following.returncode) == ("", "", 130)

    assert line == (
        f"{NOW - timedelta(minutes=300):%Y-%m-%dT%H:%M:%SZ}  state.written        {ADA}  network/prod  "
        "serial=12 version_id=v12 lock_id=l1\n"
    )


def test_a_reader_that_went_away_ends_it_quietly(aws: Aws) -> None:
    aws.make_audit_log("payments", READ)

    assert unread(aws.environment, "audit") == (0, [])
    assert unread(aws.environment, "audit", "--follow", "--limit", "1") == (0, [])


def test_every_audit_field_has_its_place_in_the_table_or_is_left_to_json() -> None:
    assert sorted([*DETAILS, *NOT_DETAILS]) == sorted(FIELDS)


# --- gaps ------------------------------------------------------------------------------------------


def numbered(minutes_ago: float, number: int, stream: str = "one") -> dict[str, object]:
    name = f"{stream} {minutes_ago} {number}"
    return event(name, minutes_ago, "state.read", stream=stream, number=number)


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [
        ([7, 8, 9], []),
        ([7, 9], [(8, 8)]),
        ([1, 5, 6, 9], [(2, 4), (7, 8)]),
        ([1, 2, 1, 2], []),  # another process with the same log stream
        ([3, 4, 2, 3], [(1, 1)]),
        ([], []),
    ],
)
def test_a_number_that_is_missing_between_two_events_of_a_stream_is_a_gap(
    numbers: list[int], missing: list[tuple[int, int]]
) -> None:
    events: list[dict[str, Any]] = [numbered(60 - at, number) for at, number in enumerate(numbers)]
    others = [numbered(60 - at, at + 4, "two") for at in range(9)]

    assert [(gap.first, gap.last) for gap in audit.gaps([READ, *events, *others])] == missing


def test_gaps_are_named_and_are_a_failure_and_the_newest_minutes_are_left_out(aws: Aws) -> None:
    aws.make_audit_log("payments", numbered(60, 1), numbered(50, 2), READ, numbered(20, 3), numbered(1, 9))
    assert aws.output("audit", "--gaps").startswith("No event is missing between the numbered events")
    assert "Numbered events: 3." in aws.output("audit", "--gaps")
    assert aws.output("audit", "--gaps", "--json") == ""
    aws.make_audit_log("other", numbered(60, 1), numbered(50, 2), numbered(20, 5))

    done = aws.run("audit", "--gaps", "--team", "other")

    assert done.returncode == 1
    assert done.stdout.splitlines()[1].split()[:5] == ["backend", "one", "3", "to", "4"]
    assert "2 events are missing" in done.stderr
    (gap,) = aws.run("audit", "--gaps", "--team", "other", "--json").stdout.splitlines()
    assert (json.loads(gap)["first"], json.loads(gap)["last"]) == (3, 4)


@pytest.mark.parametrize("more", [["a"], ["--writes"], ["--limit", "1"], ["--follow"]])
def test_gaps_are_of_all_events(aws: Aws, more: list[str]) -> None:
    done = aws.run("audit", "--gaps", *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--gaps checks all events" in done.stderr


# --- what moto does not do: pages, and responses that are cut short --------------------------------


@contextmanager
def pages(*bodies: bytes) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """A server that answers with these pages: the environment that names it, and its requests."""
    asked: list[dict[str, Any]] = []
    with api_stub.running() as stub:
        stub.reply(*map(partial(Reply, 200), (page(), *bodies)))  # one second is read to see AWS's clock
        yield {"AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": stub.address}, asked
        every = [json.loads(request.body) for request in stub.asked]
        asked += [one for one in every if one.get("endTime", 0) - one["startTime"] != 999]


def page(*events: dict[str, object], more: str | None = None) -> bytes:
    lines = [{"eventId": str(one.get("id")), "timestamp": 1, "message": json.dumps(one)} for one in events]
    return json.dumps({"events": lines} | ({"nextToken": more} if more else {})).encode()


def test_all_pages_are_read_also_after_an_empty_one_and_sorted(aws: Aws) -> None:
    with pages(page(READ, more="a"), page(more="b"), page(WRITTEN)) as (environment, asked):
        printed = aws.output("audit", "--json", "--team", "payments", **environment)

    assert [json.loads(line)["id"] for line in printed.splitlines()] == ["1", "2"]
    assert [one.get("nextToken") for one in asked] == [None, "a", "b"]


def test_the_log_is_asked_for_the_values_in_quotes_and_for_the_time(aws: Aws) -> None:
    with pages(page()) as (environment, asked):
        arguments = ("network/prod", "--principal", ADA, "--lock-id", 'odd"one')
        span = ("--since", "2026-11-01", "--until", "2026-11-02")
        aws.output("audit", "--team", "payments", *span, *arguments, **environment)

    midnight = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000)
    assert asked == [
        {
            "logGroupName": "/holdfast/payments/audit",
            "startTime": midnight,
            "endTime": midnight + 24 * 3600 * 1000 - 1,
            "filterPattern": f'"network/prod" "{ADA.removeprefix("token:")}"',
        }
    ]


def test_a_value_that_is_longer_than_a_filter_may_be_is_left_to_this_command(aws: Aws) -> None:
    subject = f"https://issuer.example.com#{'x' * 1000}"
    wanted = event("1", 5, "state.read", state="network/prod", subject=subject)
    with pages(page(wanted, READ)) as (environment, asked):
        arguments = ("network/prod", "--principal", subject, "--event", "state.read")
        printed = aws.output("audit", "--json", "--team", "payments", *arguments, **environment)

    assert [json.loads(line)["id"] for line in printed.splitlines()] == ["1"]
    assert [one["filterPattern"] for one in asked] == ['"network/prod" "state.read"']


def test_without_a_time_the_last_30_days_are_asked_for(aws: Aws) -> None:
    with pages(page()) as (environment, asked):
        aws.output("audit", "--team", "payments", **environment)

    [one] = asked
    since = datetime.fromtimestamp(one["startTime"] / 1000, UTC)
    assert abs(datetime.now(UTC) - timedelta(days=30) - since) < timedelta(minutes=2)
    assert "endTime" not in one


@pytest.mark.parametrize("body", [b"", b"{}", b'{"events": [{}]}'])
def test_an_answer_that_is_cut_short_is_no_end_of_the_log(aws: Aws, body: bytes) -> None:
    with pages(page(READ, more="a"), body) as (environment, _):
        line = aws.failure("audit", "--team", "payments", **environment)

    assert "returned only a part of the events in /holdfast/payments/audit" in line


def test_a_line_that_is_no_event_is_passed_over(aws: Aws) -> None:
    lines = [
        {"eventId": "x", "timestamp": 1, "message": text}
        for text in ("", "text", "[]", '"x"', json.dumps(READ))
    ]
    with pages(json.dumps({"events": lines}).encode()) as (environment, _):
        printed = aws.output("audit", "--json", "--team", "payments", **environment)

    assert json.loads(printed) == READ
