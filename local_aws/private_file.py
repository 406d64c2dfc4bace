"""Files that only their owner may read."""

import os
from pathlib import Path


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file with mode 0600; whoever reads it meets the old content or the new, whole."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    new.replace(path)
