"""Parse a JSON object strictly, as Go's decoder does: UTF-8 only, no NaN, no other top level.

An invalid body raises a `ValueError` whose message completes "The body …".
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, NoReturn


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


MOST_MEMBERS: Final = 50_000
"""The most members of an object of which `members` keeps each: one takes up to 500 bytes of memory."""

ARRAYS_FROM: Final = 8_000_000
"""Bytes of the largest document that may have any number of arrays. Counting them takes a tenth of a scan."""
BYTES_OF_ARRAY: Final = 16
"""The least bytes of an array in a larger document, on average.

Each array takes 96 bytes of memory, at any depth, for the two bytes of its brackets. Clients indent states,
so that an array among the attributes of an instance has 18 bytes or more.
"""

_PIECE: Final = 64 * 1024
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""The escape of half of a surrogate pair."""
_OPENING: Final = re.compile(r"[ \t\n\r]*\{")
_NAME: Final = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+)"[ \t\n\r]*:[ \t\n\r]*')
_COMMA: Final = re.compile(r"[ \t\n\r]*,")
_ARRAY: Final = re.compile(r"[ \t\n\r]*\[[ \t\n\r]*")
_NEXT: Final = re.compile(r"[ \t\n\r]*,?[ \t\n\r]*")
_CLOSING: Final = re.compile(r"[ \t\n\r]*\}[ \t\n\r]*")
_SHALLOW: Final = json.JSONDecoder(object_pairs_hook=bool, parse_constant=_refuse)
"""Replaces a nested object by whether it has members, so that its content is not kept."""


_TOO_DEEP: Final = "is nested too deeply"


class TooManyMembersError(ValueError):
    """An object has more members than `MOST_MEMBERS`."""


class NotUnicodeError(ValueError):
    """A text of a document holds half of a surrogate pair, so it cannot be encoded as UTF-8."""


