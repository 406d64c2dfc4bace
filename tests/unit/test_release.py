"""A release: what keeps it from being built, and that it is the same bytes wherever it is built."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from holdfast import __version__
from publish import release
from tests.support.pages import ROOT

CHANGELOG = f"# Changelog\n\n## {__version__} - 2026-01-02\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose only file is a changelog that begins with this version."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    release.git(tmp_path, "init", "--quiet")
    release.git(tmp_path, "add", ".")
    release.git(
        tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "a"
    )
    return tmp_path


def test_nothing_keeps_the_version_of_the_code_from_being_released(repository: Path) -> None:
    assert list(release.obstacles(repository, __version__)) == []


def test_every_obstacle_is_named(repository: Path) -> None:
    release.git(repository, "tag", "v9.9.9")
    (repository / "CHANGELOG.md").write_text(CHANGELOG.replace("## ", "## Unreleased\n\n## "))

    code, changelog, changed, tag = release.obstacles(repository, "9.9.9")

    assert __version__ in code
    assert "## 9.9.9 - " in changelog
    assert "M CHANGELOG.md" in changed
    assert "v9.9.9 exists" in tag


def test_a_release_has_the_same_bytes_in_another_folder_under_another_umask(tmp_path: Path) -> None:
    built = []
    for number, umask in ((1, 0o022), (2, 0o077)):
        before = os.umask(umask)
        clone = tmp_path / f"{number * 'x'}"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        files = release.build(clone, __version__, tmp_path / f"out{number}")
        os.umask(before)
        built.append({file.name: file.read_bytes() for file in files})

    assert built[0] == built[1]
    assert sorted(Path(name).suffix for name in built[0]) == ["", ".gz", ".json", ".whl"]
    [materials] = [json.loads(content) for name, content in built[0].items() if name.endswith(".json")]
    named = {component["name"] for component in materials["components"]}
    assert {"boto3", "aws-cdk-lib", "aws-lambda-powertools"} <= named
    assert all(component["externalReferences"] for component in materials["components"])
    addresses = json.dumps(materials).count("http")
    assert addresses == 1, "only the schema has an address"
