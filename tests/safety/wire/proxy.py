"""A proxy that injects faults at random: between the functions and S3, or between a client and the API."""

import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tests.support.fault_relay import REFUSALS, Exchange, Fault, Injected, Relay, Request, s3_refusal

__all__ = ["API_FAULTS", "NONE", "S3_FAULTS", "Exchange", "Fault", "FaultProxy", "Plan", "Side"]


class Side(Enum):
    """The server behind the proxy."""

    S3 = "s3"
    API = "api"


def _everything(method: str, path: str) -> bool:  # noqa: ARG001 the filter's signature
    return True


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults to inject, and their chances.

    `chances` has the chance of each fault per request; together at most 1. `only` selects requests by method
    and path. `never` excludes a fault for a method and the end of a path. `latency` and `late` are the least
    and most seconds of `LATENCY` and `LATE`, `hang` those of `HANG` and `TRICKLE`; the function's timeout is
    25 s.
    """

    chances: Mapping[Fault, float] = field(default_factory=dict)
    only: Callable[[str, str], bool] = _everything
    never: Collection[tuple[Fault, str, str]] = ()
    latency: tuple[float, float] = (0.001, 0.1)
    late: tuple[float, float] = (0.01, 3.0)
    hang: tuple[float, float] = (26.0, 28.0)

    def __post_init__(self) -> None:
        if sum(self.chances.values()) > 1 + 1e-9:
            raise ValueError("the chances of all faults together are at most 1")

    @classmethod
    def always(cls, fault: Fault, only: Callable[[str, str], bool] = _everything) -> "Plan":
        return cls({fault: 1.0}, only)


def _evenly(chance: float, *faults: Fault) -> dict[Fault, float]:
    return dict.fromkeys(faults, chance / len(faults))


def s3_faults(chance: float) -> Plan:
    """Return a plan with every short fault. `chance` is the chance of any fault in a request to S3."""
    return Plan(
        _evenly(
            chance,
            Fault.NEVER_ARRIVES,
            Fault.ANSWER_LOST,
            Fault.RESET,
            Fault.HALF_AN_ANSWER,
            Fault.HALF_THE_HEADERS,
            Fault.SERVER_ERROR,
            Fault.SERVER_ERROR_AFTERWARDS,
            Fault.SLOW_DOWN,
            Fault.CONFLICT,
            Fault.LATE,
            Fault.LATENCY,
        )
    )


def api_faults(chance: float) -> Plan:
    """Return a plan with every short fault. `chance` is the chance of any fault in a request to the API."""
    return Plan(
        _evenly(
            chance,
            Fault.NEVER_ARRIVES,
            Fault.ANSWER_LOST,
            Fault.RESET,
            Fault.HALF_AN_ANSWER,
            Fault.SERVER_ERROR,
            Fault.SERVER_ERROR_AFTERWARDS,
            Fault.SLOW_DOWN,
            Fault.LATENCY,
        )
    )


NONE: Final = Plan()
S3_FAULTS: Final = s3_faults(0.05)
API_FAULTS: Final = api_faults(0.08)

_OF_S3_ALONE: Final = frozenset({Fault.CONFLICT, Fault.LATE, Fault.DENIED, Fault.CLOCK_SKEWED})
_TIMES: Final[Mapping[Fault, Callable[[Plan], tuple[float, float]]]] = {
    Fault.LATENCY: lambda plan: plan.latency,
    Fault.LATE: lambda plan: plan.late,
    Fault.HANG: lambda plan: plan.hang,
    Fault.TRICKLE: lambda plan: plan.hang,
}


def _excluded(plan: Plan, fault: Fault, request: Request) -> bool:
    return any(
        fault is excluded and request.method == method and request.path.endswith(end)
        for excluded, method, end in plan.never
    )


def _gateway_refusal(fault: Fault) -> tuple[int, str, bytes]:
    """Return the response of API Gateway itself, without the function."""
    status, _ = REFUSALS[fault]
    message = "Service Unavailable" if status == 503 else "Internal Server Error"
    return status, "application/json", json.dumps({"message": message}).encode()


class FaultProxy(Relay):
    """A relay that chooses faults at random; the seed and the order of the requests determine them.

    `plan` may be changed at any time, for later requests. `happened` counts how often each fault did happen.
    """

    def __init__(
        self,
        upstream: str,
        plan: Plan,
        seed: int,
        *,
        side: Side = Side.S3,
        heard: Callable[[Exchange], None] = lambda _: None,
    ) -> None:
        refusal = s3_refusal if side is Side.S3 else _gateway_refusal
        super().__init__(upstream, self._choose, refusal=refusal, happened=self._count, heard=heard)
        self.plan = plan
        self.happened: Counter[Fault] = Counter()
        self._side = side
        self._random = random.Random(seed)  # noqa: S311 choices that can be repeated
        self._lock = threading.Lock()

    @property
    def faults(self) -> int:
        """How many faults did happen. A mere delay does not count."""
        with self._lock:
            return self.happened.total() - self.happened[Fault.LATENCY]

    def _choose(self, request: Request) -> Injected | None:
        plan = self.plan
        if not plan.chances or not plan.only(request.method, request.path):
            return None
        with self._lock:  # draws as many numbers for every request, with a fault or without
            which, how_long, at = (self._random.random() for _ in range(3))
        ends = itertools.accumulate(plan.chances.values())
        chosen = (fault for fault, end in zip(plan.chances, ends, strict=True) if which < end)
        fault = next(chosen, None)
        if fault is None or not self._can_happen(fault, request) or _excluded(plan, fault, request):
            return None
        least, most = _TIMES[fault](plan) if fault in _TIMES else (0.0, 0.0)
        return Injected(fault, least + (most - least) * how_long, at)

    def _can_happen(self, fault: Fault, request: Request) -> bool:
        match fault:
            case _ if self._side is Side.API and fault in _OF_S3_ALONE:
                return False
            case Fault.RESET:
                return request.has_body
            case Fault.CONFLICT:
                return request.is_conditional_write
            case _:
                return True

    def _count(self, fault: Fault) -> None:
        with self._lock:
            self.happened[fault] += 1
