"""A release: what keeps it from being built, and that it is the same bytes each time on one machine."""

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from email.parser import Parser
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from holdfast import __version__
from publish import release
from tests.support.pages import ROOT

DATA = "holdfast_cdk/data"
RELEASED = __version__.partition(".dev")[0]
CHANGELOG = f"# Changelog\n\n## {RELEASED} - 2026-01-02\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose only file is a changelog that begins with the version that the code has."""
    monkeypatch.setattr(release, "__version__", RELEASED)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    release.git(tmp_path, "init", "--quiet")
    release.git(tmp_path, "add", ".")
    commit(tmp_path)
    return tmp_path


def commit(repository: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    release.git(repository, *who, "commit", "--quiet", "--allow-empty", "-m", "a")


def test_nothing_keeps_the_version_of_the_code_from_being_released(repository: Path) -> None:
    assert list(release.obstacles(repository, RELEASED)) == []


def test_a_tag_of_this_commit_is_released_again_and_one_of_another_is_not(repository: Path) -> None:
    release.git(repository, "tag", f"v{RELEASED}")
    assert list(release.obstacles(repository, RELEASED)) == []

    commit(repository)
    [tag] = release.obstacles(repository, RELEASED)
    assert tag.startswith(f"The tag v{RELEASED} already exists and points to another commit")


def test_every_obstacle_is_named(repository: Path) -> None:
    release.git(repository, "tag", "v9.9.9")
    commit(repository)
    (repository / "CHANGELOG.md").write_text(CHANGELOG.replace("## ", "## Unreleased\n\n## "))

    code, changelog, changed, tag = release.obstacles(repository, "9.9.9")

    assert __version__.partition(".dev")[0] in code
    assert 'write __version__ = "9.9.9" in functions/holdfast/__init__.py' in code
    assert "is `## Unreleased`. Change the heading to `## 9.9.9 - YYYY-MM-DD`" in changelog
    assert "M CHANGELOG.md" in changed
    assert "v9.9.9 already exists" in tag


@pytest.mark.parametrize("version", ["", "0.4", "v0.4.0", "0.4.0.dev0"])
def test_what_is_not_the_version_of_a_release_is_refused(repository: Path, version: str) -> None:
    assert f"{version!r} is not the version of a release: write three numbers" in next(
        release.obstacles(repository, version)
    )


def test_the_code_has_the_version_of_the_newest_section_or_is_on_the_way_past_the_newest_release() -> None:
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    if sections[0] != "Unreleased":
        assert __version__ == sections[0]
    else:
        number, dev, _ = __version__.partition(".dev0")
        assert dev
        assert [int(part) for part in number.split(".")] > [int(part) for part in sections[1].split(".")]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Mapping[str, bytes]]:
    """The files of a release of the newest commit, built twice: in another folder under another umask."""
    folder = tmp_path_factory.mktemp("release")
    made = []
    for number, umask in ((1, 0o022), (2, 0o077)):
        before = os.umask(umask)
        clone = folder / f"{number * 'x'}"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        files = release.build(clone, __version__, folder / f"out{number}")
        os.umask(before)
        made.append({file.name: file.read_bytes() for file in files})
    return made


def test_a_release_has_the_same_bytes_in_another_folder_under_another_umask(
    built: Sequence[Mapping[str, bytes]],
) -> None:
    assert built[0] == built[1]
    assert sorted(Path(name).suffix for name in built[0]) == ["", ".gz", ".json", ".whl"]
    sums = built[0]["SHA256SUMS"].decode().splitlines()
    assert sums == [
        f"{hashlib.sha256(content).hexdigest()}  {name}"
        for name, content in sorted(built[0].items())
        if name != "SHA256SUMS"
    ]


