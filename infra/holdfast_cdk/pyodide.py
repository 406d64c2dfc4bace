"""Finds npm's pyodide: in the clone's `node_modules`, or below the build folder, where npm installs it."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from holdfast_cdk import places
from holdfast_cdk.build_folder import built

_NAME: Final = "pyodide"
_IN_CLONE: Final = places.CLONE / "node_modules" / _NAME
_PINS: Final = ("package.json", "package-lock.json")
_QUIETLY: Final = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")

AGAIN: Final = "remove .holdfast/npm" if places.IS_INSTALLED else "run `npm ci`"
"""What to do if pyodide does not work."""


class PyodideError(Exception):
    """There is no pyodide. The message says why, in one line without advice to deploy without bytecode."""


def pyodide(build: Path) -> tuple[str, Path]:
    """Return Node.js, and the folder of npm's pyodide, which it runs.

    For an installed package npm installs pyodide once, below the build folder and with the hashes of the
    release. The user reads a line about that.
    """
    node = shutil.which("node")
    if node is None:
        raise PyodideError("Node.js is not on the PATH: install version 20 or later")
    if places.IS_INSTALLED:
        digest = hashlib.sha256(b"".join((places.NPM / name).read_bytes() for name in _PINS)).hexdigest()
        return node, built(build / "npm" / digest[:12], _install) / "node_modules" / _NAME
    if not (_IN_CLONE / "package.json").is_file():
        raise PyodideError("npm's pyodide is not installed: run `npm ci`")
    return node, _IN_CLONE


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PyodideError("npm, which installs pyodide, is not on the PATH: install it")
    for name in _PINS:
        shutil.copyfile(places.NPM / name, folder / name)
    version = json.loads((folder / "package.json").read_bytes())["dependencies"][_NAME]
    sys.stderr.write(
        f"holdfast: installing npm's {_NAME} {version}, which compiles the functions, in .holdfast/npm\n"
    )
    ended = subprocess.run([npm, "ci", *_QUIETLY], cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = [line.removeprefix("npm error ") for line in ended.stderr.splitlines()]
        # npm names codes first. The line after them says what failed.
        codes = ("code ", "syscall ", "errno ")
        reason = next((line for line in said if line and not line.startswith(codes)), "no reason given")
        raise PyodideError(
            f"npm could not install pyodide: {reason} (check the network and npm's configuration)"
        )
