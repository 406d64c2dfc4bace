"""Bounded HTTP requests for the documents of OIDC issuers."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Timer
from typing import Final
from urllib.parse import urlsplit

from holdfast import __version__

BUDGET: Final = 5.0
"""Seconds that the requests for an issuer's keys may take."""
MAX_BYTES: Final = 256 * 1024
"""The largest size of each of an issuer's two documents."""

_CONNECT_TIMEOUT = 2.0
_READ_TIMEOUT = 3.0


class IssuerUnreachable(Exception):  # noqa: N818 named by what happened, as the domain's errors are
    """An issuer's keys could not be fetched, so that its tokens can be neither verified nor denied."""


def get(address: str) -> bytes:
    """Fetch a document; raise `IssuerUnreachable` if it is late or too large. Redirects are not followed."""
    parts = urlsplit(address)
    connection_to = HTTPConnection if parts.scheme == "http" else HTTPSConnection
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {"Accept": "application/json", "User-Agent": f"holdfast/{__version__}"}
    try:
        with closing(connection_to(parts.hostname or "", parts.port, timeout=_CONNECT_TIMEOUT)) as connection:
            connection.connect()
            connection.sock.settimeout(_READ_TIMEOUT)
            with _ended_after(BUDGET, connection.sock):
                connection.request("GET", path, headers=headers)
                with connection.getresponse() as response:
                    if response.status != 200:
                        raise IssuerUnreachable(f"{address} responded with {response.status}")
                    body = response.read(MAX_BYTES + 1)
    except (OSError, HTTPException) as error:
        raise IssuerUnreachable(f"{address} did not respond: {type(error).__name__}") from error
    if len(body) > MAX_BYTES:
        raise IssuerUnreachable(f"the document at {address} has more than {MAX_BYTES} bytes")
    return body


@contextmanager
def _ended_after(seconds: float, connected: socket.socket) -> Iterator[None]:
    """Shut a connection down after some seconds: socket time-outs alone do not stop a trickling response."""

    def end() -> None:
        with suppress(OSError):  # it has ended meanwhile
            # TLS's own shutdown would end the TLS session while another thread reads.
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
