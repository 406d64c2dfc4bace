"""Which states and locks there are."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from os.path import commonprefix
from typing import Final

from holdfast import names
from holdfast.access import Action, Caller
from holdfast.errors import InvalidName, InvalidRequest
from holdfast.names import StateName
from holdfast.s3.store import HistoryEntry, ListedKey, Store
from holdfast.state import cursor as cursors
from holdfast.state import locks
from holdfast.state.locks import HeldLock

PAGE: Final = 1000
"""Keys that one request lists: the most that S3 gives."""

_AT_ONCE: Final = 8
"""How many locks are read at the same time."""

_FOLDER, _, _SUFFIX = StateName("*").state_key.partition("*")
_LOCK_SUFFIX: Final = StateName("").lock_key.removeprefix(_FOLDER)
_LONGEST_KEY: Final = 1024
"""Bytes of a key of S3."""
_LATEST: Final = 2**33
"""Seconds since 1970 that no time of S3 reaches."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A state, or a lock without one, as a list shows it.

    Attributes:
        name: of the state.
        size: bytes of the current version; None if there is none.
        modified: when that was written, or the state deleted; None if there is only a lock.
        deleted: whether the newest entry of its history is a delete marker.
        lock: the lock that is held, None if none is.
    """

    name: StateName
    size: int | None
    modified: datetime | None
    deleted: bool = False
    lock: HeldLock | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of states or locks.

    Attributes:
        items: those that the caller's scope covers; there may be none although pages follow.
        next: the cursor of the next page; None if there is none.
    """

    items: Sequence[Listed]
    next: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    """What a list of keys told of a name.

    Attributes:
        listed: the state; without size and time if only its lock was met.
        is_locked: whether the key of its lock was met.
    """

    listed: Listed
    is_locked: bool = False


def states(store: Store, prefix: str) -> Iterator[StateName]:
    """List the names of the current states that begin with a prefix, in order of their keys.

    What another program put there under no state's name is left out.

    Args:
        store: the bucket.
        prefix: what the names begin with, such as `network/`.

    Raises:
        OutcomeUnknown: S3 did not respond in time.
        StorageRefused: S3 denies the function access.
    """
    for key in store.list_keys(_FOLDER + prefix):
        name = _state_of(key)
        if name and name.value.startswith(prefix):
            yield name


def page_of_states(
    store: Store, prefix: str, cursor: str | None, caller: Caller, *, page_size: int = PAGE
) -> Page:
    """List states, and locks whose state does not exist yet, with the locks that are held.

    It takes one request for the list and one for each lock that is held; more where a page of the list has
    nothing that the caller may see, because the cursor names nothing else.

    Args:
        store: the bucket.
        prefix: what the names begin with, such as `network/`; empty for all.
        cursor: `next` of the page before; None for the first.
        caller: sees what the outputs of are theirs to read.
        page_size: keys of the list.

    Raises:
        InvalidRequest: prefix or cursor break a rule.
        OutcomeUnknown: S3 did not respond in time.
    """
    after, _, pending = _begin("states", prefix, cursor, caller)
    seen, last = _seen_keys(store, prefix, after, caller, page_size)
    found = dict(pending)
    for entry in seen:
        _add(found, entry)
    undecided = _take_undecided(found, last)
    return Page(
        _with_locks(store, found.values(), prefix),
        None if last is None else _cursor("states", seen[-1].key, "", undecided),
    )


