"""List states, deleted states and locks, page by page."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from holdfast import at_once, names
from holdfast.access import Action, Caller, check_pattern, matches
from holdfast.errors import InvalidName, InvalidRequest
from holdfast.names import LOCKS, RECORDS, STATES, Keys, StateName
from holdfast.s3.objects import HistoryEntry, ListedKey
from holdfast.s3.store import Store
from holdfast.state import cursor as cursors
from holdfast.state import held, walk
from holdfast.state.cursor import Page
from holdfast.state.held import HeldLock
from holdfast.state.walk import Listing, Places, Walked

PAGE: Final = 999
"""The most keys on a page: one less than S3's maximum, because a page requests one more than it shows."""

_LONGEST_KEY: Final = 1024
"""Bytes of the longest key of S3."""
_NOT_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""The characters that no XML 1.0 document has. S3's lists are XML: one after such a key may never arrive."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a list: a state, or a lock whose state does not exist.

    Attributes:
        size: bytes of the current version; None if the state has no current version.
        modified: when the current version was written, or the state deleted; None for a lock without a state.
            In a list of declared names, when the record was written.
        deleted: whether the newest entry of the state's history is a delete marker.
    """

    name: StateName
    size: int | None
    modified: datetime | None
    deleted: bool = False
    lock: HeldLock | None = None


@dataclass(frozen=True, slots=True)
class _ListedName:
    """A name in a list of keys. `listed` has no size and time if the list contained only the lock's key."""

    listed: Listed
    is_locked: bool = False


@dataclass(frozen=True, slots=True)
class _View:
    """The part of a list that a caller may see: the keys of states to which the caller may do an action.

    Attributes:
        kind: the list to which the cursors belong.
        prefix: the beginning of the names.
        page_size: the most keys of a page.
        keys: the kind of key in the list. If a name can have several keys, this is the last kind in order.
        pattern: the pattern that the names match. A page may begin after another name, too.
        seconds: the time after which a page ends although it is not full; by default `walk.SECONDS`.
    """

    kind: str
    store: Store
    prefix: str
    caller: Caller
    page_size: int
    keys: Keys = LOCKS
    action: Action = Action.READ_METADATA
    pattern: str = "*"
    seconds: float | None = None

    def keys_from(self, cursor: str | None) -> Walked[ListedKey]:
        """Return the page of the keys of current objects that begins at a cursor."""

        def list_visible(beginning: str, place: str) -> tuple[list[tuple[str, ListedKey]], str | None]:
            listed = self.store.keys_page(beginning, after=place, page_size=self.page_size + 1)
            visible = [(each.key, each) for each in listed.keys if self.may_see(each.key, self.pattern)]
            return visible, listed.last

        return self.walk_from(cursor, list_visible)

    def walk_from(self, cursor: str | None, list_visible: Listing[_T]) -> Walked[_T]:
        """Return the page that begins at a cursor.

        Raise `InvalidRequest` for an invalid prefix, or a cursor to a place that the caller may not see.
        """
        _check_prefix(self.prefix)
        after = ""
        if cursor is not None:
            (after,) = cursors.decode(self.kind, cursor, str)
            if not self.can_continue(after):
                raise cursors.invalid()
        return walk.page(
            self.places,
            after,
            list_visible,
            is_cursor=self.can_continue,
            page_size=self.page_size,
            seconds=self.seconds,
        )

    def page(self, items: Sequence[_T], next_: str | None) -> Page[_T]:
        """Return a page of items; the next page begins after the place `next_`."""
        return Page(items, cursors.encode(self.kind, [next_]) if next_ else None)

    @property
    def places(self) -> Places:
        return Places(self.keys.prefix, self.keys.suffix, self.caller.patterns(self.action), self.prefix)

    def may_see(self, key: str, pattern: str = "*") -> bool:
        """Return whether a key is of a requested state, lock or record, and the caller may do the action.

        A key can begin with a prefix although its name does not: that of the lock of `a` begins with `a.tf`.
        """
        name = STATES.name(key) or LOCKS.name(key) or RECORDS.name(key)
        if name is None or not name.value.startswith(self.prefix):
            return False
        return matches(pattern, name) and self.caller.may(self.action, name)

    def can_continue(self, place: str) -> bool:
        """Return whether a cursor may contain a place: a visible key, or the beginning of a visible key."""
        if self.may_see(place):
            return True
        begun = place.removeprefix(self.keys.prefix)
        return place != begun and _is_beginning(begun) and self.places.can_begin(place)


