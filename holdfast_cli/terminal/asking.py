"""Asks the user to confirm a change."""

import sys

from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal import output

NOTHING = "Nothing was changed."


def for_word(question: str, word: str, instead: str = "confirm with --yes") -> None:
    """Ask the user to type a word to confirm.

    `question` says in sentences what will happen, and `instead` how to confirm it without a terminal. After
    Ctrl-C a note says that nothing was changed.
    """
    if not is_possible():
        raise UsageError(
            f"{question} The command can ask for confirmation only on a terminal. Instead, {instead}. "
            f"{NOTHING}"
        )
    output.tell(f"{question} Type '{word}' to go on.")
    try:
        typed = line("> ").strip()
    except (OSError, ValueError) as error:
        raise CommandError(f"The answer cannot be read. {NOTHING}") from error
    if typed != word:
        raise CommandError(f"The answer is not '{word}'. {NOTHING}")


def is_possible() -> bool:
    """Return whether questions are shown on a terminal, and answers are typed on one."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def line(prompt: str) -> str:
    """Show a prompt, and return the line that the user types; empty at the end of the input.

    After Ctrl-C a note says that nothing was changed.
    """
    try:
        print(prompt, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline()
    except KeyboardInterrupt as interrupt:
        output.tell("")  # ends the line of the question
        interrupt.add_note(NOTHING)
        raise
