"""Set up what the commands of this repository need: `.venv/`, `.venv/ministack/` and `node_modules/`.

    python3 -m local_aws.set_up

A stamp file in each part records the part's inputs, its Python and its path. A part is made again if one of
these has changed, or if making it was interrupted. This module runs before anything is installed, so it
imports nothing but the standard library.
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_aws.failure import LocalAwsError
from local_aws.files import digest, remove
from local_aws.home import DEFAULT_FOLDER, Home
from local_aws.installer import UV_REQUIREMENTS, Installer, run, start
from local_aws.progress import step
from local_aws.server import ROOT, LocalAws, find_running

_VENV = ROOT / ".venv"
_PINS = ROOT / "requirements-dev.txt"
_MINISTACK = _VENV / "ministack"
_MINISTACK_PINS = ROOT / "local_aws" / "requirements.txt"
_INSTALLER = Installer(_VENV)

_FIRST_TIME = "The first set-up of this clone takes about a minute; nothing is installed outside of it."


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the set-up; the user sees its `name` while it is made.

    Attributes:
        stamp: the file with the digest of the part's inputs; it is in the part and is removed with the part.
        inputs: the files from which the part is made.
        make: makes the part over any old content, and returns warnings for the user.
    """

    name: str
    stamp: Path
    inputs: Sequence[Path]
    make: Callable[[], Sequence[str]]


def set_up(parts: Sequence[Part]) -> None:
    """Make each part that is missing or out of date, in order; after a failure the next run continues."""
    # The Python under the virtual environment, so that it does not matter whether .venv is active.
    where = (sys.base_prefix, f"{sys.version_info.major}.{sys.version_info.minor}", str(ROOT))
    for part in parts:
        current = digest(part.inputs, *where)
        if part.stamp.exists() and part.stamp.read_text() == current:
            continue
        with step(part.name):
            part.stamp.unlink(missing_ok=True)
            warnings = part.make()
            part.stamp.write_text(current)
        for line in warnings:
            print(line, flush=True)


def _parts() -> list[Part]:
    return [
        # First, because Node.js may be missing, which is better said before the minute that Python takes.
        Part(
            "Installing CDK and the build tools of the console in node_modules",
            ROOT / "node_modules" / ".set-up",
            (ROOT / "package-lock.json", ROOT / "package.json"),
            _make_node_modules,
        ),
        Part(
            "Installing Python packages in .venv",
            _VENV / ".set-up",
            (_PINS, UV_REQUIREMENTS),
            _make_venv,
        ),
        Part(
            "Installing the holdfast command", _VENV / ".package", (ROOT / "pyproject.toml",), _make_package
        ),
        Part(
            "Installing MiniStack, with the local AWS stopped",
            _MINISTACK / ".set-up",
            (_MINISTACK_PINS,),
            _make_ministack,
        ),
    ]


def _make_venv() -> list[str]:
    for child in _VENV.glob("*"):
        if child != _MINISTACK:  # it has a stamp of its own
            remove(child)
    run(sys.executable, "-m", "venv", _VENV)
    warnings = [*_INSTALLER.get_uv(), *_INSTALLER.install("--require-hashes", "--requirement", _PINS)]
    # pip would compile on one core, and compile unused modules too: most of aws_cdk, and sympy, which is
    # large and used by one package.
    skipped = "/(aws_cdk|sympy)/"
    run(_VENV / "bin" / "python", "-m", "compileall", "-q", "-j", "0", "-x", skipped, _VENV / "lib")
    return warnings


def _make_package() -> list[str]:
    warnings = _INSTALLER.install("--no-build-isolation", "--editable", ROOT)
    # Compiles the used modules of aws_cdk. A failed import is ignored here: the linter reports it.
    start(_VENV / "bin" / "python", "-c", "import holdfast_cdk.team_stack")
    return warnings


def _make_ministack() -> list[str]:
    data = Home(DEFAULT_FOLDER).aws_data
    if running := find_running(data):  # its program will be removed
        LocalAws(running.port, data).stop()
    run(sys.executable, "-m", "venv", "--clear", "--without-pip", _MINISTACK)
    warnings = _INSTALLER.install("--require-hashes", "--requirement", _MINISTACK_PINS, into=_MINISTACK)
    run(_MINISTACK / "bin" / "python", "-m", "compileall", "-q", "-j", "0", _MINISTACK / "lib")
    return warnings


def _make_node_modules() -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise LocalAwsError(
            "The CDK command line needs Node.js 20 or later, with npm; install Node.js first."
        )
    run(npm, "ci", "--loglevel=error")
    return []


def main() -> int:
    # Two set-ups at once would remove each other's parts, so the second waits for the first.
    lock = os.open(__file__, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    parts = _parts()
    try:
        if not any(part.stamp.exists() for part in parts):
            print(_FIRST_TIME, flush=True)
        set_up(parts)
    except (LocalAwsError, OSError) as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; run the command again to continue.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
