"""Folders of functions, their declarations and the import contracts belong together: none escapes.

The import linter sees only the packages that pyproject.toml names.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from infra.functions import FUNCTIONS

ROOT: Final = Path(__file__).parents[2]
CODE: Final = ROOT / "functions"
HANDLERS: Final = sorted(path.parent.name for path in CODE.glob("*/handler.py"))
LINTER: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
ABOUT_HANDLERS: Final = frozenset(
    {"functions", "handlers", "deployed", "s3-alone", "command-alone", "infra", "local-aws"}
)
"""The contracts without which a handler may import what it likes, or be imported."""


def lists_of_modules() -> Iterator[tuple[str, frozenset[str]]]:
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
    place: modules for place, modules in lists_of_modules() if not modules.isdisjoint(HANDLERS)
}


@pytest.mark.parametrize("folder", HANDLERS)
def test_a_folder_with_a_handler_is_declared_and_in_every_contract(folder: str) -> None:
    assert folder in {spec.folder for spec in FUNCTIONS}, f"infra/functions.py does not declare {folder}"

    missing = [place for place, modules in LISTS_WITH_HANDLERS.items() if folder not in modules]
    assert missing == [], f"pyproject.toml leaves {folder} out of these lists of tool.importlinter"


def test_every_declared_function_has_a_folder_and_a_name_of_its_own() -> None:
    assert sorted(spec.folder for spec in FUNCTIONS) == HANDLERS
    assert len({spec.name for spec in FUNCTIONS}) == len(FUNCTIONS)


def test_no_contract_about_handlers_is_gone() -> None:
    assert {place.partition(".")[0] for place in LISTS_WITH_HANDLERS} >= {"root_packages", *ABOUT_HANDLERS}


def test_the_linter_knows_every_package_of_the_product() -> None:
    code = {path.parent.name for folder in (ROOT, CODE) for path in folder.glob("*/__init__.py")}

    # Nothing that is deployed or installed imports these; the contracts forbid it by name.
    assert set(LINTER["root_packages"]) == code - {"benchmarks", "publish", "tests"}
