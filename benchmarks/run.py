"""One run of the benchmark, with the resources that its sections share."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.stack import Stack, deployed
from tests.support.free_port import free_port


@dataclass
class Run:
    """The arguments of a section.

    Attributes:
        folder: for files; removed at the end. A section makes a folder of its own in it.
        at_end: the context that stops everything that was started.
        beside: a checkout of another version to measure in turn, or None.
    """

    rounds: int
    folder: Path
    at_end: ExitStack
    beside: Path | None = None

    @cached_property
    def stack(self) -> Stack:
        """Return a deployed team. It is deployed on first use, and the sections share it."""
        tell("starting a local AWS and deploying a team")
        return self.at_end.enter_context(deployed(free_port(), self.folder / "aws"))


def tell(text: str) -> None:
    """Print on standard error what is going on."""
    print(f"... {text}", file=sys.stderr, flush=True)
