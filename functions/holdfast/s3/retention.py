"""Retention: for how long S3 Object Lock protects a version from being deleted."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, cast

MAX_DAYS: Final = 36_500
"""A hundred years, the most that S3 accepts."""

_TEXT: Final = re.compile(r"(governance|compliance) ([1-9][0-9]{0,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention with which a write stores its version.

    Attributes:
        mode: callers with a permission can bypass `GOVERNANCE`, nobody can bypass `COMPLIANCE`.
        days: counted from the write.
    """

    mode: Literal["GOVERNANCE", "COMPLIANCE"]
    days: int

    def until(self, written: datetime) -> datetime:
        """Return when the retention of a version ends that is written at a given time."""
        return written + timedelta(days=self.days)

    def __str__(self) -> str:
        return f"{self.mode.lower()} {self.days}"


def parse(text: str) -> Retention:
    """Parse mode and days, as a stack passes them to its functions (`HOLDFAST_RETENTION`) and to the command.

    Raise `ValueError` if the text is invalid; the message says what to write instead.

    >>> parse("governance 30")
    Retention(mode='GOVERNANCE', days=30)
    """
    form = _TEXT.fullmatch(text)
    if form is None or int(form[2]) > MAX_DAYS:
        raise ValueError(
            f"{text!r} is not a valid retention; write 'governance' or 'compliance', a blank and 1 to "
            f"{MAX_DAYS} days, as in 'governance 30'"
        )
    mode = cast('Literal["GOVERNANCE", "COMPLIANCE"]', form[1].upper())
    return Retention(mode, int(form[2]))
