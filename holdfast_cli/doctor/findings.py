"""The findings of `holdfast doctor`: one line each, with what to do."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

REVERT: Final = (
    "Revert it with a drift-aware change set: docs/operate/doctor.md has the command, under Drift."
)
"""What to do if a deployed setting differs from the template: somebody changed it without CloudFormation."""


class Level(StrEnum):
    """The importance of a finding."""

    OK = "ok"
    """Checked, and right."""
    NOTE = "note"
    """Information, or a check that was not made, with the reason. No action is needed."""
    PROBLEM = "problem"
    """An action is needed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: a stable name for scripts, such as `bucket.versioning`.
        text: the result in one sentence, without any secret.
        do: what to do about it, in one sentence; empty if nothing has to be done.
    """

    check: str
    level: Level
    text: str
    do: str = ""


def ok(check: str, text: str) -> Finding:
    """Return a finding that something is right."""
    return Finding(check, Level.OK, text)


def note(check: str, text: str, do: str = "") -> Finding:
    """Return a finding that is worth knowing."""
    return Finding(check, Level.NOTE, text, do)


def problem(check: str, text: str, do: str) -> Finding:
    """Return a finding that has to be fixed."""
    return Finding(check, Level.PROBLEM, text, do)
