"""The protocol of `backend "http"`. It only translates events and the library's results."""

from typing import TYPE_CHECKING, Any, Final

from gateway import function, logged, nearest_route, payload
from gateway.responses import Response, respond
from gateway.router import Route, Router, by_name
from holdfast import names
from holdfast.access import Action
from holdfast.audit import Event
from holdfast.errors import InvalidRequest, UnknownRoute
from holdfast.memory import Memory
from holdfast.policy import Policy
from holdfast.state.acquiring import acquire
from holdfast.state.delete import delete
from holdfast.state.document import Mask
from holdfast.state.read import read, read_outputs
from holdfast.state.releasing import Released, release
from holdfast.state.removing import ForceUnlocked
from holdfast.state.write import write
from holdfast.team import WARM_UP
from terraform_http.requests import Request

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

_function = function.start(
    Policy.from_environment("require_lock", "declared_only", "own_locks", "retention"), Memory()
)


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Respond to one request to the API, or to a warm-up."""
    if event == WARM_UP:
        return {"statusCode": 400}  # nobody reads it; a client would read it as a refusal
    return respond(Request(event, _function, _function.budget(context)), _ROUTER)


def _read(request: Request) -> Response:
    request.check_read()
    return _whole(request, read(request.work))


def _read_outputs(request: Request) -> Response:
    request.check_read()
    sent = request.query.get("mask")
    try:
        mask = None if sent is None else Mask(sent)
    except ValueError:
        raise InvalidRequest(f"'mask' must be one of {', '.join(Mask)}.") from None
    return _whole(request, read_outputs(request.work, mask))


def _whole(request: Request, body: bytes | None) -> Response:
    if body is None:
        return Response(status=204, event=Event.STATE_ABSENT)
    return Response(payload.encode(body, accepts_gzip=request.accepts_gzip), {"bytes": len(body)})


def _write(request: Request) -> Response:
    body = request.body()
    payload.require_room(body)
    written = write(request.work, body, request.lock_id)
    return Response(
        logged={**logged.of_write(written), "bytes": len(body)},
        event=None if written.new_version else Event.STATE_UNCHANGED,
    )


def _delete(request: Request) -> Response:
    request.check_delete()
    removed = delete(request.work)
    return Response(logged={"version_id": removed.version_id})


def _acquire(request: Request) -> Response:
    acquired = acquire(request.work, request.body())
    return Response(logged=logged.of_acquired(acquired))


def _release(request: Request) -> Response:
    match release(request.work, request.body(), request.lock_id):
        case Released(lock_id, marker_created):
            return Response(logged={"lock_id": lock_id, "marker_left": marker_created})
        case ForceUnlocked() as removed:
            return Response(logged=logged.of_removed(removed), event=Event.LOCK_FORCE_UNLOCKED)


def _on_lock(path: str, acquiring: str, releasing: str) -> list[Route[Response]]:
    return [
        Route(path, acquiring, _acquire, Event.LOCK_ACQUIRED, needs=Action.LOCK),
        _releasing(path, releasing),
    ]


def _releasing(path: str, verbs: str) -> Route[Response]:
    return Route(path, verbs, _release, Event.LOCK_RELEASED, needs=Action.UNLOCK, query="ID")


# Locks have no GET route: behind a proxy that turns PUT into GET, a 200 would mean "acquired".
_ROUTER: Final = Router(
    [
        Route("/states/{name+}", "GET", _read, Event.STATE_READ, needs=Action.READ),
        Route("/states/{name+}", "POST PUT", _write, Event.STATE_WRITTEN, needs=Action.WRITE, query="ID"),
        Route("/states/{name+}", "DELETE", _delete, Event.STATE_DELETED, needs=Action.DELETE),
        *_on_lock("/states/{name+}", "LOCK", "UNLOCK"),
        Route(
            "/outputs/{name+}",
            "GET",
            _read_outputs,
            Event.OUTPUTS_READ,
            needs=Action.READ_OUTPUTS,
            query="mask",
        ),
        *_on_lock("/locks/{name+}", "PUT POST LOCK", "DELETE UNLOCK"),
        # AWS does not document that the body of a DELETE is kept.
        _releasing("/unlocks/{name+}", "POST UNLOCK"),
    ],
    {"name": by_name(names.parse)},
    lambda path: UnknownRoute(nearest_route.advice(path)),
)
