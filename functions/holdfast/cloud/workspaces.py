"""Workspaces: read, list, create, tag and delete.

A workspace exists if its state or its record exists. So every state whose name has two or more segments is a
workspace, whichever protocol created it.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from holdfast import at_once
from holdfast.access import Action, Caller
from holdfast.cloud import records
from holdfast.cloud.ids import WorkspaceId
from holdfast.cloud.names import organization_and_workspace, require_organization
from holdfast.errors import (
    BaseChanged,
    DeleteOutcomeUnknown,
    InvalidName,
    JustDeleted,
    NoWorkspace,
    RacedWriter,
    ResourcesTracked,
    UnreadableRecord,
    WorkspaceExists,
)
from holdfast.names import StateName
from holdfast.s3.objects import Object
from holdfast.s3.store import Store
from holdfast.state import catalog, declared, document, fence, held, lock_info
from holdfast.state import delete as state_delete
from holdfast.state.delete import Removed
from holdfast.state.held import HeldLock
from holdfast.state.lock_info import LockInfo
from holdfast.state.operator import check_version_id
from holdfast.work import Work

JUST_DELETED: Final = timedelta(minutes=10)
"""The time for which a client may retry a request.

go-tfe's 30 waits take 0.7 to 0.9 s times 1, 2, … 30, so up to seven minutes. Its attempts take time, too.
"""

_AT_ONCE: Final = 10
"""Records that are read in parallel: as many as the SDK keeps connections."""
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace as a request read it.

    Attributes:
        id: minted by a read by name; later requests of the same command send it.
        created_at: when its record was created; None if it has no record, or the record was not read.
        lock: its state's lock; None if the state is not locked, or the lock was not read.
    """

    id: WorkspaceId
    tags: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    lock: HeldLock | None = None

    @classmethod
    def recorded(
        cls, workspace: WorkspaceId, record: records.Record | None, lock: HeldLock | None = None
    ) -> "Workspace":
        """Return a workspace with the tags and the time of its record, if it has one."""
        if record is None:
            return cls(workspace, lock=lock)
        return cls(workspace, record.tags, record.created_at, lock)

    @property
    def name(self) -> StateName:
        return self.id.name


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter of a list of workspaces.

    Attributes:
        part: a text that the name must contain; empty for all names.
        pattern: a pattern that the whole name must match, with `*` for any text; empty for all names.
        tags: required keys, each with its required value, or None for any value.
        excluded: keys that a workspace must not have.
    """

    part: str = ""
    pattern: str = ""
    tags: tuple[tuple[str, str | None], ...] = ()
    excluded: frozenset[str] = frozenset()

    def has_name(self, workspace: str) -> bool:
        return self.part in workspace and (not self.pattern or _matches(self.pattern, workspace))

    def has_tags(self, tags: Mapping[str, str]) -> bool:
        return self.excluded.isdisjoint(tags) and all(
            key in tags and value in (None, tags[key]) for key, value in self.tags
        )


def read(work: Work) -> Workspace:
    """Read a workspace by name.

    Raises `NoWorkspace` if it does not exist; the client then creates it.
    """
    work.require(Action.READ_METADATA)
    return _minted(work, require_exists(work))


def require_exists(work: Work) -> records.Record | None:
    """Return a workspace's record, None if it only has a state; `NoWorkspace` if it has neither."""
    stored = records.read(work.store, work.name)
    if stored is None and work.store.read_version(work.name.state_key) is None:
        organization, workspace = organization_and_workspace(work.name) or ("", work.name.value)
        raise NoWorkspace(f"There is no workspace '{workspace}' in the organization '{organization}'.")
    return stored.record if stored else None


def read_by_id(work: Work, workspace: WorkspaceId) -> Workspace:
    """Read the workspace of an ID. The result has the same ID."""
    work.require(Action.READ_METADATA)
    record = records.read(work.store, work.name)
    lock = held.read(work.store, work.name)
    return Workspace.recorded(workspace, record.record if record else None, lock)


def read_tags(work: Work) -> Mapping[str, str]:
    """Read the tags of a workspace, with one request. A workspace without a record has none."""
    work.require(Action.READ_METADATA)
    stored = records.read(work.store, work.name)
    return stored.record.tags if stored else {}