def page_of_deleted(
    store: Store, prefix: str, cursor: str | None, caller: Caller, *, page_size: int = PAGE
) -> Page:
    """List states whose newest entry is a delete marker, with the locks that are held on them.

    It takes one request for the list, of a thousand versions and delete markers, and one for each lock.

    Args:
        store: the bucket.
        prefix: as for `page_of_states`.
        cursor: as for `page_of_states`.
        caller: as for `page_of_states`.
        page_size: versions and delete markers of the list.

    Raises:
        InvalidRequest: prefix or cursor break a rule.
        OutcomeUnknown: S3 did not respond in time.
    """
    after, version_id, pending = _begin("deleted", prefix, cursor, caller)
    place = (after, version_id) if after else None
    while True:
        page = store.versions_page(_FOLDER + _beginning(prefix, caller), after=place, page_size=page_size)
        if page is None:
            raise cursors.invalid()
        seen = [(key, entry) for key, entry in page.entries if _may_see(key, caller)]
        if seen or page.last is None:
            break
        place = page.last
    found = {name: replace(one, listed=replace(one.listed, deleted=True)) for name, one in pending.items()}
    for key, entry in seen:
        if entry.is_current:
            _add_newest(found, key, entry)
    undecided = _take_undecided(found, page.last[0] if page.last else None)
    listed = _with_locks(store, found.values(), prefix)
    if page.last is None:
        return Page(listed, None)
    # Other programs' and other scopes' keys may follow the last one that is shown: they are listed once more.
    end = page.last if _may_see(page.last[0], caller) else (seen[-1][0], seen[-1][1].id)
    return Page(listed, _cursor("deleted", *end, undecided))


def page_of_locks(
    store: Store, prefix: str, cursor: str | None, caller: Caller, *, page_size: int = PAGE
) -> Page:
    """List the locks that are held, the oldest of the page first.

    It takes one request for the list of a thousand keys, of states and locks, and one for each lock.

    Args:
        store: the bucket.
        prefix: as for `page_of_states`.
        cursor: as for `page_of_states`.
        caller: as for `page_of_states`.
        page_size: keys of the list.

    Raises:
        InvalidRequest: prefix or cursor break a rule.
        OutcomeUnknown: S3 did not respond in time.
    """
    after, _, _ = _begin("locks", prefix, cursor, caller)
    seen, last = _seen_keys(store, prefix, after, caller, page_size)
    found = [
        _Found(Listed(name, None, None), is_locked=True)
        for name in (_locked_by(entry.key) for entry in seen)
        if name
    ]
    held = _with_locks(store, found, prefix)
    return Page(
        sorted(held, key=lambda one: one.lock.version.last_modified.timestamp() if one.lock else 0),
        None if last is None else _cursor("locks", seen[-1].key, "", {}),
    )


def _seen_keys(
    store: Store, prefix: str, after: str, caller: Caller, page_size: int
) -> tuple[list[ListedKey], str | None]:
    """Return the keys of states and locks that the caller may see, and the last key that was listed.

    Returns:
        The keys, at least one unless the list has ended; and None if it has.
    """
    while True:
        page = store.keys_page(_FOLDER + _beginning(prefix, caller), after=after, page_size=page_size)
        seen = [entry for entry in page.keys if _may_see(entry.key, caller)]
        if seen or page.last is None:
            return seen, page.last
        after = page.last


def _beginning(prefix: str, caller: Caller) -> str:
    """Return what all names begin with that begin with a prefix and that the caller may see.

    It only saves requests: a pattern covers less than what begins as it does.
    """
    literal = [pattern.partition("*")[0] for pattern in caller.scope]
    common = commonprefix(literal)  # noqa: RUF071 the beginning of texts, not of paths
    return common if common.startswith(prefix) else prefix


def _may_see(key: str, caller: Caller) -> bool:
    name = _state_of(key) or _locked_by(key)
    return name is not None and caller.may(Action.READ_OUTPUTS, name)


def _check_prefix(prefix: str) -> None:
    """Check that names of states can begin so.

    Raises:
        InvalidRequest: with the rule that the prefix breaks.
    """
    if not prefix:
        return
    try:
        names.split(prefix)
    except InvalidName as broken:
        # A prefix may end with a slash, and one as long as a name can be is a whole name.
        with suppress(InvalidName):
            names.split(f"{prefix}x")
            return
        raise InvalidRequest(f"No name of a state begins with this 'prefix'. {broken.message}") from None


def _state_of(key: str) -> StateName | None:
    """Return the name of the state whose key it is; None if the key is of anything else."""
    return _named(key, _SUFFIX)


def _locked_by(key: str) -> StateName | None:
    """Return the name of the state whose lock's key it is; None if the key is of anything else."""
    return _named(key, _LOCK_SUFFIX)


