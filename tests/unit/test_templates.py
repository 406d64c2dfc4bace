"""The templates of issues and pull requests are forms that GitHub accepts, and their links lead somewhere."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.pages import ROOT, text
from tests.unit.test_documents import anchors

FORMS: Final = sorted(
    path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"
)
TEMPLATES: Final = (
    *FORMS,
    ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml",
    ROOT / ".github" / "pull_request_template.md",
)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_has_what_github_asks_for(path: Path) -> None:
    form: Any = yaml.safe_load(text(path))

    assert form.keys() == {"name", "description", "labels", "body"}
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"textarea", "input"}
    assert len({field["id"] for field in fields}) == len(fields) > 0
    assert all(field["attributes"]["label"] for field in fields)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_link_of_a_template_leads_to_a_page_and_its_heading(path: Path) -> None:
    for page, anchor in re.findall(r"/blob/main/([\w./-]+)(?:#([\w-]+))?", text(path)):
        assert (ROOT / page).is_file()
        assert not anchor or anchor in anchors(text(ROOT / page))


def test_reports_of_vulnerabilities_are_led_away_from_public_issues() -> None:
    settings: Any = yaml.safe_load(text(TEMPLATES[-2]))

    assert [link["url"] for link in settings["contact_links"] if "vulnerability" in link["name"]] == [
        "https://github.com/OWNER/holdfast/security/advisories/new"
    ]
