"""The release before this one, from its own sources: what a team has that upgrades.

It runs with the packages of this clone. Its functions have the packages that it pinned itself.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

import pytest

from local_aws.server import ROOT

VERSION: Final = "0.4.0"
COMMIT: Final = "c234278454aa403cc53542a174a7f9fd53e2f6c6"
"""The last commit of that version. `tests/recordings/before/` has what it printed."""

COMMAND: Final = (sys.executable, "-P", "-m", "holdfast_cli")
"""The `holdfast` command of the sources that PYTHONPATH names."""

NAMES: Final[dict[str, str]] = {}
"""The names that its command has for this one's commands and options."""


def sources() -> Path:
    """Return the folder with the sources of the release, which is kept. A shallow clone skips the test."""
    folder = ROOT / ".build" / f"release-{COMMIT[:12]}"
    if folder.is_dir():
        return folder
    git = ("git", "-C", str(ROOT))
    is_there = subprocess.run([*git, "cat-file", "-e", COMMIT], stderr=subprocess.DEVNULL, check=False)
    if is_there.returncode != 0:
        pytest.skip(f"this clone has no history back to {VERSION}; `git fetch --unshallow` gets it")
    archive = subprocess.run([*git, "archive", COMMIT], capture_output=True, check=True).stdout
    folder.parent.mkdir(exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"unfinished-{folder.name}-", dir=folder.parent))
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(unfinished, filter="data")
    for name in (".venv", "node_modules"):
        (unfinished / name).symlink_to(ROOT / name)
    return unfinished.rename(folder)
