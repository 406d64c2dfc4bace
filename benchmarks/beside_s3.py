"""`terraform plan` and `apply` through Holdfast beside Terraform's own `s3` backend on the same local S3."""

from typing import Final

from benchmarks.figures import Figure, Section, compare
from benchmarks.project import one_of_each_version, projects
from benchmarks.run import Run, tell
from local_aws.terraform import Terraform

_LIMITS: Final = {"plan": 1.3, "apply": 1.5}


def measure(run: Run) -> Section:
    """Plan and apply with both backends in turn, with every Terraform that this machine has.

    Raises:
        RuntimeError: a command failed.
    """
    return Section(
        "In turn, on the same local AWS",
        [figure for terraform in one_of_each_version() for figure in _measure(run, terraform)],
        ["Beside: Terraform's own s3 backend with use_lockfile, on the same local S3."],
    )


def _measure(run: Run, terraform: Terraform) -> list[Figure]:
    sides = projects(run, "beside-s3", terraform, run.stack.aws.endpoint)
    seconds: dict[str, tuple[list[float], list[float]]] = {"plan": ([], []), "apply": ([], [])}
    for number in range(run.rounds):
        tell(f"{terraform.client}, round {number + 1} of {run.rounds}")
        # A plan without changes, then an apply with one; who goes first changes every round.
        order = (0, 1) if number % 2 else (1, 0)
        for command, both in seconds.items():
            for side in order:
                both[side].append(sides[side].run(command))
    return [
        figure
        for command, both in seconds.items()
        for figure in compare(f"{command}, {terraform.client}", *both, limit=_LIMITS[command])
    ]
