"""Compares a server's clock, as in its `Date` header, with the clock of this machine."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Final

LIMIT: Final = 60.0
"""The accepted difference of two clocks in seconds. AWS refuses signatures more than 5 minutes off."""

DO: Final = (
    "Correct this machine's clock, because signatures and expiry times depend on it. `timedatectl` or "
    "`chronyc tracking` shows whether it is synchronized."
)
"""The advice if the clocks differ too much."""


def seconds_off(date: str, sent: float, received: float) -> float | None:
    """Return the seconds by which this machine is ahead of a server; negative if it is behind.

    The result is the smallest difference that explains `date`, the `Date` header in whole seconds; None if
    `date` is not a date. This machine sent the request at `sent` and received the response at `received`, in
    seconds since 1970.

    >>> seconds_off("Thu, 01 Jan 1970 00:01:40 GMT", 100.2, 100.4)
    0.0
    >>> seconds_off("Thu, 01 Jan 1970 00:01:40 GMT", 201.0, 203.0)
    100.0
    """
    try:
        server = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    if sent > server + 1:
        return sent - (server + 1)
    return min(0.0, received - server)


def deviation(off: float, server: str) -> Iterator[str]:
    """Yield a sentence if the clocks differ by more than `LIMIT`."""
    if abs(off) > LIMIT:
        where = "ahead of" if off > 0 else "behind"
        yield f"This machine's clock is {abs(off):.0f} seconds {where} the clock of {server}."
