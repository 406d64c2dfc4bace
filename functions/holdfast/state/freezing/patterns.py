"""Freeze a pattern of names: a record refuses new states, and each other state is frozen by itself."""

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, unquote

from holdfast.access import Action, Caller, check_pattern, matches
from holdfast.errors import HoldfastError, InvalidRequest, LockNotMatched, NotFrozen, RacedWriter
from holdfast.names import FROZEN_PATTERNS, LOCKS, MAX_SEGMENTS, RESERVED, STATES, Keys, StateName
from holdfast.s3.store import Store
from holdfast.state import catalog, walk
from holdfast.state import cursor as cursors
from holdfast.state.freezing import record, states
from holdfast.state.freezing.record import PatternFreeze
from holdfast.state.held import Freeze, HeldFreeze
from holdfast.state.operator import check_id
from holdfast.work import Work

MAX_PATTERNS: Final = 100

_ATTEMPTS: Final = 5
_NEVER: Final = datetime.max.replace(tzinfo=UTC)

At = Callable[[StateName], Work]
"""Returns the caller's work at a state."""
Tell = Callable[[StateName, Freeze | HeldFreeze], None]
"""Is called after each change of a state, with the freeze that was placed or removed."""
Place = tuple[int, str]
"""The place of a name in the lists of `catalog.matching`."""


@dataclass(frozen=True, slots=True)
class Matching:
    """The names that match a pattern, of one request.

    Attributes:
        frozen: names that the pattern's freeze freezes.
        left: names that keep another lock or freeze.
        next: the cursor of the next request; None at the end.
    """

    frozen: Collection[StateName]
    left: Collection[StateName]
    next: str | None


@dataclass(frozen=True, slots=True)
class Covered:
    """A state that another frozen pattern covers, too.

    `is_frozen`: that pattern's freeze freezes it now. False if somebody acquired the lock in between.
    """

    name: StateName
    pattern: PatternFreeze
    is_frozen: bool


@dataclass(frozen=True, slots=True)
class Lifted:
    """The unfrozen states of one request, and the pattern.

    Attributes:
        pattern: the frozen pattern; None if no frozen pattern has this ID.
        next: the cursor of the next request, until which the pattern stays frozen; None at the end.
    """

    pattern: PatternFreeze | None
    unfrozen: Sequence[StateName] = ()
    covered: Sequence[Covered] = ()
    next: str | None = None


def freeze_pattern(
    store: Store, caller: Caller, pattern: str, freeze: Freeze, *, now: datetime, cursor: str | None = None
) -> tuple[PatternFreeze, Place]:
    """Freeze a pattern for names that have no state. `freeze_matching` then freezes the other names.

    A pattern that is frozen already stays as it is: the result is that freeze.

    Args:
        cursor: `next` of the request before.

    Returns:
        The pattern's freeze, and the place at which `freeze_matching` begins.

    Raises:
        RacedWriter: others kept changing the record, or lifted the freeze after the request before.
        UnreadableRecord: the record is not valid, or of a later version.
    """
    _require(pattern, caller)
    if "**" in pattern:
        raise InvalidRequest(
            "The pattern must not contain '**'. To match everything below a name, write 'name/*'."
        )
    states.check(freeze, now=now)
    begun_for, place = _begin(pattern, cursor)
    wanted = PatternFreeze(pattern, freeze, caller.principal, None, caller.owner)
    return _recorded(store, wanted, begun_for), place


def freeze_matching(store: Store, at: At, pattern: PatternFreeze, place: Place, tell: Tell) -> Matching:
    """Freeze each name that matches a frozen pattern and has a lock or a state, for `walk.SECONDS`.

    All locks are listed before the first state: a first write that releases its lock after the list of locks
    has written a state for the second list.

    Raises:
        RacedWriter: the pattern was unfrozen meanwhile.
    """
    done: set[StateName] = set()
    left: set[StateName] = set()

    def freeze(name: StateName, _: int) -> None:
        if name in done:
            return
        lock = states.place(at(name), pattern.freeze)
        if lock is None:
            tell(name, pattern.freeze)
        (done if lock is None or lock.freeze == pattern.freeze else left).add(name)

    rest = _for_each(store, pattern.pattern, (LOCKS, STATES), place, freeze)
    if _entry(record.entries(store.read(FROZEN_PATTERNS)), pattern.freeze.id) is None:
        raise _lifted(pattern.pattern)
    fields = [pattern.freeze.id, pattern.pattern, rest[0], quote(rest[1])] if rest else []
    return Matching(done, left - done, cursors.encode("freeze", fields) if rest else None)


