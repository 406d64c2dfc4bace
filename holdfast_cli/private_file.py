"""Writes files that only their owner may read. After an error each file is as it was before."""

import os
from pathlib import Path


def create(file: Path, content: bytes) -> None:
    """Create a file with mode 0600; FileExistsError if there is one."""
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(number, "wb") as stream:  # noqa: PTH123 it is open already
            stream.write(content)
            stream.flush()
            os.fsync(number)
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def replace(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file atomically: a reader gets the old content or the new one. Its folder must exist."""
    new = file.with_name(f".{file.name}-{os.urandom(8).hex()}")
    create(new, content)
    try:
        new.chmod(mode)
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
