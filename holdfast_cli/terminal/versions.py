"""Compare the versions of the command and of deployed code or records."""

import re
from typing import Final

from holdfast import __version__

_VERSION: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:\+.*)?", re.ASCII)
"""A semantic version; the version of deployed code has a digest of the code after a plus."""


def newer_record(where: str) -> str:
    """Return the message about a record of a newer command that this command cannot read."""
    return (
        f"{where} was written by a newer version of holdfast than this command, {__version__}, which cannot "
        "read it and leaves it as it is: upgrade the command."
    )


def compare(deployed: str, command: str = __version__) -> tuple[str, str] | None:
    """Return a sentence about the older one of deployed code and command, and advice; None if equal.

    >>> compare("0.10.0+1a2b3c", "0.9.1")
    ('This command, 0.9.1, is older than the deployed code, 0.10.0+1a2b3c.', 'Upgrade the command.')
    """
    theirs, ours = _VERSION.fullmatch(deployed), _VERSION.fullmatch(command)
    if theirs is None or ours is None:
        return (
            f"The deployed code has version {deployed}, this command has {command}.",
            "Deploy the stack again, or use the command of that version.",
        )
    theirs_numbers, our_numbers = (tuple(map(int, one.groups())) for one in (theirs, ours))
    if theirs_numbers == our_numbers:
        return None
    if theirs_numbers < our_numbers:
        return (
            f"The deployed code, {deployed}, is older than this command, {command}.",
            "Deploy the stack again.",
        )
    return (
        f"This command, {command}, is older than the deployed code, {deployed}.",
        "Upgrade the command.",
    )
