"""Read, write, delete, undelete on real S3 servers: what the fences hold back and what they let through."""

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import pytest
from botocore.exceptions import TokenRetrievalError

from holdfast import names
from holdfast.access import Caller, Role
from holdfast.errors import (
    BaseChanged,
    DeleteOutcomeUnknown,
    InvalidState,
    LineageChanged,
    Locked,
    LockLeft,
    LockLost,
    LockRequired,
    NotAllowed,
    NoVersions,
    OutcomeUnknown,
    RacedWriter,
    SerialNotNewer,
    StorageRefused,
    UndeleteOutcomeUnknown,
    UnreadableState,
    UnreadableVersion,
)
from holdfast.s3.retention import Retention
from holdfast.s3.store import Store
from holdfast.state import locks
from holdfast.state import undelete as undelete_module
from holdfast.state.delete import Removed, delete
from holdfast.state.document import Revision
from holdfast.state.memory import Memory
from holdfast.state.read import read
from holdfast.state.undelete import Undeleted, undelete
from holdfast.state.write import Written, write
from tests.contract.conftest import ACCOUNT, KEY, LOCK_KEY, NAME, ONE, READER, TWO, Bucket, Team
from tests.support.documents import (
    ADA,
    BOB,
    LINEAGE,
    OPERATOR,
    encrypted_state,
    lock_info,
    probe_state,
    state,
)
from tests.support.s3_fault_proxy import Fault

# --- the plain path -----------------------------------------------------------------------------


def test_a_state_is_stored_and_returned_byte_for_byte_with_what_its_writer_noted(team: Team) -> None:
    assert team.current() is None
    team.lock()
    body = state(1, content="ümläut \u2028 \\u0000")
    store = team.bucket.store()
    written = write(store, NAME, body, "one", ADA, require_lock=True)
    assert written == Written(Revision(1, LINEAGE), None, written.version_id, written.lock, new_version=True)
    assert written.lock is not None
    assert (written.lock.id, written.lock.who) == ("one", "ada@laptop")
    assert sorted(store.requests) == ["GetObject", "GetObject", "GetObject", "PutObject"]
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


def test_a_read_takes_one_request(team: Team) -> None:
    team.lock()
    team.write(state(1))
    store = team.bucket.store()
    assert read(store, NAME, READER) == state(1)
    assert store.requests == ["GetObject"]


def test_intermediate_saves_and_gaps_in_the_serial_are_normal(team: Team) -> None:
    team.lock()
    for serial in (1, 2, 7):
        assert team.write(state(serial)).new_version
    assert team.versions() == [state(1), state(2), state(7)]


def test_a_write_that_is_repeated_makes_no_second_version(team: Team) -> None:
    team.lock()
    first = team.write(state(1))
    again = team.write(state(1))
    assert (again.version_id, again.new_version) == (first.version_id, False)
    assert team.versions() == [state(1)]


def test_encrypted_states_are_fenced_by_the_serial_that_stays_readable(team: Team) -> None:
    team.lock()
    team.write(encrypted_state(1, "AAAA"))
    with pytest.raises(SerialNotNewer):
        team.write(encrypted_state(1, "BBBB"))
    team.write(encrypted_state(2, "CCCC"))
    assert team.current() == encrypted_state(2, "CCCC")


def test_an_empty_lineage_matches_any(team: Team) -> None:
    team.lock()
    team.write(state(1, lineage=""))
    team.write(state(2))
    team.write(state(3, lineage=""))
    assert team.current() == state(3, lineage="")


# --- the first reading of the lock -----------------------------------------------------------------


def test_a_write_with_anothers_id_is_refused_with_the_holder(team: Team) -> None:
    team.lock()
    with pytest.raises(Locked) as refused:
        team.write(state(1), "two", BOB)
    assert refused.value.body()["ID"] == "one"
    assert team.versions() == []


def test_a_write_with_the_holders_id_by_somebody_else_is_refused(team: Team) -> None:
    team.lock()
    with pytest.raises(Locked):
        team.write(state(1), "one", BOB)
    assert team.versions() == []


def test_a_write_without_an_id_while_the_state_is_locked_is_refused(team: Team) -> None:
    team.lock()
    with pytest.raises(Locked):
        team.write(state(1), None)
    with pytest.raises(Locked):
        team.write_unlocked(state(1))
    assert team.versions() == []


def test_a_write_under_a_lock_that_is_gone_is_refused(team: Team) -> None:
    team.lock()
    team.write(state(1))
    team.break_lock()
    with pytest.raises(LockLost):
        team.write(state(2))
    assert team.versions() == [state(1)]


def test_a_write_without_a_lock_is_refused_where_the_team_requires_one(team: Team) -> None:
    with pytest.raises(LockRequired, match="-lock=false"):
        team.write(state(1), None)
    assert team.versions() == []
    assert team.write_unlocked(state(1)).lock is None
    assert team.versions() == [state(1)]


def test_a_reader_cannot_write_and_s3_is_not_asked(team: Team) -> None:
    store = team.bucket.store()
    with pytest.raises(NotAllowed, match="writer"):
        write(store, NAME, state(1), None, READER, require_lock=False)
    assert store.requests == []


def test_a_body_that_is_no_state_is_refused_before_s3_is_asked(team: Team) -> None:
    store = team.bucket.store()
    with pytest.raises(InvalidState):
        write(store, NAME, b"[]", None, ADA, require_lock=False)
    assert store.requests == []


# --- serial and lineage ---------------------------------------------------------------------------


@pytest.mark.parametrize("body", [state(4), state(5, content="other")], ids=["lower", "same, other bytes"])
def test_a_write_whose_serial_is_not_higher_is_refused(team: Team, body: bytes) -> None:
    team.lock()
    team.write(state(5))
    with pytest.raises(SerialNotNewer, match="5"):
        team.write(body)
    assert team.versions() == [state(5)]


def test_a_write_of_another_lineage_is_refused(team: Team) -> None:
    team.lock()
    team.write(state(1))
    with pytest.raises(LineageChanged, match="different states"):
        team.write(state(2, lineage="another"))
    assert team.versions() == [state(1)]


@pytest.mark.parametrize("operation", ["state-push", "migration destination state"])
def test_a_push_or_migration_was_compared_by_its_client_and_may_go_back(team: Team, operation: str) -> None:
    team.lock()
    team.write(state(5))
    team.unlock()
    team.lock(lock_info("push", operation=operation))
    team.write(state(2), "push")
    team.write(state(1, lineage="another"), "push")
    assert team.versions() == [state(5), state(2), state(1, lineage="another")]


