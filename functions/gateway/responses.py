"""Respond to requests of the HTTP API (payload format 2.0), and write one log line for each."""

import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gateway import log as gateway_log
from gateway import payload
from gateway.headers import JSON
from gateway.requests import Request
from gateway.router import AWS_IDENTITY, PUBLIC, Route, Router, Target, pick
from holdfast import audit
from holdfast.audit import Event
from holdfast.errors import Denied, HoldfastError
from holdfast.identity import authentication

if TYPE_CHECKING:
    import logging

    from aws_lambda_powertools import Logger


@dataclass(frozen=True, slots=True)
class Response:
    """A successful response, and the fields of its log line.

    Attributes:
        body: None for an empty body.
        event: the audit event; None means the event of the route.
    """

    body: payload.Payload | None = None
    logged: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    event: Event | None = None


ErrorForm = Callable[[HoldfastError], tuple[int, payload.Payload]]
"""Renders an error as status and body, in the format of one API."""


def _plain(error: HoldfastError) -> tuple[int, payload.Payload]:
    return error.status, payload.Payload(json.dumps(error.body()), is_base64=False)


def respond(
    request: Request,
    router: Router[Response],
    error_form: ErrorForm = _plain,
    log: "logging.Logger | Logger" = gateway_log.log,
) -> dict[str, Any]:
    """Handle a request, log it, and return the response. Errors are returned as responses, too."""
    started = time.monotonic()
    try:
        route = _admit(request, router)
        success = route.handler(request, *request.target.arguments)
        response = _success(success)
        level, event, logged = "info", success.event or route.event, dict(success.logged)
    except HoldfastError as error:
        response = _failure(error, error_form)
        event, logged = Event.REQUEST_REFUSED, {"error": error.code, **error.logged}
        if error.status >= 500:
            logged["reason"] = error.message
        level = "error" if "reason" in logged else "warning"
        if isinstance(error, Denied) and error.denial:
            event, why = authentication.refused(authentication.DenialReason(error.denial))
            logged |= why
    except Exception as error:  # noqa: BLE001 the client gets a 500, the log the stack
        response = _failure(_FaultError(request.event["requestContext"]["requestId"]), error_form)
        # Without the exception's text, which could contain a state's content.
        stack = traceback.format_tb(error.__traceback__)
        level, event, logged = "error", Event.REQUEST_FAILED, {"error": audit.failure(error), "stack": stack}
    # Also after a failure: these states have changed.
    for change, fields in request.changes:
        log.info(str(change), extra={**_who_and_what(request), **fields})
    getattr(log, level)(
        str(event),
        extra={
            **_who_and_what(request),
            **logged,
            "status": response["statusCode"],
            "s3_requests": len(request.budget.requests),
            "milliseconds": round((time.monotonic() - started) * 1000),
        },
    )
    return response


def _admit(request: Request, router: Router[Response]) -> Route[Response]:
    """Return the route of a request, and check that its caller has the permission that the route needs.

    This permission is a lower bound; the library checks the caller again.

    Raises:
        HoldfastError: the path cannot be decoded, the caller is not allowed, or a parameter is unknown.
    """
    verbs, target = router.match(request.event)
    if isinstance(target, Target):
        request.target = target
    route = pick(verbs, request.method)
    caller = None if route.needs in (PUBLIC, AWS_IDENTITY) else request.caller
    if isinstance(target, HoldfastError):
        raise target
    if caller:
        route.check(caller, target.name)
    request.check_query(route.query.split())
    return route


def _success(response: Response) -> dict[str, Any]:
    if response.body is None:
        return {"statusCode": response.status, "headers": JSON, "body": ""}
    return {
        "statusCode": response.status,
        "headers": {**JSON, **response.body.headers},
        "body": response.body.text,
        "isBase64Encoded": response.body.is_base64,
    }


def _failure(error: HoldfastError, form: ErrorForm) -> dict[str, Any]:
    status, body = form(error)
    return {
        "statusCode": status,
        "headers": {**JSON, **body.headers, **error.headers()},
        "body": body.text,
    }


class _FaultError(HoldfastError):
    """An unexpected exception."""

    status = 500
    code = "fault"

    def __init__(self, request_id: str) -> None:
        super().__init__(
            "Holdfast has a bug, or an object in the bucket is damaged. An operator finds the details in the "
            f"function's log, under the request ID {request_id}."
        )


def _who_and_what(request: Request) -> dict[str, Any]:
    """Return the fields that every log line of a request has, after success and after failure."""
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
        "method": request.method,
        "request_id": context["requestId"],
    }
