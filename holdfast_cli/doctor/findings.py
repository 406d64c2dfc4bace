"""The findings of `holdfast doctor`: one line each, with advice."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

REVERT: Final = (
    "Revert it with a drift-aware change set: docs/operate/doctor.md has the command, under Drift."
)
"""Advice if a deployed setting was changed without CloudFormation, so that the template is right."""


class Level(StrEnum):
    """The importance of a finding."""

    OK = "ok"
    """Checked, and correct."""
    NOTE = "note"
    """Information, or a check that was not made, with the reason. No action is needed."""
    PROBLEM = "problem"
    """An action is needed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Attributes:
        check: a stable name for scripts, such as `bucket.versioning`.
        text: the result in one sentence, without any secret.
        do: the advice in one sentence; empty if no action is needed.
    """

    check: str
    level: Level
    text: str
    do: str = ""


def ok(check: str, text: str) -> Finding:
    """Return a finding that a check passed."""
    return Finding(check, Level.OK, text)


def note(check: str, text: str, do: str = "") -> Finding:
    """Return a finding that needs no action."""
    return Finding(check, Level.NOTE, text, do)


def problem(check: str, text: str, do: str) -> Finding:
    """Return a finding that needs an action."""
    return Finding(check, Level.PROBLEM, text, do)