def parse(
    body: bytes, *, of_pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Parse a JSON object; `of_pairs` makes each object of its members, by default the last of each name."""
    if not body:
        raise ValueError("is empty")
    try:
        document = json.loads(body.decode(), object_pairs_hook=of_pairs, parse_constant=_refuse)
    except ValueError:
        raise ValueError("is not a JSON document") from None
    except RecursionError:  # in some versions of Python at a smaller depth with a hook
        raise ValueError(_TOO_DEEP) from None
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 a wrong value, not a programming error
    return document


def parse_unicode(body: bytes) -> dict[str, Any]:
    """Parse a JSON object; raise `NotUnicodeError` if one of its texts, at any depth, is not Unicode."""
    return _of_unicode(body, parse(body))


def parse_unique(body: bytes) -> dict[str, Any]:
    """Parse a JSON object as `parse_unicode` does; reject repeated members at any depth, too."""
    has_repeated = False

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_repeated
        members = dict(pairs)
        has_repeated = has_repeated or len(members) < len(pairs)
        return members

    document = parse(body, of_pairs=unique)
    if has_repeated:
        raise ValueError("has a member twice")
    return _of_unicode(body, document)


def _of_unicode(body: bytes, document: dict[str, Any]) -> dict[str, Any]:
    # Only such an escape makes half of a pair, and few documents have one. It can also be half of a whole
    # pair, or follow an escaped backslash.
    if _HALF.search(body):
        check_unicode(document)
    return document


def check_unicode(document: object) -> None:
    """Raise `NotUnicodeError` unless every text of a parsed document can be encoded as UTF-8."""
    left = [document]
    while left:
        match left.pop():
            case str(text) if not is_unicode(text):
                raise NotUnicodeError("has half of a surrogate pair, which is not valid Unicode")
            case dict(nested):
                left += (*nested, *nested.values())
            case list(nested):
                left += nested
            case _:
                pass


class Member(NamedTuple):
    """A member of a JSON object.

    Attributes:
        value: text, number, boolean or null; for an object or array, whether it is not empty.
        start: the offset in bytes at which the value starts.
        end: the offset in bytes at which the value ends.
    """

    value: Any
    start: int
    end: int

    def written(self, document: bytes) -> bytes:
        """Return the exact bytes of the value; Python would round long numbers."""
        return document[self.start : self.end]


def members(body: bytes) -> dict[str, Member]:
    """Return the members of a JSON object, parsed as strictly as `parse`, without keeping nested values.

    It needs as much memory as the body takes, and the memory of the largest text and array in the body.
    `ValueError` is raised also for more than `MOST_MEMBERS` members.

    >>> members(b'{"serial": 7, "outputs": {"a": {}}, "resources": []}')["outputs"].value
    True
    """
    if not body:
        raise ValueError("is empty")
    if not is_utf8(body):
        raise ValueError("is not a JSON document")
    try:
        # Latin-1 has one character for each byte, so positions in the text are positions in the body, and it
        # is four times smaller than a text with an emoji. JSON's own characters are all ASCII.
        text = body.decode("latin-1")
        opening = _OPENING.match(text)
        if opening:
            return _members(body, text, opening.end())
        _SHALLOW.decode(text)
    except TooManyMembersError:
        raise
    except ValueError:
        raise ValueError("is not a JSON document") from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    raise ValueError("is not a JSON object")


def elements(array: bytes) -> Iterator[bytes]:
    """Yield the exact bytes of each element of a JSON array.

    The array must be well formed, as `Member.written` returns it. Raise `ValueError` if the value is not an
    array, or is nested too deeply.

    >>> list(elements(b'[{"a": 1}, 2.0]'))
    [b'{"a": 1}', b'2.0']
    """
    text = array.decode("latin-1")
    after = _ARRAY.match(text)
    if not after:
        raise ValueError("is not a JSON array")
    at = after.end()
    while text[at] != "]":
        try:
            end = _SHALLOW.raw_decode(text, at)[1]
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None
        yield array[at:end]
        at = _expect(_NEXT, text, end).end()


def _members(body: bytes, text: str, at: int) -> dict[str, Member]:
    """Return the members of an object that fills the whole text; `at` is the position after its brace."""
    parsed = {}
    closing = _CLOSING.match(text, at)
    while not closing:
        name = _expect(_NAME, text, at)
        value, end = _SHALLOW.raw_decode(text, name.end())
        if isinstance(value, list):
            value = bool(value)
        elif isinstance(value, str) and not value.isascii():
            value = json.loads(body[name.end() : end].decode())
        known = name[1].isascii() and "\\" not in name[1]
        key = name[1] if known else json.loads(body[name.start(1) - 1 : name.end(1) + 1].decode())
        parsed[key] = Member(value, name.end(), end)
        if len(parsed) > MOST_MEMBERS:
            raise TooManyMembersError(f"has more than {MOST_MEMBERS:,} members")
        closing = _CLOSING.match(text, end)
        if not closing:
            at = _expect(_COMMA, text, end).end()
    if closing.end() < len(text):
        raise ValueError("has text after the JSON object")
    return parsed


def _expect(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    match = pattern.match(text, at)
    if not match:
        raise ValueError(f"does not have {pattern.pattern} at the character {at}")
    return match


def check_arrays(body: bytes) -> None:
    """Raise `ValueError` for a document above `ARRAYS_FROM` with more than an array in each `BYTES_OF_ARRAY`.

    It bounds the memory of `parse` and `members`, which a limit of the depth would not: with arrays of five
    levels, one beside the other, a document takes 42 times its size, and 48 times with any more levels.
    """
    if len(body) <= ARRAYS_FROM:
        return
    most = len(body) // BYTES_OF_ARRAY
    arrays = _count(body, b"[", most)
    if arrays > most:
        raise ValueError(
            f"has {arrays:,} arrays in {len(body):,} bytes. Above {ARRAYS_FROM // 1000000} MB, a body may "
            f"have at most one array for each {BYTES_OF_ARRAY} bytes. Use fewer arrays, or indent the JSON, "
            "which adds bytes"
        )


def count_values(body: bytes, most: int) -> int:
    """Return about how many values a document has; it need not be well formed.

    A number up to `most` can be too high, because it counts the commas and brackets in texts, too.

    >>> count_values(b'{"a": [1, "[,,"]}', 9), count_values(b'{"a": [1, "[,,"]}', 3)
    (6, 3)
    """
    return _count(body, b",[{", most)


def _count(body: bytes, characters: bytes, most: int) -> int:
    """Count characters; if they are more than `most`, count them again without those in texts.

    The second count takes 20 ns a byte, and the memory of two copies of the body.
    """
    with_texts = sum(body.count(character) for character in characters)
    if with_texts <= most:
        return with_texts
    others = bytes(set(range(256)) - {*characters, *b'"'})
    left = body.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, others)
    counted, in_text = 0, False
    for start in range(0, len(left), _PIECE):
        parts = left[start : start + _PIECE].split(b'"')
        counted += len(b"".join(parts[in_text::2]))
        in_text ^= len(parts) % 2 == 0
    return counted


def is_utf8(body: bytes) -> bool:
    """Return whether bytes are UTF-8, with little memory."""
    if body.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(body), _PIECE):
            decoder.decode(body[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8. A lone surrogate from a JSON escape cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