def test_a_state_of_another_program_is_compared_by_its_body(team: Team) -> None:
    team.bucket.s3.put_object(Bucket=team.bucket.name, Key=KEY, Body=state(3))
    team.lock()
    with pytest.raises(SerialNotNewer):
        team.write(state(3, content="other"))
    with pytest.raises(LineageChanged):
        team.write(state(4, lineage="another"))
    assert not team.write(state(3)).new_version
    assert team.write(state(4)).new_version


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


def test_an_object_that_is_no_state_is_replaced_only_by_a_push(team: Team) -> None:
    team.bucket.s3.put_object(Bucket=team.bucket.name, Key=KEY, Body=b"not a state")
    team.lock()
    with pytest.raises(UnreadableState):
        team.write(state(1))
    team.unlock()
    team.lock(lock_info("push", operation="state-push"))
    team.write(state(1), "push")
    assert team.current() == state(1)


def test_a_state_of_zero_bytes_is_not_read_as_no_state_and_can_be_written_over(team: Team) -> None:
    team.bucket.s3.put_object(Bucket=team.bucket.name, Key=KEY, Body=b"")
    with pytest.raises(UnreadableState, match="zero bytes"):
        team.current()
    team.lock()
    team.write(state(1))
    assert team.current() == state(1)


# --- the condition on the ETag ----------------------------------------------------------------------


def test_an_unlocked_writer_that_was_overtaken_is_refused(team: Team) -> None:
    team.write_unlocked(state(1))
    team.bucket.proxy.before("PUT", KEY, lambda: team.write_beside(state(2, content="theirs")))
    with pytest.raises(SerialNotNewer):
        team.write_unlocked(state(2, content="ours"))
    assert team.versions() == [state(1), state(2, content="theirs")]


def test_of_two_first_writers_without_a_lock_one_is_refused(team: Team) -> None:
    team.bucket.proxy.before("PUT", KEY, lambda: team.write_beside(state(1, lineage="theirs")))
    with pytest.raises(LineageChanged):
        team.write_unlocked(state(1, lineage="ours"))
    assert team.versions() == [state(1, lineage="theirs")]


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


# --- lost answers -----------------------------------------------------------------------------------


def test_a_write_whose_answer_from_s3_was_lost_counts_as_written_once(team: Team) -> None:
    team.lock()
    team.write(state(1))
    team.bucket.proxy.fail("PUT", KEY, Fault.ANSWER_LOST)
    team.write_through_faults(state(2))
    assert team.versions() == [state(1), state(2)]


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.CONFLICT, Fault.NEVER_ARRIVES])
def test_a_write_that_s3_did_not_take_is_repeated(team: Team, fault: Fault) -> None:
    team.lock()
    team.bucket.proxy.fail("PUT", KEY, fault, times=2)
    team.write_through_faults(state(1))
    assert team.versions() == [state(1)]


def test_a_write_that_is_not_decided_in_time_says_so_and_its_retry_is_written_once(team: Team) -> None:
    team.lock()
    team.bucket.proxy.fail("PUT", KEY, Fault.ANSWER_LOST)
    team.bucket.proxy.fail("PUT", KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown):
        team.write_through_faults(state(1), seconds=1)
    assert team.bucket.proxy.end_rules() < 1000
    assert team.versions() == [state(1)]
    again = team.write(state(1))
    assert not again.new_version
    assert team.versions() == [state(1)]


# --- the second reading of the lock -------------------------------------------------------------------


def in_the_middle(team: Team, *acts: Callable[[], object]) -> None:
    """Do things between the first reading of the lock and the PutObject."""
    team.bucket.proxy.before("PUT", KEY, lambda: [act() for act in acts])


def test_a_write_whose_lock_is_broken_before_it_lands_is_not_acknowledged(team: Team) -> None:
    team.lock()
    in_the_middle(team, team.break_lock)
    with pytest.raises(LockLost):
        team.write_through_faults(state(1))


def test_a_write_whose_lock_was_taken_over_before_it_lands_is_not_acknowledged(team: Team) -> None:
    team.lock()
    in_the_middle(team, team.break_lock, lambda: team.lock(TWO, BOB))
    with pytest.raises(LockLost, match=r"errored\.tfstate"):
        team.write_through_faults(state(1))


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

    def another_holder_in_between() -> None:
        team.break_lock()
        team.lock(TWO, BOB)
        team.next_second()
        team.write(state(6, content="theirs"), "two", BOB)
        team.unlock(TWO, BOB)

    team.bucket.proxy.before("GET", reading, another_holder_in_between)
    with pytest.raises(LockLost):
        team.write_through_faults(state(serial, content="ours"))
    assert team.versions() == [state(5), state(6, content="theirs")]


def test_a_late_write_is_refused_after_the_next_holder_has_written_and_released(team: Team) -> None:
    """The picture in the README."""
    team.lock()
    team.write(state(1))
    in_the_middle(
        *(team, team.break_lock, lambda: team.lock(TWO, BOB)),
        lambda: team.write(state(2, content="theirs"), "two", BOB),
        lambda: team.unlock(TWO, BOB),
    )
    with team.bucket.sent("if-match") as sent, pytest.raises(LockLost):
        team.write_through_faults(state(2, content="late"))
    assert [method for method, _ in sent] == ["GET", "GET", "PUT", "GET", "GET"]
    assert team.versions() == [state(1), state(2, content="theirs")]


def test_a_refused_writer_that_comes_back_with_the_next_serial_is_refused_again(team: Team) -> None:
    team.lock()
    team.write(state(1))
    in_the_middle(team, team.break_lock, lambda: team.lock(TWO, BOB))
    with pytest.raises(LockLost):
        team.write_through_faults(state(2, content="late"))
    with pytest.raises(Locked):
        team.write(state(3, content="late"))
    assert team.versions() == [state(1), state(2, content="late")]


def test_a_lock_that_was_broken_and_taken_again_is_not_the_same_lock(team: Team) -> None:
    team.lock()
    in_the_middle(team, team.break_lock, team.next_second, team.lock)
    with pytest.raises(LockLost):
        team.write_through_faults(state(1))


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


