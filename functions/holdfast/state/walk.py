"""Walk the keys that a caller may see, so that a page reveals nothing about other keys.

**A page depends on visible keys alone.** It ends after a number of visible keys, and has a next page only if
another visible key follows. The cursor of the next page is the last visible key. If a page ended with S3's
page of 1,000 keys, its end would reveal how many foreign keys are between two places; callers who choose the
places could read foreign names letter by letter.

**The walk only lists keys below the literal beginnings of the scope.** A literal beginning is the part of a
pattern before its first `*`. After a `*`, the walk skips keys that no pattern covers. For `*/prod` it skips
from `a/dev/…` to `a/prod`, and from there to the first key after `a/`.

**A page has a time limit, after which the next page continues.** For `*/prod`, many foreign keys can be
between two visible keys. After `SECONDS` the walk stops at the place that it has reached. The next page
begins at the shortest beginning of this place that is after the last visible key, if a visible key can begin
with it. So the cursor reveals at most the characters that all keys of a long walk share, and one more. A
caller can see from the response time anyway that the walk was long.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os.path import commonprefix
from typing import Final, Generic, Protocol, TypeVar

SECONDS: Final = 8.0
"""The time after which a page ends although it is not full."""

_AFTER_SLASH: Final = chr(ord("/") + 1)

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Walked(Generic[_T]):
    """A page of a walk.

    Attributes:
        after: the place after which the page begins; empty for the first page.
        entries: visible keys, in order.
        until: the key before which `entries` contains all visible keys; None at the end of the walk.
        next: the key or the beginning of a key after which the next page begins; None at the end.
    """

    after: str
    entries: Sequence[tuple[str, _T]]
    until: str | None = None
    next: str | None = None


class Listing(Protocol[_T_co]):
    """A function that lists a page of keys with one request, and leaves out those that are not visible."""

    def __call__(self, prefix: str, after: str, /) -> tuple[Sequence[tuple[str, _T_co]], str | None]:
        """Return the visible keys, and the last key that S3 listed; None on the last page."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of the keys that a caller may see.

    Attributes:
        folder: the beginning of all keys; a name and an ending follow.
        last_ending: the last of the possible endings, in order of keys.
        scope: the patterns that cover visible names.
        prefix: the beginning of all requested names.
    """

    folder: str
    last_ending: str
    scope: Sequence[str]
    prefix: str

    def beginnings(self) -> list[str]:
        """Return the shortest literal beginnings that cover all visible keys, in order.

        >>> Places("", "", ("zz/*", "a*/b", "aa/*", "b/c"), "").beginnings()
        ['a', 'b/c', 'zz/']
        """
        shortest: list[str] = []
        for literal in sorted(pattern.partition("*")[0] for pattern in self.scope):
            shorter, longer = sorted((literal, self.prefix), key=len)
            beginning = f"{self.folder}{longer}"
            if longer.startswith(shorter) and not (shortest and beginning.startswith(shortest[-1])):
                shortest.append(beginning)
        return shortest

    def skip(self, place: str) -> str | None:
        """Return the last place with no visible key between `place` and it; None if no visible key follows.

        >>> Places("", ".x", ("*/prod",), "").skip("a/dev"), Places("", ".x", ("*/prod",), "").skip("a/x")
        ('a/prod', 'a0')
        """
        name = place.removeprefix(self.folder)
        skipped = [_skip(pattern, name, self.last_ending) for pattern in self.scope]
        nearest = min((each for each in skipped if each is not None), default=None)
        return None if nearest is None else f"{self.folder}{nearest}"

    def can_begin(self, place: str) -> bool:
        """Return whether a visible key can begin with a place, by prefix and patterns."""
        return place.startswith(f"{self.folder}{self.prefix}") and (self.skip(place) or "").startswith(place)


def page(
    places: Places,
    after: str,
    list_visible: Listing[_T],
    *,
    is_cursor: Callable[[str], bool],
    page_size: int,
    seconds: float | None = None,
) -> Walked[_T]:
    """Walk until a page is full, or its time limit has passed.

    Args:
        after: the place after which the page begins; empty for the first page.
        is_cursor: returns whether a page can begin after a place.
        page_size: the most visible keys of a page.
        seconds: the time after which the page ends although it is not full; by default `SECONDS`.
    """
    ends = time.monotonic() + (SECONDS if seconds is None else seconds)
    shown: list[tuple[str, _T]] = []
    has_listed = False
    for beginning in places.beginnings():
        place = max(after, beginning)
        while (skipped := places.skip(place)) is not None and skipped.startswith(beginning):
            place = skipped
            if has_listed and time.monotonic() >= ends:
                seen = max(beginning, after, shown[-1][0] if shown else "")
                next_ = place[: len(commonprefix((seen, place))) + 1]  # noqa: RUF071 of texts, not of paths
                if is_cursor(next_):
                    return Walked(after, shown, place, next_)
            has_listed = True
            visible, last = list_visible(beginning, place)
            for key, entry in visible:
                if len(shown) == page_size:
                    return Walked(after, shown, key, shown[-1][0])
                shown.append((key, entry))
            if last is None:
                break
            place = last
    return Walked(after, shown)


def _skip(pattern: str, name: str, last_ending: str) -> str | None:
    """Return the last text with no key of a pattern between `name` and it; None if no key follows.

    Texts lack the folder; `name` may be a beginning. Only if the text is `name`, it can be a key itself.
    """
    before = ""
    following: str | None = None  # the first text after the keys that the segments so far cover
    segments = pattern.split("/")
    for number, segment in enumerate(segments, start=1):
        rest = name[len(before) :]
        literal, star, _ = segment.partition("*")
        if not rest.startswith(literal):
            return before + literal if rest < literal else following
        here, slash, _ = rest.partition("/")
        is_last = number == len(segments)
        if star:
            if not slash or (is_last and segment == "*"):
                return name
            # The slash counts for the order: 'a-b/' comes before 'a/', and 'a0/' after it.
            following = f"{before}{here}{_AFTER_SLASH}"
            if is_last or not fnmatchcase(here, segment):
                return following
        elif is_last:
            return name if rest <= segment + last_ending else following
        elif not slash or here != segment:
            return f"{before}{segment}/" if rest < f"{segment}/" else following
        before += f"{here}/"
    return following
