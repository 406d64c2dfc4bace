"""Where the files are from which the stacks are made: in the clone, or in the installed package.

An installed package has them in its folder `data`, which the build of a release fills: the folder `functions`
of the clone, and the built files of the console.
"""

import hashlib
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
BUILD: Final = Path(".holdfast")
"""The folder for what is built, in the folder of `cdk.json`, in which `cdk` starts its app."""


class PlaceError(Exception):
    """The installed package does not have the files of its release. The message says what to do."""


def check() -> None:
    """Raise `PlaceError` if files of the installed package are missing or are not those of its release."""
    again = f"install it again: pip install --force-reinstall 'holdfast[deploy]=={__version__}'"
    if not FUNCTIONS.is_dir():
        raise PlaceError(f"this installation of Holdfast has only the command; {again}")
    if not IS_INSTALLED:
        return
    for file in metadata.files("holdfast") or ():
        path = Path(str(file.locate()))
        if DATA not in path.parents or file.hash is None:
            continue
        digest = hashlib.new(file.hash.mode, path.read_bytes()).digest() if path.is_file() else b""
        if urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value:
            raise PlaceError(f"{path} is not the file of Holdfast {__version__}; {again}")
