"""Acquire, release, force-unlock and break locks.

A state is locked while its lock object exists. An acquire is a PutObject that only creates. A release is a
DeleteObject of the version that was read before. So a lost, repeated or late request never replaces or
removes another lock, and a released lock leaves no version in the bucket. If S3 refuses to remove the
version, the lock is deleted by its ETag instead, which leaves a version and a delete marker.

Below a removed version there is a delete marker or no entry, because an acquire only creates. If somebody
removes that marker by hand, an older lock reappears: the state is then locked, never unlocked by mistake.

A freeze is a lock with a mark in its metadata. A client cannot set the mark by its lock info. `unfreeze`
removes a freeze, and an acquire removes a freeze that has ended.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.access import Action, Caller, OwnLocks, named
from holdfast.errors import (
    Frozen,
    HoldfastError,
    InvalidLockInfo,
    Locked,
    LockNotMatched,
    NotAllowed,
    NotFrozen,
    OutcomeUnknown,
    StorageRefused,
    UnlockOutcomeUnknown,
)
from holdfast.names import StateName
from holdfast.s3 import object_metadata
from holdfast.s3.store import Deleted, IfAbsent, IfMatch, ObjectVersion, Store, Stored, is_unique
from holdfast.state import declared, lock_info
from holdfast.state.lock_info import LockInfo

TAGS: Final = {"holdfast": "lock"}
"""The tag by which a lifecycle rule finds lock versions that could not be removed. A rule can filter by
prefix and tag, and the keys of locks and states have the same prefix."""

FORCE_UNLOCK_MIN_AGE: Final = timedelta(seconds=10)
"""The least age at which a force-unlock without an ID removes a lock."""

_ATTEMPTS: Final = 5
_UNTIL: Final = "%Y-%m-%dT%H:%M:%SZ"
"""The format of a freeze's end in its metadata."""


@dataclass(frozen=True, slots=True)
class LockIdentity:
    """The identity of a lock object. It is equal for two reads if and only if they returned the same object.

    In a bucket with versioning the version ID decides: a lock that is acquired again, even with the same
    document, is another version. Without versioning only document and principal are compared. `lifted` is
    not compared: it is the ID of the ended freeze that the acquire removed before, or empty.
    """

    version_id: str
    info: LockInfo
    principal: str | None
    lifted: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Freeze:
    """The data of a freeze; `until` is in whole seconds, None if the freeze does not end."""

    id: str
    reason: str
    until: datetime | None

    def metadata(self) -> dict[str, str]:
        ends = {"freeze-until": self.until.astimezone(UTC).strftime(_UNTIL)} if self.until else {}
        return {"freeze": self.id, **ends}


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock that was read; `read_at` is the time of the response by S3's clock, in whole seconds."""

    identity: LockIdentity
    version: ObjectVersion
    read_at: datetime

    @property
    def freeze(self) -> Freeze | None:
        """The freeze; None for any other lock. The metadata decides, as a client can send any operation."""
        metadata = self.version.metadata
        if "freeze" not in metadata:
            return None
        until = None
        # With an invalid time the freeze does not end until somebody unfreezes the state.
        with suppress(ValueError):
            until = datetime.strptime(metadata.get("freeze-until", ""), _UNTIL).replace(tzinfo=UTC)
        return Freeze(metadata["freeze"], lock_info.reason_of_freeze(self.info), until)

    @property
    def is_ended_freeze(self) -> bool:
        """True for a freeze that had ended when it was read, by S3's clock."""
        freeze = self.freeze
        return freeze is not None and freeze.until is not None and freeze.until <= self.read_at

    @property
    def info(self) -> LockInfo:
        return self.identity.info

    @property
    def principal(self) -> str | None:
        return self.identity.principal

    @property
    def owner(self) -> str:
        """The owner of the holder's credentials when the lock was acquired; empty if nobody was named."""
        return self.version.metadata.get("owner", "")

    @property
    def holder(self) -> str:
        """Who holds the lock, for people: the client's `Who`, and the principal if it has an owner."""
        who = self.info.who
        if not self.owner:
            return who
        by = named(self.principal or "somebody", self.owner)
        return f"{who}, {by}" if who not in ("", self.principal) else by


