"""The errors of the command, each with the line that it prints."""


class CommandError(Exception):
    """The command failed; the message is one line with advice."""


class OutputClosedError(CommandError):
    """The reader of the output has closed it, as `| head -1` does: a command that only reads ends with 0."""


class UsageError(CommandError):
    """The options contradict each other, or break a rule about more than one of them."""


def with_notes(line: str, error: BaseException) -> str:
    """Return a line about an error, followed by the error's notes (`BaseException.add_note`)."""
    return " ".join([line, *getattr(error, "__notes__", [])])
