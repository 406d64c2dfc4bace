"""List the history of a state: its versions, and whether their writes were acknowledged.

A writer that lost its lock was refused although its version exists. Only the next version shows the refusal:
it stores the last acknowledged revision. This is then the revision that the refused version had superseded,
and not the revision of the refused version.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Final

from holdfast.access import Action
from holdfast.names import StateName
from holdfast.s3.objects import HistoryEntry, ObjectVersion
from holdfast.s3.store import Store
from holdfast.state import cursor as cursors
from holdfast.state import guards, held
from holdfast.state.current_state import CurrentState, parse_metadata
from holdfast.state.cursor import Page
from holdfast.state.held import HeldLock
from holdfast.state.operator import no_such_version
from holdfast.work import Work

PAGE: Final = 20
"""The most versions and delete markers on a page."""

MOST_NUMBERED: Final = 10_000
"""The most versions and delete markers that are counted from the newest, ten requests. A cursor goes on."""

_AT_ONCE: Final = 8
_LISTED: Final = 1000
"""The most entries that S3 lists with one request."""

_LONGEST_ID: Final = 200
"""Characters of the longest accepted version ID; the IDs of S3 have 32."""


class Status(StrEnum):
    """The outcome of the write that created a version. Clients read the values."""

    ACKNOWLEDGED = "acknowledged"
    """The write was acknowledged, or no later version shows otherwise."""
    NEVER_ACKNOWLEDGED = "never_acknowledged"
    """The writer had lost the lock, and was refused."""
    OTHER_PROGRAM = "other_program"
    """Another program than Holdfast wrote it."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a state, or a delete marker, which has no status.

    `metadata` is the metadata that Holdfast stored, and `state` is the same metadata, parsed. For a delete
    marker and another program's version, `metadata` is empty and `state` is None.
    """

    entry: HistoryEntry
    metadata: Mapping[str, str]
    state: CurrentState | None
    status: Status | None


@dataclass(slots=True)
class _Newer:
    """The data about the next newer version by which the status of an entry is decided.

    Attributes:
        version: the next newer version; None if it does not exist, or another program wrote it.
        version_id: the ID of the next newer version, of any program; empty if it does not exist.
        was_deleted: whether a delete marker is between the entry and that version.
    """

    version: CurrentState | None = None
    version_id: str = ""
    was_deleted: bool = False


def page(work: Work, cursor: str | None, *, page_size: int = PAGE) -> Page[Version]:
    """Read a page of the history, newest first, without versions that are removed meanwhile.

    It takes one request for the list, and one for each version on the page. The first page takes one more, to
    read the lock. A later page takes one more, to read the next newer version.
    """
    work.require(Action.READ_HISTORY)
    newer, after = _begin(work.name, cursor)
    entries, last = _list(work.store, work.name, after, page_size)
    versions = _read(work, entries, _ids(entries), newer, with_lock=cursor is None)
    return Page(versions, _cursor(work.name, last, newer) if last else None)


def numbered(work: Work, first: int, count: int) -> tuple[Sequence[Version], int]:
    """Read versions of the history by their place, the newest at 0, without delete markers.

    It takes one request for each thousand entries, one for each version that it reads, and one for the lock.

    Returns:
        The versions, without those that are removed meanwhile, and how many versions the history has: among
        its newest `MOST_NUMBERED` entries, for both.
    """
    work.require(Action.READ_HISTORY)
    entries = list(islice(work.store.versions(work.name.state_key), MOST_NUMBERED))
    ids = _ids(entries)
    wanted = ids[first : first + count]
    # The status of a version takes the next newer version, too.
    read = ids[max(first - 1, 0) : first + count] if wanted else []
    versions = _read(work, entries, read, _Newer(), with_lock=first == 0 and bool(wanted))
    return [each for each in versions if each.entry.id in wanted], len(ids)


def version(work: Work, version_id: str) -> Version:
    """Read one version of the history, or one delete marker.

    It takes one request for each thousand entries of the list down to it, and at most three more.

    Raises:
        NoSuchVersion: the history lacks it.
    """
    work.require(Action.READ_HISTORY)
    newer, after = _Newer(), ""
    while True:
        entries, last = _list(work.store, work.name, after, _LISTED)
        place = next((place for place, entry in enumerate(entries) if entry.id == version_id), None)
        if place is not None:
            # The status of a version takes the next newer version, too.
            wanted = _ids(entries[: place + 1])[-2:]
            versions = _read(work, entries, wanted, newer, with_lock=entries[place].is_current)
            for each in versions:
                if each.entry.id == version_id:
                    return each
        if place is not None or last is None:
            raise no_such_version(work.name, version_id)
        list(_judged(entries, {}, newer, None))
        after = last


def status_of_current(version: ObjectVersion, lock: HeldLock | None) -> Status:
    """Return the outcome of the write of the current version, given the lock that was read after it."""
    current = parse_metadata(version)
    if current is None:
        return Status.OTHER_PROGRAM
    return Status.NEVER_ACKNOWLEDGED if guards.was_never_acknowledged(current, lock) else Status.ACKNOWLEDGED


def _ids(entries: Sequence[HistoryEntry]) -> list[str]:
    return [entry.id for entry in entries if not entry.is_delete_marker]


def _read(
    work: Work, entries: Sequence[HistoryEntry], wanted: Sequence[str], newer: _Newer, *, with_lock: bool
) -> list[Version]:
    """Read the wanted versions of a list, and return them with their status, and all delete markers."""
    store, name = work.store, work.name
    if newer.version_id:
        wanted = [*wanted, newer.version_id]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # The lock is read after the list: the current version's status depends on the later lock.
        lock = pool.submit(held.read, store, name) if with_lock else None
        read = dict(
            zip(wanted, pool.map(lambda each: store.read_version(name.state_key, each), wanted), strict=True)
        )
        current_lock = lock.result() if lock else None
    newer.version = _state(read.get(newer.version_id))
    return list(_judged(entries, read, newer, current_lock))


def _list(store: Store, name: StateName, after: str, page_size: int) -> tuple[list[HistoryEntry], str | None]:
    """Return the entries of a page, and the ID after which the next page begins; None on the last page."""
    key = name.state_key
    page = store.versions_page(key, after=(key, after) if after else None, page_size=page_size)
    if page is None:
        raise cursors.invalid()
    entries = [entry for of, entry in page.entries if of == key]
    # Keys come in order, and this key comes before all longer keys that begin with it.
    ended = page.last is None or len(entries) < len(page.entries) or page.last[0] != key
    return entries, None if ended or page.last is None else page.last[1]


def _judged(
    entries: Sequence[HistoryEntry],
    read: Mapping[str, ObjectVersion | None],
    newer: _Newer,
    lock: HeldLock | None,
) -> Iterator[Version]:
    """Yield the versions with their status. Afterwards `newer` contains the values for the next page."""
    deletions = [_second(entry.last_modified) for entry in entries if entry.is_delete_marker]
    for entry in entries:
        if entry.is_delete_marker:
            newer.was_deleted = True
            yield Version(entry, {}, None, None)
            continue
        version = read.get(entry.id)
        this = _state(version)
        # The order of a version and a delete marker of the same second is unknown.
        since = _second(entry.last_modified)
        until = _second(newer.version.version.last_modified) if newer.version else since
        deleted = newer.was_deleted or any(since <= each <= until for each in deletions)
        if version is not None:
            if this is None:
                status = Status.OTHER_PROGRAM
            elif entry.is_current:
                status = status_of_current(version, lock)
            else:
                status = _status(this, newer.version, was_deleted=deleted)
            yield Version(entry, version.metadata if this else {}, this, status)
        newer.version, newer.version_id, newer.was_deleted = this, entry.id, False


def _status(this: CurrentState, newer: CurrentState | None, *, was_deleted: bool) -> Status:
    """Decide whether a version's write was acknowledged, by the revision that the newer version superseded.

    The write was never acknowledged if the newer version superseded the same revision as this version. If a
    push repeated the serial, that can also be this version's own revision: then `over_refused` decides. If
    neither superseded a revision and a delete may be between them, this write counts as acknowledged.
    """
    if newer is None or newer.superseded != this.superseded:
        return Status.ACKNOWLEDGED
    if newer.superseded == this.revision and not newer.over_refused:
        return Status.ACKNOWLEDGED
    if newer.superseded is None and was_deleted:
        return Status.ACKNOWLEDGED
    return Status.NEVER_ACKNOWLEDGED


def _state(version: ObjectVersion | None) -> CurrentState | None:
    return parse_metadata(version) if version else None


def _second(moment: datetime) -> int:
    return int(moment.timestamp())


# A cursor contains the entry after which the next page begins, and the `_Newer` that the page needs.


def _cursor(name: StateName, last: str, newer: _Newer) -> str:
    return cursors.encode("versions", [name.value, last, newer.version_id, newer.was_deleted])


def _begin(name: StateName, cursor: str | None) -> tuple[_Newer, str]:
    if cursor is None:
        return _Newer(), ""
    of, after, version_id, was_deleted = cursors.decode("versions", cursor, str, str, str, bool)
    if of != name.value or not 0 < len(after) <= _LONGEST_ID or len(version_id) > _LONGEST_ID:
        raise cursors.invalid()
    return _Newer(None, version_id, was_deleted), after
