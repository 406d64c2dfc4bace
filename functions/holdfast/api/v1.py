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
    """A freeze, without the principal who placed it."""

    id: str  # the ID of the command that froze the state or the pattern
    reason: str  # why the state or the pattern is frozen, in one line
    until: datetime | None  # when the freeze ends; null if only an unfreeze ends it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FreezeOfLock(PlacedFreeze):
    """A freeze, with the principal who placed it."""

    by: str | None  # the principal who froze the state
    since: Time  # when the principal froze the state
    ended: Flag  # whether the end of the freeze has passed, by S3's clock


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lock(Document):
    """A lock. A list shows the first 200 characters of each text that the client chose."""

    id: str  # the ID of the lock
    version: str  # the version ID of the lock object, which identifies exactly this lock
    who: str  # the user and machine that the client names, or the principal; can be empty
    principal: str | None  # the principal who acquired the lock; null if another program did
    owner: str | None  # the owner of the credentials, as an operator named it; null if none is stored
    operation: str  # why the lock was acquired, such as `OperationTypeApply` or `cloud`
    info: str  # a further text of the client about the operation
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
    size: int | None  # bytes of the current version; null if there is no current version
    modified: datetime | None  # when the state (with `declared`: its record) was last written or deleted
    deleted: Flag  # whether the state is deleted
    lock: Lock | None  # the current lock; null if the state is not locked, and in a list with `declared`


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StatePage(Document):
    """A page of states."""

    states: tuple[StateItem, ...]  # the states, in the order of their S3 keys
    next: str | None  # the cursor of the next page; null on the last page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resources(Document):
    """The numbers of instances and outputs in a state."""

    managed: Number  # the number of instances of resources
    data: Number  # the number of instances of data sources
    outputs: Number  # the number of outputs of the root module


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StateDescription(Document):
    """A state. Most members are null if the name has only a lock or a record, but no current version."""

    name: str  # the name of the state
    version: str | None  # the ID of the current version
    size: int | None  # bytes of the current version
    modified: datetime | None  # when the current version was written
    serial: int | None  # the serial of the current version
    lineage: str | None  # the lineage of the current version
    terraform_version: str | None  # the `terraform_version` in the current version
    principal: str | None  # the principal who wrote that version; null for a version of another program
    owner: str | None  # the owner of the credentials, as an operator named it; null if none is stored
    who: str | None  # the user and machine that the client names, or the principal; null if unknown
    operation: str | None  # the operation, such as `OperationTypeApply`, `cloud` or `restore`
    status: _Status  # the outcome of the write of the current version
    encrypted: bool | None  # whether the client encrypted the current version
    resources: Resources | None  # the numbers of instances and outputs in the version; null if unknown
    lock: Lock | None  # the current lock; null if the state is not locked
    record: Flag  # whether the name has a record, because it was declared or is the name of a workspace
    record_version: str | None  # the version ID of the record


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Version(Document):
    """An entry of the history: a version, or a delete marker, which has no content."""

    version: str  # the version ID
    time: Time  # when the entry was written
    size: int | None  # bytes of the version
    current: Flag  # whether the entry is the newest of the history
    delete_marker: Flag  # whether the entry is a delete marker
    serial: int | None  # the serial; null for a delete marker, and for a version of another program
    lineage: str | None  # the lineage; null if `serial` is null
    terraform_version: str | None  # the `terraform_version` in the state; null if unknown
    principal: str | None  # the principal who wrote the version; null if `serial` is null
    owner: str | None  # the owner of the credentials, as an operator named it; null if none is stored
    who: str | None  # the user and machine that the client names, or the principal; null if unknown
    operation: str | None  # the operation, such as `OperationTypeApply`, `cloud` or `restore`
    lock_id: str | None  # the ID of the lock under which the version was written; null if unknown
    sha256: str | None  # the SHA-256 of the content, hexadecimal; null if `serial` is null
    status: _Status  # the outcome of the write of the version; null for a delete marker
    restored_from: str | None  # for a restore, the ID of the version whose content it wrote again
    reason: str | None  # for a restore, why the version was restored


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VersionPage(Document):
    """A page of the history of a state."""

    name: str  # the name of the state
    versions: tuple[Version, ...]  # the entries of the history, newest first
    next: str | None  # the cursor of the next page; null on the last page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResolvedVersion(Document):
    """The version to which a reference resolves."""

    version: str  # the version ID
    serial: int | None  # the serial; null for a delete marker, and for a version of another program
    time: Time  # when the version was written
    status: _Status  # the outcome of the write; null for a delete marker


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resolved(Document):
    """A resolved reference. Requests that change a state accept only exact version IDs."""

    name: str  # the name of the state
    reference: str  # the reference as the client sent it
    found: ResolvedVersion | None  # the version that the reference means; null if the search is not complete
    current: ResolvedVersion | None  # the version that was current when the search began; null if none was
    next: str | None  # the cursor with which the search continues; null if the search is complete


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NamePage(Document):
    """A page of names."""

    names: tuple[str, ...]  # the names of states, in order
    next: str | None  # the cursor of the next page; null on the last page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Side(Document):
    """One of the two compared versions."""

    version: str  # the version ID
    serial: Number  # the serial
    terraform_version: str  # the `terraform_version` in the state
    time: Time  # when the version was written
    size: Number  # bytes of the version
    principal: str | None  # the principal who wrote the version; null for a version of another program
    owner: str | None  # the owner of the credentials, as an operator named it; null if none is stored
    who: str | None  # the user and machine that the client names, or the principal; null if unknown
    operation: str | None  # the operation, such as `OperationTypeApply`, `cloud` or `restore`


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Providers(Document):
    """The configuration of a resource's provider, such as `provider["example.com/acme/cloud"].west`."""

    before: str  # the configuration in the older version
    after: str  # the configuration in the newer version


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributeChange(Document):
    """A difference in an attribute of a resource, or in a part of an attribute."""

    path: str  # the path in the resource, such as `tags["env"]`
    change: _Change  # the kind of change
    before: str | None  # the older value as JSON; null if it was absent or is hidden
    after: str | None  # the newer value as JSON; null if it is absent or hidden
    sensitive: Flag  # whether either version marks the value as sensitive; such a value is always hidden


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResourceChange(Document):
    """A resource that differs. Without values, an added or removed resource has no `attributes`."""

    address: str  # the address, as clients print it
    change: _Change  # the kind of change
    moved_from: str | None  # its address in the older version; null if it was not moved
    type: str  # the type of the resource
    tainted: bool | None  # whether the resource is tainted in the newer version; null if unchanged
    provider: Providers | None  # the configuration of its provider; null if unchanged
    attributes: tuple[AttributeChange, ...]  # the attributes that differ


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutputChange(Document):
    """An output that differs."""

    name: str  # the name of the output
    change: _Change  # the kind of change
    before: str | None  # the older value as JSON; null if it was absent or is hidden
    after: str | None  # the newer value as JSON; null if it is absent or hidden
    sensitive: Flag  # whether either version marks the value as sensitive; such a value is always hidden
    now_sensitive: bool | None  # whether it is sensitive in the newer version; null if unchanged


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Differences(Document):
    """The differences between two versions of a state."""

    name: str  # the name of the state
    from_: Side  # the older version
    to: Side  # the newer version
    encrypted: Flag  # whether the client encrypted either version; Holdfast then cannot compare the contents
    values: Flag  # whether values are shown
    lineage_changed: Flag  # whether the lineages of the two versions differ
    resources: tuple[ResourceChange, ...]  # the resources that differ, by address
    outputs: tuple[OutputChange, ...]  # the outputs that differ, by name
    summary: Json  # the number of resources for each kind of change, and the number of changed outputs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Resource(Document):
    """An object that a state tracks, without its attributes. Texts are cut to 500 characters."""

    address: str  # the address, as clients print it
    module: str | None  # the address of its module; null for the root module
    mode: Annotated[str, Rule(words=MODES)]  # whether it is a resource or a data source
    type: str  # the type of the resource
    name: str  # the name of the resource, without the key of an instance
    provider: str  # the source address of the provider, such as `example.com/acme/cloud`
    tainted: Flag  # whether the resource is tainted: the next apply then replaces it
    deposed: str | None  # the ID of a deposed object, which the next apply destroys; null for other objects


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResourcePage(Document):
    """A page of the objects that a version of a state tracks."""

    name: str  # the name of the state
    version: str  # the ID of the version that was current when the first page was read
    encrypted: Flag  # whether the client encrypted the version; the list is then empty
    resources: tuple[Resource, ...]  # the objects, in the order of the version
    next: str | None  # the cursor of the next page; null on the last page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributeValue(Document):
    """An attribute of a resource, or a part of an attribute."""

    path: str  # the path in the resource, such as `tags["env"]`
    value: str | None  # the value as JSON; null if it is hidden
    sensitive: Flag  # whether the state marks the value as sensitive; such a value is always hidden


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attributes(Document):
    """A resource of one version, with its attributes. Attributes that are null are left out."""

    name: str  # the name of the state
    version: str  # the ID of the version
    address: str  # the address, as clients print it; like all texts of the resource, cut to 500 characters
    type: str  # the type of the resource
    provider: str  # the source address of the provider, such as `example.com/acme/cloud`
    tainted: Flag  # whether the resource is tainted: the next apply then replaces it
    values: Flag  # whether values are shown
    attributes: tuple[AttributeValue, ...]  # the attributes, by name; objects and lists are split into parts


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FoundState(Document):
    """A state with resources that match the search."""

    name: str  # the name of the state
    matches: Number  # the number of resources that match the search
    resources: tuple[Resource, ...]  # the first of these resources, at most 100


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SkippedState(Document):
    """A state that was not searched."""

    name: str  # the name of the state
    why: Annotated[str, Rule(words=SKIPPED)]  # why it was not searched
    size: Number  # bytes of its current version


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FoundPage(Document):
    """A page of a search. A page without a match may have a next page."""

    states: tuple[FoundState, ...]  # the states with matches, in the order of their S3 keys
    skipped: tuple[SkippedState, ...]  # the states that were not searched, in the order of their S3 keys
    searched: Number  # the number of states that this page covers, including skipped states
    left: int | None  # the number of states that later pages cover; null if there are too many to count
    next: str | None  # the cursor of the next page; null on the last page


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
    version: str | None  # the ID of the version; null if there was no state


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
    created: Flag  # false if the name already had a record or a state


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undeclared(Document):
    """A name that is no longer declared."""

    name: str  # the name of the state
    removed: Flag  # false if the name had no record


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LockPage(Document):
    """A page of locks."""

    locks: tuple[ListedLock, ...]  # the locks of this page, oldest first
    next: str | None  # the cursor of the next page; null on the last page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LockOfState(Document):
    """The lock of a state."""

    name: str  # the name of the state
    lock: Lock | None  # the current lock; null if the state is not locked


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Removed(Document):
    """The result of removing a lock or a freeze."""

    name: str  # the name of the state
    removed: Flag  # false if the lock or freeze was already gone


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frozen(Document):
    """A frozen state."""

    name: str  # the name of the state
    freeze: PlacedFreeze  # the freeze


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PatternFreeze(PlacedFreeze):
    """A frozen pattern. Normally, no state whose name matches the pattern can be created."""

    pattern: str  # the pattern of names
    by: str  # the principal who froze the pattern
    owner: str | None  # the owner of the credentials, as an operator named it; null if none is stored
    since: datetime | None  # when the pattern was frozen; null in the response to the request that froze it
    liftable: Flag  # whether the caller may unfreeze the pattern


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrozenPattern(Document):
    """A frozen pattern, and the listed names that match it and have a state or a lock."""

    freeze: PatternFreeze  # the freeze; if its ID is not the requested one, the pattern was already frozen
    frozen: tuple[str, ...]  # the names that this freeze freezes
    names: tuple[str, ...]  # the names with another lock or freeze; freeze each of them with its own request
    next: str | None  # the `cursor` with which the client repeats the request; null if nothing is left


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PatternFreezes(Document):
    """The frozen patterns that the caller's scope covers completely."""

    freezes: tuple[PatternFreeze, ...]  # the frozen patterns, in the order in which they were frozen


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CoveredState(Document):
    """An unfrozen state that another frozen pattern covers."""

    name: str  # the name of the state
    freeze: PatternFreeze  # the freeze of the other pattern
    frozen: Flag  # whether this freeze froze the state; false if a client acquired the lock first


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiftedPattern(Document):
    """The result of unfreezing a pattern, and the listed states that its freeze froze."""

    pattern: str | None  # the pattern; null if no frozen pattern has this ID
    unfrozen: tuple[str, ...]  # the names of states that are no longer frozen
    covered: tuple[CoveredState, ...]  # the unfrozen states that another frozen pattern covers
    next: str | None  # the `cursor` with which the client repeats the request; null if nothing is left


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Activity(Document):
    """A page of the audit trail."""

    events: tuple[Json, ...]  # the events, newest first, with the fields that `audit-events.md` lists
    next: str | None  # the cursor of the next page; null on the last page


