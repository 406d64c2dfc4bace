"""docs/safety-figures.md: what the long run has tried and found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.safety.figures import Figures


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run.

    Attributes:
        name: of the part.
        seconds: that it took.
        figures: what it did and found.
        rows: what it did in detail, a row each.
    """

    name: str
    seconds: float
    figures: Figures
    rows: Sequence[Sequence[str]] = ()


_HEADINGS: Final = {
    "schedules": (
        "Every interleaving",
        ("Scenario", "At most", "Interleavings", "All within the bounds"),
        "What happens in each scenario stands in `tests/safety/model/scenarios.py`.",
    ),
    "mutants": (
        "Deliberate faults",
        ("Fault", "Violates", "Shortest interleaving that shows it"),
        "The numbers are those of the invariants in [safety.md](safety.md).",
    ),
    "limits": (
        "Known limits",
        ("Without the assumption", "Violates", "Shortest interleaving that shows it"),
        "What [safety.md](safety.md) says is not covered does show where its assumption is dropped.",
    ),
}


def document(
    *,
    figures: Figures,
    parts: Sequence[Part],
    date: str,
    commit: str,
    machine: str,
    terraforms: Sequence[str],
    seed: int,
    seconds: float,
) -> str:
    """The whole document, in Markdown.

    Args:
        figures: of all parts together.
        parts: in the order in which they were done.
        date: as in ISO 8601.
        commit: of the code that was tried.
        machine: on which.
        terraforms: the clients that took part.
        seed: of everything that was drawn.
        seconds: that it took.
    """
    lines = [
        "# Safety figures",
        "",
        "Written by `make safety`, the long run of [the safety tests](safety.md); not by hand.",
        "",
        f"    {figures.line()}",
        "",
        *_table(
            ("", ""),
            [
                ("Date", date),
                ("Code", commit),
                ("Machine", machine),
                ("Clients", ", ".join(terraforms)),
                ("Seed", str(seed)),
                ("Duration", f"{seconds / 60:.0f} minutes"),
            ],
        ),
        "",
        "## Parts",
        "",
        *_table(("Part", "Seconds", "Did and found"), [_row(part) for part in parts]),
    ]
    for part in parts:
        if part.rows:
            title, heads, sentence = _HEADINGS[part.name]
            lines += ["", f"## {title}", "", sentence, "", *_table(heads, part.rows)]
    return "\n".join(lines) + "\n"


def _row(part: Part) -> tuple[str, str, str]:
    did = [word for word in part.figures.line().split() if not word.endswith(("=0", "=0/0"))]
    return (
        part.name,
        f"{part.seconds:.0f}",
        ", ".join(word.replace("=", " ") for word in did) or "no differences",
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        f"|{' --- |' * len(heads)}",
        *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows),
    ]
