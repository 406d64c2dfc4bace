"""Lays out a table for a terminal: a row takes one line if its cells fit, even if its columns do not."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from holdfast_cli.terminal.output import (
    GAP,
    LEAST,
    columns,
    cut_cells,
    heading,
    plain,
    total_width,
    wrapped,
)


def flowing(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal in which a row takes one line if its cells fit side by side.

    A cell that is wider than its column moves the next ones to the right. If the row then does not fit, cells
    move to the left. If it does not fit without padding, a last cell of which enough fits is cut, else the
    last cells are below the others. Empty cells at the end of a row are left out.
    """
    from rich.cells import cell_len

    lines = [[*headings], *([plain(cell) or "-" for cell in row] for row in rows)]
    for line in lines[1:]:
        while len(line) > 1 and line[-1] == "-":
            line.pop()
    room = columns(sys.stdout)
    longest_first = max(cell_len(line[0]) for line in lines)
    for line in lines[1:]:
        left = room - longest_first - total_width([0, *map(cell_len, line[1:-1]), 0])
        if len(line) == len(headings) and left >= LEAST:
            line[-1] = cut_cells(line[-1], left)
    widths = [tuple(map(cell_len, line)) for line in lines]
    starts = _starts(widths, room)
    indent = " " * starts[1]
    laid: list[str] = []
    for line, of_cells in zip(lines, widths, strict=True):
        text, end, beside = line[0], of_cells[0], 1
        fits = starts[1] + total_width(of_cells[1:]) <= room
        for number, start in enumerate(starts[1 : len(line)], 1):
            latest = room - total_width(of_cells[number:]) if fits else start
            place = max(end + len(GAP), min(start, latest))
            if place + of_cells[number] > room:
                break
            text += " " * (place - end) + line[number]
            end, beside = place + of_cells[number], number + 1
        below = [cell for cell in line[beside:] if cell != "-"]
        if below and len(indent) + cell_len(together := GAP.join(below)) <= room:
            below = [together]
        laid += [
            text if laid else heading(text),
            *(wrapped(cell, head=indent) for cell in below),
        ]
    return "\n".join(laid)


def _starts(lines: Sequence[tuple[int, ...]], room: int) -> list[int]:
    """Return where the columns of `flowing` start, from the widths of all cells; the first are the headings.

    The first two columns are in line in all rows. Each other column starts where most rows let it: where
    their cells can start, or to the right of a row's last cell.
    """
    headings, *_ = lines
    starts = [0, max(line[0] for line in lines) + len(GAP)]
    counted = Counter(lines)
    earliest = dict.fromkeys(counted, starts[1])
    for number in range(2, len(headings)):
        places = {
            line: range(place + line[number - 1] + len(GAP), room - total_width(line[number:]) + 1)
            for line, place in earliest.items()
            if len(line) >= number
        }
        start = _where_most_are(places, counted, places[headings])
        starts.append(start)
        earliest = {line: max(of.start, min(start, of.stop - 1)) for line, of in places.items()}
    return starts


def _where_most_are(
    places: Mapping[tuple[int, ...], range], counted: Mapping[tuple[int, ...], int], possible: range
) -> int:
    """Return the first of the possible places that is one of most rows; `counted` has how many each are."""

    def rows(start: int) -> int:
        return sum(counted[line] for line, of_row in places.items() if start in of_row)

    found = {each.start for each in places.values() if each and each.start in possible}
    return max(sorted(found) or [possible.start], key=rows)