def test_the_holder_writes_over_a_late_write_that_was_never_acknowledged(team: Team) -> None:
    team.lock()
    team.write(state(5))
    in_the_middle(team, team.break_lock, lambda: team.lock(TWO, BOB), team.next_second)
    with pytest.raises(LockLost):
        team.write_through_faults(state(9, content="late"))
    written = team.write(state(6), "two", BOB)
    assert written.new_version
    assert team.current() == state(6)


def test_a_late_write_does_not_let_the_holder_go_back_behind_what_was_acknowledged(team: Team) -> None:
    team.lock()
    team.write(state(5))
    in_the_middle(team, team.break_lock, lambda: team.lock(TWO, BOB), team.next_second)
    with pytest.raises(LockLost):
        team.write_through_faults(state(9))
    with pytest.raises(SerialNotNewer, match="5"):
        team.write(state(4), "two", BOB)
    with pytest.raises(LineageChanged):
        team.write(state(6, lineage="another"), "two", BOB)
    assert team.current() == state(9)


def test_a_version_of_another_program_counts_also_while_the_lock_is_held(team: Team) -> None:
    team.lock()
    team.next_second()
    team.put_beside(state(7))
    with pytest.raises(SerialNotNewer, match="7"):
        team.write(state(7, content="other"))


def test_the_holder_writes_over_two_late_writes_and_still_cannot_go_back(team: Team) -> None:
    three = lock_info("three", who="eve@train")
    team.lock()
    team.write(state(5))
    in_the_middle(team, team.break_lock, partial(team.lock, TWO, BOB), team.next_second)
    with pytest.raises(LockLost):
        team.write_through_faults(state(9, content="late"))
    in_the_middle(team, partial(team.break_lock, "two"), partial(team.lock, three), team.next_second)
    with pytest.raises(LockLost):
        team.write_through_faults(state(6, content="late too"), "two", BOB)
    with pytest.raises(SerialNotNewer, match="5"):
        team.write(state(5, content="other"), "three")
    assert team.write(state(6), "three").new_version
    assert team.current() == state(6)


def test_what_was_acknowledged_under_an_earlier_lock_counts(team: Team) -> None:
    team.lock()
    team.write(state(4))
    team.write(state(5))
    team.unlock()
    team.lock(TWO, BOB)
    with pytest.raises(SerialNotNewer, match="5"):
        team.write(state(5, content="other"), "two", BOB)
    assert team.current() == state(5)


def test_the_holders_own_writes_count_however_much_later_than_its_lock(team: Team) -> None:
    team.lock()
    team.write(state(5))
    team.next_second()
    team.write(state(6))
    with pytest.raises(SerialNotNewer, match="6"):
        team.write(state(6, content="other"))
    assert team.current() == state(6)


# --- what a warm process remembers ---------------------------------------------------------------------


@dataclass(frozen=True)
class WarmProcess:
    """A process that has a memory, and whose requests to S3 meet the faults."""

    bucket: Bucket
    memory: Memory

    def read(self) -> bytes | None:
        return read(self.bucket.store(), NAME, ADA, self.memory)

    def write(self, body: bytes, lock_id: str = "one") -> Written:
        store = self.bucket.store()
        return write(store, NAME, body, lock_id, ADA, require_lock=True, memory=self.memory)

    def remembers_nothing(self) -> bool:
        return self.memory.take(NAME) is None


@pytest.fixture
def warm(bucket: Bucket) -> WarmProcess:
    bucket.encrypt_with_kms()
    return WarmProcess(bucket, Memory())


def push(team: Team, body: bytes, lock_id: str = "push") -> None:
    """Another process pushes a state, which may go back."""
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


@pytest.mark.parametrize(
    ("between", "then"),
    [(state(5), state(6)), (state(20, lineage="another"), state(21, lineage="another"))],
    ids=["serial", "lineage"],
)
def test_a_write_that_only_what_is_remembered_would_refuse_is_written(
    team: Team, warm: WarmProcess, between: bytes, then: bytes
) -> None:
    push(team, state(10))
    warm.read()
    push(team, between)
    team.lock()
    assert warm.write(then).new_version
    assert team.versions() == [state(10), between, then]


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
        team.break_lock()
        team.lock(TWO, BOB)
        team.write(state(2, content="theirs"), "two", BOB)
        team.unlock(TWO, BOB)
        if late_acquire:
            team.lock()

    in_the_middle(team, another_holder_in_between)
    with team.bucket.sent("host") as sent, pytest.raises(LockLost):
        warm.write(state(3, content="late"))
    assert [method for method, _ in sent] == ["GET", "PUT", "GET", "GET"]
    assert team.versions() == [state(1), state(2, content="theirs")]


def test_a_write_from_memory_whose_lock_is_broken_before_it_lands_is_neither_acknowledged_nor_remembered(
    team: Team, warm: WarmProcess
) -> None:
    team.lock()
    warm.write(state(1))
    in_the_middle(team, team.break_lock, lambda: team.lock(TWO, BOB))
    with pytest.raises(LockLost):
        warm.write(state(2))
    assert warm.remembers_nothing()


def test_a_holder_writes_from_memory_over_what_was_never_acknowledged_and_cannot_go_back(
    team: Team, warm: WarmProcess
) -> None:
    team.lock()
    team.write(state(5))
    in_the_middle(team, team.break_lock, lambda: team.lock(TWO, BOB), team.next_second)
    with pytest.raises(LockLost):
        team.write_through_faults(state(9, content="late"))
    bobs = team.bucket.store()
    read(bobs, NAME, BOB, warm.memory)
    with pytest.raises(SerialNotNewer, match="5"):
        write(bobs, NAME, state(5, content="other"), "two", BOB, require_lock=True, memory=warm.memory)
    read(bobs, NAME, BOB, warm.memory)
    bobs.requests.clear()
    write(bobs, NAME, state(6), "two", BOB, require_lock=True, memory=warm.memory)
    assert bobs.requests == ["GetObject", "PutObject", "GetObject"]
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
    since = written.version.last_modified - told.version.last_modified
    assert timedelta(0) <= since < timedelta(minutes=1)
    same_time = replace(written.version, last_modified=told.version.last_modified)
    assert replace(written, version=same_time) == told
    assert (told.revision, told.superseded) == (Revision(2, lineage), Revision(1, lineage))


# --- delete --------------------------------------------------------------------------------------------


def delete_as(team: Team, caller: Caller = OPERATOR) -> Removed:
    return delete(team.bucket.store(), NAME, caller)


