"""Read, write, delete and undelete on real S3 servers: the writes that the fence refuses and allows."""

import hashlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.access import Caller
from holdfast.errors import (
    InvalidState,
    LineageChanged,
    Locked,
    LockLost,
    NotAllowed,
    RacedWriter,
    SerialNotNewer,
    UnreadableState,
)
from holdfast.memory import Memory
from holdfast.s3.retention import Retention
from holdfast.state import acquiring, releasing
from holdfast.state.current_state import parse_metadata
from holdfast.state.delete import delete
from holdfast.state.document import Revision
from holdfast.state.read import read
from holdfast.state.undelete import undelete
from holdfast.state.write import Written, write
from tests.contract.conftest import KEY, LOCK_KEY, NAME, ONE, PROBE, READER, TWO, Bucket, Team
from tests.support.documents import (
    ADA,
    BOB,
    LINEAGE,
    OPERATOR,
    blank_state,
    encrypted_state,
    lock_info,
    probe_state,
    state,
)
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

pytestmark = pytest.mark.two_servers

# --- the plain path -----------------------------------------------------------------------------


def test_a_state_is_stored_and_returned_byte_for_byte_with_what_its_writer_noted(team: Team) -> None:
    assert team.current() is None
    team.lock()
    body = state(1, content="ümläut \u2028 \\u0000")
    store = team.bucket.store()
    written = write(work(store, NAME, ADA, require_lock=True), body, "one")
    assert written == Written(Revision(1, LINEAGE), None, written.version_id, written.lock, new_version=True)
    assert written.lock is not None
    assert (written.lock.id, written.lock.who) == ("one", "ada@laptop")
    # Two more than for a state that exists: no frozen pattern may match, and then the lock is read again.
    assert sorted(store.budget.requests) == [*5 * ["GetObject"], "PutObject"]
    assert team.current() == body
    head = team.bucket.s3.head_object(Bucket=team.bucket.name, Key=KEY)
    assert head["ContentType"] == "application/json"
    assert head["VersionId"] == written.version_id
    assert head["Metadata"] == {
        "sha256": head["Metadata"]["sha256"],
        "serial": "1",
        "lineage": LINEAGE,
        "terraform-version": "1.15.5",
        "lock-id": "one",
        "who": "ada@laptop",
        "operation": "OperationTypeApply",
        "written-by": "token:ada",
    }


def test_the_hash_of_a_state_is_computed_once(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    team.lock()
    hashed = []

    def sha256(body: bytes) -> Any:
        hashed.append(body)
        return hashlib.sha256(body)

    for module in ("state.fence", "s3.store"):
        monkeypatch.setattr(f"holdfast.{module}.hashlib", SimpleNamespace(sha256=sha256))
    team.write(state(1))
    assert hashed.count(state(1)) == 1


def test_intermediate_saves_gaps_in_the_serial_and_an_empty_lineage_are_normal(team: Team) -> None:
    team.lock()
    for body in (state(1, lineage=""), state(2), state(7), state(8, lineage="")):
        assert team.write(body).new_version
    first = team.version_ids()[-1]
    again = team.write(state(8, lineage=""))
    assert (again.version_id, again.new_version) == (first, False)
    store = team.bucket.store()
    assert read(work(store, NAME, READER)) == state(8, lineage="")
    assert store.budget.requests == ["GetObject"]
    assert team.versions() == [state(1, lineage=""), state(2), state(7), state(8, lineage="")]


# --- the first reading of the lock -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("lock_id", "caller"),
    [("two", BOB), ("one", BOB), (None, ADA)],
    ids=["another ID", "another caller", "no ID"],
)
def test_a_write_while_somebody_else_holds_the_lock_is_refused_with_the_holder(
    team: Team, lock_id: str | None, caller: Caller
) -> None:
    team.lock()
    for require_lock in (True, False):
        with pytest.raises(Locked) as refused:
            write(work(team.bucket.store(), NAME, caller, require_lock=require_lock), state(1), lock_id)
        assert refused.value.body()["ID"] == "one"
    assert team.versions() == []


def test_a_caller_or_a_body_that_is_refused_costs_no_request(team: Team) -> None:
    store = team.bucket.store()
    with pytest.raises(NotAllowed, match="writer"):
        write(work(store, NAME, READER), state(1), None)
    with pytest.raises(InvalidState):
        write(work(store, NAME, ADA), b"[]", None)
    assert store.budget.requests == []


