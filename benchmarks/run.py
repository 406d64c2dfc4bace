"""One run of the benchmark: what its sections share."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.stack import Stack, deployed
from tests.support.free_port import free_port


@dataclass
class Run:
    """What a section gets.

    Attributes:
        folder: for files; removed at the end. A section makes a folder of its own in it.
        at_end: ends what was started.
        beside: a checkout of another version, to be measured in turn; None = measure no other.
    """

    rounds: int
    folder: Path
    at_end: ExitStack
    beside: Path | None = None

    @cached_property
    def stack(self) -> Stack:
        """A team, deployed when it is asked for first; the sections share it."""
        tell("starting a local AWS and deploying a team")
        return self.at_end.enter_context(deployed(free_port(), self.folder / "aws"))


def tell(text: str) -> None:
    """Tell on the terminal what goes on."""
    print(f"... {text}", file=sys.stderr, flush=True)
