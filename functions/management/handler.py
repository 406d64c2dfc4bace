"""The management API: event -> library -> response. It translates and decides nothing."""

import gc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from gateway.responses import Response, respond_with
from holdfast import names
from holdfast.errors import InvalidRequest, MethodNotAllowed, UnknownRoute
from holdfast.s3 import snapshot
from holdfast.s3.store import Store, connect, deadline
from management import activity, changing, documents, environment, reading
from management.requests import Request

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

_s3 = connect()
snapshot.prepare(
    _s3, environment.BUCKET, environment.ACCOUNT, names.StateName("").state_key, load=reading.signer
)
gc.freeze()  # nor is anything of it looked at later
gc.enable()

_Verbs = Mapping[str, Callable[[Request], Response]]

_LISTS: Final[Mapping[str, _Verbs]] = {
    "states": {"GET": reading.states},
    "locks": {"GET": reading.locks},
    "activity": {"GET": activity.read},
    "whoami": {"GET": reading.whoami},
}
"""The segment after `/manage/v1/` -> verb -> what responds, where no state is named."""

_OF_A_STATE: Final[Mapping[str, _Verbs]] = {
    "states": {"GET": reading.state},
    "versions": {"GET": reading.versions},
    "content": {"GET": reading.content},
    "diff": {"GET": reading.diff},
    "locks": {"GET": reading.lock, "DELETE": changing.break_lock},
    "create": {"POST": changing.create},
    "restore": {"POST": changing.restore},
    "delete": {"POST": changing.delete},
    "undelete": {"POST": changing.undelete},
    "freeze": {"PUT": changing.freeze, "DELETE": changing.unfreeze},
}
"""The same where the name of a state follows."""


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Respond to one request to the API.

    Args:
        event: an API Gateway HTTP API event, payload format 2.0.
        context: the invocation's.
    """
    until = deadline(context.get_remaining_time_in_millis())
    request = Request(event, Store(_s3, environment.BUCKET, environment.ACCOUNT, deadline=until))
    return respond_with(request, lambda: _respond(request), documents.error)


def _respond(request: Request) -> Response:
    method = request.event["requestContext"]["http"]["method"]
    route, named = request.route
    verbs = (_OF_A_STATE if named else _LISTS).get(route)
    if verbs is None:
        if route in _OF_A_STATE:
            raise InvalidRequest(f"Name the state in the address, as in /manage/v1/{route}/network/prod.")
        raise UnknownRoute(
            "The management API has no such route. Its routes are in docs/openapi.yaml; a command of another "
            "version than the deployed stack may ask for one that is not there."
        )
    if method not in verbs:
        raise MethodNotAllowed(method, tuple(verbs))
    request.require_authenticated()
    return verbs[method](request)
