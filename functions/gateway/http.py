"""Requests and answers of the HTTP API (payload format 2.0), and the one line that each leaves in the log."""

import base64
import hashlib
import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gateway import payload
from holdfast import audit
from holdfast.errors import HoldfastError, InvalidBody, MethodNotAllowed, UnknownRoute
from holdfast.store import Store

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}

_HEALTH: Final = "ANY /health"
_WHO: Final = ("principal", "source", "role", "trust")
"""What the log says of a caller, as the authorizer found it."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the functions need of an event.

    Attributes:
        event: as API Gateway sends it.
        store: for what it takes to answer this request.
    """

    event: Mapping[str, Any]
    store: Store

    @property
    def verified(self) -> Mapping[str, Any]:
        """What the token authorizer has found out about the caller; empty if it was not asked."""
        context: Mapping[str, Any] = (self.event["requestContext"].get("authorizer") or {}).get(
            "lambda"
        ) or {}
        return context

    @property
    def signer(self) -> str | None:
        """The ARN of who has signed the request, as AWS found it; None if AWS was not asked."""
        try:
            arn = self.event["requestContext"]["authorizer"]["iam"]["userArn"]
        except (KeyError, TypeError):
            return None
        return arn if isinstance(arn, str) and arn else None

    def header(self, name: str) -> str:
        """A header by its lower-case name, empty if it is missing."""
        value: str = self.event["headers"].get(name, "")
        return value

    def body(self) -> bytes:
        """The body as the client sent it.

        Raises:
            InvalidBody: it did not arrive, or not whole. It must never look like an empty one: an empty body
                is a force-unlock.
        """
        try:
            body = payload.decode(
                self.event.get("body") or "", is_base64=bool(self.event.get("isBase64Encoded"))
            )
        except ValueError:
            raise InvalidBody("The body cannot be decoded; send it as UTF-8 text or base64.") from None
        length = self.header("content-length").strip()
        # The gateway replaces what is no UTF-8 in a text, so that an altered body has another length too.
        if length and length != str(len(body)):
            raise InvalidBody(
                f"The request announced a body of {length[:20]} bytes, {len(body)} arrived: a proxy may have "
                "dropped it, or it is no UTF-8. Nothing was changed."
            )
        # The gateway may rename the header.
        announced = self.header("content-md5") or self.header("x-amzn-remapped-content-md5")
        if announced and announced.strip() != _md5(body):
            raise InvalidBody("The body does not match its Content-MD5. Nothing was changed; send it again.")
        return body


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
    trail = {} if event["routeKey"] == _HEALTH else {audit.FIELD: audit.MARK}
    return {
        **trail,
        "state": (event.get("pathParameters") or {}).get("name"),
        **{name: request.verified.get(name) for name in _WHO},
        "subject": request.verified.get("subject") or request.signer,
        "source_ip": context["http"].get("sourceIp"),
        "method": context["http"]["method"],
        "request_id": context["requestId"],
    }


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
