"""`make year`: how many versions and delete markers lie in a team's bucket after a year of locking.

The settings are those of teams.toml, the lifecycle rules those of the buckets that they make; time is
simulated, with S3's lifecycle as `benchmarks.s3_lifecycle` has it from AWS's documents.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import infra  # noqa: F401 before aws_cdk, because it says how that is to start

# isort: split
from aws_cdk import App, Stack

from benchmarks.s3_lifecycle import DAY, Key, ProtectedError, Rule, UnknownRuleError, Version, read_rules
from infra.config import TeamConfig, load_teams
from infra.lambdas import retention_of_each_write
from infra.state_store import StateStore

_LOCK_TAG = frozenset({("holdfast", "lock")})
_HELD = 5  # minutes, less than half of what lies between two of the most locks that a day can have

_EXAMPLES = """examples:
  make year
  .venv/bin/python -m benchmarks.year_of_locking --states 200 --locks 40
  .venv/bin/python -m benchmarks.year_of_locking --days 730 --json > two-years.json
"""


class Client(StrEnum):
    """Who locks and writes."""

    HOLDFAST = "Holdfast"
    NATIVE = 'backend "s3"'


@dataclass(frozen=True, slots=True)
class Load:
    """What is done.

    Attributes:
        states: how many, all alike.
        locks: acquires of each in a day, spread over the day, each released 5 minutes later.
        writes: of each in a day, under those locks in turn.
        days: for how long.
    """

    states: int = 20
    locks: int = 10
    writes: int = 3
    days: int = 365


@dataclass(frozen=True, slots=True)
class Store:
    """A team's bucket.

    Attributes:
        rules: of its lifecycle.
        default_retention: days of its Object Lock default, or 0.
        state_retention: days that Holdfast asks for with each write of a state, or 0.
    """

    rules: tuple[Rule, ...]
    default_retention: int
    state_retention: int


@dataclass(frozen=True, slots=True)
class Left:
    """What lies in the bucket, over all states.

    Attributes:
        lock_versions: versions of lock objects.
        lock_markers: delete markers of lock objects.
        state_versions: versions of states, with the current ones.
    """

    lock_versions: int
    lock_markers: int
    state_versions: int


@dataclass(frozen=True, slots=True)
class Case:
    """A team and its clients.

    Attributes:
        settings: the team's, as they stand in teams.toml.
        client: who locks and writes.
    """

    settings: str
    client: Client


_HISTORY = "history = { days = 30, keep_versions = 20 }"
_ON_WRITE = 'retention = { mode = "governance", days = 30 }'
_BY_DEFAULT = 'retention = { mode = "governance", days = 30, bucket_default = true }'

CASES = (
    Case("", Client.HOLDFAST),
    Case(_HISTORY, Client.HOLDFAST),
    Case(_ON_WRITE, Client.HOLDFAST),
    Case(f"{_ON_WRITE}\n{_HISTORY}", Client.HOLDFAST),
    Case(_BY_DEFAULT, Client.HOLDFAST),
    Case(f"{_BY_DEFAULT}\n{_HISTORY}", Client.HOLDFAST),
    Case("native_clients = true", Client.NATIVE),
    Case(f"native_clients = true\n{_HISTORY}", Client.NATIVE),
)


# --- what is simulated ---------------------------------------------------------------------------


def teams_with(settings: Sequence[str]) -> tuple[TeamConfig, ...]:
    """A team with each of these settings.

    Raises:
        ConfigError: they are not allowed.
    """
    tables = [f"[teams.team-{number}]\n{text}\n" for number, text in enumerate(settings)]
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("".join(tables))
        file.flush()
        return load_teams(Path(file.name))


def stores(teams: Sequence[TeamConfig]) -> list[Store]:
    """Synthesize the state stores of some teams, and read what matters here from their templates.

    Raises:
        UnknownRuleError: a lifecycle rule does more than the model knows.
    """
    context = json.loads((Path(__file__).parents[1] / "cdk.json").read_text())["context"]
    with tempfile.TemporaryDirectory() as folder:
        app = App(context=context, outdir=folder, analytics_reporting=False)
        for number, team in enumerate(teams):
            StateStore(Stack(app, f"Team{number}"), "StateStore", team)
        assembly = app.synth()
        templates = [assembly.get_stack_by_name(f"Team{number}").template for number in range(len(teams))]
    return [_store(team, template) for team, template in zip(teams, templates, strict=True)]


def _store(team: TeamConfig, template: dict[str, Any]) -> Store:
    bucket = template["Resources"]["StateBucket"]["Properties"]
    default = bucket.get("ObjectLockConfiguration", {}).get("Rule", {}).get("DefaultRetention", {})
    mode_and_days = retention_of_each_write(team)
    return Store(
        rules=read_rules(bucket.get("LifecycleConfiguration", {}).get("Rules", [])),
        default_retention=default.get("Days", 0),
        state_retention=int(mode_and_days.split()[1]) if mode_and_days else 0,
    )


def simulate(store: Store, client: Client, load: Load) -> Left:
    """Lock and write for some days, with lifecycle at each midnight.

    One state stands for all: lifecycle looks at one key at a time.
    """
    state, lock = Key("states/network/prod.tfstate"), Key("states/network/prod.tfstate.tflock")
    for day in range(load.days):
        for nth in range(load.locks):
            now = day * DAY + (2 * nth + 1) * DAY // (2 * load.locks)
            held = acquire(lock, store, client, now)
            for _ in range(nth, load.writes, load.locks):
                write(state, store, client, now + 1)
            release(lock, held, client, now + _HELD)
        for key in (state, lock):
            key.expire(store.rules, (day + 1) * DAY)
    return Left(
        lock_versions=load.states * lock.objects,
        lock_markers=load.states * lock.markers,
        state_versions=load.states * state.objects,
    )


def acquire(lock: Key, store: Store, client: Client, now: int) -> Version:
    """Make the lock object. Terraform's own backend gives it no tag."""
    tags = _LOCK_TAG if client is Client.HOLDFAST else frozenset()
    return lock.put(now, tags=tags, retained_days=store.default_retention)


