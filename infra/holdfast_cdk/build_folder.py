"""Fills folders of the build folder, each once, while other builds may run."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def built(final: Path, fill: Callable[[Path], None]) -> Path:
    """Return the folder `final`. If it is absent, `fill` fills a new folder, which is then renamed to it."""
    if final.is_dir():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"unfinished-{final.name}-", dir=final.parent))
    try:
        fill(unfinished)
        unfinished.chmod(0o755)
        try:
            unfinished.rename(final)
        except OSError:
            if not final.is_dir():
                raise
            # Another build was faster and made the same folder.
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return final
