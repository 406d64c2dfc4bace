"""Do the same work for several items at the same time."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def results(work: Callable[[_Item], _Result], items: Sequence[_Item], *, most: int = 8) -> list[_Result]:
    """Return the results in the order of the items, of which at most `most` are worked on at a time.

    After an error, or an interrupt, no further item begins.
    """
    with ThreadPoolExecutor(most) as pool:
        return list(pool.map(work, items))
