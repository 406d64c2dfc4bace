"""Delete a state, under a lock that the delete acquires and releases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.access import Action
from holdfast.errors import DeleteOutcomeUnknown, RacedWriter
from holdfast.s3.objects import IfMatch, Object, PreconditionFailed
from holdfast.state import fence, held, lock_info
from holdfast.state.held import HeldLock, identity
from holdfast.state.lock_info import LockInfo
from holdfast.work import Work

_OPERATION: Final = lock_info.Verb.DELETE
"""The operation in the info of the lock that a delete acquires."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A state was deleted. `version_id` is the version that was current; None if the state did not exist."""

    version_id: str | None


def delete(
    work: Work,
    *,
    seen: str | None = None,
    check: Callable[[Object], None] | None = None,
    then: Callable[[], None] | None = None,
) -> Removed:
    """Delete the state, but keep its versions. A missing state counts as deleted.

    Args:
        seen: the version to delete; None for the current version. If the state is already deleted, the verb
            only releases the lock that an earlier attempt to delete this version has left.
        check: raises an error if the current object may not be deleted. Only the checked version is deleted.
        then: called after the state is deleted, still under the lock. If the state is already deleted, a
            lock that an earlier attempt has left stays.

    Raises:
        RacedWriter: somebody wrote the state meanwhile; nothing was deleted.
        DeleteOutcomeUnknown: the lock was released or broken meanwhile.
    """
    work.require(Action.DELETE)
    store, name = work.store, work.name
    # Read before the lock is acquired: a version that is written in between is not deleted.
    current = store.read(name.state_key)
    if current is None:
        if then is None:
            _release_left_lock(work, seen)
        return Removed(None)
    if check:
        check(current)
    version = current.version
    info = _lock_info(work, version.version_id)
    with fence.own_lock(work, info) as acquired:
        # Delete only the version that was read: a newer version is not deleted.
        deleted = store.delete(name.state_key, IfMatch(version.etag))
        if then and not isinstance(deleted, PreconditionFailed):
            then()
        lock = held.read(store, name)
        if isinstance(deleted, PreconditionFailed):
            raise RacedWriter(
                "Another client wrote this state during the delete. Nothing was deleted; look at the state, "
                "then run the command again."
            )
        if identity(lock) != acquired:
            raise DeleteOutcomeUnknown(
                "The lock of this delete was removed before the delete ended: an operator broke the lock, "
                "or another attempt of the same delete released it. Check whether the state still exists "
                "before you run the command again. The versions of the state are kept."
            )
    return Removed(version.version_id)


def _lock_info(work: Work, version_id: str) -> LockInfo:
    """Return the lock info with which a caller deletes a version. It is the same in every retry."""
    return lock_info.of_verb(
        f"{work.address}?versionId={version_id}",
        work.caller,
        operation=_OPERATION,
        info="DELETE of the state",
    ).at(work.address)


def _release_left_lock(work: Work, seen: str | None) -> None:
    """Release the lock that an earlier delete of this caller has left."""
    left = held.read(work.store, work.name)
    if left is None or not was_left(work, left, seen):
        return
    # Read the state again, after the lock: a delete in progress has found the state, so it still exists.
    if work.store.read_version(work.name.state_key) is None:
        held.remove_acquired(work.store, work.name, left.identity)


def was_left(work: Work, left: HeldLock, seen: str | None = None) -> bool:
    """Return whether a lock is that of an earlier delete of this caller, by default of any version."""
    own = _lock_info(work, seen or "")
    if seen is None:  # the ID depends on the deleted version, which is unknown here
        own = LockInfo({**own.document, "ID": left.info.id})
    # Compare the whole document: a client can send any operation.
    return left.was_acquired_with(own, work.caller)
