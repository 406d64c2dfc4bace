"""The upgrade is tested from the release that CHANGELOG.md has before this one."""

import re

from tests.support import release_before
from tests.support.pages import page, text

VERSIONS = re.findall(r"^## (\S+)", text(page("CHANGELOG.md")), re.MULTILINE)
"""Newest first. What is not released yet is the first one."""


def test_the_tested_upgrade_is_from_the_newest_release_in_the_changelog() -> None:
    """A release's own commit has no section of changes to come, and upgrades from the one before it."""
    assert VERSIONS[1] == release_before.VERSION, "give release_before.py that version, and its last commit"


def test_the_page_has_the_steps_for_each_of_these_releases() -> None:
    rows = re.findall(r"^\| (\d+\.\d+\.\d+) \|", text(page("upgrading.md")), re.MULTILINE)

    assert {*VERSIONS[:2]} - {"Unreleased"} <= {*rows}
