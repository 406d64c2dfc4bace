"""Every verb that changes a state, with each fault of S3 and each request in between, on real S3 servers.

A verb is a row of a table. The tests of one verb alone are in `test_states.py`, `test_deleting.py` and
`test_operate.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from holdfast.access import Caller
from holdfast.errors import (
    DeleteOutcomeUnknown,
    HoldfastError,
    Locked,
    LockLeft,
    LockLost,
    NotAllowed,
    OutcomeUnknown,
    RacedWriter,
    RestoreOutcomeUnknown,
    StorageRefused,
    UndeleteOutcomeUnknown,
)
from holdfast.s3.store import Store
from holdfast.state import acquiring, releasing
from holdfast.state.delete import delete
from holdfast.state.freezing.states import freeze, unfreeze
from holdfast.state.held import Freeze
from holdfast.state.restore import Restored, Wanted, restore
from holdfast.state.undelete import undelete
from holdfast.state.write import write
from holdfast.work import Work
from tests.contract.conftest import ANOTHER, COMMAND, KEY, LOCK_KEY, NAME, ONE, TWO, Bucket, Team
from tests.support.documents import ADA, BOB, OPERATOR, only_id, state
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

pytestmark = pytest.mark.two_servers

OLD, CURRENT = state(1, content="old"), state(2)


@dataclass(frozen=True)
class Verb:
    """A verb that changes a state with the versions `OLD` and `CURRENT`.

    Attributes:
        run: runs the verb, and returns the ID of the version that it made or deleted; None if nothing was
            left to do. Its arguments are the oldest version, and the marker above them.
        sends: the method of the request that changes the state.
        makes: the version that it adds, if any.
        lock_lost: the error if its lock was removed meanwhile.
        on_a_deleted_state: whether the state is deleted before.
    """

    run: Callable[[Work, str, str], str | None]
    sends: str
    makes: bytes | None
    lock_lost: type[HoldfastError]
    on_a_deleted_state: bool = False


def restored(of: Work, version_id: str) -> str:
    done = restore(of, Wanted(version_id, "why", COMMAND))
    assert isinstance(done, Restored)
    return done.version_id


VERBS = {
    "write": Verb(
        lambda of, _, __: write(replace(of, caller=ADA), state(3), "one").version_id,
        "PUT",
        state(3),
        LockLost,
    ),
    "delete": Verb(lambda of, _, __: delete(of).version_id, "DELETE", None, DeleteOutcomeUnknown),
    "undelete": Verb(
        lambda of, _, marker: undelete(of, marker).version_id,
        "PUT",
        CURRENT,
        UndeleteOutcomeUnknown,
        on_a_deleted_state=True,
    ),
    "restore": Verb(
        lambda of, oldest, _: restored(of, oldest),
        "PUT",
        state(3, content="old"),
        RestoreOutcomeUnknown,
    ),
}
OWN_LOCK = [name for name in VERBS if name != "write"]
"""The verbs that acquire their own lock."""


@dataclass(frozen=True)
class Attempt:
    """A verb and a state to which it can be done."""

    team: Team
    name: str
    verb: Verb
    oldest: str
    marker: str

    def __call__(self, caller: Caller = OPERATOR, *, seconds: float = 20.0) -> str | None:
        """Run the verb through the proxy with the faults."""
        of = work(self.team.bucket.store(seconds=seconds), NAME, caller, require_lock=True)
        return self.verb.run(of, self.oldest, self.marker)

    def done_by_somebody_else(self) -> str | None:
        """Run the verb past the proxy: a faster retry of the same request."""
        return self.verb.run(self.team.works(OPERATOR, require_lock=True), self.oldest, self.marker)

    def fail(self, fault: Fault, *, times: int = 1) -> None:
        """Inject a fault into the request that changes the state."""
        self.team.bucket.proxy.fail(self.verb.sends, KEY, fault, times=times)

    def meanwhile(self, act: Callable[[], object]) -> None:
        """Call a function before the request that changes the state arrives."""
        self.team.bucket.proxy.before(self.verb.sends, KEY, act)

    def assert_done_once(self) -> None:
        """Check the verb's result, and that its own lock is gone."""
        made = () if self.verb.makes is None else (self.verb.makes,)
        assert self.team.versions() == [OLD, CURRENT, *made]
        assert self.team.current() == self.verb.makes
        if self.name != "write":
            assert self.team.bucket.history(LOCK_KEY) == []

    def assert_lock_is_named(self, error: BaseException) -> None:
        """Check that the error names the lock that may be left."""
        note = f"lock {self.team.held_lock().info.id} of this {self.name} may still be held"
        text = f"{error} {' '.join(getattr(error, '__notes__', []))}"
        assert note in text


