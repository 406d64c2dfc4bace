"""Keeps secrets that stand in the wrong place out of what is printed."""

import re
from collections.abc import Iterable
from typing import Final

from holdfast_cli.terminal.output import plain

LONGEST_SHOWN: Final = 30
"""Characters of a word that a message repeats in full. A longer one may be a secret in the wrong place."""

_SECRET: Final = re.compile(
    r"holdfast_[0-9A-Za-z]{20}|session-[0-9a-z]{20}|eyJ[\w-]+\.[\w-]+\.|^[0-9A-Za-z/+]{40}$", re.ASCII
)
_SEPARATORS: Final = re.compile(r"[=,; ]")
_CREDENTIALS: Final = re.compile(r":.*@", re.DOTALL)
"""In a URL."""
_BEGINNING: Final = 12
"""Characters that a message repeats of a longer word that does not look secret."""


def looks_secret(value: str) -> bool:
    """Return whether a text has the form of a secret of Holdfast or AWS, of a session or of an ID token."""
    return _SECRET.search(value) is not None


def hidden(message: str, words: Iterable[str], longest: int | None = LONGEST_SHOWN) -> str:
    """Return a message without those of the typed words, and of their parts, that may be secret.

    Args:
        message: may repeat words, or parts of them.
        words: of the command line.
        longest: of a word with more characters only the beginning is left; None leaves it.
    """
    typed = {part for word in words for part in (word, word.partition("=")[2], *_SEPARATORS.split(word))}
    for word in sorted(typed, key=len, reverse=True):
        if _is_secret(word):
            shown = "…"
        elif longest is not None and len(word) > longest:
            shown = f"{word[:_BEGINNING]}…"
        else:
            continue
        for form in (word, repr(word)[1:-1], plain(word)):
            message = message.replace(form, shown)
    return message


def _is_secret(word: str) -> bool:
    return _CREDENTIALS.search(word) is not None or any(map(looks_secret, _SEPARATORS.split(word)))