def nobody_holds_the_lock(team: Team) -> bool:
    return locks.read(team.bucket.direct_store(), NAME) is None


def held_id(team: Team) -> str:
    held = locks.read(team.bucket.direct_store(), NAME)
    assert held is not None
    return held.info.id


def test_a_delete_leaves_the_versions_and_no_lock(team: Team) -> None:
    team.write_unlocked(state(1))
    assert delete_as(team).version_id is not None
    assert team.current() is None
    assert team.versions() == [state(1)]
    assert team.bucket.history(LOCK_KEY) == []


@pytest.mark.parametrize("retained", [False, True])
def test_a_delete_leaves_one_marker_on_the_state(team: Team, retained: bool) -> None:
    if retained:
        team.bucket.retain_everything()
    team.write_unlocked(state(1))
    delete_as(team)
    assert team.bucket.delete_markers(KEY) == 1
    assert team.versions() == [state(1)]
    assert nobody_holds_the_lock(team)


def test_deleting_nothing_succeeds(team: Team) -> None:
    assert delete_as(team) == Removed(None)
    assert nobody_holds_the_lock(team)


def test_a_bucket_that_is_gone_is_a_fault_for_every_verb(bucket: Bucket) -> None:
    def gone() -> Store:
        return Store(bucket.s3, "holdfast-gone", ACCOUNT, deadline=time.monotonic() + 20)

    for verb in (
        lambda: read(gone(), NAME, READER),
        lambda: write(gone(), NAME, state(1), "one", ADA, require_lock=True),
        lambda: write(gone(), NAME, state(1), None, ADA, require_lock=False),
        lambda: delete(gone(), NAME, OPERATOR),
        lambda: undelete(gone(), NAME, "none", OPERATOR, None),
        lambda: locks.acquire(gone(), NAME, ONE, ADA),
        lambda: locks.release(gone(), NAME, ONE, ADA),
    ):
        with pytest.raises(StorageRefused, match="NoSuchBucket"):
            verb()


def test_a_delete_while_somebody_holds_the_lock_is_refused(team: Team) -> None:
    team.lock()
    team.write(state(1))
    with pytest.raises(Locked):
        delete_as(team)
    assert team.current() == state(1)


def test_a_writer_cannot_delete(team: Team) -> None:
    with pytest.raises(NotAllowed, match="maintainer"):
        delete_as(team, ADA)


@pytest.mark.parametrize(("verb", "key"), [("PUT", LOCK_KEY), ("DELETE", KEY)])
def test_a_delete_does_not_remove_what_was_written_meanwhile(team: Team, verb: str, key: str) -> None:
    team.write_unlocked(state(1))
    team.bucket.proxy.before(verb, key, lambda: team.put_beside(state(2)))
    with pytest.raises(RacedWriter):
        delete_as(team)
    assert team.current() == state(2)
    assert nobody_holds_the_lock(team)


def break_whatever_lock_there_is(team: Team) -> None:
    held = locks.read(team.bucket.direct_store(), NAME)
    assert held is not None
    team.break_lock(held.info.id)


def test_a_delete_whose_lock_was_broken_does_not_remove_what_the_next_holder_wrote(team: Team) -> None:
    team.write_unlocked(state(1))

    def another_holder_in_between() -> None:
        break_whatever_lock_there_is(team)
        team.lock(TWO, BOB)
        team.write(state(2), "two", BOB)
        team.unlock(TWO, BOB)

    team.bucket.proxy.before("DELETE", KEY, another_holder_in_between)
    with pytest.raises(RacedWriter):
        delete_as(team)
    assert team.current() == state(2)


@pytest.mark.parametrize("taken", [True, False])
def test_a_delete_whose_lock_was_broken_is_not_acknowledged(team: Team, taken: bool) -> None:
    team.write_unlocked(state(1))

    def broken() -> None:
        break_whatever_lock_there_is(team)
        if taken:
            team.lock(TWO, BOB)

    team.bucket.proxy.before("DELETE", KEY, broken)
    with pytest.raises(DeleteOutcomeUnknown):
        delete_as(team)
    assert nobody_holds_the_lock(team) is not taken


def test_a_delete_whose_lock_was_broken_and_taken_again_by_its_repeat_is_not_acknowledged(team: Team) -> None:
    team.write_unlocked(state(1))

    def broken_and_taken_again() -> None:
        held = locks.read(team.bucket.direct_store(), NAME)
        assert held is not None
        team.break_lock(held.info.id)
        locks.acquire_own(team.bucket.direct_store(), NAME, held.info, OPERATOR)

    team.bucket.proxy.before("DELETE", KEY, broken_and_taken_again)
    with pytest.raises(DeleteOutcomeUnknown):
        delete_as(team)


def test_a_late_delete_leaves_the_lock_of_a_later_delete_alone(team: Team) -> None:
    team.write_unlocked(state(1))

    def another_state_and_its_delete_in_between() -> None:
        break_whatever_lock_there_is(team)
        team.write_unlocked(state(2))
        with pytest.MonkeyPatch.context() as patch:  # the later one is under way: it keeps its lock
            patch.setattr(locks, "release_own", lambda *_: None)
            delete(team.bucket.direct_store(), NAME, OPERATOR)

    team.bucket.proxy.before("DELETE", KEY, another_state_and_its_delete_in_between)
    with pytest.raises(DeleteOutcomeUnknown):
        delete_as(team)
    assert not nobody_holds_the_lock(team)


def test_a_delete_gives_back_no_lock_that_its_repeat_has_taken_since(team: Team) -> None:
    team.write_unlocked(state(1))
    versions: list[str] = []

    def broken_and_taken_again() -> None:
        held = locks.read(team.bucket.direct_store(), NAME)
        assert held is not None
        team.break_lock(held.info.id)
        versions.append(locks.acquire_own(team.bucket.direct_store(), NAME, held.info, OPERATOR).version_id)

    team.bucket.proxy.before("DELETE", LOCK_KEY, broken_and_taken_again)
    delete_as(team)
    held = locks.read(team.bucket.direct_store(), NAME)
    assert held is not None
    assert [held.identity.version_id] == versions


def test_a_delete_that_fails_gives_its_lock_back(team: Team) -> None:
    team.write_unlocked(state(1))
    team.bucket.proxy.fail("DELETE", KEY, Fault.DENIED)
    with pytest.raises(StorageRefused):
        delete_as(team)
    assert nobody_holds_the_lock(team)


