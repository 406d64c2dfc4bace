"""The error of the local AWS."""


class LocalAwsError(Exception):
    """A command failed; the message says to people what happened and what to do."""
