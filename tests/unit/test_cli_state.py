"""`holdfast state list`, `show`, `history`, `diff` and `get`."""

import json
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support import api_stub, terminal
from tests.support.api_stub import ApiStub, Reply
from tests.support.cli_account import HOLDFAST
from tests.support.management import (
    NAME,
    ago,
    answer,
    deleted,
    environment,
    failure,
    freeze,
    lock,
    output,
    page,
    refusal,
    run,
    state,
    version,
)

CONTENT = b'{"version": 4, "serial": 14, "resources": []}\n'


def item(name: str, size: int | None, **changed: object) -> dict[str, object]:
    return {"name": name, "size": size, "modified": ago(days=1), "deleted": False, "lock": None} | changed


# --- list ----------------------------------------------------------------------------------------

SMALL = item("app", 812, modified="2026-11-20T12:00:00Z")
LARGE = item("network/eu", 4_000_001, lock=lock(since="2026-11-20T12:00:00Z"))
OLD = item("network/prod", 4_000_000, modified=ago(days=40), lock=freeze(until="2099-01-01T00:00:00Z"))
FIRST = item("new", None, modified=None, lock=lock())


def test_states_are_a_table_over_all_pages(stub: ApiStub) -> None:
    stub.reply(page("states", SMALL, next_="more"), page("states", LARGE, OLD, FIRST))

    heading, *rows = output(stub, "state", "list").splitlines()

    assert heading.split() == ["STATE", "SIZE", "MODIFIED", "LOCK"]
    assert re.fullmatch(r"app +812 B +2026-11-20T12:00:00Z \([0-9]+ d ago\) +-", rows[0])
    assert "4 MB" in rows[1]
    held = (
        'locked by token:k2v9x0q7m3c1d8f5a6b4 (client says "bob@desk") for "OperationTypeApply" since '
        "2026-11-20T12:00:00Z ("
    )
    assert held in rows[1]
    assert "frozen until 2099-01-01T00:00:00Z (in " in rows[2]
    assert rows[3].split()[:3] == ["new", "-", "-"]
    assert [one.path for one in stub.asked] == ["/manage/v1/states", "/manage/v1/states?cursor=more"]


def test_rows_of_locked_and_frozen_states_have_a_colour_on_a_terminal(stub: ApiStub) -> None:
    ended = item("past", 1, lock=freeze(until="2001-01-01T00:00:00Z", ended=True))
    stub.reply(page("states", SMALL, LARGE, OLD, ended))
    variables = environment(stub, TERM="xterm")

    shown = terminal.run([HOLDFAST, "state", "list"], variables, columns=250)
    _, *rows = shown.splitlines()

    assert [re.findall(r"\x1b\[[0-9;]*m", row) for row in rows] == [
        [],
        ["\x1b[33m", "\x1b[0m"],
        ["\x1b[36m", "\x1b[0m"],
        [],
    ]
    variables["NO_COLOR"] = "1"
    plain = terminal.run([HOLDFAST, "state", "list"], variables, columns=250)
    assert plain == re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "\x1b" not in output(stub, "state", "list", TERM="xterm")


FAR = f"network/{100 * 'x'}"
"""A name that is wider than the terminal."""
BRIEF = f"""\
STATE         SIZE   MODIFIED  LOCK
app           812 B  2 h ago   -
{FAR}
              900 B  3 d ago   -
network/eu    4 MB   1 d ago   locked 25 min, bea@example.com
network/prod  4 MB   40 d ago  frozen, ends in 3 h 5 min: key ceremony, ask…
new           -      -         locked 2 d, "bob@desk"
past          1 B    1 d ago   freeze ended 4 h ago: incident 4711
"""


