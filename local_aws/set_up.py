"""Set up what the commands of this repository need: `.venv/`, `.venv/ministack/` and `node_modules/`.

    python3 -m local_aws.set_up

A stamp file in each part records the part's inputs, its Python and its path. A part is made again if one of
these has changed, or if making it was interrupted. This module runs before anything is installed, so it
imports nothing but the standard library.
"""

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_aws.failure import LocalAwsError
from local_aws.home import DEFAULT_FOLDER, Home
from local_aws.installer import UV_REQUIREMENTS, Installer, check, start
from local_aws.progress import step
from local_aws.server import LocalAws, find_running

_ROOT = Path(__file__).resolve().parent.parent
_VENV = _ROOT / ".venv"
_MINISTACK = _VENV / "ministack"
_NODE_MODULES = _ROOT / "node_modules"
_INSTALLER = Installer(_VENV)

_FIRST_TIME = "The first set-up of this clone takes about a minute; nothing is installed outside of it."


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the set-up; the user sees its `name` while it is made.

    Attributes:
        stamp: the file with the digest of the part's inputs; it is in the part and is removed with the part.
        inputs: the files from which the part is made.
        make: makes the part over any old content, and returns lines for the user.
    """

    name: str
    stamp: Path
    inputs: tuple[Path, ...]
    make: Callable[[], Sequence[str]]


def set_up(parts: Sequence[Part]) -> None:
    """Make each part that is missing or out of date, in order; after a failure the next run continues."""
    for part in parts:
        digest = _digest(part.inputs)
        if part.stamp.exists() and part.stamp.read_text() == digest:
            continue
        with step(part.name):
            part.stamp.unlink(missing_ok=True)
            said = part.make()
            part.stamp.write_text(digest)
        for line in said:
            print(line, flush=True)


def _digest(inputs: Sequence[Path]) -> str:
    # The Python under the virtual environment, so that it does not matter whether .venv is active.
    where = (sys.base_prefix, f"{sys.version_info.major}.{sys.version_info.minor}", str(_ROOT))
    digest = hashlib.sha256("\0".join(where).encode())
    for path in inputs:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _parts() -> list[Part]:
    lock = _ROOT / "package-lock.json"
    return [
        # First, because Node.js may be missing, which is better said before the minute that Python takes.
        Part(
            "Installing CDK and what builds the console in node_modules",
            _NODE_MODULES / ".set-up",
            (lock, _ROOT / "package.json"),
            _make_node_modules,
        ),
        Part(
            "Installing Python packages in .venv",
            _VENV / ".set-up",
            (_ROOT / "requirements-dev.txt", UV_REQUIREMENTS),
            _make_venv,
        ),
        Part(
            "Installing the holdfast command", _VENV / ".package", (_ROOT / "pyproject.toml",), _make_package
        ),
        Part(
            "Installing MiniStack, with the local AWS stopped",
            _MINISTACK / ".set-up",
            (_ROOT / "local_aws" / "requirements.txt",),
            _make_ministack,
        ),
    ]


def _make_venv() -> list[str]:
    if _VENV.exists():
        for child in _VENV.iterdir():
            if child == _MINISTACK:  # it has a stamp of its own
                continue
            if child.is_dir() and not child.is_symlink():
                shutil.rmtree(child)
            else:
                child.unlink()
    _run(sys.executable, "-m", "venv", _VENV)
    said = [
        _INSTALLER.get_uv(),
        _INSTALLER.install("--require-hashes", "--requirement", _ROOT / "requirements-dev.txt"),
    ]
    # pip would compile on one core, and compile unused modules too: most of aws_cdk, and sympy, which is
    # large and used by one package.
    skipped = "/(aws_cdk|sympy)/"
    _run(_VENV / "bin" / "python", "-m", "compileall", "-q", "-j", "0", "-x", skipped, _VENV / "lib")
    return [line for line in said if line]


def _make_package() -> list[str]:
    said = _INSTALLER.install("--no-build-isolation", "--editable", _ROOT)
    # Compiles the used modules of aws_cdk. A failed import is ignored here: the linter reports it.
    start(_VENV / "bin" / "python", "-c", "import infra.team_stack")
    return [said] if said else []


def _make_ministack() -> list[str]:
    data = Home(DEFAULT_FOLDER).aws_data
    if running := find_running(data):  # its program will be removed
        LocalAws(running.port, data).stop()
    _run(sys.executable, "-m", "venv", "--clear", "--without-pip", _MINISTACK)
    requirements = _ROOT / "local_aws" / "requirements.txt"
    said = _INSTALLER.install("--require-hashes", "--requirement", requirements, into=_MINISTACK)
    _run(_MINISTACK / "bin" / "python", "-m", "compileall", "-q", "-j", "0", _MINISTACK / "lib")
    return [said] if said else []


def _make_node_modules() -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise LocalAwsError(
            "Node.js 20 or later with npm is needed for the CDK command line; install it first."
        )
    _run(npm, "ci", "--loglevel=error")
    return []


def _run(*command: str | Path) -> None:
    check(start(*command))


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
        print("Interrupted; run the command again to go on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
