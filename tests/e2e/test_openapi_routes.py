"""docs/openapi.yaml describes the deployed routes, and no others."""

from urllib.parse import urlsplit

from local_aws.server import LocalAws
from tests.support.deployed import client
from tests.support.routes import as_described
from tests.support.team import Team
from tests.unit.test_openapi import DOCUMENT


def test_every_deployed_route_is_described_and_no_other(aws: LocalAws, strict: Team) -> None:
    *_, api_id, _ = urlsplit(strict.direct_address).path.split("/")
    routes = {route["RouteKey"] for route in client(aws, "apigatewayv2").get_routes(ApiId=api_id)["Items"]}
    routes.remove("$default")  # it is described in words
    assert all(key.startswith("ANY ") for key in routes), "the verbs are the function's"

    deployed = {as_described(key[len("ANY ") :]) for key in routes}
    assert deployed == {path if path in deployed else _deployed(path) for path in DOCUMENT["paths"]}


def _deployed(path: str) -> str:
    """Return the deployed route of a path in the document, where one route has many paths."""
    of_one_route = [prefix for prefix in ("/api/v2/", "/manage/v1/", "/console/") if path.startswith(prefix)]
    return f"{of_one_route[0]}{{path}}" if of_one_route else path