def test_a_terminal_gets_ages_and_names_and_a_pipe_or_long_gets_ids_and_times(stub: ApiStub) -> None:
    reason = "key ceremony, ask security on-call before anything else"
    ended = freeze(until=ago(hours=4), ended=True)
    listed = page(
        "states",
        item("app", 812, modified=ago(hours=2)),
        item(FAR, 900, modified=ago(days=3)),
        item("network/eu", 4_000_001, lock=lock(since=ago(minutes=25), owner="bea@example.com")),
        item(
            "network/prod",
            4_000_000,
            modified=ago(days=40),
            lock=freeze(until=ago(hours=-3, minutes=-5.5), reason=reason),
        ),
        item("new", None, modified=None, lock=lock(since=ago(days=2))),
        item("past", 1, lock=ended),
    )
    stub.reply(listed)
    plain = environment(stub, TERM="dumb")

    assert terminal.run([HOLDFAST, "state", "list"], plain, columns=80) == BRIEF
    piped = output(stub, "state", "list")
    assert "token:k2v9x0q7m3c1d8f5a6b4" in piped
    assert output(stub, "state", "list", "--long") == piped
    long = terminal.run([HOLDFAST, "state", "list", "--long"], plain, columns=400)
    assert [line.split() for line in long.splitlines()] == [line.split() for line in piped.splitlines()]


@pytest.mark.parametrize(
    ("options", "query", "names"),
    [
        ([], "", ["app", "network/eu", "network/prod", "new"]),
        (["network/"], "?prefix=network%2F", ["app", "network/eu", "network/prod", "new"]),
        (["network/*"], "?prefix=network%2F", ["network/eu", "network/prod"]),
        (["*/prod"], "", ["network/prod"]),
        (["*"], "", ["app", "network/eu", "network/prod", "new"]),
        (["--locked"], "", ["network/eu", "network/prod", "new"]),
        (["--larger-than", "4MB"], "", ["network/eu"]),
        (["--larger-than", "0.8kb"], "", ["app", "network/eu", "network/prod"]),
        (["--older-than", "30d", "--locked"], "", ["network/prod"]),
        (["--deleted"], "?deleted=true", ["gone"]),
    ],
)
def test_options_narrow_a_list_down(stub: ApiStub, options: list[str], query: str, names: list[str]) -> None:
    recent = SMALL | {"modified": ago(days=1)}
    stub.reply(page("states", recent, LARGE, OLD, FIRST, item("gone", None, deleted=True)))

    found = json.loads(output(stub, "state", "list", *options, "--json"))

    assert [one["name"] for one in found] == names
    assert [one.path for one in stub.asked] == [f"/manage/v1/states{query}"]


def test_a_terminal_has_the_reason_of_a_frozen_pattern_once_and_a_pipe_each_time(stub: ApiStub) -> None:
    until = (datetime.now(UTC) + timedelta(hours=2, seconds=30)).isoformat(timespec="seconds")
    together, alone = freeze(until=until), freeze(id=32 * "b", reason="key ceremony")
    states = page(
        "states",
        item("app", 812, lock=alone),
        item("network/dns", 812, lock=together),
        item("network/eu", 812, lock=lock()),
        item("network/us", 812, lock=together),
    )
    freezes = answer(
        {
            "freezes": [
                {
                    "id": 32 * letter,
                    "reason": "-",
                    "until": None,
                    "by": "token:ada",
                    "owner": None,
                    "since": ago(minutes=2),
                    "liftable": True,
                    "pattern": f"network/{letter}*",
                }
                for letter in "cab"
            ]
        }
    )
    plain = environment(stub, TERM="dumb")

    def held(*replies: Reply, words: tuple[str, ...] = ("state", "list")) -> list[str]:
        stub.reply(states, *replies)
        lines = terminal.run([HOLDFAST, *words], plain, columns=200).splitlines()
        return [re.split(r"  +", line)[3] for line in lines[1:]]

    assert held(freezes) == [
        "frozen: key ceremony",
        "frozen with network/a*, ends in 2 h: incident 4711",
        'locked 9 d, "bob@desk"',
        "frozen with network/a*",
    ]
    assert stub.asked[-1].path == "/manage/v1/freezes"
    repeated = ["frozen: key ceremony", "frozen, ends in 2 h: incident 4711"]
    repeated += ['locked 9 d, "bob@desk"', "frozen, ends in 2 h: incident 4711"]
    assert held(refusal(403, "not_allowed", "No.")) == repeated
    assert held(answer({"freezes": []})) == repeated
    asked = len(stub.asked)
    stub.reply(states)
    assert output(stub, "state", "list").count(": incident 4711") == 2
    stub.reply(page("states", item("app", 812, lock=together)))
    assert terminal.run([HOLDFAST, "state", "list"], plain, columns=200).count(": incident 4711") == 1
    assert len(stub.asked) == asked + 2