def test_a_delete_that_is_repeated_after_its_lock_was_left_behind_knows_its_own_lock(team: Team) -> None:
    team.write_unlocked(state(1))
    team.bucket.proxy.fail("PUT", LOCK_KEY, Fault.ANSWER_LOST)
    team.bucket.proxy.fail("PUT", LOCK_KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown):
        delete(team.bucket.store(seconds=0.5), NAME, OPERATOR)
    assert team.bucket.proxy.end_rules() < 1000
    assert not nobody_holds_the_lock(team)
    assert delete_as(team).version_id is not None
    assert nobody_holds_the_lock(team)


def a_delete_that_leaves_its_lock(team: Team, caller: Caller = OPERATOR) -> None:
    """It takes effect, and S3 stalls then."""
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown):
        delete(team.bucket.store(seconds=1), NAME, caller)
    assert team.bucket.proxy.end_rules() < 1000
    assert team.current() is None
    assert not nobody_holds_the_lock(team)


@pytest.mark.parametrize("retains", [False, True])
def test_a_delete_that_is_repeated_after_it_worked_gives_back_the_lock_that_was_left(
    team: Team, retains: bool
) -> None:
    if retains:
        team.bucket.retain_everything()
    team.write_unlocked(state(1))
    a_delete_that_leaves_its_lock(team)
    assert delete_as(team) == Removed(None)
    assert nobody_holds_the_lock(team)


def test_a_repeated_delete_whose_own_answer_was_lost_gives_its_lock_back(team: Team) -> None:
    team.write_unlocked(state(1))
    team.bucket.proxy.fail("DELETE", KEY, Fault.ANSWER_LOST)
    team.bucket.proxy.fail("DELETE", KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown):
        delete(team.bucket.store(seconds=1), NAME, OPERATOR)
    assert team.bucket.proxy.end_rules() < 1000
    assert delete_as(team) == Removed(None)
    assert nobody_holds_the_lock(team)


def test_a_delete_of_nothing_leaves_the_lock_of_somebody_elses_delete(team: Team) -> None:
    team.write_unlocked(state(1))
    a_delete_that_leaves_its_lock(team, Caller("token:another", Role.MAINTAINER, ("*",)))
    assert delete_as(team) == Removed(None)
    assert not nobody_holds_the_lock(team)


def test_a_delete_of_nothing_leaves_a_lock_that_the_caller_took_for_something_else(team: Team) -> None:
    team.lock(ONE, OPERATOR)
    assert delete_as(team) == Removed(None)
    assert not nobody_holds_the_lock(team)


def test_a_delete_of_nothing_leaves_a_lock_of_the_same_token_that_only_says_delete(team: Team) -> None:
    team.lock(lock_info("one", operation="delete"), OPERATOR)
    assert delete_as(team) == Removed(None)
    assert held_id(team) == "one"


def test_a_delete_of_nothing_that_names_a_version_leaves_the_lock_of_another_ones_delete(team: Team) -> None:
    for serial in (1, 2):
        team.write_unlocked(state(serial))
    latest, first = version_ids(team)
    a_delete_that_leaves_its_lock(team)
    assert delete(team.bucket.store(), NAME, OPERATOR, seen=first) == Removed(None)
    assert not nobody_holds_the_lock(team)
    assert delete(team.bucket.store(), NAME, OPERATOR, seen=latest) == Removed(None)
    assert nobody_holds_the_lock(team)


def test_a_delete_whose_repeat_ends_first_says_that_it_may_be_that(team: Team) -> None:
    team.write_unlocked(state(1))
    team.bucket.proxy.before("DELETE", KEY, lambda: delete(team.bucket.direct_store(), NAME, OPERATOR))
    with pytest.raises(DeleteOutcomeUnknown, match="another try of this very delete"):
        delete_as(team)
    assert team.current() is None
    assert nobody_holds_the_lock(team)


