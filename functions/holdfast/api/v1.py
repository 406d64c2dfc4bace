"""The documents of `/manage/v1/`. Members keep their names and their meanings; new members may be added.

The comment behind a member is its description, in docs/openapi.yaml too.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from holdfast.access import Action, Role
from holdfast.api.form import Document, Flag, Json, Number, Presence, Rule, Time

STATUSES: Final = ("acknowledged", "never_acknowledged", "other_program")
"""The outcomes of the write that created a version."""
ACKNOWLEDGED, NEVER_ACKNOWLEDGED, OTHER_PROGRAM = STATUSES
MODES: Final = ("managed", "data")
"""The modes of resources."""
SKIPPED: Final = ("too_large", "encrypted", "unreadable")
"""The reasons not to search a state."""

_Status = Annotated[str | None, Rule(words=STATUSES)]
_Change = Annotated[str, Rule(words=("added", "removed", "moved", "replaced", "changed"))]
_Reason = Annotated[str, Rule(min_length=1, max_length=200)]
_Note = Annotated[str | None, Rule(min_length=1, max_length=200), Presence.LEFT_OUT]
_CommandId = Annotated[str, Rule(pattern="^[0-9a-f]{32}$")]
_LeftOut = Annotated[str | None, Presence.LEFT_OUT]
_Wanted = Annotated[str | None, Rule(min_length=1, max_length=1000), Presence.LEFT_OUT]
_VersionId = Annotated[str, Rule(min_length=1, max_length=128)]

# --- responses -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacedFreeze(Document):
    """A freeze, without the principal who froze the state."""

    id: str  # the ID of the command that froze the state
    reason: str  # why the state is frozen, in one line
    until: datetime | None  # when the freeze ends; null if it lasts until somebody unfreezes the state


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FreezeOfLock(PlacedFreeze):
    """A freeze, with the principal who froze the state."""

    by: str | None  # the principal who froze the state
    since: Time  # when the principal froze the state
    ended: Flag  # whether the end of the freeze has passed, by S3's clock


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lock(Document):
    """A lock. A list shows the first 200 characters of each text."""

    id: str  # the lock ID that the client chose
    version: str  # the version ID of the lock object, which identifies exactly this lock
    who: str  # the user and the machine, as the client says
    principal: str | None  # who acquired the lock; null if another program than Holdfast acquired it
    owner: str | None  # who uses the credentials, as their creator said then; null if unsaid
    operation: str  # the operation for which the client acquired the lock, as the client says
    info: str  # a further text from the client
    since: Time  # when the lock was acquired
    freeze: FreezeOfLock | None  # the freeze; null if the lock is not a freeze


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListedLock(Lock):
    """A lock in a list of locks, with its state."""

    name: str  # the name of the state


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StateItem(Document):
    """A state in a list."""

    name: str  # the name of the state
    size: int | None  # bytes of the current version; null if only a lock exists, or the state is deleted
    modified: datetime | None  # when the state was last written or deleted; with `declared`, its record
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
    outputs: Number  # outputs of the root module


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StateDescription(Document):
    """A state. Most members are null if it has no version, only a lock or a declared name."""

    name: str  # the name of the state
    version: str | None  # the ID of the current version
    size: int | None  # bytes of the current version
    modified: datetime | None  # when the current version was written
    serial: int | None  # the serial of the current version
    lineage: str | None  # the lineage of the current version
    terraform_version: str | None  # the version of the client that wrote the current version
    principal: str | None  # who wrote the current version; null for another program's version
    owner: str | None  # who uses the credentials, as their creator said then; null if unsaid
    who: str | None  # the user and the machine, as the client says
    operation: str | None  # what the client did
    status: _Status  # the outcome of the write of the current version
    encrypted: bool | None  # whether the client encrypted the current version
    resources: Resources | None  # the numbers of instances and outputs in the version; null if unknown
    lock: Lock | None  # the current lock
    record: Flag  # whether the name has a record: it was declared, or is a workspace's
    record_version: str | None  # the version ID of the record


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Version(Document):
    """A version, or a delete marker, which has only an ID and a time."""

    version: str  # the version ID
    time: Time  # when the entry was written
    size: int | None  # bytes of the version
    current: Flag  # whether the entry is the newest of the history
    delete_marker: Flag  # whether the entry is a delete marker
    serial: int | None  # the serial; null for another program's version, as all members below but `status`
    lineage: str | None  # the lineage
    terraform_version: str | None  # the version of the client that wrote this version
    principal: str | None  # who wrote the version
    owner: str | None  # who uses the credentials, as their creator said then; null if unsaid
    who: str | None  # the user and the machine, as the client says
    operation: str | None  # what the client did
    lock_id: str | None  # the ID of the lock under which the version was written
    sha256: str | None  # the SHA-256 of the content, hexadecimal
    status: _Status  # the outcome of its write
    restored_from: str | None  # the version whose content a restore wrote again
    reason: str | None  # why that version was restored


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VersionPage(Document):
    """A page of the history of a state."""

    name: str  # the name of the state
    versions: tuple[Version, ...]  # newest first
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResolvedVersion(Document):
    """The version to which a reference resolves."""

    version: str  # the version ID
    serial: int | None  # the serial; null for a delete marker and another program's version
    time: Time  # when the version was written
    status: _Status  # the outcome of the write; null for a delete marker


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resolved(Document):
    """A resolved reference. Requests that change a state accept exact version IDs alone."""

    name: str  # the name of the state
    reference: str  # the reference as the client sent it
    found: ResolvedVersion | None  # the version that it means; null if the search continues with `next`
    current: ResolvedVersion | None  # the current version when the search began; null for a deleted state
    next: str | None  # the cursor with which the search continues


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NamePage(Document):
    """A page of names."""

    names: tuple[str, ...]  # the names of states, in order
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Side(Document):
    """One of the two compared versions."""

    version: str  # the version ID
    serial: Number  # the serial
    terraform_version: str  # the version of the client that wrote it
    time: Time  # when the version was written
    size: Number  # bytes of the version
    principal: str | None  # who wrote the version; null for another program's version
    owner: str | None  # who uses the credentials, as their creator said then; null if unsaid
    who: str | None  # the user and the machine, as the client says
    operation: str | None  # what the client did


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Providers(Document):
    """The configuration of a resource's provider, such as `provider["example.com/acme/cloud"].west`."""

    before: str  # in the older version
    after: str  # in the newer version


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributeChange(Document):
    """A difference in an attribute of a resource, or in a part of an attribute."""

    path: str  # such as `tags["env"]`
    change: _Change  # the kind of change
    before: str | None  # the older value as JSON; null if it was absent or is hidden
    after: str | None  # the newer value as JSON; null if it is absent or hidden
    sensitive: Flag  # whether either version marks the value as sensitive, so that it is always hidden


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResourceChange(Document):
    """A resource that differs."""

    address: str  # as clients print it
    change: _Change  # the kind of change
    moved_from: str | None  # its address in the older version, if it was moved
    type: str  # the type of the resource
    tainted: bool | None  # whether the resource is tainted now; null if this did not change
    provider: Providers | None  # the configuration of its provider; null if this did not change
    attributes: tuple[AttributeChange, ...]  # the attributes that differ


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputChange(Document):
    """An output that differs."""

    name: str  # the name of the output
    change: _Change  # the kind of change
    before: str | None  # the older value as JSON; null if it was absent or is hidden
    after: str | None  # the newer value as JSON; null if it is absent or hidden
    sensitive: Flag  # whether either version marks the value as sensitive, so that it is always hidden
    now_sensitive: bool | None  # whether the newer version marks it as sensitive; null if this did not change


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Differences(Document):
    """The differences between two versions of a state."""

    name: str  # the name of the state
    from_: Side  # the older version
    to: Side  # the newer version
    encrypted: Flag  # whether the client encrypted either version, so that their content cannot be compared
    values: Flag  # whether values are shown
    lineage_changed: Flag  # whether their lineages differ
    resources: tuple[ResourceChange, ...]  # the resources that differ, by address
    outputs: tuple[OutputChange, ...]  # the outputs that differ, by name
    summary: Json  # the number of resources for each kind of change, and the number of changed outputs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resource(Document):
    """An object that a state tracks, without its attributes. Texts are cut to 500 characters."""

    address: str  # as clients print it
    module: str | None  # the address of its module; null for the root module
    mode: Annotated[str, Rule(words=MODES)]  # whether it is a resource or a data source
    type: str  # the type of the resource
    name: str  # the name of the resource, without the key of an instance
    provider: str  # the source address of the provider, such as `hashicorp/aws` with its host name
    tainted: Flag  # whether the next apply replaces it
    deposed: str | None  # the ID of a deposed object, which the next apply destroys; null for the current one


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResourcePage(Document):
    """A page of the objects that a version of a state tracks."""

    name: str  # the name of the state
    version: str  # the ID of the version: the current one when the first page was read
    encrypted: Flag  # whether the client encrypted the version, so that nothing can be listed
    resources: tuple[Resource, ...]  # in the order of the version
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributeValue(Document):
    """An attribute of a resource, or a part of an attribute."""

    path: str  # such as `tags["env"]`
    value: str | None  # the value as JSON; null if it is hidden
    sensitive: Flag  # whether the state marks the value as sensitive, so that it is always hidden


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attributes(Document):
    """A resource of one version, with its attributes. Attributes that are null are left out."""

    name: str  # the name of the state
    version: str  # the ID of the version
    address: str  # as clients print it; cut to 500 characters, as all texts of the resource
    type: str  # the type of the resource
    provider: str  # the source address of the provider, such as `hashicorp/aws` with its host name
    tainted: Flag  # whether the next apply replaces it
    values: Flag  # whether values are shown
    attributes: tuple[AttributeValue, ...]  # by name, objects and lists in their parts


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FoundState(Document):
    """A state with resources that match."""

    name: str  # the name of the state
    matches: Number  # the number of resources that match
    resources: tuple[Resource, ...]  # at most the first 100 of them


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SkippedState(Document):
    """A state that was not searched."""

    name: str  # the name of the state
    why: Annotated[str, Rule(words=SKIPPED)]  # why it was not searched
    size: Number  # bytes of its current version


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FoundPage(Document):
    """A page of a search. A page without a match may have a next page."""

    states: tuple[FoundState, ...]  # the states with matches, in order
    skipped: tuple[SkippedState, ...]  # the states that were not searched, in order
    searched: Number  # the number of states that this page covers, skipped ones included
    left: int | None  # the number of states that follow; null if there are too many to count
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Restored(Document):
    """The current version after a restore."""

    name: str  # the name of the state
    version: str  # the ID of the current version
    serial: Number  # the serial of the current version
    restored_from: str  # the version whose content the current version has
    restored_serial: Number  # the serial of the version in `restored_from`
    lineage: str  # the lineage of the current version
    changed: Flag  # false if the state already had this content


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Deleted(Document):
    """The version that was deleted."""

    name: str  # the name of the state
    version: str | None  # the ID of the version; null if the state was already deleted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undeleted(Document):
    """The current version after an undelete."""

    name: str  # the name of the state
    version: str  # the ID of the current version
    serial: Number  # the serial of the current version
    lineage: str  # the lineage of the current version
    from_version: str  # the version whose content the current version has
    from_time: Time  # when the version in `from_version` was written


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Declared(Document):
    """A declared name."""

    name: str  # the name of the state
    created: Flag  # false if the name was already declared


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undeclared(Document):
    """A name that is no longer declared."""

    name: str  # the name of the state
    removed: Flag  # false if the name had no record


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LockPage(Document):
    """A page of locks."""

    locks: tuple[ListedLock, ...]  # the oldest of the page first
    next: str | None  # the cursor of the next page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LockOfState(Document):
    """The lock of a state."""

    name: str  # the name of the state
    lock: Lock | None  # the current lock


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Removed(Document):
    """The result of removing a lock."""

    name: str  # the name of the state
    removed: Flag  # false if the state was already unlocked


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frozen(Document):
    """A frozen state."""

    name: str  # the name of the state
    freeze: PlacedFreeze  # the freeze


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PatternFreeze(PlacedFreeze):
    """A frozen pattern: no state that matches it may be created."""

    pattern: str  # the pattern of names
    by: str  # the principal who froze it
    owner: str | None  # who uses the credentials, as their creator said then; null if unsaid
    since: datetime | None  # when it was frozen; null in the response to its freeze
    liftable: Flag  # whether the caller may unfreeze it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrozenPattern(Document):
    """A frozen pattern, and the listed names that match it and have a state or a lock."""

    freeze: PatternFreeze  # the freeze; with another ID an earlier freeze of the pattern
    frozen: tuple[str, ...]  # names that are frozen by it
    names: tuple[str, ...]  # names with another lock or freeze: the client freezes them one by one
    next: str | None  # the `cursor` with which the client sends the same request again; null at the end


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PatternFreezes(Document):
    """The frozen patterns that the caller's scope covers whole."""

    freezes: tuple[PatternFreeze, ...]  # in the order in which they were frozen


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CoveredState(Document):
    """An unfrozen state that another frozen pattern covers."""

    name: str  # the name of the state
    freeze: PatternFreeze  # the freeze of that pattern
    frozen: Flag  # whether this freeze freezes the state; false if somebody acquired its lock in between


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiftedPattern(Document):
    """The result of unfreezing a pattern, and the listed states that its freeze froze."""

    pattern: str | None  # the pattern; null if no frozen pattern has this ID
    unfrozen: tuple[str, ...]  # names of states that are not frozen any more
    covered: tuple[CoveredState, ...]  # unfrozen states that another frozen pattern covers
    next: str | None  # the `cursor` with which the client sends the same request again; null at the end


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Activity(Document):
    """A page of the audit trail."""

    events: tuple[Json, ...]  # newest first, with the fields of `audit-events.md`
    next: str | None  # the cursor of the next page


