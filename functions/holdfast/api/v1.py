"""The documents of `/manage/v1/`. Members keep their names and their meanings; new ones may come.

What follows a member is its meaning, in docs/openapi.yaml too.
"""

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
_LeftOut = Annotated[str | None, Presence.LEFT_OUT]
_VersionId = Annotated[str, Rule(min_length=1, max_length=128)]

# --- what the API responds -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacedFreeze(Document):
    """A freeze, without who placed it."""

    id: str  # of the command that froze the state
    reason: str  # why, in one line
    until: datetime | None  # when it ends; null if somebody has to lift it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FreezeOfLock(PlacedFreeze):
    """A freeze, with who placed it."""

    by: str | None  # the principal who froze the state
    since: Time  # when
    ended: Flag  # whether its end has passed, by the clock of S3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lock(Document):
    """A lock. A list shows the first 200 characters of each text."""

    id: str  # as the client chose it
    version: str  # the ID of the lock's object version, which names this very lock
    who: str  # the user and the machine, as the client says
    principal: str | None  # who acquired it; null if another program did
    operation: str  # what it is for, as the client says
    info: str  # what else the client says
    since: Time  # when it was acquired
    freeze: FreezeOfLock | None  # the freeze, if the lock is one


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListedLock(Lock):
    """A lock in a list of locks, with its state."""

    name: str  # of the state


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StateItem(Document):
    """A state in a list."""

    name: str  # of the state
    size: int | None  # bytes of the current version; null if there is none, as where there is only a lock
    modified: datetime | None  # when that was written, or the state deleted
    deleted: Flag  # whether the state is deleted
    lock: Lock | None  # the lock that is held


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StatePage(Document):
    """A page of states."""

    states: tuple[StateItem, ...]  # by name
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resources(Document):
    """How much a state tracks."""

    managed: Number  # instances of resources
    data: Number  # instances of data sources
    outputs: Number  # of the root module


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StateDescription(Document):
    """A state. Most is null where there is only a lock, or a name that was declared."""

    name: str  # of the state
    version: str | None  # the ID of the current version
    size: int | None  # its bytes
    modified: datetime | None  # when it was written
    serial: int | None  # its serial
    lineage: str | None  # its lineage
    terraform_version: str | None  # of the client that wrote it
    principal: str | None  # who wrote it; null for another program's version
    who: str | None  # the user and the machine, as the client says
    operation: str | None  # what the client did
    status: _Status  # what became of its write
    encrypted: bool | None  # whether the client encrypted it
    resources: Resources | None  # how much it tracks
    lock: Lock | None  # the lock that is held
    record: Flag  # whether the name was declared, or a workspace has it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Version(Document):
    """A version, or a delete marker, which has no more than its ID and its time."""

    version: str  # its ID
    time: Time  # when it was written
    size: int | None  # its bytes
    current: Flag  # whether it is the newest
    delete_marker: Flag  # whether it is a delete marker
    serial: int | None  # of its document; null for another program's version, as the members below but status
    lineage: str | None  # of its document
    terraform_version: str | None  # of the client that wrote it
    principal: str | None  # who wrote it
    who: str | None  # the user and the machine, as the client says
    operation: str | None  # what the client did
    lock_id: str | None  # the lock under which it was written
    sha256: str | None  # of the content, hexadecimal
    status: _Status  # what became of its write
    restored_from: str | None  # the version whose content it has, if a restore wrote it
    reason: str | None  # why it was restored


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VersionPage(Document):
    """A page of the history of a state."""

    name: str  # of the state
    versions: tuple[Version, ...]  # newest first
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResolvedVersion(Document):
    """A version that a reference means."""

    version: str  # its ID
    serial: int | None  # its serial; null for a delete marker and another program's version
    time: Time  # when it was written
    status: _Status  # what became of its write; null for a delete marker


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resolved(Document):
    """What a reference means. What changes a state takes the exact IDs alone."""

    name: str  # of the state
    reference: str  # as it was sent
    found: ResolvedVersion | None  # the version that it means; null if the search goes on with `next`
    current: ResolvedVersion | None  # the one that was current when the search began; null if there was none
    next: str | None  # the cursor with which the search goes on


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NamePage(Document):
    """A page of names."""

    names: tuple[str, ...]  # of states, in order
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Side(Document):
    """One of two versions that are compared."""

    version: str  # its ID
    serial: Number  # its serial
    terraform_version: str  # of the client that wrote it
    time: Time  # when it was written
    size: Number  # its bytes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributeChange(Document):
    """An attribute of a resource, or a part of one, that differs."""

    path: str  # such as `tags["env"]`
    change: _Change  # what happened to it
    before: str | None  # the value as JSON; null if there was none, or it is not told
    after: str | None  # the same of the newer version
    sensitive: Flag  # whether a version marks it, so that its value is never told


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResourceChange(Document):
    """A resource that differs."""

    address: str  # as clients print it
    change: _Change  # what happened to it
    moved_from: str | None  # its address in the older version, if it was moved
    type: str  # of the resource
    tainted: bool | None  # whether it became tainted; null if it is as tainted as before
    attributes: tuple[AttributeChange, ...]  # those that differ


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputChange(Document):
    """An output that differs."""

    name: str  # of the output
    change: _Change  # what happened to it
    before: str | None  # the value as JSON; null if there was none, or it is not told
    after: str | None  # the same of the newer version
    sensitive: Flag  # whether a version marks it, so that its value is never told


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Differences(Document):
    """What differs between two versions of a state."""

    name: str  # of the state
    from_: Side  # the older version
    to: Side  # the newer version
    encrypted: Flag  # whether the client encrypted either, so that their content cannot be compared
    values: Flag  # whether values are told
    lineage_changed: Flag  # whether their lineages differ
    resources: tuple[ResourceChange, ...]  # those that differ, by address
    outputs: tuple[OutputChange, ...]  # those that differ, by name
    summary: Json  # the number of resources of each kind of change, and of outputs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Restored(Document):
    """The current version after a restore."""

    name: str  # of the state
    version: str  # the ID of the current version
    serial: Number  # its serial
    restored_from: str  # the version whose content it has
    restored_serial: Number  # the serial of that one
    changed: Flag  # false if the state had that content already


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Deleted(Document):
    """The version that was deleted."""

    name: str  # of the state
    version: str | None  # the ID of the version; null if there was none any more


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undeleted(Document):
    """The current version after an undelete."""

    name: str  # of the state
    version: str  # the ID of the current version
    serial: Number  # its serial
    lineage: str  # its lineage
    from_version: str  # the version whose content it has
    from_time: Time  # when that was written


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Declared(Document):
    """A name that was declared."""

    name: str  # of the state
    created: Flag  # false if it was declared already


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LockPage(Document):
    """A page of locks."""

    locks: tuple[ListedLock, ...]  # the oldest of the page first
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LockOfState(Document):
    """The lock of a state."""

    name: str  # of the state
    lock: Lock | None  # the lock that is held


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Removed(Document):
    """Whether a lock was removed."""

    name: str  # of the state
    removed: Flag  # false if there was none any more


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frozen(Document):
    """A state that is frozen."""

    name: str  # of the state
    freeze: PlacedFreeze  # the freeze


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Activity(Document):
    """A page of the audit trail."""

    events: tuple[Json, ...]  # newest first, with the fields of `audit.md`
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Principal(Document):
    """The caller."""

    principal: str  # who they are
    role: Annotated[str, Rule(words=("outputs", "reader", "writer", "maintainer"))]  # what they may do
    scope: tuple[str, ...]  # the patterns of the states that they may do it to
    method: str  # how they proved who they are
    trust: str | None  # the trust record that says what they may do
    expires: datetime | None  # when their credentials end


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Error(Document):
    """An error of Holdfast."""

    error: str  # what happened, for programs
    message: str  # what happened and what to do, for people


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LockedError(Error):
    """An error about a lock that is in the way."""

    lock: Json  # the holder's lock info, in the form of Terraform


# --- what it is sent -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Restore(Document):
    """What is to be current, and why."""

    version: _VersionId  # the ID of the version whose content is written again
    reason: _Reason  # one line
    id: _CommandId  # random for each command; a retry has the same
    current: _LeftOut  # the version that was current when the operator looked; another one is refused


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Delete(Document):
    """What the operator saw."""

    version: _VersionId  # the ID of the current version; another one is not deleted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undelete(Document):
    """What the operator saw."""

    marker: _VersionId  # the version ID of the delete marker that is undone


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Freeze(Document):
    """Why a state is frozen, and until when."""

    reason: _Reason  # one line
    until: Annotated[datetime | None, Presence.OPTIONAL]  # in the future
    id: _CommandId  # random for each command; a retry has the same
