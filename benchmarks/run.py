"""One run of the benchmark, with the resources that its sections share."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.stack import Stack, deployed
from benchmarks.state import state
from tests.support.free_port import free_port

MANY: Final = (1000, 5000)
"""The numbers of states that are listed and searched."""
SMALL: Final = 10_000
"""The size in bytes of each of these states."""

T = TypeVar("T")


@dataclass
class Run:
    """The arguments with which each section is measured.

    Attributes:
        folder: a temporary folder, in which each section makes its own folder.
        at_end: an exit stack; its end stops every process that the run started.
        beside: a checkout of another version, which is measured in turn with this version; or None.
        smallest: of several sizes or programs, only the first is measured.
    """

    rounds: int
    folder: Path
    at_end: ExitStack
    beside: Path | None = None
    smallest: bool = False
    _folders: dict[int, str] = field(default_factory=dict)

    @cached_property
    def stack(self) -> Stack:
        """Return a deployed team. It is deployed on first use, and the sections share it."""
        tell("starting a local AWS and deploying a team")
        return self.at_end.enter_context(deployed(free_port(), self.folder / "aws"))

    def states(self, number: int) -> str:
        """Write this many states on first use; return the beginning of their names."""
        if number not in self._folders:
            tell(f"writing {number:,} states")
            folder, s3, body = f"benchmark/{number}/", self.stack.s3(), state(1, SMALL)
            for each in range(number):
                s3.ask("PUT", f"/states/{folder}team-{each // 50:03}/service-{each:04}.tfstate", body)
            self._folders[number] = folder
        return self._folders[number]

    def some(self, each: Sequence[T]) -> Sequence[T]:
        """Return the sizes or programs to measure, of all that a section knows."""
        return each[:1] if self.smallest else each


def tell(text: str) -> None:
    """Print a line about the run's progress on standard error."""
    print(f"... {text}", file=sys.stderr, flush=True)
