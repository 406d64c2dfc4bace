"""API Gateway HTTP API events, payload format 2.0."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import uuid4

from gateway import authorizer_context
from holdfast.access import Caller
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.networks import Origin

DOMAIN: Final = "abc123.execute-api.eu-central-1.amazonaws.com"
"""The host name of the API."""


@dataclass(frozen=True)
class Context:
    """The part of Lambda's context that the functions use."""

    milliseconds: int = 25_000

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


def authorizer_of(caller: Caller) -> dict[str, dict[str, str]]:
    """Return the `authorizer` part of an event, for a caller with an access token."""
    return {"lambda": authorizer_context.encode(Authenticated(caller, AuthMethod.TOKEN))}


def request(
    method: str,
    route: str,
    name: str | None = None,
    *,
    caller: Caller | None = None,
    body: str | None = None,
    is_base64: bool = False,
    lock_id: str | None = None,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    path: str | None = None,
    address: str = "127.0.0.1",
) -> dict[str, Any]:
    """Return the event of a request to a route such as `/states/{name+}`.

    For the route `$default`, `path` is the path that no other route matches.
    """
    context: dict[str, Any] = {
        "apiId": "abc123",
        "domainName": DOMAIN,
        "http": {"method": method, "path": route, "sourceIp": address},
        "requestId": str(uuid4()),
    }
    if caller:
        context["authorizer"] = authorizer_of(caller)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route if route == "$default" else f"ANY {route}",
        "rawPath": path or route,
        "headers": dict(headers or {}),
        "requestContext": context,
        "isBase64Encoded": is_base64,
    }
    if name is not None:
        event["pathParameters"] = {"name": name}
    if body is not None:
        event["body"] = body
    if lock_id is not None:
        query = {"ID": lock_id, **(query or {})}
    if query:
        event |= {"queryStringParameters": dict(query), "rawQueryString": urlencode(query, errors="replace")}
    return event


def console_request(method: str, path: str, **headers: str) -> dict[str, Any]:
    """Return the event of a request for `/console` or a path below it."""
    greedy = path.startswith("/console/")
    event = request(method, "/console/{path+}" if greedy else path, headers=headers)
    return event | {"rawPath": path, **({"pathParameters": {"path": path[9:]}} if greedy else {})}


def cloud_request(method: str, path: str, **more: Any) -> dict[str, Any]:
    """Return the event of a request to `/api/v2/{path+}`; `path` is what follows, decoded."""
    return _below("/api/v2/", method, path, **more)


def manage_request(method: str, path: str, **more: Any) -> dict[str, Any]:
    """Return the event of a request below `/manage/v1/`; `path` is what follows, decoded."""
    event = _below("/manage/v1/", method, path, **more)
    if path == "find":  # a route of the gateway, with limits of its own
        event["routeKey"] = "ANY /manage/v1/find"
        del event["pathParameters"]
    return event


def _below(
    prefix: str, method: str, path: str, *, query: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    event = request(method, f"{prefix}{{path+}}", path=f"{prefix}{path}", **more)
    event["pathParameters"] = {"path": path}
    if query:
        event["queryStringParameters"] = dict(query)
    return event


ANYWHERE = Origin("127.0.0.1")
"""Where a request comes from, in a stack without networks."""


def sign_in(authorization: str, *address: str) -> dict[str, Any]:
    """Return a REQUEST authorizer's event, with the address in the key of the cache if it is given."""
    return {
        "version": "2.0",
        "type": "REQUEST",
        "identitySource": [authorization, *address],
        "headers": {"authorization": authorization},
        "requestContext": {
            "http": {"method": "GET", "path": "/", "sourceIp": (*address, "127.0.0.1")[0]},
            "requestId": str(uuid4()),
        },
    }
