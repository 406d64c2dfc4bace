"""Lock a workspace: acquire the lock of its state, with the lock ID that the workspace's ID contains."""

from datetime import UTC, datetime
from typing import Final

from holdfast.access import Action, Caller, OwnLocks
from holdfast.cloud.ids import WorkspaceId
from holdfast.s3.store import Store
from holdfast.state import declared, locks
from holdfast.state.lock_info import LockInfo
from holdfast.state.locks import ForceUnlocked, LockIdentity, Released

OPERATION: Final = "cloud"
"""The operation of every lock, because clients of this protocol do not send an operation."""


def lock_info(workspace: WorkspaceId, caller: Caller) -> LockInfo:
    """Return a workspace's lock info. It depends on the arguments alone, so it is the same in a retry."""
    return LockInfo(
        {
            "ID": workspace.lock_id,
            "Operation": OPERATION,
            "Info": "",
            "Who": caller.principal,
            "Version": "",
            "Created": datetime.fromtimestamp(workspace.minted_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "Path": "",
        }
    )


def lock(
    store: Store, workspace: WorkspaceId, caller: Caller, *, declared_only: bool = False
) -> LockIdentity:
    """Acquire the lock.

    Raises:
        Locked: somebody else holds it.
    """
    caller.require(Action.LOCK, workspace.name)
    if declared_only:
        declared.require(store, workspace.name, caller)
    return locks.acquire_own(store, workspace.name, lock_info(workspace, caller), caller)


def unlock(store: Store, workspace: WorkspaceId, caller: Caller) -> Released:
    """Release the lock that was acquired with this ID.

    Raises:
        LockNotMatched: no lock is held, or another lock, which is not released.
    """
    return locks.release_exactly(store, workspace.name, lock_info(workspace, caller), caller)


def force_unlock(
    store: Store, workspace: WorkspaceId, caller: Caller, *, own_locks: OwnLocks = OwnLocks.NONE
) -> ForceUnlocked:
    """Remove exactly the lock that was held when the ID was minted. Succeeds also if it is already gone.

    Raises:
        LockNotMatched: another lock is held, this lock is too young, or no lock was held at that time.
    """
    seen = workspace.seen_lock
    return locks.force_unlock_version(store, workspace.name, seen, caller, own_locks=own_locks)
