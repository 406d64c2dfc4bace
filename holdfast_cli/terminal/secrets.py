"""Detects words that have the form of a secret."""

import re
from typing import Final

_SECRET: Final = re.compile(
    r"holdfast_[0-9A-Za-z]{20}|session-[0-9a-z]{20}|eyJ[\w-]+\.[\w-]+\.|^[0-9A-Za-z/+]{40}$", re.ASCII
)
SEPARATORS: Final = re.compile(r"[=,; ]")
"""Separates the parts of a word."""
_CREDENTIALS: Final = re.compile(r":.*@", re.DOTALL)
"""Credentials in a URL."""


def looks_secret(value: str) -> bool:
    """Return whether a text has the form of a secret of Holdfast or AWS, of a session or of an ID token."""
    return _SECRET.search(value) is not None


def has_secret(word: str) -> bool:
    """Return whether a word looks secret, has a part that looks secret, or is an address with credentials."""
    return _CREDENTIALS.search(word) is not None or any(map(looks_secret, SEPARATORS.split(word)))
