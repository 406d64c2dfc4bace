"""Calm progress lines: what is being done, and how many seconds it took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

_WIDTH = 58


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print what is being done, and behind it the seconds once it is done."""
    print(f"{what + ' …':<{_WIDTH}}", end="", flush=True)
    started = time.monotonic()
    try:
        yield
    except BaseException:
        print("  stopped", flush=True)
        raise
    print(f"{time.monotonic() - started:6.1f} s", flush=True)
