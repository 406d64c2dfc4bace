"""Waits with a time limit, which is no measure of speed: the machine may be busy."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

HANGS: Final = 300.0
"""Seconds after which a command or a wait for an event counts as hung."""


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = HANGS) -> None:
    """Return as soon as the condition holds; AssertionError if it does not hold in time."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not in {seconds} s: {what}"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Return whether a process lives. A process that ended but was not waited for (a zombie) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
