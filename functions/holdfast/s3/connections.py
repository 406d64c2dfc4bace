"""A second connection to S3, opened while the first one waits for a response."""

from contextlib import suppress
from threading import Thread
from typing import Any, Final

THREAD: Final = "second-connection"


def open_second(client: Any) -> None:
    """Begin to open a second connection, for two requests at once, unless the client has two open ones.

    It returns at once, and sends no request. A client that has sent no request yet opens nothing: its first
    connection comes first.

    The names of botocore and urllib3 are private. Where one is missing, or the second connection fails, a
    request opens its own connection, and reports what is wrong.
    """
    with suppress(AttributeError):
        pools = client._endpoint.http_session._manager.pools  # noqa: SLF001 they have no public names
        for pool in [pools[key] for key in pools.keys()]:  # noqa: SIM118 it is no mapping
            # The pool hands out the connection that came back last. It has closed those that S3 has closed.
            first, second = pool._get_conn(), pool._get_conn()  # noqa: SLF001 they have no public name
            if second.is_closed:
                Thread(target=_open, args=(pool, second), name=THREAD, daemon=True).start()
            else:
                pool._put_conn(second)  # noqa: SLF001 it has no public name
            pool._put_conn(first)  # noqa: SLF001 it has no public name


def _open(pool: Any, connection: Any) -> None:
    try:
        connection.connect()
    except Exception:  # noqa: BLE001 the next request on this connection reports it
        connection.close()
    pool._put_conn(connection)  # noqa: SLF001 it has no public name
