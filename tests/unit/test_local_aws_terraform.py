"""There is always a real Terraform, and the demo runs it without the user's settings."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from local_aws.demo import without_terraform_settings
from local_aws.failure import LocalAwsError
from local_aws.terraform import Client, Product, Terraform, parse_version, terraforms

WITHOUT_USER = {"CHECKPOINT_DISABLE": "1", "PATH": "/nonexistent", "HOME": "/nonexistent"}


def run(terraform: Terraform, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*terraform.argv, *arguments],
        cwd=folder,
        env=WITHOUT_USER,
        capture_output=True,
        text=True,
        check=False,
    )


def write_program(path: Path, script: str = "") -> None:
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o700)


def test_the_packaged_terraform_is_a_real_one_and_runs_in_any_folder(tmp_path: Path) -> None:
    packaged = terraforms()[-1]
    assert packaged.name == "packaged"

    version = json.loads(run(packaged, tmp_path, "version", "-json").stdout)["terraform_version"]
    assert str(packaged.client) == f"Terraform {version}"
    assert packaged.client.version >= (1, 15, 0)


def test_the_packaged_terraform_hands_on_exit_codes_and_errors(tmp_path: Path) -> None:
    done = run(terraforms()[-1], tmp_path, "plan", "-no-color")
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
        write_program(tmp_path / name)
    monkeypatch.setenv("PATH", str(tmp_path))

    found = terraforms()
    assert [terraform.name for terraform in found] == names
    assert [terraform.argv for terraform in found[:-1]] == [
        (os.fspath(tmp_path / name),) for name in names[:-1]
    ]


@pytest.mark.parametrize(
    ("said", "client"),
    [
        ("Terraform v1.11.4\non linux_amd64\n", Client(Product.TERRAFORM, (1, 11, 4))),
        ("Terraform v1.15.0-beta1\non linux_arm64\n", Client(Product.TERRAFORM, (1, 15, 0))),
        ("OpenTofu v1.9.4\non linux_amd64\n", Client(Product.OPENTOFU, (1, 9, 4))),
        ("OpenTofu v1.12.6-dev\non darwin_arm64\n\nYour version", Client(Product.OPENTOFU, (1, 12, 6))),
    ],
)
def test_a_program_is_what_it_says_and_not_what_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, client: Client
) -> None:
    write_program(tmp_path / "terraform", f"printf '{said}'\n")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert terraforms()[0].client == client


@pytest.mark.parametrize("said", ["", "terraform 1.11.4", "Terragrunt v0.66.9"])
def test_a_program_that_is_neither_is_an_error(said: str) -> None:
    with pytest.raises(LocalAwsError, match="neither Terraform nor OpenTofu"):
        parse_version(said)


def test_the_demo_takes_nothing_of_the_users_settings_but_how_terraform_is_installed() -> None:
    installed = {"TF_CLI_CONFIG_FILE": "terraformrc", "TF_PLUGIN_CACHE_DIR": "cache", "PATH": "/bin"}
    users = dict.fromkeys(
        ("TF_DATA_DIR", "TF_WORKSPACE", "TF_CLI_ARGS", "TF_CLI_ARGS_plan", "TF_HTTP_ADDRESS", "TF_VAR_x"), "x"
    )
    assert without_terraform_settings(installed | users) == installed
