"""Searches in processes of their own: one for each scenario, one for each mutant."""

import gc
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

# What the production code imports: imported before the forks, and so once.
import aws_lambda_powertools.metrics  # noqa: F401
import boto3.s3.transfer  # noqa: F401

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
    """Run searches side by side, and yield what each found when it has ended.

    Args:
        at_most: worlds that one search goes to.
        processes: at the same time.

    Raises:
        RuntimeError: a search ended without a result.
    """
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as copies,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        asked = [
            (str(_functions(job, Path(copies, str(number)))), job.scenario, *astuple(job.bounds))
            for number, job in enumerate(jobs)
        ]
        with subprocess.Popen(
            [sys.executable, "-m", "tests.safety.model.hunt", str(at_most), str(processes)],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as searching:
            try:
                if searching.stdin and searching.stdout:
                    json.dump(asked, searching.stdin)
                    searching.stdin.close()
                    for line in searching.stdout:
                        yield _result(jobs, json.loads(line))
                searching.wait()
            finally:
                searching.terminate()
        if searching.returncode:
            errors.seek(0)
            raise RuntimeError(f"the searches ended with {searching.returncode}:\n{errors.read()[-4000:]}")


def _functions(job: Job, copy: Path) -> Path:
    """Return where the code of a job lies: a copy with its mutant, if it has one."""
    if job.mutant is None:
        return FUNCTIONS
    shutil.copytree(FUNCTIONS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    job.mutant.apply(copy)
    return copy


def _result(jobs: Sequence[Job], told: dict[str, Any]) -> tuple[Job, Found]:
    invariant = Invariant[told["invariant"]] if told["invariant"] else None
    found = Found(told["interleavings"], told["complete"], invariant, told["what"], told["interleaving"])
    return jobs[told["number"]], found


def main(arguments: Iterable[str]) -> None:
    """Search as standard input asks, each in a fork of this process, and print what each found as JSON."""
    at_most, processes = map(int, arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.nice(5)  # the deployed stack, whose time goes by the clock, comes first
    gc.disable()  # nothing of a search is ever given up before its end
    forks = multiprocessing.get_context("fork")
    running: list[BaseProcess] = []
    for number, job in enumerate(json.load(sys.stdin)):
        while len(running) == processes:
            running = _ended(running)
        running.append(
            forks.Process(target=_search, args=(number, *job, at_most), name=str(job), daemon=True)
        )
        running[-1].start()
    while running:
        running = _ended(running)


def _ended(running: Sequence[BaseProcess]) -> list[BaseProcess]:
    """Wait until a search has ended, and return those that still run."""
    wait([process.sentinel for process in running])
    ended = [process for process in running if process.exitcode is not None]
    for process in ended:
        if process.exitcode:
            sys.exit(f"the search of {process.name} ended with {process.exitcode}")
    return [process for process in running if process not in ended]


def _search(
    number: int, functions: str, name: str, faults: int, repeats: int, ticks: int, at_most: int
) -> None:
    search = Search(Production(Path(functions)), within(BY_NAME[name], Bounds(faults, repeats, ticks)))
    outcome = search.run(at_most=at_most)
    told = {
        "number": number,
        "interleavings": outcome.interleavings,
        "complete": outcome.complete,
        "invariant": outcome.violation.invariant.name if outcome.violation else None,
        "what": outcome.violation.what if outcome.violation else "",
        "interleaving": f"{name}:{','.join(outcome.interleaving)}" if outcome.violation else "",
    }
    os.write(1, f"{json.dumps(told)}\n".encode())  # at once: others write there, too


if __name__ == "__main__":
    main(sys.argv[1:])
