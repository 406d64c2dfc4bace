"""Locks of a workspace: the same lock object as for every other protocol, named by the workspace's ID."""

from datetime import UTC, datetime
from typing import Final

from holdfast.access import Action, Caller
from holdfast.cloud.ids import WorkspaceId
from holdfast.s3.store import Store
from holdfast.state import declared, locks
from holdfast.state.lock_info import LockInfo
from holdfast.state.locks import ForceUnlocked, LockIdentity, Released

OPERATION: Final = "cloud"
"""The operation of a lock: a client does not say what it locks for."""


def lock_info(workspace: WorkspaceId, caller: Caller) -> LockInfo:
    """Return a workspace's lock info: a function of its arguments alone, so a retry meets its own lock."""
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
    """Release the lock that was acquired with this ID; success also if none is held any more.

    Raises:
        LockNotMatched: another lock is held. It stays.
    """
    return locks.release_exactly(store, workspace.name, lock_info(workspace, caller), caller)


def force_unlock(store: Store, workspace: WorkspaceId, caller: Caller) -> ForceUnlocked:
    """Remove the very lock that was held when the ID was minted; success also if none is held any more.

    Raises:
        LockNotMatched: another lock is held, this one is too young, or none was held.
    """
    return locks.force_unlock_version(store, workspace.name, workspace.seen_lock, caller)