def states(store: Store, prefix: str) -> Iterator[StateName]:
    """Yield the names of current states that begin with a prefix, such as `network/`, in order of their keys.

    Objects of other programs are skipped if their keys do not belong to a valid state name.
    """
    for key in store.list_keys(STATES.prefix + prefix):
        name = STATES.name(key)
        if name and name.value.startswith(prefix):
            yield name


def matching(
    store: Store, pattern: str, lists: Sequence[Keys], place: tuple[int, str]
) -> Iterator[tuple[StateName | None, tuple[int, str]]]:
    """Yield the names that match a scope pattern and have an object of the lists, each with its place.

    The first list is read to its end before the second list. A name is yielded once for each list.

    Args:
        place: the place of the last name that was yielded before; `(0, "")` at the beginning.

    Yields:
        The name, or None for a key that does not match, and its place.
    """
    beginning = STATES.prefix + pattern.partition("*")[0]
    number, after = place
    is_place = (after or beginning).startswith(beginning) and can_list_after(after)
    if number not in range(len(lists)) or not is_place:
        raise cursors.invalid()
    while number < len(lists):
        page = store.keys_page(beginning, after=after)
        for entry in page.keys:
            name = lists[number].name(entry.key)
            yield name if name and matches(pattern, name) else None, (number, entry.key)
        number, after = (number, page.last) if page.last else (number + 1, "")


def can_list_after(key: str) -> bool:
    """Return whether S3 can list the keys after a key, which may be another program's or made up."""
    return len(key.encode()) <= _LONGEST_KEY and not _NOT_IN_XML.search(key)


def page_of_states(
    store: Store, prefix: str, cursor: str | None, caller: Caller, *, page_size: int = PAGE
) -> Page[Listed]:
    """List states with their locks, and locks whose state does not exist yet.

    It takes one request for the list and one for each lock. If a page ends between a state and its lock, both
    pages take one request more. `walk` explains when the list takes several requests.

    Args:
        prefix: the beginning of the names, such as `network/`; empty for all. `InvalidRequest` is raised if
            no valid name can begin with it.
        caller: the list contains only the states whose metadata the caller may read.
        page_size: the most keys of a page.
    """
    view = _View("states", store, prefix, caller, page_size)
    walked = view.keys_from(cursor)
    by_name = _add_all(store, walked)
    return view.page(_with_locks(store, _decided(by_name, walked.until)), walked.next)


def page_of_names(
    store: Store, pattern: str, cursor: str | None, caller: Caller, *, page_size: int = PAGE
) -> Page[StateName]:
    """Return the names that `page_of_states` would list and that match a scope pattern."""
    try:
        check_pattern(pattern)
    except ValueError as broken:
        rule = str(broken).replace("the scope pattern", "The pattern", 1)
        raise InvalidRequest(f"{rule}.") from None
    view = _View("names", store, pattern.partition("*")[0], caller, page_size, pattern=pattern)
    walked = view.keys_from(cursor)
    return view.page(sorted(_add_all(store, walked), key=lambda name: name.value), walked.next)


def page_of_readable(
    store: Store, prefix: str, cursor: str | None, caller: Caller, *, seconds: float, page_size: int = PAGE
) -> Page[tuple[StateName, int]]:
    """Return the states that the caller may read whole, with the bytes of their current versions.

    The page ends early after some seconds.
    """
    view = _View("readable", store, prefix, caller, page_size, action=Action.READ, seconds=seconds)
    walked = view.keys_from(cursor)
    sizes = [(name, entry.size) for key, entry in walked.entries if (name := STATES.name(key))]
    return view.page(sizes, walked.next)


def cursor_after(name: StateName) -> str:
    """Return the cursor of the page of readable states after a state."""
    return cursors.encode("readable", [name.state_key])


def page_of_declared(
    store: Store, prefix: str, cursor: str | None, caller: Caller, *, page_size: int = PAGE
) -> Page[Listed]:
    """List the names that have a record, with or without a state; `modified` is the time of the record.

    It takes one request. The arguments are those of `page_of_states`.
    """
    view = _View("declared", store, prefix, caller, page_size, RECORDS)
    walked = view.keys_from(cursor)
    recorded = ((RECORDS.name(key), entry.last_modified) for key, entry in walked.entries)
    return view.page([Listed(name, None, written) for name, written in recorded if name], walked.next)


