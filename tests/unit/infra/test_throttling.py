"""The limits of the API's routes: which routes have which, and that everybody gets in within them."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Final, NamedTuple

import boto3
import pytest
import urllib3

from holdfast.identity.credentials import IdToken
from holdfast_cdk.config import AWS
from holdfast_cdk.team_settings import Team, Throttling
from holdfast_cli.api import sessions
from tests.support import api_stub
from tests.support.api_stub import made, session
from tests.support.aws_gateway import AwsGateway
from tests.support.throttle import DEFAULT, Limits, Throttle
from tests.unit.infra.conftest import Synthesize, Synthesized

CLIENTS: Final = 100
FEW: Final = Limits(10, 20)
DISCOVERY: Final = "/.well-known/terraform.json"
PING: Final = "/api/v2/ping"
FIND: Final = "/manage/v1/find"
BEGINNINGS: Final = ("/sessions", "/sessions/aws", DISCOVERY, PING)
"""The paths of the requests with which a job begins."""


class Route(NamedTuple):
    """A route as the template has it; `handler` is that of its function."""

    resource: str
    key: str
    authorization: str
    handler: str


def routes(stack: Synthesized) -> Iterator[Route]:
    resources = {
        name: resource.get("Properties", {}) for name, resource in stack.template["Resources"].items()
    }
    for name, resource in stack.resources("AWS::ApiGatewayV2::Route").items():
        route = resource["Properties"]
        (integration,) = (part["Ref"] for part in route["Target"]["Fn::Join"][1] if isinstance(part, dict))
        alias = resources[resources[integration]["IntegrationUri"]["Ref"]]
        handler = resources[alias["FunctionName"]["Ref"]]["Handler"]
        yield Route(name, route["RouteKey"], route["AuthorizationType"], handler)


def ruled(route: Route, team: Limits) -> Limits | None:
    """Return the route's own limits, which depend on its callers and on the function behind it."""
    if route.handler.startswith("session_exchange.") or route.key in (f"ANY {DISCOVERY}", f"ANY {PING}"):
        return team  # or one laptop could keep everybody out
    if route.key == f"ANY {FIND}":
        return Limits(1, 2)  # or five tabs that search hold half of a new account's executions
    if route.handler.startswith("management."):
        return Limits(max(1, team.rate // 4), max(1, team.burst // 4))
    if route.key == "ANY /console/{path+}":
        # A page, its script and its style.
        return Limits(min(FEW.rate, team.rate), min(3 * FEW.burst, team.burst))
    if route.authorization == "NONE" or route.key == DEFAULT:
        return Limits(min(FEW.rate, team.rate), min(FEW.burst, team.burst))
    return None


@pytest.mark.parametrize("name", ["default", "settled"])
def test_a_route_has_the_limits_of_what_it_is_for_and_exists_before_they_are_set(
    request: pytest.FixtureRequest, name: str
) -> None:
    stack: Synthesized = request.getfixturevalue(name)
    throttle = Throttle(stack.template)
    of_api = list(routes(stack))

    assert {route.key: throttle.own.get(route.key) for route in of_api} == {
        route.key: ruled(route, throttle.stage) for route in of_api
    }
    assert throttle.own.keys() <= {route.key for route in of_api}
    # API Gateway refuses settings of a route that does not exist yet.
    awaited = stack.only("AWS::ApiGatewayV2::Stage")["DependsOn"]
    assert {route.resource for route in of_api if route.key in throttle.own} <= set(awaited)


def test_a_team_without_the_console_has_the_same_routes_and_limits(
    synthesize: Synthesize, default: Synthesized
) -> None:
    [without] = synthesize([Team(name="plain", console=False)], AWS).values()

    def shape(stack: Synthesized) -> tuple[set[str], dict[str, Limits]]:
        return {route.key for route in routes(stack)}, Throttle(stack.template).own

    assert shape(without) == shape(default)
    handlers = {route.handler for route in routes(without) if "/console" in route.key}
    assert handlers == {"health.handler.handle"}


def test_a_bucket_is_full_at_first_and_fills_at_the_rate_to_the_burst_and_not_above(
    default: Synthesized,
) -> None:
    now = 0.0
    throttle = Throttle(default.template, lambda: now)

    def passed(path: str, sent: int = 500) -> int:
        return sum(throttle.admits(path) for _ in range(sent))

    assert (passed("/health"), passed("/nowhere"), passed("/manage/v1/states?page=2")) == (20, 20, 50)
    assert passed("/states/a", 150) + passed("/api/v2/workspaces/x", 150) == 200  # the stage's, in one bucket
    assert {passed(path) for path in BEGINNINGS} == {200}
    now = 1.5
    assert (passed("/health"), passed("/states/a")) == (15, 150)
    now = 100.0
    assert (passed("/health"), passed("/states/a")) == (20, 200)


@contextmanager
def in_front_of(throttle: Throttle) -> Iterator[AwsGateway]:
    """The limits in front of an API that gives everybody a session."""
    with api_stub.running() as stub, AwsGateway(stub.address) as gateway, gateway.throttling(throttle.admits):
        stub.reply(made(session()))
        yield gateway


def all_at_once(act: Callable[[int], object]) -> None:
    start = threading.Barrier(CLIENTS)
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda number: (start.wait(), act(number)), range(CLIENTS)))


def sign_in(number: int, address: str) -> None:
    """Sign in as `holdfast login` does: every other client with AWS credentials."""
    if number % 2:
        sessions.for_id_token(IdToken("a.b.c"), address, None)
    else:
        sessions.for_aws(boto3.Session("AKIA", "secret"), address, None)


def once(method: str, url: str) -> int:
    """Send a request that is not retried, and return the status."""
    return urllib3.request(method, url, retries=False).status


def test_a_hundred_clients_get_in_at_once_while_a_laptop_without_credentials_sends_what_it_can(
    default: Synthesized,
) -> None:
    begun, done = threading.Event(), threading.Event()
    begun_with: list[int] = []
    with in_front_of(Throttle(default.template)) as gateway:

        def flood() -> None:
            for number in count():
                for path in BEGINNINGS:
                    once("POST", f"{gateway.address}{path}")
                if number == FEW.burst:
                    begun.set()
                if number > FEW.burst and done.wait(1 / (2 * FEW.rate)):
                    return

        def init(number: int) -> None:
            # Terraform before 1.15 sends neither again after a 429.
            begun_with.extend(once("GET", f"{gateway.address}{path}") for path in (DISCOVERY, PING))
            sign_in(number, gateway.address)

        laptop = threading.Thread(target=flood)
        laptop.start()
        begun.wait()
        try:
            all_at_once(init)
        finally:
            done.set()
            laptop.join()

    assert begun_with == [200] * 2 * CLIENTS


def test_a_hundred_clients_get_in_by_retries_where_the_team_allows_fewer_at_once(
    synthesize: Synthesize,
) -> None:
    team = Team(name="small", throttling=Throttling(rate=40, burst=10))
    throttle = Throttle(synthesize([team], AWS)["Holdfast-small"].template)
    with in_front_of(throttle) as gateway, gateway.recording() as exchanges:
        all_at_once(lambda number: sign_in(number, gateway.address))

    assert {exchange.status for exchange in exchanges} == {200, 429}
