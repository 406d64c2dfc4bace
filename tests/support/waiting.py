"""Waits with a time limit."""

import time
from collections.abc import Callable
from pathlib import Path


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 30.0) -> None:
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
