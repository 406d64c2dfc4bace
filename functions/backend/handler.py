"""Terraform's protocol on API Gateway: event -> library -> answer. It translates and decides nothing."""

import base64
import hashlib
import json
import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from backend import payload
from holdfast import locks, names, retention, states
from holdfast.access import Caller, Role
from holdfast.errors import HoldfastError, InvalidBody, MethodNotAllowed, NotAuthenticated, UnknownRoute
from holdfast.store import Store, connect, deadline

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def _retention() -> retention.Retention | None:
    value = os.environ.get("HOLDFAST_RETENTION")
    try:
        return None if value is None else retention.parse(value)
    except ValueError as error:
        raise ValueError(f"HOLDFAST_RETENTION: {error}") from None


_BUCKET: Final = os.environ["HOLDFAST_BUCKET"]
_VERSION: Final = os.environ["HOLDFAST_VERSION"]
_REQUIRE_LOCK: Final = {"true": True, "false": False}[os.environ["HOLDFAST_REQUIRE_LOCK"]]
_RETENTION: Final = _retention()

# Text that has no UTF-8 form must not cost the line.
_log = Logger(json_serializer=partial(json.dumps, default=str))
_s3 = connect()

_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class Request:
    """What the handlers need of an event (payload format 2.0)."""

    event: Mapping[str, Any]
    store: Store

    @property
    def name(self) -> names.StateName:
        """The state's name. The gateway has decoded the path: it is never decoded again."""
        return names.parse(self.event["pathParameters"]["name"])

    @property
    def caller(self) -> Caller:
        """Whom the authorizer has verified."""
        try:
            verified = self.event["requestContext"]["authorizer"]["lambda"]
            return Caller(verified["principal"], Role(verified["role"]), tuple(json.loads(verified["scope"])))
        except (KeyError, TypeError, ValueError):
            raise NotAuthenticated("The request carries no verified caller; send an access token.") from None

    @property
    def lock_id(self) -> str | None:
        """The lock that the client says it holds."""
        return (self.event.get("queryStringParameters") or {}).get("ID") or None

    @property
    def accepts_gzip(self) -> bool:
        """Whether the answer may be compressed (RFC 9110 section 12.5.3)."""
        for coding in self.header("accept-encoding").lower().split(","):
            name, _, weight = coding.replace(" ", "").partition(";q=")
            if name == "gzip":
                return weight.strip("0.") != "" or weight == ""
        return False

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


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Answer one request to the API.

    Args:
        event: an API Gateway HTTP API event, payload format 2.0.
        context: the invocation's.
    """
    started = time.monotonic()
    store = Store(_s3, _BUCKET, deadline=deadline(context.get_remaining_time_in_millis()))
    request = Request(event, store)
    try:
        answer = _route(request)
        response = _success(answer)
        level, name, logged = "info", answer.event, dict(answer.logged)
    except HoldfastError as error:
        response = _failure(error.status, json.dumps(error.body()), error.headers())
        name, logged = "request.refused", {"error": error.code, **error.logged}
        if error.status >= 500:
            logged["reason"] = error.message
        level = "error" if "reason" in logged else "warning"
    except Exception as error:  # noqa: BLE001 the client gets an answer that it retries, the log the place
        response = _failure(500, json.dumps(_fault(event["requestContext"]["requestId"])), {})
        # Without the exception's text: it could hold content.
        stack = traceback.format_tb(error.__traceback__)
        level, name, logged = "error", "request.failed", {"error": type(error).__name__, "stack": stack}
    getattr(_log, level)(
        name,
        extra={
            **logged,
            **_who_and_what(event),
            "status": response["statusCode"],
            "s3_requests": len(store.requests),
            "milliseconds": round((time.monotonic() - started) * 1000),
        },
    )
    return response


def _route(request: Request) -> Answer:
    path = request.event["routeKey"].partition(" ")[2]
    method = request.event["requestContext"]["http"]["method"]
    verbs = _ROUTES.get(path)
    if verbs is None:
        raise UnknownRoute("No such route; states are at /states/<name>, their locks at /locks/<name>.")
    if method not in verbs:
        raise MethodNotAllowed(method, tuple(verbs))
    return verbs[method](request)


def _read(request: Request) -> Answer:
    body = states.read(request.store, request.name, request.caller)
    if body is None:
        return Answer("state.absent", 204)
    encoded = payload.encode(body, accepts_gzip=request.accepts_gzip)
    return Answer("state.read", 200, encoded, {"bytes": len(body)})


def _write(request: Request) -> Answer:
    name, caller, body = request.name, request.caller, request.body()
    payload.require_room(body)
    written = states.write(
        request.store,
        name,
        body,
        request.lock_id,
        caller,
        require_lock=_REQUIRE_LOCK,
        retention=_RETENTION,
    )
    return Answer(
        "state.written" if written.new_version else "state.unchanged",
        logged={
            "lock_id": written.lock_id,
            "serial": written.position.serial,
            "serial_before": written.replaced.serial if written.replaced else None,
            "version_id": written.version_id,
            "bytes": len(body),
        },
    )


def _delete(request: Request) -> Answer:
    removed = states.delete(request.store, request.name, request.caller)
    return Answer("state.deleted", logged={"version_id": removed.version_id})


def _acquire(request: Request) -> Answer:
    name, caller = request.name, request.caller
    acquired = locks.acquire(request.store, name, request.body(), caller)
    return Answer("lock.acquired", logged={"lock_id": acquired.info.id, "operation": acquired.info.operation})


def _release(request: Request) -> Answer:
    name, caller = request.name, request.caller
    match locks.release(request.store, name, request.body(), caller):
        case locks.Released(lock_id, marker_left):
            return Answer("lock.released", logged={"lock_id": lock_id, "marker_left": marker_left})
        case locks.ForceUnlocked(info, principal, marker_left):
            return Answer(
                "lock.force_unlocked",
                logged={
                    "lock_id": info.id if info else None,
                    "held_by": principal,
                    "marker_left": marker_left,
                },
            )


def _health(request: Request) -> Answer:  # noqa: ARG001 the table's signature
    text = json.dumps({"status": "ok", "version": _VERSION})
    return Answer("health", 200, payload.Payload(text, is_base64=False))


# No GET on a lock: behind a proxy that turns PUT into GET its 200 would read as "acquired".
_ROUTES: Final[Mapping[str, Mapping[str, Callable[[Request], Answer]]]] = {
    "/states/{name+}": {
        "GET": _read,
        "POST": _write,
        "PUT": _write,
        "DELETE": _delete,
        "LOCK": _acquire,
        "UNLOCK": _release,
    },
    "/locks/{name+}": {
        "PUT": _acquire,
        "POST": _acquire,
        "LOCK": _acquire,
        "DELETE": _release,
        "UNLOCK": _release,
    },
    "/health": {"GET": _health},
}


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


def _who_and_what(event: Mapping[str, Any]) -> dict[str, Any]:
    context = event["requestContext"]
    authorizer = (context.get("authorizer") or {}).get("lambda") or {}
    return {
        "state": (event.get("pathParameters") or {}).get("name"),
        "principal": authorizer.get("principal"),
        "method": context["http"]["method"],
        "request_id": context["requestId"],
    }


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
