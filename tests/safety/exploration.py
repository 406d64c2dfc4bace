"""Runs the search over the scenarios, the mutants (a search must find each), and the known limits."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.safety.figures import Figures
from tests.safety.figures_document import Row
from tests.safety.model import hunt
from tests.safety.model.hunt import Found, Job
from tests.safety.model.mutants import MUTANTS
from tests.safety.model.scenarios import LIMITS, Bounds

Say = Callable[[str], None]

_WORLDS: Final = 6_000_000
"""The limit of a search that does not end before; it needs some 2 GiB."""
_WORLDS_OF_A_MUTANT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Explored:
    """The figures of a part of the exploration. `rows` has a row for each search."""

    figures: Figures
    rows: Sequence[Row]


def search(*, seconds: float | None, say: Say) -> Explored:
    """Search every scenario in the unchanged code.

    `seconds` is None in the quick run, whose searches must be complete.
    """
    long = seconds is not None
    interleavings = violations = 0
    rows: list[Row] = []
    jobs = hunt.searches(long=long)
    found = hunt.run(
        jobs, at_most=_WORLDS, processes=_processes(), seconds=math.inf if seconds is None else seconds
    )
    for number, (job, result) in enumerate(found, 1):
        interleavings += result.interleavings
        all_of_them = "all" if result.complete else "the first"
        say(
            f"{number}/{len(jobs)} {job.scenario}, {job.bounds}: "
            f"{all_of_them} {result.interleavings:,} interleavings"
        )
        if result.invariant:
            violations += 1
            _tell(result, say)
        elif not result.complete and not long:
            violations += 1
            say(f"NOT COMPLETE: {job.scenario}, {job.bounds}: narrow its quick bounds in scenarios.py")
        names = {"scenario": job.scenario, "bounds": str(job.bounds)}
        rows.append({**names, "interleavings": result.interleavings, "complete": result.complete})
    rows.sort(key=lambda row: (row["scenario"], row["bounds"]))
    return Explored(Figures(schedules=interleavings, violations=violations), rows)


def mutants(*, say: Say) -> Explored:
    """Search in copies of the code, each with a deliberate fault."""
    caught = interleavings = 0
    rows: list[Row] = []
    found = hunt.run(hunt.hunts(), at_most=_WORLDS_OF_A_MUTANT, processes=_processes())
    for number, (job, result) in enumerate(found, 1):
        mutant = job.mutant
        if mutant is None:
            continue
        interleavings += result.interleavings
        as_expected = result.invariant is mutant.breaks
        caught += as_expected
        if result.invariant is None:
            say(f"SURVIVED: {mutant.name}, in {job.scenario}, {job.bounds}")
        elif not as_expected:
            say(
                f"NOT AS EXPECTED: {mutant.name} breaks {result.invariant.value!r}, "
                f"not {mutant.breaks.value!r}"
            )
        else:
            say(f"{number}/{len(MUTANTS)} caught: {mutant.name}")
            say(f"{'':10}{result.what}: {result.interleaving}")
            shown = {"violates": result.invariant.number, "interleaving": result.interleaving}
            rows.append({"fault": mutant.name, **shown})
    figures = Figures(schedules=interleavings, mutants_caught=caught, mutants=len(MUTANTS))
    return Explored(figures, sorted(rows, key=lambda row: (row["violates"], row["fault"])))


def limits(*, say: Say) -> Explored:
    """Search each known limit, which lacks an assumption: the search must find a violation."""
    jobs = [
        Job(scenario.name, Bounds(scenario.faults, scenario.repeats, scenario.ticks)) for scenario in LIMITS
    ]
    violations = 0
    rows: list[Row] = []
    for job, result in hunt.run(jobs, at_most=_WORLDS_OF_A_MUTANT, processes=_processes()):
        if result.invariant is None:
            violations += 1
            say(f"the limit {job.scenario} does not show any more: correct docs/understand/safety.md")
        else:
            say(f"the known limit {job.scenario} shows as it should: {result.interleaving}")
            shown = {"violates": result.invariant.number, "interleaving": result.interleaving}
            rows.append({"scenario": job.scenario, **shown})
    return Explored(Figures(violations=violations), rows)


def _tell(result: Found, say: Say) -> None:
    if result.invariant is not None:
        say(f"BROKEN: {result.invariant.value}: {result.what}")
        say(f"{'':10}python -m tests.safety replay '{result.interleaving}'")


def _processes() -> int:
    return os.cpu_count() or 2
