"""Acquire locks: for a client, and for a verb or a freeze."""

from typing import Final

from holdfast.access import Action
from holdfast.errors import InvalidLockInfo, OutcomeUnknown
from holdfast.s3 import object_metadata
from holdfast.s3.objects import IfAbsent, Stored
from holdfast.state import declared, held, lock_info
from holdfast.state.held import Freeze, HeldFreeze, HeldLock, LockIdentity
from holdfast.state.lock_info import LockInfo
from holdfast.work import Work

TAGS: Final = {"holdfast": "lock"}
"""The tag by which a lifecycle rule finds lock versions that could not be removed. A rule can filter by
prefix and tag, and the keys of locks and states have the same prefix."""

_ATTEMPTS: Final = 5


def acquire(work: Work, body: bytes) -> LockIdentity:
    """Acquire the lock with a client's lock info.

    Raises:
        InvalidLockInfo: the body is not lock info, or its operation is that of a freeze.
    """
    work.require(Action.LOCK)
    info = lock_info.parse(body)
    if info.operation == lock_info.FREEZE:
        raise InvalidLockInfo(
            f"A client cannot acquire a lock with the operation '{lock_info.FREEZE}'. To freeze a state, "
            "run 'holdfast state freeze'."
        )
    if work.policy.declared_only:
        declared.require(work)
    if not work.memory:
        return acquire_own(work, info)
    work.store.open_second_connection()  # the release sends two requests at once
    acquired = acquire_own(work, info)
    work.memory.learn_lock(work.name, acquired.info.to_json(), work.caller.principal, acquired.version_id)
    return acquired


def acquire_own(work: Work, info: LockInfo, freeze: Freeze | None = None) -> LockIdentity:
    """Acquire the lock, without checking the caller's role. Before that, remove a freeze that has ended.

    Args:
        freeze: the freeze to place; None for the lock of a command.

    Raises:
        Locked: another lock or freeze is held.
        OutcomeUnknown: S3 did not decide, or other clients kept acquiring and releasing the lock.
    """
    acquired = acquire_or_read(work, info, freeze)
    if isinstance(acquired, HeldLock):
        raise held.refusal(acquired)
    return acquired


def acquire_or_read(work: Work, info: LockInfo, freeze: Freeze | None) -> LockIdentity | HeldLock:
    """Do the same, but return the lock or freeze that is held instead of raising `Locked`."""
    store, name, caller = work.store, work.name, work.caller
    info = info.at(work.address)
    metadata = {"locked-by": caller.principal, **(freeze.metadata() if freeze else {})}
    lifted = ""
    for _ in range(_ATTEMPTS):
        # The write only creates: one of several clients acquires the lock, and no lock is replaced.
        stored = store.write(
            name.lock_key,
            info.to_json(),
            IfAbsent(),
            metadata=object_metadata.with_owner(metadata, caller.owner),
            tags=TAGS,
        )
        if isinstance(stored, Stored):
            return LockIdentity(stored.version_id, info, caller.principal, lifted)
        # The precondition failed: our own first attempt, whose response was lost, or somebody else's lock.
        lock = held.read(store, name)
        if lock is None:
            continue  # released in between
        # Before the end of a freeze is looked at: our own freeze can have ended since an attempt before.
        if lock.was_acquired_with(info, caller) and _id(lock.freeze) == _id(freeze):
            return lock.identity
        if not isinstance(lock, HeldFreeze) or not lock.is_ended_freeze:
            return lock
        held.lift(store, name, lock)
        lifted = lock.freeze.id
    raise OutcomeUnknown("Other requests kept acquiring and releasing the lock. A retry is safe.")


def _id(freeze: Freeze | None) -> str | None:
    return freeze.id if freeze else None
