"""The JSON form of the API's documents: written by the function, read by the command.

The reader is tolerant, because the deployed API may be older or newer than the command: it ignores unknown
members, and reads a missing member as null.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import Enum, auto
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from holdfast import timestamp


class Presence(Enum):
    """The rule for null and missing values of a member, where its type alone does not say it."""

    NEVER_NULL = auto()
    """The API always sends a value. The reader gets None if an older API does not send the member."""
    LEFT_OUT = auto()
    """The member is left out if it has no value."""
    OPTIONAL = auto()
    """The member may be missing or null, which means the same."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A member's constraints in the schema: its `words` allowed in this release, or lengths in characters."""

    words: tuple[str, ...] = ()
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None


Time = Annotated[datetime | None, Presence.NEVER_NULL]
Number = Annotated[int | None, Presence.NEVER_NULL]
Flag = Annotated[bool | None, Presence.NEVER_NULL]

Json = Mapping[str, Any]

_D = TypeVar("_D", bound="Document")


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # eq and repr would lengthen the cold start
class Document:
    """A JSON object of the API. A member has the name of its field, without a trailing underscore.

    `raw` is the JSON object that `read` parsed, unknown members included; empty in a document to be written.
    """

    raw: Json = field(default_factory=dict, kw_only=True)


def text(value: object) -> str:
    """Return a text unchanged, another value as JSON, and None as an empty text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def write(document: Document) -> dict[str, Any]:
    values = ((member, getattr(document, member.attribute)) for member in members(type(document)))
    return {
        member.name: _plain(value)
        for member, value in values
        if value is not None or Presence.LEFT_OUT not in member.notes
    }


def read(kind: type[_D], value: object) -> _D:
    """Parse a JSON value as a document of this class. A value that is no object counts as an empty object.

    A missing member becomes None; a missing text or list becomes empty. A member of the wrong type counts as
    missing, except that a text member takes any value as JSON.
    """
    raw = value if isinstance(value, dict) else {}
    return kind(**{each.attribute: each.read(raw.get(each.name)) for each in members(kind)}, raw=raw)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a document: its `name` in JSON, its `type`, and the type's annotations as `notes`."""

    name: str
    attribute: str
    type: Any
    notes: tuple[object, ...]
    read: Callable[[object], object]


def members(kind: type[Document]) -> Sequence[Member]:
    key: Any = kind  # mypy believes that a class of frozen dataclasses has no hash
    return _members(key)


def names(kind: type[Document]) -> list[str]:
    return [member.name for member in members(kind)]


@cache
def _members(kind: Any) -> Sequence[Member]:
    hints = get_type_hints(kind, include_extras=True)
    of_kind = []
    for attribute in (each.name for each in fields(kind) if each.name != "raw"):
        hint = hints[attribute]
        type_, *notes = get_args(hint) if get_origin(hint) is Annotated else [hint]
        name = attribute.removesuffix("_")
        of_kind.append(Member(name, attribute, type_, tuple(notes), _reader(type_)))
    return of_kind


def _plain(value: object) -> object:
    if isinstance(value, Document):
        return write(value)
    if isinstance(value, datetime):
        return timestamp.write(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


def _reader(type_: Any) -> Callable[[object], object]:
    if get_origin(type_) is UnionType:
        [given] = [each for each in get_args(type_) if each is not NoneType]
        read_given = _reader(given)
        if isinstance(given, type) and issubclass(given, Document):
            return lambda value: read_given(value) if value and isinstance(value, dict) else None
        return lambda value: None if value is None else read_given(value)
    if get_origin(type_) is tuple:
        read_item = _reader(get_args(type_)[0])
        return lambda value: tuple(map(read_item, value)) if isinstance(value, list) else ()
    if isinstance(type_, type) and issubclass(type_, Document):
        return partial(read, type_)
    return _READERS[get_origin(type_) or type_]


def _time(value: object) -> datetime | None:
    try:
        return timestamp.parse(text(value))
    except ValueError:
        return None


_READERS: Final[Mapping[Any, Callable[[object], object]]] = {
    str: text,
    datetime: _time,
    int: lambda value: value if type(value) is int else None,
    bool: lambda value: value if isinstance(value, bool) else None,
    Mapping: lambda value: value if isinstance(value, dict) else {},
}