def test_the_materials_are_those_of_the_command_the_functions_the_deployment_and_the_console(
    built: Sequence[Mapping[str, bytes]],
) -> None:
    [materials] = [json.loads(content) for name, content in built[0].items() if name.endswith(".json")]
    named = {component["name"] for component in materials["components"]}
    assert {"boto3", "aws-cdk-lib", "constructs", "aws-lambda-powertools", "preact", "pyodide"} <= named
    assert all(component["externalReferences"] for component in materials["components"])
    addresses = json.dumps(materials).count("http")
    assert addresses == 1, "only the schema has an address"


def test_the_wheel_and_the_source_have_the_functions_the_console_and_pins_and_nothing_else_that_is_data(
    built: Sequence[Mapping[str, bytes]],
) -> None:
    functions = release.git(ROOT, "ls-tree", "-r", "--name-only", "HEAD", "functions").splitlines()
    [wheel] = [content for name, content in built[0].items() if name.endswith(".whl")]
    [source] = [content for name, content in built[0].items() if name.endswith(".gz")]
    with zipfile.ZipFile(io.BytesIO(wheel)) as files:
        shipped = {name: files.read(name) for name in files.namelist()}
    with tarfile.open(fileobj=io.BytesIO(source)) as files:
        sources = {member.name for member in files if member.isfile()}

    data = {name: content for name, content in shipped.items() if name.startswith(f"{DATA}/")}
    assert {name for name in data if f"{DATA}/functions/" in name} == {f"{DATA}/{name}" for name in functions}
    listed = json.loads(data[f"{DATA}/console/files.json"])
    beside = {f"console/{name}{ending}" for name in listed for ending in ("", ".gz")}
    beside |= {"console/files.json", "package.json", "npm/package.json", "npm/package-lock.json"}
    assert {name for name in data if f"{DATA}/functions/" not in name} == {
        f"{DATA}/{name}" for name in beside
    }
    assert {f"holdfast_state-{__version__}/infra/{name}" for name in data} <= sources
    for name in ("LICENSE", "THIRD-PARTY.md"):
        assert (
            shipped[f"holdfast_state-{__version__}.dist-info/licenses/{name}"] == (ROOT / name).read_bytes()
        )


def test_an_extra_brings_what_deploys_and_no_other_package_is_needed_for_the_command(
    built: Sequence[Mapping[str, bytes]],
) -> None:
    [wheel] = [content for name, content in built[0].items() if name.endswith(".whl")]
    with zipfile.ZipFile(io.BytesIO(wheel)) as files:
        metadata = Parser().parsestr(files.read(f"holdfast_state-{__version__}.dist-info/METADATA").decode())

    ranges = {"": "requirements-command.in", "deploy": "requirements-deploy.in"}
    declared = {Requirement(line) for line in metadata.get_all("Requires-Dist", ())}
    for extra, file in ranges.items():
        lines = [line for line in (ROOT / file).read_text().splitlines() if not line.startswith("#")]
        found = {one for one in declared if ("deploy" in str(one.marker)) == bool(extra)}
        assert {(one.name, one.specifier) for one in found} == {
            (Requirement(line).name, Requirement(line).specifier) for line in lines
        }


# --- the workflows of GitHub ------------------------------------------------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_actions_by_their_commit_and_reads_unless_a_job_says_otherwise(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())

    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
    for line in re.findall(r"uses: (.+)", path.read_text()):
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_the_release_is_switched_off_by_a_variable_and_publishes_without_a_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]

    assert yaml.safe_load(text)[True] == {"push": {"tags": ["v*"]}}  # `on` is true in YAML
    first = {name: job for name, job in jobs.items() if "needs" not in job}
    assert [job["if"] for job in first.values()] == ["vars.RELEASES == 'on'"]
    assert {name: job["needs"] for name, job in jobs.items() if "needs" in job} == {
        "attach": "build",
        "publish": "attach",
    }
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None,
        "attach": {"contents": "write"},
        "publish": {"id-token": "write"},
    }
    assert "secrets" not in text
    commands = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    assert commands == ['make release VERSION="${GITHUB_REF_NAME#v}"', "make test"]
