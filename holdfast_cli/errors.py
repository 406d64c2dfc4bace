"""The ways in which a command fails, and what its line holds."""


class CommandError(Exception):
    """A command that could not do what it was asked; the message is one line that says what to do."""


class UsageError(CommandError):
    """Options that do not fit each other, or break a rule that takes more than one of them to see."""


def with_notes(line: str, error: BaseException) -> str:
    """A line about an error, and whatever was noted on the error on its way."""
    return " ".join([line, *getattr(error, "__notes__", [])])
