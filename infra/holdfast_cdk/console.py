"""Builds the console's files with the packages of npm, once for each state of their sources."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

from holdfast_cdk import places

SOURCES: Final = places.CLONE / "console"
_PACKAGES: Final = places.CLONE / "package-lock.json"
_IN_TESTS: Final = SOURCES / "tests"


class ConsoleError(Exception):
    """The console could not be built. The message says why, in one line."""


def digest() -> str:
    """Return the digest of what the console is built from."""
    found = hashlib.sha256(_PACKAGES.read_bytes())
    for path in sorted(SOURCES.rglob("*")):
        if path.is_file() and _IN_TESTS not in path.parents:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found.update(f"\n{path.relative_to(SOURCES).as_posix()} {content}".encode())
    return found.hexdigest()


def build(folder: Path, sources: Path | None = None) -> None:
    """Write the files into a folder: those that the function serves, and `files.json`, which lists them.

    Args:
        sources: the folder `console` of another copy of the clone, from which the files are built.
    """
    node = shutil.which("node")
    if node is None:
        raise ConsoleError("Node.js builds the console: install version 20 or later")
    command = [node, str((sources or SOURCES) / "build.mjs"), str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"]
        # An error of Node.js comes after the place in the code.
        reason = next((line for line in said if "rror" in line), said[0]).strip()
        raise ConsoleError(
            f"the console could not be built: {reason} (if there is no folder node_modules, run `npm ci`)"
        )
