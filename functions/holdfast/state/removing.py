"""Remove a lock by force: the force-unlocks of the protocols, and an operator's break. A freeze stays."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from holdfast.access import Action, OwnLocks, claimed
from holdfast.errors import (
    HoldfastError,
    LockNotMatched,
    NotAllowed,
    OutcomeUnknown,
    StorageRefused,
    UnlockOutcomeUnknown,
)
from holdfast.s3.objects import is_unique
from holdfast.state import held, lock_info
from holdfast.state.held import CommandLock, HeldLock
from holdfast.state.lock_info import LockInfo
from holdfast.work import Work

FORCE_UNLOCK_MIN_AGE: Final = timedelta(seconds=10)
"""The least age at which a force-unlock that does not name the lock's ID removes a lock."""


@dataclass(frozen=True, slots=True)
class ForceUnlocked:
    """A lock was removed by force; `info` is None if the state was not locked."""

    info: LockInfo | None
    principal: str | None
    marker_created: bool = False


def force_unlock_unnamed(work: Work) -> ForceUnlocked:
    """Remove the lock that is held: Terraform's force-unlock, which does not name a lock.

    Raises:
        LockNotMatched: the lock is too young.
    """
    own_locks = work.policy.own_locks
    if own_locks is OwnLocks.NAMED:
        note = (
            "This request does not contain the ID of the lock; Terraform's force-unlock does not send it. To "
            f"remove a lock of your own, use 'holdfast lock break {work.name}'."
        )
        _require_force_unlock(work, note)
    work.require(own_locks.needs)
    lock = held.read(work.store, work.name)
    if lock is None:
        return ForceUnlocked(None, None)
    lock = _check_removal(work, lock, is_named=True)
    if not _is_old_enough(lock):
        raise _too_young(lock)
    return _force_unlock(work, lock, retry_is_safe=False)


def force_unlock_named(work: Work, lock: HeldLock, lock_id: str) -> ForceUnlocked:
    """Remove the lock that was read if it has the ID that the request names."""
    is_named = lock.info.id == lock_id
    lock = _check_removal(work, lock, is_named=is_named)
    if not is_named:
        raise LockNotMatched(
            f"The lock that is held now has the ID {lock.info.id}, not {lock_id}. Nothing was unlocked. If "
            "you mean the lock that is held now, run the command again with its ID."
        )
    return _force_unlock(work, lock, retry_is_safe=True)


def force_unlock_version(work: Work, version_id: str) -> ForceUnlocked:
    """Remove exactly the lock object that the client has seen; `version_id` is empty if it saw no lock.

    The result is `ForceUnlocked` even if the state is no longer locked, so a retry is safe.

    Raises:
        LockNotMatched: another lock is held, this lock is too young, or the client saw no lock.
    """
    work.require(work.policy.own_locks.needs)
    if not is_unique(version_id):
        raise LockNotMatched(
            "The state was not locked when this command began. Nothing was unlocked; if it is locked now, "
            "run the command again."
        )
    lock = held.read(work.store, work.name)
    if lock is None:
        return ForceUnlocked(None, None)
    was_seen = lock.identity.version_id == version_id
    lock = _check_removal(work, lock, is_named=was_seen)
    if not was_seen:
        raise next_holder("The lock that was held when this command began is gone", lock)
    if not _is_old_enough(lock):
        raise _too_young(lock)
    return _force_unlock(work, lock, retry_is_safe=True)


def break_exactly(work: Work, lock_id: str, version_id: str) -> ForceUnlocked:
    """Remove exactly the lock with this ID and version, even if the request arrives late.

    The version is needed because IDs recur: an acquire can arrive late, and some verbs derive the lock's ID
    from a version of the state. The result is `ForceUnlocked` even if the state is no longer locked.

    Raises:
        LockNotMatched: another lock is held, or locks cannot be told apart, without versioning.
    """
    work.require(work.policy.own_locks.needs)
    lock = held.read(work.store, work.name)
    if lock is None:
        return ForceUnlocked(None, None)
    unique = is_unique(lock.identity.version_id)
    is_named = unique and (lock.info.id, lock.identity.version_id) == (lock_id, version_id)
    lock = _check_removal(work, lock, is_named=is_named)
    if not unique:
        raise LockNotMatched(
            "This lock was acquired while the bucket's versioning was off, so Holdfast cannot distinguish it "
            "from a later lock. Nothing was removed. Remove the lock with a force-unlock of Terraform or "
            "OpenTofu, and let an operator check the bucket with 'holdfast doctor'."
        )
    if not is_named:
        raise LockNotMatched(
            f"The lock that this request names is gone, and another lock is held by {lock.described} (lock "
            f"ID {lock.info.id}). Nothing was removed."
        )
    try:
        marker_created = held.remove(work.store, work.name, lock)
    except (OutcomeUnknown, StorageRefused) as error:
        error.logged = {"lock_id": lock.info.id, "held_by": lock.principal}
        raise
    return ForceUnlocked(lock.info, lock.principal, marker_created)


