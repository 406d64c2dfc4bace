"""Undelete a state: write its newest version again, under a lock that the undelete acquires and releases.

Unlike `write`, it only creates the state and never replaces a version.
"""

from dataclasses import dataclass
from datetime import datetime

from holdfast.access import Action
from holdfast.errors import (
    BaseChanged,
    InvalidState,
    LockLeft,
    NoVersions,
    RacedWriter,
    UndeleteOutcomeUnknown,
    UnreadableVersion,
)
from holdfast.names import StateName
from holdfast.s3.objects import HistoryEntry, ObjectVersion
from holdfast.s3.store import Store
from holdfast.state import document, fence, lock_info
from holdfast.state.current_state import read_current
from holdfast.state.document import Revision
from holdfast.state.fence import NewVersion
from holdfast.state.held import HeldLock, LockIdentity, identity
from holdfast.state.lock_info import LockInfo
from holdfast.state.operator import check_version_id
from holdfast.work import Work


@dataclass(frozen=True, slots=True)
class Undeleted:
    """The current version after an undelete.

    Attributes:
        from_version: the version that was written again.
        from_time: when S3 stored that version.
    """

    revision: Revision
    from_version: str
    from_time: datetime
    version_id: str


def undelete(work: Work, marker: str) -> Undeleted:
    """Write the newest version of a deleted state again, under a lock that the undelete acquires.

    It undoes one deletion. It only creates, so it never replaces a current state, whichever program wrote
    that state. A retry returns the version that this undelete has already written.

    If the lock of the undelete may be left, a note of the error says so.

    Args:
        marker: the version ID of the delete marker to undo. If the state has been deleted again since, a
            retry is refused.

    Raises:
        BaseChanged: the newest entry is another delete marker, or a version.
        RacedWriter: somebody created and deleted the state meanwhile; nothing was restored.
        UndeleteOutcomeUnknown: the lock was released or broken meanwhile.
        LockLeft: the state is restored, but the lock of the undelete may be left.
    """
    work.require(Action.UNDELETE)
    check_version_id(marker)
    # The same in every attempt of this caller to undo this deletion, so that a retry recognizes its lock.
    info = lock_info.of_verb(
        f"{work.address}?versionId={marker}",
        work.caller,
        operation=lock_info.Verb.UNDELETE,
        info="holdfast state undelete",
    )
    # Checked before the lock, so that a refused request locks nobody out.
    try:
        _newest(work, marker)
    except BaseChanged:
        if _made_before(work, marker, info) is None:
            raise
    undeleted: Undeleted | None = None
    try:
        with fence.own_lock(work, info) as acquired:
            undeleted = _write_again(work, marker, acquired)
    except Exception as error:
        if undeleted is None:
            raise
        raise LockLeft(
            f"The state '{work.name}' is back, as version {undeleted.version_id}, but the lock {info.id} of "
            f"this undelete may still be held. If 'holdfast lock show {work.name}' shows that lock, remove "
            f"it with 'holdfast lock break {work.name}'."
        ) from error
    return undeleted


def _beneath(store: Store, name: StateName) -> tuple[HistoryEntry, HistoryEntry] | None:
    """Return the delete marker below the current version, and the version below the marker.

    Return None if another version is in between.
    """
    marker = newest = None
    for entry in store.versions(name.state_key):
        if entry.is_current:
            continue
        # The order of a version and a marker of the same second is unknown.
        if newest and entry.last_modified < newest.last_modified:
            return None
        if entry.is_delete_marker:
            marker = marker or entry
        else:
            newest = newest or entry
        if marker and newest:
            return marker, newest
    return None


