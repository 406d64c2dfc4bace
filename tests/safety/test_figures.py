"""The figures, their line and their document."""

from typing import Final

import pytest

from tests.safety.figures import Figures
from tests.safety.figures_document import Part, document
from tests.safety.model import hunt
from tests.safety.model.invariants import Exemption
from tests.safety.model.mutants import MUTANTS
from tests.safety.model.scenarios import LIMITS
from tests.support.pages import page

PAGE: Final = page("safety-figures.md")
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


def test_the_document_tells_what_was_tried() -> None:
    text = document(
        figures=GOOD,
        parts=[
            Part("schedules", 1.4, Figures(schedules=5), [("two-applies", "1 faults", "5", "yes")]),
            Part("conformance", 2.0, Figures(sequences=7), planned=Figures(sequences=7)),
            Part("fuzz", 3.0, Figures(requests_fuzzed=9), planned=Figures(requests_fuzzed=1200)),
        ],
        date="2026-11-21",
        commit="abc",
        machine="a machine",
        terraforms=["one", "other"],
        seed=7,
        seconds=90.0,
    )
    assert f"\n    {GOOD.line()}\n" in text
    assert "| Clients | one, other |\n| Seed | 7 |\n| Duration | 2 minutes |" in text
    assert (
        "| schedules | 1 | schedules 5 | all |\n"
        "| conformance | 2 | no differences | all |\n"
        "| fuzz | 3 | requests_fuzzed 9 | 9 of 1,200 requests fuzzed |\n"
    ) in text
    assert "## Every interleaving" in text
    assert "| two-applies | 1 faults | 5 | yes |" in text


def rows(title: str) -> list[list[str]]:
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    _, _, *lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in lines]


@pytest.mark.parametrize(
    ("title", "there"),
    [
        ("Every interleaving", [(job.scenario, str(job.bounds)) for job in hunt.searches(long=True)]),
        ("Deliberate faults", [(mutant.name, str(mutant.breaks.number)) for mutant in MUTANTS]),
        ("Known limits", [(scenario.name,) for scenario in LIMITS]),
    ],
)
def test_the_page_of_figures_has_every_search_and_every_mutant_and_no_other(
    title: str, there: list[tuple[str, ...]]
) -> None:
    in_page = [tuple(row[: len(there[0])]) for row in rows(title)]
    assert sorted(in_page) == sorted(there), (
        f"the code alone has {sorted({*there} - {*in_page})}, "
        f"the page alone {sorted({*in_page} - {*there})}; "
        "if that is meant, write the page again: make safety"
    )


@pytest.mark.parametrize("exemption", Exemption)
def test_what_no_invariant_judges_is_shown_as_a_limit_and_said_not_to_be_covered(
    exemption: Exemption,
) -> None:
    name = exemption.name.lower().replace("_", "-")
    assert name in {limit.name for limit in LIMITS}
    _, _, not_covered = (PAGE.parent / "safety.md").read_text().partition("\n## What is not covered\n")
    assert f"`{name}`" in not_covered
