"""docs/understand/safety-figures.md: what the long run has tried and found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from tests.safety.figures import Figures

_NO_BOUNDS: Final = Figures()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run.

    `seconds` is what it took. `rows` is what it did in detail. `planned` are the figures with which it would
    have ended before its time; none of them, if it has no time.
    """

    name: str
    seconds: float
    figures: Figures
    rows: Sequence[Sequence[str]] = ()
    planned: Figures = _NO_BOUNDS


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
    """Write the document in Markdown.

    `figures` are of all `parts`, which are in the order in which they were done. `date` is as in ISO 8601.
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
        "Each part has a share of the time, and ends with it if its bounds are not reached before.",
        "",
        *_table(("Part", "Seconds", "Did and found", "Bounds"), [_row(part) for part in parts]),
    ]
    for part in parts:
        if part.rows:
            title, heads, sentence = _HEADINGS[part.name]
            lines += ["", f"## {title}", "", sentence, "", *_table(heads, part.rows)]
    return "\n".join(lines) + "\n"


def _row(part: Part) -> tuple[str, str, str, str]:
    did = [word for word in part.figures.line().split() if not word.endswith(("=0", "=0/0"))]
    return (
        part.name,
        f"{part.seconds:.0f}",
        ", ".join(word.replace("=", " ") for word in did) or "no differences",
        _bounds(part),
    )


def _bounds(part: Part) -> str:
    """Say whether a part has reached its bounds or the end of its time."""
    if part.name == "schedules":
        complete = sum(row[-1] == "yes" for row in part.rows)
        return "all" if complete == len(part.rows) else f"{complete} of {len(part.rows)} searches"
    reached = asdict(part.figures)
    missed = [
        f"{reached[name]:,} of {number:,} {name.replace('_', ' ')}"
        for name, number in asdict(part.planned).items()
        if reached[name] < number
    ]
    return ", ".join(missed) or "all"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        f"|{' --- |' * len(heads)}",
        *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows),
    ]
