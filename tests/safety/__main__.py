"""`make safety` and `make safety-quick`: try to lose a state, and print the figures of the run."""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from local_aws.failure import LocalAwsError
from local_aws.terraform import terraforms
from tests.safety import conformance, exploration, fuzz, histories
from tests.safety.exploration import Explored
from tests.safety.figures import Figures
from tests.safety.figures_document import FIGURES, Part, as_json, in_page, record
from tests.safety.model.production import Production
from tests.safety.model.scenarios import BY_NAME
from tests.safety.model.search import Search
from tests.safety.wire import authorizer, load, old_clients, restart, terraform
from tests.safety.wire.stack import Stack, deployed
from tests.support.pages import page
from tests.support.user_settings import forget_user_settings

_ROOT: Final = Path(__file__).resolve().parents[2]
_PAGE: Final = page("safety.md")
_MINUTES: Final = 70

_EXAMPLES: Final = """examples:
  python -m tests.safety quick                     what `make test` runs
  python -m tests.safety long --minutes 140        twice as much as by default
  python -m tests.safety quick --only load --seed 7
  python -m tests.safety replay 'two-applies:A.lost,A,A,B'

exit codes:
  0  nothing was lost, nothing broken, every deliberate fault was found
  1  something was
  2  it could not be tried, or the command was wrong
  130  interrupted
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a run.

    Attributes:
        sequences: sequences of requests to the model and two S3 servers.
        steps: the longest random history, in rules.
        acknowledged: acknowledged writes through the deployed stack.
        terraform: rounds of a real Terraform.
        tokens: sign-ins in each phase.
        restarts: how often the local AWS is killed.
        load: the least seconds of load, if other parts took longer than planned.
    """

    long: bool
    sequences: int
    examples: int
    steps: int
    acknowledged: int
    terraform: int
    tokens: int
    restarts: int
    requests: int
    load: float
    minutes: float


_SHARES: Final[Mapping[str, float]] = {"conformance": 1 / 40, "histories": 1 / 30, "fuzz": 1 / 6}
"""The share of the time after which these parts end, finished or not."""
_EXPLORED: Final = 3 / 4
"""The share of the time after which the exploration of a long run ends. The load waits for its end."""
_COMPARING: Final = 90
"""Seconds for the final read of every version."""

_CROWDED: Final[Mapping[str, Any]] = {
    "clients": 16,
    "slots": 24,
    "generation": 10.0,
    "rates": load.Rates(client_kill=100, worker_kill=100, broken_lock=20),
}

_QUICK: Final = Bounds(
    long=False,
    sequences=12,
    examples=150,
    steps=60,
    acknowledged=300,
    terraform=5,
    tokens=2,
    restarts=1,
    requests=400,
    load=160,
    minutes=4,
)


def _long(minutes: float) -> Bounds:
    scale = minutes / _MINUTES
    return Bounds(
        long=True,
        sequences=round(300 * scale),
        examples=round(3_000 * scale),
        steps=100,
        acknowledged=round(20_000 * scale),
        terraform=round(20 * scale) + 1,
        tokens=4,
        restarts=round(4 * scale) + 1,
        requests=round(10_000 * scale),
        load=minutes * 6,
        minutes=minutes,
    )


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