_ROLES: Final = tuple(Role)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grant(Document):
    """A role for some states."""

    role: Annotated[str, Rule(words=_ROLES)]  # the role
    scope: tuple[str, ...]  # the patterns of the states to which the role applies


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AllowedAction(Document):
    """An action on states, the states on which the caller may do it, and the roles that allow it."""

    action: Annotated[str, Rule(words=tuple(Action))]  # the action
    scope: tuple[str, ...]  # the patterns of the states on which the caller may do it; empty for none
    roles: tuple[str, ...]  # the roles that allow the action, in the order of the values of `role`


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Principal(Document):
    """The caller."""

    team: str  # the name of the team whose API this is
    account: str  # the ID of the team's AWS account
    principal: str  # the principal of the caller
    owner: str | None  # the owner of the credentials, as an operator named it; null if none is stored
    role: Annotated[str | None, Rule(words=_ROLES)]  # the role; null if the caller has several grants
    scope: tuple[str, ...] | None  # the patterns of the states of `role`; null if `role` is null
    grants: tuple[Grant, ...]  # all grants; the caller may do what any of them allows
    may: tuple[AllowedAction, ...]  # every action, with the states on which the caller may do it
    method: str  # how the caller authenticated, such as `token` or `session`
    trust: str | None  # the name of the trust record with the grants; null if a token has the grants
    expires: datetime | None  # when the credentials expire; null if they do not expire, or if this is unknown


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Error(Document):
    """An error of Holdfast."""

    error: str  # the error code, for programs
    message: str  # what happened, and what to do, for people


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LockedError(Error):
    """An error because of a lock."""

    lock: Json  # the holder's lock info, in the format of Terraform


