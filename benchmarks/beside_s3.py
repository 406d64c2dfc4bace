"""`terraform plan` and `apply` through Holdfast beside Terraform's own `s3` backend on the same local S3."""

import subprocess
import time
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, Section, compare
from benchmarks.run import Run, tell
from benchmarks.stack import Stack
from holdfast import names
from holdfast_cli.backend_config import to_hcl
from local_aws.terraform import Terraform, terraforms

_LIMITS: Final = {"plan": 1.3, "apply": 1.5}

_RESOURCES: Final = """
variable "round" { type = string }
resource "terraform_data" "example" { input = var.round }
output "round" { value = terraform_data.example.output }
"""

_S3: Final = """
terraform {{
  backend "s3" {{
    bucket                      = "{bucket}"
    key                         = "native/{name}.tfstate"
    region                      = "us-east-1"
    use_lockfile                = true
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
    endpoints                   = {{ s3 = "{endpoint}" }}
  }}
}}
"""


def measure(run: Run) -> Section:
    """Plan and apply with both backends in turn, with every Terraform that this machine has.

    Raises:
        RuntimeError: a command failed.
    """
    return Section(
        "In turn, on the same local AWS",
        [figure for terraform in terraforms() for figure in _measure(run, terraform)],
        ["Beside: Terraform's own s3 backend with use_lockfile, on the same local S3."],
    )


def _measure(run: Run, terraform: Terraform) -> list[Figure]:
    stack, rounds, folder = run.stack, run.rounds, run.folder / "beside-s3" / terraform.name
    name = names.parse(f"benchmark/{terraform.name}")
    ours = _Project(stack, terraform, folder / "ours", to_hcl(stack.address, name, read_only=False))
    s3 = _S3.format(bucket=stack.bucket, name=name, endpoint=stack.aws.endpoint)
    theirs = _Project(stack, terraform, folder / "theirs", s3)
    seconds: dict[str, tuple[list[float], list[float]]] = {"plan": ([], []), "apply": ([], [])}
    for project in (ours, theirs):
        project.run("init", "-input=false")
        project.run("apply", "-auto-approve", "-input=false", "-var=round=0")
    for number in range(1, rounds + 1):
        tell(f"{terraform.name}, round {number} of {rounds}")
        # A plan without changes, then an apply with one; who goes first changes every round.
        pair = ((ours, 0), (theirs, 1)) if number % 2 else ((theirs, 1), (ours, 0))
        for project, side in pair:
            seconds["plan"][side].append(project.run("plan", "-input=false", f"-var=round={number - 1}"))
        for project, side in pair:
            seconds["apply"][side].append(
                project.run("apply", "-auto-approve", "-input=false", f"-var=round={number}")
            )
    return [
        figure
        for command, both in seconds.items()
        for figure in compare(f"{command}, {terraform.client}", *both, limit=_LIMITS[command])
    ]


class _Project:
    """A Terraform configuration in a folder of its own."""

    def __init__(self, stack: Stack, terraform: Terraform, folder: Path, backend: str) -> None:
        folder.mkdir(parents=True)
        (folder / "backend.tf").write_text(backend)
        (folder / "main.tf").write_text(_RESOURCES)
        self._folder = folder
        self._terraform = terraform
        self._environment = stack.environment()

    def run(self, *arguments: str) -> float:
        """Run a command and return how long it took, in seconds."""
        started = time.perf_counter()
        done = subprocess.run(
            [*self._terraform.argv, *arguments, "-no-color"],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        seconds = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"terraform {arguments[0]} failed:\n{done.stdout}{done.stderr}")
        return seconds
