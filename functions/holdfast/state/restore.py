"""Restore a state: write the content of an earlier version again as the newest, under a lock of its own.

Of its bytes only the digits of the serial change, because clients refuse a serial that they have seen with
other content.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from holdfast.access import Action, Caller
from holdfast.errors import (
    BaseChanged,
    EncryptedState,
    InvalidState,
    LineageChanged,
    RacedWriter,
    RestoreOutcomeUnknown,
    SerialNotNewer,
    StateDeleted,
    TooLarge,
    UnreadableVersion,
)
from holdfast.names import StateName
from holdfast.s3.retention import Retention
from holdfast.s3.store import Larger, Store
from holdfast.state import document, fence, guards, lock_info
from holdfast.state.current_state import CurrentState, read_current
from holdfast.state.document import Revision, Source, StateDocument
from holdfast.state.locks import HeldLock, LockIdentity, identity
from holdfast.state.operator import check_id, check_reason, check_version_id, no_such_version

OPERATION: Final = "restore"
"""The operation of a restore's own lock."""

_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True)
class Restored:
    """The content of an earlier version is current.

    Attributes:
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
        reason: the new version notes it.
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

    Raises:
        TooLarge, UnreadableVersion, EncryptedState: it cannot be written again.
        StateDeleted: there is no current version.
        LineageChanged: it belongs to another lineage than the current one.
        RestoreOutcomeUnknown: the lock was released or broken meanwhile.
    """
    caller.require(Action.RESTORE, name)
    check_id(wanted.command_id)
    check_reason(wanted.reason)
    check_version_id(wanted.version_id)
    # Before the lock, because a version never changes, and who asks for a wrong one locks nobody out.
    source = _readable(store, name, wanted.version_id, limit)
    # A retry meets its own lock, and no restore that was held up writes under the lock of a later one.
    info = lock_info.of_verb(
        f"{store.bucket}/{name.state_key}?versionId={wanted.version_id}&restore={wanted.command_id}",
        caller,
        operation=OPERATION,
        info=f"holdfast state restore: {wanted.reason}",
    )
    with fence.own_lock(store, name, info, caller) as acquired:
        return _write_again(store, name, wanted, source, acquired, caller, retention)


def _readable(store: Store, name: StateName, version_id: str, limit: int) -> Source:
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
        source = Source.parse(found.body)
    except InvalidState as error:
        raise UnreadableVersion(
            f"The version {version_id} is not a state document, so it is not restored. {error.message}"
        ) from None
    if source.is_encrypted:
        raise EncryptedState(
            "The client encrypted this state. It compares the serial inside, which only the client can "
            "change: fetch the version with 'holdfast state get --version', and push it with "
            "'tofu state push -force'."
        )
    return source


def _write_again(
    store: Store,
    name: StateName,
    wanted: Wanted,
    source: Source,
    acquired: LockIdentity,
    caller: Caller,
    retention: Retention | None,
) -> Restored:
    def require_own(lock: HeldLock | None) -> None:
        if identity(lock) != acquired:
            raise RestoreOutcomeUnknown(
                f"The lock of this restore of '{name}' is gone: somebody broke it, or another try of this "
                "very request has ended and released it. Look at the history, and at who holds the lock, "
                "before you run the command again."
            )

    for _ in range(_ATTEMPTS):
        current, lock = fence.look(store, name, read_current)
        require_own(lock)
        if current is None:
            raise StateDeleted(
                f"The state '{name}' is deleted. Bring it back with 'holdfast state undelete', then restore."
            )
        if _is_restored(current, lock, wanted):
            return Restored(
                current.version.version_id,
                current.revision or source.document.revision,
                wanted.version_id,
                source.document.revision,
                current.superseded,
                changed=current.lock_id == acquired.info.id,
            )
        new = _following(source.document, current, lock, wanted)
        body = source.with_serial(new.revision.serial)
        version = fence.put_fenced(
            store,
            name,
            new,
            body,
            (current, lock),
            caller,
            require_own,
            sha256=hashlib.sha256(body).hexdigest(),
            retention=retention,
            notes={"restored-from": wanted.version_id, "reason": wanted.reason},
        )
        if version:
            return Restored(
                version.version_id,
                new.revision,
                wanted.version_id,
                source.document.revision,
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