def create(work: Work, tags: Mapping[str, str]) -> Workspace:
    """Create a workspace without a state. A retry is safe.

    Clients create every workspace that they do not find. Where names must be declared, a mistyped name is
    refused instead.

    Raises:
        WorkspaceExists: it exists already.
        NotDeclared: the name is not declared, and must be.
    """
    work.require(Action.WRITE)
    checked = records.check_tags(tags)
    if work.policy.declared_only:
        declared.require(work)
    fence.require_not_frozen(work)
    record = records.create(work.store, work.name, checked, work.caller.principal)
    return _minted(work, record)


def declare(work: Work) -> bool:
    """Declare the name of a state, by a record without tags. A retry is safe.

    A name of one segment is valid, too. The name of a probe raises `InvalidName`.

    Returns:
        Whether this call declared the name; False if it already has a state or a record.
    """
    work.require(Action.WRITE)
    store, name = work.store, work.name
    if name.is_probe:
        raise InvalidName(
            "State names that begin with 'holdfast-doctor/' are reserved for 'holdfast doctor' and cannot "
            "be declared. Use another name."
        )
    if any(store.read_version(key) for key in (name.state_key, name.record_key)):
        return False
    fence.require_not_frozen(work)
    with suppress(WorkspaceExists, UnreadableRecord):  # somebody created it meanwhile
        records.create(store, name, {}, work.caller.principal)
        return True
    return False


def undeclare(work: Work, seen: str) -> bool:
    """Delete the record that declares the name of a state, unless the state exists. A retry is safe.

    The lock keeps first applies out: without the record, the first write of a running apply would be refused.

    Args:
        seen: the version of the record to delete.

    Returns:
        Whether this call deleted the record; False if the name has no record.

    Raises:
        BaseChanged: the name has a state, or another record.
        DeleteOutcomeUnknown: the lock was released or broken meanwhile.
    """
    work.require(Action.DELETE)
    return _delete_record(work, seen, _lock_info(work, check_version_id(seen)))


