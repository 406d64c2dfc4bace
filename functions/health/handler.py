"""Respond to requests without credentials: the deployed version, and two routes for clients of `cloud {}`.

Such a client requests the API's address before it has a token, and `terraform login` opens a page that
explains how to get a token.

Anybody can call this function, so it must be cheap. It imports neither the AWS SDK nor another package, needs
only the permission to log, and logs nothing itself: API Gateway's access log contains each request.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

from gateway.headers import JSON
from gateway.router import PUBLIC, Route, Router, pick
from holdfast.errors import HoldfastError

_PAGE: Final = {
    **JSON,
    "Content-Type": "text/html; charset=utf-8",
    # The page loads and runs nothing, and cannot be framed. The hash is that of its style.
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; style-src 'sha256-dOAFgoAKFqv/rh7pw66noogkH+v2MSkloyz6KCURU3c='",
}

# Relative, so that it is valid under every host name. `cloud` and `terraform login` read the first key,
# `remote` the second, or the last one if it is configured to run locally.
_SERVICES: Final = dict.fromkeys(("tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2"), "/api/v2/")

_VERSION: Final = json.dumps({"status": "ok", "version": os.environ["HOLDFAST_VERSION"]})
_TOKENS: Final = Path(__file__).with_name("tokens.html").read_text(encoding="utf-8")

_ROUTER: Final = Router(
    [
        Route("/health", "GET", lambda: (JSON, _VERSION), None, needs=PUBLIC),
        Route(
            "/.well-known/terraform.json", "GET", lambda: (JSON, json.dumps(_SERVICES)), None, needs=PUBLIC
        ),
        Route("/app/settings/tokens", "GET", lambda: (_PAGE, _TOKENS), None, needs=PUBLIC),
    ]
)


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 Lambda's signature
    """Respond to one request without credentials."""
    try:
        verbs, _ = _ROUTER.match(event)
        route = pick(verbs, event["requestContext"]["http"]["method"])
    except HoldfastError as error:
        headers, body = {**JSON, **error.headers()}, json.dumps(error.body())
        return {"statusCode": error.status, "headers": headers, "body": body}
    headers, body = route.handler()
    return {"statusCode": 200, "headers": headers, "body": body}