# --- serial and lineage ---------------------------------------------------------------------------


@pytest.mark.parametrize("by_another_program", [False, True])
def test_a_write_that_does_not_follow_the_current_state_is_refused(
    team: Team, by_another_program: bool
) -> None:
    if by_another_program:
        team.put_beside(state(5))
        team.lock()
    else:
        team.lock()
        team.write(state(5))
    for body in (state(4), state(5, content="other")):
        with pytest.raises(SerialNotNewer, match="5"):
            team.write(body)
    with pytest.raises(LineageChanged, match="different states"):
        team.write(state(6, lineage="another"))
    assert not team.write(state(5)).new_version
    assert team.versions() == [state(5)]
    assert team.write(state(6)).new_version


@pytest.mark.parametrize("operation", ["state-push", "migration destination state"])
def test_a_push_or_migration_was_compared_by_its_client_and_may_go_back(team: Team, operation: str) -> None:
    team.lock()
    team.write(state(5))
    team.unlock()
    team.lock(lock_info("push", operation=operation))
    team.write(state(2), "push")
    team.write(state(1, lineage="another"), "push")
    assert team.versions() == [state(5), state(2), state(1, lineage="another")]


@pytest.mark.parametrize("by_another_program", [False, True])
@pytest.mark.parametrize(
    "operation", ["state-push", "migration destination state", "OperationTypeApply", "import"]
)
def test_a_file_that_is_no_state_replaces_no_state_that_has_a_lineage(
    team: Team, operation: str, by_another_program: bool
) -> None:
    if by_another_program:
        team.put_beside(state(5))
    else:
        push(team, state(5))
    team.lock(lock_info("push", operation=operation))
    for serial in (1, 6):
        with pytest.raises(LineageChanged, match="holdfast state delete"):
            team.write(blank_state(serial), "push")
    team.unlock(lock_info("push", operation=operation))
    assert team.versions() == [state(5)]
    delete(team.works(OPERATOR))
    team.lock(lock_info("push", operation=operation))
    team.write(blank_state(1), "push")
    team.write(blank_state(2), "push")
    team.write(state(3), "push")
    assert team.versions() == [state(5), blank_state(1), blank_state(2), state(3)]


def test_a_push_without_a_lineage_that_has_content_is_compared_by_its_client(team: Team) -> None:
    push(team, state(5))
    push(team, state(1, lineage=""))
    push(team, blank_state())
    push(team, encrypted_state(2, "AAAA"))
    push(team, encrypted_state(1, "AAAA").replace(LINEAGE.encode(), b""))
    assert len(team.versions()) == 5


def test_the_same_bytes_of_another_lock_are_written_anew_where_no_other_version_has_the_etag(
    team: Team,
) -> None:
    team.bucket.encrypt_with_kms()
    team.lock()
    team.write(state(1))
    team.unlock()
    team.lock(lock_info("push", operation="state-push"))
    assert team.write(state(1), "push").new_version
    assert not team.write(state(1), "push").new_version
    assert team.versions() == [state(1), state(1)]


@pytest.mark.parametrize("body", [b"not a state", b""])
def test_an_object_that_is_no_state_is_an_error_and_is_replaced(team: Team, body: bytes) -> None:
    team.put_beside(body)
    team.lock()
    if body:
        with pytest.raises(UnreadableState):
            team.write(state(1))
        team.unlock()
        team.lock(lock_info("one", operation="state-push"))
    else:
        with pytest.raises(UnreadableState, match="zero bytes"):
            team.current()
    team.write(state(1))
    assert team.current() == state(1)


# --- the condition on the ETag ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "theirs", "ours", "refusal"),
    [
        ([state(1)], state(2, content="theirs"), state(2, content="ours"), SerialNotNewer),
        ([], state(1, lineage="theirs"), state(1, lineage="ours"), LineageChanged),
    ],
)
def test_of_two_writers_without_a_lock_the_one_that_was_overtaken_is_refused(
    team: Team, before: list[bytes], theirs: bytes, ours: bytes, refusal: type[Exception]
) -> None:
    for body in before:
        team.write_unlocked(body)
    team.bucket.proxy.before("PUT", KEY, lambda: team.write_beside(theirs))
    with pytest.raises(refusal):
        team.write_unlocked(ours)
    assert team.versions() == [*before, theirs]


