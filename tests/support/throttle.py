"""API Gateway's limits as a template sets them, by token buckets, for the proxy that plays AWS.

AWS does not document whether the routes under the stage's limits share one bucket. Here they do, which is
harsher. It leaves out the limits of the account, and that AWS enforces its limits on a best-effort basis.
"""

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final, NamedTuple

DEFAULT: Final = "$default"
"""The key of the route for paths that no other route has."""


class Limits(NamedTuple):
    """The requests that a route accepts: `rate` a second, `burst` at once."""

    rate: float
    burst: float


def _limits(settings: Mapping[str, Any]) -> Limits:
    return Limits(settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"])


class Throttle:
    """Decides which requests to the API of a template get a 429.

    Attributes:
        stage: the limits of routes without limits of their own.
        own: the limits of the other routes, by route key.
    """

    def __init__(self, template: Mapping[str, Any], clock: Callable[[], float] = time.monotonic) -> None:
        resources = template["Resources"].values()
        (stage,) = (one["Properties"] for one in resources if one["Type"] == "AWS::ApiGatewayV2::Stage")
        self.stage = _limits(stage["DefaultRouteSettings"])
        self.own = {key: _limits(own) for key, own in stage["RouteSettings"].items()}
        routes = (one["Properties"] for one in resources if one["Type"] == "AWS::ApiGatewayV2::Route")
        self._keys = {key.removeprefix("ANY "): key for route in routes for key in [route["RouteKey"]]}
        self._left: dict[str, tuple[float, float]] = {}
        self._clock, self._lock = clock, Lock()

    def admits(self, target: str) -> bool:
        """Count a request, and return whether it passes; `target` is its path and its query."""
        path = target.partition("?")[0]
        greedy = (key for key in self._keys if "{" in key and path.startswith(key.partition("{")[0]))
        key = self._keys[path if path in self._keys else next(greedy, DEFAULT)]
        bucket, limits = (key, self.own[key]) if key in self.own else ("stage", self.stage)
        with self._lock:
            now = self._clock()
            left, since = self._left.get(bucket, (limits.burst, now))
            left = min(left + (now - since) * limits.rate, limits.burst)
            self._left[bucket] = (left - (left >= 1), now)
            return left >= 1