@pytest.fixture
def attempt(request: pytest.FixtureRequest, team: Team) -> Attempt:
    return prepared(team, request.param)


def prepared(team: Team, name: str) -> Attempt:
    verb = VERBS[name]
    oldest, _ = team.written(OLD, CURRENT)
    if verb.on_a_deleted_state:
        delete(team.works(OPERATOR))
    if name == "write":
        team.lock()
    return Attempt(team, name, verb, oldest, team.bucket.marker(KEY))


each_verb = pytest.mark.parametrize("attempt", VERBS, indirect=True)
each_with_a_lock_of_its_own = pytest.mark.parametrize("attempt", OWN_LOCK, indirect=True)

# --- lost answers and requests that S3 does not take -----------------------------------------------


ANSWERS = [
    *product(("write",), (("GET", KEY), ("GET", LOCK_KEY), ("PUT", KEY))),
    *product(("delete",), (("GET", KEY), ("PUT", LOCK_KEY), ("DELETE", KEY), ("DELETE", LOCK_KEY))),
    *product(("undelete",), (("PUT", LOCK_KEY), ("GET", LOCK_KEY), ("PUT", KEY), ("DELETE", LOCK_KEY))),
    *product(
        ("restore",),
        (("GET", KEY), ("PUT", LOCK_KEY), ("GET", LOCK_KEY), ("PUT", KEY), ("DELETE", LOCK_KEY)),
    ),
]


@pytest.mark.parametrize(("attempt", "lost"), ANSWERS, indirect=["attempt"])
def test_a_verb_one_of_whose_answers_was_lost_is_done_once(attempt: Attempt, lost: tuple[str, str]) -> None:
    attempt.team.bucket.proxy.fail(*lost, Fault.ANSWER_LOST)
    assert attempt() == attempt.team.version_ids()[-1]
    attempt.assert_done_once()


@each_verb
@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.CONFLICT, Fault.NEVER_ARRIVES])
def test_a_verb_that_s3_did_not_take_is_repeated(attempt: Attempt, fault: Fault) -> None:
    attempt.fail(fault, times=2)
    assert attempt() == attempt.team.version_ids()[-1]
    attempt.assert_done_once()


@each_verb
def test_a_verb_that_is_not_decided_in_time_says_so_and_its_repeat_is_done_once(attempt: Attempt) -> None:
    attempt.fail(Fault.ANSWER_LOST)
    attempt.fail(Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown) as undecided:
        attempt(seconds=1)
    assert attempt.team.bucket.proxy.end_rules() < 1000
    if attempt.name in OWN_LOCK:
        # While its request may still take effect, nobody else gets the lock.
        attempt.assert_lock_is_named(undecided.value)
    assert attempt() == (attempt.team.version_ids()[-1] if attempt.verb.makes else None)
    attempt.assert_done_once()


# --- a lock of its own that is left ----------------------------------------------------------------


@each_with_a_lock_of_its_own
def test_a_verb_that_is_interrupted_releases_its_lock(attempt: Attempt) -> None:
    def interrupt(request: Any, **_: object) -> None:
        if request.method == attempt.verb.sends and request.url.endswith(KEY):
            raise KeyboardInterrupt

    events = attempt.team.bucket.server.proxied.meta.events
    events.register("before-send.s3", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt) as interrupted:
            attempt()
    finally:
        events.unregister("before-send.s3", interrupt)
    assert not hasattr(interrupted.value, "__notes__")
    assert attempt.team.bucket.history(LOCK_KEY) == []


@each_with_a_lock_of_its_own
@pytest.mark.parametrize(
    ("fault", "refusal"), [(Fault.DENIED, StorageRefused), (Fault.SLOW_DOWN, OutcomeUnknown)]
)
def test_a_verb_that_cannot_release_its_lock_names_it_and_its_repeat_takes_it_up(
    attempt: Attempt, fault: Fault, refusal: type[HoldfastError]
) -> None:
    attempt.team.bucket.proxy.fail("DELETE", LOCK_KEY, fault, times=1000)
    with pytest.raises(LockLeft if attempt.name == "undelete" else refusal) as left:
        attempt(seconds=1)
    assert attempt.team.bucket.proxy.end_rules() < 1000
    attempt.assert_lock_is_named(left.value)
    assert attempt.team.current() == attempt.verb.makes
    attempt()
    attempt.assert_done_once()


