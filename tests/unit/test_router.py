"""Routes: what becomes of a path's parameters, and which of several errors a request gets."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from gateway.function import Function
from gateway.requests import Request
from gateway.responses import Response, respond
from gateway.router import Route, Router, Target, by_id, by_name, text
from holdfast import names
from holdfast.access import Action, Caller, Grant, Role
from holdfast.audit import Event
from holdfast.cloud.ids import OutputId, VersionId, WorkspaceId, parse_version
from holdfast.cloud.names import state_name
from holdfast.errors import HoldfastError, InvalidId, InvalidName, NotAllowed
from holdfast.s3.budget import Budget
from tests.support.events import request
from tests.support.work import policy

NAME: Final = names.parse("network/prod")
WORKSPACE: Final = WorkspaceId(NAME, "0" * 32, 1_700_000_000, "")
VERSION: Final = VersionId(NAME, "v", 7)
READER: Final = Caller("token:ada", (Grant(Role.READER, ("network/*",)),))
KINDS: Final = {
    "name": by_name(names.parse),
    "organization": text,
    "organization workspace": by_name(state_name),
    "workspace_id": by_id(WorkspaceId.parse),
    "version_id": by_id(parse_version),
    "output_id": by_id(OutputId.parse),
}
PATHS: Final = (
    "/ping",
    "/states/{name+}",
    "/organizations/{organization}",
    "/organizations/{organization}/workspaces/{workspace}/safe",
    "/workspaces/{workspace_id}/lock",
    "/versions/{version_id}",
)


def _handle(_: Request, *arguments: object) -> Response:
    return Response(logged={"arguments": arguments})


def _route(path: str) -> Route[Response]:
    return Route(path, "GET", _handle, Event.STATE_READ, needs=Action.READ)


ROUTER: Final = Router([_route(path) for path in PATHS], KINDS, slash=True)


def _matched(path: str) -> tuple[str, Target | HoldfastError]:
    verbs, target = ROUTER.match({"routeKey": "ANY /{path+}", "pathParameters": {"path": path[1:]}})
    return verbs["GET"].path, target


@pytest.mark.parametrize(
    ("path", "template", "target"),
    [
        ("/ping", PATHS[0], Target()),
        ("/ping/", PATHS[0], Target()),
        ("/states/network/prod", PATHS[1], Target(NAME)),
        ("/organizations/any thing", PATHS[2], Target(None, ("any thing",))),
        ("/organizations/network/workspaces/prod/safe", PATHS[3], Target(NAME)),
        (f"/workspaces/{WORKSPACE}/lock", PATHS[4], Target(NAME, (WORKSPACE,))),
        (f"/versions/{VERSION}", PATHS[5], Target(NAME, (VERSION,))),
    ],
)
def test_a_path_is_decoded_by_the_kinds_of_its_parameters(path: str, template: str, target: Target) -> None:
    assert _matched(path) == (template, target)


@pytest.mark.parametrize(
    ("path", "template", "error"),
    [
        ("/states/a//b", PATHS[1], InvalidName),
        ("/organizations/-/workspaces/b/safe", PATHS[3], InvalidName),
        ("/workspaces/prod/lock", PATHS[4], InvalidId),
    ],
)
def test_an_error_of_a_parameter_comes_with_the_routes_of_its_path(
    path: str, template: str, error: type[HoldfastError]
) -> None:
    of_path, target = _matched(path)
    assert (of_path, type(target)) == (template, error)


@pytest.mark.parametrize(
    "path", ["/states/{other+}", "/a/{workspace}/{organization}", "/a/{name}/{output_id}"]
)
def test_no_router_is_made_with_a_parameter_of_no_kind(path: str) -> None:
    with pytest.raises(KeyError):
        Router([_route(path)], KINDS)


@pytest.mark.parametrize(
    ("method", "name", "more", "refused"),
    [
        ("DELETE", "a//b", {}, (405, "method_not_allowed")),
        ("GET", "a//b", {}, (401, "not_authenticated")),
        ("GET", "a//b", {"caller": READER}, (400, "invalid_state_name")),
        ("GET", "other/prod", {"caller": READER}, (403, "not_allowed")),
    ],
)
def test_an_unknown_verb_is_refused_before_its_caller_and_the_caller_before_an_invalid_name(
    method: str, name: str, more: Mapping[str, Any], refused: tuple[int, str]
) -> None:
    event = request(method, "/states/{name+}", name, **more)
    answer = respond(Request(event, Function(None, "states", "1", policy(), None), Budget(0)), ROUTER)
    assert (answer["statusCode"], json.loads(answer["body"])["error"]) == refused


@pytest.mark.parametrize("wanted", [None, Action.READ_METADATA, Action.WRITE])
def test_what_a_refusal_names_lets_no_caller_through(wanted: Action | None) -> None:
    """A reader may read metadata, and may not delete."""
    route = Route(
        "/states/{name+}", "DELETE", _handle, Event.STATE_DELETED, needs=Action.DELETE, wanted=wanted
    )

    with pytest.raises(NotAllowed):
        route.check(READER, NAME)
