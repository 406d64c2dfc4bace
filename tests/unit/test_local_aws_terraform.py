"""There is always a real Terraform, and the demo shows what it left behind."""

import json
import os
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local_aws.demo import Version, format_versions, without_terraform_settings
from local_aws.terraform import terraforms

WITHOUT_USER = {"CHECKPOINT_DISABLE": "1", "PATH": "/nonexistent", "HOME": "/nonexistent"}


def test_the_packaged_terraform_is_a_real_one_and_runs_in_any_folder(tmp_path: Path) -> None:
    packaged = terraforms()[-1]
    assert packaged.name == "packaged"

    done = subprocess.run(
        [*packaged.argv, "version", "-json"],
        cwd=tmp_path,
        env=WITHOUT_USER,
        capture_output=True,
        text=True,
        check=True,
    )
    major, minor, _ = json.loads(done.stdout)["terraform_version"].split(".")
    assert (int(major), int(minor)) >= (1, 15)


def test_the_packaged_terraform_hands_on_exit_codes_and_errors(tmp_path: Path) -> None:
    done = subprocess.run(
        [*terraforms()[-1].argv, "plan", "-no-color"],
        cwd=tmp_path,
        env=WITHOUT_USER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "No configuration files" in done.stderr


@pytest.mark.parametrize(
    ("on_path", "names"),
    [
        ([], ["packaged"]),
        (["tofu"], ["tofu", "packaged"]),
        (["tofu", "terraform"], ["terraform", "tofu", "packaged"]),
    ],
)
def test_those_on_the_path_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: list[str], names: list[str]
) -> None:
    for name in on_path:
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))

    found = terraforms()
    assert [terraform.name for terraform in found] == names
    assert [terraform.argv for terraform in found[:-1]] == [
        (os.fspath(tmp_path / name),) for name in names[:-1]
    ]


def test_the_demo_takes_nothing_of_the_users_settings_but_how_terraform_is_installed() -> None:
    installed = {"TF_CLI_CONFIG_FILE": "terraformrc", "TF_PLUGIN_CACHE_DIR": "cache", "PATH": "/bin"}
    users = dict.fromkeys(
        ("TF_DATA_DIR", "TF_WORKSPACE", "TF_CLI_ARGS", "TF_CLI_ARGS_plan", "TF_HTTP_ADDRESS", "TF_VAR_x"), "x"
    )
    assert without_terraform_settings(installed | users) == installed


def test_the_versions_of_a_state_are_listed_one_a_line() -> None:
    written = datetime(2026, 8, 1, 12, 30, 5, tzinfo=UTC)
    versions = [
        Version("v2", serial="12", size=1972, written=written, latest=True),
        Version("v1", serial="9", size=181, written=written, latest=False),
    ]
    assert format_versions(versions).splitlines() == [
        "  serial  12    1972 bytes  2026-08-01 12:30:05  version v2  <- current",
        "  serial   9     181 bytes  2026-08-01 12:30:05  version v1",
    ]