def test_names_without_a_state_are_listed_with_their_locks(stub: ApiStub) -> None:
    declared = [item(name, None) for name in ("app", "network/prod", "new", "network/prdo")]
    stub.reply(page("states", *declared), page("states", SMALL, OLD, FIRST))

    rows = output(stub, "state", "list", "--declared").splitlines()

    assert rows[0].split() == ["STATE", "SIZE", "DECLARED", "LOCK"]
    assert [row.split()[0] for row in rows[1:]] == ["new", "network/prdo"]
    assert "locked by token:k2v9x0q7m3c1d8f5a6b4 (client" in rows[1]
    # A state that is written between the two lists has no row.
    assert [one.path for one in stub.asked] == ["/manage/v1/states?declared=true", "/manage/v1/states"]


def test_no_state_is_said_so_and_is_no_failure(stub: ApiStub) -> None:
    stub.reply(page("states"))

    assert output(stub, "state", "list") == "No states were found in your scope.\n"
    assert output(stub, "state", "list", "nosuch/") == (
        "No states whose names begin with nosuch/ were found in your scope.\n"
    )
    assert output(stub, "state", "list", "*/x") == "No states that match */x were found in your scope.\n"
    assert output(stub, "state", "list", "--locked") == (
        "No states were found in your scope with these options.\n"
    )
    assert json.loads(output(stub, "state", "list", "--json")) == []


# --- show and history ----------------------------------------------------------------------------


def test_a_state_is_shown_with_its_writer_its_resources_and_its_lock(stub: ApiStub) -> None:
    stub.reply(answer(state(lock=lock(since=ago(hours=2)), record=True)))

    shown = [line.strip().split("  ", 1) for line in output(stub, "state", "show", NAME).splitlines()]

    fields = {name: value.strip() for name, value in shown}
    assert fields["version"] == "v-14"
    assert fields["size"] == "4.2 MB"
    assert fields["resources"] == "12 managed, 3 data"
    assert fields["by"] == 'token:k2v9x0q7m3c1d8f5a6b4 (client says "bob@desk")'
    assert fields["since"].endswith("UTC (2 h ago)")
    assert fields["declared"] == "yes"


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"lock": lock()}, ["locked by", "locked since", "locked for"]),
        ({"lock": freeze()}, ["frozen by", "frozen with", "frozen since", "until", "reason"]),
        ({}, ["lock"]),
    ],
)
def test_a_terminal_shows_first_what_people_look_for_and_ids_last(
    stub: ApiStub, changed: dict[str, object], names: list[str]
) -> None:
    counts = {"managed": 12, "data": 0, "outputs": 3}
    pattern = {"id": 32 * "a", "by": "token:x", "reason": "incident 4711", "since": ago(days=2)}
    freezes = answer({"freezes": [{**pattern, "pattern": "network/*"}]})
    stub.reply(answer(state(operation="OperationTypeApply", resources=counts, **changed)), freezes)
    plain = environment(stub, TERM="dumb")

    lines = terminal.run([HOLDFAST, "state", "show", NAME], plain, columns=200).splitlines()

    fields = [re.split(r"\s{2,}", line.strip()) for line in lines]
    shown = [name for name, _ in fields]
    above = ["state", "serial", "written", "written by", "operation"]
    assert shown[: len(above) + len(names)] == [*above, *names]
    lock_id = {"locked by": ["lock ID"], "frozen by": ["freeze ID"]}.get(names[0], [])
    assert shown[-2 - len(lock_id) :] == ["version", "lineage", *lock_id]
    assert len(set(shown)) == len(shown)
    assert (dict(fields)["operation"], dict(fields)["resources"]) == ("apply", "12 managed")
    assert dict(fields)["written by"] == '"bob@desk"'


