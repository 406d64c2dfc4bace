"""Resolve references to versions of a state: `@12`, `@2026-11-20T14:00Z`, `@previous`, `@deleted`.

After the next write, a reference such as `@previous` means another version. So a read-only request resolves
it to an exact version ID. Requests that change a state accept exact IDs alone, so that a retry means the same
version as the first attempt.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from holdfast import timestamp
from holdfast.errors import InvalidRequest, NoState, NoSuchVersion, NoVersions
from holdfast.names import StateName
from holdfast.state import cursor as cursors
from holdfast.state import history
from holdfast.state.history import Status, Version
from holdfast.work import Work

SECONDS: Final = 8.0
"""The time after which a search pauses; the next request continues it."""
PAGES: Final = 2
"""The pages of the history after which a search pauses, too: after 44 requests to S3."""

_RULE: Final = (
    "A reference to a version must be a serial such as @12, a time with an offset such as "
    "@2026-11-20T14:00:00Z, or one of the words @previous and @deleted. The ID of a version is not a "
    "reference: use the ID without resolving it."
)

_STATUSES: Final[Mapping[str, str]] = {
    Status.NEVER_ACKNOWLEDGED: ", never acknowledged",
    Status.OTHER_PROGRAM: ", written by another program",
}
"""The ending of a version's description, by status."""
_UNDELETE: Final = "undelete"
"""The operation in the metadata of a version that an undelete wrote."""
_SERIAL: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


