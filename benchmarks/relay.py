"""A relay between a client and a server of this machine. It delays the requests and counts them."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.support import fault_relay
from tests.support.fault_relay import Fault, Injected, Request


@dataclass(slots=True)
class Passed:
    """The new connections and requests that a relay has passed on, and the requests' seconds of latency."""

    connections: int = 0
    requests: int = 0
    latency: float = 0.0


class Relay(fault_relay.Relay):
    """A relay on a loopback port, which runs while its context lasts.

    Args:
        round_trip: seconds.
        connecting: the seconds before the first request on a new connection, by default two round trips: one
            for TCP and one for TLS 1.3.
        latency: returns the least seconds from a request's arrival to its response.
    """

    def __init__(
        self,
        upstream: str,
        round_trip: float = 0.0,
        *,
        connecting: float | None = None,
        latency: Callable[[Request], float] = lambda _: 0.0,
    ) -> None:
        super().__init__(upstream, self._delay, connected=self._count_connection)
        self._round_trip = round_trip
        self._connecting = 2 * round_trip if connecting is None else connecting
        self._latency = latency
        self._passed = Passed()
        self._counting = threading.Lock()

    def waiting(self, passed: Passed) -> float:
        """Return the total delay in seconds of these connections and requests if no two of them overlap.

        >>> with Relay("http://127.0.0.1", 0.5) as relay:
        ...     relay.waiting(Passed(connections=2, requests=4, latency=0.25))
        4.25
        """
        connecting = passed.connections * self._connecting
        return passed.requests * self._round_trip + connecting + passed.latency

    def take(self) -> Passed:
        """Return the counts since the last `take`. No request may be in flight during the call."""
        with self._counting:
            passed, self._passed = self._passed, Passed()
        return passed

    def _count_connection(self) -> None:
        with self._counting:
            self._passed.connections += 1

    def _delay(self, request: Request) -> Injected | None:
        latency = self._latency(request)
        with self._counting:
            self._passed.requests += 1
            self._passed.latency += latency
        connecting = max(0.0, request.connected + self._connecting - time.monotonic())
        delay = connecting + self._round_trip
        return Injected(Fault.DISTANCE, delay, server=latency) if delay or latency else None
