"""What the stand-ins for AWS and for the distance to it take of a request themselves."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Final
from urllib.parse import urlsplit

from benchmarks.figures import Figure
from benchmarks.relay import Passed, Relay
from benchmarks.stack import Client, PlainS3, Stack

_GATEWAY: Final = "a request to the gateway"
_INVOCATION: Final = "an invocation"
_METHODS: Final = ("PUT", "GET", "HEAD", "DELETE")
_SAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Share:
    """Milliseconds that the stand-ins take of one request, at one time.

    Attributes:
        gateway: of a request to the gateway.
        invocation: of an invocation of a function.
        s3: of a request to S3, by method.
    """

    gateway: float
    invocation: float
    s3: Mapping[str, float]

    def of_holdfast(self, api: Passed, s3: Passed) -> float:
        """Milliseconds of a command through Holdfast that signs in once.

        Args:
            api: the client's requests.
            s3: those of the functions.

        >>> from collections import Counter
        >>> share = Share(5, 3, {"GET": 1, "PUT": 2})
        >>> share.of_holdfast(Passed(1, Counter(GET=2, PUT=1)), Passed(2, Counter(GET=3, PUT=1)))
        32
        """
        requests = api.requests.total()
        # Every request invokes the backend, and the first one the authorizer.
        return requests * self.gateway + (requests + 1) * self.invocation + self.of_s3(s3)

    def of_s3(self, passed: Passed) -> float:
        """Milliseconds of these requests to S3."""
        return sum(count * self.s3[method] for method, count in passed.requests.items())


class Emulator:
    """The local AWS behind its relays, asked for what needs next to nothing of a function or of S3.

    Args:
        stack: the deployed team.
        to_aws: the relay between client and AWS.
        to_s3: the relay between functions and S3.
    """

    def __init__(self, stack: Stack, to_aws: Relay, to_s3: Relay) -> None:
        self._client = Client(replace(stack, address=to_aws.endpoint + urlsplit(stack.address).path))
        self._s3 = PlainS3(stack, to_s3.endpoint)
        self._round_trips = (to_aws.round_trip, to_s3.round_trip)
        self._shares: list[Share] = []

    def sample(self) -> Share:
        """Ask for each kind of request a few times; what exceeds the round trip is the stand-ins' share."""
        to_aws, to_s3 = self._round_trips
        self._s3.close()  # whoever has the relay may have closed it, and a new connection takes longer
        self._ask_s3("PUT")
        noted = defaultdict[str, list[float]](list)
        for _ in range(_SAMPLES):
            # Without credentials the gateway answers. With a wrong method the function does, and no more.
            gateway = self._ask_api(401, anonymous=True)
            noted[_GATEWAY].append(gateway - to_aws)
            noted[_INVOCATION].append(self._ask_api(405, anonymous=False) - gateway)
            for method in _METHODS:
                noted[method].append(self._ask_s3(method) - to_s3)
        ms = {kind: median(seconds) * 1000 for kind, seconds in noted.items()}
        self._shares.append(Share(ms[_GATEWAY], ms[_INVOCATION], {method: ms[method] for method in _METHODS}))
        return self._shares[-1]

    def figures(self) -> Iterator[Figure]:
        """Yield what was measured."""
        yield Figure.of(f"emulator: {_GATEWAY}", "ms", [share.gateway for share in self._shares])
        yield Figure.of(f"emulator: {_INVOCATION}", "ms", [share.invocation for share in self._shares])
        for method in _METHODS:
            yield Figure.of(f"emulator: S3's {method}", "ms", [share.s3[method] for share in self._shares])

    def _ask_api(self, expect: int, *, anonymous: bool) -> float:
        return self._client.ask("GET", "/locks/benchmark/emulator", expect=expect, anonymous=anonymous)

    def _ask_s3(self, method: str) -> float:
        return self._s3.ask(method, "benchmark/emulator", b"{}" if method == "PUT" else None)
