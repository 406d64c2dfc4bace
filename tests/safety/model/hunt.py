"""Searches in processes of their own: one for each scenario, one for each mutant."""

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
"""What a search has that begins when the time is up."""


@dataclass(frozen=True, slots=True)
class Job:
    scenario: str
    bounds: Bounds
    mutant: Mutant | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    `complete` says whether the interleavings are all within the bounds. `invariant` is None if all hold.
    `interleaving` names a shortest one that shows it.
    """

    interleavings: int
    complete: bool
    invariant: Invariant | None = None
    what: str = ""
    interleaving: str = ""


def searches(*, long: bool) -> list[Job]:
    """What is searched in the code as it is: the bounds of the quick run, then what the long run adds."""
    quick = [Job(plan.scenario.name, bounds) for plan in PLANS for bounds in plan.quick]
    more = [Job(plan.scenario.name, bounds) for plan in PLANS for bounds in plan.long]
    return quick + more if long else quick


def hunts() -> list[Job]:
    """A search for every mutant."""
    return [Job(mutant.scenario, Bounds(*mutant.bounds), mutant) for mutant in MUTANTS]


def run(
    jobs: Sequence[Job], *, at_most: int, processes: int, seconds: float = math.inf
) -> Iterator[tuple[Job, Found]]:
    """Run searches side by side, and yield what each found when it has ended.

    `at_most` is the worlds that one search goes to. `seconds` is the time of all of them: each has an equal
    share of what is left when it begins, and those that did not end with that begin again, as long as they
    get more. RuntimeError: a search ended without a result.
    """
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as copies,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        asked = [
            (str(_functions(job, Path(copies, str(number)))), job.scenario, *astuple(job.bounds))
            for number, job in enumerate(jobs)
        ]
        untold = len(asked)
        with subprocess.Popen(
            [sys.executable, "-m", "tests.safety.model.hunt", str(at_most), str(processes), str(seconds)],
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


def main(arguments: Sequence[str]) -> None:
    """Search as standard input asks, each in a fork of this process, and print what each found as JSON."""
    at_most, processes, seconds = (*map(int, arguments[:2]), float(arguments[2]))
    ends = time.monotonic() + seconds
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.nice(5)  # the deployed stack, whose time goes by the clock, comes first
    gc.disable()  # nothing of a search is ever given up before its end
    _import_what_the_code_imports()
    jobs = json.load(sys.stdin)
    waiting = list(range(len(jobs)))
    while waiting:
        cut: list[dict[str, Any]] = []
        for found in _searched(jobs, waiting, at_most=at_most, processes=processes, ends=ends):
            if found["out_of_time"]:
                cut.append(found)
            else:
                print(json.dumps(found), flush=True)
        # A search cannot go on where it was cut. Twice its time is worth another beginning.
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
    """Search side by side, each with an equal share of the time that is left, and yield what each found."""
    forks = multiprocessing.get_context("fork")
    running: dict[Connection, BaseProcess] = {}
    for place, number in enumerate(numbers):
        if len(running) == processes:
            yield from _ended(running)
        # What a short search leaves of its share goes to all that follow.
        of_all = min(1, processes / (len(numbers) - place))
        share = max((ends - time.monotonic()) * of_all, _LEAST_SECONDS)
        told, telling = forks.Pipe(duplex=False)
        job = jobs[number]
        search = forks.Process(
            target=_search, args=(telling, number, *job, at_most, share), name=str(job), daemon=True
        )
        search.start()
        telling.close()  # the search alone has it now, so its death ends the pipe
        running[told] = search
    while running:
        yield from _ended(running)


def _import_what_the_code_imports() -> None:
    """Import the packages of the production code before the forks, and so once; each imports its own code."""
    Production()
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(FUNCTIONS):
            del sys.modules[name]


def _ended(running: dict[Connection, BaseProcess]) -> Iterator[dict[str, Any]]:
    """Wait until searches have ended, yield what they found, and take them out of those that run."""
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
    gc.disable()  # its handler has turned it on
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
