"""The protocol of `cloud {}` and `backend "remote"` on API Gateway: no call of it is answered yet."""

import json
from typing import Any, Final

_NOT_YET: Final = {
    "statusCode": 501,
    "headers": {"Content-Type": "application/vnd.api+json", "Cache-Control": "no-store"},
    "body": json.dumps(
        {"errors": [{"status": "501", "title": "not implemented", "detail": "There are no workspaces yet."}]}
    ),
}


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 Lambda's signature
    """Respond to one request to the API.

    Args:
        event: an API Gateway HTTP API event, payload format 2.0.
        context: the invocation's.
    """
    return _NOT_YET
