"""What a team is promised about a year of locking holds for the lifecycle rules of its own stack."""

import json
from pathlib import Path

import pytest

from benchmarks import year_of_locking
from benchmarks.s3_lifecycle import DAY, Key
from benchmarks.year_of_locking import (
    CASES,
    Client,
    Left,
    Load,
    Store,
    main,
    simulate,
    stores,
    teams_with,
    write,
)
from infra.config import TeamConfig

LOAD = Load(states=1)
DAYS, KEEP = 30, 20
HISTORY = f"history = {{ days = {DAYS}, keep_versions = {KEEP} }}\n"
# A version that is not current goes at the second midnight after `days` at the latest.
OF_A_DAY, LATEST = 1, DAYS + 1


@pytest.fixture(scope="session")
def store() -> dict[str, Store]:
    """Buckets of teams with different settings, synthesized once."""
    on_write, by_default = (
        f'retention = {{ mode = "compliance", days = 7, bucket_default = {default} }}\n'
        for default in ("false", "true")
    )
    native = "native_clients = true\n"
    settings = {
        "defaults": "",
        "history": HISTORY,
        "retention": on_write,
        "retention and history": on_write + HISTORY,
        "bucket default": by_default,
        "bucket default and history": by_default + HISTORY,
        "native clients": native,
        "native clients and history": native + HISTORY,
    }
    return dict(zip(settings, stores(teams_with(list(settings.values()))), strict=True))


@pytest.mark.parametrize("settings", ["defaults", "history", "retention", "retention and history"])
def test_holdfasts_own_locks_leave_nothing(store: dict[str, Store], settings: str) -> None:
    left = simulate(store[settings], Client.HOLDFAST, LOAD)
    assert (left.lock_versions, left.lock_markers) == (0, 0)


def test_without_history_every_state_version_stays(store: dict[str, Store]) -> None:
    for settings in ("defaults", "retention", "bucket default"):
        assert simulate(store[settings], Client.HOLDFAST, LOAD).state_versions == LOAD.writes * LOAD.days


def test_with_history_state_versions_are_those_of_its_days(store: dict[str, Store]) -> None:
    left = simulate(store["history"], Client.HOLDFAST, LOAD)
    assert LOAD.writes * DAYS <= left.state_versions <= LOAD.writes * (LATEST + OF_A_DAY) + 1


def test_with_history_a_state_that_is_seldom_written_keeps_its_newest_versions(
    store: dict[str, Store],
) -> None:
    state = Key("states/a.tfstate")
    for day in range(365):
        if day < 2 * KEEP:
            write(state, store["history"], Client.HOLDFAST, day * DAY)
        state.expire(store["history"].rules, (day + 1) * DAY)
    assert [version.made // DAY for version in state.versions] == list(range(KEEP - 1, 2 * KEEP))


def test_locks_without_a_tag_pile_up_without_history(store: dict[str, Store]) -> None:
    left = simulate(store["native clients"], Client.NATIVE, LOAD)
    assert left.lock_versions == left.lock_markers == LOAD.locks * LOAD.days


@pytest.mark.parametrize(
    ("settings", "client"),
    [("native clients and history", Client.NATIVE), ("bucket default and history", Client.HOLDFAST)],
)
def test_history_bounds_what_locks_leave_that_are_not_removed_at_once(
    store: dict[str, Store], settings: str, client: Client
) -> None:
    year, three_years = (
        simulate(store[settings], client, Load(days=365 * years, states=1)) for years in (1, 3)
    )
    assert year == three_years, "it does not grow"
    assert year.lock_versions + year.lock_markers <= 2 * LOAD.locks * (LATEST + OF_A_DAY) + KEEP


@pytest.mark.parametrize(
    ("settings", "client"),
    [("native clients and history", Client.NATIVE), ("bucket default and history", Client.HOLDFAST)],
)
def test_once_a_lock_is_at_rest_history_leaves_no_more_than_keep_versions_and_a_marker(
    store: dict[str, Store], settings: str, client: Client
) -> None:
    lock = Key("states/a.tfstate.tflock")
    for nth in range(100):
        held = year_of_locking.acquire(lock, store[settings], client, nth)
        year_of_locking.release(lock, held, client, nth)
    for day in range(DAYS + 3):
        lock.expire(store[settings].rules, (day + 1) * DAY)
    assert len(lock.versions) <= KEEP + 1


def test_under_a_bucket_default_locks_stay_for_its_days_and_their_markers_for_ever(
    store: dict[str, Store],
) -> None:
    left = simulate(store["bucket default"], Client.HOLDFAST, LOAD)
    assert LOAD.locks * 7 <= left.lock_versions <= LOAD.locks * 8
    assert left.lock_markers == LOAD.locks * LOAD.days


@pytest.mark.parametrize("settings", ["history", "retention and history", "bucket default and history"])
@pytest.mark.parametrize("written", [1, 5, 100])
def test_a_deleted_state_can_be_brought_back_within_its_history_and_long_after(
    store: dict[str, Store], settings: str, written: int
) -> None:
    state = Key("states/a.tfstate")
    for minute in range(written):
        last = write(state, store[settings], Client.HOLDFAST, minute)
    state.delete(written)
    for day in range(365):
        state.expire(store[settings].rules, (day + 1) * DAY)
        assert last in state.versions
        assert state.versions[-1].marker
        if day < DAYS:
            assert state.objects == written


@pytest.mark.parametrize("settings", ["defaults", "history", "native clients and history"])
def test_the_current_state_stays_however_long_nobody_writes_it(
    store: dict[str, Store], settings: str
) -> None:
    state = Key("states/a.tfstate")
    written = write(state, store[settings], Client.HOLDFAST, 0)
    for day in range(365):
        state.expire(store[settings].rules, (day + 1) * DAY)
    assert state.versions == [written]


# --- the command ---------------------------------------------------------------------------------


def test_the_command_prints_every_case_for_the_load_that_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--states", "2", "--locks", "4", "--writes", "1", "--days", "10", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["load"] == {"states": 2, "locks": 4, "writes": 1, "days": 10}
    assert [case["client"] for case in told["cases"]] == [case.client for case in CASES]
    assert told["cases"][0] == {
        "client": "Holdfast",
        "settings": [],
        "lock_versions": 0,
        "lock_markers": 0,
        "state_versions": 20,
    }


def test_the_table_has_a_line_for_every_case(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(year_of_locking, "stores", lambda teams: [None for _ in teams])
    monkeypatch.setattr(year_of_locking, "simulate", lambda *_: Left(1111, 22, 333333))
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("20 states, each locked 10 and written 3 times a day")
    assert printed.count("     1,111        22   333,333\n") == len(CASES)
    for case in CASES:
        for setting in case.settings.splitlines():
            assert setting in printed


@pytest.mark.parametrize("arguments", [["--locks", "101"], ["--days", "0"], ["--states", "many"]])
def test_a_number_that_is_none_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "is not a number from 1 to 10" in capsys.readouterr().err


def test_the_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "make year" in capsys.readouterr().out


def test_it_writes_nothing_into_the_folder_it_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stores([TeamConfig(name="a")])
    assert list(tmp_path.iterdir()) == []
