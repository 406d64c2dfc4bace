"""A proxy in front of an S3 server: what a test names goes wrong, or lets others go first."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.fault_relay import Fault, Injected, Relay, Request

__all__ = ["Fault", "S3FaultProxy", "running"]


@dataclass
class _Rule:
    method: str
    suffix: str
    action: Fault | Callable[[], object]
    left: int


class S3FaultProxy:
    """What shall happen to which request; `endpoint` is where the proxy listens."""

    endpoint: str

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    def fail(self, method: str, suffix: str, fault: Fault, *, times: int = 1) -> None:
        """Let the next requests with this method, to a key that ends so, go wrong."""
        self._rules.append(_Rule(method, suffix, fault, times))

    def before(self, method: str, suffix: str, act: Callable[[], object]) -> None:
        """Do something just before the next such request reaches the server, then let it through."""
        self._rules.append(_Rule(method, suffix, act, 1))

    def end_rules(self) -> int:
        """Forget every fault and say how many of those that were asked for did not happen."""
        unused = sum(rule.left for rule in self._rules)
        self._rules.clear()
        return unused

    def decide(self, request: Request) -> Injected | None:
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


@contextmanager
def running(upstream: str) -> Iterator[S3FaultProxy]:
    """Run a proxy in front of an S3 server for as long as the context lasts."""
    proxy = S3FaultProxy()
    with Relay(upstream, proxy.decide) as relay:
        proxy.endpoint = relay.endpoint
        yield proxy