@pytest.mark.parametrize(
    "words", [("state", "list"), ("lock", "list"), ("activity",), ("state", "history", NAME)]
)
def test_the_progress_is_erased_on_a_terminal_before_the_output(
    stub: ApiStub, words: tuple[str, ...]
) -> None:
    listed = {"state": "states", "lock": "locks", "activity": "events"}[words[0]]
    listed = "versions" if "history" in words else listed
    at_once = "output._PROGRESS_AFTER = 0; raise SystemExit(main(sys.argv[1:]))"
    program = f"import sys; from holdfast_cli.main import main, output; {at_once}"
    stub.reply(page(listed), *[answer({"freezes": []})] * (words[0] == "lock"))

    printed = terminal.run([sys.executable, "-c", program, *words], environment(stub), columns=80)

    *shown, rest = printed.split("\r\x1b[K")
    assert any(f"{listed.capitalize()} read: 0" in text for text in shown)
    assert "read: " not in rest
    assert rest.strip()


def test_a_terminal_tells_an_unusual_status_and_everything_with_long(stub: ApiStub) -> None:
    plain = environment(stub, TERM="dumb")
    refused = state(status="never_acknowledged", lock=lock(owner="bea@example.com"))

    def shown(*options: str) -> dict[str, str]:
        stub.reply(answer(refused))
        text = terminal.run([HOLDFAST, "state", "show", NAME, *options], plain, columns=200)
        return {found[1]: found[2] for found in re.finditer(r"^  (\S.*?)  +(.+)$", text, re.MULTILINE)}

    brief, long = shown(), shown("--long")

    assert (brief["written by"], brief["locked by"]) == ('"bob@desk"', "bea@example.com")
    assert brief["status"] == long["status"] == "never acknowledged"
    assert long["written by"] == 'token:k2v9x0q7m3c1d8f5a6b4 (client says "bob@desk")'
    assert long["locked by"] == "bea@example.com (token:k2v9x0q7m3c1d8f5a6b4)"
    assert long["client says"] == "bob@desk"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (state(encrypted=True, resources=None), "by the client"),
        (state(encrypted=False, resources=None), "not version 4 of the state format"),
        (state(**dict.fromkeys(("version", "size", "serial", "resources")), record=True), "is no state"),
        (state(lock=freeze(until="2001-01-01T00:00:00Z", ended=True)), "the next command that acquires"),
        (state(lock=freeze()), "it is unfrozen"),
        (state(), "lock"),
    ],
)
def test_what_a_state_lacks_is_said(stub: ApiStub, document: dict[str, object], said: str) -> None:
    stub.reply(answer(document))

    assert said in output(stub, "state", "show", NAME)
    assert json.loads(output(stub, "state", "show", NAME, "--json")) == document


def test_a_deleted_state_is_told_with_its_age_and_its_history(stub: ApiStub) -> None:
    gone = refusal(404, "no_state", "There is no state 'network/prod'.")
    stub.reply(gone, page("states", item(NAME, None, deleted=True, modified=ago(hours=3))))

    line = failure(stub, "state", "show", NAME)

    assert "was deleted 3 h ago" in line
    assert f"`holdfast state history {NAME}`" in line
    assert f"`holdfast state undelete {NAME}`" in line
    assert stub.asked[-1].path == "/manage/v1/states?prefix=network%2Fprod&deleted=true"


def test_a_state_that_never_was_is_told_as_the_api_does(stub: ApiStub) -> None:
    gone = refusal(404, "no_state", "There is no state 'network/prod'.")
    stub.reply(gone, page("states", item(f"{NAME}/eu", None, deleted=True)))

    assert "There is no state 'network/prod'." in failure(stub, "state", "show", NAME)


HISTORY = (
    version("v-15", 15, "2026-11-20T15:00:00Z", current=True, restored_from="v-12", reason="undo"),
    version("v-14", 14, "2026-11-20T14:00:00Z", status="never_acknowledged", who=None),
    deleted("marker", "2026-11-20T13:00:00Z"),
)


