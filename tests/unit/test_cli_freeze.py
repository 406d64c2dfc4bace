"""`holdfast state freeze` and `unfreeze`."""

import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from holdfast_cli.main import main
from tests.support import terminal
from tests.support.api_stub import ApiStub, Reply
from tests.support.cli_account import HOLDFAST
from tests.support.management import (
    NAME,
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

FREEZE = ("state", "freeze")
REASON = ("--reason", "incident 4711")
LOCKED = refusal(423, "locked", "The state is locked by bob@desk, lock ID 4fe1c2a0.", held())
FROZEN = refusal(423, "frozen", "The state is frozen by token:ada: release 8.", held("frozen: release 8"))


def frozen(name: str = NAME, until: str | None = None) -> Reply:
    return answer({"name": name, "freeze": {"id": 32 * "b", "reason": "incident 4711", "until": until}})


def item(name: str, held_lock: object = None) -> dict[str, object]:
    return {"name": name, "size": 1, "modified": "2026-11-20T12:00:00Z", "deleted": False, "lock": held_lock}


# --- one state -----------------------------------------------------------------------------------


def test_a_freeze_has_a_reason_an_end_and_an_id(stub: ApiStub) -> None:
    stub.reply(frozen(until="2099-01-01T00:00:00Z"))

    text = output(stub, *FREEZE, NAME, *REASON, "--until", "2099-01-01T01:00+01:00")

    assert text == f"{NAME} is frozen until 2099-01-01 00:00:00 UTC.\n"
    health, asked = stub.asked
    assert (health.path, "authorization" in health.headers) == ("/health", False)
    assert (asked.method, asked.path) == ("PUT", f"/manage/v1/freeze/{NAME}")
    sent = json.loads(asked.body)
    assert re.fullmatch("[0-9a-f]{32}", sent.pop("id"))
    assert sent == {"reason": "incident 4711", "until": "2099-01-01T00:00:00Z"}

    stub.reply(frozen(until="at dusk"))  # a form that this command cannot read
    assert output(stub, *FREEZE, NAME, *REASON) == f"{NAME} is frozen until at dusk.\n"


def test_a_duration_ends_so_long_from_now_and_no_end_is_none(stub: ApiStub) -> None:
    stub.reply(frozen())

    assert "until you run `holdfast state unfreeze network/prod`" in output(stub, *FREEZE, NAME, *REASON)
    output(stub, *FREEZE, NAME, *REASON, "--until", "2h")

    first, second = (json.loads(asked.body) for asked in stub.asked if asked.body)
    assert first["until"] is None
    left = datetime.fromisoformat(second["until"]) - datetime.now(UTC)
    assert timedelta(hours=1, minutes=55) < left <= timedelta(hours=2)
    assert first["id"] != second["id"]


@pytest.mark.parametrize("until", ["2001-01-01T01:00+01:00", "0s"])
def test_an_end_that_has_passed_freezes_nothing(stub: ApiStub, until: str) -> None:
    stub.reply(frozen())

    line = failure(stub, *FREEZE, NAME, *REASON, "--until", until, code=2)

    assert f"'{until}' means 20" in line
    assert line.endswith("), which has passed already.")
    assert [asked.path for asked in stub.asked] == ["/health"]


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        (
            (LOCKED, of_lock(lock(since="2026-11-20T12:00:00Z"))),
            ("locked by bob@desk", "since 2026-11-20 12:00:00 UTC", "With --wait, the command waits"),
        ),
        (
            (FROZEN, of_lock(freeze() | {"since": "2026-11-20T12:00:00Z"})),
            ("by token:ada: release 8. The state has been frozen since 2026-11-20 12:00:00 UTC (",),
        ),
    ],
    ids=["locked", "frozen"],
)
def test_what_keeps_a_state_from_a_freeze_is_told_with_who_and_since_when(
    stub: ApiStub, replies: tuple[Reply, ...], said: tuple[str, ...]
) -> None:
    stub.reply(*replies)

    line = failure(stub, *FREEZE, NAME, *REASON)

    assert [part for part in said if part not in line] == []
    assert ("lock break" in line) is (replies[0] is LOCKED)


# --- waiting -------------------------------------------------------------------------------------