def frozen_patterns(store: Store, caller: Caller) -> Sequence[PatternFreeze]:
    """Return the frozen patterns whose states the caller may see, all that can match."""
    caller.require_somewhere(Action.READ_METADATA)
    stored = store.read(FROZEN_PATTERNS)
    return [
        entry
        for entry in record.entries(stored)
        if stored
        and not entry.has_ended(stored.read_at)
        and covers(caller, Action.READ_METADATA, entry.pattern)
    ]


def unfreeze_pattern(
    store: Store, at: At, caller: Caller, freeze_id: str, tell: Tell, cursor: str | None = None
) -> Lifted:
    """Unfreeze the states that a pattern's freeze froze, for `walk.SECONDS`, and at the end the pattern.

    Other freezes and locks stay. A state that another frozen pattern covers gets the freeze of that pattern.
    All states are looked at for one version of the record, which the end replaces. So no retry misses such a
    state, and no pattern is missed that is frozen meanwhile.

    Args:
        cursor: `next` of the request before.
    """
    caller.require_somewhere(Action.FREEZE)
    check_id(freeze_id)
    number, after, etag = _continued(freeze_id, cursor)
    stored = store.read(FROZEN_PATTERNS)
    entries = record.entries(stored)
    lifted = _entry(entries, freeze_id)
    if stored is None or lifted is None:
        return Lifted(None)
    _require(lifted.pattern, caller)
    rest = [entry for entry in entries if entry is not lifted]
    others = [entry for entry in rest if not entry.has_ended(stored.read_at)]
    unfrozen: list[StateName] = []
    covered: dict[StateName, Covered] = {}

    def unfreeze(name: StateName, number: int) -> None:
        if number == 0:
            with suppress(NotFrozen, LockNotMatched):
                removed = states.unfreeze(at(name), freeze_id)
                if removed:
                    tell(name, removed)
                    unfrozen.append(name)
        covering = [entry for entry in others if matches(entry.pattern, name)]
        if not covering:
            return
        # The state has one lock for all freezes that cover it.
        longest = max(covering, key=lambda entry: entry.freeze.until or _NEVER)
        lock = states.place(at(name), longest.freeze)
        if lock is None:
            tell(name, longest.freeze)
        if lock is None or lock.freeze in (None, longest.freeze):
            covered[name] = Covered(name, longest, lock is None or lock.freeze is not None)

    if number and etag != stored.version.etag:
        after = ""  # the record has changed
    lists = (LOCKS, STATES) if others else (LOCKS,)
    place: Place | None = (number, after) if number < len(lists) else None
    if place:
        place = _for_each(store, lifted.pattern, lists, place, unfreeze)
    if place is None and not record.replace(store, stored, rest):
        # Our own first attempt, whose response was lost, or another change of the record.
        is_lifted = _entry(record.entries(store.read(FROZEN_PATTERNS)), freeze_id) is None
        place = None if is_lifted else (1, "")
    fields = [freeze_id, place[0], quote(place[1]), stored.version.etag] if place else []
    next_ = cursors.encode("unfreeze", fields) if place else None
    return Lifted(lifted, [name for name in unfrozen if name not in covered], list(covered.values()), next_)


def _for_each(
    store: Store, pattern: str, lists: Sequence[Keys], place: Place, do: Callable[[StateName, int], None]
) -> Place | None:
    """Call `do` for names from a place on, with the number of their list.

    Return the place where the time has ended; None at the end.
    """
    ends = time.monotonic() + walk.SECONDS
    for name, here in catalog.matching(store, pattern, lists, place):
        if name is not None:
            try:
                do(name, here[0])
            except HoldfastError as error:
                error.logged = {"state": name.value, **error.logged}
                raise
        if time.monotonic() >= ends and catalog.can_list_after(here[1]):
            return here
    return None


