"""The pure decisions of a write, as tables: lock, same lock, succession, acknowledged or not."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest

from holdfast import names
from holdfast.access import Caller
from holdfast.errors import (
    HoldfastError,
    LineageChanged,
    Locked,
    LockLost,
    LockRequired,
    SerialNotNewer,
    UnreadableState,
)
from holdfast.s3.objects import ObjectVersion
from holdfast.state import guards, lock_info
from holdfast.state.current_state import CurrentState
from holdfast.state.document import Revision, StateDocument
from holdfast.state.held import CommandLock, HeldLock, LockIdentity, of_object
from tests.support.documents import ADA, BOB
from tests.support.documents import lock_info as lock_document
from tests.support.work import work

if TYPE_CHECKING:
    from holdfast.s3.store import Store

STORE = cast("Store", None)  # a decision sends no request
NAME = names.parse("network/prod")
ACQUIRED = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def lock(
    lock_id: str = "one",
    caller: Caller | None = ADA,
    *,
    version_id: str = "v1",
    operation: str = "OperationTypeApply",
) -> HeldLock:
    """A lock, as it was read. Without a caller, another program has acquired it."""
    document = lock_info.parse(lock_document(lock_id, operation=operation))
    identity = LockIdentity(version_id, document, caller.principal if caller else None)
    return CommandLock(identity, ObjectVersion('"e"', version_id, 1, ACQUIRED, {}, True), ACQUIRED)


def current(
    serial: int | None = 5,
    *,
    lineage: str = "L",
    lock_id: str = "one",
    written: datetime = ACQUIRED,
    superseded: Revision | None = None,
    fenced: bool = True,
    size: int = 10,
) -> CurrentState:
    """A current state. Without a serial, it is not a state document."""
    revision = None if serial is None else Revision(serial, lineage)
    version = ObjectVersion('"s"', "s1", size, written, {}, has_own_etag=True)
    return CurrentState(version, "0" * 64, revision, superseded, lock_id, fenced)


def refusal(error: type[HoldfastError] | None) -> AbstractContextManager[object]:
    return pytest.raises(error) if error else nullcontext()


LATER_BY_ANOTHER = current(9, lock_id="two", written=ACQUIRED + SECOND, superseded=Revision(5, "L"))
"""A write of a holder whose lock was broken, refused, and still in the bucket."""


@pytest.mark.parametrize("require_lock", [True, False])
@pytest.mark.parametrize(
    ("held", "lock_id", "caller", "raised"),
    [
        (lock(), "one", ADA, None),
        (lock(), "one", BOB, Locked),
        (lock(), "two", ADA, Locked),
        (lock(), None, ADA, Locked),
        (lock(caller=None), "one", ADA, Locked),
        (None, "one", ADA, LockLost),
        (None, None, ADA, LockRequired),
    ],
)
def test_a_write_goes_ahead_under_its_own_lock_or_where_none_is_needed(
    held: HeldLock | None,
    lock_id: str | None,
    caller: Caller,
    raised: type[HoldfastError] | None,
    require_lock: bool,
) -> None:
    with refusal(None if raised is LockRequired and not require_lock else raised):
        guards.check_lock(work(STORE, NAME, caller, require_lock=require_lock), held, lock_id)


@pytest.mark.parametrize(
    ("first", "now", "same"),
    [
        (lock(), lock(), True),
        (None, None, True),
        (lock(), None, False),
        (None, lock(), False),
        (lock(), lock("two"), False),
        (lock(), lock(version_id="v2"), False),  # acquired again with the same document
        (lock(version_id=""), lock(caller=BOB, version_id=""), False),  # in a bucket without versioning
        (lock(), replace(lock(), read_at=ACQUIRED + SECOND), True),
    ],
)
def test_a_lock_is_the_same_only_if_it_is_the_very_same_object(
    first: HeldLock | None, now: HeldLock | None, same: bool
) -> None:
    with refusal(None if same else LockLost):
        guards.check_same_lock(first.identity if first else None, now, "one")


@pytest.mark.parametrize(
    ("new", "now", "held", "raised"),
    [
        (Revision(1, "L"), None, lock(), None),
        (Revision(1, "L"), current(size=0), lock(), None),
        (Revision(6, "L"), current(), lock(), None),
        (Revision(6, "L"), current(), None, None),
        (Revision(5, "L"), current(), lock(), SerialNotNewer),
        (Revision(4, "L"), current(), None, SerialNotNewer),
        (Revision(6, "M"), current(), lock(), LineageChanged),
        (Revision(6, ""), current(), lock(), None),
        (Revision(6, "M"), current(lineage=""), lock(), None),
        (Revision(5, ""), current(), lock(), SerialNotNewer),
        (Revision(6, "L"), current(None), lock(), UnreadableState),
        (Revision(1, "M"), current(None), lock(operation="state-push"), None),
        (Revision(1, "M"), current(), lock(operation="state-push"), None),
        (Revision(1, "M"), current(), lock(operation="migration destination state"), None),
        # Over a write that was never acknowledged, what it replaced counts.
        (Revision(6, "L"), LATER_BY_ANOTHER, lock(), None),
        (Revision(5, "L"), LATER_BY_ANOTHER, lock(), SerialNotNewer),
        (Revision(6, "M"), LATER_BY_ANOTHER, lock(), LineageChanged),
        (Revision(6, "L"), LATER_BY_ANOTHER, None, SerialNotNewer),
        (Revision(1, "M"), replace(LATER_BY_ANOTHER, superseded=None), lock(), None),
    ],
)
def test_a_revision_follows_the_last_acknowledged_one(
    new: Revision, now: CurrentState | None, held: HeldLock | None, raised: type[HoldfastError] | None
) -> None:
    with refusal(raised):
        guards.check_succession(new, now, held)


BLANK = StateDocument(Revision(9, ""), "1.15.5", is_blank=True)
"""The document that `terraform state push` sends for a file that is no state."""
WITHOUT_LINEAGE = current(lineage="")


@pytest.mark.parametrize("operation", ["OperationTypeApply", "cloud", *sorted(guards.COMPARED_BY_CLIENT)])
@pytest.mark.parametrize(
    ("now", "raised"),
    [
        (current(), LineageChanged),
        (current(12), LineageChanged),
        (WITHOUT_LINEAGE, None),
        (None, None),
        (current(None), None),
        (current(None, size=0), None),
        # Over a write that was never acknowledged, what it replaced counts.
        (LATER_BY_ANOTHER, LineageChanged),
        (replace(LATER_BY_ANOTHER, revision=Revision(9, "")), LineageChanged),
        (replace(LATER_BY_ANOTHER, superseded=Revision(5, "")), None),
        (replace(LATER_BY_ANOTHER, superseded=None), None),
    ],
)
def test_a_blank_document_replaces_no_state_that_has_a_lineage_also_not_by_a_push(
    now: CurrentState | None, raised: type[HoldfastError] | None, operation: str
) -> None:
    held = lock(operation=operation)
    with refusal(raised):
        guards.check_not_blank(BLANK, now, held)
    guards.check_not_blank(BLANK, now, held, force=True)
    guards.check_not_blank(replace(BLANK, is_blank=False), now, held)


@pytest.mark.parametrize(
    ("now", "held", "never"),
    [
        (LATER_BY_ANOTHER, lock(), True),
        (LATER_BY_ANOTHER, None, False),
        (replace(LATER_BY_ANOTHER, lock_id="one"), lock(), False),  # an own earlier save
        (replace(LATER_BY_ANOTHER, fenced=False), lock(), False),  # another program acknowledges at once
        (current(9, lock_id="two", written=ACQUIRED), lock(), False),  # within the same second
        (current(9, lock_id="two", written=ACQUIRED - SECOND), lock(), False),
        (current(9, lock_id="", written=ACQUIRED + SECOND), lock(), True),  # an unlocked write
    ],
)
def test_a_write_by_somebody_else_during_this_lock_was_never_acknowledged(
    now: CurrentState, held: HeldLock | None, never: bool
) -> None:
    assert guards.was_never_acknowledged(now, held) is never
    expected = now.superseded if never else now.revision
    assert guards.last_acknowledged_revision(now, held) == expected


@pytest.mark.parametrize(
    ("now", "held", "under_it"),
    [
        (current(written=ACQUIRED + SECOND), lock(), True),
        (current(written=ACQUIRED), lock(), True),  # within the same second
        (current(written=ACQUIRED - SECOND), lock(), False),  # the lock was acquired with its document again
        (current(written=ACQUIRED + SECOND, lock_id="two"), lock(), False),
        (current(written=ACQUIRED + SECOND, fenced=False), lock(), False),
        (current(written=ACQUIRED + SECOND, lock_id=""), None, False),
    ],
)
def test_a_version_was_written_under_a_lock_that_has_its_id_and_is_not_younger(
    now: CurrentState, held: HeldLock | None, under_it: bool
) -> None:
    assert guards.was_written_under(now, held) is under_it


def test_without_a_current_state_there_is_no_acknowledged_revision() -> None:
    assert guards.last_acknowledged_revision(None, lock()) is None


def with_metadata(metadata: dict[str, str]) -> HeldLock:
    read = lock()
    return of_object(read.identity, replace(read.version, metadata=metadata), read.read_at)


@pytest.mark.parametrize(
    ("until", "ended"),
    [
        ("2026-01-01T11:59:59Z", True),
        ("2026-01-01T12:00:00Z", True),
        ("2026-01-01T12:00:01Z", False),
        ("noon", False),
        (None, False),
    ],
)
def test_a_freeze_ends_with_the_second_that_it_names(until: str | None, ended: bool) -> None:
    ends = {"freeze-until": until} if until else {}
    assert with_metadata({"freeze": "0" * 32, **ends}).is_ended_freeze is ended
    assert not with_metadata(ends).is_ended_freeze
