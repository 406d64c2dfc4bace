"""Prints the command's output: in whole or not at all, in tables that fit, without control characters."""

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from holdfast_cli.errors import CommandError

_NARROWEST = 8
"""Characters below which no column is cut."""
_PROGRESS_AFTER = 2.0
"""Seconds that pass in silence."""


def write(text: str) -> None:
    """Print a text on standard output.

    Raises:
        CommandError: standard output does not take it.
    """
    with checked():
        print(text)


def tell(line: str) -> None:
    """Print a line on standard error."""
    print(line, file=sys.stderr)


@contextmanager
def checked() -> Iterator[None]:
    """Ensure that what is printed inside has left this process at the end.

    Raises:
        CommandError: standard output does not take it.
    """
    if sys.stdout is None:  # it was closed before the command was started
        raise CommandError("Standard output is closed.")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        # At its end Python writes what is left once more (note on SIGPIPE in the documentation of `signal`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CommandError(f"The output could not be written: {error.strerror}.") from error


# --- texts ---------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Return a text that others wrote, without characters that control a terminal.

    >>> plain("a\x1b[31mb")
    'a?[31mb'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def moment(time_: datetime) -> str:
    """Format a time for a sentence, such as `2027-02-19 15:44:05 UTC`."""
    return f"{time_.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def word(time_: datetime) -> str:
    """Format a time for a table, such as `2027-02-19T15:44:05Z`."""
    return f"{time_.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def listed(fields: Sequence[tuple[str, str]]) -> str:
    """Lay out names and values, one pair in a line, with the values in a column."""
    width = max(len(name) for name, _ in fields)
    return "\n".join(f"  {name:<{width}}  {plain(value)}" for name, value in fields)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, cut: Sequence[str] = ()) -> str:
    """Lay out a table. Where it is wider than the terminal, columns are cut; into a pipe everything goes.

    Args:
        headings: of the columns.
        rows: the cells; an empty one is shown as `-`, so that columns can be counted.
        cut: headings of the columns that may be cut, the first of them first.
    """
    lines = [[plain(cell) or "-" for cell in row] for row in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if sys.stdout.isatty():
        excess = sum(widths) + 2 * (len(widths) - 1) - shutil.get_terminal_size().columns
        for heading in cut:
            column = headings.index(heading)
            least = max(_NARROWEST, len(heading))
            narrower = max(0, min(excess, widths[column] - least))
            widths[column] -= narrower
            excess -= narrower
    return "\n".join(
        "  ".join(_cell(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cell(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"


class Progress:
    """Shows a terminal that something takes long; other outputs do not get it."""

    _ERASE: Final = "\r\x1b[K"

    def __init__(self) -> None:
        self._silent_until = time.monotonic() + _PROGRESS_AFTER
        self._is_shown = False

    def show(self, text: str) -> None:
        """Replace what is shown."""
        if time.monotonic() >= self._silent_until and sys.stderr.isatty():
            print(f"{self._ERASE}{text}", end="", file=sys.stderr, flush=True)
            self._is_shown = True
            self._silent_until = time.monotonic() + 0.1

    def end(self) -> None:
        """Remove what is shown."""
        if self._is_shown:
            print(self._ERASE, end="", file=sys.stderr, flush=True)
            self._is_shown = False
