"""Measure `terraform plan` and `apply` with a network delay to AWS; compare with Terraform's `s3` backend."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from benchmarks import latency
from benchmarks.figures import Figure, Section
from benchmarks.project import one_of_each_version, projects
from benchmarks.relay import Relay
from benchmarks.run import Run, tell
from local_aws.terraform import Terraform

_ROUND_TRIP: Final = 40
_COMMANDS: Final = ("plan", "apply")

_SIDES: Final = ("beside", "in use", "idle")

_NOTES: Final = (
    f"A round trip from client to AWS: {_ROUND_TRIP} ms. A client's new connection costs two more.",
    f"S3 takes {latency.TABLE} ms.",
    f"A function's new connection to S3: {latency.NEW_CONNECTION} ms.",
    "Beside: Terraform's own s3 backend with use_lockfile, at the same distance from the same local S3.",
    "Holdfast: every command signs in, as the first one for a minute does; the functions are warm.",
    "In use: the functions' connections to S3 are open, as others have just used the functions.",
    "Idle: S3 has closed these connections, as it does after seconds, and both functions open new ones.",
    "Waiting: the milliseconds of round trips, new connections and S3, by what was counted, as if no two",
    "  were at once. A release sends a GET beside a DELETE, and an acquire opens a connection beside a PUT.",
    "The ratio to the time beside has what the emulator takes in it; on AWS, API Gateway and Lambda take",
    "  time of Holdfast's requests alone. The s3 backend skips its lookups of credentials and account.",
)


def measure(run: Run) -> Section:
    """Measure plan and apply through both backends in turn, for every Terraform version on this machine."""
    with run.stack.relayed("backend", "authorizer", round_trip=_ROUND_TRIP / 1000) as relays:
        figures = [
            figure for terraform in one_of_each_version() for figure in _measure(run, terraform, *relays)
        ]
    return Section("At a distance", figures, _NOTES)


def _measure(run: Run, terraform: Terraform, to_aws: Relay, to_s3: Relay) -> Iterator[Figure]:
    ours, theirs = projects(run, "distance", terraform, to_aws.endpoint)
    # The gateway had cached the stack's token, so the authorizer has not started yet.
    ours.run("plan", run.stack.new_token())
    took, waited = (defaultdict[tuple[str, str], list[float]](list) for _ in range(2))
    for number in range(run.rounds):
        tell(f"{terraform.client}, round {number + 1} of {run.rounds}")
        for command in _COMMANDS:
            for side in _SIDES[:: -1 if number % 2 else 1]:
                if side == "idle":
                    to_s3.disconnect()
                project, token = theirs if side == "beside" else ours, run.stack.new_token()
                to_aws.take(), to_s3.take()  # discard the requests of the set-up
                took[command, side].append(project.run(command, token))
                waited[command, side].append(
                    1000 * sum(each.waiting(each.take()) for each in (to_aws, to_s3))
                )
    for command in _COMMANDS:
        for side in _SIDES:
            name = f"{command}, {terraform.client}: {side}"
            yield Figure.count(f"{name}, waiting", waited[command, side], "ms")
            if side != "beside":
                yield Figure.ratio(f"{name}, ratio", took[command, side], took[command, "beside"])
