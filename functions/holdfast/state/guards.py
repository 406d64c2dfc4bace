"""Decide whether a write may proceed, given the lock and the current state that were read.

These functions send no requests. `write` reads lock and state, calls these functions, and writes.
"""

from dataclasses import dataclass
from typing import Final

from holdfast.errors import (
    BaseChanged,
    LineageChanged,
    LockLost,
    LockRequired,
    SerialNotNewer,
    UnreadableState,
)
from holdfast.state.current_state import CurrentState, Superseded
from holdfast.state.document import Revision, StateDocument
from holdfast.state.held import CommandLock, HeldLock, LockIdentity, identity, refusal
from holdfast.work import Work


@dataclass(frozen=True, slots=True)
class Upload:
    """The lock and the version that the creation of an upload found. The upload's commit compares both.

    Attributes:
        key: 128 random bits, hexadecimal; stored in the metadata of the written version.
        lock_id: the ID of the lock under which the upload was created.
        lock_version: the version ID of that lock object.
        base: version ID and ETag of the version that was current; None if the state did not exist.
    """

    key: str
    lock_id: str
    lock_version: str
    base: tuple[str, str] | None
    force: bool


AFTER_REFUSAL: Final = (
    "If your client left an errored.tfstate, keep that file, pull the current state, and compare the two. "
    "Then push or apply again."
)
"""The advice after a write that was not accepted: to repeat the command alone could lose its changes."""

COMPARED_BY_CLIENT: Final = frozenset({"state-push", "migration destination state"})
"""Lock operations in which the client itself compares serial and lineage, or the user forces the write."""


def check_lock(work: Work, lock: HeldLock | None, lock_id: str | None) -> None:
    """Raise an error unless the caller may write under the lock that was read.

    `Locked` is raised even if the client named no lock.
    """
    if lock is not None:
        # The ID alone proves nothing: every refused caller learns it. Nobody writes under a freeze.
        is_frozen = not isinstance(lock, CommandLock)
        if is_frozen or lock.info.id != lock_id or lock.principal != work.caller.principal:
            raise refusal(lock)
    elif lock_id is not None:
        raise _lock_lost(lock_id)
    elif work.policy.require_lock:  # the function of `cloud {}` never comes here: each upload names its lock
        raise LockRequired(
            "This team does not accept writes without a lock. Run the command without '-lock=false', and "
            "set lock_address and unlock_address in the backend block."
        )


def check_same_lock(first: LockIdentity | None, lock: HeldLock | None, lock_id: str | None) -> None:
    """Raise `LockLost` unless the lock is still the lock object `first`, or the state is still unlocked.

    Another lock object with the same document is another lock.
    """
    if identity(lock) != first:
        raise _lock_lost(lock_id)


def check_upload_lock(lock: HeldLock | None, upload: Upload) -> None:
    """Raise `LockLost` unless an upload was created under the current lock object.

    The ID alone is not enough: if the lock was broken, a late retry can acquire a lock with the same ID.
    """
    if lock is None or lock.identity.version_id != upload.lock_version:
        raise _lock_lost(upload.lock_id)


def check_base(current: CurrentState | None, lock: HeldLock | None, upload: Upload) -> None:
    """Raise `BaseChanged` if an upload may not replace the current version.

    An upload may replace a version that was never acknowledged.
    """
    version = (current.version.version_id, current.version.etag) if current else None
    if version == upload.base or (current is not None and was_never_acknowledged(current, lock)):
        return
    # An earlier commit of the same holder, whose response was lost, can take effect after this upload was
    # created. Serials decide which of the two is newer, unless the write is forced.
    if current is not None and not upload.force and was_written_under(current, lock):
        return
    raise BaseChanged(
        "The state has changed since this write began, and the write is based on an earlier version. "
        f"Nothing was written. {AFTER_REFUSAL}"
    )


def counts_as_written(current: CurrentState, lock: HeldLock | None) -> bool:
    """Return whether a write succeeds because the current version already has its bytes.

    It does if that version was written under a lock with the same ID: the write is a retry. Otherwise a
    late PutObject of an earlier holder, whose lock was broken, may still replace that version. Writing a new
    version makes the late PutObject fail, unless equal bytes have equal ETags.
    """
    return current.lock_id == (lock.info.id if lock else "") or not current.version.has_own_etag


