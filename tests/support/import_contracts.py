"""The lists of modules in the import contracts of pyproject.toml, and the handlers that these leave out.

The import linter sees only the packages that pyproject.toml names.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
CODE: Final = ROOT / "functions"
HANDLERS: Final = sorted(path.parent.name for path in CODE.glob("*/handler.py"))
LINTER: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]


def _lists() -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each list of the linter's configuration with its place; the layers of a contract are one list."""
    yield "root_packages", frozenset(LINTER["root_packages"])
    contracts: list[dict[str, Any]] = LINTER["contracts"]
    for contract in contracts:
        if "containers" in contract:
            continue  # its layers are modules within one package
        for key, value in contract.items():
            if isinstance(value, list):
                yield f"{contract['id']}.{key}", frozenset(re.findall(r"[\w.]+", " ".join(value)))


LISTS_WITH_HANDLERS: Final = {
    place: modules for place, modules in _lists() if not modules.isdisjoint(HANDLERS)
}


def left_out(folder: str) -> list[str]:
    """Return the lists of handlers that lack a folder of functions/."""
    return [place for place, modules in LISTS_WITH_HANDLERS.items() if folder not in modules]
