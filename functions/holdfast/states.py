"""States: read, write, delete and undelete, fenced by lock, ETag, serial and lineage.

Why a write reads the lock twice: between the first reading and the PutObject the lock can be broken and
taken by somebody else. A write is acknowledged only if the very same lock is still there afterwards, so
every acknowledged write happened while its lock was held, and the next holder has read it. Serials alone
stop nobody twice: Terraform raises the serial before it writes and does not take it back when the write
is refused, so a refused writer comes back with the next one.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from holdfast import locks, state_file
from holdfast.access import Action, Caller
from holdfast.errors import (
    DeleteUndecided,
    InvalidState,
    LineageChanged,
    Locked,
    LockLeft,
    LockLost,
    LockRequired,
    NotDeleted,
    NoVersions,
    RacedWriter,
    SerialNotNewer,
    Undecided,
    UndeleteUndecided,
    UnreadableState,
    UnreadableVersion,
)
from holdfast.lock_info import LockInfo
from holdfast.locks import Acquired, HeldLock
from holdfast.names import StateName
from holdfast.retention import Retention
from holdfast.state_file import Position, StateFile
from holdfast.store import Changed, Head, IfAbsent, IfMatch, Store, Stored, Version

COMPARED_BY_CLIENT: Final = frozenset({"state-push", "migration destination state"})
"""Operations whose client has compared serial and lineage itself, or was forced by its user."""

_ATTEMPTS: Final = 4

_DELETE: Final = "delete"
"""The operation of a delete's own lock."""

_RELEASE_SECONDS: Final = 10.0
"""What an undelete has at least to give its lock back, however long the rest took."""


@dataclass(frozen=True, slots=True)
class Current:
    """The current state, as far as a write is compared with it.

    Attributes:
        head: the object.
        sha256: of its bytes, hexadecimal.
        position: its serial and lineage; None if it is no state document.
        over: the position of the state that it replaced, if its writer noted it.
        lock_id: the lock under which it was written; empty for an unlocked write.
        fenced: whether Holdfast wrote it.
    """

    head: Head
    sha256: str
    position: Position | None
    over: Position | None
    lock_id: str
    fenced: bool


@dataclass(frozen=True, slots=True)
class Written:
    """The write is acknowledged.

    Attributes:
        position: what was written.
        replaced: what it replaced, None for the first state.
        version_id: the version that holds it.
        lock_id: the lock that was held, None for an unlocked write.
        new_version: False if the current state had the same bytes already.
    """

    position: Position
    replaced: Position | None
    version_id: str
    lock_id: str | None
    new_version: bool


@dataclass(frozen=True, slots=True)
class Removed:
    """The state is deleted; its versions stay. `version_id` is the one that was current, None if none was."""

    version_id: str | None


@dataclass(frozen=True, slots=True)
class Undeleted:
    """The state is back: a version that was not current any more was written anew.

    Attributes:
        position: what is current now.
        from_version: the version that was written anew.
        from_time: when S3 took that one.
        version_id: the version that holds it now.
    """

    position: Position
    from_version: str
    from_time: datetime
    version_id: str


def read(store: Store, name: StateName, caller: Caller) -> bytes | None:
    """Read the current state, byte for byte; reduced to its outputs for a caller who may see no more.

    Returns:
        The document, or None if there is no state yet.

    Raises:
        NotAllowed: the caller may not read this state.
        Undecided: S3 did not answer in time.
    """
    whole = caller.may(Action.READ, name)
    if not whole:
        caller.require(Action.READ_OUTPUTS, name)
    found = store.read(name.state_key)
    if found is None or not found.body:
        return None
    if whole:
        return found.body
    try:
        return state_file.outputs_only(found.body)
    except InvalidState as error:
        raise UnreadableState(
            f"The current state cannot be reduced to its outputs. {error.message}"
        ) from None


