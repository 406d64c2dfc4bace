"""A proxy that injects faults at random: between the functions and S3, or between a client and the API."""

import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.support.fault_relay import REFUSALS, Exchange, Fault, Injected, Relay, Request, s3_refusal


def _everywhere(fault: Fault, request: Request) -> bool:  # noqa: ARG001 the filter's signature
    return True


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults to inject, and their chances.

    `chances` has the chance of each fault per request; together at most 1. `only` selects the requests that
    a fault may meet. `latency` and `late` are the least and most seconds of `LATENCY` and `LATE`, `hang`
    those of `HANG` and `TRICKLE`; the function's timeout is 25 s.
    """

    chances: Mapping[Fault, float] = field(default_factory=dict)
    only: Callable[[Fault, Request], bool] = _everywhere
    latency: tuple[float, float] = (0.001, 0.1)
    late: tuple[float, float] = (0.01, 3.0)
    hang: tuple[float, float] = (26.0, 28.0)

    @classmethod
    def evenly(
        cls, chance: float, *faults: Fault, only: Callable[[Fault, Request], bool] = _everywhere
    ) -> "Plan":
        """Return a plan in which `chance` is the chance of any of these faults."""
        return cls(dict.fromkeys(faults, chance / len(faults)), only)


NONE: Final = Plan()
_BOTH: Final = (
    Fault.NEVER_ARRIVES,
    Fault.ANSWER_LOST,
    Fault.RESET,
    Fault.HALF_AN_ANSWER,
    Fault.SERVER_ERROR,
    Fault.SERVER_ERROR_AFTERWARDS,
    Fault.SLOW_DOWN,
    Fault.LATENCY,
)
S3_FAULTS: Final = (*_BOTH, Fault.HALF_THE_HEADERS, Fault.CONFLICT, Fault.LATE)
"""Every short fault of a request to S3."""
API_FAULTS: Final = _BOTH
"""Every short fault of a request to the API."""

_TIMES: Final[Mapping[Fault, Callable[[Plan], tuple[float, float]]]] = {
    Fault.LATENCY: lambda plan: plan.latency,
    Fault.LATE: lambda plan: plan.late,
    Fault.HANG: lambda plan: plan.hang,
    Fault.TRICKLE: lambda plan: plan.hang,
}


def gateway_refusal(fault: Fault) -> tuple[int, str, bytes]:
    """Return the response of API Gateway itself, without the function."""
    status, _ = REFUSALS[fault]
    message = "Service Unavailable" if status == 503 else "Internal Server Error"
    return status, "application/json", json.dumps({"message": message}).encode()


class FaultProxy(Relay):
    """A relay that chooses faults at random; the seed and the order of the requests determine them.

    `plan` may be changed at any time, for later requests. Under `NONE`, requests do not count for the order.
    `happened` counts how often each fault did happen.
    """

    def __init__(
        self,
        upstream: str,
        plan: Plan,
        seed: int,
        *,
        refusal: Callable[[Fault], tuple[int, str, bytes]] = s3_refusal,
        heard: Callable[[Exchange], None] = lambda _: None,
    ) -> None:
        super().__init__(upstream, self._choose, refusal=refusal, happened=self._count, heard=heard)
        self.plan = plan
        self.happened: Counter[Fault] = Counter()
        self._random = random.Random(seed)  # noqa: S311 choices that can be repeated
        self._lock = threading.Lock()

    @property
    def faults(self) -> int:
        """How many faults did happen. A mere delay does not count."""
        with self._lock:
            return self.happened.total() - self.happened[Fault.LATENCY]

    def _choose(self, request: Request) -> Injected | None:
        plan = self.plan
        if plan == NONE:
            return None
        with self._lock:  # draws as many numbers for every request, with a fault or without
            which, how_long, at = (self._random.random() for _ in range(3))
        ends = itertools.accumulate(plan.chances.values())
        chosen = (fault for fault, end in zip(plan.chances, ends, strict=True) if which < end)
        fault = next(chosen, None)
        if fault is None or not _can_meet(fault, request) or not plan.only(fault, request):
            return None
        least, most = _TIMES[fault](plan) if fault in _TIMES else (0.0, 0.0)
        return Injected(fault, least + (most - least) * how_long, at)

    def _count(self, fault: Fault) -> None:
        with self._lock:
            self.happened[fault] += 1


def _can_meet(fault: Fault, request: Request) -> bool:
    match fault:
        case Fault.RESET:
            return request.has_body
        case Fault.CONFLICT:
            return request.is_conditional_write
        case _:
            return True
