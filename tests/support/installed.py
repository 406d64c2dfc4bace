"""The package as a user installs it: a wheel of this tree, in virtual environments without the clone."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast_cdk import places
from local_aws.installer import pip_settings, uv_environment
from publish import release
from tests.support.pages import ROOT

_UV = ROOT / ".venv" / "bin" / "uv"
_UV_CACHE = ROOT / ".build" / "uv-cache"
"""Has the packages of earlier runs, so that only the first run downloads them."""
_TIME = 1_700_000_000
"""The time of each file in the wheel (Unix seconds)."""


def build_wheel(folder: Path) -> Path:
    """Build a wheel of this tree as a release does, with the changes that are not committed; return its path.

    Args:
        folder: an empty folder, in which the wheel stays.
    """
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    with tempfile.TemporaryDirectory() as source:
        for name in filter(None, listed.split("\0")):
            if (path := ROOT / name).is_file():
                (Path(source) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, Path(source) / name)
        release.stage(Path(source))
        release.distribute(Path(source), _TIME, folder)
    [wheel] = folder.glob("*.whl")
    return wheel


def install(wheel: Path, environment: Path, *, extra: str = "", dependencies: bool = True) -> Path:
    """Install a wheel into a new virtual environment, and return the folder with its programs.

    The packages that it needs have the versions that this repository pins, so that new releases of them do
    not change a test. The files are copies, which a test may change.

    Args:
        environment: the folder of the virtual environment, which must not exist yet.
        extra: the extra to install too, as in `deploy`.
        dependencies: whether the packages that the wheel needs are installed too.
    """
    with tempfile.TemporaryDirectory() as folder:
        pins = re.findall(r"^[\w.-]+==\S+", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("\n".join(pins))
        wanted = f"{places.DISTRIBUTION}{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"
        _uv("venv", "--python", sys.executable, environment)
        _uv(
            *("pip", "install", "--python", environment / "bin" / "python", "--link-mode", "copy"),
            *("--constraint", constraints, *(() if dependencies else ("--no-deps",)), wanted),
        )
    return environment / "bin"


def _uv(*arguments: str | Path) -> None:
    told = uv_environment(pip_settings(Path(sys.executable)), os.environ)
    environment = {**os.environ, **told, "UV_CACHE_DIR": str(_UV_CACHE), "UV_PYTHON_DOWNLOADS": "never"}
    done = subprocess.run(
        [_UV, "--quiet", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
