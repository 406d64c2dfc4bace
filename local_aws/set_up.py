"""Sets up what the commands of this repository need: `.venv/`, `.venv/ministack/` and `node_modules/`.

    python3 -m local_aws.set_up

Each part keeps a stamp of what it was made from, by which Python and where, and is made again when that
changed or when making it broke off. Runs before anything is installed, so it imports nothing but the
standard library.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_aws.failure import LocalAwsError
from local_aws.home import DEFAULT_FOLDER, Home
from local_aws.progress import step
from local_aws.server import LocalAws, find_running

_ROOT = Path(__file__).resolve().parent.parent
_VENV = _ROOT / ".venv"
_MINISTACK = _VENV / "ministack"
_NODE_MODULES = _ROOT / "node_modules"
_PIP_INSTALL = (
    *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"),
    *("--no-deps", "--no-compile"),
)

_FIRST_TIME = "The first set-up of this clone takes two to four minutes; nothing is installed outside of it."


@dataclass(frozen=True, slots=True)
class Part:
    """Something to set up.

    Attributes:
        name: what the user reads while it is made.
        stamp: the file that says what it was made from; it lies within the part and goes with it.
        inputs: the files that it is made from.
        make: makes it, whatever is there already.
    """

    name: str
    stamp: Path
    inputs: tuple[Path, ...]
    make: Callable[[], None]


def set_up(parts: Sequence[Part]) -> None:
    """Make those parts that are not there as they should be, in order.

    Raises:
        LocalAwsError: a part could not be made; the next run makes it again.
    """
    for part in parts:
        digest = _digest(part.inputs)
        if part.stamp.exists() and part.stamp.read_text() == digest:
            continue
        with step(part.name):
            part.stamp.unlink(missing_ok=True)
            part.make()
            part.stamp.write_text(digest)


def _digest(inputs: Sequence[Path]) -> str:
    # Of the Python beneath, so that it does not matter whether .venv is active.
    where = (sys.base_prefix, f"{sys.version_info.major}.{sys.version_info.minor}", str(_ROOT))
    digest = hashlib.sha256("\0".join(where).encode())
    for path in inputs:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _parts() -> list[Part]:
    lock = _ROOT / "package-lock.json"
    return [
        Part(
            "Installing Python packages in .venv",
            _VENV / ".set-up",
            (_ROOT / "requirements-dev.txt",),
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
        Part(
            "Installing the CDK command line in node_modules",
            _NODE_MODULES / ".set-up",
            (lock, _ROOT / "package.json"),
            _make_node_modules,
        ),
    ]


def _make_venv() -> None:
    if _VENV.exists():
        for child in _VENV.iterdir():
            if child == _MINISTACK:  # it has a stamp of its own
                continue
            if child.is_dir() and not child.is_symlink():
                shutil.rmtree(child)
            else:
                child.unlink()
    _run(sys.executable, "-m", "venv", _VENV)
    python = _VENV / "bin" / "python"
    _run(python, *_PIP_INSTALL, "--requirement", _ROOT / "requirements-dev.txt")
    # pip would compile on one core only, and most of aws_cdk for nothing: it has 300 large modules.
    _run(python, "-m", "compileall", "-q", "-j", "0", "-x", "/aws_cdk/", _VENV / "lib")


def _make_package() -> None:
    _run(_VENV / "bin" / "python", *_PIP_INSTALL, "--no-build-isolation", "--editable", _ROOT)
    # Compiles what is used of aws_cdk. Whoever's change broke it wants to hear of it from the linter.
    _start(_VENV / "bin" / "python", "-c", "import infra.team_stack")


def _make_ministack() -> None:
    data = Home(DEFAULT_FOLDER).aws_data
    if running := find_running(data):  # its program is about to be removed
        LocalAws(running.port, data).stop()
    _run(sys.executable, "-m", "venv", "--clear", _MINISTACK)
    requirements = _ROOT / "local_aws" / "requirements.txt"
    _run(_MINISTACK / "bin" / "python", *_PIP_INSTALL, "--requirement", requirements)
    _run(_MINISTACK / "bin" / "python", "-m", "compileall", "-q", "-j", "0", _MINISTACK / "lib")


def _make_node_modules() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise LocalAwsError(
            "Node.js 20 or later with npm is needed for the CDK command line; install it first."
        )
    _run(npm, "ci", "--loglevel=error")


def _run(*command: str | Path) -> None:
    ended = _start(*command)
    if ended.returncode != 0:
        raise LocalAwsError(f"{ended.stdout.strip()}\n\n{' '.join(map(str, command))} failed; see above.")


def _start(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=_ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def main() -> int:
    """Set up everything.

    Returns:
        The exit code.
    """
    # Two at once would tear each other's parts down: the second waits for the first.
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
