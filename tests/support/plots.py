"""The plots of the documents, in the colour scheme of the reader: the price by runs, the time of commands."""

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from tests.support import cost_document

_STYLE: Final = """\
  <style>
    svg {
      --page: #ffffff; --text: #1a2123; --faint: #566265;
      --line: #dde3e3; --own: #0a6767; --other: #9aa7a7;
      font: 13px system-ui, sans-serif;
    }
    @media (prefers-color-scheme: dark) {
      svg {
        --page: #14181b; --text: #e4e9ea; --faint: #9fadb1;
        --line: #2f383d; --own: #62cdc4; --other: #74838a;
      }
    }
    text { fill: var(--text) }
    .page { fill: var(--page) }
    .faint { fill: var(--faint) }
    .grid { stroke: var(--line) }
    .curve { fill: none; stroke: var(--own); stroke-width: 2.5 }
    .own { fill: var(--own) }
    .other { fill: var(--other) }
    .end { text-anchor: end }
    .middle { text-anchor: middle }
  </style>"""

_RUNS: Final = (10, 100, 1_000, 10_000, 100_000)
_DOLLARS: Final = (1, 10, 100)


def cost() -> str:
    """Return the plot of `cost.md`: dollars a month by runs a month, both in logarithms."""
    width, height, left, right, top, bottom = 640, 300, 70, 40, 50, 45

    def x(runs: float) -> float:
        return left + (width - left - right) * math.log10(runs / _RUNS[0]) / math.log10(_RUNS[-1] / _RUNS[0])

    def y(dollars: float) -> float:
        share = math.log10(dollars / _DOLLARS[0]) / math.log10(_DOLLARS[-1] / _DOLLARS[0])
        return height - bottom - (height - top - bottom) * share

    steps = [_RUNS[0] * 10 ** (step / 8) for step in range(8 * (len(_RUNS) - 1) + 1)]
    curve = " ".join(f"{x(runs):.1f},{y(cost_document.month(round(runs)).total):.1f}" for runs in steps)
    marks = [(runs, cost_document.month(runs).total) for runs in _RUNS]
    title = "Dollars a month by runs a month; a run is a plan and an apply"
    said = "; ".join(f"{runs:,} runs: ${dollars:.2f}" for runs, dollars in marks)
    parts = [
        *(
            f'<line class="grid" x1="{left}" x2="{width - right}" y1="{y(at):.1f}" y2="{y(at):.1f}"/>'
            for at in _DOLLARS
        ),
        *(_text(left - 10, y(at) + 4, f"${at}", "faint end") for at in _DOLLARS),
        *(_text(x(runs), height - bottom + 24, f"{runs:,}", "faint middle") for runs in _RUNS),
        f'<polyline class="curve" points="{curve}"/>',
        *(f'<circle class="own" cx="{x(runs):.1f}" cy="{y(dollars):.1f}" r="4"/>' for runs, dollars in marks),
        *(
            _text(x(runs) - 6, y(dollars) - 10, f"${dollars:.2f}", "end" if runs > _RUNS[0] else "")
            for runs, dollars in marks
        ),
    ]
    return _svg(width, height, title, said, parts)


def speed(page: str) -> str:
    """Return the plot of `speed.md`: a bar for each cell of the table of delays, with the newer Terraform.

    `page` is the text of the document, from whose table the numbers come.
    """
    (_, table) = page.split("| Sum of these delays |")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]* ms) \| ([^|]* ms) \|$", table.split("\n\n")[0], re.MULTILINE)
    bars = [
        (command, name.replace("`", ""), _last(cells[at]))
        for at, command in enumerate(("plan", "apply"))
        for name, *cells in rows
    ]
    longest = max(milliseconds for *_, milliseconds in bars)
    left, top, step, width = 330, 56, 26, 760
    parts: list[str] = []
    place = top
    for number, (command, name, milliseconds) in enumerate(bars):
        if number % len(rows) == 0:
            place += 8 if number else 0
            parts.append(_text(16, place + 15, command, "strong"))
        length = (width - left - 90) * milliseconds / longest
        kind = "other" if name.startswith("backend") else "own"
        parts += [
            _text(left - 10, place + 15, name, "faint end"),
            f'<rect class="{kind}" x="{left}" y="{place + 2}" width="{length:.1f}" height="18" rx="3"/>',
            _text(left + length + 8, place + 16, f"{milliseconds} ms"),
        ]
        place += step
    title = "Milliseconds of the delays between client, AWS and S3 alone"
    said = "; ".join(f"{command} with {name}: {milliseconds} ms" for command, name, milliseconds in bars)
    return _svg(width, place + 16, title, said, parts)


def _last(cell: str) -> int:
    """Return the number of the newest client of a cell such as `330 / 390 ms`."""
    return int(re.findall(r"\d+", cell)[-1])


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}>{escape(text)}</text>'


def _svg(width: int, height: float, title: str, said: str, parts: Iterable[str]) -> str:
    whole: Sequence[str] = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" role="img"'
        ' aria-labelledby="title said">',
        f'  <title id="title">{escape(title)}</title>',
        f'  <desc id="said">{escape(said)}</desc>',
        _STYLE,
        f'  <rect class="page" width="{width}" height="{height:.0f}"/>',
        f"  {_text(16, 28, title)}",
        *(f"  {part}" for part in parts),
        "</svg>",
    )
    return "\n".join(whole) + "\n"