def change_tags(
    work: Work, workspace: WorkspaceId, change: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> Workspace:
    """Change the tags of a workspace; a workspace that has only a state gets a record.

    Args:
        change: returns the new tags, given the current ones. It may be called more than once.

    Raises:
        RacedWriter: somebody else kept changing the tags, or deleted the workspace.
    """
    work.require(Action.WRITE)
    store, name = work.store, work.name
    for _ in range(_ATTEMPTS):
        stored = records.read(store, name)
        tags = records.check_tags(change(stored.record.tags if stored else {}))
        changed: records.Record | None = None
        if stored is None:
            if store.read_version(name.state_key) is None:
                raise RacedWriter(
                    "This workspace was deleted after the command began. Run the command again."
                )
            with suppress(WorkspaceExists):  # somebody created it meanwhile
                changed = records.create(store, name, tags, work.caller.principal)
        elif stored.record.tags == tags:
            changed = stored.record
        else:
            changed = records.change(store, name, stored, tags)
        if changed:
            return Workspace.recorded(workspace, changed)
    raise RacedWriter("Other requests kept changing the tags of this workspace. Run the command again.")


def listed(store: Store, organization: str, wanted: Wanted, caller: Caller) -> list[Workspace]:
    """List the workspaces of an organization that the caller's scope covers, by name.

    Locks are not read, so the IDs cannot force-unlock. Raises `NotAllowed` if the scope covers no state name
    of the organization.
    """
    require_organization(organization, caller)
    prefix = f"{organization}/"
    with_record = _in_scope(records.listed(store, prefix), wanted, caller)
    with_state: list[StateName] = []
    if not wanted.tags:
        with_state = _in_scope(catalog.states(store, prefix), wanted, caller)
    in_scope = sorted({*with_record, *with_state}, key=lambda name: name.value)
    read = _with_tags(store, with_record) if wanted.tags or wanted.excluded else {}
    matches = [read[name] if name in read else Workspace(WorkspaceId.mint(name)) for name in in_scope]
    return [workspace for workspace in matches if workspace and wanted.has_tags(workspace.tags)]


def delete(work: Work) -> Removed:
    """Delete a workspace and its state by name, even if the state tracks resources. The versions stay.

    The request names no version, so a retry could delete a workspace that was re-created meanwhile. So a
    re-created workspace cannot be deleted for some minutes (`JUST_DELETED`) after a delete.

    Raises:
        JustDeleted: it was deleted moments ago, and was re-created.
        Locked, RacedWriter, DeleteOutcomeUnknown: as `holdfast.state.delete`.
    """
    return _delete(work)


def safe_delete(work: Work, workspace: WorkspaceId) -> Removed:
    """Delete a workspace and its state, if the state tracks no resources. The versions stay.

    Clients can also send this request by name; then each retry has a new ID. So it is refused whenever
    `delete` is, and also if the workspace was deleted and re-created since the ID was minted. The ID does not
    contain the state's version, because for a workspace with a record, a read by name does not request the
    state. With the version in the ID, every plan would pay for that request.

    Raises:
        As `delete`, and:
        ResourcesTracked: the state tracks resources, or its client encrypted it.
        JustDeleted: it was deleted and re-created since the ID was minted.
    """

    def check(current: Object) -> None:
        if document.tracks_resources(current.body):
            raise ResourcesTracked(
                "The state of this workspace tracks resources, or Holdfast cannot tell whether it does, "
                "because the state is encrypted or damaged. Destroy the resources, or delete the workspace "
                "with -force."
            )

    minted_at = datetime.fromtimestamp(workspace.minted_at, UTC)
    return _delete(work, minted_at, check)


def _delete(
    work: Work, minted_at: datetime | None = None, check: Callable[[Object], None] | None = None
) -> Removed:
    work.require(Action.DELETE)
    store, name = work.store, work.name
    # Read the record before the state: a record that is created later is somebody else's, and stays.
    record = store.read(name.record_key)

    def check_state(current: Object) -> None:
        if check:
            check(current)
        since, written = _since(current, minted_at), current.version.last_modified
        # Perhaps only a record was deleted, and the re-created workspace has its first state by now.
        if _was_deleted(store, name.state_key, since, written) or _was_deleted(store, name.record_key, since):
            raise _just_deleted()

    def delete_record() -> None:
        if record:
            records.delete(store, name, record)

    # Delete the state first: if the second delete fails, a record without a state is an empty workspace.
    removed = state_delete.delete(work, check=check_state, then=delete_record)
    if removed.version_id is None:
        left = _left_lock(work)
        if record:
            _check_record(work, record, _since(record, minted_at))
            seen = record.version.version_id
            _delete_record(work, seen, left.info if left else _lock_info(work, seen))
        elif left:
            _release_left_lock(work, left)
    return removed


def _delete_record(work: Work, seen: str, info: LockInfo) -> bool:
    """Delete a version of the record of a name without a state, under a lock. Raise errors as `undeclare`."""
    store, name = work.store, work.name
    with fence.own_lock(work, info) as acquired:
        if store.read_version(name.state_key):
            raise BaseChanged(
                f"The name '{name}' has a state, so it stays declared. Nothing was deleted. To delete the "
                "state, use 'holdfast state delete'."
            )
        record = store.read(name.record_key)
        if record is None:
            return False
        if record.version.version_id != seen or not records.delete(store, name, record):
            raise BaseChanged(
                f"The declaration or the tags of the name '{name}' were changed after you read them. Nothing "
                "was deleted. Look at the name again, then run the command again."
            )
        if held.identity(held.read(store, name)) != acquired:
            raise DeleteOutcomeUnknown(
                "The lock of this command was removed before the command ended: an operator broke the "
                "lock, or another attempt of the same request released it. Check whether the name is still "
                "declared before you run the command again."
            )
    return True


def _lock_info(work: Work, seen: str) -> LockInfo:
    """Return the lock info with which a caller deletes a version of a record."""
    return lock_info.of_verb(
        f"{work.store.bucket}/{work.name.record_key}?versionId={seen}",
        work.caller,
        operation=lock_info.Verb.UNDECLARE,
        info="holdfast state undeclare",
    ).at(work.address)


def _left_lock(work: Work) -> HeldLock | None:
    """Return the lock that an earlier delete of this caller has left; raise `Locked` for any other lock."""
    left = held.read(work.store, work.name)
    if left is None or state_delete.was_left(work, left):
        return left
    # The ID depends on the deleted version, which is unknown here. A client can send any operation.
    own = LockInfo({**_lock_info(work, "").document, "ID": left.info.id})
    if not left.was_acquired_with(own, work.caller):
        raise held.refusal(left)
    return left


def _release_left_lock(work: Work, left: HeldLock) -> None:
    store, name = work.store, work.name
    # Read state and record again, after the lock: a delete in progress still finds one of them.
    if not any(store.read_version(key) for key in (name.state_key, name.record_key)):
        held.remove_acquired(store, name, left.identity)


def _minted(work: Work, record: records.Record | None) -> Workspace:
    """Return a workspace that was read by name, with a new ID that contains the lock."""
    lock = held.read(work.store, work.name)
    workspace = WorkspaceId.mint(work.name, lock.identity.version_id if lock else "")
    return Workspace.recorded(workspace, record, lock)


def _check_record(work: Work, record: Object, since: datetime) -> None:
    """Raise `JustDeleted` if the record of a workspace without a state was created after a delete."""
    store, name = work.store, work.name
    # A record that is older than the state's delete marker was left by an interrupted delete.
    until = record.version.last_modified
    if _was_deleted(store, name.state_key, since, until) or _was_deleted(
        store, name.record_key, since, until
    ):
        raise _just_deleted()


def _since(current: Object, minted_at: datetime | None) -> datetime:
    """Return the time since which a delete may have been an earlier attempt of this request.

    It is at least `JUST_DELETED` ago by S3's clock, so retries are recognized even if their ID is newer.
    """
    moments_ago = current.read_at - JUST_DELETED
    return min(moments_ago, minted_at) if minted_at else moments_ago


def _was_deleted(store: Store, key: str, since: datetime, until: datetime | None = None) -> bool:
    """Return whether the object was deleted between two times, both included."""
    for entry in store.versions(key):
        if entry.last_modified < since:
            return False
        if entry.is_delete_marker and (until is None or entry.last_modified <= until):
            return True
    return False


def _just_deleted() -> JustDeleted:
    # "being processed": clients replace the text of a safe-delete's 409 by their own. If the text contains
    # these words, theirs says to try again later.
    return JustDeleted(
        "This workspace was deleted and created again moments ago. The first delete is possibly still being "
        "processed, and this request may be its retry, so nothing was deleted now. To delete the new "
        f"workspace, run the command again {JUST_DELETED.seconds // 60} minutes after the first delete. A "
        "program that stores the ID of a workspace must look up the new ID by the workspace's name."
    )


def _in_scope(listed: Iterable[StateName], wanted: Wanted, caller: Caller) -> list[StateName]:
    """Return the states that are workspaces, are in the caller's scope, and match the filter by name."""
    states = []
    for name in listed:
        place = organization_and_workspace(name)
        if place and wanted.has_name(place[1]) and caller.may(Action.READ_METADATA, name):
            states.append(name)
    return states


def _matches(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern, in which `*` is any text.

    `fnmatch` would cache thousands of compiled patterns of any length.

    >>> _matches("*p-*", "app-eu"), _matches("app", "app-eu"), _matches("a*a", "a")
    (True, False, False)
    """
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *between, last = others
    if not text.startswith(first):
        return False
    at = len(first)
    for part in between:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(text) - len(last) >= at and text.endswith(last)


def _with_tags(store: Store, states: list[StateName]) -> Mapping[StateName, Workspace | None]:
    """Read the records of workspaces in parallel; None for an unreadable record."""

    def read_workspace(name: StateName) -> Workspace | None:
        with suppress(UnreadableRecord):  # the list shows the other workspaces; a read by name reports it
            record = records.read(store, name)
            return Workspace.recorded(WorkspaceId.mint(name), record.record if record else None)
        return None

    return dict(zip(states, at_once.results(read_workspace, states, most=_AT_ONCE), strict=True))