class Word(Enum):
    """The references that are words."""

    PREVIOUS = "@previous"
    """The newest version before the current version. Versions that were never acknowledged are skipped."""
    DELETED = "@deleted"
    """The newest delete marker. The state must be deleted, or an undelete must have created it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed reference: its `text`, and the serial, time or word that it `means`."""

    text: str
    means: int | datetime | Word

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Match:
    """The data about a version that the cursor of a search contains.

    Attributes:
        written: seconds since 1970.
        serial: -1 if it is unknown.
        status: empty for a delete marker.
        sha256: empty if it is unknown.
    """

    id: str
    written: int
    serial: int
    status: str
    sha256: str

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.written, UTC)

    def __str__(self) -> str:
        serial = f", serial {self.serial}" if self.serial >= 0 else ""
        written = timestamp.sentence(self.time)
        return f"version {self.id}{serial}, of {written}{_STATUSES.get(self.status, '')}"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The result of a search. If `version` is None, the search must be continued with the cursor `next`.

    `current` is the version that was current when the search began; None if the state was deleted.
    """

    version: Match | None
    current: Match | None
    next: str | None = None


@dataclass(slots=True)
class _Search:
    """The progress of a search.

    Attributes:
        current: the version that was current when it began; None if the state was deleted.
        candidate: for a serial, the version found so far; for a time, the oldest acknowledged version so far.
        lowest: the lowest serial so far, and `highest` the highest; both are -1 before the first.
    """

    name: StateName
    reference: Reference
    current: Match | None = None
    candidate: Match | None = None
    lowest: int = -1
    highest: int = -1


_NOTHING: Final = Match("", 0, -1, "", "")
_MATCH: Final = (str, int, int, str, str)


def parse(text: str) -> Reference:
    named = text.removeprefix("@")
    for word in Word:
        if text == word.value:
            return Reference(text, word)
    if text.startswith("@") and _SERIAL.fullmatch(named):
        return Reference(text, int(named))
    if text.startswith("@"):
        with suppress(ValueError):
            return Reference(text, timestamp.parse(named))
    raise InvalidRequest(_RULE)


def resolve(work: Work, reference: Reference, cursor: str | None) -> Resolution:
    """Search `PAGES` of the history of a state for the version that a reference means, for at most `SECONDS`.

    `InvalidRequest` is raised also if several versions have the serial, with different content.
    """
    ends = time.monotonic() + SECONDS
    search, place = _begin(work.name, reference, cursor)
    has_begun = place is not None
    left = PAGES
    while True:
        page = history.page(work, place)
        left -= 1
        if not has_begun and (page.items or page.next is None):  # S3 may have removed a whole page
            _look_at_newest(search, page.items[0] if page.items else None)
            has_begun = True
        if match := _look(search, iter(page.items)):
            return Resolution(match, search.current)
        place = page.next
        if place is None:
            return Resolution(_at_end(search), search.current)
        if has_begun and (left <= 0 or time.monotonic() >= ends):
            return Resolution(None, search.current, _cursor(search, place))


def _look_at_newest(search: _Search, newest: Version | None) -> None:
    if newest is None:
        raise NoState(
            f"There is no state '{search.name}'. 'holdfast state list' shows the states in your scope."
        )
    if not newest.entry.is_delete_marker:
        search.current = _match(newest)
        if search.reference.means is Word.DELETED and newest.metadata.get("operation") != _UNDELETE:
            raise NoSuchVersion(
                f"The state {search.name} is not deleted: its version {newest.entry.id} is current. Nothing "
                "was changed. To go back to an earlier version, use 'holdfast state restore'."
            )
    elif search.reference.means is Word.PREVIOUS:
        raise NoSuchVersion(
            f"The state {search.name} is deleted, so it has no current version and no previous version. A "
            f"maintainer can bring the state back with 'holdfast state undelete {search.name}'."
        )


def _look(search: _Search, versions: Iterator[Version]) -> Match | None:
    """Search a page of the history, newest first. Return the version; None if the search must continue."""
    means = search.reference.means
    for version in versions:
        match, is_marker = _match(version), version.entry.is_delete_marker
        if means is Word.DELETED and is_marker:
            return match
        if isinstance(means, datetime) and is_marker and match.time <= means:
            raise NoSuchVersion(
                f"The state {search.name} was deleted at {timestamp.sentence(match.time)}, so it had no "
                f"version at {search.reference}. 'holdfast state history {search.name}' shows the earlier "
                "versions; use the ID of one of them."
            )
        if is_marker:
            continue
        if isinstance(means, int):
            _compare(search, match, means)
        elif match.status != Status.NEVER_ACKNOWLEDGED:
            if means is Word.PREVIOUS and not (search.current and match.id == search.current.id):
                return match
            if isinstance(means, datetime) and match.time <= means:
                return match
            search.candidate = match
    return None


def _compare(search: _Search, match: Match, serial: int) -> None:
    """Make a version the candidate if it has this serial; `InvalidRequest` if the contents differ."""
    if match.serial >= 0:
        search.lowest = match.serial if search.lowest < 0 else min(search.lowest, match.serial)
        search.highest = max(search.highest, match.serial)
    if match.serial != serial:
        return
    before = search.candidate
    if before and (not match.sha256 or before.sha256 != match.sha256):
        raise InvalidRequest(
            f"The state {search.name} has several versions with the serial {serial} and different contents: "
            f"{before}; {match}. Use the ID of one of them."
        )
    # All candidates have the same bytes. Prefer an acknowledged one.
    if before is None or (before.status, match.status) == (Status.NEVER_ACKNOWLEDGED, Status.ACKNOWLEDGED):
        search.candidate = match


def _at_end(search: _Search) -> Match:
    name, reference = search.name, search.reference
    match reference.means:
        case int():
            if search.candidate:
                return search.candidate
            there = (
                f"the serials of its versions are from {search.lowest} to {search.highest}"
                if search.lowest >= 0
                else "no version of this state has a serial"
            )
            raise NoSuchVersion(
                f"The state {name} has no version with the serial {reference.means}: {there}. "
                f"'holdfast state history {name}' shows the versions."
            )
        case datetime():
            if search.candidate is None:
                raise NoSuchVersion(
                    f"The state {name} has no acknowledged version. 'holdfast state history {name}' shows "
                    "its versions."
                )
            raise NoSuchVersion(
                f"The history of the state {name} has no acknowledged version of {reference} or earlier. The "
                f"oldest acknowledged one is {search.candidate}."
            )
        case Word.PREVIOUS:
            raise NoSuchVersion(
                f"The state {name} has no acknowledged version before the current one. 'holdfast state "
                f"history {name}' shows its versions."
            )
        case Word.DELETED:
            raise NoVersions(
                f"The state {name} is not deleted, and its history no longer has a delete marker, so there "
                "is nothing to undelete."
            )


def _match(version: Version) -> Match:
    return Match(
        version.entry.id,
        int(version.entry.last_modified.timestamp()),
        version.state.revision.serial if version.state and version.state.revision else -1,
        version.status.value if version.status else "",
        version.state.sha256 if version.state else "",
    )


def _cursor(search: _Search, place: str) -> str:
    matches = (*astuple(search.current or _NOTHING), *astuple(search.candidate or _NOTHING))
    return cursors.encode(
        "resolve", [search.name.value, search.reference.text, place, search.lowest, search.highest, *matches]
    )


def _begin(name: StateName, reference: Reference, cursor: str | None) -> tuple[_Search, str | None]:
    if cursor is None:
        return _Search(name, reference), None
    of, text, place, lowest, highest, *matches = cursors.decode(
        "resolve", cursor, str, str, str, int, int, *_MATCH, *_MATCH
    )
    if (of, text) != (name.value, reference.text):
        raise cursors.invalid()
    current, candidate = Match(*matches[: len(_MATCH)]), Match(*matches[len(_MATCH) :])
    with suppress(ValueError, OverflowError, OSError):
        if current.time and candidate.time:
            search = _Search(name, reference, current if current.id else None, None, lowest, highest)
            search.candidate = candidate if candidate.id else None
            return search, place
    raise cursors.invalid()  # its times are invalid
