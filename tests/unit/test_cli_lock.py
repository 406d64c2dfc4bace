"""`holdfast lock` and `holdfast activity`."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support import api_stub, terminal
from tests.support.api_stub import ApiStub
from tests.support.cli_account import HOLDFAST
from tests.support.management import (
    NAME,
    ago,
    answer,
    environment,
    failure,
    freeze,
    held,
    lock,
    of_lock,
    output,
    page,
    refusal,
    run,
)

HEALTH = answer({"status": "ok"})


def frozen_patterns(*patterns: str) -> api_stub.Reply:
    placed = {
        "id": 32 * "a",
        "reason": "incident 4711",
        "until": None,
        "by": "token:ada",
        "owner": "bea@example.com",
        "since": ago(minutes=2),
    }
    return answer({"freezes": [{**placed, "pattern": pattern} for pattern in patterns]})


# --- list and show -------------------------------------------------------------------------------


def test_locks_are_a_table_the_oldest_first_over_all_pages(stub: ApiStub) -> None:
    young = lock(since="2026-11-20T12:00:00Z")
    old = freeze(until="at dusk") | {"since": "2026-11-19T12:00:00Z"}
    stub.reply(
        page("locks", {"name": "b", **young}, next_="more"),
        page("locks", {"name": "a", **old}),
        frozen_patterns(),
    )

    heading, *rows = output(stub, "lock", "list").splitlines()

    assert heading.split() == ["STATE", "SINCE", "HELD", "BY", "CLIENT", "SAYS", "FOR", "ID"]
    assert [row.split()[0] for row in rows] == ["a", "b"]
    assert "frozen until at dusk: incident 4711" in rows[0]
    assert rows[1].split()[-2:] == ["OperationTypeApply", "4fe1c2a0"]


def test_frozen_patterns_are_listed_beside_the_locks(stub: ApiStub) -> None:
    both = page("locks", {"name": "network/eu", **lock()}), frozen_patterns("network/*", "*/eu", "app/*")
    stub.reply(*both, HEALTH)

    _, *rows = output(stub, "lock", "list").splitlines()

    assert [row.split()[0] for row in rows] == ["network/eu", "network/*", "*/eu", "app/*"]
    assert ("bea@example.com (token:ada)" in rows[1], "frozen: incident 4711" in rows[1]) == (True, True)

    stub.reply(*both)
    found = json.loads(output(stub, "lock", "list", "network/e", "--json"))
    assert [one.get("pattern") for one in found] == [None, "network/*", "*/eu"]


def test_a_terminal_shows_who_holds_a_lock_and_how_long_and_the_id_only_with_long(stub: ApiStub) -> None:
    frozen = freeze(reason="key ceremony", id="b" * 32, by="token:x") | {"since": ago(days=2)}
    frozen |= {"id": f"frozen: key ceremony [{'b' * 32}]"}
    listed = (
        page(
            "locks",
            {"name": "a", **frozen},
            {"name": "b", **lock(since=ago(minutes=25), owner="bea@example.com")},
            {"name": "c", **lock(since=ago(minutes=9), operation="OperationTypePlan")},
        ),
        frozen_patterns("network/*"),
        HEALTH,
    )
    stub.reply(*listed)
    plain = environment(stub, TERM="dumb")

    assert (
        terminal.run([HOLDFAST, "lock", "list"], plain, columns=80)
        == """\
