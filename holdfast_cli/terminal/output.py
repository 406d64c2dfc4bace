"""Prints the command's output, fitted to the terminal and without control characters.

In a pipe each row and each sentence is one line. On a terminal lines break at spaces only, so that an ID, a
secret or a command in backquotes can be copied; the terminal itself breaks a word that is wider.
Printing raises `OutputClosedError` if the reader closed the output, `CommandError` if a write fails.
"""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import zip_longest
from typing import Final, Self, TextIO

from holdfast import timestamp
from holdfast_cli.errors import CommandError, OutputClosedError
from holdfast_cli.terminal import ages

_NARROWEST = 16
"""The smallest width of a line in cells, because narrower text is hard to read."""
_USUAL = os.terminal_size((80, 24))
"""Columns and lines of a terminal that does not report its size."""
GAP = "  "
"""The space between two columns."""
_BAR: Final = 20
"""The length of the bar that shows how much is done."""
_MINUTES_FROM: Final = 120
"""Seconds from which the time left is shown in minutes."""
_PROGRESS_AFTER = 2.0
"""Seconds before progress is first shown."""
LEAST: Final = 12
"""How many cells of a cut text are shown at least."""
_TALLEST: Final = 3
"""How many lines a cell of a table has at most; a taller one is below its row."""
_WORD = re.compile(
    r"\(?(?:\bin (?:\d+ (?:d|h|min) (?=\d))?)?\b\d+ [a-z]+(?: ago)?[),.:;]*(?!\S)|(?:[^\s`]|`[^`]*`|`)+"
)
"""A part of a text in which no line breaks: a number with its word, an age, and a command in backquotes, to
be copied as a whole."""


def write(text: str) -> None:
    """Print a text on standard output."""
    with checked():
        print(text)


def as_json(document: object) -> str:
    """Return a document as the JSON that commands print."""
    import json  # the help does without

    return json.dumps(document, indent=2)


def write_json(document: object) -> None:
    """Print a document on standard output as JSON."""
    write(as_json(document))


def write_list(text: str, unreadable: Sequence[str]) -> None:
    """Print a list; then raise `CommandError` if it lacks something, with the first line of `unreadable`."""
    try:
        write(text)
    except OutputClosedError:
        if not unreadable:  # otherwise the exit code is 1
            raise
    if unreadable:
        first, *others = unreadable
        more = f" Further records that cannot be read: {len(others)}." if others else ""
        raise CommandError(first + more)


def write_either(text: str, document: object) -> None:
    """Print a text for people, or the document of --json if it is not None."""
    if document is None:
        write(wrapped(text))
    else:
        write_json(document)


def outcome(done: str, document: object = None) -> None:
    """Print a change, as `write_either` does; the user learns of it even if that fails, as by `after`."""
    with after(done):
        write_either(done, document)


@contextmanager
def after(done: str | Callable[[], str]) -> Iterator[None]:
    """Ensure that the user learns of a change, even if this context ends early.

    `done` describes the change, and says what to do if the output is lost. A function is called at the early
    end. `done` is appended to the text of a `CommandError` that is raised inside, and added as a note to a
    KeyboardInterrupt.
    """
    try:
        yield
    except CommandError as failure:
        raise CommandError(f"{failure} {done if isinstance(done, str) else done()}") from failure
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(done if isinstance(done, str) else done())
        raise


def is_brief(*, long: bool) -> bool:
    """Return whether rows have ages instead of times and no IDs: on a terminal, unless --long is given."""
    return sys.stdout.isatty() and not long


def tell(line: str) -> None:
    """Print a line on standard error."""
    _to_standard_error(f"{wrapped(plain(line), stream=sys.stderr)}\n")


def complain(message: object, steps: Sequence[str] = ()) -> None:
    """Print on standard error why the command failed, and below it lines that say what to type."""
    name = "holdfast:"
    line = wrapped(plain(f"{name} {message}"), stream=sys.stderr)
    below = "".join(f"  {step}\n" for step in steps)
    _to_standard_error(f"{coloured(name, 'red', sys.stderr)}{line.removeprefix(name)}\n{below}")


