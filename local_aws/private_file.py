"""Files that only their owner may read."""

import os
from contextlib import suppress
from pathlib import Path


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file with mode 0600, atomically: a reader gets the old content or the new one."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    new.replace(path)


def read_port(path: Path) -> int | None:
    """Return the port that a server used last, so that it can have the same address; None if not stored."""
    with suppress(FileNotFoundError, ValueError):
        return int(path.read_text())
    return None


def write_port(path: Path, port: int) -> None:
    write_private(path, f"{port}\n")
