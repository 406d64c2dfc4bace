"""A user names a version of a state by its ID, its serial or a time. The API resolves it."""

import re
from datetime import UTC, datetime

import pytest

from holdfast_cli.api import management, state_versions
from holdfast_cli.errors import CommandError
from tests.support import terminal
from tests.support.api_stub import ApiStub, Reply
from tests.support.cli_account import HOLDFAST
from tests.support.management import NAME, answer, environment, failure, refusal, resolved, run

DIFF = {"name": NAME, "resources": []}
RESOLVE = f"/manage/v1/resolve/{NAME}?version="


@pytest.fixture
def stub(stub: ApiStub) -> ApiStub:
    stub.reply(resolved("v-12"), answer(DIFF))
    return stub


def sent(stub: ApiStub, named: str, **environment: str) -> str:
    """Return what a diff from a named version asks the API to resolve."""
    done = run(stub, "state", "diff", NAME, named, "--json", **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"holdfast: {named} is version v-12, serial 12, of 2026-11-20 12:00:00 UTC.\n"
    asked, compared = (request.path for request in stub.asked[-2:])
    assert compared == f"/manage/v1/diff/{NAME}?from=v-12&to=v-14"  # what was current then
    return asked.removeprefix(RESOLVE).replace("%40", "@").replace("%3A", ":")


def test_an_id_is_used_as_it_is_and_nothing_is_searched(stub: ApiStub) -> None:
    stub.reply(answer(DIFF))

    assert run(stub, "state", "diff", NAME, "any-ID_1.2", "--json").stderr == ""
    assert [asked.path for asked in stub.asked] == [f"/manage/v1/diff/{NAME}?from=any-ID_1.2"]


@pytest.mark.parametrize(
    ("named", "asked"),
    [
        ("@12", "@12"),
        ("@previous", "@previous"),
        ("@2026-11-20T15:00:00Z", "@2026-11-20T15:00:00Z"),
        ("@2026-11-20t14:45z", "@2026-11-20T14:45:00Z"),
        ("@2026-11-20T15:30+01:00", "@2026-11-20T14:30:00Z"),
        ("@2026-11-20 11:30:00.5Z", "@2026-11-20T11:30:00Z"),
        ("@0999-05-05T00:00Z", "@0999-05-05T00:00:00Z"),
    ],
)
def test_a_reference_is_sent_as_it_is_and_a_time_in_utc(stub: ApiStub, named: str, asked: str) -> None:
    assert sent(stub, named) == asked


def test_a_terminal_shows_no_version_id_unless_it_must(stub: ApiStub) -> None:
    def shown(*options: str, status: str = "acknowledged") -> str:
        stub.reply(resolved("v-12", status=status), answer({}))
        plain = environment(stub, TERM="dumb")
        return terminal.run([HOLDFAST, "state", "diff", NAME, "@12", *options], plain, columns=100, code=1)

    assert "v-12" not in shown()
    assert re.search(r"@12 is serial 12, written \d+ d ago, never", shown(status="never_acknowledged"))
    assert "@12 is version v-12, serial 12" in shown("--long")
    assert "never acknowledged" in shown(status="never_acknowledged")


@pytest.mark.parametrize(
    ("named", "zone", "asked"),
    [
        ("@2026-11-20T13:30", "America/New_York", "@2026-11-20T18:30:00Z"),
        # The 21st begins in Kiritimati when it is 10:00 in London.
        ("@2026-11-21", "Pacific/Kiritimati", "@2026-11-20T10:00:00Z"),
    ],
)
def test_a_time_without_an_offset_is_local_and_a_date_is_its_midnight(
    stub: ApiStub, named: str, zone: str, asked: str
) -> None:
    assert sent(stub, named, TZ=zone) == asked


def test_a_long_search_goes_on_where_it_ended(stub: ApiStub) -> None:
    stub.reply(resolved("", next_="on"), resolved("v-12"), answer(DIFF))

    assert sent(stub, "@12") == "@12&cursor=on"


def test_a_search_without_an_end_ends(stub: ApiStub) -> None:
    stub.reply(resolved("", next_="on"), resolved("", next_="on"))

    assert f"returned no version of the state {NAME} for @12" in failure(stub, "state", "diff", NAME, "@12")
    assert len(stub.asked) == 2


def test_a_search_whose_cursors_never_repeat_ends(stub: ApiStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(management, "MOST_PAGES", 3)
    stub.reply(*(resolved("", next_=str(number)) for number in range(9)))

    with pytest.raises(CommandError, match=f"returned no version of the state {NAME} for @12"):
        state_versions.resolve(management.Api(stub.address, "", ""), NAME, "@12")
    assert len(stub.asked) == 3


@pytest.mark.parametrize("found", [{}, {"serial": 12}, {"version": ""}, {"version": None}, 7])
def test_a_version_without_an_id_is_none(stub: ApiStub, found: object) -> None:
    stub.reply(answer({"name": NAME, "found": found, "next": None}))

    for command in (("diff", NAME, "@12"), ("get", NAME, "--version", "@12")):
        assert f"returned no version of the state {NAME} for @12" in failure(stub, "state", *command)
    assert {asked.path for asked in stub.asked} == {f"{RESOLVE}%4012"}


@pytest.mark.parametrize(
    ("named", "replies", "query"),
    [
        (["@12", "@13"], (resolved("v-12"), resolved("v-13")), "from=v-12&to=v-13"),
        (["@12", "b"], (resolved("v-12"),), "from=v-12&to=b"),
        (["@12"], (resolved("v-12", current=False),), "from=v-12"),
    ],
)
def test_what_was_current_is_compared_only_where_nothing_else_is_named(
    stub: ApiStub, named: list[str], replies: tuple[Reply, ...], query: str
) -> None:
    stub.reply(*replies, answer(DIFF))

    assert run(stub, "state", "diff", NAME, *named, "--json").returncode == 0
    assert stub.asked[-1].path == f"/manage/v1/diff/{NAME}?{query}"


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (404, "no_such_version", "The state has no version with the serial 12."),
        (400, "unknown_route", "deploy the team's stack again if the stack is older than this command."),
    ],
)
def test_what_the_api_does_not_find_or_know_is_told(stub: ApiStub, status: int, code: str, said: str) -> None:
    stub.reply(refusal(status, code, "The state has no version with the serial 12."))

    assert said in failure(stub, "state", "diff", NAME, "@12")


def test_a_moment_ago_is_not_in_the_future(stub: ApiStub) -> None:
    now = f"@{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"

    assert sent(stub, now) == now
