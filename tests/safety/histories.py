"""Long random interleavings of many clients, with every fault at any moment.

The search follows every interleaving of two or three clients within narrow bounds. This module draws single
interleavings of up to seven clients without bounds. The code, the model of S3 and the invariants after every
event are the same. hypothesis draws the interleavings, and shrinks each that violates an invariant.

Some clients do not take part. With many clients the invariants cannot tell the owner of a copied lock info
(`copier`). A document that does not follow what its client read (`wrong_address`, `same_serial`) may be
refused because of an unacknowledged version.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from hypothesis import Phase, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.safety.figures import Figures
from tests.safety.model import clients, invariants
from tests.safety.model.clients import STATE, STATE_KEY, Client, Session
from tests.safety.model.production import FUNCTIONS, HttpRequest, Production
from tests.safety.model.s3 import Bucket
from tests.safety.model.scenarios import PLANS
from tests.safety.model.search import Search
from tests.safety.model.world import Scenario

_SESSIONS: Final = (
    clients.apply,
    clients.impatient,
    clients.apply_with_two_saves,
    clients.apply_with_a_gap,
    clients.impatient_without_id,
    clients.operator,
    clients.push_back,
    clients.without_lock,
    clients.borrower,
    clients.delete,
    clients.undelete,
    clients.restore,
    clients.restore_after_a_break,
    clients.breaker,
    clients.manage_delete,
    clients.freeze_until,
    clients.unfreeze,
    clients.reader,
)
_FOUND: Final = tuple(dict.fromkeys(plan.scenario.before for plan in PLANS))
"""The functions that make the buckets with which the scenarios of the search begin."""
_FAULTS: Final = ("again", "again", "crash", "lost", "lost-over", "late", "late-over", "never", "over")
_REFUSALS: Final = ("409", "500", "503")
_MEMORIES: Final = st.integers(0, 5)
"""The number of the possible cache with which an invocation begins. It begins cold if there are fewer."""
_NO_BOUND: Final = 1_000_000
_TOKEN: Final = "ci"
"""Some clients share this token. `borrower` does not: only the token tells it from the lock's holder."""


def _rescue(me: Client) -> Session:
    """Removes a freeze or a lock, and applies."""
    yield from clients.unfreeze(me)
    yield HttpRequest("unlock", STATE, me.caller)
    yield from clients.apply(me)


_RESCUER: Final = Client("R", _rescue)


def _crowd(sessions: Sequence[tuple[Callable[[Client], Session], bool]]) -> Iterator[Client]:
    for name, (session, shares) in zip("ABCDEFG", sessions, strict=False):
        yield Client(name, session, _TOKEN if shares and session is not clients.borrower else "")
    yield _RESCUER


class _TimeIsUp(BaseException):
    """The time of the run is over. No `except Exception` in hypothesis catches it."""


class BrokenInvariantError(AssertionError):
    """An invariant did not hold."""


@dataclass(slots=True)
class _Progress:
    """The progress of a run.

    `until` is the end of the run in `time.monotonic()` seconds. `histories` counts the finished histories,
    `events` all their events. `broken` is the last history that violated an invariant. When hypothesis has
    finished, that is the shortest.
    """

    until: float
    say: Callable[[str], None]
    histories: int = 0
    events: int = 0
    broken: "Histories | None" = None
    _told: float = field(default_factory=time.monotonic)

    def ended(self, events: int) -> None:
        self.histories += 1
        self.events += events
        if time.monotonic() > self._told + 10:
            self._told = time.monotonic()
            self.say(f"histories: {self.histories} with {self.events} events so far")


