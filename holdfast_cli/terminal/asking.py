"""Asks the user to confirm a change."""

import sys
from typing import TextIO

from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal import output

_NOTHING = "Nothing was changed."


def for_word(question: str, word: str, instead: str = "--yes says that it is meant") -> None:
    """Ask the user to type a word to confirm.

    `question` says in sentences what will happen, and `instead` how to confirm it without a terminal. After
    Ctrl-C a note says that nothing was changed.
    """
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
        raise UsageError(f"{question} Without a terminal to ask on, {instead}. {_NOTHING}")
    output.tell(f"{question} Type '{word}' to go on.")
    try:
        print("> ", end="", file=sys.stderr, flush=True)
        typed = sys.stdin.readline().strip()
    except KeyboardInterrupt as interrupt:
        output.tell("")  # ends the line of the question
        interrupt.add_note(_NOTHING)
        raise
    except (OSError, ValueError) as error:
        raise CommandError(f"The answer cannot be read. {_NOTHING}") from error
    if typed != word:
        raise CommandError(f"That is not '{word}'. {_NOTHING}")


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
