"""Compares the version of the command with the version of the deployed code or of a record."""

import re
from typing import Final

from holdfast import __version__

_VERSION: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(\.dev[0-9]{1,9})?(?:\+.*)?", re.ASCII)
"""A release, or the code before it, with `.dev0`. Deployed code adds a plus and a digest to its version."""


def newer_record(where: str) -> str:
    """Return the line about a record that a newer version wrote and this command cannot read."""
    return (
        f"{where} was written by a newer version of holdfast. This command has the version "
        f"{__version__}, so it cannot read the record and did not change it. Upgrade the command."
    )


def is_since(version: str, first: str) -> bool:
    """Return whether deployed code has at least a version; False if its version has another form.

    The code before a release counts as the release: it has the release's number because it has its changes.

    >>> is_since("0.10.0+1a2b3c", "0.3.0"), is_since("0.2.9+1a2b3c", "0.3.0"), is_since("", "0.3.0")
    (True, False, False)
    >>> is_since("0.4.0.dev0+1a2b3c", "0.4.0"), is_since("0.4.0.dev0+1a2b3c", "0.4.1")
    (True, False)
    """
    theirs, least = _VERSION.fullmatch(version), _VERSION.fullmatch(first)
    return bool(theirs and least) and _numbers(theirs) >= _numbers(least)


def _numbers(version: re.Match[str] | None) -> tuple[int, ...]:
    return tuple(map(int, version.groups()[:3])) if version else ()


def _order(version: re.Match[str]) -> tuple[object, ...]:
    return (*_numbers(version), version[4] is None)


def compare(deployed: str, command: str = __version__) -> tuple[str, str] | None:
    """Return which is older, the deployed code or the command, and what to do; None if both are equal.

    >>> compare("0.10.0+1a2b3c", "0.9.1")
    ('This command, 0.9.1, is older than the deployed version, 0.10.0+1a2b3c.', 'Upgrade the command.')
    >>> compare("0.4.0.dev0+1a2b3c", "0.4.0")
    ('The deployed version, 0.4.0.dev0+1a2b3c, is older than this command, 0.4.0.', 'Deploy the stack again.')
    >>> compare("0.4.0.dev0+1a2b3c", "0.4.0.dev0")
    """
    theirs, ours = _VERSION.fullmatch(deployed), _VERSION.fullmatch(command)
    if theirs is None or ours is None:
        return (
            f"The deployed functions have version {deployed}, and this command has version {command}.",
            f"Deploy the stack again, or use a command of version {deployed}.",
        )
    if _order(theirs) == _order(ours):
        return None
    if _order(theirs) < _order(ours):
        return (
            f"The deployed version, {deployed}, is older than this command, {command}.",
            "Deploy the stack again.",
        )
    return (
        f"This command, {command}, is older than the deployed version, {deployed}.",
        "Upgrade the command.",
    )
