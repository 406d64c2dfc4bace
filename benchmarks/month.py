"""S3 requests and dollars of a month, from what Terraform's commands were counted to send."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final

from benchmarks.distance import new_token
from benchmarks.figures import Figure, Section
from benchmarks.project import projects
from benchmarks.relay import Passed, Relay
from benchmarks.run import Run, tell
from benchmarks.stack import TEAM
from local_aws.clients import s3_client
from local_aws.terraform import terraforms
from tests.support import cost_document
from tests.support.deployed import function_name, route_through

_MONTH: Final = {"plan": 2_000, "apply": 400}

_OURS: Final = "Holdfast"
_BESIDE: Final = "beside"

_NOTES: Final = (
    f"A month has {_MONTH['plan']:,} plans and {_MONTH['apply']:,} applies. Beside: Terraform's s3 backend.",
    "The Terraform is the packaged one, which is the same on every machine.",
    "Requests are counted on the line to S3. Those of Holdfast contain one for the sign-in: every command",
    "  signs in with a token and finds the backend and the authorizer cold.",
    "Prices and the functions' time are those of docs/cost.md. KMS is asked for each PUT and GET, by the s3",
    "  backend too, as its bucket has a KMS key here. Key, logs, versions and data out cost extra.",
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
    packaged = terraforms()[-1]
    functions = [function_name(stack.aws, f"Holdfast-{TEAM}", name) for name in ("backend", "authorizer")]
    with ExitStack() as at_end:
        to_aws, to_s3 = (at_end.enter_context(Relay(stack.aws.endpoint, 0)) for _ in range(2))
        at_end.callback(route_through, stack.aws, functions, None)
        ours, theirs = projects(run, "month", packaged, to_aws.endpoint)
        for command in _MONTH:
            tell(command)
            route_through(stack.aws, functions, to_s3.endpoint)  # a new version has new processes
            variables = new_token(s3_client(stack.aws), stack.bucket)
            to_aws.take(), to_s3.take()
            ours.run(command, variables)
            api[command] = to_aws.take().requests.total()
            s3[command, _OURS] = _kinds(to_s3.take())
            theirs.run(command)
            s3[command, _BESIDE] = _kinds(to_aws.take())
    return Section(f"A month with {packaged.client}", [*_counted(s3), *_computed(s3, api)], _NOTES)


def _kinds(passed: Passed) -> Requests:
    kinds = passed.requests + Counter(LIST=passed.listings)
    kinds["GET"] -= passed.listings
    return kinds


def _counted(s3: Mapping[tuple[str, str], Requests]) -> Iterator[Figure]:
    for (command, side), requests in s3.items():
        yield Figure.count(f"{command}: {side}", [sum(requests.values())])


def _computed(s3: Mapping[tuple[str, str], Requests], api: Mapping[str, int]) -> Iterator[Figure]:
    sides = {
        side: of_a_month({command: s3[command, side] for command in _MONTH}) for side in (_OURS, _BESIDE)
    }
    ours, theirs = ([sum(sides[side].values())] for side in (_OURS, _BESIDE))
    yield Figure.count(f"a month's requests to S3: {_OURS}", ours)
    yield Figure.count(f"a month's requests to S3: {_BESIDE}", theirs)
    yield Figure.ratio("a month's requests to S3: ratio", ours, theirs)
    gateway = cost_document.api_price(sum(api[command] * times for command, times in _MONTH.items()))
    functions = sum(
        times * cost_document.functions_price(api[command], session=False)
        for command, times in _MONTH.items()
    )
    for side, kinds in sides.items():
        dollars = {"S3": cost_document.s3_price(kinds), "KMS": cost_document.kms_price(kinds)}
        if side == _OURS:
            dollars |= {"API Gateway": gateway, "Lambda": functions}
        for service, amount in (dollars | {"together": sum(dollars.values())}).items():
            yield Figure.count(f"a month, {side}: {service}", [amount], "dollars")


def of_a_month(commands: Mapping[str, Requests]) -> Requests:
    """Add up a month's requests from those of one plan and one apply.

    >>> of_a_month({"plan": {"GET": 2}, "apply": {"GET": 1, "PUT": 3}})
    Counter({'GET': 4400, 'PUT': 1200})
    """
    month = Counter[str]()
    for command, requests in commands.items():
        month.update({kind: count * _MONTH[command] for kind, count in requests.items()})
    return month
