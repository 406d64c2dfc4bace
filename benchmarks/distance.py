"""`terraform plan` and `apply` with AWS some way off: whole runs beside Terraform's own `s3` backend."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from benchmarks.figures import Figure, Section
from benchmarks.project import one_of_each_version, projects
from benchmarks.relay import Passed, Relay
from benchmarks.run import Run, tell
from holdfast.access import Role
from holdfast.identity import tokens
from local_aws.clients import s3_client
from local_aws.terraform import Terraform

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_TO_AWS: Final = 0.040
_TO_S3: Final = 0.012
_COMMANDS: Final = ("plan", "apply")

_BESIDE: Final = "beside"
_IN_USE: Final = "in use"
_IDLE: Final = "idle"

_NOTES: Final = (
    "A round trip: 40 ms from client to AWS, 12 ms from function to S3. A new connection costs two more.",
    "Beside: Terraform's own s3 backend with use_lockfile, 40 ms from the same local S3.",
    "Holdfast: every command signs in, as the first one for a minute does; the functions are warm.",
    "In use: the functions' connections to S3 are open, as others have just used the functions.",
    "Idle: S3 has closed these connections, as it does after seconds, and both functions open new ones.",
    "Round trips: their milliseconds, by what was counted.",
    "The ratio has what the emulator takes in it; on AWS, API Gateway and Lambda take time of Holdfast's",
    "  requests alone. The s3 backend is told to skip its lookups of credentials and account.",
)


@dataclass(frozen=True, slots=True)
class _Done:
    """A command that has run.

    Attributes:
        lines: milliseconds of these in round trips, by count.
        to_aws: the client's requests.
        to_s3: those of the functions.
    """

    ms: float
    lines: float
    to_aws: Passed
    to_s3: Passed


def measure(run: Run) -> Section:
    """Plan and apply with both backends in turn, with every Terraform that this machine has."""
    with run.stack.relayed("backend", "authorizer", to_aws=_TO_AWS, to_s3=_TO_S3) as relays:
        done = {terraform.client: _measure(run, terraform, *relays) for terraform in one_of_each_version()}
    figures = [
        figure
        for client, commands in done.items()
        for command, sides in commands.items()
        for figure in _figures(f"{command}, {client}", sides)
    ]
    return Section("At a distance", figures, _NOTES)


def _measure(
    run: Run, terraform: Terraform, to_aws: Relay, to_s3: Relay
) -> Mapping[str, Mapping[str, Sequence[_Done]]]:
    """Return what each command did, by its name and side."""
    s3 = s3_client(run.stack.aws)
    ours, theirs = projects(run, "distance", terraform, to_aws.endpoint)
    # The gateway knew the stack's token, so the authorizer has not started yet.
    ours.run("plan", new_token(s3, run.stack.bucket))

    def once(command: str, side: str) -> _Done:
        if side == _IDLE:
            to_s3.disconnect()
        project, variables = (theirs, {}) if side == _BESIDE else (ours, new_token(s3, run.stack.bucket))
        to_aws.take(), to_s3.take()  # what set the project up
        ms = 1000 * project.run(command, variables)
        at_aws, at_s3 = to_aws.take(), to_s3.take()
        lines = 1000 * (to_aws.waiting(at_aws) + to_s3.waiting(at_s3))
        return _Done(ms, lines, at_aws, at_s3)

    done: dict[str, dict[str, list[_Done]]] = {command: defaultdict(list) for command in _COMMANDS}
    for number in range(run.rounds):
        tell(f"{terraform.client}, round {number + 1} of {run.rounds}")
        for command, sides in done.items():
            order = (_IDLE, _IN_USE, _BESIDE)
            for side in order if number % 2 else reversed(order):
                sides[side].append(once(command, side))
    return done


def new_token(s3: "S3Client", bucket: str) -> dict[str, str]:
    """Create a token that nobody has used: the gateway has no sign-in of it in its cache."""
    token, secret = tokens.create(
        Role.WRITER, ["*"], description="", created_by="benchmark", now=datetime.now(UTC), expires=None
    )
    s3.put_object(Bucket=bucket, Key=token.key, Body=token.to_json())
    return {"TF_HTTP_USERNAME": token.id, "TF_HTTP_PASSWORD": secret}


def _figures(name: str, sides: Mapping[str, Sequence[_Done]]) -> Iterator[Figure]:
    """Yield the figures of a command, with the ratios of its sides.

    >>> done = {side: [_Done(ms, 0, Passed(), Passed())] for side, ms in (
    ...     ("beside", 500), ("in use", 400), ("idle", 450))}
    >>> [figure.median for figure in _figures("plan", done) if figure.unit == "ratio"]
    [0.8, 0.9]
    """
    beside = sides[_BESIDE]
    yield _requests(f"{name}: beside, S3", [done.to_aws for done in beside])
    yield from _times(f"{name}: beside", beside)
    for side in (_IN_USE, _IDLE):
        ours = sides[side]
        yield _requests(f"{name}: {side}, API", [done.to_aws for done in ours])
        yield _requests(f"{name}: {side}, S3", [done.to_s3 for done in ours])
        yield from _times(f"{name}: {side}", ours)
        yield Figure.ratio(f"{name}: {side}, ratio", *([done.ms for done in each] for each in (ours, beside)))


def _requests(name: str, passed: Sequence[Passed]) -> Figure:
    return Figure.count(name, [each.requests.total() for each in passed])


def _times(name: str, done: Sequence[_Done]) -> Iterator[Figure]:
    new = [each.to_aws.connections + each.to_s3.connections for each in done]
    yield Figure.count(f"{name}, new", new, "connections")
    yield Figure.of(name, "ms", [each.ms for each in done])
    yield Figure.count(f"{name}, round trips", [each.lines for each in done], "ms")
