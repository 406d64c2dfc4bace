"""The clock of a server, as its responses show it. This machine's clock may be wrong by hours."""

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """A server's clock; until the server has responded, this machine's clock."""

    def __init__(self) -> None:
        self._heard: tuple[datetime, float] | None = None

    @property
    def is_heard(self) -> bool:
        """Return whether the server has responded."""
        return self._heard is not None

    def hear(self, date: str) -> None:
        """Set the clock to a response's `Date` header. A text that is not a date leaves it as it is."""
        from email.utils import parsedate_to_datetime

        try:
            shown = parsedate_to_datetime(date).astimezone(UTC)
        except (ValueError, OverflowError):
            shown = self.now()
        self._heard = shown, time.monotonic()

    def now(self) -> datetime:
        """Return the time, at most a second too early: a `Date` header has whole seconds."""
        if self._heard is None:
            return datetime.now(UTC)
        shown, since = self._heard
        return shown + timedelta(seconds=time.monotonic() - since)
