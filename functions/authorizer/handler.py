"""Credentials -> principal, role and scope, for the API's authorizer (payload format 2.0, simple responses).

A refusal is an answer, and the gateway remembers it; a fault of S3 is raised, and the gateway answers 500
and remembers nothing.
"""

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from holdfast import credentials, tokens
from holdfast.store import Store, connect, deadline

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from holdfast.access import Caller

_BUCKET: Final = os.environ["HOLDFAST_BUCKET"]

_log = Logger()
_s3 = connect()


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Decide who sent a request.

    Args:
        event: a REQUEST authorizer's event, payload format 2.0.
        context: the invocation's.

    Raises:
        HoldfastError: S3 did not answer, or refuses the function.
        ValueError: the token's record is damaged.
    """
    # The identity source is what the gateway remembers the answer by, so it is all that may decide it.
    (authorization,) = event["identitySource"]
    store = Store(_s3, _BUCKET, deadline=deadline(context.get_remaining_time_in_millis()))
    sent = credentials.parse(authorization)
    caller: Caller | None = None
    token_id = None
    if isinstance(sent, credentials.TokenCredentials):
        token_id = sent.token_id
        found = store.read(tokens.token_key(token_id))
        token = tokens.Token.from_json(found.body) if found else None
        caller = tokens.verify(sent, token, now=datetime.now(UTC))
    logged = {
        "token": token_id,
        "request_id": event["requestContext"]["requestId"],
        "s3_requests": len(store.requests),
    }
    if caller is None:
        _log.warning("sign_in.refused", extra=logged)
        return {"isAuthorized": False}
    _log.info("sign_in.accepted", extra={**logged, "principal": caller.principal, "role": caller.role})
    return {
        "isAuthorized": True,
        "context": {
            "principal": caller.principal,
            "role": caller.role.value,
            "scope": json.dumps(caller.scope),
        },
    }
