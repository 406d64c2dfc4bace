"""The figures, their line, their file and their paragraph."""

import json
from typing import Any, Final

import pytest

from tests.safety.figures import Figures
from tests.safety.figures_document import FIGURES, Part, as_json, in_page, record
from tests.safety.model import hunt
from tests.safety.model.invariants import Exemption
from tests.safety.model.mutants import MUTANTS
from tests.safety.model.scenarios import LIMITS
from tests.support.pages import page

PAGE: Final = page("safety.md").read_text(encoding="utf-8")
RUN: Final[Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
GOOD = Figures(5, 2, 2, 40, 30, 3, 1, 9)


def test_the_line_has_every_figure() -> None:
    assert GOOD.line() == (
        "schedules=5 mutants=2/2 operations=40 acknowledged=30 faults=3 kills=1 requests_fuzzed=9 "
        "lost=0 violations=0"
    )


def test_figures_are_added_up() -> None:
    assert GOOD + Figures(schedules=1, mutants=1, lost=2) == Figures(6, 2, 3, 40, 30, 3, 1, 9, 2)


@pytest.mark.parametrize(
    ("figures", "failed"),
    [
        (GOOD, False),
        (GOOD + Figures(lost=1), True),
        (GOOD + Figures(violations=1), True),
        (GOOD + Figures(mutants=1), True),
    ],
)
def test_a_loss_a_violation_and_a_surviving_mutant_fail_the_run(figures: Figures, failed: bool) -> None:
    assert figures.failed is failed


def test_a_run_is_written_with_what_was_tried() -> None:
    row = {"scenario": "two-applies", "bounds": "1 faults", "interleavings": 5, "complete": True}
    run = record(
        figures=GOOD,
        parts=[
            Part("schedules", 1.4, Figures(schedules=5), [row]),
            Part("conformance", 2.0, Figures(sequences=7), planned=Figures(sequences=7)),
            Part("fuzz", 3.0, Figures(requests_fuzzed=9), planned=Figures(requests_fuzzed=1200)),
        ],
        date="2026-11-21",
        commit="abc",
        machine="a machine",
        clients=["one", "other"],
        seed=7,
        seconds=90.0,
    )

    assert json.loads(as_json(run)) == run
    assert f"\n{json.dumps(row)}\n" in as_json(run)
    assert [part["bounds"] for part in run["parts"]] == ["all", "all", "9 of 1,200 requests fuzzed"]
    assert in_page(PAGE, run) != in_page(in_page(PAGE, run), RUN) == PAGE


def test_the_page_has_the_paragraph_of_the_last_run() -> None:
    assert in_page(PAGE, RUN) == PAGE, "make safety writes both"


@pytest.mark.parametrize(
    ("rows", "members", "there"),
    [
        (
            "searches",
            ("scenario", "bounds"),
            [(job.scenario, str(job.bounds)) for job in hunt.searches(long=True)],
        ),
        ("faults", ("fault", "violates"), [(mutant.name, mutant.breaks.number) for mutant in MUTANTS]),
        ("limits", ("scenario",), [(scenario.name,) for scenario in LIMITS]),
    ],
)
def test_the_figures_have_every_search_and_every_mutant_and_no_other(
    rows: str, members: tuple[str, ...], there: list[tuple[str | int, ...]]
) -> None:
    written = [tuple(row[member] for member in members) for row in RUN[rows]]
    assert sorted(written) == sorted(there), (
        f"the code alone has {sorted({*there} - {*written})}, "
        f"the figures alone {sorted({*written} - {*there})}; "
        "if that is meant, write them again: make safety"
    )


@pytest.mark.parametrize("exemption", Exemption)
def test_what_no_invariant_judges_is_shown_as_a_limit_and_said_not_to_be_covered(
    exemption: Exemption,
) -> None:
    name = exemption.name.lower().replace("_", "-")
    assert name in {limit.name for limit in LIMITS}
    _, _, not_covered = PAGE.partition("\n## What is not covered\n")
    assert f"`{name}`" in not_covered
