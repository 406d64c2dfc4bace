"""A world of the search: the situation that an interleaving leads to, and its scenario."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from tests.safety.model.clients import Client
from tests.safety.model.invariants import Exemption, Violation
from tests.safety.model.s3 import Bucket

TICK: Final = 12
"""Seconds that a tick takes by default. A force-unlock without an ID removes a lock that is this old."""
_T = TypeVar("_T")


class Numbered(list[_T]):
    """A list that gives equal things the same number, so that a world is a few numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[_T, int] = {}

    def number(self, thing: _T) -> int:
        number = self._numbers.setdefault(thing, len(self))
        if number == len(self):
            self.append(thing)
        return number


class Standing(NamedTuple):
    """The progress of a client.

    Attributes:
        session: the number of its session's step.
        point: the number of the point of the invocation that answers its request; -1 at the end of the
            session. The cache of its process is open until the invocation sends its first request to S3.
        started: the clock when that invocation sent its first request to S3; -1 before.
        overtime: whether that invocation's time for new requests is over.
        tries: how often the request was sent.
        holds: whether the client got a response that it holds the lock, and has neither begun to release it
            nor lost it.
        seen: the number of the set of documents that the client received.
        origin: the number of the bucket before the request. -1 as soon as anything but this request happens.
        lock: the version of the lock that was current when that invocation began, if the request is to
            remove that lock; otherwise -1.
        deleted: the number of that invocation's point when a delete of the state was acknowledged. -1 if the
            client held the lock then, or if no delete was acknowledged since the request was first sent.
    """

    session: int
    point: int
    started: int = -1
    overtime: bool = False
    tries: int = 1
    holds: bool = False
    seen: int = 0
    origin: int = -1
    lock: int = -1
    deleted: int = -1


class Stray(NamedTuple):
    """An invocation whose client does not wait for it any more."""

    client: int
    point: int
    started: int
    overtime: bool
    lock: int = -1
    deleted: int = -1


class Late(NamedTuple):
    """A request to S3 that a thread has sent, and that has not arrived yet. Nobody waits for its answer."""

    client: int
    point: int
    thread: int
    lock: int = -1
    deleted: int = -1


class World(NamedTuple):
    """The situation that an interleaving leads to. Every member but the clock and the bounds is a number.

    `clock` is in seconds. `strays` are the invocations whose clients do not wait, `late` the requests that
    have not arrived. `acknowledged` has the acknowledged state documents, and marks about deletes: what came
    after the delete of a workspace, and which deletes took effect under the next holder's lock. `known` are
    the caches that processes can have. `faults`, `repeats` and `ticks` are how many may still happen.
    """

    bucket: int
    clock: int
    clients: tuple[int, ...]
    strays: int
    late: int
    acknowledged: int
    known: int
    faults: int
    repeats: int
    ticks: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """Clients and their sessions, and the bounds: `faults`, `repeats` and `ticks` as in `scenarios.Bounds`.

    Attributes:
        tick: seconds that a tick takes.
        before: makes the bucket at the start.
        late: whether a request that got no answer may still arrive afterwards.
        late_acquires: whether S3 may carry out an acquire after its client got a response and somebody else
            acquired the lock. Only the limit that shows why `safety.md` assumes the opposite allows it.
        protected: whether S3 refuses to remove a version, as under a default retention.
        excused: the exemptions that count as no violation. Only a limit that shows why `safety.md` names an
            exemption leaves that one out.
        any_push_counts: whether the serial may be lower after an unacknowledged push, too. With many clients
            it is not known who has seen that push.
    """

    name: str
    clients: tuple[Client, ...]
    faults: int = 1
    repeats: int = 1
    ticks: int = 0
    tick: int = TICK
    before: Callable[[], Bucket] = Bucket
    late: bool = True
    late_acquires: bool = False
    protected: bool = False
    excused: frozenset[Exemption] = frozenset(Exemption)
    any_push_counts: bool = False


@dataclass(slots=True)
class Outcome:
    """The result of a search.

    `worlds` is the number of worlds that the `interleavings` led to. `complete`: the search covered every
    interleaving within the scenario's bounds. `violation` is the first violation, None if every invariant
    holds. The events of `interleaving` lead to it.
    """

    interleavings: int = 0
    worlds: int = 0
    complete: bool = False
    violation: Violation | None = None
    interleaving: tuple[str, ...] = ()


@dataclass(slots=True)
class Change:
    """A world while an event changes it."""

    world: World
    bucket: int
    clock: int
    clients: list[Standing]
    strays: tuple[Stray, ...]
    late: tuple[Late, ...]
    acknowledged: frozenset[bytes]
    known: tuple[int, ...]
    faults: int
    repeats: int
    ticks: int
    violations: list[Violation] = field(default_factory=list)
