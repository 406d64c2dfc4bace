"""THIRD-PARTY.md names everything of others that a release and the site contain. `make notices` writes it."""

import json
import re
from pathlib import Path
from typing import Final

import pytest

from publish import site, third_party
from tests.support.pages import ROOT

NOTICES: Final = third_party.NOTICES.read_text(encoding="utf-8")
ROWS: Final = re.findall(r"^\| (\S+) \| ([^|]*\d[^|]*) \| ([^|]+) \| ([^|]+) \|$", NOTICES, re.MULTILINE)
TEXTS: Final = dict(re.findall(r"^### ([^\n]+)\n\n~~~text\n(.*?)\n~~~$", NOTICES, re.MULTILINE | re.DOTALL))
"""The packages of a heading -> the text of their license."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site.build(ROOT, tmp_path_factory.mktemp("site"))


def test_the_table_has_every_package_that_is_contained_in_its_version_and_no_other() -> None:
    listed = [third_party.Contained(name, version, within) for name, version, _, within in ROWS]

    assert listed == third_party.contained()


def test_every_package_has_the_text_of_its_license() -> None:
    named = [package for heading in TEXTS for package in heading.split(", ")]

    assert sorted(named) == sorted(f"{name} {version}" for name, version, _, _ in ROWS)
    assert min(len(text) for heading, text in TEXTS.items() if not heading.startswith("fastdom ")) > 600
    assert (
        TEXTS["preact 11.2.0"] == (ROOT / "node_modules/preact/LICENSE").read_text(encoding="utf-8").strip()
    )


def test_mermaid_contains_what_its_source_map_names() -> None:
    found = dict(third_party.in_mermaid())

    assert {"d3", "dompurify", "@braintree/sanitize-url"} <= found.keys()
    assert (site.package("mermaid") / "mermaid.min.js").stat().st_size > 1_000_000


def test_the_console_contains_what_the_release_lists_in_its_sbom() -> None:
    locked = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]

    in_console = {
        package.name for package in third_party.contained() if package.within == third_party.CONSOLE
    }
    assert in_console == locked[""]["dependencies"].keys()
    assert not [name for name in in_console if locked[f"node_modules/{name}"].get("dependencies")]


def test_the_site_has_no_scripts_and_no_icons_of_others_than_the_page_names(built: Path) -> None:
    own = {f"{name}.js" for name in site.PACKAGES} | {"search.js"}
    scripts = {str(path.relative_to(built)) for path in built.rglob("*.js")}
    assert {path for path in scripts if not path.startswith("assets/javascripts/")} == own
    for page in built.rglob("*.html"):
        icons = re.findall(r"<svg\b[^>]*>", page.read_text(encoding="utf-8"))
        assert all(f'class="{third_party.ICONS} ' in icon for icon in icons), page


def test_the_site_has_the_page(built: Path) -> None:
    assert "Permission is hereby granted" in (built / "THIRD-PARTY.html").read_text(encoding="utf-8")
