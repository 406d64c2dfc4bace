"""The site of the documents in Chromium, on a desktop and on a phone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page

from publish import site
from tests.support.pages import ROOT

SIZES: Final = ((1400, 900), (420, 800))
NAME: Final = re.compile(r"^\w+$")
PAGES: Final = (
    "index.html",
    "docs/operate/settings.html",
    "docs/operate/function-permissions.html",
    "docs/openapi.html",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site.build(ROOT, tmp_path_factory.mktemp("site"))


@pytest.fixture(params=SIZES, ids=["desktop", "phone"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, height = request.param
    with browser.new_page(viewport={"width": width, "height": height}) as page:
        yield page


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_no_wider_than_its_window_and_loads_its_own_files_alone(
    page: Page, built: Path, name: str
) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))

    page.goto((built / name).as_uri(), wait_until="load")

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert [url for url in requested if not url.startswith(("file:", "blob:", "data:"))] == []


@pytest.mark.parametrize("name", PAGES[1:3])
def test_a_name_in_a_table_is_in_one_line(page: Page, built: Path, name: str) -> None:
    page.goto((built / name).as_uri(), wait_until="load")

    names = page.locator("td > code", has_text=NAME)
    broken = names.evaluate_all(
        "found => found.filter(each => each.getClientRects().length > 1).map(each => each.textContent)"
    )
    assert names.count() > 20
    assert broken == []


def test_a_table_with_a_column_for_each_function_fits_the_window_of_a_desktop(
    browser: Browser, built: Path
) -> None:
    width, height = SIZES[0]
    with browser.new_page(viewport={"width": width, "height": height}) as page:
        page.goto((built / "docs/operate/function-permissions.html").as_uri(), wait_until="load")

        tables = page.locator(".md-typeset__scrollwrap")
        widths = tables.evaluate_all("found => found.map(each => [each.scrollWidth, each.clientWidth])")
        assert len(widths) > 2
        assert [width for width in widths if width[0] > width[1]] == []
