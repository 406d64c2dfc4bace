"""What `holdfast doctor` finds: one line each, with what to do."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

REVERT: Final = (
    "Revert it with a drift-aware change set: docs/operate/doctor.md has the command, under Drift."
)
"""What to do where the template is right: the deployed setting was changed past CloudFormation."""


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    """Checked, and as it has to be."""
    NOTE = "note"
    """Worth knowing, or not checked: the text says why. Nothing has to be done."""
    PROBLEM = "problem"
    """Something has to be done."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: stable, for scripts, such as `bucket.versioning`.
        text: what is so, in one sentence, without any secret.
        do: what to do about it, in one sentence; empty where nothing is to be done.
    """

    check: str
    level: Level
    text: str
    do: str = ""


def ok(check: str, text: str) -> Finding:
    """Return that something is as it has to be."""
    return Finding(check, Level.OK, text)


def note(check: str, text: str, do: str = "") -> Finding:
    """Return something that is worth knowing."""
    return Finding(check, Level.NOTE, text, do)


def problem(check: str, text: str, do: str) -> Finding:
    """Return something that has to be mended."""
    return Finding(check, Level.PROBLEM, text, do)
