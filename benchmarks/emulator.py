"""What the stand-ins for AWS and for the distance to it take of a request themselves."""

import http.client
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Final
from urllib.parse import urlsplit

from benchmarks.figures import Figure
from benchmarks.relay import Passed, Relay
from benchmarks.stack import Client, Stack

_GATEWAY: Final = "a request to the gateway"
_INVOCATION: Final = "an invocation"


class Emulator:
    """The local AWS behind its relays, asked for what needs next to nothing of a function or of S3.

    Args:
        stack: the deployed team.
        to_aws: the relay between client and AWS.
        to_s3: the relay between functions and S3.
    """

    def __init__(self, stack: Stack, to_aws: Relay, to_s3: Relay) -> None:
        self._client = Client(replace(stack, address=to_aws.endpoint + urlsplit(stack.address).path))
        self._s3 = http.client.HTTPConnection(urlsplit(to_s3.endpoint).netloc, timeout=60)
        self._object = f"/{stack.bucket}/native/benchmark/emulator"
        self._round_trips = (to_aws.round_trip, to_s3.round_trip)
        self._milliseconds = defaultdict[str, list[float]](list)

    def sample(self, times: int) -> None:
        """Ask for each kind of request; what exceeds the round trip is noted."""
        to_aws, to_s3 = self._round_trips
        for _ in range(times):
            # Without credentials the gateway answers; with a wrong verb the function, and does nothing else.
            gateway = self._ask_api(401, anonymous=True)
            self._note(_GATEWAY, gateway - to_aws)
            self._note(_INVOCATION, self._ask_api(405, anonymous=False) - gateway)
            for method in ("PUT", "GET", "HEAD", "DELETE"):
                self._note(f"S3's {method}", self._ask_s3(method) - to_s3)

    def of_holdfast(self, api: Passed, s3: Passed) -> float:
        """Milliseconds of a command through Holdfast that signs in once.

        Args:
            api: the client's requests.
            s3: those of the functions.
        """
        requests = api.requests.total()
        # Every request invokes the backend, and the first one the authorizer.
        return requests * self._one(_GATEWAY) + (requests + 1) * self._one(_INVOCATION) + self.of_s3(s3)

    def of_s3(self, passed: Passed) -> float:
        """Milliseconds of these requests to S3."""
        return sum(count * self._one(f"S3's {method}") for method, count in passed.requests.items())

    def figures(self) -> Iterator[Figure]:
        """Yield what was measured."""
        for kind, values in self._milliseconds.items():
            yield Figure.of(f"emulator: {kind}", "ms", values)

    def _one(self, kind: str) -> float:
        return median(self._milliseconds[kind])

    def _note(self, kind: str, seconds: float) -> None:
        self._milliseconds[kind].append(seconds * 1000)

    def _ask_api(self, expect: int, *, anonymous: bool) -> float:
        return self._client.ask("GET", "/locks/benchmark/emulator", expect=expect, anonymous=anonymous)

    def _ask_s3(self, method: str) -> float:
        started = time.perf_counter()
        self._s3.request(method, self._object, b"{}" if method == "PUT" else None)
        answer = self._s3.getresponse()
        answer.read()
        seconds = time.perf_counter() - started
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"S3 answered {method} with {answer.status}")
        return seconds
