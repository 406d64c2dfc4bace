"""A relay between a client and a server of this machine. It delays the traffic and counts the requests."""

import asyncio
import re
import selectors
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self, cast
from urllib.parse import urlsplit

_REQUEST: Final = re.compile(rb"[A-Z]+ \S+ HTTP/1\.1\r\n")
_PIECE: Final = 65_536


@dataclass(slots=True)
class Passed:
    """The new connections and requests that a relay has passed on, and the requests' seconds of latency."""

    connections: int = 0
    requests: int = 0
    latency: float = 0.0


@dataclass(slots=True)
class _Connection:
    """Times of a connection: when it is open, and the earliest response to its last request."""

    opened: float
    responds: float = 0.0


class Relay:
    """A relay on a loopback port, which runs while its context lasts.

    Every byte arrives half a round trip later, in order; the delays of a body's bytes overlap.

    Args:
        round_trip: seconds.
        connecting: the seconds before the first request on a new connection, by default two round trips: one
            for TCP and one for TLS 1.3.
        latency: returns the least seconds from a request's arrival to its response. It gets the request's
            first bytes.
    """

    def __init__(
        self,
        upstream: str,
        round_trip: float = 0.0,
        *,
        connecting: float | None = None,
        latency: Callable[[bytes], float] = lambda _: 0.0,
    ) -> None:
        url = urlsplit(upstream)
        self.endpoint = ""
        """The relay's base URL, without a trailing slash; empty until the relay runs."""
        self._upstream = (url.hostname, url.port)
        self._round_trip = round_trip
        self._connecting = 2 * round_trip if connecting is None else connecting
        self._latency = latency
        self._passed = Passed()
        self._open: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        # The default selector rounds every delay up to a whole millisecond.
        self._loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def waiting(self, passed: Passed) -> float:
        """Return the total delay in seconds of these connections and requests if no two of them overlap.

        >>> Relay("http://127.0.0.1", 0.5).waiting(Passed(connections=2, requests=4, latency=0.25))
        4.25
        """
        connecting = passed.connections * self._connecting
        return passed.requests * self._round_trip + connecting + passed.latency

    def take(self) -> Passed:
        """Return the counts since the last `take`. No request may be in flight during the call."""
        passed, self._passed = self._passed, Passed()
        return passed

    def disconnect(self) -> None:
        """Close every connection, as a server closes idle connections."""
        asyncio.run_coroutine_threadsafe(self._disconnect(), self._loop).result()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.endpoint = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _close(self) -> None:
        self._server.close()
        await self._disconnect()
        await asyncio.gather(*self._serving)

    async def _disconnect(self) -> None:
        for end in (ends := [*self._open]):
            end.close()
        await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        self._serving.add(this := cast("asyncio.Task[None]", asyncio.current_task()))
        this.add_done_callback(self._serving.discard)
        self._passed.connections += 1
        connection = _Connection(self._loop.time() + self._connecting)
        server, to_server = await asyncio.open_connection(*self._upstream)
        ends = {to_client, to_server}
        self._open |= ends
        await asyncio.gather(
            self._carry(client, to_server, connection, requests=True),
            self._carry(server, to_client, connection, requests=False),
        )
        self._open -= ends

    async def _carry(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        connection: _Connection,
        *,
        requests: bool,
    ) -> None:
        on_its_way = deque[bytes]()

        def arrive() -> None:
            if piece := on_its_way.popleft():
                target.write(piece)
            else:
                target.close()

        piece = b"-"
        while piece:
            try:
                piece = await source.read(_PIECE)
            except ConnectionResetError:
                piece = b""
            leaves = max(self._loop.time(), connection.opened)
            if requests and _REQUEST.match(piece):
                latency = self._latency(piece)
                self._passed.requests += 1
                self._passed.latency += latency
                connection.responds = leaves + self._round_trip / 2 + latency
            elif not requests:
                leaves = max(leaves, connection.responds)
            on_its_way.append(piece)
            self._loop.call_at(leaves + self._round_trip / 2, arrive)
