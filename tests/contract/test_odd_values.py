"""Every parameter and member of a request of the API's functions takes an odd value, and never ends in a 5xx.

The routes are those of the handlers, the members those of docs/openapi.yaml.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from gateway import authorizer_context
from gateway.router import AWS_IDENTITY, Route
from holdfast import names
from holdfast.access import Caller, Grant, Role
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.state.write import write
from tests.contract.conftest import COMMAND, Answer, Bucket, Server, started
from tests.support.documents import OPERATOR, state
from tests.support.events import Context, request
from tests.support.routes import as_described, routes
from tests.support.work import work

BUCKET: Final = "holdfast-odd-values"
NAME: Final = names.parse("network/prod")
OPENAPI: Final[Mapping[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "docs" / "openapi.yaml").read_text()
)
BELOW: Final = {"/manage/v1": "management", "/api/v2": "cloud", "/sessions": "session_exchange"}
"""The functions whose requests have parameters or members of many kinds, by the beginnings of their paths."""
BEARER: Final = Authenticated(
    Caller("oidc:someone", (Grant(Role.WRITER, ("*",)),)),
    AuthMethod.OIDC,
    trust="ci",
    trust_id="1",
    subject="someone",
    ends=2**40,
)

NO_TIMES: Final = (
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00",
    "10000-01-01T00:00:00Z",
    "-0001-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-11-20T14:00:00",
    "1e308",
    str(2**63),
    "-1",
    "NaN",
    "Infinity",
    f"0.{'1' * 40}",
    "9" * 5000,
)
"""Texts that are neither a time nor, as JSON, a whole number in any range of the API."""
ODD: Final = (
    *NO_TIMES,
    f"2026-11-20T14:00:00.{'1' * 40}Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    *(f"@{each}" for each in NO_TIMES),
    "\0",
    "network/\0",
    "\ufffe",
    "\U0001f600" * 300,
    base64.urlsafe_b64encode(b'["freeze"]').decode(),
)
ODD_JSON: Final = (
    "1e308",
    "1e999",
    str(2**63),
    "-1",
    "NaN",
    "-Infinity",
    f"0.{'1' * 40}",
    "true",
    "[]",
    "{}",
)
"""Values of a member that are written as they are."""


def operations() -> Iterator[tuple[Route[Any], str, Mapping[str, Any]]]:
    """Yield each route and verb of these functions, with its description."""
    for route in routes():
        if any(route.path.startswith(beginning) for beginning in BELOW):
            for verb in route.verbs.split():
                yield route, verb, OPENAPI["paths"][as_described(route.path)][verb.lower()]


def resolved(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a part of the description refers to, or the part itself."""
    while "$ref" in part:
        found: Any = OPENAPI
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def members(operation: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the members of an operation's body that is an object of JSON, with their schemas."""
    content = resolved(operation.get("requestBody", {})).get("content", {})
    schema = resolved(content.get("application/json", {}).get("schema", {}))
    return {name: resolved(of) for name, of in schema.get("properties", {}).items()}


def parameters(operation: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    return {each["name"]: each for each in map(resolved, operation.get("parameters", ()))}


BESIDE: Final = {"filter[organization][name]": "network", "filter[workspace][name]": "prod"}
"""The parameters without which a list refuses the others."""
QUERIES: Final = [
    (
        route.path,
        verb,
        {needed: BESIDE[needed] for needed in route.query.split() if needed in BESIDE},
        name,
        parameters(operation).get(name, {}).get("schema", {}).get("format"),
    )
    for route, verb, operation in operations()
    for name in route.query.split()
]
MEMBERS: Final = [
    (route.path, verb, name, of.get("format") or of.get("type"))
    for route, verb, operation in operations()
    for name, of in members(operation).items()
    if route.needs is not AWS_IDENTITY  # its body is that of /sessions
]


@pytest.fixture(scope="module")
def functions(moto: Server) -> Iterator[Mapping[str, Any]]:
    endpoint = moto.direct.meta.endpoint_url
    settings = {"HOLDFAST_BUCKET": BUCKET, "AWS_ENDPOINT_URL": endpoint}
    with started(moto, *BELOW.values(), **settings) as handlers:
        activity = vars(import_module("management.activity"))
        activity["connect"]().create_log_group(logGroupName=activity["_AUDIT_GROUP"])
        bucket = Bucket(BUCKET, moto)
        write(work(bucket.direct_store(), NAME, OPERATOR), state(1), None)
        yield handlers
        bucket.empty()


def sent(
    functions: Mapping[str, Any],
    path: str,
    verb: str,
    query: Mapping[str, str] | None = None,
    body: str | None = None,
) -> tuple[int, str]:
    """Send a request with the usual parameters of its path; return the status and the body."""
    beginning = next(each for each in BELOW if path.startswith(each))
    event = request(verb, path, caller=OPERATOR, query=query, body=body)
    if beginning != "/sessions":
        rest = re.sub(r"{name\+}", NAME.value, path.removeprefix(f"{beginning}/"))
        rest = re.sub(r"{organization}", "network", rest)
        event |= {"routeKey": f"ANY {beginning}/{{path+}}", "rawPath": f"{beginning}/{rest}"}
        event["pathParameters"] = {"path": rest}
        if rest == "find":
            event["routeKey"] = "ANY /manage/v1/find"
    else:
        event["requestContext"]["authorizer"] = {"lambda": authorizer_context.encode(BEARER)}
    answer: Answer = functions[BELOW[beginning]](event, Context())
    return answer["statusCode"], answer.get("body") or ""


def usual(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body that the operation takes, as far as its schema says."""
    values = {"id": COMMAND, "pattern": "network/*", "address": "a"}
    required = ("id", "pattern", "reason", "version", "marker", "record", "address")
    return {name: values.get(name, "a text") for name in members(operation) if name in required}


@pytest.mark.parametrize(("path", "verb", "beside", "name", "kind"), QUERIES)
def test_no_value_of_a_parameter_ends_in_a_fault(
    functions: Mapping[str, Any],
    path: str,
    verb: str,
    beside: Mapping[str, str],
    name: str,
    kind: str | None,
) -> None:
    for value in ODD:
        status, body = sent(functions, path, verb, {**beside, name: value})
        assert status < 500, (value, body)
        if kind == "date-time" and value in NO_TIMES:
            assert (status, f"'{name}'" in body) == (400, True), (value, body)
        if name.startswith("page[") and not path.endswith("/projects"):  # a list that is always empty
            assert (status, f"'{name}'" in body) == (400, True), (value, body)


@pytest.mark.parametrize(("path", "verb", "name", "kind"), MEMBERS)
def test_no_value_of_a_member_ends_in_a_fault(
    functions: Mapping[str, Any], path: str, verb: str, name: str, kind: Any
) -> None:
    operation = OPENAPI["paths"][as_described(path)][verb.lower()]
    for value in (*map(json.dumps, ODD), *ODD_JSON):
        written = json.dumps({**usual(operation), name: "HERE"}).replace('"HERE"', value)
        status, body = sent(functions, path, verb, body=written)
        assert status < 500, (value, body)
        is_time = value not in ODD_JSON and json.loads(value) not in NO_TIMES
        if kind in ("date-time", "integer") and not (is_time and kind == "date-time"):
            assert (status, f"'{name}'" in body or "not a JSON" in body) == (400, True), (value, body)


def test_there_are_times_and_numbers_in_queries_and_bodies() -> None:
    assert {(path, name) for path, *_, name, kind in QUERIES if kind} == {
        ("/manage/v1/activity", "since"),
        ("/manage/v1/activity", "until"),
    }
    assert {"date-time", "integer"} <= {kind for *_, kind in MEMBERS}
