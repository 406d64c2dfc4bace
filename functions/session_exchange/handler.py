"""Sessions on API Gateway: event -> library -> response. It translates and decides nothing."""

import gc
import json
import os
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gateway.payload import Payload
from gateway.requests import Request
from gateway.responses import Response, Routes, respond
from holdfast.audit import Event
from holdfast.identity import session_exchange, sessions, trust
from holdfast.identity.authentication import Authenticated
from holdfast.identity.records import written
from holdfast.s3 import snapshot
from holdfast.s3.store import Store, connect, deadline

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

_BUCKET: Final = os.environ["HOLDFAST_BUCKET"]
_ACCOUNT: Final = os.environ["HOLDFAST_ACCOUNT"]

_s3 = connect()
snapshot.prepare(_s3, _BUCKET, _ACCOUNT, trust.KEY)
gc.freeze()  # nor is anything of it looked at later
gc.enable()


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Respond to one request for a session.

    Args:
        event: an API Gateway HTTP API event, payload format 2.0.
        context: the invocation's.
    """
    store = Store(_s3, _BUCKET, _ACCOUNT, deadline=deadline(context.get_remaining_time_in_millis()))
    return respond(Request(event, store), _ROUTES)


def _for_id_token(request: Request) -> Response:
    bearer = request.require_authenticated()
    return _create(request, session_exchange.for_id_token(bearer, now=datetime.now(UTC)))


def _for_aws_role(request: Request) -> Response:
    records = partial(trust.read, request.store)
    return _create(request, session_exchange.for_aws_role(request.signer, _ACCOUNT, records))


def _create(request: Request, bearer: Authenticated) -> Response:
    seconds = sessions.seconds(request.body())
    session, secret = session_exchange.create(request.store, bearer, now=datetime.now(UTC), seconds=seconds)
    document = {
        "id": session.id,
        "secret": secret,
        "principal": session.principal,
        "role": bearer.caller.role,
        "scope": bearer.caller.scope,
        "trust": session.trust,
        "expires": written(session.expires),
        "seconds": seconds,
    }
    return Response(
        Event.SESSION_CREATED,
        200,
        Payload(json.dumps(document), is_base64=False),
        {"session": session.id, **bearer.log_fields()},
    )


_ROUTES: Final[Routes[Request]] = {
    "/sessions": {"POST": _for_id_token},
    "/sessions/aws": {"POST": _for_aws_role},
}
