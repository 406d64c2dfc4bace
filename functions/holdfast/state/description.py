"""Describe the current version and the lock of a state, without its content."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.access import Action, Caller
from holdfast.errors import InvalidState
from holdfast.names import StateName
from holdfast.s3.store import Object, ObjectVersion, Store
from holdfast.state import document, fence
from holdfast.state.current_state import CurrentState, noted
from holdfast.state.document import Summary
from holdfast.state.history import Status, status_of_current
from holdfast.state.locks import HeldLock

LARGEST_READ: Final = 20_000_000
"""Bytes of the largest state whose document is read to describe it, or to extract its outputs."""


@dataclass(frozen=True, slots=True)
class Current:
    """The current version of a state.

    Attributes:
        noted: its parsed metadata; None for another program's version.
        summary: the numbers in the document; None if it was not read, or is not a state document.
    """

    version: ObjectVersion
    noted: CurrentState | None
    summary: Summary | None
    status: Status


@dataclass(frozen=True, slots=True)
class Description:
    """The current version of a state, and its lock; each is None if it does not exist."""

    current: Current | None
    lock: HeldLock | None


def describe(store: Store, name: StateName, caller: Caller) -> Description:
    """Describe a state. The document is read if the caller may read it and it is at most `LARGEST_READ`."""
    caller.require(Action.READ_METADATA, name)
    (version, summary), lock = fence.look(store, name, lambda *_: _current(store, name, caller))
    if version is None:
        return Description(None, lock)
    return Description(Current(version, noted(version), summary, status_of_current(version, lock)), lock)


def deleted_at(store: Store, name: StateName) -> datetime | None:
    """Return when a state was deleted; None if it has a current version, or never existed."""
    newest = next(store.versions(name.state_key, page_size=1), None)
    return newest.last_modified if newest and newest.is_delete_marker else None


def _current(store: Store, name: StateName, caller: Caller) -> tuple[ObjectVersion | None, Summary | None]:
    if caller.may(Action.READ, name):
        found = store.read_at_most(name.state_key, LARGEST_READ)
        if found is None:
            return None, None
        if isinstance(found, Object):
            try:
                return found.version, document.summary(found.body)
            except InvalidState:
                return found.version, None
    return store.read_version(name.state_key), None
