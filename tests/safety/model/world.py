"""A world of the search: what an interleaving has led to, and the scenario that it is of."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from tests.safety.model.clients import Client
from tests.safety.model.invariants import Exemption, Violation
from tests.safety.model.s3 import Bucket

TICK: Final = 12
"""Seconds that pass at once, by default: more than the age from which a force-unlock needs no ID."""
_T = TypeVar("_T")


class Numbered(list[_T]):
    """Gives equal things the same number, so that a world is a few numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[_T, int] = {}

    def number(self, thing: _T) -> int:
        number = self._numbers.setdefault(thing, len(self))
        if number == len(self):
            self.append(thing)
        return number


class Standing(NamedTuple):
    """Where a client stands.

    Attributes:
        session: where its session is.
        point: where the invocation is that answers its request; -1 at the end of the session. Before it has
            asked S3 for anything, it is open what its process remembers.
        started: the clock when that invocation sent its first request to S3; -1 before.
        overtime: whether that invocation's time for new requests is over.
        tries: how often the request was sent.
        holds: whether it was told that it holds the lock and has neither begun to give it back nor lost it.
        seen: number of the set of documents that it was given.
        origin: the bucket before its request, as long as nothing but this request has happened since;
            otherwise -1.
        lock: the version of the lock that was current when that invocation began, if its request is to
            unlock that; otherwise -1.
        deleted: where that invocation stood when a delete of the state was acknowledged, unless the client
            held the lock then; -1 if none was since the request was first sent.
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
    """An invocation that nobody listens to any more."""

    client: int
    point: int
    started: int
    overtime: bool
    lock: int = -1
    deleted: int = -1


class Late(NamedTuple):
    """A request to S3 that has not arrived, and whose answer nobody waits for."""

    client: int
    point: int
    deleted: int = -1


class World(NamedTuple):
    """What an interleaving has led to. All but the clock and the bounds are numbers of things.

    `clock` is in seconds. `strays` are the invocations that nobody listens to, `late` the requests that are
    on their way. `acknowledged` has the state documents that were acknowledged, and what of a workspace came
    since a delete. `known` is what there is in the memories of processes. `faults`, `repeats` and `ticks` may
    still happen.
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
    """Who does what, and what may go wrong: `faults`, `repeats` and `ticks` are as in `scenarios.Bounds`.

    Attributes:
        tick: seconds by which the clock goes on.
        before: makes the bucket that they find.
        late: whether a request that went wrong may still arrive afterwards.
        late_acquires: whether an acquire may be carried out after its client was answered and somebody else
            has taken the lock. Only what shows that `safety.md` needs that assumption says yes.
        protected: whether S3 refuses to remove a version, as under a default retention.
        excused: what breaks no invariant there. Only what shows that `safety.md` must name an exemption
            leaves one out.
        any_push_counts: whether a push may lower the serial for whoever follows, also if nobody acknowledged
            it. In a crowd it is not known who has seen it.
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
    """What a search found.

    `worlds` is how many the `interleavings` led to. `complete`: every one within the scenario's bounds was
    covered. `violation` is the first one found, None if there is none; the events of `interleaving` lead to
    it.
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
