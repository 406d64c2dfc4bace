"""Searches in separate processes: one for each scenario with its bounds, one for each mutant."""

import gc
import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from tests.safety.model.invariants import Invariant
from tests.safety.model.mutants import MUTANTS, Mutant
from tests.safety.model.production import FUNCTIONS, Production
from tests.safety.model.scenarios import BY_NAME, PLANS, Bounds, within
from tests.safety.model.search import Search

_ROOT: Final = FUNCTIONS.parent
_LEAST_SECONDS: Final = 1.0
"""The time of a search that begins when no time is left."""


@dataclass(frozen=True, slots=True)
class Job:
    scenario: str
    bounds: Bounds
    mutant: Mutant | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search.

    `complete` says whether the search covered every interleaving within the bounds. `invariant` is the
    violated invariant, None if all hold. `interleaving` names a shortest interleaving that violates it.
    """

    interleavings: int
    complete: bool
    invariant: Invariant | None = None
    what: str = ""
    interleaving: str = ""


def searches(*, long: bool) -> list[Job]:
    """Return the searches of the unchanged code: those of the quick run, then what the long run adds."""
    quick = [Job(plan.scenario.name, bounds) for plan in PLANS for bounds in plan.quick]
    more = [Job(plan.scenario.name, bounds) for plan in PLANS for bounds in plan.long]
    return quick + more if long else quick


def hunts() -> list[Job]:
    """Return a search for every mutant."""
    return [Job(mutant.scenario, Bounds(*mutant.bounds), mutant) for mutant in MUTANTS]


def run(
    jobs: Sequence[Job], *, at_most: int, processes: int, seconds: float = math.inf
) -> Iterator[tuple[Job, Found]]:
    """Run searches in parallel, and yield the result of each when it ends.

    `at_most` limits the worlds of one search. `seconds` limits the time of all searches together: each gets
    an equal share of the time that is left when it begins. A search that needs longer begins again as long as
    the time is enough for twice its share. RuntimeError: a search ended without a result.
    """
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as copies,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        asked = [
            (job.mutant.name if job.mutant else None, job.scenario, *astuple(job.bounds)) for job in jobs
        ]
        untold = len(asked)
        with subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.safety.model.hunt"),
                *(str(at_most), str(processes), str(seconds), copies),
            ],
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
                        untold -= 1
                        yield _result(jobs, json.loads(line))
                searching.wait()
            finally:
                searching.terminate()
        if searching.returncode or untold:
            errors.seek(0)
            raise RuntimeError(
                f"{untold} of {len(asked)} searches gave no result, "
                f"and their process ended with {searching.returncode}:\n"
                f"{errors.read()[-4000:]}"
            )


def _functions(mutant: str | None, copy: Path) -> Path:
    """Return the folder with the code of a search: a copy with its mutant, if it has a mutant."""
    if mutant is None:
        return FUNCTIONS
    shutil.copytree(FUNCTIONS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (found,) = (one for one in MUTANTS if one.name == mutant)
    found.apply(copy)
    return copy


def _result(jobs: Sequence[Job], told: dict[str, Any]) -> tuple[Job, Found]:
    invariant = Invariant[told["invariant"]] if told["invariant"] else None
    found = Found(told["interleavings"], told["complete"], invariant, told["what"], told["interleaving"])
    return jobs[told["number"]], found


def main(arguments: Sequence[str]) -> None:
    """Run the searches on standard input, each in a fork of this process, and print each result as JSON."""
    at_most, processes, seconds = (*map(int, arguments[:2]), float(arguments[2]))
    ends = time.monotonic() + seconds
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.nice(5)  # the tests of the deployed stack measure real time, so they have priority
    gc.disable()  # a search frees no memory before its end
    _import_what_the_code_imports()
    # Here and not in the process that asks: Python 3.11 fails if two threads parse code at the same time.
    jobs = [
        (str(_functions(mutant, Path(arguments[3], str(number)))), *rest)
        for number, (mutant, *rest) in enumerate(json.load(sys.stdin))
    ]
    waiting = list(range(len(jobs)))
    while waiting:
        cut: list[dict[str, Any]] = []
        for found in _searched(jobs, waiting, at_most=at_most, processes=processes, ends=ends):
            if found["out_of_time"]:
                cut.append(found)
            else:
                print(json.dumps(found), flush=True)
        # A search cannot go on where it was cut. It begins again if it can have twice its time.
        left = (ends - time.monotonic()) * processes
        waiting = []
        for found in sorted(cut, key=lambda found: found["seconds"]):
            left -= 2 * found["seconds"]
            if left > 0:
                waiting.append(found["number"])
            else:
                print(json.dumps(found), flush=True)


def _searched(
    jobs: Sequence[Any], numbers: Sequence[int], *, at_most: int, processes: int, ends: float
) -> Iterator[dict[str, Any]]:
    """Search in parallel, each with an equal share of the time that is left, and yield each result."""
    forks = multiprocessing.get_context("fork")
    running: dict[Connection, BaseProcess] = {}
    for place, number in enumerate(numbers):
        if len(running) == processes:
            yield from _ended(running)
        # The time that a short search does not use goes to all that follow.
        of_all = min(1, processes / (len(numbers) - place))
        share = max((ends - time.monotonic()) * of_all, _LEAST_SECONDS)
        told, telling = forks.Pipe(duplex=False)
        job = jobs[number]
        search = forks.Process(
            target=_search, args=(telling, number, *job, at_most, share), name=str(job), daemon=True
        )
        search.start()
        telling.close()  # now only the search has it open, so the pipe ends when the search dies
        running[told] = search
    while running:
        yield from _ended(running)


def _import_what_the_code_imports() -> None:
    """Import the packages of the production code once, before the forks. Each fork imports its own code."""
    Production()
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(FUNCTIONS):
            del sys.modules[name]


def _ended(running: dict[Connection, BaseProcess]) -> Iterator[dict[str, Any]]:
    """Wait until some searches have ended, yield their results, and remove them from `running`."""
    ended = wait(list(running))
    for told in [told for told in running if told in ended]:
        search = running.pop(told)
        try:
            found = told.recv()
        except EOFError:
            search.join()
            sys.exit(f"the search of {search.name} ended with {search.exitcode} and without a result")
        search.join()
        yield found


def _search(
    telling: Connection,
    number: int,
    functions: str,
    name: str,
    faults: int,
    repeats: int,
    ticks: int,
    at_most: int,
    seconds: float,
) -> None:
    production = Production(Path(functions))
    gc.disable()  # the import of the handler has turned it on
    search = Search(production, within(BY_NAME[name], Bounds(faults, repeats, ticks)))
    outcome = search.run(at_most=at_most, seconds=seconds)
    found = {
        "number": number,
        "interleavings": outcome.interleavings,
        "complete": outcome.complete,
        "seconds": seconds,
        "out_of_time": not outcome.complete and outcome.violation is None and outcome.worlds < at_most,
        "invariant": outcome.violation.invariant.name if outcome.violation else None,
        "what": outcome.violation.what if outcome.violation else "",
        "interleaving": f"{name}:{','.join(outcome.interleaving)}" if outcome.violation else "",
    }
    telling.send(found)


if __name__ == "__main__":
    main(sys.argv[1:])
