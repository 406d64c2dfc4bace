"""What ends a command of the local AWS without success."""


class LocalAwsError(Exception):
    """Something could not be done; the message says what happened and what to do, for people."""
