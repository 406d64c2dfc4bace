"""S3 requests and dollars of a month, from what Terraform's commands were counted to send."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Final
from urllib.parse import urlsplit

from benchmarks.distance import new_token
from benchmarks.figures import Figure, Section
from benchmarks.project import Project, s3_backend
from benchmarks.relay import Passed, Relay
from benchmarks.run import Run, tell
from benchmarks.stack import TEAM, Client, Stack
from benchmarks.state import state
from holdfast import names
from holdfast_cli.backend_config import to_hcl
from local_aws.clients import s3_client
from local_aws.terraform import terraforms
from tests.support import cost_document
from tests.support.deployed import function_name, route_through

_MONTH: Final = {"plan": 2_000, "apply": 400}

_COLD: Final = "Holdfast, cold"
_WARM: Final = "Holdfast, warm"
_BESIDE: Final = "beside"
_NAME: Final = "benchmark/month"

_NOTES: Final = (
    f"A month has {_MONTH['plan']:,} plans and {_MONTH['apply']:,} applies. Beside: Terraform's s3 backend.",
    "Requests are counted on the line to S3. Those of Holdfast contain one for the sign-in with a token.",
    "Cold: the functions' processes are new. In two processes: another process writes than has read the",
    "  state, so that it remembers nothing of it; by the function's log, and with the sign-in.",
    "The month is of cold commands. Prices and the functions' time are those of docs/cost.md, with a session",
    "  for each command; KMS is asked for each PUT and GET. Key, logs, versions and data out cost extra.",
)

Requests = Mapping[str, int]
"""To S3, by kind: `PUT`, `LIST`, `GET`, `HEAD`, `DELETE`."""


def measure(run: Run) -> Section:
    """Plan and apply with both backends, and compute a month of it.

    Raises:
        RuntimeError: a command failed.
    """
    s3: dict[tuple[str, str], Requests] = {}
    api: dict[str, int] = {}
    stack = run.stack
    functions = [function_name(stack.aws, f"Holdfast-{TEAM}", name) for name in ("backend", "authorizer")]
    with ExitStack() as at_end:
        to_aws, to_s3 = (at_end.enter_context(Relay(stack.aws.endpoint, 0)) for _ in range(2))
        at_end.callback(route_through, stack.aws, functions, None)
        ours, theirs = _projects(run, to_aws)
        for command in _MONTH:
            tell(command)
            route_through(stack.aws, functions, to_s3.endpoint)  # a new version has new processes
            for side in (_COLD, _WARM, _BESIDE):
                variables = {} if side == _BESIDE else new_token(s3_client(stack.aws), stack.bucket)
                to_aws.take(), to_s3.take()
                project = theirs if side == _BESIDE else ours
                (project.plan if command == "plan" else project.apply)(variables)
                sent = to_aws.take()
                s3[command, side] = _kinds(sent if side == _BESIDE else to_s3.take())
                if side == _COLD:
                    api[command] = sent.requests.total()
        in_two = _apply_in_two_processes(stack, lambda: route_through(stack.aws, functions, to_s3.endpoint))
    return Section("A month", [*_counted(s3, in_two), *_computed(s3, api)], _NOTES)


def _projects(run: Run, to_aws: Relay) -> tuple[Project, Project]:
    stack, (terraform, *_), folder = run.stack, terraforms(), run.folder / "month"
    address = to_aws.endpoint + urlsplit(stack.address).path
    ours = to_hcl(address, names.parse(f"{_NAME}/terraform"), read_only=False)
    theirs = s3_backend(stack.bucket, _NAME, to_aws.endpoint)
    return (
        Project(stack, terraform, folder / "ours", ours),
        Project(stack, terraform, folder / "theirs", theirs),
    )


def _apply_in_two_processes(stack: Stack, restart: Callable[[], None]) -> int:
    """Return the requests of an apply whose write another process carries out than its read."""
    client, name = Client(stack), f"{_NAME}/in-two"
    lock = json.dumps({"ID": "month", "Operation": "benchmark", "Who": "us"}).encode()
    client.ask("PUT", f"/locks/{name}", lock)
    client.ask("POST", f"/states/{name}?ID=month", state(1, 1_000))
    client.ask("DELETE", f"/locks/{name}", lock)
    before = len(stack.log(name))
    client.ask("PUT", f"/locks/{name}", lock)
    client.ask("GET", f"/states/{name}")
    restart()
    client.ask("POST", f"/states/{name}?ID=month", state(2, 1_000))
    client.ask("DELETE", f"/locks/{name}", lock)
    return 1 + sum(int(line["s3_requests"]) for line in stack.log(name)[before:])


def _kinds(passed: Passed) -> Requests:
    kinds = passed.requests + Counter(LIST=passed.listings)
    kinds["GET"] -= passed.listings
    return kinds


def _counted(s3: Mapping[tuple[str, str], Requests], in_two: int) -> Iterator[Figure]:
    for (command, side), requests in s3.items():
        yield Figure.count(f"{command}: {side}", [sum(requests.values())])
    yield Figure.count("apply: Holdfast, in two processes", [in_two])


def _computed(s3: Mapping[tuple[str, str], Requests], api: Mapping[str, int]) -> Iterator[Figure]:
    sides = {
        name: of_a_month({command: s3[command, side] for command in _MONTH})
        for name, side in (("Holdfast", _COLD), (_BESIDE, _BESIDE))
    }
    requests = {name: sum(kinds.values()) for name, kinds in sides.items()}
    for name, count in requests.items():
        yield Figure.count(f"a month's requests to S3: {name}", [count])
    yield _exact("a month's requests to S3: ratio", "ratio", requests["Holdfast"] / requests[_BESIDE])
    for name, kinds in sides.items():
        yield _exact(f"a month: S3, {name}", "dollars", cost_document.s3_price(kinds))
        yield _exact(f"a month: KMS, {name}", "dollars", cost_document.kms_price(kinds))
    functions = sum(cost_document.functions_price(api[command]) * times for command, times in _MONTH.items())
    gateway = cost_document.api_price(sum(api[command] * times for command, times in _MONTH.items()))
    yield _exact("a month: API Gateway", "dollars", gateway)
    yield _exact("a month: Lambda", "dollars", functions)


def of_a_month(commands: Mapping[str, Requests]) -> Requests:
    """Add up a month's requests from those of one plan and one apply.

    >>> of_a_month({"plan": {"GET": 2}, "apply": {"GET": 1, "PUT": 3}})
    Counter({'GET': 4400, 'PUT': 1200})
    """
    month = Counter[str]()
    for command, requests in commands.items():
        month.update({kind: count * _MONTH[command] for kind, count in requests.items()})
    return month


def _exact(name: str, unit: str, value: float) -> Figure:
    return Figure(name, unit, value, value, value, 1, counted=True)
