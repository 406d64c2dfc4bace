"""The documents of `/manage/v1/`. Members keep their names and their meanings; new ones may come."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from holdfast.api.form import Document, Flag, Json, Number, Presence, Rule, Time

STATUSES: Final = ("acknowledged", "never_acknowledged", "other_program")
"""What became of the write that made a version."""
ACKNOWLEDGED, NEVER_ACKNOWLEDGED, OTHER_PROGRAM = STATUSES

_Status = Annotated[str | None, Rule(words=STATUSES)]
_Change = Annotated[str, Rule(words=("added", "removed", "moved", "replaced", "changed"))]
_Reason = Annotated[str, Rule(min_length=1, max_length=200)]
_CommandId = Annotated[str, Rule(pattern="^[0-9a-f]{32}$")]
_VersionId = Annotated[str, Rule(max_length=128)]

# --- what the API responds -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlacedFreeze(Document):
    """A freeze, without who placed it.

    Attributes:
        id: of the command that froze the state.
        reason: why, in one line.
        until: when it ends; null if somebody has to lift it.
    """

    id: str
    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class FreezeOfLock(PlacedFreeze):
    """A freeze, with who placed it.

    Attributes:
        by: the principal who froze the state.
        since: when.
        ended: whether its end has passed, by the clock of S3.
    """

    by: str | None
    since: Time
    ended: Flag


@dataclass(frozen=True, slots=True)
class Lock(Document):
    """A lock. A list shows the first 200 characters of each text.

    Attributes:
        name: of the state; only in a list of locks.
        id: as the client chose it.
        version: the ID of the lock's object version, which names this very lock.
        who: the user and the machine, as the client says.
        principal: who acquired it; null if another program did.
        operation: what it is for, as the client says.
        info: what else the client says.
        since: when it was acquired.
        freeze: the freeze, if the lock is one.
    """

    name: Annotated[str | None, Presence.LEFT_OUT]
    id: str
    version: str
    who: str
    principal: str | None
    operation: str
    info: str
    since: Time
    freeze: FreezeOfLock | None


@dataclass(frozen=True, slots=True)
class StateItem(Document):
    """A state in a list.

    Attributes:
        name: of the state.
        size: bytes of the current version; null if there is none, as where there is only a lock.
        modified: when that was written, or the state deleted.
        deleted: whether the state is deleted.
        lock: the lock that is held.
    """

    name: str
    size: int | None
    modified: datetime | None
    deleted: Flag
    lock: Lock | None


@dataclass(frozen=True, slots=True)
class StatePage(Document):
    """A page of states.

    Attributes:
        states: by name.
        next: the cursor of the next page.
    """

    states: tuple[StateItem, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Resources(Document):
    """How much a state tracks.

    Attributes:
        managed: instances of resources.
        data: instances of data sources.
        outputs: of the root module.
    """

    managed: Number
    data: Number
    outputs: Number


@dataclass(frozen=True, slots=True)
class StateDescription(Document):
    """A state. Most is null where there is only a lock, or a name that was declared.

    Attributes:
        name: of the state.
        version: the ID of the current version.
        size: its bytes.
        modified: when it was written.
        serial: its serial.
        lineage: its lineage.
        terraform_version: of the client that wrote it.
        principal: who wrote it; null for another program's version.
        who: the user and the machine, as the client says.
        operation: what the client did.
        status: what became of its write.
        encrypted: whether the client encrypted it.
        resources: how much it tracks.
        lock: the lock that is held.
        record: whether the name was declared, or a workspace has it.
    """

    name: str
    version: str | None
    size: int | None
    modified: datetime | None
    serial: int | None
    lineage: str | None
    terraform_version: str | None
    principal: str | None
    who: str | None
    operation: str | None
    status: _Status
    encrypted: bool | None
    resources: Resources | None
    lock: Lock | None
    record: Flag


@dataclass(frozen=True, slots=True)
class Version(Document):
    """A version, or a delete marker, which has no more than its ID and its time.

    Attributes:
        version: its ID.
        time: when it was written.
        size: its bytes.
        current: whether it is the newest.
        delete_marker: whether it is a delete marker.
        serial: of its document; null for another program's version, as all that follows but `status`.
        lineage: of its document.
        terraform_version: of the client that wrote it.
        principal: who wrote it.
        who: the user and the machine, as the client says.
        operation: what the client did.
        lock_id: the lock under which it was written.
        sha256: of the content, hexadecimal.
        status: what became of its write.
        restored_from: the version whose content it has, if a restore wrote it.
        reason: why it was restored.
    """

    version: str
    time: Time
    size: int | None
    current: Flag
    delete_marker: Flag
    serial: int | None
    lineage: str | None
    terraform_version: str | None
    principal: str | None
    who: str | None
    operation: str | None
    lock_id: str | None
    sha256: str | None
    status: _Status
    restored_from: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class VersionPage(Document):
    """A page of the history of a state.

    Attributes:
        name: of the state.
        versions: newest first.
        next: the cursor of the next page.
    """

    name: str
    versions: tuple[Version, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class ResolvedVersion(Document):
    """A version that a reference means.

    Attributes:
        version: its ID.
        serial: its serial; null for a delete marker and another program's version.
        time: when it was written.
        status: what became of its write; null for a delete marker.
    """

    version: str
    serial: int | None
    time: Time
    status: _Status


@dataclass(frozen=True, slots=True)
class Resolved(Document):
    """What a reference means. What changes a state takes the exact IDs alone.

    Attributes:
        name: of the state.
        reference: as it was sent.
        found: the version that it means; null if the search goes on with `next`.
        current: the version that was current when the search began; null if there was none.
        next: the cursor with which the search goes on.
    """

    name: str
    reference: str
    found: ResolvedVersion | None
    current: ResolvedVersion | None
    next: str | None


@dataclass(frozen=True, slots=True)
class NamePage(Document):
    """A page of names.

    Attributes:
        names: of states, in order.
        next: the cursor of the next page.
    """

    names: tuple[str, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Side(Document):
    """One of two versions that are compared.

    Attributes:
        version: its ID.
        serial: its serial.
        terraform_version: of the client that wrote it.
        time: when it was written.
        size: its bytes.
    """

    version: str
    serial: Number
    terraform_version: str
    time: Time
    size: Number


@dataclass(frozen=True, slots=True)
class AttributeChange(Document):
    """An attribute of a resource, or a part of one, that differs.

    Attributes:
        path: such as `tags["env"]`.
        change: what happened to it.
        before: the value as JSON; null if there was none, or it is not told.
        after: the same of the newer version.
        sensitive: whether a version marks it, so that its value is never told.
    """

    path: str
    change: _Change
    before: str | None
    after: str | None
    sensitive: Flag


@dataclass(frozen=True, slots=True)
class ResourceChange(Document):
    """A resource that differs.

    Attributes:
        address: as clients print it.
        change: what happened to it.
        moved_from: its address in the older version, if it was moved.
        type: of the resource.
        tainted: whether it became tainted; null if it is as tainted as before.
        attributes: those that differ.
    """

    address: str
    change: _Change
    moved_from: str | None
    type: str
    tainted: bool | None
    attributes: tuple[AttributeChange, ...]


@dataclass(frozen=True, slots=True)
class OutputChange(Document):
    """An output that differs.

    Attributes:
        name: of the output.
        change: what happened to it.
        before: the value as JSON; null if there was none, or it is not told.
        after: the same of the newer version.
        sensitive: whether a version marks it, so that its value is never told.
    """

    name: str
    change: _Change
    before: str | None
    after: str | None
    sensitive: Flag


@dataclass(frozen=True, slots=True)
class Differences(Document):
    """What differs between two versions of a state.

    Attributes:
        name: of the state.
        from_: the older version.
        to: the newer version.
        encrypted: whether the client encrypted either, so that their content cannot be compared.
        values: whether values are told.
        lineage_changed: whether their lineages differ.
        resources: those that differ, by address.
        outputs: those that differ, by name.
        summary: the number of resources of each kind of change, and of outputs.
    """

    name: str
    from_: Side
    to: Side
    encrypted: Flag
    values: Flag
    lineage_changed: Flag
    resources: tuple[ResourceChange, ...]
    outputs: tuple[OutputChange, ...]
    summary: Json


@dataclass(frozen=True, slots=True)
class Restored(Document):
    """The current version after a restore.

    Attributes:
        name: of the state.
        version: the ID of the current version.
        serial: its serial.
        restored_from: the version whose content it has.
        restored_serial: the serial of that one.
        changed: false if the state had that content already.
    """

    name: str
    version: str
    serial: Number
    restored_from: str
    restored_serial: Number
    changed: Flag


@dataclass(frozen=True, slots=True)
class Deleted(Document):
    """The version that was deleted.

    Attributes:
        name: of the state.
        version: the ID of the version; null if there was none any more.
    """

    name: str
    version: str | None


@dataclass(frozen=True, slots=True)
class Undeleted(Document):
    """The current version after an undelete.

    Attributes:
        name: of the state.
        version: the ID of the current version.
        serial: its serial.
        lineage: its lineage.
        from_version: the version whose content it has.
        from_time: when that was written.
    """

    name: str
    version: str
    serial: Number
    lineage: str
    from_version: str
    from_time: Time


@dataclass(frozen=True, slots=True)
class Declared(Document):
    """A name that was declared.

    Attributes:
        name: of the state.
        created: false if it was declared already.
    """

    name: str
    created: Flag


@dataclass(frozen=True, slots=True)
class LockPage(Document):
    """A page of locks.

    Attributes:
        locks: the oldest of the page first.
        next: the cursor of the next page.
    """

    locks: tuple[Lock, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class LockOfState(Document):
    """The lock of a state.

    Attributes:
        name: of the state.
        lock: the lock that is held.
    """

    name: str
    lock: Lock | None


@dataclass(frozen=True, slots=True)
class Removed(Document):
    """Whether a lock was removed.

    Attributes:
        name: of the state.
        removed: false if there was none any more.
    """

    name: str
    removed: Flag


@dataclass(frozen=True, slots=True)
class Frozen(Document):
    """A state that is frozen.

    Attributes:
        name: of the state.
        freeze: the freeze.
    """

    name: str
    freeze: PlacedFreeze


@dataclass(frozen=True, slots=True)
class Activity(Document):
    """A page of the audit trail.

    Attributes:
        events: newest first, with the fields of `docs/audit.md`.
        next: the cursor of the next page.
    """

    events: tuple[Json, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Principal(Document):
    """The caller.

    Attributes:
        principal: who they are.
        role: what they may do.
        scope: the patterns of the states that they may do it to.
        method: how they proved who they are.
        trust: the trust record that says what they may do.
        expires: when their credentials end.
    """

    principal: str
    role: Annotated[str, Rule(words=("outputs", "reader", "writer", "maintainer"))]
    scope: tuple[str, ...]
    method: str
    trust: str | None
    expires: datetime | None


@dataclass(frozen=True, slots=True)
class Error(Document):
    """An error of Holdfast.

    Attributes:
        error: what happened, for programs.
        message: what happened and what to do, for people.
    """

    error: str
    message: str


@dataclass(frozen=True, slots=True)
class LockedError(Error):
    """An error about a lock that is in the way.

    Attributes:
        lock: the holder's lock info, in the form of Terraform.
    """

    lock: Json


# --- what it is sent -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restore(Document):
    """What is to be current, and why.

    Attributes:
        version: the ID of the version whose content is written again.
        reason: one line.
        id: random for each command; a retry has the same.
        current: the version that was current when the operator looked; another one is refused.
    """

    version: _VersionId
    reason: _Reason
    id: _CommandId
    current: Annotated[str | None, Presence.LEFT_OUT]


@dataclass(frozen=True, slots=True)
class Delete(Document):
    """What the operator saw.

    Attributes:
        version: the ID of the current version; another one is not deleted.
    """

    version: str


@dataclass(frozen=True, slots=True)
class Undelete(Document):
    """What the operator saw.

    Attributes:
        marker: the version ID of the delete marker that is undone.
    """

    marker: str


@dataclass(frozen=True, slots=True)
class Freeze(Document):
    """Why a state is frozen, and until when.

    Attributes:
        reason: one line.
        until: in the future.
        id: random for each command; a retry has the same.
    """

    reason: _Reason
    until: datetime | None
    id: _CommandId
