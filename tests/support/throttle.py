"""API Gateway's limits as a template sets them, by token buckets, for the proxy that plays AWS.

AWS does not document whether the routes under the stage's limits share one bucket. Here they do, which is
harsher. The limits of the account, and that AWS enforces none of them exactly, are left out.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

DEFAULT: Final = "$default"
"""The key of the route for paths that no other route has."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The requests that a route accepts: `rate` a second, `burst` at once."""

    rate: float
    burst: float


@dataclass(slots=True)
class _Bucket:
    limits: Limits
    tokens: float
    filled: float

    def takes(self, now: float) -> bool:
        added = (now - self.filled) * self.limits.rate
        self.tokens, self.filled = min(self.tokens + added, self.limits.burst), now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


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
        (settings,) = (one["Properties"] for one in resources if one["Type"] == "AWS::ApiGatewayV2::Stage")
        self.stage = _limits(settings["DefaultRouteSettings"])
        self.own = {key: _limits(own) for key, own in settings["RouteSettings"].items()}
        self._clock, self._lock = clock, Lock()
        shared = self._full(self.stage)
        self._buckets = {
            key.removeprefix("ANY "): self._full(self.own[key]) if key in self.own else shared
            for one in resources
            if one["Type"] == "AWS::ApiGatewayV2::Route"
            for key in [one["Properties"]["RouteKey"]]
        }

    def admits(self, target: str) -> bool:
        """Count a request, and return whether it passes; `target` is its path and its query."""
        path = target.partition("?")[0]
        greedy = (key for key in self._buckets if path.startswith(key.partition("{")[0]) and "{" in key)
        key = path if path in self._buckets else next(greedy, DEFAULT)
        with self._lock:
            return self._buckets[key].takes(self._clock())

    def _full(self, limits: Limits) -> _Bucket:
        return _Bucket(limits, limits.burst, self._clock())
