"""Retention: for how long S3 Object Lock protects a version from being deleted."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, cast

MAX_DAYS: Final = 36_500
"""The longest retention that S3 accepts, in days: a hundred years."""

_TEXT: Final = re.compile(r"(governance|compliance) ([1-9][0-9]{0,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention with which a write stores its version.

    Attributes:
        mode: callers with a special permission can bypass `GOVERNANCE`; nobody can bypass `COMPLIANCE`.
        days: the number of days, counted from the write.
    """

    mode: Literal["GOVERNANCE", "COMPLIANCE"]
    days: int

    def until(self, written: datetime) -> datetime:
        """Return when the retention ends for a version that was written at this time."""
        return written + timedelta(days=self.days)

    def __str__(self) -> str:
        return f"{self.mode.lower()} {self.days}"


def parse(text: str) -> Retention:
    """Parse a mode and a number of days, as in `HOLDFAST_RETENTION` and in the stack's output.

    Raise `ValueError` if the text is invalid; the message says what to write instead.

    >>> parse("governance 30")
    Retention(mode='GOVERNANCE', days=30)
    """
    form = _TEXT.fullmatch(text)
    if form is None or int(form[2]) > MAX_DAYS:
        raise ValueError(
            f"{text!r} is not a valid retention; write a mode, a space and a number of days from 1 to "
            f"{MAX_DAYS}, as in 'governance 30' or 'compliance 30'"
        )
    mode = cast('Literal["GOVERNANCE", "COMPLIANCE"]', form[1].upper())
    return Retention(mode, int(form[2]))