def write(
    store: Store,
    name: StateName,
    body: bytes,
    lock_id: str | None,
    caller: Caller,
    *,
    require_lock: bool,
    retention: Retention | None = None,
) -> Written:
    """Write the state, fenced.

    Args:
        body: the state document; stored byte for byte.
        lock_id: the ID of the lock that the client holds, if it says so.
        require_lock: whether a write without a lock is refused.
        retention: how long S3 keeps the new version from being deleted; None leaves that to the bucket.

    Raises:
        NotAllowed: the caller may not write this state.
        InvalidState: the body is no state document.
        Locked: somebody else holds the lock.
        LockRequired: no lock is held and the team requires one.
        LockLost: the lock that was held is gone; the write does not count.
        SerialNotNewer, LineageChanged, UnreadableState: it does not follow on the current state.
        RacedWriter: somebody else kept writing.
        Undecided: S3 did not decide in time; repeating is safe.
    """
    caller.require(Action.WRITE, name)
    new = state_file.parse(body)
    sha256 = hashlib.sha256(body).hexdigest()
    first_lock: HeldLock | None = None
    for attempt in range(_ATTEMPTS):
        # The state before the lock: a lock that is ours afterwards was ours when the state was read, and
        # nobody else's write since it was taken has been acknowledged. The other way round the state could
        # be the next holder's already.
        current = _read_current(store, name)
        lock = locks.read(store, name)
        check_lock(lock, lock_id, caller, require_lock=require_lock)
        if attempt == 0:
            first_lock = lock
        elif not _is_same_lock(first_lock, lock):  # broken and taken again, by a late repeat of the acquire
            raise _lock_lost(lock_id)
        replaced = current.position if current else None
        if current and current.sha256 == sha256:
            return Written(new.position, replaced, current.head.version_id, lock_id, new_version=False)
        check_succession(new.position, current, lock)
        stored = store.write(
            name.state_key,
            body,
            IfMatch(current.head.etag) if current else IfAbsent(),
            metadata=_metadata(new, sha256, counted_position(current, lock), lock, caller),
            retention=retention,
        )
        if isinstance(stored, Stored):
            # The second reading: only the very same lock, or still none, acknowledges the write.
            if not _is_same_lock(first_lock, locks.read(store, name)):
                raise _lock_lost(lock_id)
            return Written(new.position, replaced, stored.version_id, lock_id, new_version=True)
    raise RacedWriter(
        "Somebody else kept writing this state while this write was under way. Run the command again; "
        "without locking, make sure that nobody else works on this state."
    )


def delete(store: Store, name: StateName, caller: Caller) -> Removed:
    """Delete the state under a lock of its own. The versions stay; deleting nothing is success.

    Raises:
        NotAllowed: the caller may not delete this state.
        Locked: somebody holds the lock.
        RacedWriter: somebody wrote at the same time; nothing was deleted.
        DeleteUndecided: the lock was broken meanwhile.
        Undecided: S3 did not decide in time; repeating is safe.
    """
    caller.require(Action.DELETE, name)
    # The state before the lock, as in `write`: what is written in between is not deleted.
    current = store.read(name.state_key)
    if current is None:
        _give_back_left_lock(store, name, caller)
        return Removed(None)
    head = current.head
    lock = _own_lock(store, name, head.version_id, caller, operation=_DELETE, info="DELETE of the state")
    acquired = locks.take(store, name, lock, caller)
    try:
        deleted = store.delete(name.state_key, IfMatch(head.etag))
        held = locks.read(store, name)
    finally:
        locks.give_back(store, name, acquired)
    if isinstance(deleted, Changed):
        raise RacedWriter(
            "Somebody wrote this state while it was being deleted. Nothing was deleted; look at the state, "
            "then run the command again."
        )
    if not acquired.is_still(held):
        raise DeleteUndecided(
            "The lock of this delete was broken while it was under way. Look whether the state is there; "
            "its versions are."
        )
    return Removed(head.version_id)


def _give_back_left_lock(store: Store, name: StateName, caller: Caller) -> None:
    """Give back the lock of an earlier delete of this caller's that had no time left for it."""
    left = locks.read(store, name)
    if left is None or (left.principal, left.info.operation) != (caller.principal, _DELETE):
        return
    # The state once more, after the lock: a delete that is still to come has found a state before it locked.
    if store.head(name.state_key) is None:
        locks.give_back(store, name, Acquired(left.info, left.version_id))


def undelete(store: Store, name: StateName, caller: Caller, retention: Retention | None) -> Undeleted:
    """Bring the newest version of a deleted state back by writing it anew, under a lock of its own.

    It only ever creates: where a state is current, whoever made it and whenever, it stays. No role is asked
    for: whoever can do this can do it in the bucket, too.

    An error has a note where this lock may be left.

    Args:
        caller: whose lock it is.
        retention: how long S3 keeps the new version from being deleted; None leaves that to the bucket.

    Raises:
        NotDeleted: there is a current state.
        NoVersions: there is no version of this state.
        UnreadableVersion: the newest version is no state document.
        Locked: somebody holds the lock.
        RacedWriter: somebody made and deleted a state at the same time; nothing came back.
        UndeleteUndecided: the lock was broken meanwhile.
        LockLeft: the state is back, and the lock of the undelete may be left.
        Undecided: S3 did not decide in time; repeating is safe.
    """
    marker, _ = _deleted(store, name)
    lock = _own_lock(store, name, marker.id, caller, operation="undelete", info="holdfast state undelete")
    may_be_left = (
        f"The lock {lock.id} of this undelete may be left: run the command again, which takes it up, or, if "
        f"it still is held, free it with 'terraform force-unlock {lock.id}'."
    )
    try:
        acquired = locks.take(store, name, lock, caller)
    except Undecided as error:
        error.add_note(may_be_left)
        raise
    try:
        undeleted = _write_anew(store, name, acquired, caller, retention)
    except BaseException as error:  # an interrupt, too
        if not _was_given_back(store, name, acquired):
            error.add_note(may_be_left)
        raise
    if not _was_given_back(store, name, acquired):
        raise LockLeft(
            f"The state '{name}' is back as version {undeleted.version_id}, but the lock {lock.id} of this "
            f"undelete may be left: if it still is held, free it with 'terraform force-unlock {lock.id}'."
        )
    return undeleted


