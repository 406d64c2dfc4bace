"""A proxy in front of an S3 server: it fails the requests that a test names, or lets the test act first."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.fault_relay import Fault, Injected, Relay, Request

__all__ = ["Fault", "S3FaultProxy"]


@dataclass
class _Rule:
    method: str
    suffix: str
    action: Fault | Callable[[], object]
    left: int


class S3FaultProxy(Relay):
    """A relay with rules for requests, each with a fault or a function to call."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream, self._apply)
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    def fail(self, method: str, suffix: str, fault: Fault, *, times: int = 1) -> None:
        """Fail the next requests with this method to a key with this suffix."""
        self._rules.append(_Rule(method, suffix, fault, times))

    def before(self, method: str, suffix: str, act: Callable[[], object]) -> None:
        """Call a function just before the next such request reaches the server, then pass the request on."""
        self._rules.append(_Rule(method, suffix, act, 1))

    def end_rules(self) -> int:
        """Remove every rule, and return how many of the faults and calls did not happen."""
        unused = sum(rule.left for rule in self._rules)
        self._rules.clear()
        return unused

    def _apply(self, request: Request) -> Injected | None:
        action = self._next_action(request)
        if isinstance(action, Fault):
            return Injected(action)
        if action:
            action()
        return None

    def _next_action(self, request: Request) -> Fault | Callable[[], object] | None:
        with self._lock:
            for rule in self._rules:
                if rule.left and rule.method == request.method and request.path.endswith(rule.suffix):
                    rule.left -= 1
                    return rule.action
        return None
