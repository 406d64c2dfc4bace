"""The session routes. They only translate events for the library, and the library's results to responses."""

import json
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gateway import function
from gateway.payload import Payload
from gateway.requests import Request
from gateway.responses import Response, respond
from gateway.router import ANY_CALLER, AWS_IDENTITY, Route, Router
from holdfast.access import described
from holdfast.audit import Event
from holdfast.identity import session_exchange, sessions, trust
from holdfast.identity.authentication import Authenticated
from holdfast.identity.records import written
from holdfast.networks import Origin
from holdfast.policy import Policy

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

_function = function.start()
_networks = Policy.from_environment("networks").networks


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Respond to one request for a session."""
    return respond(Request(event, _function, _function.budget(context)), _ROUTER)


def _for_id_token(request: Request) -> Response:
    bearer = request.require_authenticated()
    return _create(request, session_exchange.for_id_token(bearer, now=datetime.now(UTC)))


def _for_aws_role(request: Request) -> Response:
    records = partial(trust.read, request.store)
    origin = Origin(request.address, _networks, decides_alone=bool(_networks))
    return _create(request, session_exchange.for_aws_role(request.signer, _function.account, records, origin))


def _create(request: Request, bearer: Authenticated) -> Response:
    seconds = sessions.seconds(request.body())
    session, secret = session_exchange.create(request.store, bearer, now=datetime.now(UTC), seconds=seconds)
    document = {
        "id": session.id,
        "secret": secret,
        "principal": session.principal,
        **described(bearer.caller.grants),
        "trust": session.trust,
        "expires": written(session.expires),
        "seconds": seconds,
    }
    return Response(
        Payload(json.dumps(document), is_base64=False), {"session": session.id, **bearer.log_fields()}
    )


_ROUTER: Final = Router(
    [
        Route("/sessions", "POST", _for_id_token, Event.SESSION_CREATED, needs=ANY_CALLER),
        Route("/sessions/aws", "POST", _for_aws_role, Event.SESSION_CREATED, needs=AWS_IDENTITY),
    ]
)
