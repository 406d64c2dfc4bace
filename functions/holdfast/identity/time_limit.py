"""The time that API Gateway gives an authorizer, and a wait that ends with this time.

API Gateway gives up 10 seconds after it sent its request, and if the request starts a process, these include
the process's init. Lambda's own clock of an invocation begins after the init.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Final, TypeVar

SECONDS: Final = 8.5
"""Seconds within which an authentication ends. The rest is for the way to the function and back."""

_LONGEST_INIT: Final = 10.0
"""Seconds after which Lambda ends an init. A process that is older has not begun with its init."""

_AT_ONCE: Final = 1.0
"""Seconds after its init within which a process gets the request that started it."""

_T = TypeVar("_T")


class TimeLimit:
    """The end of the time of each authentication. A process creates it at the end of its init.

    Args:
        init_began: when the init began, by `time.monotonic`; None if no request waits for the init.
    """

    def __init__(self, init_began: float | None) -> None:
        self._init_began = init_began
        self._ready = time.monotonic()

    def ends(self, seconds_left: float) -> float:
        """Return when the work of an invocation that begins now must end, by `time.monotonic`.

        Args:
            seconds_left: the seconds until Lambda stops the function, by Lambda's own clock. If Lambda does,
                the function loses what it has cached, and logs nothing.
        """
        now = time.monotonic()
        began, self._init_began = self._init_began, None
        if began is None or now - self._ready > _AT_ONCE:
            began = now
        return min(began + SECONDS, now + seconds_left - 1)


def init_began() -> float | None:
    """Return when the init of this process began, by `time.monotonic`; None if no request waits for it."""
    # https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "on-demand":
        with suppress(OSError, ValueError, IndexError):
            # proc(5): the 22nd field is the start of the process, in ticks since the system's.
            ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
            age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
            return time.monotonic() - age if 0 <= age <= _LONGEST_INIT else None
    return None


def done_by(ends: float, work: Callable[[], _T], *, late: Exception) -> _T:
    """Return the result of work, or raise its error; raise `late` if it has not ended by then.

    The work goes on in a thread that nobody waits for: a DNS lookup, for example, cannot be cancelled.

    Args:
        ends: a time of `time.monotonic`.
    """
    results: list[_T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 it is raised again where somebody waits
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(ends - time.monotonic(), 0))
    for result in results:
        return result
    raise next(iter(errors), late)
