"""The management API. It only translates events for the library, and the library's results to responses."""

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from gateway import function
from gateway.log import numbered
from gateway.responses import respond
from gateway.router import ANY_CALLER, Route, Router, by_name
from holdfast import names
from holdfast.access import Action
from holdfast.audit import Event
from holdfast.errors import HoldfastError, InvalidRequest, UnknownRoute
from holdfast.policy import Policy
from management import activity, changing, differences, documents, finding, reading
from management.requests import Request

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

# In ASCII, because a lone surrogate cannot be written as UTF-8.
_log = Logger(json_serializer=partial(json.dumps, default=str))
numbered(_log)
_function = function.start(
    Policy.from_environment("largest_state", "declared_only", "own_locks", "retention")
)


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Respond to one request to the API."""
    return respond(Request(event, _function, _function.budget(context)), _ROUTER, documents.error, _log)


def _refuse(path: str) -> HoldfastError:
    nameless = path.removesuffix("/")
    if any(route.path == f"{nameless}/{{name+}}" for route in _ROUTER.routes):
        return InvalidRequest(f"Name the state in the address, as in {nameless}/network/prod.")
    return UnknownRoute(
        "The management API does not have this route; docs/openapi.yaml lists its routes. If a 'holdfast' "
        "command sent the request, use a command with the version of the deployed stack."
    )


_ROUTES: Final = [
    Route(
        "/states",
        "GET",
        reading.states,
        Event.STATES_LISTED,
        needs=Action.READ_METADATA,
        query="prefix cursor deleted declared",
    ),
    Route(
        "/locks", "GET", reading.locks, Event.LOCKS_LISTED, needs=Action.READ_METADATA, query="prefix cursor"
    ),
    Route(
        "/names",
        "GET",
        reading.names,
        Event.STATES_LISTED,
        needs=Action.READ_METADATA,
        query="pattern cursor",
    ),
    Route(
        "/activity",
        "GET",
        activity.read,
        Event.ACTIVITY_READ,
        needs=Action.READ_ACTIVITY,
        query="state cursor since until",
    ),
    Route("/whoami", "GET", reading.whoami, Event.CALLER_DESCRIBED, needs=ANY_CALLER),
    Route("/states/{name+}", "GET", reading.state, Event.STATE_DESCRIBED, needs=Action.READ_METADATA),
    Route(
        "/versions/{name+}",
        "GET",
        reading.versions,
        Event.HISTORY_READ,
        needs=Action.READ_HISTORY,
        query="version cursor",
    ),
    Route(
        "/resolve/{name+}",
        "GET",
        reading.resolve,
        Event.HISTORY_READ,
        needs=Action.READ_HISTORY,
        query="version cursor",
    ),
    Route(
        "/content/{name+}",
        "GET",
        reading.content,
        Event.STATE_READ,
        needs=Action.READ_OUTPUTS,
        query="version",
        wanted=Action.READ,
    ),
    Route(
        "/diff/{name+}",
        "GET",
        differences.respond,
        Event.STATE_COMPARED,
        needs=Action.READ,
        query="from to values",
    ),
    Route(
        "/resources/{name+}",
        "GET",
        finding.resources,
        Event.STATE_DESCRIBED,
        needs=Action.READ,
        query="cursor",
    ),
    Route(
        "/attributes/{name+}",
        "GET",
        finding.attributes,
        Event.STATE_READ,
        needs=Action.READ,
        query="address version values",
    ),
    Route("/find", "POST", finding.find, Event.STATES_SEARCHED, needs=Action.READ),
    Route("/locks/{name+}", "GET", reading.lock, Event.LOCKS_LISTED, needs=Action.READ_METADATA),
    Route(
        "/locks/{name+}",
        "DELETE",
        changing.break_lock,
        Event.LOCK_FORCE_UNLOCKED,
        needs=Action.UNLOCK,
        query="id version reason",
    ),
    Route("/create/{name+}", "POST", changing.create, Event.STATE_DECLARED, needs=Action.WRITE),
    Route("/undeclare/{name+}", "POST", changing.undeclare, Event.STATE_UNDECLARED, needs=Action.DELETE),
    Route("/restore/{name+}", "POST", changing.restore, Event.STATE_RESTORED, needs=Action.RESTORE),
    Route("/delete/{name+}", "POST", changing.delete, Event.STATE_DELETED, needs=Action.DELETE),
    Route("/undelete/{name+}", "POST", changing.undelete, Event.STATE_UNDELETED, needs=Action.UNDELETE),
    Route("/freezes", "GET", reading.freezes, Event.LOCKS_LISTED, needs=Action.READ_METADATA),
    Route("/freezes", "PUT", changing.freeze_pattern, Event.STATE_FROZEN, needs=Action.FREEZE),
    Route(
        "/freezes",
        "DELETE",
        changing.unfreeze_pattern,
        Event.STATE_UNFROZEN,
        needs=Action.FREEZE,
        query="id cursor",
    ),
    Route("/freeze/{name+}", "PUT", changing.freeze, Event.STATE_FROZEN, needs=Action.FREEZE),
    Route(
        "/freeze/{name+}", "DELETE", changing.unfreeze, Event.STATE_UNFROZEN, needs=Action.FREEZE, query="id"
    ),
]
_ROUTER: Final = Router(
    _ROUTES, {"name": by_name(names.parse_no_probe)}, _refuse, prefix="/manage/v1", slash=True
)
