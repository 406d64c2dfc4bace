"""The right path for a request that no route matches."""

import pytest

from gateway.nearest_route import FIXED, NAMED, advice
from tests.support.routes import as_described, routes


def test_it_knows_every_route_and_no_other() -> None:
    spelled = {
        as_described(route.path)
        for route in routes()
        if route.path in ("/api/v2/ping", "/manage/v1/whoami")
        or not route.path.startswith(("/api/v2/", "/manage/v1/", "/console"))
    }
    assert {*(f"/{route}/{{name}}" for route in NAMED), *FIXED} == spelled


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/stats/network/prod", "/states/network/prod"),
        ("/state/network/prod", "/states/network/prod"),
        ("/STATES/network/prod", "/states/network/prod"),
        ("/tfstate/network/prod", "/states/network/prod"),
        ("/output/network/prod", "/outputs/network/prod"),
        ("/lock/network/prod", "/locks/network/prod"),
        ("/unlock/network/prod", "/unlocks/network/prod"),
        ("/prod/states/network", "/states/network"),
        ("/api/v1/unlocks/network/prod", "/unlocks/network/prod"),
        ("/network/prod", "/states/network/prod"),
        ("/network/prod/", "/states/network/prod"),
        ("/stage/prod", "/states/stage/prod"),
        ("/network/states", "/states/network/states"),
        ("/healthz", "/health"),
        ("/health/", "/health"),
        ("/session", "/sessions"),
        ("/sessions/aws/", "/sessions/aws"),
        ("/api/v2/", "/api/v2/ping"),
        ("/manage/v1/", "/manage/v1/whoami"),
        ("/manage/v2/states/network/prod", "/manage/v1/whoami"),
        ("/manage/states", "/manage/v1/whoami"),
        ("/well-known/terraform.json", "/.well-known/terraform.json"),
    ],
)
def test_a_wrong_path_gets_the_nearest_right_one(path: str, nearest: str) -> None:
    assert advice(path) == (
        f"The API does not have this route. The nearest route is {nearest}; use it in the address."
    )


NOT_NAMES = ("../x", "a\r\nSet-Cookie: b", "\x1b[2J", "b\u00fcro", "a%2Fb", "x" * 9000)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        *((path, "states") for path in ("", "/", "/state", "/states", "/states/", "/x" * 4000)),
        *((f"/stats/{name}", "states") for name in NOT_NAMES),
        ("/locks/", "locks"),
    ],
)
def test_a_path_without_a_valid_name_gets_an_example_and_nothing_of_it_is_repeated(
    path: str, route: str
) -> None:
    example = f"/{route}/network/prod"
    assert advice(path) == (
        f"The API does not have this route. Write an address with the name of a state, as in {example}."
    )
