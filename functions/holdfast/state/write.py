"""Write a state, fenced by lock, ETag, serial and lineage.

Why a write reads the lock twice: between the first reading and the PutObject the lock can be broken and
acquired by somebody else. A write is acknowledged only if the very same lock is still there afterwards, so
every acknowledged write happened while its lock was held, and the next holder has read it. Serials alone
stop nobody twice: Terraform raises the serial before it writes and does not lower it when the write is
refused, so a refused writer comes back with the next one.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from holdfast.access import Action, Caller
from holdfast.errors import LineageChanged, RacedWriter, SerialNotNewer
from holdfast.names import StateName
from holdfast.s3.retention import Retention
from holdfast.s3.store import IfAbsent, IfMatch, Store, Stored
from holdfast.state import declared, document, guards, locks
from holdfast.state.current_state import read_current, version_metadata
from holdfast.state.document import Revision, StateDocument
from holdfast.state.guards import Upload
from holdfast.state.lock_info import LockInfo
from holdfast.state.locks import LockIdentity, identity
from holdfast.state.memory import Memory

_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True)
class Written:
    """The write is acknowledged.

    Attributes:
        revision: what was written.
        superseded: the revision that it replaced, None for the first state.
        version_id: the version that holds it.
        lock: the lock that was held, None for an unlocked write.
        new_version: False if the current state had the same bytes already, written under this lock.
        upload: the key of the upload that the version notes; empty if it notes none.
    """

    revision: Revision
    superseded: Revision | None
    version_id: str
    lock: LockInfo | None
    new_version: bool
    upload: str = ""


def write(
    store: Store,
    name: StateName,
    body: bytes,
    lock_id: str | None,
    caller: Caller,
    *,
    require_lock: bool,
    declared_only: bool = False,
    retention: Retention | None = None,
    memory: Memory | None = None,
    upload: Upload | None = None,
    parsed: StateDocument | None = None,
) -> Written:
    """Write the state, fenced.

    Args:
        store: the bucket.
        name: of the state.
        body: the state document; stored byte for byte.
        lock_id: the ID of the lock that the client says it holds, None if it names none.
        caller: who writes.
        require_lock: whether a write without a lock is refused.
        declared_only: whether a first write is refused if the name is not declared.
        retention: how long S3 keeps the new version from being deleted; None leaves that to the bucket. It is
            never asked for a probe, which is removed.
        memory: of this process, if it has one: what it remembers of the state is taken for the current
            version until S3 says otherwise.
        upload: what the write was created on, if it came in several requests.
        parsed: what `document.parse` returned for this body, if it was parsed before.

    Raises:
        NotAllowed: the caller may not write this state.
        InvalidState: the body is not a state document, or a probe's tracks something.
        Locked: somebody else holds the lock.
        LockRequired: no lock is held and the team requires one.
        LockLost: the lock that was held is gone; the write does not count.
        BaseChanged: the state is another one than the one on which the upload builds.
        NotDeclared: there is no state, and the name is not declared.
        SerialNotNewer, LineageChanged, UnreadableState: it does not follow the current state.
        RacedWriter: somebody else kept writing.
        OutcomeUnknown: S3 did not decide in time; a retry is safe.
    """
    caller.require(Action.WRITE, name)
    new = parsed or document.parse(body)
    if name.is_probe:
        document.require_nothing_tracked(body)
        retention = None
    sha256 = hashlib.sha256(body).hexdigest()
    # Only under a lock: an unlocked write has nothing but serial and ETag, so it reads the current version.
    remembered = memory.take(name) if memory and lock_id and not upload else None
    if remembered and remembered.sha256 == sha256:
        remembered = None  # perhaps a retry: only what is read now tells
    first: LockIdentity | None = None
    for attempt in range(_ATTEMPTS + bool(remembered)):
        # The state before the lock: a lock that is ours afterwards was ours when the state was read, and
        # nobody else's write since it was acquired has been acknowledged. The other way round the state
        # could be the next holder's already.
        guess = remembered if attempt == 0 else None
        current = guess or read_current(store, name)
        lock = locks.read(store, name)
        guards.check_lock(lock, lock_id, caller, require_lock=require_lock)
        if attempt == 0:
            first = identity(lock)
        else:  # the lock can be broken and acquired again, by an acquire that arrives late
            guards.check_same_lock(first, lock, lock_id)
        superseded = current.revision if current else None
        held = lock.info if lock else None
        if upload:
            # Before anything counts as written: by that alone it was, but not under the lock that is held.
            guards.check_upload_lock(lock, upload)
        same_bytes = current is not None and current.sha256 == sha256
        if current and same_bytes and guards.counts_as_written(current, lock):
            # No second reading here: it guards a PutObject that can land after the lock was broken, and
            # nothing is put. These bytes were current when the state was read, and the lock was ours then.
            if memory:
                memory.learn(name, current.version)
            found = current.version.version_id
            return Written(new.revision, superseded, found, held, new_version=False, upload=current.upload)
        if upload:
            guards.check_base(current, lock, upload)
        if not same_bytes:
            try:
                guards.check_succession(new.revision, current, lock, force=bool(upload and upload.force))
            except (LineageChanged, SerialNotNewer):
                if guess:
                    continue  # what is remembered refuses nothing: it may be long superseded
                raise
        if declared_only and current is None:
            declared.require_record(store, name, caller)
        stored = store.write(
            name.state_key,
            body,
            IfMatch(current.version.etag) if current else IfAbsent(),
            metadata=version_metadata(
                new,
                sha256,
                guards.last_acknowledged(current, lock),
                lock,
                caller,
                upload.key if upload else "",
            ),
            retention=retention,
        )
        # A failed precondition may be our own first attempt, whose response was lost: the next round tells.
        if isinstance(stored, Stored):
            # The second reading: only the very same lock, or still none, acknowledges the write.
            guards.check_same_lock(first, locks.read(store, name), lock_id)
            if memory:
                memory.learn(name, stored.version)
            own = upload.key if upload else ""
            return Written(new.revision, superseded, stored.version_id, held, new_version=True, upload=own)
    raise RacedWriter(
        "Somebody else kept writing this state while this write was in progress. Run the command again; "
        "without locking, make sure that nobody else works on this state."
    )


def committed(store: Store, name: StateName, upload: Upload, caller: Caller) -> Written | None:
    """Return what an upload wrote, if its version is current and its lock is still held; None if it is not.

    For a commit that is retried when nothing of the upload is left.

    Raises:
        NotAllowed: the caller may not write this state.
        Locked: somebody else holds the lock.
        LockLost: the lock under which the upload was created is gone.
        OutcomeUnknown: S3 did not answer in time.
    """
    caller.require(Action.WRITE, name)
    # In the order of `write`, for the same reasons.
    current = read_current(store, name)
    lock = locks.read(store, name)
    guards.check_lock(lock, upload.lock_id, caller, require_lock=True)
    guards.check_upload_lock(lock, upload)
    if current is None or current.revision is None or current.upload != upload.key:
        return None
    return Written(
        current.revision,
        current.superseded,
        current.version.version_id,
        lock.info if lock else None,
        new_version=False,
        upload=current.upload,
    )
