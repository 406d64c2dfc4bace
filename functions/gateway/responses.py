"""Responses of the HTTP API (payload format 2.0), and one log line for each request."""

import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from gateway import nearest_route, payload
from gateway.log import log
from gateway.requests import Request
from holdfast import audit
from holdfast.audit import Event
from holdfast.errors import HoldfastError, MethodNotAllowed, UnknownRoute
from holdfast.identity import authentication

_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class Response:
    """A success: what goes back to the client, and what is logged of it.

    Attributes:
        event: what happened.
        status: of HTTP.
        body: None for an empty one.
        logged: fields of the log line.
    """

    event: Event
    status: int = 200
    body: payload.Payload | None = None
    logged: Mapping[str, Any] = field(default_factory=dict)


_R = TypeVar("_R", bound=Request)

ErrorForm = Callable[[HoldfastError], tuple[int, payload.Payload]]
"""How an API says an error: its status and its body."""

Routes = Mapping[str, Mapping[str, Callable[[_R], Response]]]
"""Path, as the routes of API Gateway have it -> verb -> the function that responds."""


def respond(request: _R, routes: Routes[_R]) -> dict[str, Any]:
    """Return the response to a request, whatever comes of it, and log it."""
    return respond_with(request, lambda: _call(request, routes), _plain)


def respond_with(request: Request, call: Callable[[], Response], error_form: ErrorForm) -> dict[str, Any]:
    """Return the response to a request, whatever comes of it, and log it.

    Args:
        request: as the function sees it.
        call: responds to it.
        error_form: how the API says an error.
    """
    started = time.monotonic()
    try:
        success = call()
        response = _success(success)
        level, event, logged = "info", success.event, dict(success.logged)
    except HoldfastError as error:
        response = _failure(error, error_form)
        event, logged = Event.REQUEST_REFUSED, {"error": error.code, **error.logged}
        if error.status >= 500:
            logged["reason"] = error.message
        level = "error" if "reason" in logged else "warning"
    except Exception as error:  # noqa: BLE001 the client gets a response that it retries, the log the place
        response = _failure(_FaultError(request.event["requestContext"]["requestId"]), error_form)
        # Without the exception's text: it could hold content.
        stack = traceback.format_tb(error.__traceback__)
        level, event, logged = "error", Event.REQUEST_FAILED, {"error": audit.failure(error), "stack": stack}
    getattr(log, level)(
        event.value,
        extra={
            **_who_and_what(request),
            **logged,
            "status": response["statusCode"],
            "s3_requests": request.s3_requests,
            "milliseconds": round((time.monotonic() - started) * 1000),
        },
    )
    return response


def _call(request: _R, routes: Routes[_R]) -> Response:
    path = request.event["routeKey"].partition(" ")[2]
    method = request.event["requestContext"]["http"]["method"]
    verbs = routes.get(path)
    if verbs is None:
        raise UnknownRoute(nearest_route.advice(request.event["rawPath"]))
    if method not in verbs:
        raise MethodNotAllowed(method, tuple(verbs))
    return verbs[method](request)


def _success(response: Response) -> dict[str, Any]:
    if response.body is None:
        return {"statusCode": response.status, "headers": _HEADERS, "body": ""}
    return {
        "statusCode": response.status,
        "headers": {**_HEADERS, **response.body.headers},
        "body": response.body.text,
        "isBase64Encoded": response.body.is_base64,
    }


def _failure(error: HoldfastError, form: ErrorForm) -> dict[str, Any]:
    status, body = form(error)
    return {
        "statusCode": status,
        "headers": {**_HEADERS, **body.headers, **error.headers()},
        "body": body.text,
    }


def _plain(error: HoldfastError) -> tuple[int, payload.Payload]:
    return error.status, payload.Payload(json.dumps(error.body()), is_base64=False)


class _FaultError(HoldfastError):
    """Nobody expected it."""

    status = 500
    code = "fault"

    def __init__(self, request_id: str) -> None:
        super().__init__(f"A fault in Holdfast. The function's log says where, under the ID {request_id}.")


def _who_and_what(request: Request) -> dict[str, Any]:
    """Return the fields that every line has, whatever came of the request."""
    context = request.event["requestContext"]
    authenticated = request.authenticated
    caller: Mapping[str, str | None] = (
        authenticated.log_fields() if authenticated else dict.fromkeys(authentication.LOGGED)
    )
    return {
        audit.MARK_FIELD: audit.MARK,
        "state": request.state,
        **caller,
        "subject": caller["subject"] or request.signer,
        "source_ip": context["http"].get("sourceIp"),
        "method": context["http"]["method"],
        "request_id": context["requestId"],
    }