def refusal(held: HeldLock) -> Locked:
    # The stored document never has the owner: it is what releases the lock, also after the owner changed.
    holder = {**held.info.for_client(), "Who": held.holder}
    freeze = held.freeze
    if freeze is None:
        return Locked(holder)
    # The stored document has the zero time, so that a retry stores the same; clients would show the year 1.
    holder["Created"] = held.version.last_modified.astimezone(UTC).strftime(_UNTIL)
    if held.is_ended_freeze:
        then = "It has ended: the next command that acquires the lock lifts it."
    else:
        ends = f" It ends at {freeze.until.strftime(_UNTIL)}." if freeze.until else ""
        then = f"{ends} 'holdfast state unfreeze' lifts it; no force-unlock does.".lstrip()
    by = named(held.principal or "somebody", held.owner)
    return Frozen(holder, f"The state is frozen by {by}: {freeze.reason}. {then}")


def identity(lock: HeldLock | None) -> LockIdentity | None:
    return lock.identity if lock else None


@dataclass(frozen=True, slots=True)
class Released:
    """The caller's lock is no longer held."""

    lock_id: str | None
    marker_created: bool = False


@dataclass(frozen=True, slots=True)
class ForceUnlocked:
    """A lock was removed by force; `info` is None if the state was not locked."""

    info: LockInfo | None
    principal: str | None
    marker_created: bool = False


def read(store: Store, name: StateName) -> HeldLock | None:
    found = store.read(name.lock_key)
    if found is None:
        return None
    version = found.version
    path = f"{store.bucket}/{name.lock_key}"
    info = lock_info.read_stored(found.body, path=path, created=version.last_modified)
    lock = LockIdentity(version.version_id, info, version.metadata.get("locked-by"))
    return HeldLock(lock, version, found.read_at)


def acquire(
    store: Store, name: StateName, body: bytes, caller: Caller, *, declared_only: bool = False
) -> LockIdentity:
    caller.require(Action.LOCK, name)
    info = lock_info.parse(body)
    if info.operation == lock_info.FREEZE:
        raise InvalidLockInfo(
            f"The operation '{lock_info.FREEZE}' is not for clients; 'holdfast state freeze' freezes a state."
        )
    if declared_only:
        declared.require(store, name, caller)
    return acquire_own(store, name, info, caller)


def acquire_own(
    store: Store, name: StateName, info: LockInfo, caller: Caller, freeze: Freeze | None = None
) -> LockIdentity:
    """Acquire the lock, without checking the caller's role. Before that, remove a freeze that has ended.

    Raises:
        Locked: somebody else holds the lock, or the state is frozen.
        OutcomeUnknown: also if other clients kept acquiring and releasing the lock.
    """
    info = _with_path(info, store, name)
    metadata = {"locked-by": caller.principal, **(freeze.metadata() if freeze else {})}
    freeze_id = freeze.id if freeze else None
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
        held = read(store, name)
        if held is None:
            continue  # released in between
        held_freeze = held.freeze.id if held.freeze else None
        # Before the end of a freeze is looked at: our own freeze can have ended since an attempt before.
        if _was_acquired_with(held, info, caller) and held_freeze == freeze_id:
            return held.identity
        removed = _remove_if(store, name, held, held_freeze, lambda lock: lock.is_ended_freeze)
        if removed is None:
            raise refusal(held)
        lifted = held_freeze or ""
    raise OutcomeUnknown("The lock keeps changing hands. A retry is safe.")


def release_own(store: Store, name: StateName, acquired: LockIdentity) -> None:
    """Release exactly the lock object that `acquire_own` acquired, not a later one with the same document."""
    # No read is needed: no other lock object ever has this version ID.
    if _remove_version(store, name, acquired.version_id):
        return
    # S3 protects the version, or the bucket has no versions: only the ETag of a new read identifies the lock.
    held = read(store, name)
    if held is not None and held.identity == acquired:
        _delete_by_etag(store, name, held)


