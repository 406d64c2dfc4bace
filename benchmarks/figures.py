"""Figures, each with its spread: how they are made, shown, saved and compared with saved ones."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from statistics import median, quantiles
from typing import Final, Self, TypeAlias

_DIGITS: Final = {"s": 3, "ms": 1, "ratio": 2, "requests": 0, "connections": 0}
"""Digits after the point by unit; 1 for every other unit."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, over all rounds.

    Attributes:
        name: unique in its section; figures of one thing follow one another as `thing: aspect`.
        unit: `s`, `ms`, `ratio`, `requests`, `connections` or another word.
        median: of the rounds.
        lower: the lower quartile; the least where it was counted.
        upper: the upper quartile; the most where it was counted.
        n: how many rounds.
        limit: what the median may be at most; None = no limit is set.
    """

    name: str
    unit: str
    median: float
    lower: float
    upper: float
    n: int
    limit: float | None = None

    @classmethod
    def of(cls, name: str, unit: str, values: Sequence[float], *, limit: float | None = None) -> Self:
        """Make a figure of what each round measured.

        >>> Figure.of("plan", "s", [1.0, 2.0, 4.0, 5.0, 9.0]).upper
        5.0
        """
        lower, _, upper = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
        return cls(name, unit, median(values), lower, upper, len(values), limit)

    @classmethod
    def count(cls, name: str, values: Sequence[float], unit: str = "requests") -> Self:
        """Make a figure of what each round counted, or of what follows from it."""
        return cls(name, unit, median(values), min(values), max(values), len(values))

    @classmethod
    def ratio(
        cls, name: str, ours: Sequence[float], theirs: Sequence[float], *, limit: float | None = None
    ) -> Self:
        """Make a figure of the ratios of what was measured in pairs.

        >>> Figure.ratio("plan", [2.0, 3.0], [1.0, 2.0]).median
        1.75
        """
        return cls.of(
            name, "ratio", [one / other for one, other in zip(ours, theirs, strict=True)], limit=limit
        )


@dataclass(frozen=True, slots=True)
class Section:
    """What belongs together.

    Attributes:
        title: above the table.
        figures: the rows of the table.
        notes: sentences below it.
    """

    title: str
    figures: Sequence[Figure]
    notes: Sequence[str] = ()


Saved: TypeAlias = Mapping[str, Mapping[str, float]]
"""Medians of a saved run, by section and figure."""


def to_json(sections: Mapping[str, Section], rounds: int) -> str:
    """Write a run, by the names of its sections."""
    return json.dumps(
        {"rounds": rounds, "sections": {name: asdict(section) for name, section in sections.items()}},
        indent=2,
    )


def saved(file: Path) -> Saved:
    """Read the medians of a run that `to_json` wrote.

    Raises:
        ValueError: the file cannot be read, or holds something else; the message is one line.
    """
    try:
        document = json.loads(file.read_text())
        return {
            name: {figure["name"]: float(figure["median"]) for figure in section["figures"]}
            for name, section in document["sections"].items()
        }
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} is not a run that `python -m benchmarks --json` printed") from error


def table(section: Section, against: Mapping[str, float] | None = None) -> Iterator[str]:
    """Yield the lines of a section.

    Args:
        section: what to show.
        against: saved medians of the same section, to be shown beside; None = show none.
    """
    width = max(len(_aspect(figure)) for figure in section.figures) + 2
    beside = "" if against is None else f"{'saved':>11}{'new/old':>9}"
    yield section.title
    heads = f"{'median':>11}{'from':>11}{'to':>11}{'n':>5}{'at most':>9}"
    yield f"{'':{width}}{'':11}{heads}{beside}".rstrip()
    for thing, figures in groupby(section.figures, lambda figure: figure.name.rpartition(": ")[0]):
        if thing:
            yield thing
        yield from (_row(figure, width, against) for figure in figures)
    for name in sorted((against or {}).keys() - {figure.name for figure in section.figures}):
        yield f"{name}: only in the saved run"
    yield from section.notes


def _aspect(figure: Figure) -> str:
    """What the figure says of its thing, indented below it."""
    thing, _, aspect = figure.name.rpartition(": ")
    return f"  {aspect}" if thing else aspect


def _row(figure: Figure, width: int, against: Mapping[str, float] | None) -> str:
    values = (_number(value, figure.unit) for value in (figure.median, figure.lower, figure.upper))
    numbers = "".join(f"{value:>11}" for value in values)
    limit = "" if figure.limit is None else f"{figure.limit:.2f}"
    above = "  <- above" if figure.limit is not None and figure.median > figure.limit else ""
    row = f"{_aspect(figure):{width}}{figure.unit:11}{numbers}{figure.n:>5}{limit:>9}"
    return f"{row}{_beside(figure, against)}{above}".rstrip()


def _beside(figure: Figure, against: Mapping[str, float] | None) -> str:
    if against is None:
        return ""
    if figure.name not in against:
        return f"{'not saved':>11}{'':9}"
    old = against[figure.name]
    ratio = f"{figure.median / old:.2f}" if old else ""
    return f"{_number(old, figure.unit):>11}{ratio:>9}"


def _number(value: float, unit: str) -> str:
    return f"{value:,.{_DIGITS.get(unit, 1)}f}"
