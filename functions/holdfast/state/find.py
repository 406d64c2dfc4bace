"""Find the states that have a resource, by reading the states that the caller may read whole.

A search never reads, counts or names another state. A page of a search ends after some seconds or bytes, so
that a search holds a process of the function for a short time only.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from holdfast.access import Action, Caller
from holdfast.errors import InvalidRequest, InvalidState, TooLarge
from holdfast.names import StateName
from holdfast.s3.objects import Larger, Object
from holdfast.s3.store import Store
from holdfast.state import catalog, tracked
from holdfast.state.number import Number
from holdfast.state.resources import MAX_TOLD, Resource
from holdfast.state.sensitivity import WHOLE
from holdfast.state.tracked import Address, Tracked

SECONDS: Final = 3.0
"""The time after which a page ends. A page has at least one state, if one follows."""
MAX_BYTES: Final = 32_000_000
"""The bytes of all states that are read for a page, unless the first state is larger."""
MAX_STATE: Final = 16_000_000
"""Bytes of the largest state that is searched."""
SHOWN: Final = 100
"""The most resources of one state that a page shows."""
PAGE: Final = 1000
"""The number of shown resources after which a page ends."""
LONGEST: Final = 1000
"""Characters of the longest text that can be searched for."""
ID_ATTRIBUTES: Final = ("id", "arn", "self_link", "urn")
"""The attributes that identify a resource. No other attribute is ever compared."""

_AT_ONCE: Final = 8
"""The number of states that are read in parallel."""
_MAX_ADDRESSES: Final = 2 * MAX_STATE
"""Characters of all addresses of a state that is searched: a long name counts for each of its instances."""


class By(StrEnum):
    """The ways to find a resource. Clients send the values."""

    ADDRESS = "address"
    """A part of its address; the case of ASCII letters does not matter."""
    TYPE = "type"
    """Its whole type."""
    ID = "id"
    """The whole value of one of `ID_ATTRIBUTES`, unless the state marks the value as sensitive."""


class Skipped(StrEnum):
    """The reasons not to search a state. Clients read the values."""

    TOO_LARGE = "too_large"
    ENCRYPTED = "encrypted"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, repr=False)
class Wanted:
    """The text that a search looks for. It has no `repr`, because logs and errors must not contain it."""

    by: By
    text: str

    def __post_init__(self) -> None:
        """Raise `InvalidRequest` for an empty or too long text."""
        if not 0 < len(self.text) <= LONGEST:
            raise InvalidRequest(f"The text to search for must have 1 to {LONGEST} characters.")

    def matches(self, address: Address, resource: Tracked) -> bool:
        match self.by:
            case By.ADDRESS:
                return _lower(self.text) in _lower(str(address))
            case By.TYPE:
                return self.text == address.type
            case By.ID:
                return any(self._is_id(name, resource) for name in ID_ATTRIBUTES)

    def _is_id(self, name: str, resource: Tracked) -> bool:
        value = resource.attributes.get(name)
        if isinstance(value, Number):
            value = str(value)
        return value == self.text and not {name, WHOLE} & resource.marks.keys()


@dataclass(frozen=True, slots=True)
class SearchedState:
    """The result of searching a state: the number of matches, and the first `SHOWN` of them."""

    name: StateName
    matches: int
    resources: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class SkippedState:
    """A state that was not searched."""

    name: StateName
    why: Skipped
    size: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a search.

    Attributes:
        states: the states with matches.
        searched: the number of states on this page, skipped ones included.
        left: the number of states that follow; None if they are on several pages of the list of states.
        next: the cursor of the next page; None on the last page.
    """

    states: Sequence[SearchedState]
    skipped: Sequence[SkippedState]
    searched: int
    left: int | None
    next: str | None


def page(
    store: Store,
    wanted: Wanted,
    prefix: str,
    cursor: str | None,
    caller: Caller,
    *,
    page_size: int = catalog.PAGE,
) -> Page:
    """Search the current versions of the states that the caller may read, in the order of their names.

    It takes one request for the list of states, and one for each state on the page.

    Args:
        prefix: the beginning of the names of the states; empty for all.
    """
    caller.require_somewhere(Action.READ)
    ends = time.monotonic() + SECONDS
    listed = catalog.page_of_readable(store, prefix, cursor, caller, seconds=SECONDS, page_size=page_size)
    matching: list[SearchedState] = []
    skipped: list[SkippedState] = []
    searched, room, told = 0, PAGE, MAX_TOLD
    for (name, size), body in _bodies(store, listed.items):
        if searched and (time.monotonic() >= ends or room <= 0 or told <= 0):
            break
        searched += 1
        match _search(name, size, body, wanted):
            case SkippedState() as state:
                skipped.append(state)
            case SearchedState(matches=int(matches)) as state if matches:
                matching.append(state)
                room -= len(state.resources)
                told -= sum(resource.characters for resource in state.resources)
            case _:
                pass
    left = len(listed.items) - searched
    next_ = catalog.cursor_after(listed.items[searched - 1][0]) if left else listed.next
    return Page(matching, skipped, searched, None if listed.next else left, next_)


def _bodies(
    store: Store, states: Sequence[tuple[StateName, int]]
) -> Iterator[tuple[tuple[StateName, int], Object | Larger | None]]:
    """Yield each state with its current version, until `MAX_BYTES` are read. None means that it is gone."""

    def read(state: tuple[StateName, int]) -> Object | Larger | None:
        name, size = state
        return Larger(size) if size > MAX_STATE else store.read_at_most(name.state_key, MAX_STATE)

    left, position = MAX_BYTES, 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while position < len(states):
            batch: list[tuple[StateName, int]] = []
            for state in states[position : position + _AT_ONCE]:
                cost = state[1] if state[1] <= MAX_STATE else 0
                if cost > left and (position or batch):
                    break
                left -= cost
                batch.append(state)
            if not batch:
                return
            position += len(batch)
            yield from zip(batch, pool.map(read, batch), strict=True)


def _search(
    name: StateName, size: int, body: Object | Larger | None, wanted: Wanted
) -> SearchedState | SkippedState:
    if body is None:
        return SearchedState(name, 0, ())
    if isinstance(body, Larger):
        return SkippedState(name, Skipped.TOO_LARGE, body.size)
    matches, left = 0, _MAX_ADDRESSES
    shown: list[Resource] = []
    try:
        objects = tracked.objects(body.body)
        if objects is None:
            return SkippedState(name, Skipped.ENCRYPTED, size)
        for address, resource in objects:
            left -= address.characters
            if left < 0:
                return SkippedState(name, Skipped.TOO_LARGE, size)
            if wanted.matches(address, resource):
                matches += 1
                if len(shown) < SHOWN:
                    shown.append(Resource.of(address, resource))
    except TooLarge:
        return SkippedState(name, Skipped.TOO_LARGE, size)
    except (InvalidState, RecursionError):
        return SkippedState(name, Skipped.UNREADABLE, size)
    return SearchedState(name, matches, tuple(shown))


def _lower(text: str) -> bytes:
    """Return a text in UTF-8 with its ASCII letters in lower case."""
    return text.encode(errors="surrogatepass").lower()
