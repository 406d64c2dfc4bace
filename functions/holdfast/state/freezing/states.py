"""Freeze a state by a lock object with a mark, which no force-unlock through the API removes."""

from datetime import datetime

from holdfast.access import Action
from holdfast.errors import InvalidRequest, LockNotMatched, NotFrozen, OutcomeUnknown, StorageRefused
from holdfast.state import acquiring, held, lock_info
from holdfast.state.held import Freeze, HeldFreeze, HeldLock
from holdfast.state.operator import check_id, check_reason
from holdfast.work import Work


def freeze(work: Work, wanted: Freeze, *, now: datetime) -> None:
    """Freeze a state, which need not exist yet: nobody acquires its lock until the freeze is lifted or ends.

    Args:
        now: the current time; an earlier end is refused. Later, S3's clock decides when the freeze ends.

    Raises:
        InvalidRequest: the freeze is invalid, or the name is that of a probe.
        Frozen: another command froze the state. A freeze cannot be changed: unfreeze first.
    """
    work.require(Action.FREEZE)
    check(wanted, now=now)
    if work.name.is_probe:
        raise InvalidRequest(
            "State names that begin with 'holdfast-doctor/' are reserved for 'holdfast doctor', so this "
            "state cannot be frozen."
        )
    lock = place(work, wanted)
    if lock is not None:
        raise held.refusal(lock)


def place(work: Work, wanted: Freeze) -> HeldLock | None:
    """Freeze a state, without checks; return None. If it has another lock or freeze, return that lock."""
    info = lock_info.of_freeze(wanted.id, wanted.reason, wanted.until, work.caller.principal)
    placed = acquiring.acquire_or_read(work, info, wanted)
    return placed if isinstance(placed, HeldLock) else None


def check(freeze: Freeze, *, now: datetime) -> None:
    """Raise `InvalidRequest` unless a command's freeze is valid, and ends in the future if it ends."""
    check_id(freeze.id)
    check_reason(freeze.reason)
    if freeze.until is not None and freeze.until <= now:
        raise InvalidRequest("The end of the freeze must be in the future.")


def unfreeze(work: Work, freeze_id: str) -> HeldFreeze | None:
    """Remove the freeze with an ID, and no other lock.

    Returns:
        The removed freeze; None if the state is no longer locked.

    Raises:
        NotFrozen: the lock is not a freeze, and is not removed.
        LockNotMatched: the lock is another freeze, and is not removed.
    """
    work.require(Action.FREEZE)
    check_id(freeze_id)
    lock = held.read(work.store, work.name)
    if lock is None:
        return None
    if not isinstance(lock, HeldFreeze):
        raise NotFrozen(
            f"The state is not frozen. A lock of the state is held by {lock.described}, lock ID "
            f"{lock.info.id}. That lock was not removed."
        )
    if lock.freeze.id != freeze_id:
        raise LockNotMatched(
            "The freeze that this request names is gone. The state now has another freeze, with the "
            f"reason: {lock.freeze.reason}. That freeze was not lifted."
        )
    try:
        held.lift(work.store, work.name, lock)
    except (OutcomeUnknown, StorageRefused) as error:
        error.logged = {"freeze": freeze_id}
        raise
    return lock