def release(
    store: Store,
    name: StateName,
    body: bytes,
    caller: Caller,
    *,
    lock_id: str | None = None,
    own_locks: OwnLocks = OwnLocks.NONE,
) -> Released | ForceUnlocked:
    """Release the caller's lock, or force-unlock.

    The body decides: the document that acquired the lock releases it. An empty body (Terraform's
    `force-unlock`), an ID alone (OpenTofu's), or the ID with another document or caller is a force-unlock.
    The result is `Released` also if the lock is already gone and somebody else has locked the state since.
    `lock_id` is the ID in the query. With an empty body it is an ID alone, as scripts send it to GitLab.

    Raises:
        InvalidLockInfo: the body is not lock info, or its ID differs from the ID in the query.
        NotAllowed: also if the caller may unlock, but may not remove this lock by force.
        UnlockOutcomeUnknown: the outcome of a force-unlock without an ID is unknown.
    """
    caller.require(Action.UNLOCK, name)
    received = lock_info.of_release(body, lock_id)
    if received is None:  # Terraform's force-unlock, which does not name a lock
        if own_locks is OwnLocks.NAMED:
            note = f"This request names no lock; 'holdfast lock break {name}' removes a lock of your own."
            _require_force_unlock(name, caller, note)
        caller.require(own_locks.needs, name)
        held = read(store, name)
        _check_removal(held, lambda _: True, name, caller, own_locks)
        return _force_unlock(store, name, held, _is_old_enough, _too_young, retry_is_safe=False)
    info = _with_path(received, store, name)
    held = read(store, name)
    if held is None:
        return Released(info.id)  # a retry, or somebody removed the lock
    removed = _remove_if(store, name, held, None, lambda lock: _was_acquired_with(lock, info, caller))
    if removed is not None:
        return Released(info.id, marker_created=removed)
    if info.id != held.info.id and not received.names_only_its_id:
        return Released(info.id)  # a retry; the lock that it finds belongs to the next holder

    def is_named(lock: HeldLock) -> bool:
        return lock.info.id == info.id

    # The right ID with another document or caller, or OpenTofu's force-unlock, which sends the ID alone.
    _check_removal(held, is_named, name, caller, own_locks)
    return _force_unlock(
        store,
        name,
        held,
        is_named,
        lambda lock: LockNotMatched(
            f"The lock that is held now has the ID {lock.info.id}, not {info.id}. Nothing was unlocked."
        ),
        retry_is_safe=True,
    )


def release_exactly(store: Store, name: StateName, info: LockInfo, caller: Caller) -> Released:
    """Release the lock that was acquired with this document, and never force-unlock.

    A released lock leaves nothing in the bucket. So the retry of a release cannot be told from the release of
    a lock that somebody removed or nobody acquired.

    Raises:
        LockNotMatched: no lock is held, or another lock, which stays.
    """
    caller.require(Action.UNLOCK, name)
    held = read(store, name)
    if held is None:
        raise LockNotMatched(
            "The workspace is not locked; its lock was already released or somebody removed it."
        )
    own = _with_path(info, store, name)
    removed = _remove_if(store, name, held, None, lambda lock: _was_acquired_with(lock, own, caller))
    if removed is None:
        raise _next_holder(f"The lock {info.id} is gone", held)
    return Released(info.id, marker_created=removed)


def force_unlock_version(
    store: Store, name: StateName, version_id: str, caller: Caller, *, own_locks: OwnLocks = OwnLocks.NONE
) -> ForceUnlocked:
    """Force-unlock exactly the lock object that the client has seen; `version_id` is empty if it saw no lock.

    The result is `ForceUnlocked` also if the state is no longer locked, so a retry is safe. `LockNotMatched`
    is raised also if the client saw no lock, or the lock is too young.
    """
    caller.require(own_locks.needs, name)
    if not is_unique(version_id):
        raise LockNotMatched(
            "The state was not locked when this command began. Nothing was unlocked; if it is locked now, "
            "run the command again."
        )

    def was_seen(held: HeldLock) -> bool:
        return held.identity.version_id == version_id

    seen = "The lock that was held when this command began is gone"
    held = read(store, name)
    _check_removal(held, was_seen, name, caller, own_locks)
    return _force_unlock(
        store,
        name,
        held,
        lambda lock: was_seen(lock) and _is_old_enough(lock),
        lambda lock: _too_young(lock) if was_seen(lock) else _next_holder(seen, lock),
        retry_is_safe=True,
    )


