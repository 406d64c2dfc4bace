"""The lock object of a state: read it, say who holds it, and remove exactly the object that was read.

A state is locked while its lock object exists. An acquire is a PutObject that only creates. A release is a
DeleteObject of the version that was read before. So a lost, repeated or late request never replaces or
removes another lock, and a released lock leaves no version in the bucket. If S3 refuses to remove the
version, the lock is deleted by its ETag instead, which leaves a version and a delete marker.

Below a removed version there is a delete marker or no entry, because an acquire only creates. If somebody
removes that marker by hand, an older lock reappears: the state is then locked, never unlocked by mistake.

A lock is the lock of a command, or a freeze, which has a mark in its metadata. A client cannot set the mark
by its lock info.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from holdfast import timestamp
from holdfast.access import ANOTHER_PROGRAM, Caller, called, with_claim
from holdfast.errors import Frozen, Locked
from holdfast.names import StateName
from holdfast.s3.objects import Deleted, IfMatch, ObjectVersion, is_unique
from holdfast.s3.store import Store
from holdfast.state import lock_info
from holdfast.state.lock_info import LockInfo

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
        ends = {"freeze-until": timestamp.write(self.until)} if self.until else {}
        return {"freeze": self.id, **ends}


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock that was read: a `CommandLock` or a `HeldFreeze`.

    Attributes:
        read_at: the time of the response by S3's clock, in whole seconds.
    """

    identity: LockIdentity
    version: ObjectVersion
    read_at: datetime
    info: LockInfo = field(init=False, compare=False, repr=False)
    principal: str | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", self.identity.info)
        object.__setattr__(self, "principal", self.identity.principal)

    @property
    def freeze(self) -> Freeze | None:
        """The freeze; None for the lock of a command."""
        return None

    @property
    def is_ended_freeze(self) -> bool:
        """True for a freeze that had ended when it was read, by S3's clock."""
        return False

    @property
    def owner(self) -> str:
        """The owner of the holder's credentials when the lock was acquired; empty if nobody was named."""
        return self.version.metadata.get("owner", "")

    @property
    def holder(self) -> str:
        """Who holds the lock, for people: the principal and its owner, and nothing that the client typed."""
        return called(self.principal, self.owner) if self.principal else ANOTHER_PROGRAM

    @property
    def described(self) -> str:
        """Who holds the lock, for people, and apart what their client says of itself."""
        return with_claim(self.holder, self.principal, self.info.who)

    def was_acquired_with(self, info: LockInfo, caller: Caller) -> bool:
        """Return whether a caller acquired the lock with a document."""
        return self.info == info and self.principal == caller.principal


@dataclass(frozen=True, slots=True)
class CommandLock(HeldLock):
    """The lock of a command: every lock but a freeze, whichever program acquired it."""


@dataclass(frozen=True, slots=True)
class HeldFreeze(HeldLock):
    """A freeze: a lock that nobody releases, force-unlocks or breaks.

    An unfreeze removes it. After its end, the next acquire does.

    Attributes:
        mark: the freeze, as the metadata says it.
    """

    mark: Freeze

    @property
    def freeze(self) -> Freeze:
        return self.mark

    @property
    def is_ended_freeze(self) -> bool:
        return self.mark.until is not None and self.mark.until <= self.read_at


@dataclass(frozen=True, slots=True)
class Removal:
    """A removal of a lock object by its version ID; `is_done` is False if S3 protects the version."""

    version_id: str
    is_done: Future[bool]


def read(store: Store, name: StateName) -> HeldLock | None:
    """Read the lock of a state; None if the state is not locked."""
    stored = store.read(name.lock_key)
    if stored is None:
        return None
    version = stored.version
    path = f"{store.bucket}/{name.lock_key}"
    info = lock_info.read_stored(stored.body, path=path, created=version.last_modified)
    identity = LockIdentity(version.version_id, info, version.metadata.get("locked-by"))
    return of_object(identity, version, stored.read_at)


