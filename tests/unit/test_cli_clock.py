"""A laptop whose clock is an hour wrong gets the right ages and the right limits, by the server's clock."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.access import Grant, Role
from holdfast.identity import tokens
from holdfast_cli.clock import Clock
from tests.support import api_stub
from tests.support.api_stub import ApiStub
from tests.support.cli_account import Aws
from tests.support.management import NAME, answer, failure, lock, output, page

Now = Callable[[], datetime]
NEAR = timedelta(seconds=30)


@pytest.fixture(params=[-1, 1], ids=["the laptop is fast", "the laptop is slow"], autouse=True)
def now(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Now:
    """The clock of all servers, an hour from this machine's."""

    def present() -> datetime:
        return datetime.now(UTC) + timedelta(hours=request.param)

    monkeypatch.setattr(
        BaseHTTPRequestHandler, "date_time_string", lambda *_: format_datetime(present(), usegmt=True)
    )
    return present


def written(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def item(name: str, modified: datetime) -> dict[str, object]:
    return {"name": name, "size": 1, "modified": written(modified), "deleted": False, "lock": None}


def test_only_old_states_and_locks_are_shown_with_their_age(stub: ApiStub, now: Now) -> None:
    ages = {"old": timedelta(minutes=150), "young": timedelta(minutes=90)}
    stub.reply(page("states", *(item(name, now() - age) for name, age in ages.items())))

    _, *rows = output(stub, "state", "list", "--older-than", "2h").splitlines()
    assert [(row.split()[0], "Z (2 h ago)  " in row) for row in rows] == [("old", True)]

    held = ({"name": name, **lock(since=written(now() - age))} for name, age in ages.items())
    stub.reply(page("locks", *held))
    _, *rows = output(stub, "lock", "list", "--older-than", "2h").splitlines()
    assert [(row.split()[0], "Z (2 h ago)  " in row) for row in rows] == [("old", True)]


def test_a_freeze_ends_so_long_from_the_servers_now_and_not_in_its_past(stub: ApiStub, now: Now) -> None:
    frozen = {"id": 32 * "b", "reason": "incident", "until": None}
    freeze = ("state", "freeze", NAME, "--reason", "incident", "--until")
    stub.reply(answer({"name": NAME, "freeze": frozen}))
    wanted = now() + timedelta(minutes=30)

    for until in ("30m", written(wanted)):
        output(stub, *freeze, until)
        sent = datetime.fromisoformat(json.loads(stub.asked[-1].body)["until"])
        assert abs(sent - wanted) < NEAR
    sent_before = len(stub.asked)
    assert "has passed already" in failure(stub, *freeze, written(now() - NEAR), code=2)
    assert [asked.path for asked in stub.asked[sent_before:]] == ["/health"]


def test_activity_begins_so_long_before_the_servers_now(stub: ApiStub, now: Now) -> None:
    event = {"id": "1", "time": (now() - timedelta(minutes=100)).isoformat(), "event": "state.written"}
    stub.reply(page("events", event))

    assert "Z (1 h ago)  state.written" in output(stub, "activity", "--since", "2h")

    since = parse_qs(urlsplit(stub.asked[-1].path).query)["since"][0]
    assert abs(now() - timedelta(hours=2) - datetime.fromisoformat(since)) < NEAR


def test_the_audit_log_is_read_from_so_long_before_the_now_of_aws(aws: Aws, now: Now) -> None:
    with api_stub.running() as logs:
        logs.reply(answer({"events": []}))
        variables = {"AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": logs.address}
        aws.output("audit", "--team", "payments", "--since", "2h", "--until", "30m", **variables)
        asked = json.loads(logs.asked[-1].body)

    for member, ago in (("startTime", 120), ("endTime", 30)):
        bound = datetime.fromtimestamp(asked[member] / 1000, UTC)
        assert abs(now() - timedelta(minutes=ago) - bound) < NEAR


def test_a_token_expires_and_is_listed_by_the_clock_of_aws(aws: Aws, now: Now) -> None:
    made = json.loads(
        aws.output("token", "create", "--role", "reader", "--scope", "*", "--expires", "90m", "--json")
    )
    assert abs(datetime.fromisoformat(made["expires"]) - now() - timedelta(minutes=90)) < NEAR
    token, _ = tokens.create(
        [Grant(Role.READER, ("*",))],
        description="",
        created_by="ada",
        now=now() - timedelta(days=1),
        expires=now() - NEAR,
    )
    aws.put_record("payments", token.key, token.to_json())

    _, *rows = aws.output("token", "list").splitlines()

    [row] = rows
    assert row.split()[0] == made["id"]
    assert re.search(r"Z \(in 1 h (29|30) min\)  active", row)
    assert "status       expired" in aws.output("token", "show", token.id)
    line = aws.run("token", "rotate", made["id"], "--expires", written(now() - NEAR)).stderr
    assert "has passed already" in " ".join(line.split())


@pytest.mark.parametrize(("typed", "hour"), [("2099-01-31T09:00", 0), ("2099-01-31T09:00z", 9)])
def test_every_option_takes_a_time_without_an_offset_as_local(
    stub: ApiStub, aws: Aws, typed: str, hour: int
) -> None:
    meant = datetime(2099, 1, 31, hour, tzinfo=UTC)
    tokyo = {"TZ": "Asia/Tokyo"}
    stub.reply(answer({"events": [], "name": NAME, "freeze": {"id": "b", "reason": "x", "until": None}}))

    output(stub, "activity", "--until", typed, **tokyo)
    assert parse_qs(urlsplit(stub.asked[-1].path).query)["until"] == [written(meant)]
    output(stub, "state", "freeze", NAME, "--reason", "x", "--until", typed, **tokyo)
    assert json.loads(stub.asked[-1].body)["until"] == written(meant)
    create = ("token", "create", "--role", "reader", "--scope", "*", "--json", "--expires", typed)
    assert json.loads(aws.output(*create, **tokyo))["expires"] == meant.isoformat()
    variables = {"AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": stub.address, **tokyo}
    aws.output("audit", "--team", "payments", "--since", "1d", "--until", typed, **variables)
    assert json.loads(stub.asked[-1].body)["endTime"] == meant.timestamp() * 1000 - 1


def test_a_response_without_a_date_leaves_the_clock_as_it_is(now: Now) -> None:
    clock = Clock()
    clock.hear("yesterday")
    assert abs(clock.now() - datetime.now(UTC)) < NEAR
    clock.hear(format_datetime(now(), usegmt=True))
    clock.hear("")
    assert abs(clock.now() - now()) < NEAR
