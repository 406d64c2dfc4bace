"""The site of the documents: complete, strict about links, and not dependent on any other host."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from holdfast import __version__
from publish import site
from publish.api_reference import VERBS, api_reference
from tests.support import errors_document
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


def test_the_search_finds_the_code_of_an_error_on_the_page_of_codes(built: Path) -> None:
    items = json.loads((built / "search.json").read_text(encoding="utf-8"))["items"]
    found = "".join(item["text"] for item in items if "error-codes.html" in item["location"])

    assert {code for _, code, _ in errors_document.codes() if code not in found} == set()


def html(built: Path) -> list[Path]:
    """Return the pages, without the one for an absent page."""
    return [page for page in built.rglob("*.html") if page.name != "404.html"]


def test_the_head_of_each_page_has_the_version_and_a_link_to_the_repository(built: Path) -> None:
    number, _, is_unreleased = __version__.partition(".dev")
    version = f"Version {number}, unreleased" if is_unreleased else f"Version {number}"

    for page in html(built):
        head = page.read_text(encoding="utf-8").partition("<header")[2].partition("</header>")[0]
        assert f">{version}<" in head
        assert '<a href="https://github.com/OWNER/holdfast">' in head


def test_the_link_to_the_repository_does_not_make_a_browser_ask_github(built: Path) -> None:
    """A script of the theme sends requests for what this attribute marks."""
    for page in html(built):
        assert 'data-md-component="source"' not in page.read_text(encoding="utf-8")


def test_each_page_has_the_style_of_its_own(built: Path) -> None:
    for page in html(built):
        [link] = re.findall(
            r'<link rel="stylesheet" href="([^"]*site\.css)">', page.read_text(encoding="utf-8")
        )
        assert (page.parent / link).is_file()
    assert not re.search(r"url\(|@import", site.STYLE.read_text(encoding="utf-8"))


def test_the_first_page_is_titled_once(built: Path) -> None:
    titles = {
        page: re.findall("<title>(.*)</title>", page.read_text(encoding="utf-8")) for page in html(built)
    }

    assert titles.pop(built / "index.html") == ["Holdfast"]
    assert all(re.fullmatch("(?!Holdfast -).+ - Holdfast", title) for [title] in titles.values())


def test_the_page_for_an_absent_page_needs_no_other_file(built: Path) -> None:
    absent = (built / "404.html").read_text(encoding="utf-8")

    assert "Page not found" in absent
    assert not re.search(r"\b(?:href|src)=", absent)


def test_the_navigation_has_the_titles_of_the_index(built: Path) -> None:
    navigation = (built / "index.html").read_text(encoding="utf-8")
    shown = [text.strip() for text in re.findall(r'<span class="md-ellipsis">([^<]+)</span>', navigation)]

    listed = re.findall(r"^- \[([^]]+)\]", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"Alerts", "Encryption keys", "Diagnose problems", "Install the command", "Daily tasks"} <= {
        *listed
    }
    assert [title for title in shown if title in listed] == listed


def test_a_bar_in_the_code_of_a_table_is_shown_without_its_backslash(built: Path) -> None:
    reference = (built / "docs" / "use" / "reference.html").read_text(encoding="utf-8")

    assert "<td><code>holdfast state list [PREFIX|PATTERN]</code></td>" in reference
    for page in html(built):
        assert not re.findall(r"<td>[^\n]*<code>[^<]*\\\|", page.read_text(encoding="utf-8")), page


API: Final[Any] = yaml.safe_load((DOCS / "openapi.yaml").read_text(encoding="utf-8"))
SECTIONS: Final = dict(
    re.findall(
        r"^### (.+)\n((?:(?!##).*\n)*)",
        api_reference((DOCS / "openapi.yaml").read_text(encoding="utf-8")),
        re.MULTILINE,
    )
)
"""Heading of a section of the API reference -> its text."""


@pytest.mark.parametrize(
    ("verb", "path"),
    [(verb, path) for path, route in API["paths"].items() for verb in VERBS if verb in route],
)
def test_each_verb_of_a_route_has_a_section_with_parameters_responses_and_errors(
    verb: str, path: str
) -> None:
    operation = API["paths"][path][verb]
    section = SECTIONS[f"`{verb.upper()} {path}`"]

    assert operation["summary"] in section
    for name in re.findall(r"\{(\w+)\}", path):
        assert f"\n| `{name}` | path | " in section
    for parameter in operation.get("parameters", ()):
        reference = parameter.get("$ref", "").rpartition("/")[2]
        name = API["components"]["parameters"].get(reference, parameter)["name"]
        assert f"\n| `{name}` | query" in section
    for status in operation["responses"]:
        assert (f"\n| {status} | " if status < "400" else f"[{status}](#error-") in section
    assert ("\nBody: " in section) == ("requestBody" in operation)


def test_each_document_and_each_error_has_a_section_with_its_members() -> None:
    for name, schema in API["components"]["schemas"].items():
        for member in schema.get("properties", ()):
            assert f"\n| `{member}` | " in SECTIONS[f"Document `{name}`"]
    sent = {
        response["$ref"].rpartition("/")[2]
        for route in API["paths"].values()
        for verb in VERBS
        for status, response in route.get(verb, {}).get("responses", {}).items()
        if status >= "400"
    }
    assert {heading.split("`")[1] for heading in SECTIONS if heading.startswith("Error ")} == sent


def test_the_documents_link_to_the_api_reference(built: Path) -> None:
    assert 'href="openapi.html"' in (built / "docs" / "index.html").read_text(encoding="utf-8")
    assert 'href="openapi.yaml"' in (built / "docs" / "openapi.html").read_text(encoding="utf-8")


def test_the_search_finds_every_page_but_routes_and_licenses(built: Path) -> None:
    """Their headings have the words of many questions, such as "versions", and would hide the answers."""
    items = json.loads((built / "search.json").read_text(encoding="utf-8"))["items"]
    found = {item["location"].partition("#")[0] for item in items}

    pages = {str(page.relative_to(built)) for page in html(built)}
    assert pages - found == {"docs/openapi.html", "THIRD-PARTY.html"}


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