@each_with_a_lock_of_its_own
def test_a_verb_that_never_heard_of_its_lock_names_it_and_its_repeat_takes_it_up(attempt: Attempt) -> None:
    attempt.team.bucket.proxy.fail("PUT", LOCK_KEY, Fault.ANSWER_LOST)
    attempt.team.bucket.proxy.fail("PUT", LOCK_KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown) as undecided:
        attempt(seconds=1)
    assert attempt.team.bucket.proxy.end_rules() < 1000
    attempt.assert_lock_is_named(undecided.value)
    assert attempt() == attempt.team.version_ids()[-1]
    attempt.assert_done_once()


@each_with_a_lock_of_its_own
@pytest.mark.parametrize(("fault", "is_logged"), [(Fault.SLOW_DOWN, False), (Fault.DENIED, True)])
def test_a_verb_that_fails_keeps_its_error_and_names_the_lock_that_it_leaves_for_its_caller_alone(
    attempt: Attempt, fault: Fault, is_logged: bool
) -> None:
    attempt.fail(Fault.DENIED)
    attempt.team.bucket.proxy.fail("DELETE", LOCK_KEY, fault, times=1000)
    with pytest.raises(StorageRefused) as failed:
        attempt(seconds=1)
    assert attempt.team.bucket.proxy.end_rules() < 1000
    attempt.assert_lock_is_named(failed.value)
    assert ("reason" in failed.value.logged) is is_logged
    held = attempt.team.held_lock()
    assert (held.info.operation, held.info.who) == (attempt.name, "token:operator")
    with pytest.raises(Locked):
        attempt(ANOTHER)
    attempt()
    attempt.assert_done_once()


@pytest.mark.parametrize("name", OWN_LOCK)
def test_a_verb_works_where_the_bucket_retains_everything(team: Team, name: str) -> None:
    team.bucket.retain_everything()
    attempt = prepared(team, name)
    attempt()
    assert team.current() == attempt.verb.makes
    assert team.held() is None


# --- somebody else in between ----------------------------------------------------------------------


@each_with_a_lock_of_its_own
def test_a_verb_while_somebody_holds_the_lock_is_refused_with_the_holder(attempt: Attempt) -> None:
    attempt.team.lock(only_id("two"), ADA)
    before = attempt.team.current()
    with pytest.raises(Locked) as refused:
        attempt()
    assert refused.value.body()["ID"] == "two"
    with pytest.raises(NotAllowed, match="maintainer"):
        attempt(ADA)
    assert (attempt.team.current(), attempt.team.versions()) == (before, [OLD, CURRENT])
    assert attempt.team.held_lock().info.id == "two"


@each_verb
@pytest.mark.parametrize("act", [Team.broken, Team.broken_and_taken])
def test_a_verb_whose_lock_is_broken_while_it_lands_is_not_acknowledged(
    attempt: Attempt, act: Callable[[Team], None]
) -> None:
    attempt.meanwhile(lambda: act(attempt.team))
    with pytest.raises(attempt.verb.lock_lost):
        attempt()
    assert (attempt.team.held() is not None) is (act is Team.broken_and_taken)


@pytest.mark.parametrize("attempt", ["undelete", "restore"], indirect=True)
@pytest.mark.parametrize("act", [Team.broken, Team.broken_and_taken])
def test_a_verb_whose_lock_is_broken_before_it_writes_writes_nothing(
    attempt: Attempt, act: Callable[[Team], None]
) -> None:
    attempt.team.bucket.proxy.before("GET", LOCK_KEY, lambda: act(attempt.team))  # its first reading of it
    with pytest.raises(attempt.verb.lock_lost):
        attempt()
    assert attempt.team.versions() == [OLD, CURRENT]
    assert (attempt.team.held() is not None) is (act is Team.broken_and_taken)


@pytest.mark.parametrize("name", OWN_LOCK)
@pytest.mark.parametrize("retains", [False, True])
def test_a_verb_whose_lock_went_to_its_own_repeat_is_not_acknowledged_and_leaves_that_lock(
    team: Team, name: str, retains: bool
) -> None:
    if retains:
        team.bucket.retain_everything()
    attempt = prepared(team, name)
    attempt.meanwhile(team.broken_and_taken_again)
    with pytest.raises(attempt.verb.lock_lost):
        attempt()
    assert team.held() is not None


@each_with_a_lock_of_its_own
def test_a_verb_releases_no_lock_that_its_repeat_has_taken_since(attempt: Attempt) -> None:
    attempt.team.bucket.proxy.before("DELETE", LOCK_KEY, attempt.team.broken_and_taken_again)
    attempt()
    assert attempt.team.held_lock().info.operation == attempt.name