def test_history_tells_of_each_version_who_wrote_it_and_whether_it_counts(stub: ApiStub) -> None:
    stub.reply(page("versions", *HISTORY))

    heading, *rows = output(stub, "state", "history", NAME).splitlines()

    assert heading.split() == ["SERIAL", "TIME", "STATUS", "VERSION", "BY", "OPERATION", "SIZE", "NOTE"]
    assert rows[0].split()[:2] == ["15", "2026-11-20T15:00:00Z"]
    assert re.search(r"d ago\) +current, acknowledged  v-15  ", rows[0])
    assert rows[0].endswith("4.2 MB  restored from v-12: undo")
    assert "never acknowledged" in rows[1]
    assert rows[2].startswith("-       2026-11-20T13:00:00Z (")
    assert re.search(r"ago\)  deleted +marker  +not known  +-  +-  +-$", rows[2])


def test_history_on_a_terminal_has_serials_and_names_and_with_long_also_ids(stub: ApiStub) -> None:
    stub.reply(
        page(
            "versions",
            version("v-15", 15, ago(minutes=2), current=True, operation="restore", owner="ada@example.com")
            | {"restored_from": "v-13", "reason": "wrong subnets"},
            version("v-14", 14, ago(hours=2), status="never_acknowledged"),
            version("v-13", 13, ago(days=1), operation="state-push", who="token:k2v9x0q7m3c1d8f5a6b4"),
            version("v-12", 12, ago(days=2), restored_from="v-1", operation="restore", who=None),
            deleted("marker", ago(days=3)),
        )
    )
    plain = environment(stub, TERM="dumb")

    assert (
        terminal.run([HOLDFAST, "state", "history", NAME], plain, columns=90)
        == """\
SERIAL  WRITTEN    WHAT     BY               NOTE
15      2 min ago  restore  ada@example.com  current, restored from serial 13: wrong…
14      2 h ago    apply    "bob@desk"       never acknowledged
13      1 d ago    push     token k2v9x0q7…  -
12      2 d ago    restore  token k2v9x0q7…  restored
-       3 d ago    deleted  not known        -
"""
    )
    piped = output(stub, "state", "history", NAME)
    assert output(stub, "state", "history", NAME, "--long") == piped
    long = terminal.run([HOLDFAST, "state", "history", NAME, "--long"], plain, columns=400)
    assert [line.split() for line in long.splitlines()] == [line.split() for line in piped.splitlines()]


def deletion(state: str, time: datetime, owner: str, **more: str) -> dict[str, str]:
    """Return an event of the audit trail."""
    who = {"principal": f"token:{owner}", "owner": f"{owner}@example.com"}
    return {"event": "state.deleted", "state": state, "time": time.isoformat(), **who, **more}


def may_read_activity(*scope: str) -> Reply:
    may = [{"action": "read_history", "scope": ["*"]}, {"action": "read_activity", "scope": scope}]
    return answer({"principal": "token:x", "may": may})


DAY = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_history_says_who_deleted_the_state_and_why(stub: ApiStub) -> None:
    history = page(
        "versions",
        deleted("marker-2", "2026-11-20T12:00:00Z") | {"current": True},
        version("v-15", 15, "2026-11-20T11:59:58Z", who=None),
        deleted("marker-1", "2026-11-20T11:59:55Z"),
    )
    events = page(
        "events",
        {"event": "state.read", "state": NAME, "time": DAY.isoformat()},
        deletion(NAME, DAY + SECOND, "bea", reason="moved"),
        deletion("other", DAY, "eve"),
        deletion(NAME, DAY - 4 * SECOND, "ada"),
    )
    replies = (history, may_read_activity("network/*"), events)
    stub.reply(*replies, *replies, history)

    shown = terminal.run(
        [HOLDFAST, "state", "history", NAME], environment(stub, TERM="dumb"), columns=80
    ).splitlines()
    piped = output(stub, "state", "history", NAME).splitlines()
    document = json.loads(output(stub, "state", "history", NAME, "--json"))

    assert [re.split(r"  +", line)[2:] for line in shown[1:]] == [
        ["deleted", "bea@example.com", "moved"],
        ["apply", "token k2v9x0q7…", "-"],
        ["deleted", "ada@example.com", "-"],
    ]
    cells = [re.split(r"  +", line) for line in piped[1:]]
    assert cells[0][4:] == ["bea@example.com (token:bea)", "-", "-", "moved"]
    assert cells[2][4:] == ["ada@example.com (token:ada)", "-", "-", "-"]
    assert document[0]["principal"] is None
    asked = [one.path for one in stub.asked]
    assert asked[1] == "/manage/v1/whoami"
    assert parse_qs(urlsplit(asked[2]).query) == {
        "state": [NAME],
        "since": ["2026-11-20T11:58:55Z"],
        "until": ["2026-11-20T12:01:00Z"],
    }
    assert len(asked) == 7  # JSON has only what the history has


