"""Folders of functions, their declarations and the import contracts belong together: none escapes."""

from typing import Final

import pytest

from holdfast_cdk.functions import FUNCTIONS
from tests.support.import_contracts import CODE, HANDLERS, LINTER, LISTS_WITH_HANDLERS, ROOT, left_out

ABOUT_HANDLERS: Final = frozenset(
    {"functions", "handlers", "deployed", "s3-alone", "command-alone", "infra", "local-aws"}
)
"""The contracts without which a handler may import what it likes, or be imported."""


@pytest.mark.parametrize("folder", HANDLERS)
def test_a_folder_with_a_handler_is_declared_and_in_every_contract(folder: str) -> None:
    assert folder in {spec.folder for spec in FUNCTIONS}, (
        f"infra/holdfast_cdk/functions.py does not declare {folder}"
    )
    assert left_out(folder) == [], f"pyproject.toml leaves {folder} out of these lists of tool.importlinter"


def test_every_declared_function_has_a_folder_and_a_name_of_its_own() -> None:
    assert sorted(spec.folder for spec in FUNCTIONS) == HANDLERS
    assert len({spec.name for spec in FUNCTIONS}) == len(FUNCTIONS)


def test_no_contract_about_handlers_is_gone() -> None:
    assert {place.partition(".")[0] for place in LISTS_WITH_HANDLERS} >= {"root_packages", *ABOUT_HANDLERS}


def test_the_linter_knows_every_package_of_the_product() -> None:
    code = {
        path.parent.name for folder in (ROOT, CODE, ROOT / "infra") for path in folder.glob("*/__init__.py")
    }

    # Nothing that is deployed or installed imports these; the contracts forbid it by name.
    assert set(LINTER["root_packages"]) == code - {"benchmarks", "publish", "tests"}