@each_with_a_lock_of_its_own
def test_a_verb_whose_repeat_ends_first_says_that_it_may_be_that(attempt: Attempt) -> None:
    attempt.meanwhile(attempt.done_by_somebody_else)
    with pytest.raises(attempt.verb.lock_lost, match="another attempt of the same"):
        attempt()
    attempt.assert_done_once()
    assert attempt() == (attempt.team.version_ids()[-1] if attempt.verb.makes else None)


@pytest.mark.parametrize(
    ("attempt", "refusal"),
    [("write", LockLost), ("delete", RacedWriter), ("restore", RestoreOutcomeUnknown)],
    indirect=["attempt"],
)
def test_a_late_verb_does_not_replace_what_the_next_holder_wrote_and_released(
    attempt: Attempt, refusal: type[HoldfastError]
) -> None:
    team, theirs = attempt.team, state(3, content="theirs")

    def another_holder_in_between() -> None:
        team.broken_and_taken()
        team.write(theirs, "two", BOB)
        team.unlock(TWO, BOB)

    attempt.meanwhile(another_holder_in_between)
    with pytest.raises(refusal):
        attempt()
    assert team.versions() == [OLD, CURRENT, theirs]
    assert team.current() == theirs


@pytest.mark.parametrize("name", ["write", "delete"])
def test_without_versioning_a_verb_whose_lock_was_broken_and_taken_is_not_acknowledged(
    unversioned: Bucket, name: str
) -> None:
    team = Team(unversioned)
    team.put_beside(CURRENT)
    if name == "write":
        team.lock()
    attempt = Attempt(team, name, VERBS[name], "none", "none")
    attempt.meanwhile(team.broken_and_taken)
    with pytest.raises(attempt.verb.lock_lost):
        attempt()
    assert team.held_lock().info.id == "two"


# --- verbs of locks --------------------------------------------------------------------------------


def frozen(store: Store) -> None:
    freeze(work(store, NAME, OPERATOR), Freeze(COMMAND, "an incident", None), now=datetime.now(UTC))


def released(store: Store, body: bytes, caller: Caller) -> object:
    return releasing.release(work(store, NAME, caller), body)


LOCK_VERBS: dict[str, tuple[Callable[[Team], object], str, Callable[[Store], object], str | None]] = {
    "acquire": (lambda _: None, "PUT", lambda store: acquiring.acquire(work(store, NAME, ADA), ONE), "one"),
    "release": (Team.lock, "DELETE", lambda store: released(store, ONE, ADA), None),
    "force-unlock": (Team.lock, "DELETE", lambda store: released(store, only_id("one"), OPERATOR), None),
    "freeze": (lambda _: None, "PUT", frozen, f"frozen: an incident [{COMMAND}]"),
    "unfreeze": (
        lambda team: frozen(team.bucket.direct_store()),
        *("DELETE", lambda store: unfreeze(work(store, NAME, OPERATOR), COMMAND), None),
    ),
}
"""For each verb: a preparation, the method of the request that changes the lock, the verb, the final lock."""


@pytest.mark.parametrize("name", LOCK_VERBS)
@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.SLOW_DOWN, Fault.CONFLICT])
def test_a_lock_verb_whose_request_goes_wrong_is_done_once(team: Team, name: str, fault: Fault) -> None:
    before, sends, run, then = LOCK_VERBS[name]
    before(team)
    team.bucket.proxy.fail(sends, LOCK_KEY, fault)
    run(team.bucket.store())
    held = team.held()
    assert (held and held.info.id) == then
    assert team.bucket.history(LOCK_KEY) == ([(LOCK_KEY, held.identity.version_id)] if held else [])


@pytest.mark.parametrize("name", LOCK_VERBS)
def test_a_lock_verb_that_is_not_decided_in_time_says_so(team: Team, name: str) -> None:
    before, sends, run, then = LOCK_VERBS[name]
    before(team)
    team.bucket.proxy.fail(sends, LOCK_KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown) as undecided:
        run(team.bucket.store(seconds=0.5))
    assert team.bucket.proxy.end_rules() < 1000
    logged = {"force-unlock": {"lock_id": "one", "held_by": "token:ada"}, "unfreeze": {"freeze": COMMAND}}
    assert undecided.value.logged == logged.get(name, {})
    run(team.bucket.store())
    left = team.held()
    assert (left and left.info.id) == then