def was_written_under(current: CurrentState, lock: HeldLock | None) -> bool:
    """Return whether the current version was written under this lock object.

    The ID alone is not enough: after a lock was broken, a late retry can acquire a lock with the same
    document. That lock is younger than the versions that were written under the broken lock.
    """
    return (
        lock is not None
        and current.fenced
        and current.lock_id == lock.info.id
        and current.version.last_modified >= lock.version.last_modified
    )


def check_succession(
    new: Revision, current: CurrentState | None, lock: HeldLock | None, *, force: bool = False
) -> None:
    """Raise an error unless a revision may follow the current state: same lineage, higher serial.

    The revision is compared with the last acknowledged revision.
    """
    if current is None or current.version.size == 0:
        return
    if force or (lock is not None and lock.info.operation in COMPARED_BY_CLIENT):
        return
    if current.revision is None and not was_never_acknowledged(current, lock):
        raise UnreadableState(
            "The current object is not a state document, so this write cannot be compared with it. First, a "
            "maintainer must restore an earlier version of the state, or delete the state."
        )
    base = last_acknowledged_revision(current, lock)
    if base is None:
        return
    if not new.same_lineage(base):
        raise LineageChanged(
            f"This write has the lineage {new.lineage!r}, but the current state has the lineage "
            f"{base.lineage!r}, so they are different states. Check that the configuration names the right "
            "state. To replace the state on purpose, use 'terraform state push -force'. With cloud {}, which "
            "does not send -force, first write the current lineage and a serial above the current one into "
            "the file."
        )
    if new.serial <= base.serial:
        raise SerialNotNewer(
            f"This write has the serial {new.serial}, but the current state has the serial {base.serial}, so "
            "the write is based on an older state. Pull the current state and apply again. To go back on "
            "purpose, use 'terraform state push -force'. With cloud {}, which does not send -force, write a "
            f"serial above {base.serial} into the file first."
        )


def check_not_blank(
    new: StateDocument, current: CurrentState | None, lock: HeldLock | None, *, force: bool = False
) -> None:
    """Raise `LineageChanged` if a blank document would replace a state that has a lineage.

    Clients compare only two lineages, so they push a blank document without -force. The state is the last
    acknowledged one.
    """
    if force or not new.is_blank:
        return
    base = last_acknowledged_revision(current, lock)
    if base is not None and base.lineage:
        raise LineageChanged(
            "This write has no lineage, no resources and no outputs, so it would empty the current state, "
            f"which has the lineage {base.lineage!r}. Check the pushed file. For example, "
            ".terraform/terraform.tfstate is not a state. To empty the state on purpose, first let a "
            "maintainer delete the state with 'holdfast state delete'."
        )


def was_never_acknowledged(current: CurrentState, lock: HeldLock | None) -> bool:
    """Return whether somebody else wrote the current version while this lock was held.

    That writer then read this lock and was refused. S3's times are in whole seconds: if lock and version have
    the same time, the version counts as acknowledged.
    """
    return (
        lock is not None
        and current.fenced
        and current.lock_id != lock.info.id
        and current.version.last_modified > lock.version.last_modified
    )


def last_acknowledged_revision(current: CurrentState | None, lock: HeldLock | None) -> Revision | None:
    """Return the last acknowledged revision.

    The next version stores it, so that an unacknowledged write in between cannot lower it.
    """
    if current is None:
        return None
    return current.superseded if was_never_acknowledged(current, lock) else current.revision


def last_acknowledged(current: CurrentState | None, lock: HeldLock | None) -> Superseded | None:
    """Return the superseded revision to store in the metadata of the next version."""
    revision = last_acknowledged_revision(current, lock)
    if current is None or revision is None:
        return None
    return Superseded(revision, over_refused=was_never_acknowledged(current, lock))


def _lock_lost(lock_id: str | None) -> LockLost:
    if lock_id is None:
        return LockLost(
            "Another client locked the state while this unlocked write was in progress, so this write was "
            f"not accepted. Wait until that lock is released. {AFTER_REFUSAL}"
        )
    return LockLost(
        f"The lock {lock_id} is no longer held: it was released or removed by force. This write was not "
        f"accepted. {AFTER_REFUSAL}"
    )