def test_a_writer_that_is_overtaken_again_and_again_gives_up(team: Team) -> None:
    team.write_unlocked(state(1))
    for serial in (2, 3, 4, 5):
        team.bucket.proxy.before("PUT", KEY, partial(team.write_beside, state(serial)))
    with pytest.raises(RacedWriter):
        team.write_unlocked(state(100))
    assert team.current() == state(5)


def test_a_state_that_is_deleted_while_it_is_written_is_made_anew(team: Team) -> None:
    team.lock()
    team.write(state(1))
    team.bucket.proxy.before(
        "PUT", KEY, lambda: team.bucket.s3.delete_object(Bucket=team.bucket.name, Key=KEY)
    )
    assert team.write_through_faults(state(2)).new_version
    assert team.versions() == [state(1), state(2)]


# --- the second reading of the lock -------------------------------------------------------------------


def in_the_middle(team: Team, *acts: Callable[[], object]) -> None:
    """Call functions between the first read of the lock and the PutObject."""
    team.bucket.proxy.before("PUT", KEY, lambda: [act() for act in acts])


def another_holder(team: Team, *, is_later: bool = False) -> None:
    """Break the lock; somebody else acquires it, writes serial 6 and releases it."""
    team.broken_and_taken()
    if is_later:
        team.next_second()
    team.write(state(6, content="theirs"), "two", BOB)
    team.unlock(TWO, BOB)


def a_late_write(
    team: Team, body: bytes, lock_id: str = "one", caller: Caller = ADA, *, to: bytes = TWO
) -> None:
    """A write lands after its lock was broken and acquired by somebody else. It is not acknowledged."""
    holder = BOB if to == TWO else ADA
    in_the_middle(team, team.broken, lambda: team.lock(to, holder), team.next_second)
    with pytest.raises(LockLost):
        team.write_through_faults(body, lock_id, caller)


def test_a_repeated_write_whose_lock_was_broken_meanwhile_is_not_acknowledged(team: Team) -> None:
    team.lock()
    team.write(state(1))
    team.bucket.proxy.before("GET", LOCK_KEY, team.break_lock)
    with pytest.raises(LockLost):
        team.write_through_faults(state(1))


@pytest.mark.parametrize("operation", ["OperationTypeApply", "state-push"])
@pytest.mark.parametrize("serial", [6, 7])
@pytest.mark.parametrize("reading", [KEY, LOCK_KEY])
def test_a_writer_whose_lock_went_through_other_hands_while_it_reads_overwrites_nobody(
    team: Team, operation: str, serial: int, reading: str
) -> None:
    ours = lock_info("one", operation=operation)
    team.lock(ours)
    team.write(state(5))

    team.bucket.proxy.before("GET", reading, lambda: another_holder(team, is_later=True))
    with pytest.raises(LockLost):
        team.write_through_faults(state(serial, content="ours"))
    assert team.versions() == [state(5), state(6, content="theirs")]


def test_a_late_write_is_refused_after_the_next_holder_has_written_and_released(team: Team) -> None:
    """The picture in `fencing.md`."""
    team.lock()
    team.write(state(1))
    in_the_middle(team, partial(another_holder, team))
    with team.bucket.sent("if-match") as sent, pytest.raises(LockLost, match=r"errored\.tfstate"):
        team.write_through_faults(state(2, content="late"))
    assert [method for method, _ in sent] == ["GET", "GET", "PUT", "GET", "GET"]
    assert team.versions() == [state(1), state(6, content="theirs")]


def test_a_refused_writer_that_comes_back_with_the_next_serial_is_refused_again(team: Team) -> None:
    team.lock()
    team.write(state(1))
    a_late_write(team, state(2, content="late"))
    with pytest.raises(Locked):
        team.write(state(3, content="late"))
    assert team.versions() == [state(1), state(2, content="late")]


def test_a_lock_that_was_broken_and_taken_again_is_not_the_same_lock(team: Team) -> None:
    team.lock()
    in_the_middle(team, team.break_lock, team.next_second, team.lock)
    with pytest.raises(LockLost):
        team.write_through_faults(state(1))