def waiting(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch, *arguments: str, clock: float = 1.0
) -> tuple[int, list[float]]:
    """Run the command with a clock that moves on at each look; return its exit code and its pauses."""
    for name, value in environment(stub).items():
        monkeypatch.setenv(name, value)
    pauses: list[float] = []
    passed = iter(range(1_000_000))
    clocks = SimpleNamespace(sleep=pauses.append, monotonic=lambda: next(passed) * clock)
    monkeypatch.setattr("holdfast_cli.commands.freeze.time", clocks)
    return main([*FREEZE, NAME, *REASON, *arguments]), pauses


def test_it_waits_until_the_lock_is_released_and_freezes_with_the_same_id(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = (LOCKED, of_lock(lock()))  # the error message reads the holder of the lock
    stub.reply(*refused, of_lock(lock()), of_lock(None), *refused, of_lock(None), frozen())

    code, pauses = waiting(stub, monkeypatch, "--wait")

    assert (code, len(pauses)) == (0, 1)
    assert "is frozen until" in capsys.readouterr().out
    sent = [asked.body for asked in stub.asked if asked.method == "PUT"]
    assert (len(sent), len(set(sent))) == (3, 1)


@pytest.mark.parametrize(("limit", "clock", "expected"), [("2m", 50.0, [5.0, 5.0]), ("3s", 1.0, [2.0, 1.0])])
def test_it_waits_no_longer_than_was_said_and_its_last_pause_ends_then(
    stub: ApiStub,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    limit: str,
    clock: float,
    expected: list[float],
) -> None:
    stub.reply(LOCKED, of_lock(lock()))

    assert waiting(stub, monkeypatch, "--wait", limit, clock=clock) == (1, expected)
    assert "locked by bob@desk" in capsys.readouterr().err


@pytest.mark.parametrize("before", [(), (LOCKED, of_lock(lock()), of_lock(freeze()))], ids=["held", "new"])
def test_a_freeze_of_somebody_else_is_not_waited_for(
    stub: ApiStub,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    before: tuple[Reply, ...],
) -> None:
    stub.reply(*before, FROZEN, of_lock(freeze()))

    assert waiting(stub, monkeypatch, "--wait") == (1, [])
    assert "is frozen by token:ada" in capsys.readouterr().err


# --- patterns ------------------------------------------------------------------------------------

ALL = page("states", item("app"), item("network/eu"), item("network/prod", freeze()), item("network/us/a"))
NAMES = ("network/eu", "network/prod", "network/us/a")
ID = 32 * "b"


def of_pattern(
    pattern: str = "network/*",
    *,
    names: tuple[str, ...] = (),
    frozen: tuple[str, ...] = (),
    id_: str = ID,
    next_: str | None = None,
    until: str | None = None,
) -> Reply:
    placed = {"id": id_, "reason": "incident 4711", "until": until, "pattern": pattern, "by": "token:ada"}
    return answer({"freeze": placed, "frozen": list(frozen), "names": list(names), "next": next_})


def test_a_pattern_is_frozen_page_by_page_and_a_name_that_a_later_page_freezes_is_done(stub: ApiStub) -> None:
    stub.reply(
        ALL, of_pattern(names=(NAME,), frozen=("network/eu",), next_="more"), of_pattern(frozen=(NAME,))
    )

    text = output(stub, *FREEZE, "network/*", *REASON)

    assert text.count("is frozen until you run `holdfast state unfreeze 'network/*'`.") == 2
    first, second = (json.loads(asked.body) for asked in stub.asked if asked.method == "PUT")
    assert second == {**first, "cursor": "more"}

    stub.reply(*(of_pattern(frozen=("network/eu",), next_="more"),) * 2)  # without an end
    line = failure(stub, *FREEZE, "network/*", *REASON, "--yes")
    assert "did not return all states" in line
    assert "At least 1 state was changed. You can run the command again." in line


@pytest.mark.parametrize("states", ["network/*", "network/"])
def test_what_the_pattern_did_not_freeze_gets_its_freeze_one_by_one(stub: ApiStub, states: str) -> None:
    stub.reply(
        *(ALL, of_pattern(names=("network/prod", "network/us/a"), frozen=("network/eu",))),
        *(FROZEN, *(of_lock(freeze()),) * 2, frozen("network/us/a")),
    )

    found = json.loads(output(stub, *FREEZE, states, *REASON, "--json"))

    assert [(one["name"], one["result"]) for one in found] == [
        ("network/eu", "frozen"),
        ("network/prod", "already_frozen"),
        ("network/us/a", "frozen"),
        ("network/*", "already_frozen"),
    ]
    assert found[1]["freeze"]["reason"] == "incident 4711"
    assert {tuple(one) for one in found} == {("name", "result", "message", "freeze")}
    first, *others = [asked for asked in stub.asked if asked.method == "PUT"]
    assert (first.path, json.loads(first.body)["pattern"]) == ("/manage/v1/freezes", "network/*")
    assert [asked.path for asked in others] == [f"/manage/v1/freeze/{name}" for name in NAMES[1:]]
    # Somebody has frozen the pattern before, so their freeze counts.
    assert {json.loads(asked.body)["id"] for asked in others} == {ID}


def test_a_pattern_does_not_hold_a_state_whose_own_freeze_ends_before_it(stub: ApiStub) -> None:
    until, sooner = "2099-01-02T00:00:00Z", "2099-01-01T00:00:00Z"
    replies = of_pattern(until=until, names=(NAME,)), FROZEN
    stub.reply(*replies, *(of_lock(freeze(until=sooner)),) * 2)
    arguments = (*FREEZE, "network/*", *REASON, "--yes")

    done = run(stub, *arguments)

    assert done.returncode == 1
    state, pattern = done.stdout.splitlines()
    assert (
        "until 2099-01-01 00:00:00 UTC: incident 4711. To freeze it for longer, run the command again after "
        "that time." in state
    )
    assert "was frozen already by the token ada, until 2099-01-02 00:00:00 UTC: incident 4711. " in pattern
    assert pattern.endswith("the states named above are not frozen.")

    stub.reply(*replies, *(of_lock(freeze(until=until)),) * 2)
    assert output(stub, *arguments).endswith(
        "The freeze is complete. It includes states that are created later.\n"
    )


def test_a_locked_one_is_told_the_others_are_frozen_and_the_end_is_a_failure(stub: ApiStub) -> None:
    left = of_pattern(names=("network/eu",), frozen=("network/prod", "network/us/a"))
    stub.reply(ALL, left, LOCKED, of_lock(lock()))

    done = run(stub, *FREEZE, "network/*", *REASON)

    assert done.returncode == 1
    first, second, third, pattern = done.stdout.splitlines()
    assert first.startswith("network/eu: The state is locked by bob@desk")
    assert second.startswith("network/prod is frozen until")
    assert third.startswith("network/us/a is frozen until")
    assert pattern.endswith("but the freeze is not complete yet: the states named above are not frozen.")
    assert "Not done: 1 of 3 states (network/eu)" in done.stderr
    assert "You can run the command again." in done.stderr

    stub.reply(left, LOCKED, of_lock(lock()))
    printed = run(stub, *FREEZE, "network/*", *REASON, "--yes", "--json").stdout
    assert [one["result"] for one in json.loads(printed)] == ["locked", "frozen", "frozen", "locked"]


def test_a_terminal_counts_the_states_with_the_usual_outcome_and_has_the_pattern_last(stub: ApiStub) -> None:
    left = of_pattern(names=("network/eu",), frozen=("network/prod", "network/us/a"))
    stub.reply(left, LOCKED, of_lock(lock()))
    words = (HOLDFAST, *FREEZE, "network/*", *REASON, "--yes")

    printed = terminal.run(words, environment(stub, TERM="dumb"), columns=500, code=1).splitlines()

    first, counted, pattern, failed = printed
    assert first.startswith("network/eu: The state is locked by bob@desk")
    assert counted == "2 states are frozen."
    assert pattern.startswith("network/* was frozen already")
    assert failed.startswith("holdfast: Not done: 1 of 3 states (network/eu)")


def test_of_many_locked_states_five_are_named(stub: ApiStub) -> None:
    names = tuple(f"network/{letter}" for letter in "abcdefg")
    stub.reply(of_pattern(names=names), *(LOCKED, of_lock(lock())) * len(names))

    done = run(stub, *FREEZE, "network/*", *REASON, "--yes")

    assert (
        "Not done: 7 of 7 states (network/a, network/b, network/c, network/d, network/e and 2 more)"
        in done.stderr
    )


def test_what_is_locked_is_waited_for(stub: ApiStub) -> None:
    stub.reply(
        *(ALL, of_pattern(names=("network/eu",), frozen=("network/us/a",))),
        *(LOCKED, of_lock(lock()), of_lock(None), frozen("network/eu")),
    )

    first, second, third = output(stub, *FREEZE, "network/*", *REASON, "--wait").splitlines()

    assert first.startswith("network/eu is frozen until")
    assert second.startswith("network/us/a is frozen until")
    assert third.endswith("The freeze is complete. It includes states that are created later.")
    assert [asked.path.rpartition("freeze/")[2] for asked in stub.asked if asked.method == "PUT"][1:] == [
        "network/eu",
        "network/eu",
    ]


def test_a_refusal_that_is_not_about_one_state_ends_it_with_what_is_done(stub: ApiStub) -> None:
    refused = refusal(403, "not_allowed", "The role 'writer' does not allow it.")
    stub.reply(ALL, of_pattern(names=NAMES[1:], frozen=NAMES[:1]), frozen("network/prod"), refused)

    line = failure(stub, *FREEZE, "network/*", *REASON)

    assert "The role 'writer'" in line
    assert "At least 2 states were changed. You can run the command again." in line


def test_a_pattern_that_matches_nothing_yet_is_frozen(stub: ApiStub) -> None:
    stub.reply(ALL, of_pattern("none/*", names=()))

    said = output(stub, *FREEZE, "none/*", *REASON)
    assert said.endswith("The freeze is complete. It includes states that are created later.\n")


@pytest.mark.parametrize("pattern", ["*", "*/*"])
def test_a_pattern_that_matches_everything_asks(stub: ApiStub, pattern: str) -> None:
    both = page("states", item("network/eu"), item("network/prod"))
    of_both = of_pattern(pattern, frozen=("network/eu", "network/prod"))
    stub.reply(both)
    line = failure(stub, *FREEZE, pattern, *REASON, code=2)
    assert (
        f"The pattern {pattern} matches every state in your scope. The command freezes all 2 states." in line
    )
    assert "--yes" in line
    assert {asked.method for asked in stub.asked} == {"GET"}

    stub.reply(both, of_both)
    printed = terminal.run((HOLDFAST, *FREEZE, pattern, *REASON), environment(stub), columns=200, typed="2\n")
    assert printed.splitlines()[-2].endswith("2 states are frozen.")

    stub.reply(of_both)
    assert output(stub, *FREEZE, pattern, *REASON, "--yes").count("is frozen until") == 2


# --- unfreeze ------------------------------------------------------------------------------------


def test_an_unfreeze_names_the_freeze_that_it_saw(stub: ApiStub) -> None:
    stub.reply(of_lock(freeze(id=32 * "b")), freezes("app/*"), answer({"name": NAME, "removed": True}))

    said = f"{NAME} is not frozen any more. The reason was: incident 4711.\n"
    assert output(stub, "state", "unfreeze", NAME) == said
    asked = stub.asked[-1]
    assert (asked.method, asked.path) == ("DELETE", f"/manage/v1/freeze/{NAME}?id={32 * 'b'}")


@pytest.mark.parametrize("removed", [True, False])
def test_an_unfreeze_of_one_state_of_a_pattern_says_that_the_pattern_stays_frozen(
    stub: ApiStub, removed: bool
) -> None:
    stub.reply(of_lock(freeze()), freezes("network/*"), answer({"name": NAME, "removed": removed}))

    said = terminal.run([HOLDFAST, "state", "unfreeze", NAME], environment(stub, TERM="dumb"), columns=80)

    stays = "The pattern network/* stays frozen: `holdfast state unfreeze 'network/*'` lifts that freeze."
    assert (stays in " ".join(said.split())) == removed
    assert not any(line.startswith(" ") for line in said.splitlines())


def test_an_unfreeze_does_not_fail_because_the_frozen_patterns_cannot_be_read(stub: ApiStub) -> None:
    stub.reply(of_lock(freeze()), refusal(403, "not_allowed", "No."), answer({"name": NAME, "removed": True}))

    assert output(stub, "state", "unfreeze", NAME).endswith("The reason was: incident 4711.\n")


@pytest.mark.parametrize(
    ("held_lock", "said"),
    [(None, "is not frozen.\n"), (lock(), 'is not frozen: it is locked by "bob@desk" for')],
)
def test_what_is_not_frozen_is_said_so_and_stays(stub: ApiStub, held_lock: object, said: str) -> None:
    stub.reply(of_lock(held_lock))

    assert said in output(stub, "state", "unfreeze", NAME)
    assert len(stub.asked) == 1


def test_another_freeze_that_came_meanwhile_stays(stub: ApiStub) -> None:
    refused = refusal(409, "lock_not_matched", "Another freeze is held now.")
    stub.reply(of_lock(freeze()), freezes(), refused)

    done = run(stub, "state", "unfreeze", NAME)

    assert (done.returncode, done.stdout) == (1, "network/prod: Another freeze is held now.\n")


def freezes(*patterns: str, liftable: bool = True) -> Reply:
    placed = {
        "id": 32 * "a",
        "reason": "incident 4711",
        "until": None,
        "by": "token:ada",
        "liftable": liftable,
    }
    return answer({"freezes": [{**placed, "pattern": pattern} for pattern in patterns]})


OTHER = freeze() | {"freeze": freeze()["freeze"] | {"id": 32 * "c", "reason": "an audit"}}
SOME = page(
    "states", item("network/eu", freeze()), item("network/prod", OTHER), item("network/us/a"), item("app")
)


def lifted(*names: str, covered: tuple[object, ...] = (), next_: str | None = None) -> Reply:
    return answer({"pattern": "network/*", "unfrozen": list(names), "covered": list(covered), "next": next_})


def covered(name: str, *, frozen: bool) -> dict[str, object]:
    by = {"id": ID, "reason": "release 8", "until": None, "pattern": "network/e*", "by": "token:bob"}
    return {"name": name, "freeze": by, "frozen": frozen}


def test_a_pattern_unfreezes_what_its_freeze_made_and_names_the_others(stub: ApiStub) -> None:
    stub.reply(
        *(freezes("app/*", "network/*"), SOME, lifted("network/eu", next_="more"), lifted("network/x")),
        of_lock(OTHER),
    )

    text = output(stub, "state", "unfreeze", "network/*")

    assert text.splitlines() == [
        "network/eu is not frozen any more. The reason was: incident 4711.",
        "network/prod is still frozen by the token ada: an audit.",
        "network/x is not frozen any more. The reason was: incident 4711.",
        "network/* is not frozen any more. The reason was: incident 4711.",
    ]
    assert [asked.path for asked in stub.asked if asked.method == "DELETE"] == [
        f"/manage/v1/freezes?id={32 * 'a'}",
        f"/manage/v1/freezes?id={32 * 'a'}&cursor=more",
    ]


def test_a_state_that_another_frozen_pattern_covers_is_told_with_that_pattern(stub: ApiStub) -> None:
    again, locked = covered("network/eu", frozen=True), covered("network/e", frozen=False)
    stub.reply(freezes("network/*"), SOME, lifted(covered=(again, locked)), of_lock(OTHER))

    done = run(stub, "state", "unfreeze", "network/*")

    assert done.returncode == 1
    first, second, *_ = done.stdout.splitlines()
    assert first == (
        "network/e is locked now, so the freeze of the pattern network/e* does not stop the lock's holder. "
        "When the lock is released, freeze network/e* again."
    )
    assert second.startswith("network/eu is frozen until you run `holdfast state unfreeze 'network/e*'`.")
    assert second.endswith("The frozen pattern network/e* covers it.")


@pytest.mark.parametrize(
    ("of_eu", "result"),
    [
        ((of_lock(None),), "not_frozen"),
        ((of_lock(OTHER),), "other_freeze"),
        ((of_lock(freeze()), answer({"name": "network/eu", "removed": True})), "unfrozen"),
    ],
)
def test_the_outcome_for_a_frozen_state_that_no_answer_names_is_that_of_its_lock(
    stub: ApiStub, of_eu: tuple[Reply, ...], result: str
) -> None:
    some = page("states", item("network/eu", freeze()), item("app"))
    stub.reply(freezes("network/*"), some, lifted(), *of_eu)

    done = json.loads(output(stub, "state", "unfreeze", "network/*", "--json"))

    assert [one["result"] for one in done] == [result, "unfrozen"]


def test_an_api_that_unfreezes_the_pattern_alone_is_too_old(stub: ApiStub) -> None:
    stub.reply(freezes("network/*"), SOME, answer({"pattern": "network/*"}))

    line = failure(stub, "state", "unfreeze", "network/*")

    assert "but not the states. Upgrade the stack, then unfreeze each state by name." in line


@pytest.mark.parametrize("listed", [freezes("app/*"), freezes("network/*", liftable=False)])
def test_a_pattern_whose_freeze_you_may_not_lift_names_what_is_frozen_alone(
    stub: ApiStub, listed: Reply
) -> None:
    stub.reply(listed, SOME)

    line = failure(stub, "state", "unfreeze", "network/*")

    assert "There is no freeze of the pattern network/* that you may lift" in line
    assert line.endswith(
        "These matching states are frozen: network/eu, network/prod. `holdfast lock list` shows the freeze "
        "of each."
    )
    assert {asked.method for asked in stub.asked} == {"GET"}
