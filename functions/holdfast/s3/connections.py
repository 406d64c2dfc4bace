"""A second connection to S3, opened while the first one waits for a response."""

import ssl
import time
from contextlib import suppress
from select import select
from threading import Thread
from typing import Any, Final

THREAD: Final = "second-connection"

_TICKETS: Final = 0.1
"""Seconds after a TLS handshake in which the server may send session tickets."""


def open_second(client: Any) -> None:
    """Begin to open a second connection, for two requests at once, unless the client has two open ones.

    It returns at once, and sends no request. A client that has sent no request yet opens nothing: its first
    connection comes first.

    The names of botocore and urllib3 are private. Where one is missing, no thread can start, or the second
    connection fails, a request opens its own connection, and reports what is wrong.
    """
    with suppress(AttributeError, RuntimeError):
        pools = client._endpoint.http_session._manager.pools  # noqa: SLF001 they have no public names
        for pool in [pools[key] for key in pools.keys()]:  # noqa: SIM118 it is no mapping
            _open_second(pool)


def _open_second(pool: Any) -> None:
    # The pool hands out the connection that came back last. It has closed those that S3 has closed.
    back = [pool._get_conn(), pool._get_conn()]  # noqa: SLF001 it has no public name
    try:
        if back[1].is_closed:
            Thread(target=_open, args=(pool, back[1]), name=THREAD, daemon=True).start()
            del back[1]
    finally:
        for connection in reversed(back):
            pool._put_conn(connection)  # noqa: SLF001 it has no public name


def _open(pool: Any, connection: Any) -> None:
    try:
        connection.connect()
        if isinstance(connection.sock, ssl.SSLSocket):
            _receive_tickets(connection.sock)
    except Exception:  # noqa: BLE001 the next request on this connection reports it
        connection.close()
    pool._put_conn(connection)  # noqa: SLF001 it has no public name


def _receive_tickets(sock: ssl.SSLSocket) -> None:
    """Receive the session tickets of TLS 1.3. With bytes to read, urllib3 takes a connection for closed."""
    ends = time.monotonic() + _TICKETS
    timeout = sock.gettimeout()
    sock.settimeout(0)
    while select([sock], [], [], max(0, ends - time.monotonic()))[0]:
        try:
            sock.recv(1)
        except ssl.SSLWantReadError:
            continue  # it has received tickets alone
        raise ConnectionError
    sock.settimeout(timeout)