def test_history_asks_for_no_event_without_a_deletion_or_the_right_to_see_it(stub: ApiStub) -> None:
    without, gone = (page("versions", *HISTORY[:end]) for end in (2, 3))
    stub.reply(without, gone, may_read_activity("other/*"))

    output(stub, "state", "history", NAME)
    assert "not known" in output(stub, "state", "history", NAME)

    versions = f"/manage/v1/versions/{NAME}"
    assert [one.path for one in stub.asked] == [versions, versions, "/manage/v1/whoami"]


def test_deleted_states_are_listed_with_who_deleted_them_and_why(stub: ApiStub) -> None:
    gone = [
        item(name, None, deleted=True, modified=f"{time:%Y-%m-%dT%H:%M:%SZ}")
        for name, time in (
            ("app", DAY),
            ("network/prod", DAY - 9 * SECOND),
            ("old", DAY - timedelta(days=400)),
        )
    ]
    events = page("events", deletion("app", DAY, "bea", reason="moved"), deletion("network/prod", DAY, "ada"))
    replies = (page("states", *gone), may_read_activity("*"), events, page("events"))
    stub.reply(*replies, *replies)

    shown = terminal.run(
        [HOLDFAST, "state", "list", "--deleted"], environment(stub, TERM="dumb"), columns=80
    ).splitlines()
    piped = output(stub, "state", "list", "--deleted").splitlines()

    assert [re.split(r"  +", line)[:1] + re.split(r"  +", line)[2:] for line in shown] == [
        ["STATE", "BY", "REASON"],
        ["app", "bea@example.com", "moved"],
        ["network/prod", "ada@example.com", "-"],
        ["old", "not known", "-"],
    ]
    assert piped[0].split() == ["STATE", "SIZE", "DELETED", "LOCK", "BY", "REASON"]
    assert re.search(r"^app +- .+ -  +bea@example.com \(token:bea\)  +moved$", piped[1])
    queries = [parse_qs(urlsplit(one.path).query) for one in stub.asked[2:4]]
    assert queries[0] == {"since": ["2026-11-20T11:58:51Z"], "until": ["2026-11-20T12:01:00Z"]}
    assert queries[1]["state"] == ["old"]


@pytest.mark.parametrize(("option", "heading"), [("--deleted", "DELETED"), ("--declared", "DECLARED")])
def test_a_terminal_has_no_column_that_says_nothing_of_any_deleted_or_declared_name(
    stub: ApiStub, option: str, heading: str
) -> None:
    gone = item("gone", None, deleted=option == "--deleted")
    stub.reply(page("states", gone), page("states"))
    plain = environment(stub, TERM="dumb")

    def headings() -> list[str]:
        lines = terminal.run([HOLDFAST, "state", "list", option], plain, columns=80).splitlines()
        return [each for each in lines[0].split() if each not in ("BY", "REASON")]

    assert headings() == ["STATE", heading]
    stub.reply(page("states", gone | {"lock": lock()}), page("states"))
    assert headings() == ["STATE", heading, "LOCK"]


def test_history_has_the_newest_twenty_or_all(stub: ApiStub) -> None:
    pages = [
        page("versions", *[version(f"v-{n}", n, "2026-11-20T15:00:00Z") for n in numbers], next_=next_)
        for numbers, next_ in ((range(40, 20, -1), "older"), (range(20, 15, -1), None))
    ]

    stub.reply(*pages)
    done = run(stub, "state", "history", NAME, "--json")
    assert len(json.loads(done.stdout)) == 20
    assert "--all" in done.stderr
    assert len(stub.asked) == 1

    stub.reply(*pages)
    assert len(json.loads(output(stub, "state", "history", NAME, "--all", "--json"))) == 25