def test_a_delete_of_nothing_leaves_the_lock_of_a_later_delete_that_is_still_to_come(team: Team) -> None:
    def a_new_state_and_the_lock_of_its_delete() -> None:
        team.write_unlocked(state(1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Store, "delete", lambda *_: pytest.fail("is not as far as this"))
            patch.setattr(locks, "release_own", lambda *_: None)
            with pytest.raises(pytest.fail.Exception):
                delete(team.bucket.direct_store(), NAME, OPERATOR)

    team.bucket.proxy.before("GET", LOCK_KEY, a_new_state_and_the_lock_of_its_delete)
    assert delete_as(team) == Removed(None)
    assert team.current() == state(1)
    assert not nobody_holds_the_lock(team)


def test_without_versioning_a_write_whose_lock_was_broken_and_taken_meanwhile_does_not_count(
    unversioned: Bucket,
) -> None:
    team = Team(unversioned)
    team.lock(ONE, ADA)

    def broken_and_taken() -> None:
        break_whatever_lock_there_is(team)
        team.lock(TWO, BOB)

    unversioned.proxy.before("PUT", KEY, broken_and_taken)
    with pytest.raises(LockLost):
        team.write_through_faults(state(1))
    assert held_id(team) == "two"


def test_without_versioning_a_delete_gives_back_no_lock_that_somebody_took_since(unversioned: Bucket) -> None:
    team = Team(unversioned)
    team.put_beside(state(1))

    def broken_and_taken() -> None:
        break_whatever_lock_there_is(team)
        team.lock(TWO, BOB)

    unversioned.proxy.before("DELETE", KEY, broken_and_taken)
    with pytest.raises(DeleteOutcomeUnknown):
        delete_as(team)
    assert held_id(team) == "two"


def test_a_delete_has_the_same_lock_id_in_every_try_and_another_for_each_version_and_caller(
    team: Team,
) -> None:
    another = Caller("token:another", Role.MAINTAINER, ("*",))

    def seen_by_others(caller: Caller) -> str:
        # Its lock stays, until it is looked at.
        team.bucket.proxy.fail("DELETE", KEY, Fault.DENIED)
        team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
        with pytest.raises(StorageRefused):
            delete_as(team, caller)
        lock_id = held_id(team)
        team.break_lock(lock_id)
        return lock_id

    team.write_unlocked(state(1))
    first = seen_by_others(OPERATOR)
    assert seen_by_others(OPERATOR) == first
    assert seen_by_others(another) != first
    team.write_unlocked(state(2))
    assert seen_by_others(OPERATOR) != first


def test_a_first_write_after_a_delete_may_start_anew(team: Team) -> None:
    team.write_unlocked(state(5))
    delete_as(team)
    team.lock()
    team.write(state(1, lineage="new"))
    assert team.current() == state(1, lineage="new")


# --- undelete ------------------------------------------------------------------------------------------


def undelete_as(team: Team, caller: Caller = OPERATOR, *, seconds: float = 20.0) -> Undeleted:
    return undelete(team.bucket.store(seconds=seconds), NAME, team.bucket.marker(KEY), caller, None)


def deleted(team: Team, *bodies: bytes) -> None:
    """A state that had these versions and is deleted."""
    team.lock()
    for body in bodies or (state(1), state(2)):
        team.write(body)
    team.unlock()
    delete(team.bucket.direct_store(), NAME, OPERATOR)


def version_ids(team: Team) -> list[str]:
    """The state's versions, newest first, without delete markers."""
    history = team.bucket.direct_store().versions(KEY)
    return [version.id for version in history if not version.is_delete_marker]


def test_an_undelete_brings_the_newest_version_back_as_a_new_one_and_leaves_no_lock(team: Team) -> None:
    deleted(team, state(1), state(2, content="ümläut"))
    [newest, first] = version_ids(team)
    undeleted = undelete_as(team)
    assert team.current() == state(2, content="ümläut")
    assert version_ids(team) == [undeleted.version_id, newest, first]
    assert (undeleted.revision, undeleted.from_version) == (Revision(2, LINEAGE), newest)
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undeleted_state_notes_who_brought_it_back_under_which_lock(team: Team) -> None:
    deleted(team)
    undelete_as(team)
    noted = team.bucket.s3.head_object(Bucket=team.bucket.name, Key=KEY)["Metadata"]
    assert noted.pop("sha256")
    assert noted.pop("lock-id")
    assert noted == {
        "serial": "2",
        "lineage": LINEAGE,
        "terraform-version": "1.15.5",
        "who": "token:operator",
        "operation": "undelete",
        "written-by": "token:operator",
    }


def test_work_goes_on_with_the_next_serial_after_an_undelete(team: Team) -> None:
    deleted(team)
    undelete_as(team)
    team.lock()
    with pytest.raises(SerialNotNewer):
        team.write(state(2, content="other"))
    assert team.write(state(3)).new_version


def test_a_state_that_was_deleted_twice_comes_back_with_its_last_version(team: Team) -> None:
    deleted(team, state(7))
    deleted(team, state(1, lineage="new"))
    assert undelete_as(team).revision == Revision(1, "new")
    assert team.current() == state(1, lineage="new")


def test_a_state_comes_back_though_another_ones_name_begins_with_its_own(team: Team) -> None:
    deleted(team)
    longer = names.parse("network/prod.tfstate.old")
    write(team.bucket.direct_store(), longer, state(9), None, ADA, require_lock=False)
    assert undelete_as(team).revision.serial == 2


def test_an_encrypted_state_comes_back_byte_for_byte(team: Team) -> None:
    deleted(team, encrypted_state(4, "AAAA"))
    assert undelete_as(team).revision.serial == 4
    assert team.current() == encrypted_state(4, "AAAA")


def test_a_state_that_is_not_deleted_stays_and_nothing_is_written(team: Team) -> None:
    team.write_unlocked(state(5))
    store = team.bucket.store()
    with pytest.raises(BaseChanged, match="holdfast state restore"):
        undelete(store, NAME, team.bucket.marker(KEY), OPERATOR, None)
    assert set(store.requests) == {"ListObjectVersions"}
    assert team.versions() == [state(5)]
    assert team.bucket.history(LOCK_KEY) == []


def test_an_empty_object_is_not_written_over(team: Team) -> None:
    deleted(team)
    team.put_beside(b"")
    with pytest.raises(BaseChanged):
        undelete_as(team)
    assert team.versions() == [state(1), state(2), b""]


def test_what_never_was_cannot_come_back(team: Team) -> None:
    store = team.bucket.store()
    with pytest.raises(NoVersions, match="Check the name"):
        undelete(store, NAME, team.bucket.marker(KEY), OPERATOR, None)
    assert store.requests == ["ListObjectVersions"]


def test_a_state_of_which_only_the_delete_marker_is_left_cannot_come_back(team: Team) -> None:
    deleted(team, state(1))
    [only] = version_ids(team)
    team.bucket.s3.delete_object(Bucket=team.bucket.name, Key=KEY, VersionId=only)
    with pytest.raises(NoVersions):
        undelete_as(team)
    assert team.bucket.history(LOCK_KEY) == []


@pytest.mark.parametrize("body", [b"", b"not a state"])
def test_a_newest_version_that_is_no_state_is_not_brought_back(team: Team, body: bytes) -> None:
    team.write_unlocked(state(1))
    team.put_beside(body)
    team.bucket.s3.delete_object(Bucket=team.bucket.name, Key=KEY)
    with pytest.raises(UnreadableVersion, match=version_ids(team)[0]):
        undelete_as(team)
    assert team.current() is None
    assert team.versions() == [state(1), body]
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_while_somebody_holds_the_lock_is_refused_with_the_holder(team: Team) -> None:
    deleted(team)
    team.lock(TWO, BOB)
    with pytest.raises(Locked) as refused:
        undelete_as(team)
    assert refused.value.body()["Who"] == "bob@desk"
    assert team.current() is None
    assert not nobody_holds_the_lock(team)


def test_others_see_who_is_undeleting(team: Team) -> None:
    deleted(team)
    seen: list[tuple[str, str]] = []

    def look() -> None:
        held = locks.read(team.bucket.direct_store(), NAME)
        assert held is not None
        seen.append((held.info.operation, held.info.who))

    team.bucket.proxy.before("PUT", KEY, look)
    undelete_as(team)
    assert seen == [("undelete", "token:operator")]


@pytest.mark.parametrize("theirs", [state(1, lineage=""), state(1), state(9), b"", b"not a state"])
def test_an_undelete_never_writes_over_a_state_that_was_made_just_before_it_lands(
    team: Team, theirs: bytes
) -> None:
    deleted(team)
    team.bucket.proxy.before("PUT", KEY, lambda: team.put_beside(theirs))
    with pytest.raises(BaseChanged) as refused:
        undelete_as(team)
    # Its own lock is given back: whoever frees one now frees the next holder's.
    assert "force-unlock" not in refused.value.message
    assert team.versions() == [state(1), state(2), theirs]
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_finds_a_state_that_was_made_before_it_had_the_lock(team: Team) -> None:
    deleted(team)
    team.bucket.proxy.before("PUT", LOCK_KEY, lambda: team.write_beside(state(3)))
    with pytest.raises(BaseChanged):
        undelete_as(team)
    assert team.versions() == [state(1), state(2), state(3)]
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_leaves_what_was_deleted_again_before_it_had_the_lock(team: Team) -> None:
    deleted(team)
    team.bucket.proxy.before("PUT", LOCK_KEY, lambda: deleted(team, state(8, lineage="new")))
    with pytest.raises(BaseChanged, match="was deleted another time"):
        undelete_as(team)
    assert team.current() is None
    assert team.bucket.history(LOCK_KEY) == []
    assert undelete_as(team).revision == Revision(8, "new")


def test_a_state_that_is_made_and_deleted_while_an_undelete_lands_is_left_deleted(team: Team) -> None:
    deleted(team)

    def made_and_deleted() -> None:
        team.put_beside(state(9))
        team.bucket.proxy.before(
            "GET", KEY, lambda: team.bucket.s3.delete_object(Bucket=team.bucket.name, Key=KEY)
        )

    team.bucket.proxy.before("PUT", KEY, made_and_deleted)
    with pytest.raises(RacedWriter):
        undelete_as(team)
    assert team.current() is None
    assert team.bucket.history(LOCK_KEY) == []


@pytest.mark.parametrize(
    ("verb", "key"),
    [
        ("PUT", LOCK_KEY),
        ("PUT", KEY),
        ("DELETE", LOCK_KEY),
    ],
)
def test_an_undelete_whose_answer_from_s3_was_lost_brings_back_one_version(
    team: Team, verb: str, key: str
) -> None:
    deleted(team)
    team.bucket.proxy.fail(verb, key, Fault.ANSWER_LOST)
    undeleted = undelete_as(team)
    assert team.versions() == [state(1), state(2), state(2)]
    assert version_ids(team)[0] == undeleted.version_id
    assert team.bucket.history(LOCK_KEY) == []


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.CONFLICT, Fault.NEVER_ARRIVES])
def test_an_undelete_that_s3_did_not_take_is_repeated(team: Team, fault: Fault) -> None:
    deleted(team)
    team.bucket.proxy.fail("PUT", KEY, fault, times=2)
    undelete_as(team)
    assert team.versions() == [state(1), state(2), state(2)]


