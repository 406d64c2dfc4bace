"""docs/openapi.yaml says what is deployed, and nothing else."""

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import schemathesis
import yaml
from schemathesis.core.result import Ok

from holdfast import errors
from holdfast.errors import HoldfastError
from local_aws.server import LocalAws
from tests.support.deployed import client
from tests.support.team import Team

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT: dict[str, Any] = yaml.safe_load((DOCS / "openapi.yaml").read_text())
VERBS = frozenset({"GET", "POST", "PUT", "DELETE"})
"""What OpenAPI can express and some route answers; LOCK and UNLOCK stand there in words."""

# `holdfast state undelete` alone raises them, which has no route.
UNDELETE = frozenset({"no_versions", "not_deleted", "unreadable_version", "undelete_undecided", "lock_left"})


def described(path: str) -> dict[str, Any]:
    """The operations of a path, by their verbs."""
    return {name.upper(): value for name, value in DOCUMENT["paths"][path].items() if name != "parameters"}


def as_described(path: str) -> str:
    """A path of the gateway as OpenAPI writes it, which has no word for "the rest of the path"."""
    return path.replace("+}", "}")


@pytest.fixture(scope="session")
def routes(aws: LocalAws, strict: Team) -> Mapping[str, Mapping[str, Any]]:
    """The deployed routes, by their keys."""
    *_, api_id, _ = urlsplit(strict.direct_address).path.split("/")
    found = client(aws, "apigatewayv2").get_routes(ApiId=api_id)["Items"]
    return {route["RouteKey"]: route for route in found}


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, Mapping[str, object]]]:
    """The tables by which the deployed functions decide: path, verb, what it does."""
    for name, value in {
        "HOLDFAST_ACCOUNT": "none",
        "HOLDFAST_BUCKET": "none",
        "HOLDFAST_VERSION": "none",
        "HOLDFAST_REQUIRE_LOCK": "true",
        "POWERTOOLS_SERVICE_NAME": "holdfast",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.MonkeyPatch.context() as modules:
        routes: dict[str, Mapping[str, object]] = {}
        for name in ("terraform_http.handler", "session_exchange.handler"):
            modules.delitem(sys.modules, name, raising=False)
            routes |= vars(import_module(name))["_ROUTES"]
            # Nobody else gets this one, whose settings are made up.
            del sys.modules[name]
        yield routes


def test_the_document_is_valid_openapi() -> None:
    schema = schemathesis.openapi.from_path(DOCS / "openapi.yaml")

    schema.validate()
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]

    assert {(operation.method.upper(), operation.path) for operation in operations} == {
        (verb, path) for path in DOCUMENT["paths"] for verb in described(path)
    }


def test_every_deployed_route_is_described_and_no_other(routes: Mapping[str, Mapping[str, Any]]) -> None:
    assert set(routes) == {key for key in routes if key.startswith("ANY ")}, "the verbs are the function's"

    assert sorted(as_described(key.removeprefix("ANY ")) for key in routes) == sorted(DOCUMENT["paths"])


def test_a_route_asks_for_credentials_where_the_document_says_so(
    routes: Mapping[str, Mapping[str, Any]],
) -> None:
    for key, route in routes.items():
        for operation in described(as_described(key.removeprefix("ANY "))).values():
            asked = {name for one in operation.get("security", DOCUMENT["security"]) for name in one}
            asked_by = {"CUSTOM": {"token", "idToken"}, "AWS_IAM": {"aws"}, "NONE": set()}
            kind = route.get("AuthorizationType", "NONE")
            assert asked == asked_by[kind], key
            # Without a signature AWS answers 403 as well.
            assert ("401" in operation["responses"]) == (kind == "CUSTOM")
            assert ("403" in operation["responses"]) == (kind != "NONE")


def test_the_described_verbs_are_those_that_the_function_answers(
    handled: Mapping[str, Mapping[str, object]],
) -> None:
    assert {as_described(path): set(verbs) & VERBS for path, verbs in handled.items()} == {
        path: set(described(path)) for path in DOCUMENT["paths"]
    }
    in_words = {verb for verbs in handled.values() for verb in verbs} - VERBS
    assert in_words == {"LOCK", "UNLOCK"}
    assert all(f"`{verb}`" in DOCUMENT["info"]["description"] for verb in in_words)


def test_verbs_that_do_the_same_are_described_the_same(
    handled: Mapping[str, Mapping[str, object]],
) -> None:
    for path, verbs in handled.items():
        operations = described(as_described(path))
        for verb, other in [("POST", "PUT")]:
            if verb in verbs and verbs[verb] is verbs.get(other):
                assert operations[verb]["responses"] == operations[other]["responses"]
                assert operations[verb]["requestBody"] == operations[other]["requestBody"]


def test_every_status_of_the_design_is_described_and_no_other() -> None:
    rows = re.findall(r"^\| ([\d /]+) \|", (DOCS / "design.md").read_text(), re.MULTILINE)
    in_design = {status for row in rows for status in row.split(" / ")}

    in_document = {
        status
        for path in DOCUMENT["paths"]
        for operation in described(path).values()
        for status in operation["responses"]
    }

    # 200 and 204 stand in another table, 431 is the gateway's alone.
    assert in_document == in_design | {"200", "204", "431"}


def test_every_error_code_is_described_with_its_status_and_no_other() -> None:
    in_code = {
        (error.code, str(error.status))
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, HoldfastError) and hasattr(error, "code")
    }
    in_document = {
        (code, status)
        for path in DOCUMENT["paths"]
        for operation in described(path).values()
        for status, response in operation["responses"].items()
        for code in _codes(response)
    }

    # 423 has the holder's lock info instead; a fault has no exception of its own.
    expected = {pair for pair in in_code if pair[0] not in UNDELETE | {"locked"}} | {("fault", "500")}
    assert in_document == expected


def test_the_description_of_an_error_names_its_codes() -> None:
    for name, response in DOCUMENT["components"]["responses"].items():
        # One that a status says already need not be told twice.
        codes = _codes({"$ref": f"#/components/responses/{name}"})
        if len(codes) > 1:
            assert all(f"`{code}`" in response["description"] for code in codes), name


def _codes(response: Mapping[str, Any]) -> set[str]:
    """The error codes of a response."""
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
