"""Undelete a state: write its newest version again, under a lock of its own.

It only ever creates, so it is not the write of `write`, which may replace what is older.
"""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.access import Action, Caller
from holdfast.errors import (
    BaseChanged,
    InvalidState,
    LockLeft,
    NoVersions,
    OutcomeUnknown,
    RacedWriter,
    UndeleteOutcomeUnknown,
    UnreadableVersion,
)
from holdfast.names import StateName
from holdfast.s3.retention import Retention
from holdfast.s3.store import HistoryEntry, IfAbsent, Store, Stored
from holdfast.state import document, lock_info, locks
from holdfast.state.current_state import read_current, version_metadata
from holdfast.state.document import Revision
from holdfast.state.lock_info import LockInfo
from holdfast.state.locks import LockIdentity, identity
from holdfast.state.operator import check_version_id

_RELEASE_SECONDS: Final = 3.0
"""The least time that an undelete has to release its lock, however long the rest took."""


@dataclass(frozen=True, slots=True)
class Undeleted:
    """The state is current again: a noncurrent version was written again.

    Attributes:
        revision: what is current now.
        from_version: the version that was written again.
        from_time: when S3 stored that one.
        version_id: the version that is current now.
    """

    revision: Revision
    from_version: str
    from_time: datetime
    version_id: str


def undelete(
    store: Store, name: StateName, marker: str, caller: Caller, retention: Retention | None
) -> Undeleted:
    """Restore the newest version of a deleted state by writing it again, under a lock of its own.

    It undoes the one deletion that it names, and it only ever creates: where a state is current, whoever made
    it and whenever, it stays. A retry finds what this very undelete made.

    An error has a note where this lock may be left.

    Args:
        store: the bucket.
        name: of the state.
        marker: the version ID of the delete marker that is undone. A retry that finds that somebody has
            deleted the state since is refused.
        caller: a maintainer.
        retention: how long S3 keeps the new version from being deleted; None leaves that to the bucket. It is
            never asked for a probe, which is removed.

    Raises:
        NotAllowed: the caller may not undelete this state.
        InvalidRequest: the ID of the marker breaks a rule.
        BaseChanged: another delete marker, or a version, is newest.
        NoVersions: there is no version of this state.
        UnreadableVersion: the newest version is not a state document.
        Locked: somebody holds the lock.
        RacedWriter: somebody made and deleted a state at the same time; nothing was restored.
        UndeleteOutcomeUnknown: the lock was released or broken meanwhile.
        LockLeft: the state is restored, and the lock of the undelete may be left.
        OutcomeUnknown: S3 did not decide in time; a retry is safe.
    """
    caller.require(Action.UNDELETE, name)
    check_version_id(marker)
    # The same for every try of this caller to undo this deletion: a retry meets its own lock.
    info = lock_info.of_verb(
        f"{store.bucket}/{name.state_key}?versionId={marker}",
        caller,
        operation="undelete",
        info="holdfast state undelete",
    )
    # Before the lock, so that a request which undoes nothing locks nobody out.
    try:
        _newest(store, name, marker)
    except BaseChanged:
        if _made_before(store, name, marker, info) is None:
            raise
    may_be_left = (
        f"The lock {info.id} of this undelete may be left: run the command again, which takes it up, or, if "
        "it still is held, remove it with 'holdfast lock break'."
    )
    try:
        acquired = locks.acquire_own(store, name, info, caller)
    except OutcomeUnknown as error:
        error.add_note(may_be_left)
        raise
    try:
        undeleted = _write_again(store, name, marker, acquired, caller, retention)
    except BaseException as error:  # an interrupt, too
        if not _was_released(store, name, acquired):
            error.add_note(may_be_left)
        raise
    if not _was_released(store, name, acquired):
        raise LockLeft(
            f"The state '{name}' is restored as version {undeleted.version_id}, but the lock {info.id} of "
            "this undelete may be left: if it still is held, run 'holdfast lock break'."
        )
    return undeleted


def _beneath(store: Store, name: StateName) -> tuple[HistoryEntry, HistoryEntry] | None:
    """Return the delete marker beneath the current version and the version beneath that; None if there is
    another version in between."""
    marker = newest = None
    for entry in store.versions(name.state_key):
        if entry.is_current:
            continue
        # Of the same second, S3 does not tell the order of a version and a marker.
        if newest and entry.last_modified < newest.last_modified:
            return None
        if entry.is_delete_marker:
            marker = marker or entry
        else:
            newest = newest or entry
        if marker and newest:
            return marker, newest
    return None


