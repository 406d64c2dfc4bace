"""Describe the current version and the lock of a state, without its content."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.access import Action
from holdfast.errors import InvalidState, TooLarge
from holdfast.names import StateName
from holdfast.s3.objects import Object, ObjectVersion
from holdfast.s3.store import Store
from holdfast.state import document, fence, tracked
from holdfast.state.current_state import CurrentState, parse_metadata
from holdfast.state.document import Summary
from holdfast.state.held import HeldLock
from holdfast.state.history import Status, status_of_current
from holdfast.work import Work

LARGEST_READ: Final = 20_000_000
"""Bytes of the largest state whose document is read to describe it, or to extract its outputs."""


@dataclass(frozen=True, slots=True)
class Current:
    """The current version of a state.

    Attributes:
        state: its parsed metadata; None for another program's version.
        summary: the numbers in the document; None if it was not read, has too many values, or is not a state
            document.
    """

    version: ObjectVersion
    state: CurrentState | None
    summary: Summary | None
    status: Status


@dataclass(frozen=True, slots=True)
class Description:
    """The current version of a state, and its lock; each is None if it does not exist."""

    current: Current | None
    lock: HeldLock | None


def describe(work: Work) -> Description:
    """Describe a state. The document is read if the caller may read it and it is at most `LARGEST_READ`."""
    work.require(Action.READ_METADATA)
    (version, summary), lock = fence.look(work, _current)
    if version is None:
        return Description(None, lock)
    current = Current(version, parse_metadata(version), summary, status_of_current(version, lock))
    return Description(current, lock)


def deleted_at(store: Store, name: StateName) -> datetime | None:
    """Return when a state was deleted; None if it has a current version, or never existed."""
    newest = next(store.versions(name.state_key, page_size=1), None)
    return newest.last_modified if newest and newest.is_delete_marker else None


def _current(work: Work) -> tuple[ObjectVersion | None, Summary | None]:
    key = work.name.state_key
    if work.caller.may(Action.READ, work.name):
        stored = work.store.read_at_most(key, LARGEST_READ)
        if stored is None:
            return None, None
        if isinstance(stored, Object):
            with suppress(InvalidState, TooLarge):
                tracked.check_values(stored.body)
                return stored.version, document.summary(stored.body)
            return stored.version, None
    return work.store.read_version(key), None
