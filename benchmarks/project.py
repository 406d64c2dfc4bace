"""A Terraform configuration that is planned and applied, through Holdfast or Terraform's own `s3` backend."""

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.stack import Stack
from local_aws.terraform import Terraform

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


def s3_backend(bucket: str, name: str, endpoint: str) -> str:
    """Terraform's own `s3` backend with a lock file, as a configuration."""
    return _S3.format(bucket=bucket, name=name, endpoint=endpoint)


class Project:
    """A configuration in a folder of its own, initialized and applied once.

    Args:
        stack: whose credentials its commands get.
        terraform: what runs.
        folder: for the configuration; it may not exist yet.
        backend: a configuration of a backend.

    Raises:
        RuntimeError: a command failed.
    """

    def __init__(self, stack: Stack, terraform: Terraform, folder: Path, backend: str) -> None:
        folder.mkdir(parents=True)
        (folder / "backend.tf").write_text(backend)
        (folder / "main.tf").write_text(_RESOURCES)
        self._folder = folder
        self._terraform = terraform
        self._environment = stack.environment()
        self._applied = 0
        self._run("init", {})
        self.apply()

    def plan(self, environment: Mapping[str, str] | None = None) -> float:
        """Plan without a change; return the seconds that it took.

        Args:
            environment: variables beside those of the stack, such as another token.
        """
        return self._run("plan", environment or {}, f"-var=round={self._applied}")

    def apply(self, environment: Mapping[str, str] | None = None) -> float:
        """Apply a change; return the seconds that it took."""
        self._applied += 1
        return self._run("apply", environment or {}, "-auto-approve", f"-var=round={self._applied}")

    def _run(self, command: str, environment: Mapping[str, str], *arguments: str) -> float:
        started = time.perf_counter()
        done = subprocess.run(
            [*self._terraform.argv, command, "-input=false", *arguments, "-no-color"],
            cwd=self._folder,
            env={**self._environment, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        seconds = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"terraform {command} failed:\n{done.stdout}{done.stderr}")
        return seconds
