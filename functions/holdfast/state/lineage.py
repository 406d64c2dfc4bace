"""Find the highest serial that a lineage ever had, so that no serial of the lineage is given twice.

The history keeps the versions of a lineage that another lineage has replaced, and saved plans of these
versions may still exist. If the lineage came back with a serial that it already had, such a plan would pass.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from holdfast.access import Caller
from holdfast.errors import InvalidState, TooLarge
from holdfast.names import StateName
from holdfast.s3.store import Larger, Store
from holdfast.state import cursor as cursors
from holdfast.state import document, history
from holdfast.state.document import Revision
from holdfast.state.history import Version

SECONDS: Final = 8.0
"""The time after which a search reads no further body; the next request continues it."""


@dataclass(frozen=True, slots=True)
class Search:
    """The progress of a search through a whole history.

    Attributes:
        highest: the highest serial so far.
        versions: the number of versions and delete markers that were read so far.
        next: the cursor with which the search continues; None at the end.
    """

    highest: int
    versions: int
    next: str | None


def search(
    store: Store,
    name: StateName,
    of: Revision,
    restores: tuple[str, str],
    cursor: str | None,
    caller: Caller,
    *,
    limit: int,
) -> Search:
    """Search the history for the highest serial of the lineage of a revision, for at most `SECONDS`.

    Args:
        restores: the version to restore and the current version. A cursor is valid for this restore alone.
    """
    ends = time.monotonic() + SECONDS
    highest, count, place = of.serial, 0, None
    if cursor is not None:
        for_name, *for_restore, highest, count, place = cursors.decode(
            "lineage", cursor, str, str, str, int, int, str
        )
        # The restore would store a serial that goes back, or that no version can have.
        is_serial = of.serial <= highest < document.SERIAL_END
        if (for_name, *for_restore) != (name.value, *restores) or not is_serial:
            raise cursors.invalid()

    def paused() -> Search:
        fields = [name.value, *restores, highest, count, place]
        return Search(highest, count, cursors.encode("lineage", fields))

    has_read = False
    while True:
        page = history.page(store, name, place, caller)
        for version in page.versions:
            if _has_body_to_read(version):
                if has_read and time.monotonic() >= ends:
                    return paused()
                has_read = True
            serials = [
                found.serial for found in _revisions(store, name, version, limit) if found.same_lineage(of)
            ]
            highest = max([highest, *serials])
            count, place = count + 1, history.place_after(name, version)
        place = page.next
        if place is None:
            return Search(highest, count, None)
        if time.monotonic() >= ends:
            return paused()


def _has_body_to_read(version: Version) -> bool:
    return not version.noted and not version.entry.is_delete_marker


def _revisions(store: Store, name: StateName, version: Version, limit: int) -> Iterator[Revision]:
    """Yield the revision of a version, and the revision that it replaced, whose version may be removed."""
    if version.noted:
        yield from (each for each in (version.noted.revision, version.noted.superseded) if each)
    elif _has_body_to_read(version):
        found = store.read_at_most(name.state_key, limit, version.entry.id)
        if isinstance(found, Larger):
            raise TooLarge(
                f"The serial of the version {version.entry.id}, which another program wrote, is unknown: the "
                f"version has {found.size} bytes; this deployment reads states of at most {limit}."
            )
        try:
            if found:
                yield document.parse(found.body).revision
        except InvalidState:
            return
