"""`status.md` says what was tried on AWS. Other pages link to it: a second place would become false."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests import prose
from tests.support.pages import DOCS, ROOT, page, text

SAYING: Final = frozenset({"README.md", "status.md"})
"""The pages that may say where Holdfast was tried."""
OTHERS: Final = sorted(path for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")) if path.name not in SAYING)
LOCAL: Final = re.compile(r"\b[Ll]ocal AWS(?:es)?\b|\bAWS emulator\b|\bemulator of AWS\b")
"""Words that name AWS and mean the emulator."""
PLACE: Final = re.compile(
    r"\b(?:on|against|in|by) (?:an? |the |real )*AWS\b"
    r"|\b(?:AWS|CloudWatch|CloudTrail|Lambda) (?:has|have) (?:not|never)\b"
)
TRIED: Final = re.compile(
    r"\b(?:un)?(?:tried|tested|proved|proven|verified)\b|\b(?:measured|ran|yet)\b"
    r"|\b(?:has|have|was|were|been|not|never) run\b",
    re.IGNORECASE,
)


def claims(document: str) -> Iterator[str]:
    """Yield the sentences of a document that say what was tried on AWS, or what was not."""
    for part in prose.of_document(document):
        for sentence in re.split(r"(?<=[.!?:;]) ", part.words):
            without = LOCAL.sub("it", sentence)
            if PLACE.search(without) and TRIED.search(without):
                yield sentence


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_no_other_page_says_what_was_tried_on_aws(path: Path) -> None:
    assert list(claims(text(path))) == []


@pytest.mark.parametrize("name", sorted(SAYING))
def test_the_pages_that_may_say_it_do(name: str) -> None:
    assert list(claims(text(page(name)))) != []


@pytest.mark.parametrize(
    "claim",
    [
        "Nobody has tried this on AWS yet.",
        "The stacks have run on [a local AWS](try.md), an emulator, and not on AWS yet.",
        "keep their IDs (not tried on AWS):",
        "No client has run against AWS yet.",
        "Nothing was measured on AWS.",
        "| a cell | untested on AWS |",
        "CloudWatch has not run these queries yet.",
        "It is proven by a month on a real AWS account.",
    ],
)
def test_a_claim_is_noticed(claim: str) -> None:
    head = "| a | b |\n| --- | --- |\n" if claim.startswith("|") else ""

    assert len(list(claims(head + claim + "\n"))) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "A test takes the steps on the local AWS, and none was run twice.",
        "On AWS, API Gateway and Lambda take time instead.",
        "[Status](../understand/status.md) says what was tried where.",
        "`no signature that AWS verified`",
    ],
)
def test_what_is_no_claim_is_not(sentence: str) -> None:
    assert list(claims(sentence)) == []


def rows() -> list[list[str]]:
    """Return the cells of each row of the table of claims."""
    _, _, table = text(page("status.md")).partition("| Claim | On the emulator |")
    return [
        re.split(r" *\| *", line.removeprefix("| ").removesuffix(" |"))
        for line in table.partition("\n\n")[0].splitlines()[2:]
    ]


def test_every_row_of_the_status_names_what_proves_it() -> None:
    """That a named test exists is what test_documents.py checks."""
    without = [
        claim
        for claim, *proofs, _ in rows()
        if not re.search(r"`(?:tests/[\w/]+\.py|test_\w+|make \w+)`", " ".join(proofs))
    ]

    assert len(rows()) > 20
    assert without == []


def test_every_row_of_the_status_has_four_cells() -> None:
    assert [row for row in rows() if len(row) != 4] == []