# --- diff ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "query"),
    [
        *(([], ""), (["a"], "?from=a"), (["a", "b"], "?from=a&to=b")),
        (["--show-values", "a"], "?from=a&values=true"),
    ],
)
def test_a_diff_is_asked_for_as_it_was_typed(stub: ApiStub, options: list[str], query: str) -> None:
    stub.reply(answer({"name": NAME, "new": True}))

    assert json.loads(output(stub, "state", "diff", NAME, *options, "--json")) == {"name": NAME, "new": True}
    assert stub.asked[0].path == f"/manage/v1/diff/{NAME}{query}"


# --- get -----------------------------------------------------------------------------------------


def test_the_content_is_printed_as_it_is_stored(stub: ApiStub) -> None:
    body = b'{"a": "\xff\x00"}\r\n'
    stub.reply(Reply(200, body, {"Holdfast-Version": "v-12"}))

    done = subprocess.run(
        [HOLDFAST, "state", "get", NAME, "--version", "v-12"],
        env=environment(stub),
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert (done.stdout, done.stderr) == (body, b"")
    assert stub.asked[0].path == f"/manage/v1/content/{NAME}?version=v-12"


def test_a_terminal_gets_no_character_that_controls_it(stub: ApiStub) -> None:
    stub.reply(Reply(200, b'{\n"a": "\x1b[31m"}\n'))

    printed = terminal.run([HOLDFAST, "state", "get", NAME], environment(stub), columns=80)

    assert printed == '{\n"a": "?[31m"}\n'


def test_a_redirect_is_followed_without_the_credentials(stub: ApiStub) -> None:
    with api_stub.running() as storage:
        storage.reply(Reply(200, CONTENT))
        stub.reply(Reply(307, headers={"Location": f"{storage.address}/bucket/key?signature=x"}))

        assert output(stub, "state", "get", NAME).encode() == CONTENT

        [asked] = storage.asked
    assert asked.path == "/bucket/key?signature=x"
    assert "authorization" not in asked.headers


@pytest.mark.parametrize(
    "location", ["http://192.0.2.1/x", "ftp://127.0.0.1", "", "/x", "http://[::1", "//x"]
)
def test_a_redirect_that_leads_elsewhere_is_not_followed(stub: ApiStub, location: str) -> None:
    stub.reply(Reply(307, headers={"Location": location}))

    assert "which this command does not follow" in failure(stub, "state", "get", NAME)


def test_an_address_that_is_not_valid_any_more_is_one_line_without_it(stub: ApiStub) -> None:
    with api_stub.running() as storage:
        storage.reply(Reply(403, b"<Error/>"))
        stub.reply(Reply(307, headers={"Location": f"{storage.address}/key?signature=hidden"}))

        line = failure(stub, "state", "get", NAME)

    assert "valid for one minute" in line
    assert "hidden" not in line


def test_a_file_is_new_and_its_owners_alone(stub: ApiStub, tmp_path: Path) -> None:
    stub.reply(Reply(200, CONTENT, {"Holdfast-Version": "v-14"}))
    file = tmp_path / "old.tfstate"

    written = json.loads(output(stub, "state", "get", NAME, "--output", str(file), "--json"))

    assert written == {"name": NAME, "version": "v-14", "size": len(CONTENT), "file": str(file)}
    assert file.read_bytes() == CONTENT
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    assert "already exists" in failure(stub, "state", "get", NAME, "--output", str(file))
    assert file.read_bytes() == CONTENT


@pytest.mark.parametrize("place", ["none/x.tfstate", "."])
def test_a_file_that_cannot_be_written_is_one_line(stub: ApiStub, tmp_path: Path, place: str) -> None:
    stub.reply(Reply(200, CONTENT))

    assert str(tmp_path) in failure(stub, "state", "get", NAME, "--output", str(tmp_path / place))
