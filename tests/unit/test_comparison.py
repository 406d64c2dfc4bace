"""The comparison: tests that exist show our column, the others name sources, the README quotes its rows."""

import ast
import re
from pathlib import Path
from typing import Final

from tests.support.pages import page

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = page("comparison.md").read_text(encoding="utf-8")
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
PRODUCTS: Final = ("Holdfast", '`backend "s3"`', "GitLab", "HCP Terraform")
HEAD: Final = f"| | {' | '.join(PRODUCTS)} |\n"


def rows(document: str) -> list[list[str]]:
    """Return the cells of every row of the comparison's table."""
    [_, table] = document.split(HEAD)
    lines = table.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


ROWS: Final = rows(PAGE)


def sections() -> dict[str, dict[str, str]]:
    """Return what each section says of each product, without line breaks."""
    return {
        text.partition("\n")[0]: {
            product: " ".join(words.split())
            for product, words in re.findall(
                r"^- \*\*(.+?)\*\*(.+?)(?=\n- |\n\n|\Z)", text, re.MULTILINE | re.DOTALL
            )
        }
        for text in PAGE.split("\n## ")[1:]
    }


def named_tests(text: str) -> set[tuple[str, str]]:
    """Return file and function of every test that a text names."""
    named = re.findall(r"`(tests/[\w/]+\.py)`: ((?:`test_\w+`(?:, )?)+)", text)
    return {(path, name) for path, names in named for name in re.findall(r"`(\w+)`", names)}


def functions(path: str) -> set[tuple[str, str]]:
    """Return a file and each function at its top."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {(path, node.name) for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_has_a_section_with_tests_of_ours_and_sources_of_the_others() -> None:
    said = {row: by_product for row, by_product in sections().items() if by_product}

    assert list(said) == [name for name, *_ in ROWS]
    for row, by_product in said.items():
        assert tuple(by_product) == PRODUCTS, row
        ours, *others = by_product.values()
        assert named_tests(ours), row
        assert [words for words in others if "](https://" not in words] == []


def test_every_test_that_the_page_names_exists() -> None:
    named = named_tests(" ".join(PAGE.split()))

    assert {name for _, name in named} == set(re.findall(r"`(test_\w+)`", PAGE))
    assert named <= {found for path in {path for path, _ in named} for found in functions(path)}


def test_every_cell_says_something() -> None:
    assert all(len(cells) == 1 + len(PRODUCTS) and all(cells) for cells in ROWS)


def test_the_readme_quotes_rows_of_the_page() -> None:
    quoted = rows(README)

    assert quoted
    assert [cells for cells in quoted if cells not in ROWS] == []
