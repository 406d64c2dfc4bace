"""Acquire and release the lock of the probe through the API, as a client would."""

import json
import os
import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from holdfast import __version__
from holdfast.identity.credentials import basic
from holdfast.watching import Probe

OUTSIDE: Final = (
    "not tested: the API responded with 403, because the team's networks do not include the address of the "
    "function"
)
"""The result for a team with `networks`. The authorizer responds so before it reads a token's record, and
with the same to an invalid token, so this says nothing about the API."""
SECONDS: Final = 30.0
"""How long a response may take: API Gateway ends every request by then."""

# The same in every run, so that a probe acquires the lock that a killed one left.
_LOCK: Final = json.dumps(
    {"ID": "holdfast-watch", "Operation": "probe", "Info": "", "Who": "holdfast watch"}
).encode()


def run(address: str, probe: Probe, *, outside: bool = False) -> str:
    """Acquire and release the lock, and return why one of the two failed; empty if neither did.

    The acquire is sent a second time after no response, a 429 or a 5xx, which clients repeat, too.

    Args:
        outside: whether the team has `networks`. A Lambda function has no fixed address, so the authorizer
            refuses it, and the result is `OUTSIDE`.
    """
    failed, again = _send(address, probe, "PUT", "locks")
    if outside and failed.endswith(" 403"):
        return OUTSIDE
    if failed and again:
        failed, _ = _send(address, probe, "PUT", "locks")
    if not failed:
        failed, _ = _send(address, probe, "POST", "unlocks")
    return failed


def _send(address: str, probe: Probe, method: str, route: str) -> tuple[str, bool]:
    """Send a request, and return why it failed, and whether a client would repeat it."""
    parts, credentials = urlsplit(address), probe.credentials
    headers = {
        "Authorization": basic(credentials.token_id, credentials.secret),
        "Content-Type": "application/json",
        "User-Agent": f"holdfast/{__version__}",
    }
    try:
        with closing(_connection(parts.scheme, parts.hostname or "", parts.port)) as connection:
            connection.request(method, f"{parts.path}/{route}/{probe.state}", _LOCK, headers)
            status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        return f"no response to {method} /{route}: {type(error).__name__}", True
    if status == 200:
        return "", False
    return f"the API responded to {method} /{route} with {status}", status == 429 or status >= 500


def _connection(scheme: str, host: str, port: int | None) -> HTTPConnection:
    if scheme == "http":
        return HTTPConnection(host, port, timeout=SECONDS)
    # The variable of the SDK, so that API and S3 are trusted alike.
    context = ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE"))
    return HTTPSConnection(host, port, timeout=SECONDS, context=context)