def _continued(freeze_id: str, cursor: str | None) -> tuple[int, str, str]:
    """Return the place where an unfreeze continues, and the ETag of the record that it has read."""
    if cursor is None:
        return 0, "", ""
    begun_for, number, after, etag = cursors.decode("unfreeze", cursor, str, int, str, str)
    if begun_for != freeze_id or number not in (0, 1):
        raise cursors.invalid()
    return number, unquote(after), etag


def _entry(entries: Sequence[PatternFreeze], freeze_id: str) -> PatternFreeze | None:
    return next((entry for entry in entries if entry.freeze.id == freeze_id), None)


def _lifted(pattern: str) -> RacedWriter:
    return RacedWriter(
        f"While this request was in progress, the pattern {pattern} was unfrozen or its freeze ended. Run "
        "the command again."
    )


def _begin(pattern: str, cursor: str | None) -> tuple[str | None, Place]:
    """Return the ID of the freeze for which a list of names began, and the place where it continues."""
    if cursor is None:
        return None, (0, "")
    freeze_id, of, number, after = cursors.decode("freeze", cursor, str, str, int, str)
    if of != pattern:
        raise cursors.invalid()
    return freeze_id, (number, unquote(after))  # quoted: a key of another program can have any character


def _recorded(store: Store, wanted: PatternFreeze, begun_for: str | None) -> PatternFreeze:
    """Add a frozen pattern to the record, without the ended ones; return the pattern's freeze.

    A list that has begun continues only for the freeze with the ID `begun_for`: a freeze that replaced it
    would not know the locks that were acquired in between.
    """
    for _ in range(_ATTEMPTS):
        stored = store.read(FROZEN_PATTERNS)
        # A freeze with this ID is this one, even if it has ended since an attempt before.
        entries = [
            entry
            for entry in record.entries(stored)
            if entry.freeze.id == wanted.freeze.id or not (stored and entry.has_ended(stored.read_at))
        ]
        there = next((entry for entry in entries if entry.pattern == wanted.pattern), None)
        if begun_for and (there is None or there.freeze.id != begun_for):
            raise _lifted(wanted.pattern)
        if there:
            return there
        if len(entries) >= MAX_PATTERNS:
            raise InvalidRequest(
                f"At most {MAX_PATTERNS} patterns can be frozen at the same time; unfreeze a pattern first."
            )
        if record.replace(store, stored, [*entries, wanted]):
            return wanted
    raise _raced()


def _names_of(pattern: str) -> list[StateName]:
    """Return names in place of all that match a pattern, one of each length: a `*` is any text."""
    segments = pattern.count("/") + 1
    deeper = MAX_SEGMENTS - segments if pattern.rpartition("/")[2] == "*" else 0
    return [StateName(pattern + "/*" * more) for more in range(deeper + 1)]


def covers(caller: Caller, action: Action, pattern: str) -> bool:
    """Return whether a caller may do an action to every name that a frozen pattern matches."""
    return all(caller.may(action, name) for name in _names_of(pattern))


def _require(pattern: str, caller: Caller) -> None:
    """Raise an error unless a pattern is valid, and the caller may freeze every name that matches it."""
    caller.require_somewhere(Action.FREEZE)
    try:
        check_pattern(pattern)
    except ValueError as broken:
        rule = str(broken).replace("the scope pattern", "The pattern", 1)
        raise InvalidRequest(f"{rule}.") from None
    if "*" not in pattern:
        raise InvalidRequest(
            "The pattern has no '*', so it matches only one state. Freeze that state by its name."
        )
    if pattern.startswith(f"{RESERVED}/"):
        raise InvalidRequest(
            "State names that begin with 'holdfast-doctor/' are reserved for 'holdfast doctor', so these "
            "states cannot be frozen."
        )
    for name in _names_of(pattern):
        caller.require(Action.FREEZE, name)


def _raced() -> RacedWriter:
    return RacedWriter("Other requests kept changing the list of frozen patterns. Run the command again.")
