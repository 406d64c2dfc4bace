"""Locks: acquire, release, force-unlock.

A lock is an object that exists. It is taken with a PutObject that only creates, and given back with a
DeleteObject that names the very version that was read before: whatever is lost, repeated or late, nobody's
lock is ever replaced or removed by mistake, and nothing of a lock stays in the bucket. Only where S3 does not
let the version go is the lock given back by its ETag, and leaves a version and a delete marker.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from holdfast import lock_info
from holdfast.access import Action, Caller
from holdfast.errors import Locked, LockNotMatched, StorageRefused, Undecided, UnlockUndecided
from holdfast.lock_info import LockInfo
from holdfast.names import StateName
from holdfast.store import Deleted, IfAbsent, IfMatch, Object, Store, Stored, is_unique

TAGS: Final = {"holdfast": "lock"}
"""By this tag a lifecycle rule finds the lock versions that could not be removed. A rule filters by the
beginning of a key and by tags, and the keys of locks and states begin alike."""

FORCE_UNLOCK_MIN_AGE: Final = timedelta(seconds=10)
"""How old a lock must be before a force-unlock that names no ID removes it."""

_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock as it was read.

    Attributes:
        info: the holder's lock info.
        principal: who took it, or None if another program than Holdfast did.
        object: the lock object.
    """

    info: LockInfo
    principal: str | None
    object: Object

    def is_of(self, lock_id: str, caller: Caller) -> bool:
        """Whether this is the lock with that ID, taken by that caller."""
        return self.info.id == lock_id and self.principal == caller.principal

    def is_same(self, info: LockInfo, caller: Caller) -> bool:
        """Whether this lock was taken by that caller with that very document."""
        return self.info == info and self.principal == caller.principal

    @property
    def version_id(self) -> str:
        """Which lock object it is; a lock that is taken again, even with the same document, is another."""
        return self.object.head.version_id

    def is_still(self, now: "HeldLock | None") -> bool:
        """Whether the lock that is read now is the very one that was read before."""
        return _is_same_object(self.version_id, self.info, now)


def _is_same_object(version_id: str, info: LockInfo, now: HeldLock | None) -> bool:
    # Without versioning the version ID alone tells nothing.
    return now is not None and (now.version_id, now.info) == (version_id, info)


@dataclass(frozen=True, slots=True)
class Acquired:
    """The caller holds the lock.

    Attributes:
        info: its lock info, as stored.
        version_id: of the lock object.
    """

    info: LockInfo
    version_id: str

    def is_still(self, held: HeldLock | None) -> bool:
        """Whether the lock that was read is the very one that was taken."""
        return _is_same_object(self.version_id, self.info, held)


@dataclass(frozen=True, slots=True)
class Released:
    """The caller's lock is not held any more.

    Attributes:
        lock_id: its ID.
        marker_left: whether S3 did not let its version go, so that it lies under a delete marker now.
    """

    lock_id: str | None
    marker_left: bool = False


@dataclass(frozen=True, slots=True)
class ForceUnlocked:
    """Somebody's lock was removed on a maintainer's word.

    Attributes:
        info: the lock's, None if there was no lock.
        principal: who held it, None if another program than Holdfast did.
        marker_left: whether S3 did not let its version go, so that it lies under a delete marker now.
    """

    info: LockInfo | None
    principal: str | None
    marker_left: bool = False


def read(store: Store, name: StateName) -> HeldLock | None:
    """Read the lock, or None if the state is not locked."""
    found = store.read(name.lock_key)
    if found is None:
        return None
    path = f"{store.bucket}/{name.lock_key}"
    info = lock_info.read_stored(found.body, path=path, created=found.head.last_modified)
    return HeldLock(info, found.head.metadata.get("locked-by"), found)


def _with_path(info: LockInfo, store: Store, name: StateName) -> LockInfo:
    """`Path` names the state and not the lock, as in the locks of `backend "s3"`."""
    return info.at(f"{store.bucket}/{name.state_key}")


def acquire(store: Store, name: StateName, body: bytes, caller: Caller) -> Acquired:
    """Take the lock.

    Args:
        body: the lock info as received.

    Raises:
        NotAllowed: the caller may not lock this state.
        InvalidLockInfo, TooLarge: the body is no lock info.
        Locked: somebody else holds it.
        Undecided: S3 did not decide in time.
    """
    caller.require(Action.LOCK, name)
    return take(store, name, lock_info.parse(body), caller)


def take(store: Store, name: StateName, info: LockInfo, caller: Caller) -> Acquired:
    """Take the lock for a caller who was found to be allowed to.

    Raises:
        Locked: somebody else holds it.
        Undecided: S3 did not decide in time.
    """
    info = _with_path(info, store, name)
    for _ in range(_ATTEMPTS):
        stored = store.write(
            name.lock_key,
            info.to_json(),
            IfAbsent(),
            metadata={"locked-by": caller.principal},
            tags=TAGS,
        )
        if isinstance(stored, Stored):
            return Acquired(info, stored.version_id)
        held = read(store, name)
        if held is None:
            continue  # released in between
        if held.is_same(info, caller):
            return Acquired(info, held.object.head.version_id)  # our own request, repeated
        raise Locked(held.info.for_client())
    raise Undecided("The lock keeps changing hands. Repeating the request is safe.")


