"""Parse a JSON object strictly, as Go's decoder does: UTF-8 only, no NaN, no other top level.

A body that is not one raises a `ValueError` whose message completes "The body …".
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_PIECE: Final = 64 * 1024
_OPENING: Final = re.compile(r"[ \t\n\r]*\{")
_NAME: Final = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+)"[ \t\n\r]*:[ \t\n\r]*')
_COMMA: Final = re.compile(r"[ \t\n\r]*,")
_ARRAY: Final = re.compile(r"[ \t\n\r]*\[[ \t\n\r]*")
_NEXT: Final = re.compile(r"[ \t\n\r]*,?[ \t\n\r]*")
_CLOSING: Final = re.compile(r"[ \t\n\r]*\}[ \t\n\r]*")
_SHALLOW: Final = json.JSONDecoder(object_pairs_hook=bool, parse_constant=_refuse)
"""Reads an object within the document as whether it has members, and keeps none of them."""


def parse(body: bytes) -> dict[str, Any]:
    if not body:
        raise ValueError("is empty")
    try:
        document = json.loads(body.decode(), parse_constant=_refuse)
    # json gives up on deep nesting with RecursionError.
    except (ValueError, RecursionError):
        raise ValueError("is not a JSON document") from None
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 a wrong value, not a programming error
    return document


def parse_unique(body: bytes) -> dict[str, Any]:
    """Parse a JSON object in which no object has a member twice and every text is Unicode."""
    document = parse(body)  # from here on it is well formed
    try:
        json.loads(body.decode(), object_pairs_hook=_unique)
    except _TwiceError:
        raise ValueError("has a member twice") from None
    except RecursionError:  # sooner than before, in some versions of Python
        raise ValueError("is not a JSON document") from None
    check_unicode(document)
    return document


def check_unicode(document: object) -> None:
    """Check that every text of a document has a UTF-8 form."""
    left = [document]
    while left:
        match left.pop():
            case str(text) if not is_unicode(text):
                raise ValueError("holds half of a surrogate pair, which is no Unicode text")
            case dict(found):
                left += (*found, *found.values())
            case list(found):
                left += found
            case _:
                pass


class Member(NamedTuple):
    """A member of a JSON object.

    Attributes:
        value: text, number, true, false or null; of an object or array, whether it has anything in it.
        start: the byte of the document at which the value starts.
        end: the byte after it.
    """

    value: Any
    start: int
    end: int

    def written(self, document: bytes) -> bytes:
        """Return the value as the document writes it; Python would round long numbers."""
        return document[self.start : self.end]


def members(body: bytes) -> dict[str, Member]:
    """Return the members of a JSON object, as strictly as `parse`, and hold nothing of what they contain.

    Beside the body it takes the memory of one text with a byte for each of the body's, and of the largest
    text and the longest array within.

    >>> members(b'{"serial": 7, "outputs": {"a": {}}, "resources": []}')["outputs"].value
    True
    """
    if not body:
        raise ValueError("is empty")
    try:
        if not body.isascii():
            _check_utf8(body)
        # A character for each byte: four times smaller than a text with an emoji in it, and places in the
        # text are places in the body. All that JSON gives a meaning to is ASCII.
        text = body.decode("latin-1")
        opening = _OPENING.match(text)
        if opening:
            return _members(body, text, opening.end())
        _SHALLOW.decode(text)
    except (ValueError, RecursionError):
        raise ValueError("is not a JSON document") from None
    raise ValueError("is not a JSON object")


def elements(array: bytes) -> Iterator[bytes]:
    """Return the elements of a JSON array one after the other, as the text writes them.

    The array is well formed, such as `Member.written` returns it. Another value than an array, or a deeply
    nested one, raises `ValueError`.

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
            raise ValueError("is nested too deeply") from None
        yield array[at:end]
        at = _expect(_NEXT, text, end).end()


def _members(body: bytes, text: str, at: int) -> dict[str, Member]:
    """Return the members of an object that is the whole text; `at` is the place after its brace."""
    found = {}
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
        found[key] = Member(value, name.end(), end)
        closing = _CLOSING.match(text, end)
        if not closing:
            at = _expect(_COMMA, text, end).end()
    if closing.end() < len(text):
        raise ValueError("something follows the object")
    return found


def _expect(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    match = pattern.match(text, at)
    if not match:
        raise ValueError(f"the text does not go on as {pattern.pattern}")
    return match


def _check_utf8(body: bytes) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), _PIECE):
        decoder.decode(body[start : start + _PIECE])
    decoder.decode(b"", final=True)


def is_unicode(text: str) -> bool:
    """Return whether a text has a UTF-8 form; JSON can escape a lone surrogate, which has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _TwiceError(Exception):
    """An object has a member twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found
