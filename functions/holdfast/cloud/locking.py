"""Lock a workspace: acquire the lock of its state, with the lock ID that the workspace's ID contains."""

from datetime import UTC, datetime
from typing import Final

from holdfast import timestamp
from holdfast.access import Action, Caller
from holdfast.cloud.ids import WorkspaceId
from holdfast.state import acquiring, declared, releasing, removing
from holdfast.state.held import LockIdentity
from holdfast.state.lock_info import LockInfo
from holdfast.state.releasing import Released
from holdfast.state.removing import ForceUnlocked
from holdfast.work import Work

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
            "Created": timestamp.write(datetime.fromtimestamp(workspace.minted_at, UTC)),
            "Path": "",
        }
    )


def lock(work: Work, workspace: WorkspaceId) -> LockIdentity:
    """Acquire the lock.

    Raises:
        Locked: somebody else holds it.
    """
    work.require(Action.LOCK)
    if work.policy.declared_only:
        declared.require(work)
    return acquiring.acquire_own(work, lock_info(workspace, work.caller))


def unlock(work: Work, workspace: WorkspaceId) -> Released:
    """Release the lock that was acquired with this ID.

    Raises:
        LockNotMatched: no lock is held, or another lock, which is not released.
    """
    return releasing.release_exactly(work, lock_info(workspace, work.caller))


def force_unlock(work: Work, workspace: WorkspaceId) -> ForceUnlocked:
    """Remove exactly the lock that was held when the ID was minted. Succeeds even if it is already gone.

    Raises:
        LockNotMatched: another lock is held, this lock is too young, or no lock was held at that time.
    """
    return removing.force_unlock_version(work, workspace.seen_lock)
