"""A picture of what a command prints on a terminal, as SVG in the colour scheme of the reader."""

from html import escape
from typing import Final

from rich.color import ColorType
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

_CELL: Final = 8.43
"""The width of a cell in the monospaced fonts of the picture, at a size of 14 pixels."""
_LINE: Final = 20
_EDGE: Final = 18
_BAR: Final = 34
_NAMES: Final = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
_STYLE: Final = """\
  <style>
    svg {
      --page: #f5f7f7; --bar: #dde3e3; --text: #1a2123; --faint: #566265;
      --red: #a81e1e; --green: #1d6b2f; --yellow: #704700;
      --blue: #1d4f86; --magenta: #7a2d7a; --cyan: #0a6767;
      font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
    }
    @media (prefers-color-scheme: dark) {
      svg {
        --page: #14181b; --bar: #2f383d; --text: #e4e9ea; --faint: #9fadb1;
        --red: #ff9d94; --green: #86d696; --yellow: #f3c878;
        --blue: #a9cbf3; --magenta: #e3a8e3; --cyan: #62cdc4;
      }
    }
    text { fill: var(--text); white-space: pre }
    .page { fill: var(--page) }
    .bar { fill: var(--bar) }
    .title { fill: var(--faint); text-anchor: middle }
    .bold { font-weight: 600 }
    .faint { fill: var(--faint) }
    .red { fill: var(--red) }
    .green { fill: var(--green) }
    .yellow { fill: var(--yellow) }
    .blue { fill: var(--blue) }
    .magenta { fill: var(--magenta) }
    .cyan { fill: var(--cyan) }
  </style>"""


def picture(command: str, printed: str, *, columns: int) -> str:
    """Return the picture of a command and what it printed.

    Args:
        printed: with the escape sequences of colours.
        columns: the width of the terminal.
    """
    lines = [
        Text(f"$ {command}", "bold"),
        *(Text.from_ansi(line) for line in printed.rstrip("\n").split("\n")),
    ]
    width = round(2 * _EDGE + columns * _CELL)
    height = _BAR + 2 * _EDGE + len(lines) * _LINE
    drawn = [
        f'  <text x="{_EDGE}" y="{_BAR + _EDGE + 14 + number * _LINE}">{_spans(line)}</text>'
        for number, line in enumerate(lines)
    ]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            ' aria-labelledby="title">',
            f'  <title id="title">{escape(command)}</title>',
            _STYLE,
            f'  <rect class="page" width="{width}" height="{height}" rx="8"/>',
            f'  <path class="bar" d="M0 {_BAR}V8a8 8 0 0 1 8-8H{width - 8}a8 8 0 0 1 8 8V{_BAR}z"/>',
            f'  <text class="title" x="{width / 2}" y="22">{escape(command)}</text>',
            *drawn,
            "</svg>",
            "",
        )
    )


def _spans(line: Text) -> str:
    return "".join(_span(segment) for segment in line.render(Console()))


def _span(segment: Segment) -> str:
    style = segment.style or Style()
    kinds = [name for name, has in (("bold", style.bold), ("faint", style.dim)) if has]
    if style.color and style.color.type is ColorType.STANDARD and style.color.number is not None:
        kinds.append(_NAMES[style.color.number % 8])
    named = " ".join(filter(None, kinds))
    text = escape(segment.text, quote=False)
    return f'<tspan class="{named}">{text}</tspan>' if named else text