def test_a_write_that_goes_round_again_demands_the_lock_of_its_first_round(team: Team) -> None:
    team.lock()
    # As a late retry of an acquire does.
    in_the_middle(team, team.break_lock, team.lock, partial(team.put_beside, state(1)))
    with pytest.raises(LockLost):
        team.write_through_faults(state(9))
    assert team.current() == state(1)


def test_a_push_whose_lock_was_broken_and_taken_again_overwrites_nobody(team: Team) -> None:
    push = lock_info("push", operation="state-push")
    team.lock(push)
    in_the_middle(
        team,
        partial(team.break_lock, "push"),
        partial(team.lock, TWO, BOB),
        partial(team.write, state(9), "two", BOB),
        partial(team.unlock, TWO, BOB),
        partial(team.lock, push),  # a late repeat of the first request
    )
    with pytest.raises(LockLost):
        team.write_through_faults(state(1), "push")
    assert team.current() == state(9)


def test_an_unlocked_write_is_not_acknowledged_once_somebody_has_locked(team: Team) -> None:
    team.write_unlocked(state(1))
    in_the_middle(team, lambda: team.lock(TWO, BOB))
    with pytest.raises(LockLost, match="locked the state"):
        team.write_unlocked(state(2))


def test_the_holder_writes_over_a_late_write_and_does_not_go_back_behind_what_was_acknowledged(
    team: Team,
) -> None:
    team.lock()
    team.write(state(5))
    a_late_write(team, state(9, content="late"))
    with pytest.raises(SerialNotNewer, match="5"):
        team.write(state(4), "two", BOB)
    with pytest.raises(LineageChanged):
        team.write(state(6, lineage="another"), "two", BOB)
    assert team.write(state(6), "two", BOB).new_version
    assert team.current() == state(6)


def test_the_holder_writes_over_two_late_writes_and_still_cannot_go_back(team: Team) -> None:
    team.lock()
    team.write(state(5))
    a_late_write(team, state(9, content="late"))
    a_late_write(team, state(6, content="late too"), "two", BOB, to=lock_info("three", who="eve@train"))
    with pytest.raises(SerialNotNewer, match="5"):
        team.write(state(5, content="other"), "three")
    assert team.write(state(6), "three").new_version
    assert team.current() == state(6)


def test_what_was_acknowledged_counts_whoever_wrote_it_and_however_long_ago(team: Team) -> None:
    def refused(serial: int, lock_id: str, caller: Caller) -> None:
        with pytest.raises(SerialNotNewer, match=str(serial)):
            team.write(state(serial, content="other"), lock_id, caller)

    team.written(state(4), state(5))
    team.lock(TWO, BOB)
    refused(5, "two", BOB)  # under an earlier lock
    team.next_second()
    team.write(state(6), "two", BOB)
    refused(6, "two", BOB)  # by the holder, later than its lock
    team.next_second()
    team.put_beside(state(7))
    refused(7, "two", BOB)  # by another program
    assert team.current() == state(7)


# --- the cache of a warm process -----------------------------------------------------------------------


@dataclass(frozen=True)
class WarmProcess:
    """A process with a cache. Its requests to S3 go through the proxy."""

    bucket: Bucket
    memory: Memory

    def read(self) -> bytes | None:
        return read(work(self.bucket.store(), NAME, ADA, self.memory))

    def write(self, body: bytes, lock_id: str = "one") -> Written:
        store = self.bucket.store()
        return write(work(store, NAME, ADA, self.memory, require_lock=True), body, lock_id)

    def remembers_nothing(self) -> bool:
        return self.memory.take(NAME) is None


@pytest.fixture
def warm(bucket: Bucket) -> WarmProcess:
    bucket.encrypt_with_kms()
    return WarmProcess(bucket, Memory())


def push(team: Team, body: bytes, lock_id: str = "push") -> None:
    """Another process pushes a state, whose serial may be lower."""
    team.lock(lock_info(lock_id, operation="state-push"))
    team.write(body, lock_id)
    team.unlock(lock_info(lock_id, operation="state-push"))


def test_a_forced_push_of_bytes_that_are_remembered_and_superseded_is_written(
    team: Team, warm: WarmProcess
) -> None:
    push(team, state(1))
    warm.read()
    push(team, state(2))
    team.lock(lock_info("push", operation="state-push"))
    assert warm.write(state(1), "push").new_version
    assert team.versions() == [state(1), state(2), state(1)]


