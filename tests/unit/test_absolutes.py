"""A sentence that says `no`, `every` or `only` without an exception names the test that shows it.

A comment behind such a word names a test function, as in `no<!-- test_a_stack_has_no_server -->`. A
sentence that no test shows is written without the word. What a linked page of others says is left out: the
page is its source.
"""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.pages import ROOT, page, text
from tests.unit.test_documents import BY_HAND

PAGES: Final = ("comparison.md", "README.md")
"""The pages by which people decide whether to use Holdfast."""
ABSOLUTE: Final = re.compile(
    r"\b(?:no|none|never|every|only|all|always)\b(?!<!-- test_\w+ -->)", re.IGNORECASE
)
MARK: Final = re.compile(r"<!-- (test_\w+) -->")
NOT_SAID: Final = re.compile(
    r"^```.*?^```|<!-- (?!test_).*?-->|`[^`]+`|\[[^]]*\]\(https://[^)]*\)|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)
"""Code, targets of links, and the texts of links to pages of others."""


def unmarked(document: str) -> Iterator[str]:
    """Yield each line that has an absolute word without a mark."""
    said = NOT_SAID.sub(lambda found: "\n" * found.group().count("\n"), document)
    for number, (line, read) in enumerate(
        zip(document.splitlines(), said.splitlines(), strict=True), start=1
    ):
        if words := ABSOLUTE.findall(read):
            yield f"{number}: {', '.join(words)}: {line}"


@pytest.mark.parametrize("name", PAGES)
def test_every_absolute_word_has_a_mark_with_its_test(name: str) -> None:
    assert list(unmarked(text(page(name)))) == []


def test_every_mark_names_a_test() -> None:
    files = "\n".join(text(path) for path in (ROOT / "tests").rglob("test_*.py"))
    named = {name: path for path in BY_HAND for name in MARK.findall(text(path))}

    assert named
    assert named.keys() - set(re.findall(r"^def (test_\w+)\(", files, re.MULTILINE)) == set()


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ("It needs no server.", ["1: no: It needs no server."]),
        ("It needs no<!-- test_x --> server.", []),
        ("It needs no<!-- max_state_mb --> server.", ["1: no: It needs no<!-- max_state_mb --> server."]),
        (
            "| Runs | none | [none](https://example.com) |",
            ["1: none: | Runs | none | [none](https://example.com) |"],
        ),
        ("[All pages](docs/index.md)", ["1: All: [All pages](docs/index.md)"]),
        ("```\nnever\n```\nand `--all`: knowing nonetheless", []),
        ("```\nnever\n```\nAlways.", ["4: Always: Always."]),
    ],
)
def test_a_word_without_a_mark_is_found(document: str, found: list[str]) -> None:
    assert list(unmarked(document)) == found