def _was_given_back(store: Store, name: StateName, acquired: Acquired) -> bool:
    """Release an undelete's lock, whatever time is left: nobody else would."""
    store.prolong(_RELEASE_SECONDS)
    with suppress(Exception):
        locks.give_back(store, name, acquired)
        return True
    return False


def _deleted(store: Store, name: StateName) -> tuple[Version, Version]:
    """The delete marker of a state that is deleted, and its newest version.

    Raises:
        NotDeleted, NoVersions: it is not deleted.
    """
    history = store.versions(name.state_key)
    current = next(history, None)
    if current is not None and not current.is_delete_marker:
        raise _not_deleted(name, current.id)
    newest = next((version for version in history if not version.is_delete_marker), None)
    if current is None or newest is None:
        raise NoVersions(
            f"There is no version of the state '{name}' in the bucket {store.bucket}. Check the name and the "
            "team."
        )
    return current, newest


def _not_deleted(name: StateName, version_id: str) -> NotDeleted:
    return NotDeleted(
        f"The state '{name}' is not deleted: its version {version_id} is current, and stays. To go back to "
        "an earlier version, push it with 'terraform state push'."
    )


def _write_anew(
    store: Store, name: StateName, acquired: Acquired, caller: Caller, retention: Retention | None
) -> Undeleted:
    """Create the state from its newest version, under the lock that was taken."""
    # Only what is found under the lock stays the newest.
    _, newest = _deleted(store, name)
    old = store.read(name.state_key, newest.id)
    if old is None:
        raise NoVersions(
            f"The version {newest.id} of the state '{name}' was removed just now. Run the command again."
        )
    try:
        new = state_file.parse(old.body)
    except InvalidState:
        raise UnreadableVersion(
            f"The newest version of the state '{name}', {newest.id}, is no state document, so it "
            "does not come back. Fetch an earlier one with 'aws s3api get-object --version-id' and push it "
            "with 'terraform state push'."
        ) from None
    sha256 = hashlib.sha256(old.body).hexdigest()
    lock = locks.read(store, name)
    if lock is None or not acquired.is_still(lock):
        raise _undelete_undecided(name)
    stored = store.write(
        name.state_key,
        old.body,
        IfAbsent(),
        metadata=_metadata(new, sha256, None, lock, caller),
        retention=retention,
    )
    if isinstance(stored, Stored):
        version_id = stored.version_id
    else:
        # Our own first attempt, whose answer was lost, or somebody's new state.
        current = _read_current(store, name)
        if current is None:
            raise RacedWriter(
                f"Somebody made and deleted the state '{name}' while it was being brought back. Look at its "
                "versions, then run the command again."
            )
        if current.sha256 != sha256:
            raise _not_deleted(name, current.head.version_id)
        version_id = current.head.version_id
    if not acquired.is_still(locks.read(store, name)):
        raise _undelete_undecided(name)
    return Undeleted(new.position, newest.id, newest.last_modified, version_id)


def _undelete_undecided(name: StateName) -> UndeleteUndecided:
    return UndeleteUndecided(
        f"The lock of this undelete of '{name}' was broken while it was under way. Look whether the state is "
        "there before you run the command again."
    )


def _own_lock(
    store: Store, name: StateName, version_id: str, caller: Caller, *, operation: str, info: str
) -> LockInfo:
    """The lock info of a verb that takes the lock itself.

    The same for every such request of this caller about this version, so that a repeated one knows its own
    lock.
    """
    subject = f"{store.bucket}/{name.state_key}?versionId={version_id}#{caller.principal}"
    return LockInfo(
        {
            "ID": str(uuid5(NAMESPACE_URL, subject)),
            "Operation": operation,
            "Info": info,
            "Who": caller.principal,
            "Version": "",
            "Created": "0001-01-01T00:00:00Z",
            "Path": "",
        }
    )


