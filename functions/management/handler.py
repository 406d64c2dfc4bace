"""The management API: event -> library -> response. It translates and decides nothing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from gateway import downloads, function
from gateway.responses import respond
from gateway.router import ANY_CALLER, Route, Router, Target
from holdfast import names
from holdfast.access import Action
from holdfast.audit import Event
from holdfast.errors import HoldfastError, InvalidName, InvalidRequest, UnknownRoute
from management import activity, changing, differences, documents, reading
from management.requests import Request

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

_function = function.start(function.NO_STATE, load=downloads.signer)


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Respond to one request to the API.

    Args:
        event: an API Gateway HTTP API event, payload format 2.0.
        context: the invocation's.
    """
    return respond(Request(event, _function.store(context)), _ROUTER, documents.error)


def _decode(parameters: Mapping[str, str]) -> Target:
    if "name" not in parameters:
        return Target()
    name = names.parse(parameters["name"])
    if name.is_probe:  # which the function's role does not reach
        raise InvalidName(
            "This is a probe of 'holdfast doctor', which makes and removes it; no operator works on it."
        )
    return Target(name)


def _refuse(path: str) -> HoldfastError:
    nameless = path.removesuffix("/")
    if any(route.path == f"{nameless}/{{name+}}" for route in _ROUTER.routes):
        return InvalidRequest(f"Name the state in the address, as in {nameless}/network/prod.")
    return UnknownRoute(
        "The management API has no such route. Its routes are in docs/openapi.yaml; a command of another "
        "version than the deployed stack may ask for one that is not there."
    )


_ROUTES: Final = [
    Route(
        "/states",
        "GET",
        reading.states,
        needs=ANY_CALLER,
        event=Event.STATES_LISTED,
        query="prefix cursor deleted",
    ),
    Route("/locks", "GET", reading.locks, needs=ANY_CALLER, event=Event.LOCKS_LISTED, query="prefix cursor"),
    Route(
        "/activity",
        "GET",
        activity.read,
        needs=Action.READ_ACTIVITY,
        event=Event.ACTIVITY_READ,
        query="state cursor since until",
    ),
    Route("/whoami", "GET", reading.whoami, needs=ANY_CALLER, event=Event.CALLER_DESCRIBED),
    Route("/states/{name+}", "GET", reading.state, needs=Action.READ_OUTPUTS, event=Event.STATE_DESCRIBED),
    Route(
        "/versions/{name+}",
        "GET",
        reading.versions,
        needs=Action.READ,
        event=Event.HISTORY_READ,
        query="cursor",
    ),
    Route(
        "/content/{name+}",
        "GET",
        reading.content,
        needs=Action.READ_OUTPUTS,
        event=Event.STATE_READ,
        query="version",
    ),
    Route(
        "/diff/{name+}",
        "GET",
        differences.respond,
        needs=Action.READ,
        event=Event.STATE_COMPARED,
        query="from to values",
    ),
    Route("/locks/{name+}", "GET", reading.lock, needs=Action.READ_OUTPUTS, event=Event.LOCKS_LISTED),
    Route(
        "/locks/{name+}",
        "DELETE",
        changing.break_lock,
        needs=Action.FORCE_UNLOCK,
        event=Event.LOCK_FORCE_UNLOCKED,
        query="id version",
    ),
    Route("/create/{name+}", "POST", changing.create, needs=Action.WRITE, event=Event.STATE_DECLARED),
    Route("/restore/{name+}", "POST", changing.restore, needs=Action.RESTORE, event=Event.STATE_RESTORED),
    Route("/delete/{name+}", "POST", changing.delete, needs=Action.DELETE, event=Event.STATE_DELETED),
    Route("/undelete/{name+}", "POST", changing.undelete, needs=Action.UNDELETE, event=Event.STATE_UNDELETED),
    Route("/freeze/{name+}", "PUT", changing.freeze, needs=Action.FREEZE, event=Event.STATE_FROZEN),
    Route(
        "/freeze/{name+}",
        "DELETE",
        changing.unfreeze,
        needs=Action.FREEZE,
        event=Event.STATE_UNFROZEN,
        query="id",
    ),
]
_ROUTER: Final = Router(_ROUTES, _decode, _refuse, prefix="/manage/v1")
