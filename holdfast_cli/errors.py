"""Errors of the command, and the line that each prints."""


class CommandError(Exception):
    """The command failed; the message is one line that says what to do."""


class OutputClosedError(CommandError):
    """Nobody reads the output any more, as after `| head -1`: a command that only reads ends with 0."""


class UsageError(CommandError):
    """The options contradict each other, or break a rule about more than one of them."""


def with_notes(line: str, error: BaseException) -> str:
    """Return a line about an error, followed by the notes that were added to the error."""
    return " ".join([line, *getattr(error, "__notes__", [])])
