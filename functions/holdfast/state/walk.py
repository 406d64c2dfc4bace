"""Walk the keys that a caller may see, so that a page tells nothing of the others.

**A page depends on visible keys alone.** It ends after a number of them, whatever lies between, and has a
next page only if another visible key follows. That page is named by the last key shown. If a page ended where
S3's page of 1,000 keys does, its end would tell how many foreign keys there are between two places; with
places of their own choice, callers could read foreign names letter by letter.

**S3 is asked only below the literal beginnings of the scope**, the part of each pattern before its first `*`.
Behind a `*` the walk skips what no pattern covers. For `*/prod` it skips from `a/dev/…` to `a/prod`, and from
there to what follows all of `a/`.

**A page ends in time, and the next one begins further on.** For `*/prod` many foreign keys can lie between
two visible ones. After `SECONDS` the walk stops where it is. The next page then begins at the shortest text
between the last visible key and that place with which a visible name can begin. So the cursor holds at most
the characters that a visible name shares with all keys of a long walk, and one more; that the walk was long,
its time tells anyway.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os.path import commonprefix
from typing import Final, Generic, Protocol, TypeVar

SECONDS: Final = 8.0
"""After so long, a page ends although it has room."""

_AFTER_SLASH: Final = chr(ord("/") + 1)

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Walked(Generic[_T]):
    """A page of a walk.

    Attributes:
        entries: visible keys, in order.
        until: all visible keys before this one are among them; None at the end of the walk.
        next: the key or the beginning of a key after which the next page begins; None at the end.
    """

    entries: Sequence[tuple[str, _T]]
    until: str | None = None
    next: str | None = None


class Listing(Protocol[_T_co]):
    """Lists a page of keys with one request."""

    def __call__(self, prefix: str, after: str, /) -> tuple[Sequence[tuple[str, _T_co]], str | None]:
        """Return the keys, and the last one that was looked at; None if there are no more."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the keys are that a caller may see.

    Attributes:
        folder: the beginning of all keys; a name and an ending follow.
        last_ending: the last of the possible endings, in order of keys.
        scope: patterns that cover the names.
        prefix: the beginning of all names asked for.
    """

    folder: str
    last_ending: str
    scope: Sequence[str]
    prefix: str

    def beginnings(self) -> list[str]:
        """Return the literal beginnings of the keys, in order; none begins with another.

        >>> Places("", "", ("zz/*", "a*/b", "aa/*", "b/c"), "").beginnings()
        ['a', 'b/c', 'zz/']
        """
        found: list[str] = []
        for literal in sorted(pattern.partition("*")[0] for pattern in self.scope):
            shorter, longer = sorted((literal, self.prefix), key=len)
            beginning = f"{self.folder}{longer}"
            if longer.startswith(shorter) and not (found and beginning.startswith(found[-1])):
                found.append(beginning)
        return found

    def skip(self, place: str) -> str | None:
        """Return the last place, from this one, before which no visible key is; None if none follows.

        >>> Places("", ".x", ("*/prod",), "").skip("a/dev"), Places("", ".x", ("*/prod",), "").skip("a/x")
        ('a/prod', 'a0')
        """
        name = place.removeprefix(self.folder)
        skipped = [_skip(pattern, name, self.last_ending) for pattern in self.scope]
        nearest = min((each for each in skipped if each is not None), default=None)
        return None if nearest is None else f"{self.folder}{nearest}"

    def can_begin(self, place: str) -> bool:
        """Return whether the key of a visible name can begin so, as far as prefix and patterns tell."""
        return place.startswith(f"{self.folder}{self.prefix}") and (self.skip(place) or "").startswith(place)


def page(
    places: Places,
    after: str,
    list_keys: Listing[_T],
    *,
    is_visible: Callable[[str], bool],
    is_cursor: Callable[[str], bool],
    page_size: int,
    seconds: float | None = None,
) -> Walked[_T]:
    """Walk until a page is full, or its time is over.

    Args:
        after: the place after which the page begins; empty for the first.
        is_cursor: whether a page can begin after a place.
        page_size: the most visible keys of a page.
        seconds: after which it ends although it has room; by default `SECONDS`.
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
                    return Walked(shown, place, next_)
            has_listed = True
            keys, last = list_keys(beginning, place)
            for key, entry in keys:
                if not is_visible(key):
                    continue
                if len(shown) == page_size:
                    return Walked(shown, key, shown[-1][0])
                shown.append((key, entry))
            if last is None:
                break
            place = last
    return Walked(shown)


def _skip(pattern: str, name: str, last_ending: str) -> str | None:
    """Return the last text, from a name or a part of one, before which no key of a pattern is.

    Names and text are without the folder. No key of the pattern equals the text, unless it is the one given.
    """
    before = ""
    following: str | None = None  # what follows all that the segments before have covered
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
            # A segment is at its end with the slash: 'a-b/' comes before 'a/', and 'a0/' after it.
            following = f"{before}{here}{_AFTER_SLASH}"
            if is_last or not fnmatchcase(here, segment):
                return following
        elif is_last:
            return name if rest <= segment + last_ending else following
        elif not slash or here != segment:
            return f"{before}{segment}/" if rest < f"{segment}/" else following
        before += f"{here}/"
    return following
