"""Lays out the help of a command for the width of the terminal."""

import argparse
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

_PART = re.compile(r"""(?:--?[\w-]+ (?!-))?(?:[^\s'"]+|'[^']*'|"[^"]*")+""")
"""A word of a shell's line, which may have spaces within quotes, or an option with its value."""
_QUOTED = re.compile("`[^`]*`")
_KEPT_SPACE = "\u00a0"
_CONTINUED = re.compile(r"\\\n +")
_ENTRY = re.compile(r" +\S.*? {2,}(?=\S)")
"""The beginning of an entry of a list: a word, and spaces before what it means."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs and lists, and breaks the lines of examples so that they can still be pasted."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Lay out a description or the examples; argparse calls this."""
        lines: list[str] = []
        paragraph: list[str] = []
        for line in [*_CONTINUED.sub("", text).splitlines(), ""]:
            if line and not line.startswith(" "):
                paragraph.append(line)
                continue
            lines += _wrapped(" ".join(paragraph), width)
            paragraph = []
            if len(line) <= width:
                lines.append(line)
            elif entry := _ENTRY.match(line):
                lines += _wrapped(line, width, " " * entry.end())
            elif line.startswith("  holdfast "):
                lines += _broken(line, width)
            else:
                lines.append(line)
        return "\n".join(indent + line for line in lines).rstrip()

    def _format_usage(self, *arguments: Any) -> str:
        """Lay out the usage, and break alternatives that argparse keeps on one line."""
        usage = super()._format_usage(*arguments)
        return "\n".join(part for line in usage.split("\n") for part in _alternatives(line, self._width))


def _wrapped(text: str, width: int, hanging: str = "") -> list[str]:
    """Wrap a text, but not within backquotes, so that a command can be copied."""
    whole = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", _KEPT_SPACE), text)
    lines = textwrap.wrap(
        whole, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(_KEPT_SPACE, " ") for line in lines]


def _broken(line: str, width: int) -> Iterator[str]:
    """Break the line of an example with backslashes."""
    indent = line[: len(line) - len(line.lstrip())]
    shown = indent
    for part in _PART.findall(line):
        if shown.strip() and len(shown) + len(part) + len(" \\") > width:
            yield f"{shown}\\"
            shown = f"{indent}    "
        shown += f"{part} "
    yield shown.rstrip()


def _alternatives(line: str, width: int) -> Iterable[str]:
    """Break a line of the usage before its last alternatives, if it is too wide."""
    while len(line) > width and " | " in line[:width]:
        at = line.rindex(" | ", 0, width)
        indent = len(line) - len(line.lstrip()) + 1
        yield line[:at]
        line = " " * indent + line[at + 1 :]
    yield line
