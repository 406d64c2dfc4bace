"""The examples in docstrings are true."""

import doctest
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = {
    "functions": ROOT / "functions",
    "infra": ROOT / "infra",
    **dict.fromkeys(("holdfast_cli", "local_aws", "benchmarks", "publish"), ROOT),
}
"""The folders of the code, and the folder on the path from which each is imported."""


def modules() -> list[str]:
    """Return the names of all modules that have an example."""
    return sorted(
        ".".join(path.relative_to(importable).with_suffix("").parts)
        for folder, importable in SOURCES.items()
        for path in (ROOT / folder).rglob("*.py")
        if ">>> " in path.read_text(encoding="utf-8")
    )


@pytest.mark.parametrize("module", modules())
def test_the_examples_of_a_module_are_true(module: str) -> None:
    failed, tried = doctest.testmod(import_module(module))

    assert tried > 0
    assert failed == 0, "the output above has the examples"


def test_modules_of_the_library_and_of_the_command_have_examples() -> None:
    packages = {module.partition(".")[0] for module in modules()}

    assert {"holdfast", "holdfast_cli"} <= packages
