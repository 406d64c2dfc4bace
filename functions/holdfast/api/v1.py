"""The documents of `/manage/v1/`. Members keep their names and their meanings; new members may be added.

The comment behind a member is its description, in docs/openapi.yaml too.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from holdfast.api.form import Document, Flag, Json, Number, Presence, Rule, Time

STATUSES: Final = ("acknowledged", "never_acknowledged", "other_program")
"""The outcomes of the write that created a version."""
ACKNOWLEDGED, NEVER_ACKNOWLEDGED, OTHER_PROGRAM = STATUSES

_Status = Annotated[str | None, Rule(words=STATUSES)]
_Change = Annotated[str, Rule(words=("added", "removed", "moved", "replaced", "changed"))]
_Reason = Annotated[str, Rule(min_length=1, max_length=200)]
_CommandId = Annotated[str, Rule(pattern="^[0-9a-f]{32}$")]
_LeftOut = Annotated[str | None, Presence.LEFT_OUT]
_VersionId = Annotated[str, Rule(min_length=1, max_length=128)]

# --- responses -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacedFreeze(Document):
    """A freeze, without who placed it."""

    id: str  # of the command that froze the state
    reason: str  # why, in one line
    until: datetime | None  # when it ends; null if it lasts until somebody lifts it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FreezeOfLock(PlacedFreeze):
    """A freeze, with who placed it."""

    by: str | None  # the principal who froze the state
    since: Time  # when
    ended: Flag  # whether its end has passed, by S3's clock


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lock(Document):
    """A lock. A list shows the first 200 characters of each text."""

    id: str  # as the client chose it
    version: str  # the version ID of the lock object, which identifies exactly this lock
    who: str  # the user and the machine, as the client says
    principal: str | None  # who acquired it; null if another program did
    operation: str  # what it is for, as the client says
    info: str  # further text of the client
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
    size: int | None  # bytes of the current version; null without a version, such as for a lock alone
    modified: datetime | None  # when the current version was written, or the state was deleted
    deleted: Flag  # whether the state is deleted
    lock: Lock | None  # the current lock


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StatePage(Document):
    """A page of states."""

    states: tuple[StateItem, ...]  # by name
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resources(Document):
    """The numbers of instances and outputs in a state."""

    managed: Number  # instances of resources
    data: Number  # instances of data sources
    outputs: Number  # of the root module


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StateDescription(Document):
    """A state. Most members are null if it has no version, only a lock or a declared name."""

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
    status: _Status  # the outcome of its write
    encrypted: bool | None  # whether the client encrypted it
    resources: Resources | None  # the numbers of its instances and outputs
    lock: Lock | None  # the current lock
    record: Flag  # whether the name has a record: it was declared, or is a workspace's


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Version(Document):
    """A version, or a delete marker, which has only an ID and a time."""

    version: str  # its ID
    time: Time  # when it was written
    size: int | None  # its bytes
    current: Flag  # whether it is the newest
    delete_marker: Flag  # whether it is a delete marker
    serial: int | None  # of its document; null, like all below but status, for another program's version
    lineage: str | None  # of its document
    terraform_version: str | None  # of the client that wrote it
    principal: str | None  # who wrote it
    who: str | None  # the user and the machine, as the client says
    operation: str | None  # what the client did
    lock_id: str | None  # the lock under which it was written
    sha256: str | None  # of the content, hexadecimal
    status: _Status  # the outcome of its write
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
    """The version to which a reference resolves."""

    version: str  # its ID
    serial: int | None  # its serial; null for a delete marker and another program's version
    time: Time  # when it was written
    status: _Status  # the outcome of its write; null for a delete marker


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resolved(Document):
    """A resolved reference. Requests that change a state accept exact version IDs alone."""

    name: str  # of the state
    reference: str  # as it was sent
    found: ResolvedVersion | None  # the version that it means; null if the search continues with `next`
    current: ResolvedVersion | None  # the current version when the search began; null if it was deleted
    next: str | None  # the cursor with which the search continues


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NamePage(Document):
    """A page of names."""

    names: tuple[str, ...]  # of states, in order
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Side(Document):
    """One of the two compared versions."""

    version: str  # its ID
    serial: Number  # its serial
    terraform_version: str  # of the client that wrote it
    time: Time  # when it was written
    size: Number  # its bytes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributeChange(Document):
    """A difference in an attribute of a resource, or in a part of an attribute."""

    path: str  # such as `tags["env"]`
    change: _Change  # what happened to it
    before: str | None  # the value as JSON; null if it was absent or is hidden
    after: str | None  # the same for the newer version
    sensitive: Flag  # whether either version marks it sensitive, so that its value is always hidden


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResourceChange(Document):
    """A resource that differs."""

    address: str  # as clients print it
    change: _Change  # what happened to it
    moved_from: str | None  # its address in the older version, if it was moved
    type: str  # of the resource
    tainted: bool | None  # whether it is tainted now; null if that did not change
    attributes: tuple[AttributeChange, ...]  # the attributes that differ


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputChange(Document):
    """An output that differs."""

    name: str  # of the output
    change: _Change  # what happened to it
    before: str | None  # the value as JSON; null if it was absent or is hidden
    after: str | None  # the same for the newer version
    sensitive: Flag  # whether either version marks it sensitive, so that its value is always hidden


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Differences(Document):
    """The differences between two versions of a state."""

    name: str  # of the state
    from_: Side  # the older version
    to: Side  # the newer version
    encrypted: Flag  # whether the client encrypted either version, so that their content cannot be compared
    values: Flag  # whether values are shown
    lineage_changed: Flag  # whether their lineages differ
    resources: tuple[ResourceChange, ...]  # the resources that differ, by address
    outputs: tuple[OutputChange, ...]  # the outputs that differ, by name
    summary: Json  # the number of changed resources by kind of change, and of changed outputs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Restored(Document):
    """The current version after a restore."""

    name: str  # of the state
    version: str  # the ID of the current version
    serial: Number  # its serial
    restored_from: str  # the version whose content it has
    restored_serial: Number  # the serial of that version
    changed: Flag  # false if the state had that content already


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Deleted(Document):
    """The version that was deleted."""

    name: str  # of the state
    version: str | None  # the ID of the version; null if the state was already deleted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undeleted(Document):
    """The current version after an undelete."""

    name: str  # of the state
    version: str  # the ID of the current version
    serial: Number  # its serial
    lineage: str  # its lineage
    from_version: str  # the version whose content it has
    from_time: Time  # when that version was written


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Declared(Document):
    """A declared name."""

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
    lock: Lock | None  # the current lock


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Removed(Document):
    """The result of removing a lock."""

    name: str  # of the state
    removed: Flag  # false if the state was already unlocked


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frozen(Document):
    """A frozen state."""

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
    scope: tuple[str, ...]  # the patterns of the states to which the role applies
    method: str  # how they authenticated
    trust: str | None  # the trust record that grants role and scope
    expires: datetime | None  # when their credentials end


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Error(Document):
    """An error of Holdfast."""

    error: str  # what happened, for programs
    message: str  # what happened and what to do, for people


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LockedError(Error):
    """An error because of a lock."""

    lock: Json  # the holder's lock info, in the form of Terraform


# --- requests ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Restore(Document):
    """The version to restore, and why."""

    version: _VersionId  # the ID of the version whose content is written again
    reason: _Reason  # one line
    id: _CommandId  # random for each command; a retry has the same
    current: _LeftOut  # the current version that the operator saw; if it has changed, the restore is refused


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Delete(Document):
    """The version that the operator saw."""

    version: _VersionId  # the ID of the current version; if it has changed, nothing is deleted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undelete(Document):
    """The delete marker that the operator saw."""

    marker: _VersionId  # the version ID of the delete marker to undo


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Freeze(Document):
    """Why a state is frozen, and until when."""

    reason: _Reason  # one line
    until: Annotated[datetime | None, Presence.OPTIONAL]  # in the future
    id: _CommandId  # random for each command; a retry has the same
