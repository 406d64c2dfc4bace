"""Progress lines: each step and how many seconds it took."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_WIDTH = 58
_PAUSE = 1.0


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print a step, and then the seconds that the step took; a terminal shows the seconds counting up."""
    print(f"{what + ' …':<{_WIDTH}}", end="", flush=True)
    started = time.monotonic()
    done = threading.Event()
    clock = threading.Thread(target=_count, args=(started, done))
    if sys.stdout.isatty():
        clock.start()
    ended = "  stopped"
    try:
        yield
        ended = f"{time.monotonic() - started:6.1f} s"
    finally:
        done.set()
        if clock.ident is not None:
            clock.join()
        print(ended, flush=True)


def _count(started: float, done: threading.Event) -> None:
    while not done.wait(_PAUSE):
        shown = f"{time.monotonic() - started:4.0f}   s"
        print(shown + "\b" * len(shown), end="", flush=True)
