"""The findings of `holdfast doctor`: each is one line, with advice if an action is needed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

REVERT: Final = (
    "Revert the change with a drift-aware change set. docs/operate/doctor.md has the command, under Drift."
)
"""The advice for a deployed setting that somebody changed without CloudFormation."""


class Level(StrEnum):
    """The importance of a finding."""

    OK = "ok"
    """The check found no problem."""
    NOTE = "note"
    """Information, or the reason why a check was not made. No action is needed."""
    PROBLEM = "problem"
    """An action is needed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: a stable name for scripts, such as `bucket.versioning`.
        text: the result in one sentence, without any secret.
        do: the advice in one sentence; empty if no action is needed.
    """

    check: str
    level: Level
    text: str
    do: str = ""


Outcome = tuple[Level, str] | tuple[Level, str, str]
"""A finding without the name of its check: the level, the text, and the advice if there is any."""


def ok(check: str, text: str) -> Finding:
    """Return a finding of the level `OK`."""
    return Finding(check, Level.OK, text)


def note(check: str, text: str, do: str = "") -> Finding:
    """Return a finding of the level `NOTE`."""
    return Finding(check, Level.NOTE, text, do)


def problem(check: str, text: str, do: str) -> Finding:
    """Return a finding of the level `PROBLEM`."""
    return Finding(check, Level.PROBLEM, text, do)