def release(lock: Key, held: Version, client: Client, now: int) -> None:
    """Holdfast removes exactly the version that it read, if S3 lets it; others leave a marker."""
    if client is Client.HOLDFAST:
        try:
            lock.remove(held, now)
        except ProtectedError:
            lock.delete(now)
    else:
        lock.delete(now)


def write(state: Key, store: Store, client: Client, now: int) -> Version:
    """Write a state. Only Holdfast asks for a retention with it."""
    asked = store.state_retention if client is Client.HOLDFAST else 0
    return state.put(now, retained_days=max(asked, store.default_retention))


# --- the command ---------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate and print.

    Args:
        argv: the arguments without the program's name; None for those of the process.

    Returns:
        0, or 1 if a lifecycle rule is one that the model does not know.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.year_of_locking",
        description="Simulate how many versions and delete markers lie in a team's bucket after a time of "
        "locking and writing, with the lifecycle rules of the team's stack.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usual = Load()
    parser.add_argument("--states", type=_up_to(10_000), default=usual.states, help="default: %(default)s")
    parser.add_argument(
        "--locks", type=_up_to(100), default=usual.locks, help="of each state in a day (default: %(default)s)"
    )
    parser.add_argument(
        "--writes",
        type=_up_to(100),
        default=usual.writes,
        help="of each state in a day (default: %(default)s)",
    )
    parser.add_argument("--days", type=_up_to(10_000), default=usual.days, help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(argv)
    load = Load(options.states, options.locks, options.writes, options.days)
    try:
        in_place = stores(teams_with([case.settings for case in CASES]))
    except UnknownRuleError as unknown:
        print(f"The simulation does not know {unknown}: teach benchmarks/s3_lifecycle.py.", file=sys.stderr)
        return 1
    left = [simulate(store, case.client, load) for store, case in zip(in_place, CASES, strict=True)]
    if options.json:
        cases = [
            {"client": case.client, "settings": case.settings.splitlines(), **asdict(one)}
            for case, one in zip(CASES, left, strict=True)
        ]
        print(json.dumps({"load": asdict(load), "cases": cases}, indent=2))
    else:
        _print_table(load, left)
    return 0


def _up_to(most: int) -> Callable[[str], int]:
    def count(value: str) -> int:
        if not value.isdecimal() or not 1 <= int(value) <= most:
            raise argparse.ArgumentTypeError(f"{value!r} is not a number from 1 to {most}")
        return int(value)

    return count


def _print_table(load: Load, left: Sequence[Left]) -> None:
    print(
        f"{load.states} states, each locked {load.locks} and written {load.writes} times a day: "
        f"what lies in the bucket after {load.days} days\n"
    )
    print(f"{'':84}{'lock':>10}{'lock':>10}{'state':>10}")
    print(f"{'clients':14}{'settings of the team':70}{'versions':>10}{'markers':>10}{'versions':>10}")
    for case, one in zip(CASES, left, strict=True):
        first, *more = case.settings.splitlines() or ["the defaults"]
        figures = (one.lock_versions, one.lock_markers, one.state_versions)
        print(f"{case.client:14}{first:70}" + "".join(f"{figure:>10,}" for figure in figures))
        for line in more:
            print(f"{'':14}{line}")


if __name__ == "__main__":
    sys.exit(main())
