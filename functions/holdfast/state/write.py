"""Write a state, fenced by lock, ETag, serial and lineage.

Serials alone do not stop a refused writer twice: Terraform raises the serial before it writes, and does not
lower it when the write is refused. So the writer's next attempt has a newer serial.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from holdfast.access import Action
from holdfast.errors import Conflict, RacedWriter
from holdfast.state import document, fence, guards
from holdfast.state.current_state import CurrentState, parse_metadata, read_current
from holdfast.state.document import Revision, StateDocument
from holdfast.state.fence import NewVersion
from holdfast.state.guards import Upload
from holdfast.state.held import HeldLock, LockIdentity, identity
from holdfast.state.lock_info import LockInfo
from holdfast.work import Work

_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True)
class Written:
    """The write is acknowledged.

    Attributes:
        superseded: the revision that the write replaced; None for the first version.
        new_version: False if the current version already had the same bytes (`guards.counts_as_written`).
        upload: the key of the upload in the version's metadata; empty if the metadata has no upload.
    """

    revision: Revision
    superseded: Revision | None
    version_id: str
    lock: LockInfo | None
    new_version: bool
    upload: str = ""


def write(
    work: Work,
    body: bytes,
    lock_id: str | None,
    upload: Upload | None = None,
    parsed: StateDocument | None = None,
) -> Written:
    """Write the state, fenced.

    With a cache, the write first assumes that the cached version is current.

    Args:
        body: the state document; stored byte for byte.
        upload: the lock and version that the creation of the upload found; None for a write in one request.
        parsed: the result of `document.parse` for this body, if it was parsed before.

    Raises:
        InvalidState: the body is not a state document, or a probe's document is not empty.
        SerialNotNewer, LineageChanged, UnreadableState: the document does not follow the current state.
    """
    work.require(Action.WRITE)
    new = NewVersion(parsed or document.parse(body), body, {"upload": upload.key} if upload else {})
    revision = new.document.revision
    if work.name.is_probe:
        document.require_nothing_tracked(body)
    # Only a locked write uses the cache: an unlocked write is not fenced by a lock, so it reads first.
    remembered = _remembered(work) if lock_id and not upload else None
    if remembered and remembered.sha256 == new.sha256:
        remembered = None  # only the current version shows whether this is a retry
    force = bool(upload and upload.force)
    first: LockIdentity | None = None
    creates = False  # also once our own first attempt has created the state

    def check_same_lock(lock: HeldLock | None) -> None:
        guards.check_same_lock(first, lock, lock_id)
        if lock is None and creates:  # no lock told a freeze of a pattern to wait for this write
            fence.require_not_frozen(work)

    for attempt in range(_ATTEMPTS + bool(remembered)):
        guess = remembered if attempt == 0 else None
        current, lock = fence.look(work, partial(_current, guess=guess))
        creates = creates or current is None
        guards.check_lock(work, lock, lock_id)
        if attempt == 0:
            first = identity(lock)
        else:  # the lock can be broken, and acquired again by a late request
            check_same_lock(lock)
        if upload:
            # Checked first: the same bytes may be current, but written under another lock.
            guards.check_upload_lock(lock, upload)
        same_bytes = current is not None and current.sha256 == new.sha256
        if current and same_bytes and guards.counts_as_written(current, lock):
            # The lock is not read again: that guards a PutObject, and no PutObject is sent here. The lock was
            # our own when these bytes were read as the current version.
            if work.memory:
                work.memory.learn(work.name, current.version)
            return _already_written(current, revision, current.revision, lock)
        if upload:
            guards.check_base(current, lock, upload)
        try:
            guards.check_not_blank(new.document, current, lock, force=force)
            if not same_bytes:
                guards.check_succession(revision, current, lock, force=force)
        except Conflict:
            if guess:
                continue  # a cached version may be outdated, so it refuses no write
            raise
        if current is None:
            fence.require_creatable(work, check_same_lock)
        version = fence.put_fenced(work, new, (current, lock), check_same_lock)
        if version:
            if work.memory:
                work.memory.learn(work.name, version)
            superseded = current.revision if current else None
            info = lock.info if lock else None
            key = upload.key if upload else ""
            return Written(revision, superseded, version.version_id, info, new_version=True, upload=key)
    raise RacedWriter(
        "Another client kept writing this state while this write was in progress, so this write was not "
        f"accepted. {guards.AFTER_REFUSAL} If you work without locks, make sure that no other client works "
        "on this state."
    )


def committed(work: Work, upload: Upload) -> Written | None:
    """Return the result of an upload's commit if its version is current, else None. Require its lock.

    It is for a commit that is retried after the staged objects were deleted.
    """
    work.require(Action.WRITE)
    current, lock = fence.look(work, read_current)
    guards.check_lock(work, lock, upload.lock_id)
    guards.check_upload_lock(lock, upload)
    if current is None or current.revision is None or current.upload != upload.key:
        return None
    return _already_written(current, current.revision, current.superseded, lock)


def _remembered(work: Work) -> CurrentState | None:
    """Take the cached version; None if nothing is cached, or another program wrote the version."""
    version = work.memory.take(work.name) if work.memory else None
    return parse_metadata(version) if version else None


def _current(work: Work, guess: CurrentState | None) -> CurrentState | None:
    return guess or read_current(work)


def _already_written(
    current: CurrentState, revision: Revision, superseded: Revision | None, lock: HeldLock | None
) -> Written:
    info = lock.info if lock else None
    version_id = current.version.version_id
    return Written(revision, superseded, version_id, info, new_version=False, upload=current.upload)
