"""Delete a state under a lock of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.access import Action, Caller
from holdfast.errors import DeleteOutcomeUnknown, RacedWriter
from holdfast.names import StateName
from holdfast.s3.store import IfMatch, Object, PreconditionFailed, Store
from holdfast.state import fence, lock_info, locks
from holdfast.state.lock_info import LockInfo
from holdfast.state.locks import identity

_OPERATION: Final = "delete"
"""The operation of a delete's own lock."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The state is deleted; its versions stay. `version_id` was current; None if none was."""

    version_id: str | None


def delete(
    store: Store,
    name: StateName,
    caller: Caller,
    *,
    seen: str | None = None,
    check: Callable[[Object], None] | None = None,
) -> Removed:
    """Delete the state under a lock of its own. The versions stay; deleting nothing is success.

    Args:
        seen: the version that is to be deleted, if the caller names one; where the state is deleted already,
            no lock but that of an earlier try for this version is released.
        check: raises if what is read may not be deleted. Nothing else than what it saw is deleted.

    Raises:
        RacedWriter: somebody wrote at the same time; nothing was deleted.
        DeleteOutcomeUnknown: the lock was released or broken meanwhile.
    """
    caller.require(Action.DELETE, name)
    # Before the lock is acquired: what is written in between is not deleted.
    current = store.read(name.state_key)
    if current is None:
        _release_left_lock(store, name, caller, seen)
        return Removed(None)
    if check:
        check(current)
    version = current.version
    info = _lock_info(store, name, version.version_id, caller)
    # The release has no time of its own: while the DeleteObject may still land, the lock had better be left.
    with fence.own_lock(store, name, info, caller, seconds=0.0) as acquired:
        # Only what was read: a state that was written since then stays.
        deleted = store.delete(name.state_key, IfMatch(version.etag))
        held = locks.read(store, name)
        if isinstance(deleted, PreconditionFailed):
            raise RacedWriter(
                "Somebody wrote this state while it was being deleted. Nothing was deleted; look at the "
                "state, then run the command again."
            )
        if identity(held) != acquired:
            raise DeleteOutcomeUnknown(
                "The lock of this delete is gone: somebody broke it, or another try of this very delete has "
                "ended and released it. Look whether the state is there before you run the command again; "
                "its versions are."
            )
    return Removed(version.version_id)


def _lock_info(store: Store, name: StateName, version_id: str, caller: Caller) -> LockInfo:
    """Return the lock info of every delete of a version by a caller: a retry meets its own lock."""
    address = f"{store.bucket}/{name.state_key}"
    return lock_info.of_verb(
        f"{address}?versionId={version_id}", caller, operation=_OPERATION, info="DELETE of the state"
    ).at(address)


def _release_left_lock(store: Store, name: StateName, caller: Caller, seen: str | None) -> None:
    """Release the lock of an earlier delete of this caller that had no time left for it."""
    left = locks.read(store, name)
    if left is None or left.principal != caller.principal:
        return
    own = _lock_info(store, name, seen or "", caller)
    if seen is None:  # nothing here tells which version it deleted, and the ID is made of that
        own = LockInfo({**own.document, "ID": left.info.id})
    # The whole document: a client can send any operation.
    if left.info != own:
        return
    # The state once more, after the lock: a delete that is still to come has found a state before it locked.
    if store.read_version(name.state_key) is None:
        locks.release_own(store, name, left.identity)
