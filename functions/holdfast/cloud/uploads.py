"""Writes in several requests: create, upload, commit.

Create changes nothing. It returns an upload ID, which contains the current lock and version. The client puts
the document into the staging bucket. The commit reads it there and compares it with what was announced. If
lock and version are unchanged, the commit writes the document like every other fenced write.
"""

import hashlib
from typing import Final

from holdfast.access import Action
from holdfast.cloud import staging
from holdfast.cloud.ids import UploadId
from holdfast.errors import TooLarge, UploadAltered, UploadMissing
from holdfast.s3.objects import Larger
from holdfast.s3.store import Store
from holdfast.state import document, fence, guards, write
from holdfast.state.current_state import CurrentState, read_current
from holdfast.state.document import Revision, StateDocument
from holdfast.state.held import HeldLock
from holdfast.state.write import Written
from holdfast.work import Work

_MEGABYTE: Final = 1_000_000
_NOT_WRITTEN: Final = (
    "Nothing was written. If the client left an errored.tfstate, keep this file. docs/use/errors.md says how "
    "to recover the state from the file. Otherwise, run the command again."
)


def create(
    work: Work, lock_id: str, announced: Revision, md5: str, *, force: bool, body: bytes | None = None
) -> UploadId:
    """Check whether a document may be written, and return the ID that its commit needs. Nothing is changed.

    Args:
        lock_id: the ID of the lock that the client holds.
        announced: the document's revision; its lineage is empty if the client did not announce it.
        md5: the document's MD5.
        force: whether to skip the comparison of serial and lineage with the current state.
        body: the document, if it came with the request.

    Raises:
        Locked: somebody else holds the lock.
        LockLost: the lock is not held.
        SerialNotNewer, LineageChanged, UnreadableState: the document does not follow the current state.
    """
    work.require(Action.WRITE)
    current, lock = fence.look(work, read_current)
    guards.check_lock(work, lock, lock_id)
    if not _may_be_current(announced, body, current, lock):
        guards.check_succession(announced, current, lock, force=force)
    if current is None:
        fence.require_creatable(work)
    return UploadId(
        name=work.name,
        lock_id=lock_id,
        lock_version=lock.identity.version_id if lock else "",
        base=(current.version.version_id, current.version.etag) if current else None,
        serial=announced.serial,
        lineage=announced.lineage,
        md5=md5,
        force=force,
        key=UploadId.new_key(),
    )


def commit(work: Work, staged: Store, upload: UploadId) -> Written:
    """Write the uploaded document, fenced. Succeeds even if it is already written, so a retry is safe.

    Args:
        staged: the staging bucket.

    Raises:
        As `holdfast.state.write.write`, and:
        UploadMissing: nothing was uploaded.
        TooLarge: the document is larger than the limit.
        UploadAltered: the document differs from the announced one.
    """
    work.require(Action.WRITE)
    _check_same_state(work, upload)
    limit = work.policy.largest_state
    stored = staging.read(staged, upload, work.caller, limit)
    if stored is None:
        written = write.committed(work, upload)
        if written is None:
            raise UploadMissing(
                "No content was uploaded for this state version, or the content was removed afterwards. "
                f"{_NOT_WRITTEN}"
            )
        return written
    if isinstance(stored, Larger):
        raise too_large(stored.size, limit)
    written = write.write(work, stored.body, upload.lock_id, upload, _compare(stored.body, upload))
    # If another upload wrote these bytes, a retry needs the staged object to recognize them.
    if written.upload == upload.key:
        staging.discard(staged, upload, work.caller)
    return written


def write_at_once(work: Work, upload: UploadId, body: bytes) -> Written:
    """Write a document that came with the creation of its upload, as clients before Terraform 1.6 send it.

    Raises the errors of `commit`, except `UploadMissing`.
    """
    _check_same_state(work, upload)
    limit = work.policy.largest_state
    if len(body) > limit:
        raise too_large(len(body), limit)
    return write.write(work, body, upload.lock_id, upload, _compare(body, upload))


def _check_same_state(work: Work, upload: UploadId) -> None:
    """Raise `ValueError` for an upload of another state: the lock and the content are the upload's."""
    if upload.name != work.name:
        raise ValueError("the upload belongs to another state")


def _may_be_current(
    announced: Revision, body: bytes | None, current: CurrentState | None, lock: HeldLock | None
) -> bool:
    """Return whether the announced document may be the current document; only the write can decide this.

    A retry sends the same document again. So does a client whose first apply is interrupted: it saves the
    state, reads it back, and saves it again under the same lock. If the second save is refused, the client
    never unlocks. Without the body only the revision is compared, and only if the current version was written
    under this lock. The write then compares the bytes, and refuses another document of the same serial.
    """
    if current is None or current.revision is None or announced.serial != current.revision.serial:
        return False
    if body is not None:
        return current.sha256 == hashlib.sha256(body).hexdigest()
    return announced == current.revision and guards.was_written_under(current, lock)


def too_large(size: int, limit: int) -> TooLarge:
    return TooLarge(
        f"The state has {size:,} bytes, but the team accepts at most {limit:,} bytes (max_state_mb = "
        f"{limit // _MEGABYTE}). Nothing was written. Split the state, or ask an operator to raise "
        "'max_state_mb' in the team's settings."
    )


def _compare(body: bytes, announced: UploadId) -> StateDocument:
    """Parse a document; raise `UploadAltered` if its MD5 or revision differs from the announced one."""
    if hashlib.md5(body, usedforsecurity=False).hexdigest() != announced.md5:
        raise UploadAltered(
            "The uploaded content does not have the MD5 digest that the client announced. The content was "
            f"cut off or altered, or it is another file. {_NOT_WRITTEN}"
        )
    parsed = document.parse(body)
    uploaded = parsed.revision
    if uploaded.serial != announced.serial or (announced.lineage and uploaded.lineage != announced.lineage):
        raise UploadAltered(
            f"The uploaded content has the serial {uploaded.serial} and the lineage {uploaded.lineage!r}, "
            f"but the client announced the serial {announced.serial} and the lineage {announced.lineage!r}. "
            f"{_NOT_WRITTEN}"
        )
    return parsed