class Histories(RuleBasedStateMachine):
    """Draws an interleaving. `run` sets `progress` and `production`."""

    progress: ClassVar[_Progress]
    production: ClassVar[Production]

    @initialize(
        sessions=st.lists(st.tuples(st.sampled_from(_SESSIONS), st.booleans()), min_size=2, max_size=7),
        before=st.sampled_from(_FOUND),
        protected=st.sampled_from((False, False, False, True)),
        digests=st.booleans(),
    )
    def open(
        self,
        sessions: list[tuple[Callable[[Client], Session], bool]],
        before: Callable[[], Bucket],
        protected: bool,
        digests: bool,
    ) -> None:
        crowd = tuple(_crowd(sessions))
        self.scenario = Scenario(
            "crowd",
            crowd,
            _NO_BOUND,
            _NO_BOUND,
            _NO_BOUND,
            before=lambda: before()._replace(digests=digests),
            protected=protected,
            any_push_counts=True,
        )
        self.search = Search(self.production, self.scenario)
        self.world = self.search.first()
        self.events: list[str] = []

    @rule(turns=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 8), _MEMORIES), min_size=1, max_size=6))
    def take_turns(self, turns: list[tuple[int, int, int]]) -> None:
        """Let clients send some requests each, in turn."""
        for client, steps, memory in turns:
            name = self._name(client)
            self._happen(*[name] * steps, memory=memory)

    @rule(client=st.integers(0, 6), fault=st.sampled_from((*_FAULTS, *_REFUSALS)), memory=_MEMORIES)
    def go_wrong(self, client: int, fault: str, memory: int) -> None:
        """Inject a fault into a client's request."""
        self._happen(f"{self._name(client)}.{fault}", memory=memory)

    @rule(stray=st.integers(1, 3), fault=st.sampled_from((*_FAULTS[3:], *_REFUSALS)), memory=_MEMORIES)
    def go_wrong_unheard(self, stray: int, fault: str, memory: int) -> None:
        """Inject a fault into a request of an invocation whose client does not wait for it."""
        self._happen(f"stray{stray}.{fault}", memory=memory)

    @rule(late=st.integers(1, 3), stray=st.integers(1, 3), steps=st.integers(1, 6), memory=_MEMORIES)
    def catch_up(self, late: int, stray: int, steps: int, memory: int) -> None:
        """Let a late request arrive, and let an invocation go on whose client does not wait for it."""
        self._happen(f"late{late}", *[f"stray{stray}"] * steps, memory=memory)

    @rule()
    def wait(self) -> None:
        self._happen("tick")

    def teardown(self) -> None:
        """End the interleaving, and check that a client can apply after a force-unlock."""
        if sys.exc_info()[0] is not None or not hasattr(self, "world"):
            return  # an invariant did not hold, or hypothesis has ended this example
        self._happen(*["tick"] * 5)
        while _RESCUER.name in set(self.search.events(self.world)):
            self._happen(_RESCUER.name)
        current = self.search.bucket(self.world).current(STATE_KEY)
        if current is None or current.body is None or invariants.author(current) != _RESCUER.name:
            self._fail("nobody can work on the state any more")
        self.progress.ended(len(self.events))
        if self.progress.broken is None and time.monotonic() > self.progress.until:
            raise _TimeIsUp

    def story(self) -> Iterator[str]:
        """Yield the clients, and a line for each event."""
        named = [f"{client.name}: {client.session.__name__}" for client in self.scenario.clients]
        protected = ", a bucket whose versions are protected" if self.scenario.protected else ""
        yield f"{', '.join(named)}; {self.scenario.before.__name__}{protected}"
        yield from self.search.story(self.events)

    def _name(self, client: int) -> str:
        return self.scenario.clients[client % (len(self.scenario.clients) - 1)].name

    def _happen(self, *events: str, memory: int = 0) -> None:
        """Let each event happen if it can, in a warm process with this cache if possible."""
        for drawn in events:
            who, dot, fault = drawn.partition(".")
            possible = set(self.search.events(self.world))
            for event in (f"{who}+{memory}{dot}{fault}", drawn):
                if event in possible:
                    self.events.append(event)
                    self.world, violations = self.search.after(self.world, event)
                    if violations:
                        self._fail(f"{violations[0].invariant.value}: {violations[0].what}")
                    break

    def _fail(self, what: str) -> None:
        self.progress.broken = self
        raise BrokenInvariantError(what)


def run(
    *,
    examples: int,
    steps: int,
    seconds: float,
    seed: int,
    say: Callable[[str], None],
    functions: Path = FUNCTIONS,
) -> Figures:
    """Draw interleavings and judge them.

    `examples` limits the interleavings. `steps` limits the rules of each; a rule can be several events.
    """
    progress = _Progress(time.monotonic() + seconds, say)
    machine = type("Machine", (Histories,), {"progress": progress, "production": Production(functions)})
    bounds = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        run_state_machine_as_test(seeded(seed)(machine), settings=bounds)
    except _TimeIsUp:
        pass
    except BrokenInvariantError as broken:
        if progress.broken is None:
            raise
        say(f"histories: an invariant did not hold (seed {seed}); the shortest interleaving that shows it:")
        for line in progress.broken.story():
            say(f"  {line}")
        say(f"  {broken}")
        return Figures(violations=1)
    say(f"histories: {progress.histories} with {progress.events} events: everything held")
    return Figures(histories=progress.histories)
