"""The errors of the command, each with the line that it prints."""


class CommandError(Exception):
    """The command failed; the message is one line with advice."""

    exit_code = 1


class OutputClosedError(CommandError):
    """The reader closed the output, as `| head -1` does. A command that only reads then exits with code 0."""


class UnavailableError(CommandError):
    """A server did not respond, or had a transient error, after retries; a later attempt may succeed."""


class UsageError(CommandError):
    """The options contradict each other, break a rule about several options, or lack a setting."""

    exit_code = 2


class NotSetUpError(UsageError):
    """Nothing is set up yet; `steps` are lines that say what to type, in order.

    `local` is what to type instead on a machine with the local AWS.
    """

    def __init__(self, line: str, local: str) -> None:
        super().__init__(line)
        self.steps = (
            "1. holdfast configure          asks for the address that `cdk deploy` prints",
            '2. eval "$(holdfast login)"    signs you in with AWS credentials',
            "3. holdfast doctor             checks the stack, the API and the bucket",
            f"or, on this machine after `make up`:  {local}",
        )


class NotStartedError(CommandError):
    """A program could not be started; the exit code is that of a shell."""

    exit_code = 126


class NoProgramError(NotStartedError):
    """The program does not exist."""

    exit_code = 127


def with_notes(line: str, error: BaseException) -> str:
    """Return a line about an error, followed by the error's notes (`BaseException.add_note`)."""
    return " ".join([line, *getattr(error, "__notes__", [])])
