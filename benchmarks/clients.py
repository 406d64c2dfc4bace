"""Many clients at once, each on a state of its own, beside one client alone."""

import http
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Final

from benchmarks.figures import Figure, Section
from benchmarks.run import Run, tell
from benchmarks.stack import Client, Stack
from benchmarks.state import state

_CLIENTS: Final = 8
_SECONDS: Final = 3.0
"""How long each of the two sides of a round takes."""
_TO_START: Final = 0.5
_BYTES: Final = 10_000

_NOTES: Final = (
    f"{_CLIENTS} clients on {_CLIENTS} states, in turn with one alone. A run is lock, read, write, unlock.",
    "All share this machine's cores: the clients, the local AWS, which is one process, and a process for",
    "  each concurrent request to a function. AWS runs each in an environment of its own, so these figures",
    "  are no forecast of how many clients there can be.",
)


@dataclass(slots=True)
class Done:
    """What clients did in some seconds.

    Attributes:
        writes: that were acknowledged.
        seconds: how long it took.
        requests: milliseconds of each.
        runs: milliseconds of each lock, read, write and unlock together.
        refused: how often which status refused a request, or nothing answered it.
    """

    writes: int = 0
    seconds: float = 0.0
    requests: list[float] = field(default_factory=list)
    runs: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that so many percent of the values do not exceed, interpolated.

    >>> percentile([1.0, 2.0, 3.0, 4.0, 5.0], 50), percentile([7.0], 99)
    (3.0, 7.0)
    """
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]


def measure(run: Run) -> Section:
    """Let one client and all of them work in turn.

    Raises:
        RuntimeError: some seconds went by without an acknowledged write.
    """
    clients = [_Worker(run.stack, number) for number in range(_CLIENTS)]
    # Each starts a process of each function; all at once would take long.
    for count in range(1, _CLIENTS + 1):
        _work(clients[:count], _TO_START)
    alone: list[Done] = []
    together: list[Done] = []
    sides = [(alone, clients[:1]), (together, clients)]
    for number in range(run.rounds):
        tell(f"round {number + 1} of {run.rounds}")
        for side, some in sides:
            side.append(_work(some))
        sides.reverse()
    return Section(f"{_CLIENTS} clients at once", [*_figures(alone, together)], _NOTES)


class _Worker:
    """A client that works on its own state, again and again."""

    def __init__(self, stack: Stack, number: int) -> None:
        self._client = Client(stack)
        self._name = f"benchmark/clients/{number}"
        self._lock = json.dumps({"ID": f"client-{number}", "Operation": "benchmark", "Who": "us"}).encode()
        self._written_to = f"/states/{self._name}?ID=client-{number}"
        self._serial = 0

    def work(self, until: float) -> Done:
        """Go round until a second of `time.perf_counter`."""
        done = Done()
        while (started := time.perf_counter()) < until:
            self._serial += 1
            self._ask(done, "PUT", f"/locks/{self._name}", self._lock)
            self._ask(done, "GET", f"/states/{self._name}")
            document = state(self._serial, _BYTES)
            done.writes += self._ask(done, "POST", self._written_to, document)
            self._ask(done, "DELETE", f"/locks/{self._name}", self._lock)
            done.runs.append((time.perf_counter() - started) * 1000)
        return done

    def _ask(self, done: Done, method: str, path: str, body: bytes = b"") -> bool:
        try:
            response = self._client.send(method, path, body)
        except RuntimeError:
            done.refused["not answered"] += 1
            return False
        done.requests.append(response.seconds * 1000)
        accepted = response.status < http.HTTPStatus.BAD_REQUEST
        if not accepted:
            done.refused[str(response.status)] += 1
        return accepted


def _work(clients: Sequence[_Worker], duration: float = _SECONDS) -> Done:
    started = time.perf_counter()
    with ThreadPoolExecutor(len(clients)) as threads:
        parts = list(threads.map(lambda client: client.work(started + duration), clients))
    seconds = time.perf_counter() - started
    writes = sum(part.writes for part in parts)
    refused = sum((part.refused for part in parts), Counter[str]())
    if not writes:
        raise RuntimeError(f"no write was acknowledged; refused or not answered: {dict(refused)}")
    return Done(
        writes,
        seconds,
        [took for part in parts for took in part.requests],
        [took for part in parts for took in part.runs],
        refused,
    )


def _figures(alone: Sequence[Done], together: Sequence[Done]) -> Iterator[Figure]:
    sides = (alone, together)
    yield from _beside(
        "writes", "a second", *([done.writes / done.seconds for done in side] for side in sides)
    )
    yield from _beside("request, median", "ms", *([median(done.requests) for done in side] for side in sides))
    # Of a round it would be nearly the slowest request.
    pooled = ([took for done in side for took in done.requests] for side in sides)
    yield from _beside("request, p99 of all rounds", "ms", *([percentile(took, 99)] for took in pooled))
    yield from _beside("run, median", "ms", *([median(done.runs) for done in side] for side in sides))
    for done, clients in ((alone, 1), (together, _CLIENTS)):
        yield Figure.count(f"refused or failed: {clients}", [each.refused.total() for each in done])


def _beside(name: str, unit: str, one: Sequence[float], all_: Sequence[float]) -> Iterator[Figure]:
    yield Figure.of(f"{name}: 1", unit, one)
    yield Figure.of(f"{name}: {_CLIENTS}", unit, all_)
    yield Figure.ratio(f"{name}: ratio", all_, one)
