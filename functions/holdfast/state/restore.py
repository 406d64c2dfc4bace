"""Restore a state: write the content of an earlier version again as the newest version, under a lock.

The lock is the restore's own, or the operator's freeze, which stays. Several restores can use one freeze, so
a restore under a freeze names the version that the operator saw as current.

Only the digits of the serial change, because clients refuse a serial that they have seen with other content.
"""

from dataclasses import dataclass
from typing import Final

from holdfast.access import Action
from holdfast.errors import (
    BaseChanged,
    EncryptedState,
    InvalidRequest,
    InvalidState,
    LineageChanged,
    NotFrozen,
    RacedWriter,
    RestoreOutcomeUnknown,
    SerialNotNewer,
    StateDeleted,
    TooLarge,
    UnreadableVersion,
)
from holdfast.names import StateName
from holdfast.s3.objects import Larger
from holdfast.state import document, fence, guards, held, lock_info
from holdfast.state.current_state import CurrentState, read_current
from holdfast.state.document import Revision, Source, StateDocument
from holdfast.state.fence import NewVersion
from holdfast.state.held import HeldFreeze, HeldLock, LockIdentity
from holdfast.state.operator import check_id, check_reason, check_version_id, no_such_version
from holdfast.work import Work

OPERATION: Final = lock_info.Verb.RESTORE
"""The operation of a restore's own lock."""

_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True)
class Restored:
    """The current version after a restore.

    Attributes:
        restored_from: the version whose content the current version has.
        restored: the revision of that version.
        superseded: the revision that was replaced; None if it is unknown.
        changed: False if that content was already current.
    """

    version_id: str
    revision: Revision
    restored_from: str
    restored: Revision
    superseded: Revision | None
    changed: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """The operator's request.

    Attributes:
        version_id: the version whose content is written again.
        reason: stored in the metadata of the new version.
        base: the current version that the operator saw; None if the request does not name it. If another
            version is current, the restore is refused, so that a retry undoes nobody's work.
        freeze_id: the caller's freeze, under which the version is written; None for a lock of its own.
    """

    version_id: str
    reason: str
    command_id: str
    base: str | None = None
    freeze_id: str | None = None


def how_to_replace(name: StateName, version_id: str) -> str:
    """Return how an operator replaces a state by a version of another lineage, which no restore does."""
    return (
        f"To replace the state on purpose, run 'holdfast state get {name} --version {version_id} --output "
        "old.tfstate', then 'terraform state push -force old.tfstate'. With cloud {}, which does not send "
        "-force, first write the current lineage and a serial above the current one into the file, and push "
        "it without -force."
    )


def restore(work: Work, wanted: Wanted) -> Restored:
    """Write the content of an earlier version again, with the next serial.

    If the lock of the restore may be left, a note of the error says so.

    Raises:
        TooLarge, UnreadableVersion, EncryptedState: the version cannot be written again.
        StateDeleted: the state has no current version.
        LineageChanged: the version belongs to another lineage than the current one.
        Frozen: the lock is another freeze than `wanted.freeze_id`, or this freeze has ended.
        NotFrozen: the state is not locked although `wanted` names a freeze.
        RestoreOutcomeUnknown: the lock was released or broken meanwhile, or the freeze has ended.
    """
    work.require(Action.RESTORE)
    check_id(wanted.command_id)
    check_reason(wanted.reason)
    check_version_id(wanted.version_id)
    if wanted.freeze_id is not None and wanted.base is None:
        raise InvalidRequest(
            "A restore of a frozen state must send the ID of the current version in 'current', because "
            "another restore may use the same freeze."
        )
    # Read the version before the lock: it never changes, and a wrong request locks nobody out.
    source = _readable(work, wanted.version_id)
    if wanted.freeze_id is not None:
        frozen = _own_freeze(work, check_id(wanted.freeze_id))
        return _write_again(work, wanted, source, frozen)
    # The command ID lets a retry recognize its lock. A delayed restore never writes under a later one's lock.
    info = lock_info.of_verb(
        f"{work.address}?versionId={wanted.version_id}&restore={wanted.command_id}",
        work.caller,
        operation=OPERATION,
        info=f"holdfast state restore: {wanted.reason}",
    )
    with fence.own_lock(work, info) as acquired:
        return _write_again(work, wanted, source, acquired)


def _own_freeze(work: Work, freeze_id: str) -> LockIdentity:
    """Return the lock object of the caller's freeze; raise an error unless it holds the state."""
    lock = held.read(work.store, work.name)
    if lock is None:
        raise NotFrozen(
            f"The state '{work.name}' is not frozen. Freeze the state first, or restore it without 'frozen'."
        )
    is_own = (
        isinstance(lock, HeldFreeze)
        and lock.freeze.id == freeze_id
        and lock.principal == work.caller.principal
    )
    if not is_own or lock.is_ended_freeze:
        raise held.refusal(lock)
    return lock.identity


