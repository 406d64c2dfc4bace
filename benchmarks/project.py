"""A Terraform configuration to plan and apply, through Holdfast or Terraform's own `s3` backend."""

import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from benchmarks.run import Run
from benchmarks.stack import printed
from holdfast import names
from holdfast_cli.config.backend_config import to_hcl
from local_aws.terraform import Terraform, terraforms

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


def one_of_each_version() -> list[Terraform]:
    """Return one program of this machine for each version of Terraform and of OpenTofu."""
    return [*{terraform.client: terraform for terraform in reversed(terraforms())}.values()][::-1]


def projects(run: Run, section: str, terraform: Terraform, endpoint: str) -> tuple["Project", "Project"]:
    """Return two projects that send requests to `endpoint`: one uses Holdfast, the other the `s3` backend."""
    name = names.parse(f"benchmark/{section}/{terraform.name}")
    ours = to_hcl(endpoint + urlsplit(run.stack.address).path, name, read_only=False)
    theirs = _S3.format(bucket=run.stack.bucket, name=name, endpoint=endpoint)
    return Project(run, f"{section}-ours", terraform, ours), Project(run, f"{section}-s3", terraform, theirs)


class Project:
    """A configuration in a folder of its own, initialized and applied once.

    Args:
        name: the folder's name, unique for this Terraform.
        backend: a `terraform` block with a backend.
        variables: environment variables, added to the stack's variables.
    """

    def __init__(
        self, run: Run, name: str, terraform: Terraform, backend: str, variables: Mapping[str, str] = {}
    ) -> None:
        self._folder = run.folder / f"{name}-{terraform.name}"
        self._folder.mkdir()
        (self._folder / "main.tf").write_text(backend + _RESOURCES)
        self._terraform = terraform
        self._environment = {**run.stack.environment(), **variables}
        self._applied = 0
        self.run("init")
        self.run("apply")

    def run(self, command: str, token: Mapping[str, str] = {}) -> float:
        """Run a command, and return its milliseconds. `plan` finds no change; `apply` makes a change.

        Args:
            command: `init`, `plan`, `apply` or `output`.
            token: environment variables with a token that replaces the stack's.
        """
        self._applied += command == "apply"
        arguments = {
            "init": ["-input=false"],
            "plan": ["-input=false", f"-var=round={self._applied}"],
            "apply": ["-input=false", "-auto-approve", f"-var=round={self._applied}"],
            "output": [],
        }
        started = time.perf_counter()
        printed(
            f"terraform {command}",
            *(*self._terraform.argv, command, *arguments[command], "-no-color"),
            cwd=self._folder,
            env={**self._environment, **token},
        )
        return 1000 * (time.perf_counter() - started)
