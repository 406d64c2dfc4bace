"""`terraform plan` and `apply` through Holdfast beside Terraform's own `s3` backend on the same local S3."""

from typing import Final

from benchmarks.figures import Figure, Section, compare
from benchmarks.project import Project, s3_backend
from benchmarks.run import Run, tell
from holdfast import names
from holdfast_cli.backend_config import to_hcl
from local_aws.terraform import Terraform, terraforms

_LIMITS: Final = {"plan": 1.3, "apply": 1.5}


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
    stack, folder = run.stack, run.folder / "beside-s3" / terraform.name
    name = names.parse(f"benchmark/{terraform.name}")
    backends = (
        to_hcl(stack.address, name, read_only=False),
        s3_backend(stack.bucket, str(name), stack.aws.endpoint),
    )
    sides = [Project(stack, terraform, folder / str(side), text) for side, text in enumerate(backends)]
    seconds: dict[str, tuple[list[float], list[float]]] = {"plan": ([], []), "apply": ([], [])}
    for number in range(run.rounds):
        tell(f"{terraform.client}, round {number + 1} of {run.rounds}")
        # A plan without changes, then an apply with one; who goes first changes every round.
        order = (0, 1) if number % 2 else (1, 0)
        for side in order:
            seconds["plan"][side].append(sides[side].plan())
        for side in order:
            seconds["apply"][side].append(sides[side].apply())
    return [
        figure
        for command, both in seconds.items()
        for figure in compare(f"{command}, {terraform.client}", *both, limit=_LIMITS[command])
    ]