def test_a_write_that_only_the_lineage_that_is_remembered_would_refuse_is_written(
    team: Team, warm: WarmProcess
) -> None:
    push(team, state(10))
    warm.read()
    push(team, state(20, lineage="another"))
    team.lock()
    assert warm.write(state(21, lineage="another")).new_version


@pytest.mark.parametrize(
    ("body", "refusal"), [(state(3), SerialNotNewer), (state(9, lineage="another"), LineageChanged)]
)
def test_a_write_that_follows_only_what_is_remembered_is_refused(
    team: Team, warm: WarmProcess, body: bytes, refusal: type[Exception]
) -> None:
    push(team, state(1, lineage=""))
    warm.read()
    push(team, state(5))
    team.lock()
    with pytest.raises(refusal):
        warm.write(body)
    assert team.versions() == [state(1, lineage=""), state(5)]


def test_a_file_that_is_no_state_is_compared_with_the_current_state_and_not_with_what_is_remembered(
    team: Team, warm: WarmProcess
) -> None:
    push(team, state(1))
    warm.read()
    push(team, state(5, lineage=""))
    team.lock(lock_info("push", operation="state-push"))
    assert warm.write(blank_state(), "push").new_version
    team.unlock(lock_info("push", operation="state-push"))
    push(team, state(7))
    team.lock(lock_info("push", operation="state-push"))
    with pytest.raises(LineageChanged):
        warm.write(blank_state(2), "push")
    assert team.versions() == [state(1), state(5, lineage=""), blank_state(), state(7)]


def test_a_refusal_that_names_the_lock_needs_no_state(team: Team, warm: WarmProcess) -> None:
    push(team, state(1))
    warm.read()
    team.lock(TWO, BOB)
    with team.bucket.sent("host") as sent, pytest.raises(Locked):
        warm.write(state(2))
    assert [method for method, _ in sent] == ["GET"]


@pytest.mark.parametrize("late_acquire", [False, True], ids=["the lock is gone", "it was taken again"])
def test_a_late_write_from_memory_is_refused_after_the_next_holder_has_written_and_released(
    team: Team, warm: WarmProcess, late_acquire: bool
) -> None:
    """The lock was read before it failed, so that it says nothing of the version that is current by then."""
    team.lock()
    warm.write(state(1))

    def another_holder_in_between() -> None:
        another_holder(team)
        if late_acquire:
            team.lock()

    in_the_middle(team, another_holder_in_between)
    with team.bucket.sent("host") as sent, pytest.raises(LockLost):
        warm.write(state(3, content="late"))
    assert [method for method, _ in sent] == ["GET", "PUT", "GET", "GET"]
    assert team.versions() == [state(1), state(6, content="theirs")]


def test_a_write_from_memory_whose_lock_is_broken_before_it_lands_is_neither_acknowledged_nor_remembered(
    team: Team, warm: WarmProcess
) -> None:
    team.lock()
    warm.write(state(1))
    in_the_middle(team, team.broken_and_taken)
    with pytest.raises(LockLost):
        warm.write(state(2))
    assert warm.remembers_nothing()


def test_a_holder_writes_from_memory_over_what_was_never_acknowledged_and_cannot_go_back(
    team: Team, warm: WarmProcess
) -> None:
    team.lock()
    team.write(state(5))
    a_late_write(team, state(9, content="late"))
    bobs = team.bucket.store()
    read(work(bobs, NAME, BOB, warm.memory))
    with pytest.raises(SerialNotNewer, match="5"):
        write(work(bobs, NAME, BOB, warm.memory, require_lock=True), state(5, content="other"), "two")
    read(work(bobs, NAME, BOB, warm.memory))
    bobs.budget.requests.clear()
    write(work(bobs, NAME, BOB, warm.memory, require_lock=True), state(6), "two")
    assert bobs.budget.requests == ["GetObject", "PutObject", "GetObject"]
    assert team.current() == state(6)


def test_a_write_from_memory_whose_answer_from_s3_was_lost_counts_as_written_once(
    team: Team, warm: WarmProcess
) -> None:
    team.lock()
    warm.write(state(1))
    team.bucket.proxy.fail("PUT", KEY, Fault.ANSWER_LOST)
    assert not warm.write(state(2)).new_version
    assert warm.write(state(3)).new_version
    assert team.versions() == [state(1), state(2), state(3)]


