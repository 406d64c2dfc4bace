"""The port that a server had last, kept in a file, so that its address stays the same."""

from contextlib import suppress
from pathlib import Path

from local_aws.private_file import write_private


def read_port(file: Path) -> int | None:
    """The port that was used last, or None."""
    with suppress(FileNotFoundError, ValueError):
        return int(file.read_text())
    return None


def write_port(file: Path, port: int) -> None:
    """Use this port again next time."""
    write_private(file, f"{port}\n")
