"""`make` lists its targets, and continuous integration runs the same tests from any folder."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_aws.server import ROOT


def make(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", "-C", ROOT, *arguments],
        env={"PATH": os.environ["PATH"], **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_alone_lists_every_target_with_one_line() -> None:
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    lines = make().stdout.splitlines()

    assert sorted(line.split()[1] for line in lines) == sorted(phony.split())
    assert [line for line in lines if len(line.split()) < 4] == []


@pytest.mark.parametrize(
    ("target", "given", "environment", "typed"),
    [
        ("test", [], {}, ".venv/bin/python -m tests"),
        ("e2e", [], {}, ".venv/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder tests/e2e"),
        ("up", [], {}, ".venv/bin/python -m local_aws up"),
        ("up", ["PORT=4600"], {}, ".venv/bin/python -m local_aws up --port '4600'"),
        ("up", ["TEAMS=a b"], {}, ".venv/bin/python -m local_aws up --teams 'a b'"),
        # Variables that a shell has for other programs do not count.
        ("up", [], {"PORT": "3000", "TEAMS": "red blue"}, ".venv/bin/python -m local_aws up"),
    ],
)
def test_a_target_is_one_command_with_what_the_command_line_names(
    target: str, given: list[str], environment: Mapping[str, str], typed: str
) -> None:
    printed = make("-n", "--old-file=set-up", target, *given, environment=environment).stdout
    assert printed == f"{typed}\n"


def test_the_help_says_that_clean_takes_the_states_along() -> None:
    [clean] = [line for line in make().stdout.splitlines() if "make clean" in line]
    assert "STATES" in clean


@pytest.mark.parametrize("link", [False, True])
def test_git_ignores_the_folder_with_the_secrets_even_as_a_link(tmp_path: Path, link: bool) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    shutil.copy(ROOT / ".gitignore", tmp_path)
    if link:
        (tmp_path / ".local").symlink_to("/elsewhere")
    else:
        (tmp_path / ".local").mkdir()
    assert (
        subprocess.run(["git", "check-ignore", "--quiet", ".local"], cwd=tmp_path, check=False).returncode
        == 0
    )


def test_targets_that_share_something_do_not_run_side_by_side(tmp_path: Path) -> None:
    pytest = tmp_path / "pytest"
    pytest.write_text(f"#!/bin/sh\necho begin >> {tmp_path}/log\nsleep 0.3\necho end >> {tmp_path}/log\n")
    pytest.chmod(0o755)

    assert make("-j", "8", "--old-file=set-up", f"BIN={tmp_path}", "unit", "contract").returncode == 0
    assert (tmp_path / "log").read_text().split() == ["begin", "end", "begin", "end"]


def test_a_deployment_names_its_team() -> None:
    done = make("-n", "deploy")
    assert done.returncode != 0
    assert "make deploy TEAM=platform" in done.stderr


def test_continuous_integration_runs_the_tests_from_any_folder_without_a_terminal(tmp_path: Path) -> None:
    fake = tmp_path / "make"
    fake.write_text('#!/bin/sh\npwd\necho "$@"\ncat\n')
    fake.chmod(0o755)
    done = subprocess.run(
        [ROOT / ".ci" / "run"],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        input="typed\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(ROOT), "--no-print-directory test"]


def test_every_file_of_pinned_packages_is_upgraded_and_proposed() -> None:
    files = [
        file
        for folder in (".", "functions/**", "local_aws")
        for file in ROOT.glob(f"{folder}/requirements*.txt")
    ]
    pinned = {str(file.relative_to(ROOT)) for file in files if "--hash=" in file.read_text()}
    assert "local_aws/requirements-set-up.txt" in pinned
    assert pinned == set(re.findall(r"--output-file (\S+)", make("-n", "upgrade").stdout))
    ecosystems: Any = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    proposed = {Path(folder.lstrip("/")) for each in ecosystems for folder in each.get("directories", ())}
    assert proposed == {Path(file).parent for file in pinned}