def test_what_is_remembered_of_a_write_is_what_a_read_tells_but_for_its_time_and_has_no_content(
    team: Team, warm: WarmProcess
) -> None:
    who = "ädä@büro 100%\n" * 40  # is encoded, and cut in the middle of a character
    team.lock(lock_info("one", who=who, operation=" \u2028 "))
    lineage = "läñ/+ %41"
    for serial in (1, 2):  # the second notes what it superseded
        warm.write(state(serial, lineage=lineage, content="confidential"))
    assert b"confidential" not in pickle.dumps(warm.memory)
    written = warm.memory.take(NAME)
    assert written
    warm.read()
    assert b"confidential" not in pickle.dumps(warm.memory)
    told = warm.memory.take(NAME)
    assert told
    since = written.last_modified - told.last_modified
    assert timedelta(0) <= since < timedelta(minutes=1)
    assert replace(written, last_modified=told.last_modified) == told
    current = parse_metadata(told)
    assert current
    assert (current.revision, current.superseded) == (Revision(2, lineage), Revision(1, lineage))


# --- retention -----------------------------------------------------------------------------------------


RETENTION = Retention("GOVERNANCE", 30)


def retained(team: Team, version_id: str) -> bool:
    """Return whether a version of the state is under retention."""
    head = team.bucket.s3.head_object(Bucket=team.bucket.name, Key=KEY, VersionId=version_id)
    return head.get("ObjectLockMode") == "GOVERNANCE"


def test_a_state_under_retention_is_deleted_and_undeleted_and_keeps_every_version(team: Team) -> None:
    write(work(team.bucket.store(), NAME, ADA, retention=RETENTION), state(1), None)
    delete(work(team.bucket.store(), NAME, OPERATOR))
    undeleted = undelete(
        work(team.bucket.store(), NAME, OPERATOR, retention=RETENTION), team.bucket.marker(KEY)
    )
    assert retained(team, undeleted.version_id)
    assert team.versions() == [state(1), state(1)]
    assert team.bucket.history(LOCK_KEY) == []


# --- probes --------------------------------------------------------------------------------------------


def test_a_probe_is_locked_written_read_deleted_and_undeleted_as_any_state_and_never_retained(
    team: Team,
) -> None:
    bucket = team.bucket
    acquiring.acquire(work(bucket.store(), PROBE, ADA), ONE)
    for serial in (1, 2):
        write(
            work(bucket.store(), PROBE, ADA, require_lock=True, retention=RETENTION),
            probe_state(serial),
            "one",
        )
    releasing.release(work(bucket.store(), PROBE, ADA), ONE)
    assert read(work(bucket.store(), PROBE, READER)) == probe_state(2)
    delete(work(bucket.store(), PROBE, OPERATOR))
    assert read(work(bucket.store(), PROBE, READER)) is None
    undelete(work(bucket.store(), PROBE, OPERATOR, retention=RETENTION), bucket.marker(PROBE.state_key))
    assert read(work(bucket.store(), PROBE, READER)) == probe_state(2)

    assert bucket.history("states/") == []
    left = bucket.history("")
    assert {key for key, _ in left} == {PROBE.state_key}
    for key, version in left:
        # Without a bypass: S3 would refuse it for a version under retention.
        bucket.s3.delete_object(Bucket=bucket.name, Key=key, VersionId=version)
    assert bucket.history("") == []


@pytest.mark.parametrize(
    "body",
    [
        state(1),
        probe_state(1).replace(b'"resources": []', b'"resources": [{"mode": "managed"}]'),
        probe_state(1).replace(b'"resources": []', b'"modules": [{"path": ["root"]}]'),
        encrypted_state(1, "AAAA"),
    ],
    ids=["outputs", "resources", "an old format's resources", "encrypted"],
)
def test_nobody_may_keep_anything_in_a_probe(team: Team, body: bytes) -> None:
    acquiring.acquire(work(team.bucket.direct_store(), PROBE, ADA), ONE)
    store = team.bucket.store()
    with pytest.raises(
        InvalidState, match="reserved for 'holdfast doctor', so only an empty state may have such a name"
    ):
        write(work(store, PROBE, ADA, require_lock=True), body, "one")
    assert store.budget.requests == []
    assert team.bucket.history(PROBE.state_key) == team.bucket.history(PROBE.lock_key)
