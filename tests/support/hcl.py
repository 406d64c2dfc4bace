"""The HCL of the documents, and what `holdfast backend-config` prints."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from holdfast_cli.commands.table import parser
from tests.support import forked_command
from tests.support.pages import ROOT
from tests.support.waiting import HANGS

PAGES: Final = sorted(path for pages in (ROOT.glob, (ROOT / "docs").rglob) for path in pages("*.md"))
FENCED: Final = re.compile(r"^( *)```(.*)\n((?:.*\n)*?)\1```$", re.MULTILINE)
BEGINNING: Final = re.compile(
    r"(?<![\w.])(?:terraform|backend|cloud|workspaces|remote_state|resource|data|output|variable|provider|module"
    r"|removed|import|moved|encryption|locals|host|credentials|credentials_helper)"
    r'(?:\s+"[^"\s]*")*\s*\{'
)
"""The beginning of a block of HCL in any text."""

Piece = tuple[str, str]
"""The place of a piece, and its text."""


def fenced(page: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line number, language and text of the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in FENCED.finditer(text):
        indent = re.compile(f"^{found[1]}", re.MULTILINE)
        yield text.count("\n", 0, found.start()) + 1, found[2].strip(), indent.sub("", found[3])


def pieces(where: str, text: str) -> Iterator[Piece]:
    """Yield every block of HCL in a text."""
    end = 0
    for found in BEGINNING.finditer(text):
        if found.start() < end:
            continue
        depth = 0
        for mark in re.finditer(r'"(?:[^"\\\n]|\\.)*"|[{}]', text[found.start() :]):
            depth += {"{": 1, "}": -1}.get(mark[0], 0)
            if mark[0] == "}" and depth == 0:
                end = found.start() + mark.end()
                yield f"{where}:{text.count(chr(10), 0, found.start()) + 1}", text[found.start() : end]
                break


def without_comments(text: str) -> str:
    return re.sub(r"^\s*#.*\n?", "", text, flags=re.MULTILINE)


def uncommented(text: str) -> str:
    """Return a text as after a user copied a block out of a comment: without the signs."""
    return re.sub("^# ?", "", text, flags=re.MULTILINE)


def forms() -> list[list[str]]:
    """Return the options of every form of `holdfast backend-config`."""
    commands = parser()
    commands.load()
    command = commands.commands()["backend-config"]
    command.load()
    flags = [[action.option_strings[0]] for action in command._actions if action.const is True]  # noqa: SLF001
    assert ["--tfbackend"] in flags
    return [[], *flags, ["--cloud", "--tags", "a,b"]]


def printed(state: str, address: str, form: Sequence[str]) -> Piece:
    """Return a command, and what it prints for a state."""
    arguments = ["backend-config", state, "--address", address, *form]
    done = forked_command.run(arguments, {"HOME": "/nonexistent", "PATH": ""}, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return " ".join(arguments), done.stdout
