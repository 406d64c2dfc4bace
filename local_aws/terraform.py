"""The Terraforms and OpenTofus that this machine has."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

_PACKAGED = Path(__file__).with_name("packaged_terraform.py")


@dataclass(frozen=True, slots=True)
class Terraform:
    """A way to run Terraform.

    Attributes:
        name: `terraform`, `tofu` or `packaged`.
        argv: what stands before the command's own arguments; works in any folder.
    """

    name: str
    argv: tuple[str, ...]


def terraforms() -> list[Terraform]:
    """All that can be run: those on the PATH, then the packaged one, which is always there."""
    on_path = [
        Terraform(name, (program,)) for name in ("terraform", "tofu") if (program := shutil.which(name))
    ]
    # -P: this file's folder has modules of its own, which must not be taken for somebody else's.
    return [*on_path, Terraform("packaged", (sys.executable, "-P", str(_PACKAGED)))]
