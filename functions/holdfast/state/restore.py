"""Restore a state: write the content of an earlier version again as the newest, under a lock of its own.

Of its bytes only the digits of the serial change, because clients refuse a serial that they have seen with
other content. It is fenced as `write` is: the lock is read before the PutObject and after it.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from holdfast.access import Action, Caller
from holdfast.errors import (
    BaseChanged,
    EncryptedState,
    HoldfastError,
    InvalidState,
    LineageChanged,
    OutcomeUnknown,
    RacedWriter,
    RestoreOutcomeUnknown,
    SerialNotNewer,
    StateDeleted,
    TooLarge,
    UnreadableVersion,
)
from holdfast.names import StateName
from holdfast.s3.retention import Retention
from holdfast.s3.store import IfMatch, Larger, Object, Store, Stored
from holdfast.state import document, guards, lock_info, locks
from holdfast.state.current_state import CurrentState, read_current, version_metadata
from holdfast.state.document import Revision, StateDocument
from holdfast.state.locks import HeldLock, LockIdentity, identity
from holdfast.state.operator import check_id, check_reason, check_version_id, no_such_version

OPERATION: Final = "restore"
"""The operation of a restore's own lock."""

_ATTEMPTS: Final = 4
_RELEASE_SECONDS: Final = 3.0
"""The least time that a restore has to release its lock, however long the rest took."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The content of an earlier version is current.

    Attributes:
        version_id: the current version.
        revision: its serial and lineage.
        restored_from: the version whose content it has.
        restored: the revision of that one.
        superseded: the revision that was replaced; None if nothing was, or nobody can tell.
        changed: False if it was current already.
    """

    version_id: str
    revision: Revision
    restored_from: str
    restored: Revision
    superseded: Revision | None
    changed: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an operator asks for.

    Attributes:
        version_id: the version whose content is to be current.
        reason: why, one line; the new version notes it.
        command_id: 32 hexadecimal digits, random; a retry has the same.
        base: the version that was current when the operator looked; None if they do not say. A retry that
            finds another one is refused, so that it undoes nobody's work.
    """

    version_id: str
    reason: str
    command_id: str
    base: str | None = None


def restore(
    store: Store,
    name: StateName,
    wanted: Wanted,
    caller: Caller,
    *,
    limit: int,
    retention: Retention | None,
) -> Restored:
    """Write the content of an earlier version again, with the next serial.

    An error has a note where this lock may be left.

    Args:
        store: the bucket.
        name: of the state.
        wanted: which version, and why.
        caller: a maintainer.
        limit: bytes of the largest state that is written.
        retention: how long S3 keeps the new version from being deleted; None leaves that to the bucket. It is
            never asked for a probe, which is removed.

    Raises:
        NotAllowed: the caller may not restore this state.
        InvalidRequest: version, reason or ID break a rule.
        NoSuchVersion: the state has no such version.
        TooLarge, UnreadableVersion, EncryptedState: it cannot be written again.
        StateDeleted: there is no current version.
        LineageChanged: it belongs to another lineage than the current one.
        BaseChanged: the state has changed since the operator looked.
        Locked: somebody holds the lock, or the state is frozen.
        RacedWriter: somebody else kept writing.
        RestoreOutcomeUnknown: the lock was released or broken meanwhile.
        OutcomeUnknown: S3 did not decide in time; a retry is safe.
    """
    caller.require(Action.RESTORE, name)
    check_id(wanted.command_id)
    check_reason(wanted.reason)
    check_version_id(wanted.version_id)
    # Before the lock, because a version never changes, and who asks for a wrong one locks nobody out.
    source, content = _readable(store, name, wanted.version_id, limit)
    # Two restores never share a lock, and a retry meets its own.
    info = lock_info.of_verb(
        f"{store.bucket}/{name.state_key}?versionId={wanted.version_id}&restore={wanted.command_id}",
        caller,
        operation=OPERATION,
        info=f"holdfast state restore: {wanted.reason}",
    )
    may_be_left = (
        f"The lock {info.id} of this restore may be left: a retry with the same 'id' takes it up; if it "
        "still is held before you run the command again, remove it with 'holdfast lock break'."
    )
    try:
        acquired = locks.acquire_own(store, name, info, caller)
    except OutcomeUnknown as error:
        error.add_note(may_be_left)
        raise
    try:
        return _write_again(
            store, name, wanted, source, content, acquired, caller, None if name.is_probe else retention
        )
    finally:
        # That very lock object, so that a lock which came after it stays.
        store.prolong(_RELEASE_SECONDS)
        try:
            locks.release_own(store, name, acquired)
        except HoldfastError as error:
            error.add_note(may_be_left)
            raise


def _readable(store: Store, name: StateName, version_id: str, limit: int) -> tuple[StateDocument, Object]:
    """Read the version that is wanted, if it can be written again."""
    found = store.read_at_most(name.state_key, limit, version_id)
    if found is None:
        raise no_such_version(name, version_id)
    if isinstance(found, Larger):
        raise TooLarge(
            f"The version {version_id} has {found.size} bytes; this deployment writes states of at most "
            f"{limit}."
        )
    try:
        parsed = document.parse(found.body)
    except InvalidState as error:
        raise UnreadableVersion(
            f"The version {version_id} is not a state document, so it is not restored. {error.message}"
        ) from None
    if document.is_encrypted(found.body):
        raise EncryptedState(
            "The client encrypted this state. It compares the serial inside, which only the client can "
            "change: fetch the version with 'holdfast state get --version', and push it with "
            "'tofu state push -force'."
        )
    return parsed, found


def _write_again(
    store: Store,
    name: StateName,
    wanted: Wanted,
    source: StateDocument,
    content: Object,
    acquired: LockIdentity,
    caller: Caller,
    retention: Retention | None,
) -> Restored:
    for _ in range(_ATTEMPTS):
        # The state before the lock, as in `write` and for the same reasons.
        current = read_current(store, name)
        lock = locks.read(store, name)
        _require_own(lock, acquired, name)
        if current is None:
            raise StateDeleted(
                f"The state '{name}' is deleted. Bring it back with 'holdfast state undelete', then restore."
            )
        if _is_restored(current, lock, wanted):
            return Restored(
                current.version.version_id,
                current.revision or source.revision,
                wanted.version_id,
                source.revision,
                current.superseded,
                changed=current.lock_id == acquired.info.id,
            )
        new = _following(source, current, lock, wanted)
        body = document.with_serial(content.body, new.revision.serial)
        stored = store.write(
            name.state_key,
            body,
            IfMatch(current.version.etag),
            metadata={
                **version_metadata(
                    new,
                    hashlib.sha256(body).hexdigest(),
                    guards.last_acknowledged(current, lock),
                    lock,
                    caller,
                ),
                "restored-from": wanted.version_id,
                "reason": wanted.reason,
            },
            retention=retention,
        )
        # A failed precondition may be our own first attempt, whose response was lost: the next round tells.
        if isinstance(stored, Stored):
            _require_own(locks.read(store, name), acquired, name)
            return Restored(
                stored.version_id,
                new.revision,
                wanted.version_id,
                source.revision,
                current.revision,
                changed=True,
            )
    raise RacedWriter(
        f"Somebody else kept writing the state '{name}' while it was being restored. Look at its history, "
        "then run the command again."
    )


def _is_restored(current: CurrentState, lock: HeldLock | None, wanted: Wanted) -> bool:
    """Return whether there is nothing to do: the version is current, or its content was written again.

    A version that was never acknowledged does not count: its writer was refused.
    """
    is_current = wanted.version_id in (current.version.version_id, current.restored_from)
    return is_current and not guards.was_never_acknowledged(current, lock)


def _following(
    source: StateDocument, current: CurrentState, lock: HeldLock | None, wanted: Wanted
) -> StateDocument:
    """Return the document of the new version: the content that is wanted, with the next serial.

    Raises:
        BaseChanged, LineageChanged, SerialNotNewer: it does not follow the current version.
    """
    # Also if the current version was never acknowledged: one that was may lie below it, and the operator may
    # not have seen that one either.
    if wanted.base is not None and wanted.base != current.version.version_id:
        raise BaseChanged(
            f"The state has changed since you looked: its version {current.version.version_id} is current, "
            f"not {wanted.base[:60]}. Nothing was restored; look at the history, then run the command again."
        )
    acknowledged = guards.last_acknowledged_revision(current, lock)
    if acknowledged is not None and not source.revision.same_lineage(acknowledged):
        raise LineageChanged(
            f"The version has the lineage {source.revision.lineage!r}, the current state "
            f"{acknowledged.lineage!r}: they are different states. To replace the state on purpose fetch the "
            "version with 'holdfast state get --version', and push it with 'terraform state push -force'."
        )
    # Acknowledged or not: a client may have seen it.
    serials = [revision.serial for revision in (current.revision, acknowledged) if revision]
    serial = max(serials, default=source.revision.serial) + 1
    if serial >= document.SERIAL_END:
        raise SerialNotNewer("The current state has the highest serial that there is; no other can follow.")
    return StateDocument(Revision(serial, source.revision.lineage), source.terraform_version)


def _require_own(lock: HeldLock | None, acquired: LockIdentity, name: StateName) -> None:
    if identity(lock) != acquired:
        raise RestoreOutcomeUnknown(
            f"The lock of this restore of '{name}' is gone: somebody broke it, or another try of this very "
            "request has ended and released it. Look at the history, and at who holds the lock, before you "
            "run the command again."
        )
