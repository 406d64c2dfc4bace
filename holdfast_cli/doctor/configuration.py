"""`holdfast doctor STATE`: the configuration in the current folder, and what reaches the state from it."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.names import StateName
from holdfast_cli.doctor.findings import Finding, note


def check(folder: Path, state: StateName, address: str | None, team: str | None) -> Iterator[Finding]:
    """Yield what is found in a folder."""
    yield note("backend", f"The backend of {state} in {folder} was not looked at: {address}, {team}.")