def _newest(work: Work, marker: str) -> HistoryEntry:
    """Return the newest version of a state; raise `BaseChanged` if its newest entry is not `marker`."""
    name = work.name
    history = work.store.versions(name.state_key)
    current = next(history, None)
    if current is not None and not current.is_delete_marker:
        raise _is_current(name, current.id)
    newest = next((entry for entry in history if not entry.is_delete_marker), None)
    if current is None or newest is None:
        raise NoVersions(
            f"The state '{name}' has no version that could be restored. Check the name and the team."
        )
    if current.id != marker:
        raise BaseChanged(
            f"The state '{name}' was deleted again after you read it: the newest delete marker is "
            f"{current.id}, not {marker[:60]}. Nothing was restored; look at the history of the state, then "
            "run the command again."
        )
    return newest


def _is_current(name: StateName, version_id: str) -> BaseChanged:
    return BaseChanged(
        f"The state '{name}' is not deleted: its version {version_id} is current. Nothing was changed. To "
        "go back to an earlier version, use 'holdfast state restore'."
    )


def _write_again(work: Work, marker: str, acquired: LockIdentity) -> Undeleted:
    """Write the newest version again, under the acquired lock."""

    def require_own(lock: HeldLock | None) -> None:
        if identity(lock) != acquired:
            raise UndeleteOutcomeUnknown(
                f"The undelete of '{work.name}' lost its lock before it ended: an operator broke the lock, "
                "or another attempt of the same request released it. Check whether the state exists before "
                "you run the command again."
            )

    # Read again, because only under the lock no other client can write a newer version.
    try:
        (newest, new), lock = fence.look(work, lambda _: _readable(work, marker))
    except BaseChanged:
        made, lock = fence.look(work, lambda _: _made_before(work, marker, acquired.info))
        require_own(lock)
        if made is None:
            raise
        # Its PutObject may have taken effect after a freeze of a pattern listed what there is.
        fence.require_not_frozen(work)
        return made
    require_own(lock)
    fence.require_not_frozen(work, require_own)
    version = fence.put_fenced(work, new, (None, lock), require_own)
    if version is None:
        first_try, lock = fence.look(work, lambda _: _of_first_try(work, new.sha256))
        require_own(lock)
        version = first_try
    return Undeleted(new.document.revision, newest.id, newest.last_modified, version.version_id)


def _readable(work: Work, marker: str) -> tuple[HistoryEntry, NewVersion]:
    """Read the newest version of a state whose newest entry is a delete marker, to write it again."""
    name = work.name
    newest = _newest(work, marker)
    old = work.store.read(name.state_key, newest.id)
    if old is None:
        raise NoVersions(
            f"The version {newest.id} of the state '{name}' was removed just now. Run the command again."
        )
    try:
        return newest, NewVersion(document.parse(old.body), old.body)
    except InvalidState as error:
        raise UnreadableVersion(
            f"Holdfast cannot read the newest version of the state '{name}', {newest.id}, so it cannot bring "
            f"the state back. {error.message} Save an earlier version with 'holdfast state get {name} "
            f"--version ID --output old.tfstate', where ID is from 'holdfast state history {name}'. Then "
            "push that file with 'terraform state push old.tfstate'."
        ) from None


def _of_first_try(work: Work, sha256: str) -> ObjectVersion:
    """Return the current version if our own first attempt, whose response was lost, wrote it.

    Raises:
        RacedWriter, BaseChanged: somebody else wrote it, or created and deleted the state meanwhile.
    """
    current = read_current(work)
    if current is None:
        raise RacedWriter(
            f"Another client created and deleted the state '{work.name}' during the undelete. Look at the "
            "history of the state, then run the command again."
        )
    if current.sha256 != sha256:
        raise _is_current(work.name, current.version.version_id)
    return current.version


def _made_before(work: Work, marker: str, info: LockInfo) -> Undeleted | None:
    """Return the result of an earlier attempt with this lock info; None if its version is not current."""
    beneath = _beneath(work.store, work.name)
    current = read_current(work) if beneath and beneath[0].id == marker else None
    if not beneath or not current or not current.revision or current.lock_id != info.id:
        return None
    from_version = beneath[1]
    return Undeleted(
        current.revision, from_version.id, from_version.last_modified, current.version.version_id
    )
