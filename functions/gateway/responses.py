"""Responses of the HTTP API (payload format 2.0), and the one log line for each request."""

import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gateway import payload
from gateway.requests import Request
from holdfast import audit
from holdfast.errors import HoldfastError, MethodNotAllowed, UnknownRoute

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}

_HEALTH: Final = "ANY /health"
_WHO: Final = ("principal", "source", "role", "trust")
"""What the log says of a caller, as the authorizer found it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to the client, and what is logged of it."""

    event: str
    status: int = 200
    body: payload.Payload | None = None
    logged: Mapping[str, Any] = field(default_factory=dict)


_R = TypeVar("_R", bound=Request)

Routes = Mapping[str, Mapping[str, Callable[[_R], Answer]]]
"""Path, as the gateway's routes have it -> verb -> who answers."""


def respond(request: _R, routes: Routes[_R], log: "Logger") -> dict[str, Any]:
    """Answer a request, whatever comes of it, and log it."""
    started = time.monotonic()
    try:
        answer = _answer(request, routes)
        response = _success(answer)
        level, name, logged = "info", answer.event, dict(answer.logged)
    except HoldfastError as error:
        response = _failure(error.status, json.dumps(error.body()), error.headers())
        name, logged = "request.refused", {"error": error.code, **error.logged}
        if error.status >= 500:
            logged["reason"] = error.message
        level = "error" if "reason" in logged else "warning"
    except Exception as error:  # noqa: BLE001 the client gets an answer that it retries, the log the place
        response = _failure(500, json.dumps(_fault(request.event["requestContext"]["requestId"])), {})
        # Without the exception's text: it could hold content.
        stack = traceback.format_tb(error.__traceback__)
        level, name, logged = "error", "request.failed", {"error": type(error).__name__, "stack": stack}
    getattr(log, level)(
        name,
        extra={
            **_who_and_what(request),
            **logged,
            "status": response["statusCode"],
            "s3_requests": len(request.store.requests),
            "milliseconds": round((time.monotonic() - started) * 1000),
        },
    )
    return response


def _answer(request: _R, routes: Routes[_R]) -> Answer:
    path = request.event["routeKey"].partition(" ")[2]
    method = request.event["requestContext"]["http"]["method"]
    verbs = routes.get(path)
    if verbs is None:
        raise UnknownRoute("No such route; states are at /states/<name>, their locks at /locks/<name>.")
    if method not in verbs:
        raise MethodNotAllowed(method, tuple(verbs))
    return verbs[method](request)


def _success(answer: Answer) -> dict[str, Any]:
    if answer.body is None:
        return {"statusCode": answer.status, "headers": _HEADERS, "body": ""}
    return {
        "statusCode": answer.status,
        "headers": {**_HEADERS, **answer.body.headers},
        "body": answer.body.text,
        "isBase64Encoded": answer.body.is_base64,
    }


def _failure(status: int, body: str, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"statusCode": status, "headers": {**_HEADERS, **headers}, "body": body}


def _fault(request_id: str) -> dict[str, str]:
    return {
        "error": "fault",
        "message": f"A fault in Holdfast. The function's log says where, under the ID {request_id}.",
    }


def _who_and_what(request: Request) -> dict[str, Any]:
    """What every line says, whatever came of the request."""
    event, context = request.event, request.event["requestContext"]
    # Anybody may ask for the health, as often as they like: that is no event.
    trail = {} if event["routeKey"] == _HEALTH else {audit.MARK_FIELD: audit.MARK}
    return {
        **trail,
        "state": (event.get("pathParameters") or {}).get("name"),
        **{name: request.verified.get(name) for name in _WHO},
        "subject": request.verified.get("subject") or request.signer,
        "source_ip": context["http"].get("sourceIp"),
        "method": context["http"]["method"],
        "request_id": context["requestId"],
    }
