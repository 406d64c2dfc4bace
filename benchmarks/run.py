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
    """The arguments with which each section is measured.

    Attributes:
        folder: a temporary folder, in which each section makes its own folder.
        at_end: an exit stack; its end stops every process that the run started.
        beside: a checkout of another version, which is measured in turn with this version; or None.
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
    """Print a line about the run's progress on standard error."""
    print(f"... {text}", file=sys.stderr, flush=True)
