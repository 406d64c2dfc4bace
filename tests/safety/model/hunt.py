"""Searches in processes of their own: one for each scenario, one for each mutant."""

import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.safety.model.invariants import Invariant
from tests.safety.model.mutants import MUTANTS, Mutant
from tests.safety.model.production import FUNCTIONS, Production
from tests.safety.model.scenarios import BY_NAME, PLANS, Bounds, within
from tests.safety.model.search import Search

_ROOT: Final = FUNCTIONS.parent


@dataclass(frozen=True, slots=True)
class Job:
    """A search."""

    scenario: str
    bounds: Bounds
    mutant: Mutant | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        interleavings: how many were followed.
        complete: whether that is all within the bounds.
        invariant: the one that is broken, None if all hold.
        what: what happened.
        interleaving: the name of a shortest interleaving that shows it.
    """

    interleavings: int
    complete: bool
    invariant: Invariant | None = None
    what: str = ""
    interleaving: str = ""


def searches(*, long: bool) -> list[Job]:
    """What is searched in the code as it is, the largest first."""
    return [
        Job(plan.scenario.name, Bounds(scenario.faults, scenario.repeats, scenario.ticks))
        for plan in PLANS
        for scenario in plan.searches(long=long)
    ]


def hunts() -> list[Job]:
    """A search for every mutant."""
    return [Job(mutant.scenario, Bounds(*mutant.bounds), mutant) for mutant in MUTANTS]


def run(jobs: Sequence[Job], *, at_most: int, processes: int) -> Iterator[tuple[Job, Found]]:
    """Run searches side by side.

    Args:
        at_most: worlds that one search goes to.
        processes: at the same time.

    Raises:
        RuntimeError: a search ended without a result.
    """
    with ThreadPoolExecutor(processes) as pool:
        waiting = {pool.submit(_in_a_process, job, at_most): job for job in jobs}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _in_a_process(job: Job, at_most: int) -> Found:
    with tempfile.TemporaryDirectory(prefix="holdfast-mutant-") as folder:
        functions = FUNCTIONS
        if job.mutant:
            functions = Path(folder) / "functions"
            shutil.copytree(FUNCTIONS, functions, ignore=shutil.ignore_patterns("__pycache__"))
            job.mutant.apply(functions)
        bounds = map(str, (job.bounds.faults, job.bounds.repeats, job.bounds.ticks))
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.safety.model.hunt",
                str(functions),
                job.scenario,
                *bounds,
                str(at_most),
            ],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"the search of {job} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    told: dict[str, Any] = json.loads(done.stdout)
    invariant = Invariant[told["invariant"]] if told["invariant"] else None
    return Found(told["interleavings"], told["complete"], invariant, told["what"], told["interleaving"])


def main(arguments: Iterable[str]) -> None:
    """Search one scenario and print what was found as JSON."""
    functions, name, *numbers = arguments
    faults, repeats, ticks, at_most = map(int, numbers)
    os.nice(5)  # the deployed stack, whose time goes by the clock, comes first
    gc.disable()  # nothing of a search is ever given up before its end
    search = Search(Production(Path(functions)), within(BY_NAME[name], Bounds(faults, repeats, ticks)))
    outcome = search.run(at_most=at_most)
    print(
        json.dumps(
            {
                "interleavings": outcome.interleavings,
                "complete": outcome.complete,
                "invariant": outcome.violation.invariant.name if outcome.violation else None,
                "what": outcome.violation.what if outcome.violation else "",
                "interleaving": f"{name}:{','.join(outcome.interleaving)}" if outcome.violation else "",
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
