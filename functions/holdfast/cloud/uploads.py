"""Writes in several requests: create, upload, commit.

Create changes nothing. It returns an upload ID, which contains the current lock and version. The client puts
the document into the staging bucket. The commit reads it there and compares it with what was announced. If
lock and version are unchanged, the commit writes the document like every other fenced write.
"""

import hashlib
from typing import Final

from holdfast.access import Action, Caller
from holdfast.cloud import staging
from holdfast.cloud.ids import UploadId, WorkspaceId
from holdfast.errors import TooLarge, UploadAltered, UploadMissing
from holdfast.s3.retention import Retention
from holdfast.s3.store import Larger, Store
from holdfast.state import document, fence, guards, write
from holdfast.state.current_state import CurrentState, read_current
from holdfast.state.document import Revision, StateDocument
from holdfast.state.locks import HeldLock
from holdfast.state.write import Written

_MEGABYTE: Final = 1_000_000


def create(
    store: Store,
    workspace: WorkspaceId,
    announced: Revision,
    md5: str,
    caller: Caller,
    *,
    force: bool,
    body: bytes | None = None,
    declared_only: bool = False,
) -> UploadId:
    """Check whether a document may be written, and return the ID that its commit needs. Nothing is changed.

    Args:
        announced: the document's revision; its lineage is empty if the client did not announce it.
        md5: the document's MD5.
        force: whether to skip the comparison of serial and lineage with the current state.
        body: the document, if it came with the request.

    Raises:
        Locked: somebody else holds the lock.
        LockLost: the lock is not held.
        SerialNotNewer, LineageChanged, UnreadableState: the document does not follow the current state.
    """
    name = workspace.name
    caller.require(Action.WRITE, name)
    current, lock = fence.look(store, name, read_current)
    guards.check_lock(lock, workspace.lock_id, caller, require_lock=True)
    if not _may_be_current(announced, body, current, lock):
        guards.check_succession(announced, current, lock, force=force)
    if current is None:
        fence.require_creatable(store, name, caller, declared_only=declared_only)
    return UploadId(
        name=name,
        lock_id=workspace.lock_id,
        lock_version=lock.identity.version_id if lock else "",
        base=(current.version.version_id, current.version.etag) if current else None,
        serial=announced.serial,
        lineage=announced.lineage,
        md5=md5,
        force=force,
        key=UploadId.new_key(),
    )


def commit(
    store: Store,
    staged: Store,
    upload_id: UploadId,
    caller: Caller,
    *,
    limit: int,
    retention: Retention | None,
    declared_only: bool = False,
) -> Written:
    """Write the uploaded document, fenced. Succeeds also if it is already written, so a retry is safe.

    Raises:
        As `holdfast.state.write.write`, and:
        UploadMissing: nothing was uploaded.
        TooLarge: the document is larger than the limit.
        UploadAltered: the document differs from the announced one.
    """
    name = upload_id.name
    caller.require(Action.WRITE, name)
    found = staging.read(staged, name, caller, upload_id.key, limit)
    if found is None:
        written = write.committed(store, name, upload_id, caller)
        if written is None:
            raise UploadMissing(
                "Nothing was uploaded for this state version, or it was removed since. Nothing was written; "
                "run the command again."
            )
        return written
    if isinstance(found, Larger):
        raise too_large(found.size, limit)
    written = _write(store, upload_id, found.body, caller, retention=retention, declared_only=declared_only)
    # If another upload wrote these bytes, a retry needs the staged object to recognize them.
    if written.upload == upload_id.key:
        staging.discard(staged, name, caller, upload_id.key)
    return written


def write_at_once(
    store: Store,
    upload_id: UploadId,
    body: bytes,
    caller: Caller,
    *,
    limit: int,
    retention: Retention | None,
    declared_only: bool = False,
) -> Written:
    """Write a document that came with the creation of its upload, as clients before Terraform 1.6 send it.

    Raises the errors of `commit`, except `UploadMissing`.
    """
    if len(body) > limit:
        raise too_large(len(body), limit)
    return _write(store, upload_id, body, caller, retention=retention, declared_only=declared_only)


def _write(
    store: Store,
    upload_id: UploadId,
    body: bytes,
    caller: Caller,
    *,
    retention: Retention | None,
    declared_only: bool,
) -> Written:
    return write.write(
        store,
        upload_id.name,
        body,
        upload_id.lock_id,
        caller,
        require_lock=True,
        declared_only=declared_only,
        retention=retention,
        upload=upload_id,
        parsed=_compare(body, upload_id),
    )


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
        f"The state has {size} bytes; this team accepts {limit // _MEGABYTE} MB. Nothing was written. Split "
        "the state, or have 'max_state_mb' raised in the team's settings."
    )


def _compare(body: bytes, announced: UploadId) -> StateDocument:
    """Parse a document; raise `UploadAltered` if its MD5 or revision differs from the announced one."""
    if hashlib.md5(body, usedforsecurity=False).hexdigest() != announced.md5:
        raise UploadAltered(
            "What was uploaded has another MD5 than was announced: it was cut, altered, or is another file. "
            "Nothing was written; run the command again."
        )
    parsed = document.parse(body)
    found = parsed.revision
    if found.serial != announced.serial or (announced.lineage and found.lineage != announced.lineage):
        raise UploadAltered(
            f"What was uploaded has the serial {found.serial} and the lineage {found.lineage!r}; announced "
            f"were {announced.serial} and {announced.lineage!r}. Nothing was written."
        )
    return parsed