STATE      HELD    BY               FOR
a          2 d     token x          frozen: key ceremony
b          25 min  bea@example.com  apply
c          9 min   "bob@desk"       plan
network/*  2 min   bea@example.com  frozen: incident 4711
"""
    )
    stub.reply(*listed)
    piped = output(stub, "lock", "list")
    stub.reply(*listed)
    assert output(stub, "lock", "list", "--long") == piped
    stub.reply(*listed)
    long = terminal.run([HOLDFAST, "lock", "list", "--long"], plain, columns=400)
    assert f"frozen: key ceremony [{'b' * 32}]" in piped
    without_reason = piped.replace(f"frozen: key ceremony [{'b' * 32}]", "b" * 32)
    assert [line.split() for line in long.splitlines()] == [
        line.split() for line in without_reason.splitlines()
    ]


def test_a_terminal_lists_the_states_of_a_frozen_pattern_below_it_and_its_reason_once(stub: ApiStub) -> None:
    of_pattern = freeze(reason="incident 4711", id=32 * "a", by="token:ada") | {"owner": "bea@example.com"}
    alone = freeze(reason="key ceremony", id=32 * "b", by="token:x")
    stub.reply(
        page(
            "locks",
            {"name": "network/eu", **of_pattern, "since": ago(minutes=2)},
            {"name": "network/dns", **alone, "since": ago(minutes=3)},
            {"name": "network/us", **of_pattern, "since": ago(minutes=1)},
        ),
        frozen_patterns("network/*"),
        HEALTH,
    )

    assert (
        terminal.run([HOLDFAST, "lock", "list"], environment(stub, TERM="dumb"), columns=80)
        == """\
STATE        HELD   BY               FOR
network/dns  3 min  token x          frozen: key ceremony
network/*    2 min  bea@example.com  frozen: incident 4711
network/eu   2 min  bea@example.com  frozen with network/*
network/us   1 min  bea@example.com  frozen with network/*
"""
    )


def test_with_long_too_the_states_of_a_frozen_pattern_are_below_it_and_a_pipe_has_their_order(
    stub: ApiStub,
) -> None:
    of_pattern = freeze(reason="incident 4711", id=32 * "a", by="token:ada")
    listed = (
        page(
            "locks",
            {"name": "network/eu", **of_pattern, "since": ago(minutes=3)},
            {"name": "app", **lock(since=ago(minutes=2.5))},
            {"name": "network/us", **of_pattern, "since": ago(minutes=1)},
        ),
        frozen_patterns("network/*"),
        HEALTH,
    )
    words = ("lock", "list", "--long")
    stub.reply(*listed)

    shown = terminal.run([HOLDFAST, *words], environment(stub, TERM="dumb"), columns=300)

    _, *rows = shown.splitlines()
    assert [row.split()[0] for row in rows] == ["app", "network/*", "network/eu", "network/us"]
    assert shown.count("frozen: incident 4711") == 1
    assert shown.count("frozen with network/*") == 2
    assert shown.count(32 * "a") == 3
    stub.reply(*listed)
    _, *rows = output(stub, *words).splitlines()
    assert [row.split()[0] for row in rows] == ["network/eu", "app", "network/*", "network/us"]


def test_only_old_locks_are_shown_if_that_is_asked(stub: ApiStub) -> None:
    old, young = lock(since=ago(minutes=61)), lock(since=ago(minutes=59))
    stub.reply(page("locks", {"name": "old", **old}, {"name": "young", **young}), frozen_patterns("x/*"))

    found = json.loads(output(stub, "lock", "list", "--older-than", "1h", "x", "--json"))

    assert [one.get("name") for one in found] == ["old"]
    assert stub.asked[0].path == "/manage/v1/locks?prefix=x"


def test_no_lock_is_said_so(stub: ApiStub) -> None:
    stub.reply(page("locks", freezes=[]))

    assert output(stub, "lock", "list") == "No state in your scope is locked.\n"
    assert output(stub, "lock", "list", "--older-than", "1h") == "No locks found.\n"


@pytest.mark.parametrize(
    ("held_lock", "said"),
    [
        (lock(info="plan of 8"), ["bob@desk", "OperationTypeApply", "plan of 8", "4fe1c2a0", " d ago)"]),
        (
            freeze(until="2099-01-01T00:00:00Z"),
            ["frozen by", "2099-01-01 00:00:00 UTC (in ", "incident 4711"],
        ),
        (lock(who="", principal=None, operation=""), ["another program"]),
        # A form of a time that this command cannot read is no freeze without an end.
        (freeze(until="2099-W01") | {"since": "2026-W47"}, ["until      2099-W01", "since      2026-W47"]),
        (None, ["is not locked"]),
    ],
)
def test_a_lock_is_shown(stub: ApiStub, held_lock: object, said: list[str]) -> None:
    stub.reply(of_lock(held_lock))

    text = output(stub, "lock", "show", NAME)

    assert [part for part in said if part not in text] == []
    assert json.loads(output(stub, "lock", "show", NAME, "--json")) == {"name": NAME, "lock": held_lock}


def test_on_a_terminal_a_lock_has_its_operation_in_words_and_a_freeze_its_own_id(stub: ApiStub) -> None:
    plain = environment(stub, TERM="dumb")
    patterns: list[str] = []

    def shown(held_lock: object) -> list[list[str]]:
        stub.reply(of_lock(held_lock), frozen_patterns(*patterns))
        lines = terminal.run([HOLDFAST, "lock", "show", NAME], plain, columns=200).splitlines()
        return [re.split(r"\s{2,}", line.strip()) for line in lines]

    assert ["locked for", "apply"] in shown(lock())
    assert ["locked by", "bea"] in shown(lock(owner="bea"))
    assert ["locked by", "the token k2v9x0q7m3c1d8f5a6b4"] in shown(lock(who=""))
    fields = shown(freeze())
    assert [name for name, _ in fields] == ["frozen by", "frozen since", "until", "reason", "freeze ID"]
    assert fields[-1] == ["freeze ID", 32 * "a"]
    patterns = ["network/*"]
    assert shown(freeze())[:2] == [["frozen by", "the token ada"], ["frozen with", "network/*"]]
    assert "frozen with" not in dict(shown(freeze(id=32 * "b")))
    stub.reply(of_lock(freeze()))
    assert "frozen with" not in output(stub, "lock", "show", NAME)


def test_a_client_that_imitates_a_principal_is_told_apart_from_it(stub: ApiStub) -> None:
    hostile = lock(who='ops", token:ops (Olga)\n  locked by    token:ops')
    principal = hostile["principal"]

    stub.reply(of_lock(hostile))
    shown = output(stub, "lock", "show", NAME).splitlines()
    stub.reply(page("locks", {"name": NAME, **hostile}), frozen_patterns())
    _, listed = output(stub, "lock", "list").splitlines()
    stub.reply(page("states", {"name": NAME, "lock": hostile}))
    _, of_state = output(stub, "state", "list").splitlines()

    assert [line for line in shown if "locked by  " in line and not line.startswith("  client says")] == [
        f"  locked by    {principal}"
    ]
    assert listed.split("  ")[2].strip() == principal
    assert f'locked by {principal} (client says "ops\\", token:ops (Olga)?' in of_state


# --- break ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock_id", ["4fe1c2a0", "a b&c=ü/?#"])
def test_a_break_names_the_lock_by_its_id_and_its_version(stub: ApiStub, lock_id: str) -> None:
    stub.reply(of_lock(lock(id=lock_id)), answer({"name": NAME, "removed": True}))

    text = output(stub, "lock", "break", NAME, lock_id)

    assert text.startswith(f"The lock {lock_id} of the state network/prod was removed.")
    assert "Run `terraform plan` to see what its holder has changed." in text
    asked = stub.asked[-1]
    path, _, query = asked.path.partition("?")
    assert (asked.method, path) == ("DELETE", f"/manage/v1/locks/{NAME}")
    assert parse_qs(query) == {"id": [lock_id], "version": ["lock-version"]}


def test_a_break_sends_its_reason(stub: ApiStub) -> None:
    stub.reply(of_lock(lock()), answer({"name": NAME, "removed": True}))

    output(stub, "lock", "break", NAME, "4fe1c2a0", "--reason", "the job was killed")

    query = parse_qs(stub.asked[-1].path.partition("?")[2])
    assert query["reason"] == ["the job was killed"]


IS_FROZEN = "The state is frozen by token:ada: incident 4711. 'holdfast state unfreeze' lifts it."
STAYS: Mapping[str, tuple[str, list[api_stub.Reply], list[str]]] = {
    "another lock": (
        "another",
        [of_lock(lock())],
        [
            f"The state {NAME} has no lock with this ID. ",
            'It is locked by "bob@desk" for ',
            " d (apply), ",
            "lock ID 4fe1c2a0. Nothing was removed.",
        ],
    ),
    "a freeze that is held instead": (
        "another",
        [of_lock(freeze())],
        [f"is a freeze: incident 4711. `holdfast state unfreeze {NAME}` lifts it. Nothing was removed."],
    ),
    "a lock that came meanwhile": (
        "4fe1c2a0",
        [of_lock(lock()), refusal(409, "lock_not_matched", "Another lock is held now.")],
        ["holdfast: Another lock is held now."],
    ),
    "a freeze": (
        freeze()["id"],
        [of_lock(freeze()), refusal(423, "frozen", IS_FROZEN, held()), of_lock(freeze())],
        ["'holdfast state unfreeze' lifts it"],
    ),
}


@pytest.mark.parametrize(("named", "replies", "said"), STAYS.values(), ids=STAYS)
def test_what_a_break_does_not_remove_is_told(
    stub: ApiStub, named: str, replies: list[api_stub.Reply], said: list[str]
) -> None:
    stub.reply(*replies)

    line = failure(stub, "lock", "break", NAME, named)

    assert [part for part in said if part not in line] == []
    assert "lock break" not in line
    assert len(stub.asked) == len(replies)


def test_without_an_id_a_terminal_is_asked_about_the_lock_that_is_shown(stub: ApiStub) -> None:
    for typed, code in ((f"{NAME}\n", 0), ("y\n", 1)):
        held_lock = lock(since=ago(minutes=12, seconds=30))
        stub.reply(of_lock(held_lock), *([answer({"name": NAME, "removed": True})] if code == 0 else []))
        printed = terminal.run(
            [HOLDFAST, "lock", "break", NAME], environment(stub), columns=200, typed=typed, code=code
        )
        assert 'The state network/prod is locked by "bob@desk" for 12 min (apply).' in printed
        assert not {"OperationTypeApply", "token:", "client says"} & set(printed.split())
        assert ("was removed" in printed) is (code == 0)
    assert [asked.method for asked in stub.asked] == ["GET", "DELETE", "GET"]
    assert parse_qs(stub.asked[1].path.partition("?")[2]) == {"id": ["4fe1c2a0"], "version": ["lock-version"]}


@pytest.mark.parametrize(
    ("held_lock", "code", "said"),
    [(lock(), 2, "name the lock: `holdfast lock break network/prod 4fe1c2a0`"), (freeze(), 1, "unfreeze")],
)
def test_without_an_id_and_a_terminal_nothing_is_removed(
    stub: ApiStub, held_lock: object, code: int, said: str
) -> None:
    stub.reply(of_lock(held_lock))

    assert said in failure(stub, "lock", "break", NAME, code=code)
    assert [asked.method for asked in stub.asked] == ["GET"]


@pytest.mark.parametrize("replies", [[of_lock(None)], [of_lock(lock()), answer({"removed": False})]])
def test_a_lock_that_is_gone_is_said_so(stub: ApiStub, replies: list[api_stub.Reply]) -> None:
    stub.reply(*replies)

    assert "is not locked any more" in output(stub, "lock", "break", NAME, "4fe1c2a0")


def test_without_a_lock_nobody_says_that_there_was_one(stub: ApiStub) -> None:
    stub.reply(of_lock(None))

    assert f"The state {NAME} is not locked: nothing was removed." in output(stub, "lock", "break", NAME)


# --- activity ------------------------------------------------------------------------------------


def event(time: str, **fields: object) -> dict[str, object]:
    return {"time": time, "event": "state.written", "principal": "token:x", "state": NAME} | fields


def test_activity_is_a_table_oldest_first_with_the_newest(stub: ApiStub) -> None:
    events = [event(f"2026-11-20T12:0{minute}:00.000Z", serial=minute) for minute in (3, 2, 1)]
    stub.reply(
        HEALTH, page("events", next_="a"), page("events", events[0], next_="b"), page("events", *events[1:])
    )

    done = run(stub, "activity", NAME, "--since", "30d", "--limit", "2")

    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["DETAILS", "serial=2", "serial=3"]
    assert (
        done.stderr == "holdfast: --limit is 2. Use a larger --limit to see older events, if there are any.\n"
    )
    asked = urlsplit(stub.asked[1].path)  # after /health, which shows the API's clock
    query = parse_qs(asked.query)
    assert (asked.path, query["state"]) == ("/manage/v1/activity", [NAME])
    since = datetime.now(UTC) - datetime.fromisoformat(query["since"][0])
    assert timedelta(days=30) <= since < timedelta(days=30, minutes=5)


def test_without_a_limit_activity_is_the_newest_fifty(stub: ApiStub) -> None:
    stub.reply(HEALTH, page("events", *(event("2026-11-20T12:00:00.000Z", serial=n) for n in range(51))))

    done = run(stub, "activity", "--json")

    assert len(json.loads(done.stdout)) == 50
    assert "--limit is 50. Use a larger --limit to see older events" in done.stderr


def test_activity_of_all_states_as_json_has_what_a_newer_stack_says(stub: ApiStub) -> None:
    found = event("2026-11-20T12:00:00.000Z", colour="blue")
    stub.reply(page("events", found))

    assert json.loads(output(stub, "activity", "--json")) == [found]
    assert "state=" not in stub.asked[1].path


def test_no_activity_is_said_so(stub: ApiStub) -> None:
    stub.reply(page("events"))

    assert output(stub, "activity").endswith("Use --since to see earlier events, and --all to see reads.\n")
    # These options exclude --all.
    assert output(stub, "activity", "--writes").endswith("Use --since to see earlier events.\n")
