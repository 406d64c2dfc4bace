"""One run of the benchmark: what its sections share."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from benchmarks.stack import Stack, deployed
from tests.support.free_port import free_port


class Run:
    """What a section gets.

    Attributes:
        folder: for files; removed at the end. A section makes a folder of its own in it.
        beside: a checkout of another version, to be measured in turn; None = measure no other.
    """

    def __init__(self, rounds: int, folder: Path, at_end: ExitStack, beside: Path | None) -> None:
        self.rounds = rounds
        self.folder = folder
        self.beside = beside
        self._at_end = at_end

    @cached_property
    def stack(self) -> Stack:
        """A team, deployed when it is asked for first; the sections share it."""
        tell("starting a local AWS and deploying a team")
        return self._at_end.enter_context(deployed(free_port(), self.folder / "aws"))


@contextmanager
def started(rounds: int, beside: Path | None = None) -> Iterator[Run]:
    """Start a run; what it deployed ends with the context."""
    with ExitStack() as at_end:
        folder = at_end.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-benchmark-"))
        yield Run(rounds, Path(folder), at_end, beside)


def tell(text: str) -> None:
    """Tell on the terminal what goes on."""
    print(f"... {text}", file=sys.stderr, flush=True)