@contextmanager
def checked() -> Iterator[None]:
    """Flush standard output at the end of the context, and raise errors of writing as `CommandError`."""
    was_closed = sys.stdout is None  # by the caller
    if was_closed:
        # argparse would print the help on standard error.
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: PTH123, SIM115 it has no path
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
        if was_closed:
            raise CommandError("Standard output is closed.")
    except OSError as error:
        _give_up(sys.stdout)
        kind = OutputClosedError if isinstance(error, BrokenPipeError) else CommandError
        raise kind(f"The output could not be written: {error.strerror}.") from error
    finally:
        _to_standard_error("")  # argparse writes there, too


def _to_standard_error(text: str) -> None:
    """Print on standard error. A failed write is ignored, because it cannot be reported."""
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError:
        _give_up(sys.stderr)


def _give_up(stream: TextIO) -> None:
    """Discard the rest of a stream.

    Otherwise Python writes the rest again when it exits (note on SIGPIPE in the documentation of `signal`).
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# --- texts ---------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Return a text that others wrote, with `?` for each control character.

    >>> plain("a\x1b[31mb")
    'a?[31mb'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def some(texts: Sequence[str], most: int) -> str:
    """Join texts with commas, and say how many there are beyond `most`.

    >>> some(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return f"{', '.join(texts[:most])}{more}"


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with `…` in place of what is left out.

    >>> cut("incident 4711", 10)
    'incident…'
    """
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def cut_cells(text: str, most: int) -> str:
    """Return a text for a column of `most` cells of a terminal, cut behind a word if a third is left.

    A number and its unit are one word.

    >>> cut_cells("frozen, ends in 23 h 59 min: move", 26), cut_cells("payments/ledger/prod", 8)
    ('frozen, ends…', 'payment…')
    """
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= most:
        return text
    fitting = [text[: word.end()] for word in _WORD.finditer(text) if cell_len(text[: word.end()]) < most]
    words = fitting[-1] if fitting and 3 * cell_len(fitting[-1]) >= most else set_cell_size(text, most - 1)
    return f"{words.rstrip(' …,:')}…"


def moment(time_: datetime, now: datetime | None = None) -> str:
    """Format a time for a sentence, such as `2027-02-19 15:44:05 UTC`; with `now`, followed by its age."""
    return f"{timestamp.sentence(time_)}{_age(time_, now)}"


def word(time_: datetime, now: datetime | None = None) -> str:
    """Format a time for a table, such as `2027-02-19T15:44:05Z`; with `now`, followed by its age."""
    return f"{timestamp.write(time_)}{_age(time_, now)}"


def _age(time_: datetime, now: datetime | None) -> str:
    return "" if now is None else f" ({ages.ago(time_, now)})"


def coloured(text: str, colour: str, stream: TextIO | None = None) -> str:
    """Colour a text for a terminal with colours, unless NO_COLOR is set (https://no-color.org).

    The text must mean the same without colour. `colour` is the name of a colour in the package `rich`.
    """
    stream = stream or sys.stdout
    if not stream.isatty():
        return text
    from rich.console import Console  # slow to import, and not needed for a pipe
    from rich.text import Text

    console = Console(file=stream, force_terminal=True)
    with console.capture() as captured:
        console.print(Text(text, colour), end="", soft_wrap=True)
    return captured.get()


def heading(text: str) -> str:
    """Return the head of a table in bold letters for a terminal, unless NO_COLOR is set."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    if not sys.stdout.isatty() or is_plain:
        return text
    return f"\x1b[1m{text}\x1b[0m"  # `coloured` would import what most lists do without


def wrapped(text: str, *, head: str = "", hanging: int = 0, stream: TextIO | None = None) -> str:
    """Wrap sentences for a terminal; for any other output, return them unchanged.

    Args:
        text: one or more lines. An indented line is not wrapped, because it is code.
        head: the beginning of the first line; the other lines are indented by its width.
        hanging: cells by which the other lines are indented further.
    """
    stream = stream or sys.stdout
    if not stream.isatty():
        return head + text
    indent = len(head) + hanging
    room = columns(stream) - indent
    lines = [
        part
        for number, line in enumerate(text.split("\n"))
        for part in (
            [line] if line.startswith(" ") else _broken(line, room, 0 if number else hanging) or [""]
        )
    ]
    return head + f"\n{' ' * indent}".join(lines)


def listed(fields: Sequence[tuple[str, str]]) -> str:
    """Return lines of a name and its value, with all values in the same column."""
    width = max(len(name) for name, _ in fields)
    return "\n".join(wrapped(plain(value), head=f"  {name:<{width}}  ") for name, value in fields)


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str | Sequence[str] | None]],
    colours: Sequence[str | None] = (),
    *,
    cut_last: bool = False,
) -> str:
    """Return a table: for a pipe with one line for each row, for a terminal in the terminal's width.

    `colours` has a row's colour at the row's place, as `coloured` takes it, or None. With `cut_last`, cells
    of the last column are cut to one line on a terminal, if enough of them fits beside the other columns.

    On a terminal cells are wrapped, and the last columns are printed below their row if they do not fit; if
    that is because of few cells, only these are, as are cells that would take many lines. Such a row takes
    one line if its cells fit without padding. A name in the first column that takes over half of the width,
    and does not fit beside the others, has a line of its own; the only line of its row if there is nothing
    else. An empty cell is shown as `-`, so that columns can be counted; texts of a cell are joined by commas.
    """
    if not sys.stdout.isatty():
        lines = [[_cell(cell, ",") for cell in row] for row in (headings, *rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(GAP.join(map(str.ljust, line, widths)).rstrip() for line in lines)
    lines = [[_cell(cell, ", ") for cell in row] for row in (headings, *rows)]
    room = columns(sys.stdout)
    longest = max(room // 2, room - total_width([0, *_widest(lines)[1:]]))
    are_alone = [len(headings) > 1 and _unbroken(line[0]) > longest for line in lines]
    beside_names = [["", *line[1:]] if alone else line for line, alone in zip(lines, are_alone, strict=True)]
    left = room - total_width([*_widest(beside_names)[:-1], 0])
    if cut_last and left >= LEAST:
        beside_names = [[*line[:-1], cut_cells(line[-1], left)] for line in beside_names]
    shown = _without_tall_cells(_without_wide_words(beside_names, room), room)
    widths = _widths(shown, room)
    beside = len(widths)
    shown, widths = _with_cells_that_fit(beside_names, shown, widths, room)
    is_below = [
        [
            place >= beside or cell != kept
            for place, (cell, kept) in enumerate(zip(line, keeping, strict=True))
        ]
        for line, keeping in zip(beside_names, shown, strict=True)
    ]
    label = max(
        (len(name) for row in is_below for name, below in zip(headings, row, strict=True) if below), default=0
    )
    laid: list[str] = []
    for line, alone, kept, below, colour in zip_longest(lines, are_alone, shown, is_below, (None, *colours)):
        row = [line[0]] if alone else []
        if any(below) and len(line) == beside and (squeezed := _squeezed(line, widths, room)):
            row, below = [squeezed], [False] * len(line)
        elif not alone or any(cell != "-" for cell in kept[1:beside]):
            cells = [_broken(cell, width) for cell, width in zip(kept, widths, strict=False)]
            row += [_side_by_side(parts, widths) for parts in zip_longest(*cells, fillvalue="")]
        if laid:
            row += [
                wrapped(cell, head=f"  {name:<{label}}  ")
                for name, cell, is_there in zip(headings, line, below, strict=True)
                if is_there and cell != "-"
            ]
        text = "\n".join(row)
        laid.append(coloured(text, colour) if colour else text if laid else heading(text))
    return "\n".join(laid)


def _squeezed(line: Sequence[str], widths: Sequence[int], room: int) -> str:
    """Return a row on one line, each cell near its column; empty if the row does not fit."""
    from rich.cells import cell_len

    text, end, start = "", 0, 0
    for number, (cell, width) in enumerate(zip(line, widths, strict=True)):
        latest = room - total_width([*map(cell_len, line[number:])])
        if latest < end:
            return ""
        place = min(max(start, end), latest)
        text += " " * (place - cell_len(text)) + cell
        end, start = place + cell_len(cell) + len(GAP), start + width + len(GAP)
    return text


def _without_wide_words(lines: Sequence[Sequence[str]], room: int) -> Sequence[Sequence[str]]:
    """Return the lines without the cells whose words leave no room for the other columns.

    Less than half of the cells of a column are left out, and none of the first column.
    """
    left = [list(line) for line in lines]
    while len(least := _least(left)) > 1 and total_width(least) > room:
        _, number = max((width, number) for number, width in enumerate(least[1:], 1))
        words = [_unbroken(line[number]) for line in left]
        cells = ["" if width == max(words) else line[number] for line, width in zip(left, words, strict=True)]
        if max(words) <= _NARROWEST or 2 * cells.count("") >= len(left):
            break
        for line, cell in zip(left, cells, strict=True):
            line[number] = cell
    return left


def _without_tall_cells(lines: Sequence[Sequence[str]], room: int) -> Sequence[Sequence[str]]:
    """Return the lines without the cells that would have more than `_TALLEST` lines in their columns."""
    widths = _widths(lines, room)
    beside = len(widths)
    return [
        [
            first,
            *(
                "" if len(_broken(cell, width)) > _TALLEST else cell
                for cell, width in zip(others, widths[1:], strict=False)
            ),
            *others[beside - 1 :],
        ]
        for first, *others in lines
    ]


def _with_cells_that_fit(
    lines: Sequence[Sequence[str]], kept: Sequence[Sequence[str]], widths: Sequence[int], room: int
) -> tuple[Sequence[Sequence[str]], list[int]]:
    """Return the kept lines and the widths after the cells that were left out, but fit, are put back.

    Cells that are left out make other columns narrower than expected. The room that this leaves goes to the
    first columns that can take a cell back.
    """
    columns: list[Sequence[str]] = []
    wider = list(widths)
    for number, cells in enumerate(zip(*kept, strict=True)):
        whole = [line[number] for line in lines]
        if number and number < len(wider):
            out = [_unbroken(cell) for cell, left in zip(whole, cells, strict=True) if cell != left]
            most = wider[number] + room - total_width(wider)
            width = wider[number] = max([wider[number], *(word for word in out if word <= most)])
            fitting = [_unbroken(cell) <= width and len(_broken(cell, width)) <= _TALLEST for cell in whole]
            columns.append(
                [cell if fits else left for cell, left, fits in zip(whole, cells, fitting, strict=True)]
            )
        else:
            columns.append(cells)
    return list(zip(*columns, strict=True)), wider


def _cell(cell: str | Sequence[str] | None, comma: str) -> str:
    return plain(cell if isinstance(cell, str) else comma.join(cell or ())) or "-"


def _widths(lines: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the widths of the first columns that fit side by side, at least of the first column."""
    widest, least = _widest(lines), _least(lines)
    while len(least) > 1 and total_width(least) > room:
        least.pop()
    for limit in range(max(widest), -1, -1):
        widths = [max(low, min(width, limit)) for low, width in zip(least, widest, strict=False)]
        if total_width(widths) <= room:
            return widths
    return least


def _widest(lines: Sequence[Sequence[str]]) -> list[int]:
    """Return the widths of columns in which no cell is broken."""
    from rich.cells import cell_len

    return [max(map(cell_len, column)) for column in zip(*lines, strict=True)]


def _least(lines: Sequence[Sequence[str]]) -> list[int]:
    """Return the smallest widths of columns in which no word is broken."""
    words = (max(map(_unbroken, column)) for column in zip(*lines, strict=True))
    return [
        max(min(width, _NARROWEST), longest) for width, longest in zip(_widest(lines), words, strict=True)
    ]


def total_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _side_by_side(parts: Sequence[str], widths: Sequence[int]) -> str:
    from rich.cells import set_cell_size

    return GAP.join(map(set_cell_size, parts, widths)).rstrip()


def _unbroken(text: str) -> int:
    """Return the width of a text's longest word, in cells of the terminal."""
    return max((len(word) for word in _WORD.findall(text) if not _is_wide(word)), default=0)


def _is_wide(word: str) -> bool:
    """Return whether a word has letters of two cells, as in Chinese and Japanese, which have no spaces."""
    from rich.cells import cell_len

    return cell_len(word) > len(word)


def _broken(text: str, room: int, more: int = 0) -> list[str]:
    """Break a text into lines, at its spaces and between wide letters; the first line has `more` cells."""
    from rich.cells import cell_len, chop_cells

    room = max(room, _NARROWEST)
    if cell_len(text) <= room + more:
        return [text]
    lines: list[str] = []
    end = 0
    for found in _WORD.finditer(text):
        gap, word = text[end : found.start()], found[0]
        end = found.end()
        for part in chop_cells(word, room) if _is_wide(word) else [word]:
            longest = room + more if len(lines) == 1 else room
            if lines and cell_len(longer := f"{lines[-1]}{gap}{part}") <= longest:
                lines[-1] = longer
            else:
                lines.append(part)
    return lines


def columns(stream: TextIO) -> int:
    """Return the number of columns of a terminal; COLUMNS overrides it."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except OSError:
        size = _USUAL
    return shutil.get_terminal_size(size).columns or _USUAL.columns  # some terminals report 0


class Progress:
    """Shows on a terminal what a slow command is doing, until the end of its context.

    It shows nothing in the first seconds, and nothing on other outputs.
    """

    _ERASE: Final = "\r\x1b[K"

    def __init__(self) -> None:
        self._silent_until = time.monotonic() + _PROGRESS_AFTER
        self._is_shown = False
        self._done = 0
        self._first: tuple[int, float] | None = None  # the first count and its time, for the rate

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def show(self, text: str) -> None:
        """Replace the shown text."""
        can_erase = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        if can_erase and time.monotonic() >= self._silent_until:
            # A line that the terminal wraps could not be erased.
            _to_standard_error(f"{self._ERASE}{text[: columns(sys.stderr) - 1]}")
            self._is_shown = True
            self._silent_until = time.monotonic() + 0.1

    def count(self, done: int, total: int | None, what: str) -> None:
        """Show how many things are done, how many are done in a second, and how long the rest will take.

        Args:
            done: counts from 0 or 1; a smaller number than before begins another count.
            total: None if it is not known, and then no time is shown either.
            what: follows the numbers, such as `states searched`.
        """
        now = time.monotonic()
        if done < self._done or self._first is None:
            self._first = (done, now)
        self._done = done
        first, begun = self._first
        rate = (done - first) / (now - begun) if now > begun else 0.0
        text = f"{done} {what}" if total is None else f"{_bar(done, total)} {done} of {total} {what}"
        if rate:
            text += f", {rate:.0f} a second" if rate >= 1 else f", {rate * 60:.0f} a minute"
            if total is not None:
                text += f", about {_seconds((total - done) / rate)} left"
        self.show(text)

    def end(self) -> None:
        """Remove the shown text."""
        if self._is_shown:
            _to_standard_error(self._ERASE)
            self._is_shown = False


def _bar(done: int, total: int) -> str:
    filled = done * _BAR // total if total else _BAR
    return f"[{'#' * filled}{'-' * (_BAR - filled)}]"


def _seconds(count: float) -> str:
    return f"{count:.0f} s" if count < _MINUTES_FROM else f"{count / 60:.0f} min"