def _named(key: str, suffix: str) -> StateName | None:
    if not key.endswith(suffix):
        return None
    with suppress(InvalidName):
        name = names.parse(key[len(_FOLDER) : -len(suffix)])
        # The states and locks of probes are elsewhere.
        return None if name.is_probe else name
    return None


def _add(found: dict[StateName, _Found], entry: ListedKey) -> None:
    if name := _state_of(entry.key):
        found[name] = _Found(Listed(name, entry.size, entry.last_modified))
    elif name := _locked_by(entry.key):
        met = found.get(name, _Found(Listed(name, None, None)))
        found[name] = replace(met, is_locked=True)


def _add_newest(found: dict[StateName, _Found], key: str, entry: HistoryEntry) -> None:
    if name := _state_of(key):
        if entry.is_delete_marker:
            found[name] = _Found(Listed(name, None, entry.last_modified, deleted=True))
    elif (name := _locked_by(key)) and name in found and not entry.is_delete_marker:
        found[name] = replace(found[name], is_locked=True)


def _take_undecided(found: dict[StateName, _Found], last: str | None) -> Mapping[StateName, _Found]:
    """Remove the states whose lock may follow on the next page, because its key comes after `last`.

    Other keys, such as that of the state `a.tfstate-x`, lie between that of a state and that of its lock. So
    the page does not show these states: the cursor carries them to the page that meets the lock's key or
    passes it.
    """
    undecided = {
        name: one
        for name, one in found.items()
        if last is not None and last < name.lock_key and not one.is_locked
    }
    for name in undecided:
        del found[name]
    return undecided


def _with_locks(store: Store, found: Iterable[_Found], prefix: str) -> list[Listed]:
    """Return states with their locks, of which a few are read at a time.

    A key can begin with a prefix where the name that it has does not: that of the state `a` with `a.tf`.
    """
    seen = [one for one in found if one.listed.name.value.startswith(prefix)]
    locked = [one.listed.name for one in seen if one.is_locked]
    held = dict(zip(locked, _at_once(lambda name: locks.read(store, name), locked), strict=True))
    listed = (
        replace(one.listed, lock=held[one.listed.name]) if one.is_locked else one.listed for one in seen
    )
    # A lock that was released since it was listed leaves nothing to show where there is no state.
    return [one for one in listed if one.lock or one.modified]


def _at_once(
    read: Callable[[StateName], HeldLock | None], found: Sequence[StateName]
) -> Iterable[HeldLock | None]:
    if not found:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(found))) as pool:
        return list(pool.map(read, found))


# Cursors. The key after which the next page begins, and the states whose lock may follow it. With the key of
# each of these that key begins, so that its length names it.


def _cursor(kind: str, after: str, version_id: str, undecided: Mapping[StateName, _Found]) -> str:
    carried = [
        [len(name.state_key), one.listed.size, int(one.listed.modified.timestamp())]
        for name, one in undecided.items()
        if one.listed.modified
    ]
    return cursors.encode(kind, [after, version_id, carried])


def _begin(
    kind: str, prefix: str, cursor: str | None, caller: Caller
) -> tuple[str, str, Mapping[StateName, _Found]]:
    """Return the key and the version ID after which a page begins, and the states that it is to decide.

    Raises:
        InvalidRequest: prefix or cursor break a rule.
    """
    _check_prefix(prefix)
    if cursor is None:
        return "", "", {}
    after, version_id, carried = cursors.decode(kind, cursor, str, str, list)
    if not after.startswith(_FOLDER + prefix) or max(map(len, (after.encode(), version_id))) > _LONGEST_KEY:
        raise cursors.invalid()
    pending = dict(_carried(after, one) for one in carried)
    # A cursor can be made up.
    seen = {name: one for name, one in pending.items() if caller.may(Action.READ_OUTPUTS, name)}
    return after, version_id, seen


def _carried(after: str, one: object) -> tuple[StateName, _Found]:
    match one:
        case [int(length), int() | None as size, int(modified)] if (
            0 < length <= len(after) and (size is None or size >= 0) and 0 <= modified < _LATEST
        ):
            name = _state_of(after[:length])
            if name:
                return name, _Found(Listed(name, size, datetime.fromtimestamp(modified, UTC)))
    raise cursors.invalid()