_ROLES: Final = tuple(Role)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grant(Document):
    """A role for some states."""

    role: Annotated[str, Rule(words=_ROLES)]  # what it allows
    scope: tuple[str, ...]  # the patterns of the states to which the role applies


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AllowedAction(Document):
    """An action on states, and who may do it where."""

    action: Annotated[str, Rule(words=tuple(Action))]  # the action
    scope: tuple[str, ...]  # the patterns of the states to which the caller may do it; empty if to none
    roles: tuple[str, ...]  # the roles that allow it, the least first


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Principal(Document):
    """The caller."""

    team: str  # the name of the team whose API this is
    account: str  # the ID of the team's AWS account
    principal: str  # who they are
    owner: str | None  # who uses their credentials, as the creator said; null if unsaid
    role: Annotated[str | None, Rule(words=_ROLES)]  # what they may do; null if they have several grants
    scope: tuple[str, ...] | None  # the patterns of the states to which the role applies
    grants: tuple[Grant, ...]  # all that they have been granted; they may do what any of these allows
    may: tuple[AllowedAction, ...]  # every action, with the states to which they may do it
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
    frozen: _LeftOut  # the ID of your own freeze, which then is the lock; it needs `current`


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Find(Document):
    """What to look for: exactly one of `address`, `type` and `id`. It appears in no log."""

    address: _Wanted  # a part of the address; the case of ASCII letters does not matter
    type: _Wanted  # the whole type
    id: _Wanted  # the whole value of the attribute `id`, `arn`, `self_link` or `urn`
    prefix: _LeftOut  # the beginning of the names of the states to search
    cursor: _LeftOut  # `next` of the page before


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Delete(Document):
    """The version that the operator saw."""

    version: _VersionId  # the ID of the current version; if it has changed, nothing is deleted
    reason: _Note  # one line for the audit trail


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undelete(Document):
    """The delete marker that the operator saw."""

    marker: _VersionId  # the version ID of the delete marker to undo
    reason: _Note  # one line for the audit trail


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undeclare(Document):
    """The record that the operator saw."""

    record: _VersionId  # the version ID of the record; if it has changed, the name stays declared


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Freeze(Document):
    """Why a state is frozen, and until when."""

    reason: _Reason  # one line
    until: Annotated[datetime | None, Presence.OPTIONAL]  # when the freeze ends, a time in the future
    id: _CommandId  # random for each command; a retry has the same


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FreezePattern(Freeze):
    """A pattern to freeze."""

    pattern: str  # as in a scope, with a `*`
    cursor: _LeftOut  # `next` of the response before
