"""Release the caller's own lock.

A request with the lock's ID and another document or caller, with the ID alone, or with nothing is no release
but a force-unlock (`removing`).
"""

from dataclasses import dataclass

from holdfast.access import Action
from holdfast.errors import LockNotMatched
from holdfast.state import held, lock_info, removing
from holdfast.state.held import CommandLock, HeldLock, Removal
from holdfast.state.lock_info import LockInfo
from holdfast.state.removing import ForceUnlocked
from holdfast.work import Work


@dataclass(frozen=True, slots=True)
class Released:
    """The caller's lock is no longer held."""

    lock_id: str | None
    marker_created: bool = False


def release(work: Work, body: bytes, lock_id: str | None = None) -> Released | ForceUnlocked:
    """Release the caller's lock, or force-unlock.

    The body decides: the document that acquired the lock releases it. An empty body (Terraform's
    `force-unlock`), an ID alone (OpenTofu's), or the ID with another document or caller is a force-unlock.
    The result is `Released` even if the lock is already gone and somebody else has locked the state since.

    Args:
        lock_id: the ID in the query. With an empty body it is an ID alone, as scripts send it to GitLab.

    Raises:
        InvalidLockInfo: the body is not lock info, or its ID differs from the ID in the query.
        NotAllowed: the caller may not unlock, or may not remove this lock by force.
        UnlockOutcomeUnknown: the outcome of a force-unlock without an ID is unknown.
    """
    work.require(Action.UNLOCK)
    received = lock_info.of_release(body, lock_id)
    if received is None:
        return removing.force_unlock_unnamed(work)
    info = received.at(work.address)
    lock, removal = _read(work, info)
    if lock is None:
        return Released(info.id)  # removed at the same time or by somebody else, or this is a retry
    if isinstance(lock, CommandLock) and lock.was_acquired_with(info, work.caller):
        return Released(info.id, held.remove(work.store, work.name, lock, removal))
    if removal:
        return Released(info.id)  # its own lock is gone; the lock that it finds belongs to the next holder
    if info.id != lock.info.id and not received.names_only_its_id:
        return Released(info.id)  # a retry; the lock that it finds belongs to the next holder
    # The right ID with another document or caller, or OpenTofu's force-unlock, which sends the ID alone.
    return removing.force_unlock_named(work, lock, info.id)


def _read(work: Work, info: LockInfo) -> tuple[HeldLock | None, Removal | None]:
    """Read the lock. If this process acquired it for the caller, remove it at the same time."""
    if work.memory:
        version_id = work.memory.take_lock(work.name, info.to_json(), work.caller.principal)
        if version_id:
            return held.read_and_remove(work.store, work.name, version_id)
    return held.read(work.store, work.name), None


def release_exactly(work: Work, info: LockInfo) -> Released:
    """Release the lock that was acquired with this document, and never force-unlock.

    A released lock leaves nothing in the bucket. So the retry of a release cannot be told from the release of
    a lock that somebody removed or nobody acquired. For the same reason the lock is read before it is removed
    and never at the same time: a read that finds no lock would not tell whether it was removed just now.

    Raises:
        LockNotMatched: no lock is held, or another lock, which stays.
    """
    work.require(Action.UNLOCK)
    lock = held.read(work.store, work.name)
    if lock is None:
        raise LockNotMatched("The workspace is not locked: the lock was already released or removed.")
    if not isinstance(lock, CommandLock) or not lock.was_acquired_with(info.at(work.address), work.caller):
        raise removing.next_holder(f"The lock {info.id} is gone", lock)
    return Released(info.id, held.remove(work.store, work.name, lock))
