"""Where the files are from which the stacks are made: in the clone, or in the installed package.

An installed package has them in its folder `data`, which the build of a release fills: the folder `functions`
of the clone, the built files of the console, `package.json`, and the pins of what npm installs for a
deployment.
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from importlib import metadata
from pathlib import Path
from typing import Final

from holdfast import __version__

_PACKAGE: Final = Path(__file__).resolve().parent
CLONE: Final = _PACKAGE.parents[1]
"""The clone, if this is one."""
DATA: Final = _PACKAGE / "data"
IS_INSTALLED: Final = DATA.is_dir()
FUNCTIONS: Final = (DATA if IS_INSTALLED else CLONE) / "functions"
CONSOLE: Final = DATA / "console"
"""The built files of the console, in an installed package."""
NPM: Final = DATA / "npm"
"""`package.json` and `package-lock.json` of npm's pyodide, in an installed package."""
PACKAGES: Final = (DATA if IS_INSTALLED else CLONE) / "package.json"
"""The packages of npm with which a release was tested, and their versions."""
BUILD: Final = Path(".holdfast")
"""The folder for what is built, in the folder of `cdk.json`, in which `cdk` starts its app."""

DISTRIBUTION: Final = "holdfast-state"
"""The name under which pip knows this package."""
PINNED: Final = f"{DISTRIBUTION}[deploy]=={__version__}"
"""The requirement of a deployment with this release."""

_AGAIN: Final = f"install it again: pip install --force-reinstall '{PINNED}'"
_ONLY_THE_COMMAND: Final = f"only the `holdfast` command is installed, not the CDK app; {_AGAIN}"


class PlaceError(Exception):
    """The installed package does not have the files of its release. The message says what to do."""


def check() -> None:
    """Raise `PlaceError` unless the installed package has the files of its release and no others."""
    if not FUNCTIONS.is_dir():
        raise PlaceError(_ONLY_THE_COMMAND)
    if not IS_INSTALLED:
        return
    if (version := metadata.version(DISTRIBUTION)) != __version__:
        raise PlaceError(
            f"the installed package is Holdfast {version}, and its code is Holdfast {__version__}; {_AGAIN}"
        )
    recorded = {
        DATA.joinpath(*file.parts[2:]): file.hash
        for file in metadata.files(DISTRIBUTION) or ()
        if file.parts[:2] == (_PACKAGE.name, DATA.name)
    }
    for path in sorted(recorded.keys() | {path for path in DATA.rglob("*") if path.is_file()}):
        # Python and pip write bytecode beside the modules that they load. It is not deployed.
        if path.parent.name == "__pycache__":
            continue
        if recorded and path not in recorded:
            raise PlaceError(f"{path} is not a file of Holdfast {__version__}; remove it")
        if not _is_recorded(path, recorded.get(path)):
            raise PlaceError(f"{path} differs from the file of Holdfast {__version__}; {_AGAIN}")


def _is_recorded(path: Path, recorded: metadata.FileHash | None) -> bool:
    """Return whether a file has the hash that was recorded when the package was built."""
    if recorded is None or not path.is_file():
        return False
    digest = hashlib.new(recorded.mode, path.read_bytes()).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode() == recorded.value


def cdk_version() -> str:
    """Return the version of npm's `aws-cdk` for this release; `PlaceError` if the file is not there."""
    try:
        version: str = json.loads(PACKAGES.read_bytes())["devDependencies"]["aws-cdk"]
    except FileNotFoundError:
        raise PlaceError(_ONLY_THE_COMMAND) from None
    return version