def give_back(store: Store, name: StateName, acquired: Acquired) -> None:
    """Release what `take` took: that very lock object, and none with the same document that came after it.

    Raises:
        Undecided: S3 did not decide in time.
    """
    if _remove_version(store, name, acquired.version_id):
        return
    held = read(store, name)
    if held is not None and acquired.is_still(held):
        _hide(store, name, held)


def release(store: Store, name: StateName, body: bytes, caller: Caller) -> Released | ForceUnlocked:
    """Give a lock back, or remove somebody's on a maintainer's word.

    Which of the two is meant shows in the body: the document that took the lock releases it; nothing
    (Terraform's `force-unlock`), only an ID (OpenTofu's), or the ID with another document or caller is
    a force-unlock.

    Args:
        body: the body as received.

    Returns:
        `Released` also when somebody else has locked since: there is nothing left to release.

    Raises:
        NotAllowed: the caller may not unlock this state, or not force it.
        InvalidLockInfo, TooLarge: the body is neither empty nor lock info.
        LockNotMatched: a force-unlock does not mean the lock that is held now.
        Undecided: S3 did not decide in time.
    """
    caller.require(Action.UNLOCK, name)
    if not body:
        caller.require(Action.FORCE_UNLOCK, name)
        return _force_unlock(store, name, read(store, name), None)
    received = lock_info.parse(body)
    info = _with_path(received, store, name)
    held = read(store, name)
    if held is None:
        return Released(info.id)
    if held.is_same(info, caller):
        # That it is gone by now means that somebody removed it: there is nothing left to release.
        return Released(info.id, marker_left=_remove(store, name, held))
    if info.id != held.info.id and not received.names_only_its_id:
        return Released(info.id)
    caller.require(Action.FORCE_UNLOCK, name)
    return _force_unlock(store, name, held, info.id)


def _force_unlock(store: Store, name: StateName, held: HeldLock | None, lock_id: str | None) -> ForceUnlocked:
    if held is None:
        return ForceUnlocked(None, None)
    if lock_id is None:
        age = held.object.read_at - held.object.head.last_modified
        # Both times are cut to the second, so that the lock can be up to a second younger than this.
        if age <= FORCE_UNLOCK_MIN_AGE:
            raise LockNotMatched(
                f"The lock {held.info.id} was taken only just now, and this force-unlock names no lock. "
                f"If it is the one that you mean, repeat the command in "
                f"{FORCE_UNLOCK_MIN_AGE.seconds + 1} seconds."
            )
    elif lock_id != held.info.id:
        raise LockNotMatched(
            f"The lock that is held now has the ID {held.info.id}, not {lock_id}. Nothing was unlocked."
        )
    # From here on nothing but the log may know of this lock any more.
    removed = {"lock_id": held.info.id, "held_by": held.principal}
    try:
        marker_left = _remove(store, name, held)
        # S3 answers the removal of a version that was gone already like any other: only this tells.
        now = read(store, name)
    except (Undecided, StorageRefused) as error:
        if lock_id is not None:
            error.logged = removed
            raise
        # A status that the client repeats by itself would let the repeat meet the next holder's lock.
        raise UnlockUndecided(
            f"S3 did not say whether the lock {held.info.id} was removed. See who holds the state before you "
            "unlock it again.",
            removed | ({"reason": error.message} if isinstance(error, StorageRefused) else {}),
        ) from error
    if now is not None:
        raise LockNotMatched(
            f"The lock {held.info.id} is gone, and {now.info.who or 'somebody'} has locked the state since, "
            f"lock ID {now.info.id}; their lock stays.",
            removed,
        )
    return ForceUnlocked(held.info, held.principal, marker_left)


def _remove(store: Store, name: StateName, held: HeldLock) -> bool:
    """Remove the lock object that was read, and no other that may lie there by now.

    Returns:
        Whether it left a delete marker.
    """
    return not _remove_version(store, name, held.version_id) and _hide(store, name, held)


def _remove_version(store: Store, name: StateName, version_id: str) -> bool:
    """Whether a lock object is gone now; not where S3 keeps its versions, or has none."""
    return is_unique(version_id) and isinstance(store.remove_version(name.lock_key, version_id), Deleted)


def _hide(store: Store, name: StateName, held: HeldLock) -> bool:
    """Put a delete marker over the lock object that was read; whether it had not changed."""
    return isinstance(store.delete(name.lock_key, IfMatch(held.object.head.etag)), Deleted)