def _was_released(store: Store, name: StateName, acquired: LockIdentity) -> bool:
    """Release an undelete's lock, whatever time is left: nobody else would."""
    store.prolong(_RELEASE_SECONDS)
    with suppress(Exception):
        locks.release_own(store, name, acquired)
        return True
    return False


def _newest(store: Store, name: StateName, marker: str) -> HistoryEntry:
    """Return the newest version of a state that is deleted by this very delete marker.

    Raises:
        BaseChanged: another marker, or a version, is newest.
        NoVersions: there is no version.
    """
    history = store.versions(name.state_key)
    current = next(history, None)
    if current is not None and not current.is_delete_marker:
        raise _is_current(name, current.id)
    newest = next((entry for entry in history if not entry.is_delete_marker), None)
    if current is None or newest is None:
        raise NoVersions(
            f"There is no version of the state '{name}' that could come back. Check the name and the team."
        )
    if current.id != marker:
        raise BaseChanged(
            f"The state '{name}' was deleted another time: its newest delete marker is {current.id}, not "
            f"{marker[:60]}. Nothing was restored; look at its history, then run the command again."
        )
    return newest


def _is_current(name: StateName, version_id: str) -> BaseChanged:
    return BaseChanged(
        f"The state '{name}' is not deleted: its version {version_id} is current, and stays. To go back to "
        "an earlier version, use 'holdfast state restore'."
    )


def _write_again(
    store: Store,
    name: StateName,
    marker: str,
    acquired: LockIdentity,
    caller: Caller,
    retention: Retention | None,
) -> Undeleted:
    """Create the state from its newest version, under the lock that was acquired."""
    # Only what is found under the lock stays the newest.
    try:
        newest = _newest(store, name, marker)
    except BaseChanged:
        made = _made_before(store, name, marker, acquired.info)
        if identity(locks.read(store, name)) != acquired:
            raise _outcome_unknown(name) from None
        if made is None:
            raise
        return made
    old = store.read(name.state_key, newest.id)
    if old is None:
        raise NoVersions(
            f"The version {newest.id} of the state '{name}' was removed just now. Run the command again."
        )
    try:
        new = document.parse(old.body)
    except InvalidState:
        raise UnreadableVersion(
            f"The newest version of the state '{name}', {newest.id}, is not a state document, so it "
            "is not restored. Fetch an earlier one with 'holdfast state get --version' and push it "
            "with 'terraform state push'."
        ) from None
    sha256 = hashlib.sha256(old.body).hexdigest()
    # As in `write`: the lock is read before the PutObject, and after it.
    lock = locks.read(store, name)
    if identity(lock) != acquired:
        raise _outcome_unknown(name)
    stored = store.write(
        name.state_key,
        old.body,
        IfAbsent(),
        metadata=version_metadata(new, sha256, None, lock, caller),
        retention=None if name.is_probe else retention,
    )
    if isinstance(stored, Stored):
        version_id = stored.version_id
    else:
        # Our own first attempt, whose response was lost, or somebody's new state.
        current = read_current(store, name)
        if current is None:
            raise RacedWriter(
                f"Somebody made and deleted the state '{name}' while it was being restored. Look at its "
                "versions, then run the command again."
            )
        if current.sha256 != sha256:
            raise _is_current(name, current.version.version_id)
        version_id = current.version.version_id
    if identity(locks.read(store, name)) != acquired:
        raise _outcome_unknown(name)
    return Undeleted(new.revision, newest.id, newest.last_modified, version_id)


def _made_before(store: Store, name: StateName, marker: str, info: LockInfo) -> Undeleted | None:
    """Return what an earlier try made under a lock with this document, if it still is current."""
    beneath = _beneath(store, name)
    current = read_current(store, name) if beneath and beneath[0].id == marker else None
    if not beneath or not current or not current.revision or current.lock_id != info.id:
        return None
    from_version = beneath[1]
    return Undeleted(
        current.revision, from_version.id, from_version.last_modified, current.version.version_id
    )


def _outcome_unknown(name: StateName) -> UndeleteOutcomeUnknown:
    return UndeleteOutcomeUnknown(
        f"The lock of this undelete of '{name}' is gone: somebody broke it, or another try of this very "
        "request has ended and released it. Look whether the state is there before you run the command again."
    )
