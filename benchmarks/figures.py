"""Compute, print and save figures. A figure is a median with its spread."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from statistics import median, quantiles
from typing import Final, Self

_DIGITS: Final = {"s": 3, "ratio": 2, "requests": 0, "files": 0}
"""Digits after the point by unit; 1 for every other unit."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measurement over all rounds.

    Attributes:
        name: unique in its section; consecutive figures of the same thing are named `thing: aspect`.
        unit: `s`, `ms`, `ratio`, `requests` or another word.
        lower: the lower quartile; the minimum of a count.
        upper: the upper quartile; the maximum of a count.
        n: the number of rounds.
    """

    name: str
    unit: str
    median: float
    lower: float
    upper: float
    n: int

    @classmethod
    def of(cls, name: str, unit: str, values: Sequence[float]) -> Self:
        """Return a figure of one value per round: their median and quartiles.

        >>> Figure.of("plan", "s", [1.0, 2.0, 4.0, 5.0, 9.0]).upper
        5.0
        """
        lower, _, upper = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
        return cls(name, unit, median(values), lower, upper, len(values))

    @classmethod
    def count(cls, name: str, values: Sequence[float], unit: str = "requests") -> Self:
        """Return a figure of counts, or of values computed from counts: their median, minimum and maximum."""
        return cls(name, unit, median(values), min(values), max(values), len(values))

    @classmethod
    def ratio(cls, name: str, ours: Sequence[float], theirs: Sequence[float]) -> Self:
        """Return a figure of the ratios `ours[i] / theirs[i]`: their median and quartiles.

        >>> Figure.ratio("plan", [2.0, 3.0], [1.0, 2.0]).median
        1.75
        """
        return cls.of(name, "ratio", [one / other for one, other in zip(ours, theirs, strict=True)])


@dataclass(frozen=True, slots=True)
class Section:
    """A table of figures, with its title and the sentences below it."""

    title: str
    figures: Sequence[Figure]
    notes: Sequence[str] = ()


def to_json(sections: Mapping[str, Section], rounds: int) -> str:
    """Return a run's number of rounds and its sections, by name, as JSON."""
    measured = {name: asdict(section) for name, section in sections.items()}
    return json.dumps({"rounds": rounds, "sections": measured}, indent=2)


def table(section: Section) -> Iterator[str]:
    """Yield the lines that show a section on a terminal."""
    width = max(len(_aspect(figure)) for figure in section.figures) + 2
    yield section.title
    yield f"{'':{width}}{'':11}{'median':>11}{'from':>11}{'to':>11}{'n':>5}"
    for thing, figures in groupby(section.figures, lambda figure: figure.name.rpartition(": ")[0]):
        if thing:
            yield thing
        yield from (_row(figure, width) for figure in figures)
    yield from section.notes


def _aspect(figure: Figure) -> str:
    """Return the figure's name in the table: the indented aspect of `thing: aspect`, else the whole name."""
    thing, _, aspect = figure.name.rpartition(": ")
    return f"  {aspect}" if thing else aspect


def _row(figure: Figure, width: int) -> str:
    digits = _DIGITS.get(figure.unit, 1)
    numbers = "".join(f"{value:>11,.{digits}f}" for value in (figure.median, figure.lower, figure.upper))
    return f"{_aspect(figure):{width}}{figure.unit:11}{numbers}{figure.n:>5}"