@dataclass(slots=True)
class _Run:
    """A run. `commit` is what the run began with: its processes copy the code at their beginning."""

    bounds: Bounds
    seed: int
    only: frozenset[str]
    as_json: bool
    commit: str = field(default_factory=_commit)
    started: float = field(default_factory=time.monotonic)
    parts: list[Part] = field(default_factory=list)

    def wants(self, name: str) -> bool:
        return not self.only or name in self.only

    def seconds(self, name: str) -> float:
        """Return the time limit of a part of `_SHARES`."""
        return self.bounds.minutes * 60 * _SHARES[name]

    @property
    def left(self) -> float:
        return self.bounds.minutes * 60 - (time.monotonic() - self.started)

    def part(
        self,
        name: str,
        work: Callable[[Callable[[str], None]], Explored | Figures],
        *,
        planned: Figures | None = None,
    ) -> None:
        """Run a part, if the command line wants it, and keep its figures and the planned figures."""
        if not self.wants(name):
            return

        def say(text: str) -> None:
            _tell(f"{time.monotonic() - self.started:6.0f} s  {name:11} {text.removeprefix(f'{name}: ')}")

        began = time.monotonic()
        found = work(say)
        explored = found if isinstance(found, Explored) else Explored(found, ())
        seconds = time.monotonic() - began
        self.parts.append(Part(name, seconds, explored.figures, explored.rows, planned or Figures()))
        say(f"done in {seconds:.0f} s")

    @property
    def figures(self) -> Figures:
        return sum((part.figures for part in self.parts), Figures())


_ON_THE_WIRE: Final = (
    "terraform",
    "old-clients",
    "authorizer",
    "timeout",
    "fuzz",
    "redeploy",
    "restart",
    "load",
)
_PARTS: Final = ("schedules", "mutants", "limits", "conformance", "histories", *_ON_THE_WIRE)


