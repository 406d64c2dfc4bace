"""What API Gateway answers to anybody: the version of the backend, and two answers for clients of `cloud {}`.

Such a client asks where the API is before it has a token, and `terraform login` opens a page that says how to
get one.

How often strangers ask decides what it costs. So it imports neither the AWS SDK nor another package,
needs no permission but for its log, and logs nothing itself: API Gateway's access log has each request.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

from gateway.router import PUBLIC, Route, Router, pick
from holdfast.errors import HoldfastError

# Those of `gateway.responses`, whose import brings the SDK.
_JSON: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}
_PAGE: Final = {
    **_JSON,
    "Content-Type": "text/html; charset=utf-8",
    # Nothing is loaded or run, and nobody's page shows this one. The hash is that of the page's own style.
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; style-src 'sha256-dOAFgoAKFqv/rh7pw66noogkH+v2MSkloyz6KCURU3c='",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

# Relative, so that it holds under every host name. `cloud` and `terraform login` read the first key, `remote`
# the second, or the last one where it is told to run locally.
_SERVICES: Final = dict.fromkeys(("tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2"), "/api/v2/")

_VERSION: Final = json.dumps({"status": "ok", "version": os.environ["HOLDFAST_VERSION"]})
_TOKENS: Final = Path(__file__).with_name("tokens.html").read_text(encoding="utf-8")

_ROUTER: Final = Router(
    [
        Route("/health", "GET", lambda: (_JSON, _VERSION), None, needs=PUBLIC),
        Route(
            "/.well-known/terraform.json", "GET", lambda: (_JSON, json.dumps(_SERVICES)), None, needs=PUBLIC
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
        headers, body = {**_JSON, **error.headers()}, json.dumps(error.body())
        return {"statusCode": error.status, "headers": headers, "body": body}
    headers, body = route.handler()
    return {"statusCode": 200, "headers": headers, "body": body}