def next_holder(gone: str, lock: HeldLock, logged: Mapping[str, Any] | None = None) -> LockNotMatched:
    """Return the error for a request whose lock is gone, while somebody holds another lock."""
    return LockNotMatched(
        f"{gone}, and {lock.described} has since locked the state, lock ID {lock.info.id}. That lock was "
        "not removed.",
        logged,
    )


def _check_removal(work: Work, lock: HeldLock, *, is_named: bool) -> CommandLock:
    """Return the lock that was read; raise an error unless the caller may force-unlock it.

    Nobody may for a freeze. A lock that the request does not name stays, so it needs no permission: the
    caller then learns that the named lock is gone.
    """
    if not isinstance(lock, CommandLock):
        raise held.refusal(lock)
    own_locks = work.policy.own_locks
    if is_named and (own_locks is OwnLocks.NONE or not _is_own(work, lock)):
        operation = claimed(lock.info.operation or "unknown")
        note = f"The lock {lock.info.id} is held by {lock.holder} for the operation {operation}."
        if _is_own(work, lock):
            note += " The team's setting 'own_locks' does not let the role 'writer' remove this lock."
        _require_force_unlock(work, note)
    return lock


def _is_own(work: Work, lock: CommandLock) -> bool:
    """Return whether a client with the caller's principal acquired the lock.

    A verb's lock is nobody's own, because the verbs need more than the role `writer`. Neither is a lock of
    `backend "s3"`, which has no principal.
    """
    return lock.principal == work.caller.principal and lock.info.operation not in lock_info.VERBS


def _require_force_unlock(work: Work, note: str) -> None:
    """Raise `NotAllowed` with a note unless the caller may force-unlock every lock of the state."""
    try:
        work.require(Action.FORCE_UNLOCK)
    except NotAllowed as error:
        error.add_note(note)
        raise


def _is_old_enough(lock: HeldLock) -> bool:
    """Return whether a lock is old enough for a force-unlock that does not name the lock's ID."""
    # Both times are in whole seconds, so the lock can be up to a second younger than the difference.
    return lock.read_at - lock.version.last_modified > FORCE_UNLOCK_MIN_AGE


def _too_young(lock: HeldLock) -> HoldfastError:
    return LockNotMatched(
        f"The lock {lock.info.id} was acquired only a moment ago, and this force-unlock does not send the "
        "lock's ID. Nothing was unlocked. To remove this lock, run the command again in "
        f"{FORCE_UNLOCK_MIN_AGE.seconds + 1} seconds."
    )


def _force_unlock(work: Work, lock: CommandLock, *, retry_is_safe: bool) -> ForceUnlocked:
    """Remove the lock that was read, and check that no other lock is held then.

    Args:
        retry_is_safe: whether a retry cannot remove another lock.
    """
    # After the removal, only the log contains these values.
    logged = {"lock_id": lock.info.id, "held_by": lock.principal}
    try:
        marker_created = held.remove(work.store, work.name, lock)
        # S3 confirms the removal of a missing version, too. Another read finds a lock that is newer.
        now = held.read(work.store, work.name)
    except (OutcomeUnknown, StorageRefused) as error:
        if retry_is_safe:
            error.logged = logged
            raise
        # With a 503 the client would retry by itself, and could remove the next holder's lock.
        raise UnlockOutcomeUnknown(
            f"It is unknown whether the lock {lock.info.id} was removed. Before you unlock the state again, "
            f"look at its lock with 'holdfast lock show {work.name}'.",
            logged | ({"reason": error.message} if isinstance(error, StorageRefused) else {}),
        ) from error
    if now is not None:
        raise next_holder(f"The lock {lock.info.id} is gone", now, logged)
    return ForceUnlocked(lock.info, lock.principal, marker_created)