def break_exactly(
    store: Store,
    name: StateName,
    lock_id: str,
    version_id: str,
    caller: Caller,
    *,
    own_locks: OwnLocks = OwnLocks.NONE,
) -> ForceUnlocked:
    """Remove exactly the lock with this ID and version, even if the request arrives late.

    The version is needed because IDs recur: an acquire can arrive late, and some verbs derive the lock's ID
    from a version of the state. The result is `ForceUnlocked` also if the state is no longer locked.
    `LockNotMatched` is raised also in a bucket without versioning, where locks cannot be distinguished.
    """
    caller.require(own_locks.needs, name)
    held = read(store, name)

    def is_named(held: HeldLock) -> bool:
        named = (held.info.id, held.identity.version_id) == (lock_id, version_id)
        return named and is_unique(held.identity.version_id)

    _check_removal(held, is_named, name, caller, own_locks)
    if held is None:
        return ForceUnlocked(None, None)
    try:
        removed = _remove_if(store, name, held, None, is_named)
    except (OutcomeUnknown, StorageRefused) as error:
        error.logged = {"lock_id": held.info.id, "held_by": held.principal}
        raise
    if removed is not None:
        return ForceUnlocked(held.info, held.principal, removed)
    if not is_unique(held.identity.version_id):
        raise LockNotMatched(
            "The versioning of the bucket is off, so that this lock cannot be told from the next one. "
            "Nothing was removed; switch the versioning on."
        )
    raise LockNotMatched(
        "The lock that is held now is not the named lock. "
        f"{held.holder or 'Somebody'} holds it, lock ID {held.info.id}; it stays."
    )


def unfreeze(store: Store, name: StateName, freeze_id: str) -> HeldLock | None:
    """Remove the freeze with an ID, without checking the caller's role.

    Return the freeze; None if the state is no longer locked. Raise `NotFrozen` if the lock is not a freeze.
    """
    held = read(store, name)
    if held is None:
        return None
    try:
        removed = _remove_if(store, name, held, freeze_id, lambda lock: lock.freeze is not None)
    except (OutcomeUnknown, StorageRefused) as error:
        error.logged = {"freeze": freeze_id}
        raise
    if removed is not None:
        return held
    if held.freeze is None:
        raise NotFrozen(
            f"The state is not frozen. {held.holder or 'Somebody'} holds its lock, lock ID "
            f"{held.info.id}; it stays."
        )
    raise LockNotMatched(
        f"Another command than the named one froze the state: {held.freeze.reason}. That freeze stays."
    )


def _with_path(info: LockInfo, store: Store, name: StateName) -> LockInfo:
    """Fill in an empty `Path` with the state's key, not the lock's, as `backend "s3"` does."""
    return info.at(f"{store.bucket}/{name.state_key}")


def _was_acquired_with(held: HeldLock, info: LockInfo, caller: Caller) -> bool:
    return held.info == info and held.principal == caller.principal


def _check_removal(
    held: HeldLock | None,
    is_named: Callable[[HeldLock], bool],
    name: StateName,
    caller: Caller,
    own_locks: OwnLocks,
) -> None:
    """Raise an error unless the caller may force-unlock the lock that was read. Nobody may for a freeze.

    A lock that the request does not name stays, so it needs no permission: the caller then learns that the
    named lock is gone.
    """
    if held is None:
        return
    if held.freeze:
        raise refusal(held)
    if is_named(held) and (own_locks is OwnLocks.NONE or not _is_own(held, caller)):
        holder = named(held.principal, held.owner) if held.principal else "Somebody"
        operation = held.info.operation or "unknown"
        note = f"{holder} holds the lock {held.info.id}; its operation is {operation!r}."
        if _is_own(held, caller):
            note += " The team's setting 'own_locks' lets no writer remove a lock of their own."
        _require_force_unlock(name, caller, note)