def main() -> int:
    options = _parser().parse_args()
    forget_user_settings()
    if options.command == "replay":
        return _replay(options.interleaving)
    bounds = _long(options.minutes) if options.command == "long" else _QUICK
    seed = options.seed if options.seed is not None else _new_seed() if bounds.long else 1
    run = _Run(bounds, seed, frozenset(options.only or ()), options.json)
    try:
        _try_everything(run)
    except (LocalAwsError, RuntimeError) as failure:
        _tell(str(failure))
        return 2
    except KeyboardInterrupt:
        _tell("interrupted; everything that was started has ended")
        return 130
    if bounds.long and not run.only:
        _write(run)
    if run.as_json:
        print(json.dumps({"seed": seed, **asdict(run.figures)}))
    else:
        print(run.figures.line())
    return int(run.figures.failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.safety",
        description="Try to lose a state: every order of requests on a model of S3, deliberate faults in the "
        "code, and load, faults, kills and odd requests on a deployed stack.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    quick = commands.add_parser("quick", help="at most four minutes")
    long = commands.add_parser("long", help=f"{_MINUTES} minutes, and writes {FIGURES.name} and {_PAGE.name}")
    long.add_argument("--minutes", type=_positive, default=_MINUTES, help=f"how long (default: {_MINUTES})")
    for command in (quick, long):
        command.add_argument(
            "--seed", type=int, help="of everything that is drawn (quick: 1; long: a new one)"
        )
        command.add_argument("--only", action="append", choices=_PARTS, help="this part; may be repeated")
        command.add_argument("--json", action="store_true", help="print the figures as JSON")
    replay = commands.add_parser("replay", help="tell an interleaving, event by event")
    replay.add_argument("interleaving", help="as it was printed: the scenario, a colon, the events")
    return parser


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("takes a number of minutes above 0")
    return number


def _try_everything(run: _Run) -> None:
    _tell(f"seed {run.seed}")
    with tempfile.TemporaryDirectory(prefix="holdfast-safety-") as name, ThreadPoolExecutor(1) as beside:
        # The exploration runs in processes with a low priority.
        explored = beside.submit(_explore, run)
        _on_the_model(run)
        with _deployed(run, Path(name) / "aws") as stack:
            if stack is not None:
                _on_the_wire(run, stack, Path(name))
            explored.result()
            if stack is not None:
                _under_load(run, stack)


def _explore(run: _Run) -> None:
    run.part("mutants", lambda say: exploration.mutants(say=say))
    run.part("limits", lambda say: exploration.limits(say=say))
    left = run.left - run.bounds.minutes * 60 * (1 - _EXPLORED)
    run.part("schedules", lambda say: exploration.search(seconds=left if run.bounds.long else None, say=say))


def _on_the_model(run: _Run) -> None:
    bounds, seed = run.bounds, run.seed
    run.part(
        "conformance",
        lambda say: conformance.run(
            sequences=bounds.sequences, seconds=run.seconds("conformance"), seed=seed, say=say
        ),
        planned=Figures(sequences=bounds.sequences),
    )
    run.part(
        "histories",
        lambda say: histories.run(
            examples=bounds.examples,
            steps=bounds.steps,
            seconds=run.seconds("histories"),
            seed=seed,
            say=say,
        ),
        planned=Figures(histories=bounds.examples),
    )


@contextmanager
def _deployed(run: _Run, folder: Path) -> Iterator[Stack | None]:
    if not any(map(run.wants, _ON_THE_WIRE)):
        yield None
        return
    _tell("a local AWS is started and a team deployed")
    with deployed(folder) as stack:
        yield stack


def _on_the_wire(run: _Run, stack: Stack, folder: Path) -> None:
    bounds, seed = run.bounds, run.seed

    def empty(name: str) -> Path:
        (folder / name).mkdir()
        return folder / name

    run.part(
        "terraform",
        lambda say: terraform.run(
            rounds=bounds.terraform,
            seed=seed,
            say=say,
            stack=stack,
            folder=empty("terraform"),
            patient=bounds.long,
        ),
    )
    if bounds.long:
        run.part(
            "old-clients",
            lambda say: old_clients.run(seed=seed, say=say, stack=stack, folder=empty("old-clients")),
        )
    run.part(
        "authorizer",
        lambda say: authorizer.run(
            tokens=bounds.tokens, seed=seed, say=say, stack=stack, hanging=bounds.long
        ),
    )
    if bounds.long:
        run.part(
            "timeout",
            lambda say: terraform.timeouts(seed=seed, say=say, stack=stack, folder=empty("timeout")),
        )
    run.part(
        "fuzz",
        lambda say: fuzz.run(
            requests=bounds.requests,
            seconds=run.seconds("fuzz"),
            seed=seed,
            say=say,
            stack=stack,
        ),
        planned=Figures(requests_fuzzed=bounds.requests),
    )
    run.part("redeploy", lambda say: restart.redeploy(seed=seed, say=say, stack=stack))
    run.part("restart", lambda say: restart.restart(rounds=bounds.restarts, seed=seed, say=say, stack=stack))


def _under_load(run: _Run, stack: Stack) -> None:
    bounds = run.bounds
    run.part(
        "load",
        lambda say: load.run(
            acknowledged=bounds.acknowledged,
            seconds=max(run.left - _COMPARING, bounds.load),
            seed=run.seed,
            say=say,
            stack=stack,
            **(_CROWDED if bounds.long else {}),
        ),
        planned=Figures(acknowledged=bounds.acknowledged),
    )


def _replay(name: str) -> int:
    scenario, _, events = name.partition(":")
    if scenario not in BY_NAME:
        _tell(f"There is no scenario {scenario!r}; there are {', '.join(sorted(BY_NAME))}.")
        return 2
    try:
        lines = list(Search(Production(), BY_NAME[scenario]).story(events.split(",")))
    except ValueError as error:
        _tell(f"This interleaving does not run in the code as it is: {error}.")
        return 2
    print("\n".join(lines))
    return int(lines[-1].startswith("BROKEN"))


def _write(run: _Run) -> None:
    cores = os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}"
    written = record(
        figures=run.figures,
        parts=sorted(run.parts, key=lambda part: _PARTS.index(part.name)),
        date=datetime.now(UTC).date().isoformat(),
        commit=run.commit,
        machine=f"{cores} cores, {memory:.0f} GiB, {system}",
        clients=[found.name for found in terraforms()],
        seed=run.seed,
        seconds=time.monotonic() - run.started,
    )
    FIGURES.write_text(as_json(written), encoding="utf-8")
    _PAGE.write_text(in_page(_PAGE.read_text(encoding="utf-8"), written), encoding="utf-8")
    _tell(f"{FIGURES.name} and {_PAGE.name} are written")


def _new_seed() -> int:
    return random.SystemRandom().randrange(2**31)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