# --- requests ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Restore(Document):
    """The version to restore, and why."""

    version: _VersionId  # the ID of the version whose content the restore writes again
    reason: _Reason  # why the version is restored, in one line
    id: _CommandId  # a random ID for each command; a retry uses the same ID
    current: _LeftOut  # the version that the operator saw as current; the restore fails if it no longer is
    frozen: _LeftOut  # the ID of your own freeze, under which the restore writes; requires `current`


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Find(Document):
    """A search: exactly one of `address`, `type` and `id`. No log contains the searched text."""

    address: _Wanted  # a part of the address; the case of ASCII letters is ignored
    type: _Wanted  # the whole type of the resource
    id: _Wanted  # the whole value of the attribute `id`, `arn`, `self_link` or `urn`
    prefix: _LeftOut  # the beginning of the names of the states to search
    cursor: _LeftOut  # the `next` of the previous page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Delete(Document):
    """The version that the operator saw."""

    version: _VersionId  # the ID of the current version; if another version is current, nothing is deleted
    reason: _Note  # why the state is deleted, in one line, for the audit trail


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undelete(Document):
    """The delete marker that the operator saw."""

    marker: _VersionId  # the version ID of the delete marker that the undelete undoes
    reason: _Note  # why the delete is undone, in one line, for the audit trail


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Undeclare(Document):
    """The record that the operator saw."""

    record: _VersionId  # the version ID of the record; if another record is current, nothing changes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Freeze(Document):
    """Why a state is frozen, and until when."""

    reason: _Reason  # why the state is frozen, in one line
    until: Annotated[datetime | None, Presence.OPTIONAL]  # the future end of the freeze; null if it has none
    id: _CommandId  # a random ID for each command; a retry uses the same ID


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FreezePattern(Freeze):
    """A pattern to freeze."""

    pattern: str  # the pattern, as in a scope, with a `*`
    cursor: _LeftOut  # the `next` of the previous response
