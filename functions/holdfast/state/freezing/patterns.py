"""Freeze a pattern of names: a record refuses new states, and each other state is frozen by itself."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote, unquote

from holdfast.access import Action, Caller, check_pattern
from holdfast.errors import InvalidRequest, RacedWriter
from holdfast.names import FROZEN_PATTERNS, MAX_SEGMENTS, RESERVED, StateName
from holdfast.s3.store import Store
from holdfast.state import catalog
from holdfast.state import cursor as cursors
from holdfast.state.freezing import record
from holdfast.state.freezing.record import PatternFreeze
from holdfast.state.freezing.states import check
from holdfast.state.held import Freeze
from holdfast.state.operator import check_id

MAX_PATTERNS: Final = 100

_ATTEMPTS: Final = 5


def freeze_pattern(
    store: Store, caller: Caller, pattern: str, freeze: Freeze, *, now: datetime, cursor: str | None = None
) -> tuple[PatternFreeze, Sequence[StateName], str | None]:
    """Freeze a pattern for names that have no state, and return names that are to be frozen one by one.

    A pattern that is frozen already stays as it is: the result is that freeze.

    Args:
        cursor: the last result of the request before, which continues the list of names.

    Returns:
        The pattern's freeze, names, and the cursor with which the list continues; None at its end.

    Raises:
        RacedWriter: others kept changing the record, or lifted the freeze before the list ended.
        UnreadableRecord: the record is not valid, or of a later version.
    """
    _require(pattern, caller)
    if "**" in pattern:
        raise InvalidRequest("The 'pattern' has '**': everything below a name is 'name/*'.")
    check(freeze, now=now)
    begun_for, place = _begin(pattern, cursor)
    frozen = _recorded(store, PatternFreeze(pattern, freeze, caller.principal, None, caller.owner), begun_for)
    names, rest = catalog.locked_or_stored(store, pattern, place)
    fields = [frozen.freeze.id, pattern, rest[0], quote(rest[1])] if rest else []
    return frozen, names, cursors.encode("freeze", fields) if rest else None


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


def unfreeze_pattern(store: Store, caller: Caller, freeze_id: str) -> PatternFreeze | None:
    """Remove a pattern from the record; None if it is not there. The frozen states stay frozen."""
    caller.require_somewhere(Action.FREEZE)
    check_id(freeze_id)
    lifted = None
    for _ in range(_ATTEMPTS):
        stored = store.read(FROZEN_PATTERNS)
        entries = record.entries(stored)
        before, lifted = lifted, next((entry for entry in entries if entry.freeze.id == freeze_id), None)
        if lifted is None:
            return before  # the attempt before took effect, or somebody else's did
        _require(lifted.pattern, caller)
        if record.replace(store, stored, [entry for entry in entries if entry is not lifted]):
            return lifted
    raise _raced()


def _begin(pattern: str, cursor: str | None) -> tuple[str | None, tuple[int, str]]:
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
            raise RacedWriter(f"The freeze of {wanted.pattern} was lifted meanwhile. Run the command again.")
        if there:
            return there
        if len(entries) >= MAX_PATTERNS:
            raise InvalidRequest(f"At most {MAX_PATTERNS} patterns can be frozen; unfreeze one first.")
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
        raise InvalidRequest(str(broken).replace("the scope pattern", "The 'pattern'", 1)) from None
    if "*" not in pattern:
        raise InvalidRequest("The 'pattern' has no '*': freeze this name itself.")
    if pattern.startswith(f"{RESERVED}/"):
        raise InvalidRequest(
            "These are probes of 'holdfast doctor', which removes them; they are not frozen."
        )
    for name in _names_of(pattern):
        caller.require(Action.FREEZE, name)


def _raced() -> RacedWriter:
    return RacedWriter("Others kept changing the record of frozen patterns. Run the command again.")