def page_of_deleted(
    store: Store, prefix: str, cursor: str | None, caller: Caller, *, page_size: int = PAGE
) -> Page[Listed]:
    """List states whose newest entry is a delete marker, and the locks of these states.

    It takes one request for each thousand versions and delete markers, and one for each lock. The arguments
    are those of `page_of_states`; keys of states that are not deleted count towards `page_size`, too.
    """
    view = _View("deleted", store, prefix, caller, page_size)

    def list_newest(beginning: str, place: str) -> tuple[list[tuple[str, HistoryEntry]], str | None]:
        # The page begins after all versions of `place`, because only the newest entry of a key matters.
        # `place` can be a whole key: the key of the state `a` is a beginning of the key of `a.tfstate-x`.
        page = store.versions_page(beginning, after=(place, ""), page_size=page_size + 1)
        if page is None:  # S3 accepts any key
            raise cursors.invalid()
        newest = [(key, entry) for key, entry in page.entries if entry.is_current and view.may_see(key)]
        return newest, page.entries[-1][0] if page.last and page.entries else None

    walked = view.walk_from(cursor, list_newest)
    by_name: dict[StateName, _ListedName] = {}
    for key, entry in walked.entries:
        _add_newest(by_name, key, entry)
    return view.page(_with_locks(store, _decided(by_name, walked.until)), walked.next)


def page_of_locks(
    store: Store, prefix: str, cursor: str | None, caller: Caller, *, page_size: int = PAGE
) -> Page[Listed]:
    """List locks, the oldest of the page first. The arguments are those of `page_of_states`.

    It takes one request for the list of keys (of states and locks), and one for each lock.
    """
    view = _View("locks", store, prefix, caller, page_size)
    walked = view.keys_from(cursor)
    locked = [name for key, _ in walked.entries if (name := LOCKS.name(key))]
    locks = _with_locks(store, [_ListedName(Listed(name, None, None), is_locked=True) for name in locked])
    oldest_first = sorted(
        locks, key=lambda entry: entry.lock.version.last_modified.timestamp() if entry.lock else 0
    )
    return view.page(oldest_first, walked.next)


def _check_prefix(prefix: str) -> None:
    """Raise `InvalidRequest`, with the broken rule, unless a valid state name can begin with a prefix."""
    if not _is_beginning(prefix) and (rule := names.broken_rule(prefix)):
        raise InvalidRequest(f"No state name can begin with this prefix: {rule}.")


def _is_beginning(text: str) -> bool:
    """Return whether a valid state name can begin with a text."""
    # After a slash only `text + "x"` is a valid name; at the maximum length only `text` is.
    for whole in (text, f"{text}x"):
        with suppress(InvalidName):
            names.split(whole)
            return True
    return False


def _add_all(store: Store, walked: Walked[ListedKey]) -> dict[StateName, _ListedName]:
    """Return the names on a page, without the names that the page before has shown."""
    by_name: dict[StateName, _ListedName] = {}
    for _, entry in walked.entries:
        _add(by_name, entry)
    for name, met in list(by_name.items()):
        # The page has only the lock's key. If the state exists, the page before has shown its key.
        if not met.listed.modified and name.state_key <= walked.after and store.read_version(name.state_key):
            del by_name[name]
    return by_name


def _add(by_name: dict[StateName, _ListedName], entry: ListedKey) -> None:
    if name := STATES.name(entry.key):
        by_name[name] = _ListedName(Listed(name, entry.size, entry.last_modified))
    elif name := LOCKS.name(entry.key):
        met = by_name.get(name, _ListedName(Listed(name, None, None)))
        by_name[name] = replace(met, is_locked=True)


def _add_newest(by_name: dict[StateName, _ListedName], key: str, entry: HistoryEntry) -> None:
    if name := STATES.name(key):
        if entry.is_delete_marker:
            by_name[name] = _ListedName(Listed(name, None, entry.last_modified, deleted=True))
    elif (name := LOCKS.name(key)) and name in by_name and not entry.is_delete_marker:
        by_name[name] = replace(by_name[name], is_locked=True)


def _decided(by_name: Mapping[StateName, _ListedName], until: str | None) -> list[_ListedName]:
    """Return the names on a page. Mark a name as locked if the key of its lock may be on the next page.

    Between a state's key and its lock's key there can be other keys, such as that of `a.tfstate-x`.
    """
    return [
        replace(listed_name, is_locked=True) if until is not None and until <= name.lock_key else listed_name
        for name, listed_name in by_name.items()
    ]


def _with_locks(store: Store, listed_names: Sequence[_ListedName]) -> list[Listed]:
    """Read the locks of the marked states, and return the entries of a list."""
    locked = [listed_name.listed.name for listed_name in listed_names if listed_name.is_locked]
    lock_of = dict(zip(locked, at_once.results(lambda name: held.read(store, name), locked), strict=True))
    listed = (
        replace(listed_name.listed, lock=lock_of[listed_name.listed.name])
        if listed_name.is_locked
        else listed_name.listed
        for listed_name in listed_names
    )
    # Skip an entry without a state whose lock was released meanwhile.
    return [entry for entry in listed if entry.lock or entry.modified]
