"""Waiting for something real, for a limited time."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 30.0) -> None:
    """Come back as soon as the condition holds.

    Raises:
        AssertionError: it does not in time.
    """
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not in {seconds} s: {what}"
        time.sleep(0.02)
