"""docs/openapi.yaml is valid, and describes what the functions do and nothing else.

tests/e2e/test_openapi_routes.py compares its routes with the deployed routes.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
import yaml
from schemathesis.core.result import Ok

from gateway.router import AWS_IDENTITY, PUBLIC, Route
from holdfast.state import catalog, find
from holdfast.state.description import LARGEST_READ
from holdfast.state.resources import PAGE
from tests.conftest import GeneratedFile
from tests.support.route_roles import with_roles
from tests.support.routes import as_described, routes
from tests.unit.test_errors import LEAVES

TEMPLATE = Path(__file__).parent / "infra" / "snapshots" / "payments.yaml"
DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT: dict[str, Any] = yaml.safe_load((DOCS / "openapi.yaml").read_text())
VERBS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
"""The verbs of the routes that OpenAPI can express; the description names LOCK and UNLOCK."""


def described(path: str) -> dict[str, Any]:
    assert path in DOCUMENT["paths"], f"docs/openapi.yaml does not describe {path}"
    return {name.upper(): value for name, value in DOCUMENT["paths"][path].items() if name != "parameters"}


@pytest.fixture(scope="module")
def handled() -> Mapping[str, Mapping[str, Route[Any]]]:
    """The routes of the functions, by path and verb."""
    handled: dict[str, dict[str, Route[Any]]] = {}
    for route in routes():
        handled.setdefault(route.path, {}).update(dict.fromkeys(route.verbs.split(), route))
    return handled


def test_the_document_is_valid_openapi() -> None:
    schema = schemathesis.openapi.from_path(DOCS / "openapi.yaml")

    schema.validate()
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]

    assert {(operation.method.upper(), operation.path) for operation in operations} == {
        (verb, path) for path in DOCUMENT["paths"] for verb in described(path)
    }


@pytest.mark.generated
def test_the_roles_of_a_verb_are_those_that_may_send_it(generated_file: GeneratedFile) -> None:
    path = DOCS / "openapi.yaml"
    generated_file(path, with_roles(path.read_text()))


def test_the_described_verbs_are_those_that_the_function_answers(
    handled: Mapping[str, Mapping[str, Route[Any]]],
) -> None:
    assert {as_described(path): set(verbs) & VERBS for path, verbs in handled.items()} == {
        path: set(described(path)) for path in DOCUMENT["paths"]
    }
    in_words = {verb for verbs in handled.values() for verb in verbs} - VERBS
    assert in_words == {"LOCK", "UNLOCK"}
    assert all(f"`{verb}`" in DOCUMENT["info"]["description"] for verb in in_words)


def test_verbs_that_do_the_same_are_described_the_same(
    handled: Mapping[str, Mapping[str, Route[Any]]],
) -> None:
    for path, verbs in handled.items():
        operations = described(as_described(path))
        for verb, other in [("POST", "PUT")]:
            if verb in verbs and verbs[verb] is verbs.get(other):
                assert operations[verb]["responses"] == operations[other]["responses"]
                assert operations[verb]["requestBody"] == operations[other]["requestBody"]


ASKS: Final[Mapping[object, set[str]]] = {PUBLIC: set(), AWS_IDENTITY: {"aws"}}
"""The credentials that the document asks for, where they are not those of the authorizer."""
LETS_IN: Final[Mapping[object, str]] = {PUBLIC: "NONE", AWS_IDENTITY: "AWS_IAM"}
"""The authorization of the gateway's routes, where it is not the authorizer."""


def test_the_document_asks_for_credentials_where_the_route_needs_them() -> None:
    for route in routes():
        for verb in set(route.verbs.split()) & VERBS:
            operation = described(as_described(route.path))[verb]
            asked = {name for one in operation.get("security", DOCUMENT["security"]) for name in one}
            assert asked == ASKS.get(route.needs, {"token", "idToken"}), route
            # Without a signature AWS answers 403 as well.
            assert ("401" in operation["responses"]) == (route.needs not in ASKS), route
            assert ("403" in operation["responses"]) == (route.needs is not PUBLIC), route


def test_the_gateway_has_every_route_and_lets_in_whom_it_needs() -> None:
    resources = yaml.safe_load(TEMPLATE.read_text())["Resources"].values()
    gateway = {
        found["Properties"]["RouteKey"].removeprefix("ANY "): found["Properties"]["AuthorizationType"]
        for found in resources
        if found["Type"] == "AWS::ApiGatewayV2::Route"
    }
    assert gateway.pop("$default") == "CUSTOM"
    needed = {
        next(
            key
            for key in sorted(gateway, key=lambda key: "{" in key)
            if route.path.startswith(key.removesuffix("{path+}"))
            and (key.endswith("{path+}") or key == route.path)
        ): LETS_IN.get(route.needs, "CUSTOM")
        for route in routes()
    }
    assert needed == gateway


def test_the_limits_of_a_search_are_those_of_the_code() -> None:
    described_ = described("/manage/v1/find")["POST"]["description"]
    megabytes = (find.MAX_BYTES // 1_000_000, find.MAX_STATE // 1_000_000)

    ends = f"{find.SECONDS:.0f} seconds, {megabytes[0]} MB, {find.PAGE:,} matches or {catalog.PAGE} states"
    assert ends in described_
    assert f"above {megabytes[1]} MB" in described_
    [resources] = described("/manage/v1/resources/{name}").values()
    assert f"at most {PAGE:,} resources" in resources["description"]
    assert f"above {LARGEST_READ // 1_000_000} MB" in resources["description"]


def test_each_operation_describes_what_the_gateway_responds_before_it_looks_for_a_route() -> None:
    lacking = {
        (path, verb, status)
        for path in DOCUMENT["paths"]
        for verb, operation in described(path).items()
        for status in {"400", "413", "429", "431"} - operation["responses"].keys()
    }
    assert lacking == set()


def test_every_status_of_an_error_is_described_and_no_other() -> None:
    in_document = {
        status
        for path in DOCUMENT["paths"]
        for operation in described(path).values()
        for status in operation["responses"]
    }

    of_errors = {str(status) for status, _ in LEAVES}
    of_the_gateway = {"429", "431"}
    assert in_document == of_errors | of_the_gateway | {"200", "201", "204", "307", "308"}


def test_every_error_code_is_described_with_its_status_and_no_other() -> None:
    in_document = {
        (code, status)
        for path in DOCUMENT["paths"]
        for operation in described(path).values()
        for status, response in operation["responses"].items()
        for code in _codes(response)
    }

    # 423 has the holder's lock info instead; a fault has no class.
    expected = {(code, str(status)) for status, code in LEAVES if code != "locked"} | {("fault", "500")}
    assert in_document == expected


def test_the_description_of_an_error_names_its_codes() -> None:
    for name, response in DOCUMENT["components"]["responses"].items():
        # A description need not repeat the only code of its status.
        codes = _codes({"$ref": f"#/components/responses/{name}"})
        if len(codes) > 1:
            assert all(f"`{code}`" in response["description"] for code in codes), name


def _codes(response: Mapping[str, Any]) -> set[str]:
    if "$ref" not in response:
        return set()
    return set(_enums(DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]))


def _enums(node: object) -> Iterator[str]:
    if isinstance(node, Mapping):
        yield from node.get("enum", [])
        for value in node.values():
            yield from _enums(value)
    elif isinstance(node, list):
        for value in node:
            yield from _enums(value)
