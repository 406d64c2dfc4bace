"""Delete a state under a lock of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.access import Action, Caller
from holdfast.errors import DeleteOutcomeUnknown, RacedWriter
from holdfast.names import StateName
from holdfast.s3.store import IfMatch, Object, PreconditionFailed, Store
from holdfast.state import lock_info, locks
from holdfast.state.locks import identity

_OPERATION: Final = "delete"
"""The operation of a delete's own lock."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The state is deleted; its versions stay. `version_id` is the one that was current, None if none was."""

    version_id: str | None


def delete(
    store: Store, name: StateName, caller: Caller, *, check: Callable[[Object], None] | None = None
) -> Removed:
    """Delete the state under a lock of its own. The versions stay; deleting nothing is success.

    Args:
        store: the bucket.
        name: of the state.
        caller: who deletes it.
        check: raises if what is read may not be deleted. Nothing else than what it saw is deleted.

    Raises:
        NotAllowed: the caller may not delete this state.
        Locked: somebody holds the lock.
        RacedWriter: somebody wrote at the same time; nothing was deleted.
        DeleteOutcomeUnknown: the lock was broken meanwhile.
        OutcomeUnknown: S3 did not decide in time; a retry is safe.
    """
    caller.require(Action.DELETE, name)
    # The state before the lock, as in `write`: what is written in between is not deleted.
    current = store.read(name.state_key)
    if current is None:
        _release_left_lock(store, name, caller)
        return Removed(None)
    if check:
        check(current)
    version = current.version
    # The same lock info for every delete of this version by this caller: a retry meets its own lock.
    info = lock_info.of_verb(
        f"{store.bucket}/{name.state_key}?versionId={version.version_id}",
        caller,
        operation=_OPERATION,
        info="DELETE of the state",
    )
    acquired = locks.acquire_own(store, name, info, caller)
    try:
        # Only what was read: a state that was written since then stays.
        deleted = store.delete(name.state_key, IfMatch(version.etag))
        # As in `write`: a delete during which its lock was broken is not acknowledged.
        held = locks.read(store, name)
    finally:
        # That very lock object, so that a lock which came after it stays.
        locks.release_own(store, name, acquired)
    if isinstance(deleted, PreconditionFailed):
        raise RacedWriter(
            "Somebody wrote this state while it was being deleted. Nothing was deleted; look at the state, "
            "then run the command again."
        )
    if identity(held) != acquired:
        raise DeleteOutcomeUnknown(
            "The lock of this delete was broken while the delete was in progress. Look whether the state is "
            "there; its versions are."
        )
    return Removed(version.version_id)


def _release_left_lock(store: Store, name: StateName, caller: Caller) -> None:
    """Release the lock of an earlier delete of this caller that had no time left for it."""
    left = locks.read(store, name)
    if left is None or (left.principal, left.info.operation) != (caller.principal, _OPERATION):
        return
    # The state once more, after the lock: a delete that is still to come has found a state before it locked.
    if store.read_version(name.state_key) is None:
        locks.release_own(store, name, left.identity)
