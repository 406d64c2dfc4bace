"""S3 hangs longer than the function's timeout, at each request of an apply in turn.

The function gives up a request that hangs after 5 s and retries it. The first request still arrives much
later. The function waits for a response that trickles until Lambda kills it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from local_aws.terraform import terraforms
from tests.safety.figures import Figures
from tests.safety.wire.proxy import NONE, Fault, FaultProxy, Plan
from tests.safety.wire.stack import Stack
from tests.safety.wire.terraform import Checkout

if TYPE_CHECKING:
    from holdfast.names import StateName

Say = Callable[[str], None]


class Spot:
    """The requests of a command to S3 that hang.

    `name` appears in the progress and in the state's name. `lock`: requests to the lock, not to the state.
    `times`: how many requests hang, from the first on. `after_write`: only requests after the state's write.
    """

    def __init__(
        self, name: str, method: str, *, lock: bool = False, times: int = 1, after_write: bool = False
    ) -> None:
        self.name = name
        self.state: StateName | None = None
        self._method = method
        self._lock = lock
        self._left = times
        self._waits_for_write = after_write
        self._guard = threading.Lock()

    def is_hit(self, method: str, path: str) -> bool:
        """Return whether this request hangs. Called once for every request, in their order."""
        if self.state is None:
            return False
        with self._guard:
            if method == "PUT" and path.endswith(f"/{self.state.state_key}"):
                written, self._waits_for_write = self._waits_for_write, False
                if written:
                    return False
            key = self.state.lock_key if self._lock else self.state.state_key
            if self._waits_for_write or method != self._method or not path.endswith(f"/{key}"):
                return False
            self._left -= 1
            return self._left >= 0


def _spots() -> list[Spot]:
    return [
        Spot("acquire", "PUT", lock=True),
        Spot("head", "GET"),
        Spot("first-reading", "GET", lock=True),
        Spot("write", "PUT"),
        Spot("every-write", "PUT", times=4),
        Spot("second-reading", "GET", lock=True, after_write=True),
        Spot("release", "DELETE", lock=True),
    ]


_FAULTS: Final = (Fault.HANG, Fault.TRICKLE)


def run(*, seed: int, say: Say, stack: Stack, folder: Path) -> Figures:
    """Apply while S3 hangs, once for each request and each way to hang."""
    total = Figures()
    with ExitStack() as open_:
        s3 = open_.enter_context(FaultProxy(stack.aws.endpoint, NONE, seed))
        open_.callback(stack.route_functions_through, None)
        stack.route_functions_through(s3.endpoint)
        for fault in _FAULTS:
            total += _all_spots(fault, s3, seed, say, stack, folder)
        return total + Figures(faults=s3.faults)


def _all_spots(fault: Fault, s3: FaultProxy, seed: int, say: Say, stack: Stack, folder: Path) -> Figures:
    spots = _spots()
    terraform = terraforms()[0]

    def is_hit(method: str, path: str) -> bool:
        return any(spot.is_hit(method, path) for spot in spots)

    with ExitStack() as open_:
        checkouts = [
            open_.enter_context(
                Checkout(stack, terraform, folder / f"{fault.value}-{spot.name}", s3, seed, say)
            )
            for spot in spots
        ]

        def apply_twice(spot: Spot, checkout: Checkout) -> None:
            checkout.carry_through("before", NONE, NONE)
            spot.state = checkout.name
            tries = checkout.carry_through("while it hangs", NONE, NONE)
            say(f"{fault.value} at {spot.name}: applied at try {tries}")

        before = s3.faults
        s3.plan = Plan({fault: 1.0}, is_hit)
        with ThreadPoolExecutor(len(spots)) as together:
            try:
                for done in [
                    together.submit(apply_twice, *each) for each in zip(spots, checkouts, strict=True)
                ]:
                    done.result()
            except BaseException:
                for each in checkouts:
                    each.stop()
                raise
        s3.settle()
        s3.plan = NONE
        if s3.faults - before < len(spots):
            raise RuntimeError(f"only {s3.faults - before} requests did hang")
        for each in checkouts:
            each.last_look("while it hangs")
        return sum((each.figures for each in checkouts), Figures())