def of_object(identity: LockIdentity, version: ObjectVersion, read_at: datetime) -> HeldLock:
    """Return a lock as what it is. The metadata decides, because a client can send any operation."""
    metadata = version.metadata
    if "freeze" not in metadata:
        return CommandLock(identity, version, read_at)
    until = None
    # With an invalid time the freeze does not end until somebody unfreezes the state.
    with suppress(ValueError):
        until = datetime.strptime(metadata.get("freeze-until", ""), _UNTIL).replace(tzinfo=UTC)
    mark = Freeze(metadata["freeze"], lock_info.reason_of_freeze(identity.info), until)
    return HeldFreeze(identity, version, read_at, mark)


def identity(lock: HeldLock | None) -> LockIdentity | None:
    return lock.identity if lock else None


def refusal(lock: HeldLock) -> Locked:
    """Return the error for a caller whom a lock keeps out."""
    # The stored document never has the owner: it is what releases the lock, even after the owner changed.
    holder = lock.info.for_refused(lock.principal, lock.owner)
    freeze = lock.freeze
    if freeze is None:
        message = f"The state is locked by {lock.described}, lock ID {holder['ID']}."
        return Locked(holder, message, held_by=lock.principal)
    # The stored document has the zero time, so that a retry stores the same; clients would show the year 1.
    holder["Created"] = timestamp.write(lock.version.last_modified)
    if lock.is_ended_freeze:
        then = "The freeze has ended, and the next command that acquires the lock removes the freeze."
    else:
        ends = f" The freeze ends at {timestamp.write(freeze.until)}." if freeze.until else ""
        lift = "A maintainer can lift the freeze with 'holdfast state unfreeze'; a force-unlock cannot."
        then = f"{ends} {lift}".lstrip()
    verb = "was" if lock.is_ended_freeze else "is"
    message = f"The state {verb} frozen by {lock.holder}: {freeze.reason}. {then}"
    return Frozen(holder, message, held_by=lock.principal)


def read_and_remove(store: Store, name: StateName, version_id: str) -> tuple[HeldLock | None, Removal]:
    """Read the lock of a state, and at the same time remove a lock object by its unique version ID.

    Use it only for the version of a lock that the caller acquired. Whether the read or the removal took
    effect first is unknown. If that lock was read, pass the removal to `remove`. Otherwise that lock is no
    longer held, and a lock that was read may have been acquired since.
    """
    with ThreadPoolExecutor(1) as beside:
        removal = Removal(version_id, beside.submit(_remove_version, store, name, version_id))
        return read(store, name), removal


def remove(store: Store, name: StateName, lock: CommandLock, removal: Removal | None = None) -> bool:
    """Remove exactly the lock object that was read. Return whether a delete marker was created.

    Args:
        removal: the removal from `read_and_remove`, which may have removed this lock object.
    """
    if removal is None or removal.version_id != lock.identity.version_id:
        return _remove(store, name, lock)
    is_gone = removal.is_done.result()
    return not is_gone and _delete_by_etag(store, name, lock)


def lift(store: Store, name: StateName, freeze: HeldFreeze) -> None:
    """Remove exactly the freeze that was read."""
    _remove(store, name, freeze)


def remove_acquired(store: Store, name: StateName, acquired: LockIdentity) -> None:
    """Remove exactly the lock object that the caller acquired, not a later one with the same document."""
    # No read is needed: no other lock object ever has this version ID.
    if _remove_version(store, name, acquired.version_id):
        return
    # S3 protects the version, or the bucket has no versions: only the ETag of a new read identifies the lock.
    lock = read(store, name)
    if lock is not None and lock.identity == acquired:
        _delete_by_etag(store, name, lock)


def _remove(store: Store, name: StateName, lock: HeldLock) -> bool:
    return not _remove_version(store, name, lock.identity.version_id) and _delete_by_etag(store, name, lock)


def _remove_version(store: Store, name: StateName, version_id: str) -> bool:
    """Remove a lock object by its version. Return False if S3 protects it, or the bucket has no versions."""
    return is_unique(version_id) and isinstance(store.remove_version(name.lock_key, version_id), Deleted)


def _delete_by_etag(store: Store, name: StateName, lock: HeldLock) -> bool:
    """Create a delete marker over the lock object that was read. Return False if it is no longer current."""
    return isinstance(store.delete(name.lock_key, IfMatch(lock.version.etag)), Deleted)