def check_lock(lock: HeldLock | None, lock_id: str | None, caller: Caller, *, require_lock: bool) -> None:
    """Decide whether a write may go on under the lock that was read.

    Raises:
        Locked, LockLost, LockRequired: it may not.
    """
    if lock is not None:
        if lock_id is None or not lock.is_of(lock_id, caller):
            raise Locked(lock.info.for_client())
    elif lock_id is not None:
        raise _lock_lost(lock_id)
    elif require_lock:
        raise LockRequired(
            "This team takes no write without a lock. Run the command without '-lock=false', and set "
            "lock_address and unlock_address in the backend block."
        )


def check_succession(new: Position, current: Current | None, lock: HeldLock | None) -> None:
    """Decide whether a state document may follow on the current one.

    Raises:
        SerialNotNewer, LineageChanged, UnreadableState: it may not.
    """
    if current is None or current.head.size == 0:
        return
    if lock is not None and lock.info.operation in COMPARED_BY_CLIENT:
        return
    if was_never_acknowledged(current, lock):
        before = current.over
    elif current.position is None:
        raise UnreadableState(
            "The current object is no state document, so this write cannot be compared with it. Bring an "
            "earlier version back, or delete the state first."
        )
    else:
        before = current.position
    if before is None:
        return
    if not new.same_lineage(before):
        raise LineageChanged(
            f"This write has the lineage {new.lineage!r}, the current state {before.lineage!r}: they are "
            "different states. Check the address; to replace the state on purpose use "
            "'terraform state push -force'."
        )
    if new.serial <= before.serial:
        raise SerialNotNewer(
            f"This write has the serial {new.serial}, the current state {before.serial}: it was made from an "
            "older state. Pull the current state and apply again; to go back on purpose use "
            "'terraform state push -force'."
        )


def was_never_acknowledged(current: Current, lock: HeldLock | None) -> bool:
    """Whether the current state was written by somebody else while this lock was held.

    Such a writer read the lock a second time, found this one and was refused. S3's times have whole
    seconds: within the same second the doubt goes to the writer.
    """
    return (
        lock is not None
        and current.fenced
        and current.lock_id != lock.info.id
        and current.head.last_modified > lock.object.head.last_modified
    )


def counted_position(current: Current | None, lock: HeldLock | None) -> Position | None:
    """The last position that counts, for the metadata of the version that replaces `current`."""
    if current is None:
        return None
    return current.over if was_never_acknowledged(current, lock) else current.position


def _read_current(store: Store, name: StateName) -> Current | None:
    """What a write must know of the current state; one more request if its writer noted nothing."""
    head = store.head(name.state_key)
    if head is None:
        return None
    noted = head.metadata
    position = _noted_position(noted, "serial", "lineage")
    if position is not None and "sha256" in noted:
        over = _noted_position(noted, "over-serial", "over-lineage")
        return Current(head, noted["sha256"], position, over, noted.get("lock-id", ""), fenced=True)
    found = store.read(name.state_key)
    if found is None:
        return None
    try:
        position = state_file.parse(found.body).position
    except InvalidState:
        position = None
    return Current(found.head, hashlib.sha256(found.body).hexdigest(), position, None, "", fenced=False)


def _noted_position(metadata: Mapping[str, str], serial: str, lineage: str) -> Position | None:
    value = metadata.get(serial, "")
    return Position(int(value), metadata.get(lineage, "")) if value.isdecimal() else None


def _metadata(
    new: StateFile, sha256: str, over: Position | None, lock: HeldLock | None, caller: Caller
) -> dict[str, str]:
    noted = {
        "sha256": sha256,
        "serial": str(new.position.serial),
        "lineage": new.position.lineage,
        "terraform-version": new.terraform_version,
        "lock-id": lock.info.id if lock else "",
        "who": lock.info.who if lock else "",
        "operation": lock.info.operation if lock else "",
        "written-by": caller.principal,
    }
    if over is not None:
        noted |= {"over-serial": str(over.serial), "over-lineage": over.lineage}
    return {name: value for name, value in noted.items() if value}


def _is_same_lock(before: HeldLock | None, now: HeldLock | None) -> bool:
    return now is None if before is None else before.is_still(now)


def _lock_lost(lock_id: str | None) -> LockLost:
    if lock_id is None:
        return LockLost(
            "Somebody locked the state while this unlocked write was under way, so it does not count. "
            "Wait until they are done, then pull the state and run the command again."
        )
    return LockLost(
        f"The lock {lock_id} is not held any more: it was released or force-unlocked. This write does not "
        "count. Keep errored.tfstate, pull the current state, compare, then push or apply again."
    )
