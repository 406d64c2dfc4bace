"""Do the same work for many items at a time, with a progress bar, and report each outcome."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from holdfast_cli.api import http
from holdfast_cli.importing.source import AT_ONCE
from holdfast_cli.terminal.output import Progress

LOCKED: Final = "locked"
"""The word for a state with a lock of somebody else."""


_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one state.

    Attributes:
        word: the result in a word that scripts may compare.
        text: a sentence for people; empty if the word says it all.
        is_problem: whether something is left to do.
    """

    state: str
    name: str
    word: str
    text: str = ""
    is_problem: bool = False

    @property
    def line(self) -> str:
        """Return the text for people, which names the state."""
        named = self.text.startswith(self.state) or f"{self.state}:" in self.text
        return self.text if named else f"{self.state}: {self.text}"

    def to_json(self) -> dict[str, Any]:
        return {
            "from": self.state,
            "name": self.name or None,
            "outcome": self.word,
            "message": self.text or None,
            "problem": self.is_problem,
        }


def for_each(items: Sequence[_T], work: Callable[[_T], _R], verb: str) -> list[_R]:
    """Return the results in the order of the items. `AT_ONCE` items are worked on at the same time.

    On Ctrl-C no further item begins, and the `KeyboardInterrupt` is raised when the begun ones have ended.
    """
    progress = Progress()
    with http.kept_connections(), ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            for number, _ in enumerate(as_completed(futures), start=1):
                progress.count(number, len(items), f"states {verb}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            progress.end()
    return [future.result() for future in futures]


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return a line such as `30 states: 28 imported, 2 locked`."""
    counts = Counter(outcome.word for outcome in outcomes)
    states = "1 state" if len(outcomes) == 1 else f"{len(outcomes)} states"
    return f"{states}: {', '.join(f'{counts[word]} {word}' for word in counts) or 'nothing to do'}"