def _is_own(held: HeldLock, caller: Caller) -> bool:
    """Return whether a client with the caller's principal acquired the lock.

    A verb's lock is nobody's own, because the verbs need more than the role `writer`. Neither is a lock of
    `backend "s3"`, which has no principal.
    """
    return held.principal == caller.principal and held.info.operation not in lock_info.VERBS


def _require_force_unlock(name: StateName, caller: Caller, note: str) -> None:
    """Raise `NotAllowed` with a note unless the caller may force-unlock every lock of the state."""
    try:
        caller.require(Action.FORCE_UNLOCK, name)
    except NotAllowed as error:
        error.add_note(note)
        raise


def _force_unlock(
    store: Store,
    name: StateName,
    held: HeldLock | None,
    is_meant: Callable[[HeldLock], bool],
    otherwise: Callable[[HeldLock], HoldfastError],
    *,
    retry_is_safe: bool,
) -> ForceUnlocked:
    """Remove the lock that was read if `is_meant` accepts it, else raise the error that `otherwise` returns.

    `retry_is_safe` says whether a retry cannot remove another lock.
    """
    if held is None:
        return ForceUnlocked(None, None)
    # After the removal, only the log contains these values.
    logged = {"lock_id": held.info.id, "held_by": held.principal}
    try:
        removed = _remove_if(store, name, held, None, is_meant)
        if removed is None:
            raise otherwise(held)
        # S3 confirms the removal of a missing version, too. Another read finds a lock that is newer.
        now = read(store, name)
    except (OutcomeUnknown, StorageRefused) as error:
        if retry_is_safe:
            error.logged = logged
            raise
        # With a 503 the client would retry by itself, and could remove the next holder's lock.
        raise UnlockOutcomeUnknown(
            f"S3 did not say whether the lock {held.info.id} was removed. See who holds the state before you "
            "unlock it again.",
            logged | ({"reason": error.message} if isinstance(error, StorageRefused) else {}),
        ) from error
    if now is not None:
        raise _next_holder(f"The lock {held.info.id} is gone", now, logged)
    return ForceUnlocked(held.info, held.principal, removed)


def _is_old_enough(held: HeldLock) -> bool:
    """Return whether a lock is old enough for a force-unlock without an ID."""
    # Both times are in whole seconds, so the lock can be up to a second younger than the difference.
    return held.read_at - held.version.last_modified > FORCE_UNLOCK_MIN_AGE


def _too_young(held: HeldLock) -> HoldfastError:
    return LockNotMatched(
        f"The lock {held.info.id} was acquired only just now, and this force-unlock names no lock. If you "
        f"mean this lock, run the command again in {FORCE_UNLOCK_MIN_AGE.seconds + 1} seconds."
    )


def _next_holder(gone: str, held: HeldLock, logged: Mapping[str, Any] | None = None) -> LockNotMatched:
    return LockNotMatched(
        f"{gone}, and {held.holder or 'somebody'} has locked the state since, lock ID {held.info.id}; "
        "their lock stays.",
        logged,
    )


def _remove_if(
    store: Store,
    name: StateName,
    held: HeldLock,
    freeze_id: str | None,
    is_meant: Callable[[HeldLock], bool],
) -> bool | None:
    """Remove exactly the lock object that was read, if `is_meant` accepts it.

    A freeze is only removed if its ID is `freeze_id`. Return whether a delete marker was created; None if the
    lock was not accepted, and so not removed.
    """
    if (held.freeze.id if held.freeze else None) != freeze_id or not is_meant(held):
        return None
    is_gone = _remove_version(store, name, held.identity.version_id)
    return not is_gone and _delete_by_etag(store, name, held)


def _remove_version(store: Store, name: StateName, version_id: str) -> bool:
    """Remove a lock object by its version. Return False if S3 protects it, or the bucket has no versions."""
    return is_unique(version_id) and isinstance(store.remove_version(name.lock_key, version_id), Deleted)


def _delete_by_etag(store: Store, name: StateName, held: HeldLock) -> bool:
    """Create a delete marker over the lock object that was read. Return False if it is no longer current."""
    return isinstance(store.delete(name.lock_key, IfMatch(held.version.etag)), Deleted)
