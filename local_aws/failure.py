"""The error that ends a command of the local AWS."""


class LocalAwsError(Exception):
    """A command failed; the message says what happened and what to do, for people."""
