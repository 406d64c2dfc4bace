"""The upgrade is tested from the release that CHANGELOG.md has before this one."""

import re

from tests.support import recorded, release_before
from tests.support.pages import page, text

BROKEN: dict[str, dict[str, list[str]]] = {}
"""Members that the JSON of the release before has and this one's has not; CHANGELOG.md says so."""
NAMES = {old: new for new, old in release_before.NAMES.items()}
VERSIONS = re.findall(r"^## (\S+)", text(page("CHANGELOG.md")), re.MULTILINE)
"""Newest first. What is not released yet is the first one."""


def test_the_tested_upgrade_is_from_the_newest_release_in_the_changelog() -> None:
    """A release's own commit has no section of changes to come, and upgrades from the one before it."""
    assert VERSIONS[1] == release_before.VERSION, "give release_before.py that version, and its last commit"


def test_the_page_has_the_steps_for_each_of_these_releases() -> None:
    rows = re.findall(r"^\| (\d+\.\d+\.\d+) \|", text(page("upgrading.md")), re.MULTILINE)

    assert {*VERSIONS[:2]} - {"Unreleased"} <= {*rows}


def test_only_what_the_changelog_tells_is_gone_since_the_release_before() -> None:
    """The folder has the recordings of that release, as far as it had any."""
    gone = {
        path.name: broken
        for path in (recorded.FOLDER / "before").iterdir()
        if (broken := recorded.broken(before(path.name), recorded.read(path.name)))
    }

    assert gone == BROKEN


def before(name: str) -> dict[str, recorded.Members]:
    """Return a recording of the release before, under the names that commands have now."""
    return {NAMES.get(kind, kind): members for kind, members in recorded.read(f"before/{name}").items()}
