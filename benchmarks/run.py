"""The run of the benchmark that its sections share."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.stack import Stack, deployed
from tests.support.free_port import free_port


@dataclass
class Run:
    """One run of the benchmark, with the team that its sections share.

    Attributes:
        rounds: the number of rounds of each measurement, at least 1.
        folder: a folder for files, removed at the end. A section makes a folder of its own in it.
        at_end: the context that stops everything that was started.
        beside: a checkout of another version, to be measured in turn; None = measure no other version.
    """

    rounds: int
    folder: Path
    at_end: ExitStack
    beside: Path | None = None

    @cached_property
    def stack(self) -> Stack:
        """The deployed team of this run; the first use deploys it."""
        tell("starting a local AWS and deploying a team")
        return self.at_end.enter_context(deployed(free_port(), self.folder / "aws"))


def tell(text: str) -> None:
    """Print a line of progress to stderr."""
    print(f"... {text}", file=sys.stderr, flush=True)
