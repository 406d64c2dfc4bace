"""The health on API Gateway: anybody may ask which version of the backend is deployed.

Whoever asks, and how often, decides what it costs. So it imports neither the AWS SDK nor another package,
needs no permission but for its log, and logs nothing itself: API Gateway's access log has each request.
"""

import json
import os
from typing import Any, Final

from holdfast.errors import MethodNotAllowed

_HEALTH: Final = json.dumps({"status": "ok", "version": os.environ["HOLDFAST_VERSION"]})

# Those of `gateway.responses`, whose import brings the SDK.
_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 Lambda's signature
    """Respond to one request for the health.

    Args:
        event: an API Gateway HTTP API event, payload format 2.0.
        context: the invocation's.
    """
    method = event["requestContext"]["http"]["method"]
    if method == "GET":
        return {"statusCode": 200, "headers": _HEADERS, "body": _HEALTH}
    error = MethodNotAllowed(method, ("GET",))
    return {
        "statusCode": error.status,
        "headers": {**_HEADERS, **error.headers()},
        "body": json.dumps(error.body()),
    }
