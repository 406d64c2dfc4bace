"""Figures and how they are shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Verb:
    """What one verb costs, over all rounds.

    Attributes:
        name: the verb.
        s3_requests: that the function made, by its own log; every count that occurred.
        client_ms: from the client's side, milliseconds, median.
        function_ms: inside the function, milliseconds, median.
    """

    name: str
    s3_requests: tuple[int, ...]
    client_ms: float
    function_ms: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two ways to do the same, measured in turn.

    Attributes:
        name: what was done.
        ours: seconds, median.
        theirs: seconds, median.
        ratio: ours to theirs, median of the pairs.
        limit: what the ratio may be at most.
    """

    name: str
    ours: float
    theirs: float
    ratio: float
    limit: float


def compare(name: str, ours: Sequence[float], theirs: Sequence[float], *, limit: float) -> Comparison:
    """Compare seconds that were measured in pairs.

    >>> compare("plan", [2.0, 3.0], [1.0, 2.0], limit=1.5).ratio
    1.75
    """
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return Comparison(name, median(ours), median(theirs), median(ratios), limit)
