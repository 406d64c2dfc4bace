"""Serve the files of the console, a page that is a client of the management API.

Anybody can call this function, so it must be cheap. It imports neither the AWS SDK nor another package, needs
only the permission to log, and logs nothing itself: API Gateway's access log contains each request.

It never responds with `404` or `204`, and an unknown path gets no page: `backend "http"` would read a missing
state from the first two, and an acquired lock from the last one.
"""

import base64
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from gateway.headers import JSON, PROTECTED, accepts_gzip
from gateway.router import PUBLIC, Route, Router, pick, text
from holdfast.errors import HoldfastError, UnknownRoute

_FILES: Final = Path(__file__).with_name("files")
"""The built files, and `files.json`, which lists them."""
_INDEX: Final = "index.html"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The page runs its own scripts, requests its own API, and cannot be framed."""

Response = dict[str, Any]


@cache
def _listed() -> Mapping[str, Mapping[str, Any]]:
    """Return `files.json`: the type and the caching of each file, by name."""
    listed: Mapping[str, Mapping[str, Any]] = json.loads((_FILES / "files.json").read_bytes())
    return listed


@cache
def _content(name: str) -> str:
    return base64.b64encode((_FILES / name).read_bytes()).decode()


def _file(event: Mapping[str, Any], name: str = _INDEX) -> Response:
    """Return a listed file; raise `UnknownRoute` for any other name."""
    if name not in _listed():
        raise UnknownRoute(
            "The console does not have this file. Open the console: its address is the API's address, "
            "followed by /console/."
        )
    file = _listed()[name]
    headers = {
        **PROTECTED,
        "Content-Security-Policy": _POLICY,
        "Content-Type": file["type"],
        "Cache-Control": file["cache"],
        "Vary": "Accept-Encoding",
    }
    if not file["opener"]:  # the policy would also hide the window that hands a session over
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
    if accepts_gzip(event["headers"].get("accept-encoding", "")):
        headers["Content-Encoding"] = "gzip"
        name += ".gz"
    return {"statusCode": 200, "headers": headers, "body": _content(name), "isBase64Encoded": True}


def _to_index(*_: object) -> Response:
    """Redirect to the path with a slash, below which the page finds its files. It is relative."""
    return {"statusCode": 308, "headers": {**JSON, "Location": "console/"}, "body": ""}


_ROUTER: Final = Router(
    [
        Route("/console", "GET HEAD", _to_index, None, needs=PUBLIC),
        # API Gateway has no route of this path: it calls the next one with an empty parameter.
        Route("/console/", "GET HEAD", _file, None, needs=PUBLIC),
        Route("/console/{path+}", "GET HEAD", _file, None, needs=PUBLIC),
    ],
    {"path": text},
)


def handle(event: dict[str, Any], context: object) -> Response:  # noqa: ARG001 Lambda's signature
    """Respond to one request for a file of the console."""
    method = event["requestContext"]["http"]["method"]
    try:
        verbs, target = _ROUTER.match(event)
        route = pick(verbs, method)
        if isinstance(target, HoldfastError):
            raise target
        response: Response = route.handler(event, *target.arguments)
    except HoldfastError as error:
        headers, body = {**JSON, **error.headers()}, json.dumps(error.body())
        return {"statusCode": error.status, "headers": headers, "body": body}
    if method == "HEAD":
        response |= {"body": "", "isBase64Encoded": False}
    return response
