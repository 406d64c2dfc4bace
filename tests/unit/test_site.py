"""The site of the documents: complete, strict about links, and not dependent on any other host."""

import json
import re
from pathlib import Path

import pytest

from publish import site
from tests.support.pages import DOCS, ROOT


def test_the_index_has_every_document_once() -> None:
    listed = re.findall(r"\]\(([a-z][^)]*\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8"))

    pages = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.name != "index.md"]
    assert sorted(listed) == sorted(pages)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site.build(ROOT, tmp_path_factory.mktemp("site"))


def test_the_site_has_every_document_and_its_search(built: Path) -> None:
    pages = {page.relative_to(ROOT).with_suffix(".html") for page in site.pages(ROOT)} - {Path("README.html")}
    assert {path for path in pages if not (built / path).is_file()} == set()
    assert (built / "index.html").is_file()
    assert "If-Match" in (built / "search.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        *("backup", "SSO", "lost lock", "pull request", "roll back", "undo", "price", "force-unlock"),
        *("several regions", "Terraform Enterprise", "DynamoDB", "OpenTofu", "go back", "delete a state"),
    ],
)
def test_the_search_finds_the_words_of_users_in_the_heading_of_an_answer(built: Path, words: str) -> None:
    """The search ranks a heading above text."""
    items = json.loads((built / "search.json").read_text(encoding="utf-8"))["items"]
    answers = [
        item["location"]
        for item in items
        if words.lower() in item["title"].lower() and "questions.html" in item["location"]
    ]

    assert len(answers) == 1


@pytest.mark.parametrize("link", ["absent.md", "#absent"])
def test_a_link_that_leads_nowhere_ends_the_build_with_its_place(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(f"# A\n\n[b]({link})\n")
    (tmp_path / "docs" / "index.md").write_text("# B\n")

    with pytest.raises(site.SiteError, match=r"README\.md:3:"):
        site.build(tmp_path, tmp_path / "built")


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://example.com/a.js">',
        '<link href="//example.com/a.css" rel="stylesheet">',
        '<img alt="" src="http://example.com/a.png">',
        '<source media="(prefers-color-scheme: dark)" srcset="https://example.com/a.png">',
    ],
)
def test_a_page_that_fetches_from_another_host_is_named(tmp_path: Path, tag: str) -> None:
    (tmp_path / "a.html").write_text(f'<link rel="canonical" href="https://example.com/">{tag}')

    assert list(site.fetched(tmp_path)) == [f"a.html: {tag}"]


@pytest.mark.parametrize(
    "link", ["absent.html", "../a.html", "b/../../a.html#part", "docs/", "/absent.html", "b%20c.html"]
)
def test_a_link_of_a_built_page_to_a_file_that_is_not_there_is_named(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    there = [
        "a.html",
        "/a.html#part",
        "#part",
        "docs/../a.html",
        "https://example.com/",
        "mailto:a@b.example",
    ]
    (tmp_path / "a.html").write_text("".join(f'<a class="b" href="{each}">' for each in [*there, link]))

    assert list(site.dead(tmp_path)) == [f"a.html: {link}"]


@pytest.mark.parametrize("tag", ['<img alt="" src="{}">', '<source media="print" srcset="{}">'])
def test_a_picture_that_is_not_there_is_named(tmp_path: Path, tag: str) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "a.html").write_text(tag.format("a.png") + tag.format("absent.png"))

    assert list(site.dead(tmp_path)) == ["a.html: absent.png"]