def _readable(work: Work, version_id: str) -> Source:
    """Read the version to restore; raise an error if it cannot be written again."""
    limit = work.policy.largest_state
    stored = work.store.read_at_most(work.name.state_key, limit, version_id)
    if stored is None:
        raise no_such_version(work.name, version_id)
    if isinstance(stored, Larger):
        raise TooLarge(
            f"The version {version_id} has {stored.size:,} bytes, but the team accepts at most {limit:,} "
            "bytes. Ask an operator to raise 'max_state_mb' in the team's settings."
        )
    try:
        source = Source.parse(stored.body)
    except InvalidState as error:
        raise UnreadableVersion(
            f"Holdfast cannot read the version {version_id} as a state document, so it cannot restore it. "
            f"{error.message}"
        ) from None
    if source.is_encrypted:
        raise EncryptedState(
            "The client encrypted this state, so only the client can raise the serial inside it, and "
            f"Holdfast cannot restore it. Save the version with 'holdfast state get {work.name} --version "
            f"{version_id} --output terraform.tfstate'. OpenTofu can decrypt this file and push its content: "
            "docs/operate/history.md has the steps."
        )
    return source


def _write_again(work: Work, wanted: Wanted, source: Source, acquired: LockIdentity) -> Restored:
    name = work.name

    def require_own(lock: HeldLock | None) -> None:
        if lock is None or lock.identity != acquired or lock.is_ended_freeze:
            gone = "an operator broke the lock, or another attempt of the same request released it"
            if wanted.freeze_id is not None:
                gone = "the freeze has ended, or an operator unfroze the state"
            raise RestoreOutcomeUnknown(
                f"The restore of '{name}' lost its lock before it ended: {gone}. Check the history and who "
                "holds the lock before you run the command again."
            )

    for _ in range(_ATTEMPTS):
        current, lock = fence.look(work, read_current)
        require_own(lock)
        if current is None:
            raise StateDeleted(
                f"The state '{name}' is deleted. Bring the state back with 'holdfast state undelete', then "
                "restore the version."
            )
        if _is_restored(current, lock, wanted):
            return Restored(
                current.version.version_id,
                current.revision or source.document.revision,
                wanted.version_id,
                source.document.revision,
                current.superseded,
                # Another command can have written it under the same freeze.
                changed=current.lock_id == acquired.info.id and current.version.version_id != wanted.base,
            )
        following = _following(name, source.document, current, lock, wanted)
        notes = {
            "operation": OPERATION,
            # The metadata of a freeze is longer; its `who` is `written-by`, too.
            "who": "" if wanted.freeze_id else work.caller.principal,
            "restored-from": wanted.version_id,
            "reason": wanted.reason,
        }
        new = NewVersion(following, source.with_serial(following.revision.serial), notes)
        version = fence.put_fenced(work, new, (current, lock), require_own)
        if version:
            return Restored(
                version.version_id,
                following.revision,
                wanted.version_id,
                source.document.revision,
                current.revision,
                changed=True,
            )
    raise RacedWriter(
        f"Another client kept writing the state '{name}' during the restore. Look at the history of the "
        "state, then run the command again."
    )


def _is_restored(current: CurrentState, lock: HeldLock | None, wanted: Wanted) -> bool:
    """Return whether the current version is the wanted version, or was written by a restore of it.

    A current version that was never acknowledged does not count: its writer was refused.
    """
    is_current = wanted.version_id in (current.version.version_id, current.restored_from)
    return is_current and not guards.was_never_acknowledged(current, lock)


def _following(
    name: StateName, source: StateDocument, current: CurrentState, lock: HeldLock | None, wanted: Wanted
) -> StateDocument:
    """Return the head of the new version: the head of the wanted version with the next serial.

    Raises:
        BaseChanged, LineageChanged, SerialNotNewer: the new version cannot follow the current version.
    """
    # An unacknowledged current version is compared, too: the operator may not have seen the acknowledged
    # version below it.
    if wanted.base is not None and wanted.base != current.version.version_id:
        raise BaseChanged(
            f"The state has changed since you read it: the current version is {current.version.version_id}, "
            f"not {wanted.base[:60]}. Nothing was restored; look at the history, then run the command again."
        )
    acknowledged = guards.last_acknowledged_revision(current, lock)
    if acknowledged is not None and not source.revision.same_lineage(acknowledged):
        raise LineageChanged(
            f"The version has the lineage {source.revision.lineage!r}, and the current state has the "
            f"lineage {acknowledged.lineage!r}, so the two are different states. "
            f"{how_to_replace(name, wanted.version_id)}"
        )
    # Unacknowledged serials count, too: a client may have seen them.
    serials = [revision.serial for revision in (current.revision, acknowledged) if revision]
    serial = max(serials, default=source.revision.serial) + 1
    if serial >= document.SERIAL_END:
        raise SerialNotNewer(
            "The current state has the highest possible serial, so a restore cannot write the next one."
        )
    return StateDocument(Revision(serial, source.revision.lineage), source.terraform_version)
