"""The documents, each by its name: names are unique, so that a page can move to another folder."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"


def page(name: str) -> Path:
    """Return the path of a page of `docs/`, or of `README.md` and others beside it."""
    [path] = [ROOT / name] if (ROOT / name).is_file() else DOCS.rglob(name)
    return path


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