def test_an_undelete_that_is_not_decided_in_time_gives_its_lock_back_and_can_be_repeated(team: Team) -> None:
    deleted(team)
    team.bucket.proxy.fail("PUT", KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown):
        undelete_as(team, seconds=1)
    assert team.bucket.proxy.end_rules() < 1000
    assert team.bucket.history(LOCK_KEY) == []
    undelete_as(team)
    assert team.current() == state(2)


def test_an_undelete_that_fails_gives_its_lock_back(team: Team) -> None:
    deleted(team)
    team.bucket.proxy.fail("PUT", KEY, Fault.DENIED)
    with pytest.raises(StorageRefused):
        undelete_as(team)
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_that_cannot_give_its_lock_back_says_so(team: Team) -> None:
    deleted(team)
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
    with pytest.raises(LockLeft) as left:
        undelete_as(team)
    assert team.current() == state(2)
    assert f"is restored as version {version_ids(team)[0]}" in left.value.message
    assert f"the lock {held_id(team)} of this undelete may be left" in left.value.message
    assert "holdfast lock break" in left.value.message


def notes(error: BaseException) -> str:
    return " ".join(getattr(error, "__notes__", []))


def test_an_undelete_that_fails_and_cannot_give_its_lock_back_names_it(team: Team) -> None:
    team.put_beside(b"not a state")
    team.bucket.s3.delete_object(Bucket=team.bucket.name, Key=KEY)
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
    with pytest.raises(UnreadableVersion) as failed:
        undelete_as(team)
    assert f"lock {held_id(team)} of this undelete may be left" in notes(failed.value)


