"""Terraform's protocol on API Gateway: event -> library -> response. It translates and decides nothing."""

import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gateway import logged, payload, requests, settings
from gateway.responses import Response, respond
from holdfast import names
from holdfast.audit import Event
from holdfast.s3 import snapshot
from holdfast.s3.store import Store, connect, deadline
from holdfast.state import locks
from holdfast.state.delete import delete
from holdfast.state.memory import Memory
from holdfast.state.read import read, read_outputs
from holdfast.state.write import write

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


_BUCKET: Final = os.environ["HOLDFAST_BUCKET"]
_ACCOUNT: Final = os.environ["HOLDFAST_ACCOUNT"]
_REQUIRE_LOCK: Final = {"true": True, "false": False}[os.environ["HOLDFAST_REQUIRE_LOCK"]]
_DECLARED_ONLY: Final = settings.declared_only()
_RETENTION: Final = settings.write_retention()

_s3 = connect()
_memory = Memory()
snapshot.prepare(_s3, _BUCKET, _ACCOUNT, names.StateName("").state_key)  # no state's: a name is not empty
gc.freeze()  # nor is anything of it looked at later
gc.enable()


@dataclass(frozen=True, slots=True)
class Request(requests.Request):
    """A request for a state or a lock."""

    @property
    def name(self) -> names.StateName:
        """The state's name. The gateway has decoded the path: it is never decoded again."""
        return names.parse(self.event["pathParameters"]["name"])

    @property
    def lock_id(self) -> str | None:
        """The lock that the client says it holds."""
        return self.query.get("ID") or None


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Respond to one request to the API.

    Args:
        event: an API Gateway HTTP API event, payload format 2.0.
        context: the invocation's.
    """
    store = Store(_s3, _BUCKET, _ACCOUNT, deadline=deadline(context.get_remaining_time_in_millis()))
    return respond(Request(event, store), _ROUTES)


def _read(request: Request) -> Response:
    body = read(request.store, request.name, request.caller, _memory, declared_only=_DECLARED_ONLY)
    return _found(request, Event.STATE_READ, body)


def _read_outputs(request: Request) -> Response:
    body = read_outputs(request.store, request.name, request.caller, _memory, declared_only=_DECLARED_ONLY)
    return _found(request, Event.OUTPUTS_READ, body)


def _found(request: Request, event: Event, body: bytes | None) -> Response:
    if body is None:
        return Response(Event.STATE_ABSENT, 204)
    encoded = payload.encode(body, accepts_gzip=request.accepts_gzip)
    return Response(event, 200, encoded, {"bytes": len(body)})


def _write(request: Request) -> Response:
    name, caller, body = request.name, request.caller, request.body()
    payload.require_room(body)
    written = write(
        request.store,
        name,
        body,
        request.lock_id,
        caller,
        require_lock=_REQUIRE_LOCK,
        declared_only=_DECLARED_ONLY,
        retention=_RETENTION,
        memory=_memory,
    )
    return Response(
        Event.STATE_WRITTEN if written.new_version else Event.STATE_UNCHANGED,
        logged={**logged.of_write(written), "bytes": len(body)},
    )


def _delete(request: Request) -> Response:
    removed = delete(request.store, request.name, request.caller)
    return Response(Event.STATE_DELETED, logged={"version_id": removed.version_id})


def _acquire(request: Request) -> Response:
    name, caller = request.name, request.caller
    acquired = locks.acquire(request.store, name, request.body(), caller, declared_only=_DECLARED_ONLY)
    return Response(Event.LOCK_ACQUIRED, logged=logged.of_acquired(acquired))


def _release(request: Request) -> Response:
    name, caller = request.name, request.caller
    match locks.release(request.store, name, request.body(), caller):
        case locks.Released(lock_id, marker_created):
            return Response(Event.LOCK_RELEASED, logged={"lock_id": lock_id, "marker_left": marker_created})
        case locks.ForceUnlocked(info, principal, marker_created):
            return Response(
                Event.LOCK_FORCE_UNLOCKED,
                logged={**logged.of_lock(info), "held_by": principal, "marker_left": marker_created},
            )


# No GET on a lock: behind a proxy that turns PUT into GET its 200 would read as "acquired".
_ROUTES: Final[Mapping[str, Mapping[str, Callable[[Request], Response]]]] = {
    "/states/{name+}": {
        "GET": _read,
        "POST": _write,
        "PUT": _write,
        "DELETE": _delete,
        "LOCK": _acquire,
        "UNLOCK": _release,
    },
    "/outputs/{name+}": {"GET": _read_outputs},
    "/locks/{name+}": {
        "PUT": _acquire,
        "POST": _acquire,
        "LOCK": _acquire,
        "DELETE": _release,
        "UNLOCK": _release,
    },
    # No document of AWS promises that a DELETE keeps its body.
    "/unlocks/{name+}": {"POST": _release, "UNLOCK": _release},
}
