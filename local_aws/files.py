"""Files that only their owner may read, and a digest of files."""

import hashlib
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def create_private(path: Path) -> BinaryIO:
    """Create a file with mode 0600 in the place of an old one, and open it for writing."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file with mode 0600, atomically: a reader gets the old content or the new one."""
    new = path.with_name(f"{path.name}.new")
    with create_private(new) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    new.replace(path)


def read_port(path: Path) -> int | None:
    """Return the port that a server used last, so that it can have the same address; None if not stored."""
    with suppress(FileNotFoundError, ValueError):
        return int(path.read_text())
    return None


def write_port(path: Path, port: int) -> None:
    write_private(path, f"{port}\n")


def tail(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with everything in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def digest(paths: Iterable[Path], *more: str) -> str:
    """Return a digest of files, of all files in folders, and of other values."""
    inputs = hashlib.sha256()
    for top in paths:
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.is_file() and "__pycache__" not in file.parts:
                inputs.update(f"{file.relative_to(top.parent)}\0".encode())
                inputs.update(hashlib.sha256(file.read_bytes()).digest())
    inputs.update("\0".join(more).encode())
    return inputs.hexdigest()