def test_an_undelete_that_never_heard_of_its_lock_names_it_and_its_repeat_takes_it_up(team: Team) -> None:
    deleted(team)
    team.bucket.proxy.fail("PUT", LOCK_KEY, Fault.ANSWER_LOST)
    team.bucket.proxy.fail("PUT", LOCK_KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown) as undecided:
        undelete_as(team, seconds=1)
    assert team.bucket.proxy.end_rules() < 1000
    assert f"lock {held_id(team)} of this undelete may be left" in notes(undecided.value)
    undelete_as(team)
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_whose_release_fails_for_any_other_reason_says_so(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    def session_has_ended(*_: object) -> None:
        raise TokenRetrievalError(provider="sso", error_msg="expired")

    deleted(team)
    monkeypatch.setattr(locks, "release_own", session_has_ended)
    with pytest.raises(LockLeft):
        undelete_as(team)


def test_an_undelete_that_is_interrupted_gives_its_lock_back(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted(team)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(undelete_module, "_write_again", interrupt)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        undelete_as(team)
    assert notes(interrupted.value) == ""
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_knows_the_lock_that_an_earlier_try_left(team: Team) -> None:
    deleted(team)
    team.bucket.proxy.fail("PUT", KEY, Fault.DENIED)
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
    with pytest.raises(StorageRefused):
        undelete_as(team)
    assert not nobody_holds_the_lock(team)
    with pytest.raises(Locked):
        undelete_as(team, Caller("token:another", Role.MAINTAINER, ("*",)))
    undelete_as(team)
    assert team.bucket.history(LOCK_KEY) == []


@pytest.mark.parametrize("taken", [True, False])
def test_an_undelete_whose_lock_is_broken_before_it_writes_writes_nothing(team: Team, taken: bool) -> None:
    deleted(team)

    def broken() -> None:
        break_whatever_lock_there_is(team)
        if taken:
            team.lock(TWO, BOB)

    # Its first reading of a lock.
    team.bucket.proxy.before("GET", LOCK_KEY, broken)
    with pytest.raises(UndeleteOutcomeUnknown):
        undelete_as(team)
    assert team.current() is None
    assert nobody_holds_the_lock(team) is not taken


@pytest.mark.parametrize("taken", [True, False])
def test_an_undelete_whose_lock_is_broken_while_it_writes_is_not_acknowledged(
    team: Team, taken: bool
) -> None:
    deleted(team)

    def broken() -> None:
        break_whatever_lock_there_is(team)
        if taken:
            team.lock(TWO, BOB)

    team.bucket.proxy.before("PUT", KEY, broken)
    with pytest.raises(UndeleteOutcomeUnknown, match="Look whether"):
        undelete_as(team)
    assert nobody_holds_the_lock(team) is not taken


@pytest.mark.parametrize("retains", [False, True])
def test_an_undelete_whose_lock_went_to_another_run_of_it_is_not_acknowledged_and_leaves_that_lock(
    team: Team, retains: bool
) -> None:
    if retains:
        team.bucket.retain_everything()
    deleted(team)

    def broken_and_taken_again() -> None:
        held = locks.read(team.bucket.direct_store(), NAME)
        assert held is not None
        team.break_lock(held.info.id)
        locks.acquire_own(team.bucket.direct_store(), NAME, held.info, OPERATOR)

    team.bucket.proxy.before("PUT", KEY, broken_and_taken_again)
    with pytest.raises(UndeleteOutcomeUnknown):
        undelete_as(team)
    assert not nobody_holds_the_lock(team)


def test_an_undelete_leaves_the_lock_of_somebody_elses_undelete_alone(team: Team) -> None:
    deleted(team)
    another = Caller("token:another", Role.MAINTAINER, ("*",))

    def theirs_instead() -> None:
        break_whatever_lock_there_is(team)
        with pytest.MonkeyPatch.context() as patch:  # theirs is under way: it keeps its lock
            patch.setattr(locks, "release_own", lambda *_: None)
            undelete(team.bucket.direct_store(), NAME, team.bucket.marker(KEY), another, None)

    team.bucket.proxy.before("PUT", KEY, theirs_instead)
    with pytest.raises(UndeleteOutcomeUnknown):
        undelete_as(team)
    held = locks.read(team.bucket.direct_store(), NAME)
    assert held is not None
    assert held.principal == "token:another"


def test_an_undelete_whose_repeat_ends_first_says_that_it_may_be_that(team: Team) -> None:
    deleted(team)
    undone = team.bucket.marker(KEY)
    team.bucket.proxy.before(
        "PUT", KEY, lambda: undelete(team.bucket.direct_store(), NAME, undone, OPERATOR, None)
    )
    with pytest.raises(UndeleteOutcomeUnknown, match="another try of this very request"):
        undelete_as(team)
    assert team.versions() == [state(1), state(2), state(2)]
    assert undelete_as(team).version_id == version_ids(team)[0]


def test_an_undelete_of_a_version_that_is_removed_meanwhile_brings_nothing_back(team: Team) -> None:
    deleted(team, state(1))
    [only] = version_ids(team)

    def remove() -> None:
        team.bucket.s3.delete_object(Bucket=team.bucket.name, Key=KEY, VersionId=only)

    team.bucket.proxy.before("GET", KEY, remove)
    with pytest.raises(NoVersions, match="removed just now"):
        undelete_as(team)
    assert team.current() is None
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_works_where_the_bucket_retains_everything(team: Team) -> None:
    team.bucket.retain_everything()
    deleted(team)
    undelete_as(team)
    assert team.current() == state(2)
    assert nobody_holds_the_lock(team)


# --- retention -----------------------------------------------------------------------------------------


RETENTION = Retention("GOVERNANCE", 30)


def retained(team: Team, version_id: str) -> bool:
    """Whether a version of the state is under retention, or else a version without can be removed."""
    head = team.bucket.s3.head_object(Bucket=team.bucket.name, Key=KEY, VersionId=version_id)
    return head.get("ObjectLockMode") == "GOVERNANCE"


def test_every_version_that_is_written_with_retention_has_it_and_its_lock_has_not(team: Team) -> None:
    team.lock()
    for serial in (1, 2):
        store = team.bucket.store()
        written = write(store, NAME, state(serial), "one", ADA, require_lock=True, retention=RETENTION)
        assert retained(team, written.version_id)
    assert "ObjectLockMode" not in team.bucket.s3.head_object(Bucket=team.bucket.name, Key=LOCK_KEY)
    assert not retained(team, team.write(state(3)).version_id)
    team.unlock()
    assert team.bucket.history(LOCK_KEY) == []


def test_a_state_under_retention_is_deleted_and_undeleted_and_keeps_every_version(team: Team) -> None:
    team.lock()
    store = team.bucket.store()
    write(store, NAME, state(1), "one", ADA, require_lock=True, retention=RETENTION)
    team.unlock()
    delete_as(team)
    assert team.current() is None
    undeleted = undelete(team.bucket.store(), NAME, team.bucket.marker(KEY), OPERATOR, RETENTION)
    assert retained(team, undeleted.version_id)
    assert team.versions() == [state(1), state(1)]
    assert team.bucket.history(LOCK_KEY) == []


# --- probes --------------------------------------------------------------------------------------------

PROBE = names.parse(f"{names.RESERVED}/{'0123456789abcdef' * 2}")


def test_a_probe_is_locked_written_read_deleted_and_undeleted_as_any_state_and_never_retained(
    team: Team,
) -> None:
    bucket = team.bucket
    locks.acquire(bucket.store(), PROBE, ONE, ADA)
    for serial in (1, 2):
        write(
            *(bucket.store(), PROBE, probe_state(serial), "one", ADA), require_lock=True, retention=RETENTION
        )
    locks.release(bucket.store(), PROBE, ONE, ADA)
    assert read(bucket.store(), PROBE, READER) == probe_state(2)
    delete(bucket.store(), PROBE, OPERATOR)
    assert read(bucket.store(), PROBE, READER) is None
    undelete(bucket.store(), PROBE, bucket.marker(PROBE.state_key), OPERATOR, RETENTION)
    assert read(bucket.store(), PROBE, READER) == probe_state(2)

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
    locks.acquire(team.bucket.direct_store(), PROBE, ONE, ADA)
    store = team.bucket.store()
    with pytest.raises(InvalidState, match="removed by 'holdfast doctor'"):
        write(store, PROBE, body, "one", ADA, require_lock=True)
    assert store.requests == []
    assert team.bucket.history(PROBE.state_key) == team.bucket.history(PROBE.lock_key)
