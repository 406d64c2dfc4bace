"""docs/openapi.yaml describes the routes that are deployed, and no others."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from local_aws.server import LocalAws
from tests.support.deployed import client
from tests.support.routes import as_described
from tests.support.team import Team
from tests.unit.test_openapi import DOCUMENT


@pytest.fixture(scope="module")
def routes(aws: LocalAws, strict: Team) -> Mapping[str, Mapping[str, Any]]:
    """The deployed routes, by their keys."""
    *_, api_id, _ = urlsplit(strict.direct_address).path.split("/")
    found = client(aws, "apigatewayv2").get_routes(ApiId=api_id)["Items"]
    return {route["RouteKey"]: route for route in found}


def test_every_deployed_route_is_described_and_no_other(routes: Mapping[str, Mapping[str, Any]]) -> None:
    described_in_words = {"$default"}
    assert described_in_words < set(routes)
    paths = set(routes) - described_in_words
    assert paths == {key for key in routes if key.startswith("ANY ")}, "the verbs are the function's"

    assert {as_described(key.removeprefix("ANY ")) for key in paths} == set(map(_deployed, DOCUMENT["paths"]))


def _deployed(path: str) -> str:
    """The route behind a path of the document: two functions have one each for all of their own."""
    of_one_route = [prefix for prefix in ("/api/v2/", "/manage/v1/") if path.startswith(prefix)]
    return f"{of_one_route[0]}{{path}}" if of_one_route else path
