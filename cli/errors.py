"""The one way in which a command fails."""


class CommandError(Exception):
    """A command that could not do what it was asked; the message is one line that says what to do."""
