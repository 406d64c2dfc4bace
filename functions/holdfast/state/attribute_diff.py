"""Compare the attributes of a resource in two state documents, part by part, and tell what differs."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, pairwise
from typing import Any, Final, TypeAlias

from holdfast.errors import TooLarge
from holdfast.state.number import Number
from holdfast.state.sensitivity import WHOLE, Marks, is_dynamic
from holdfast.state.tracked import Tracked

INSTEAD_FILES: Final = (
    "Save each version with 'holdfast state get STATE --version ID --output FILE', and compare the two files."
)
"""Advice if two versions are too large to be compared."""
INSTEAD: Final = (
    f"{INSTEAD_FILES} Or compare without values, or compare two versions with fewer changes between them."
)
"""Advice if the difference of two versions is too large."""

_TELLING_TEXT: Final = 4
"""A sensitive text of at least this many characters is hidden everywhere in its resource."""
_BESIDE: Final = 100
"""The approximate number of characters that a difference takes beside its name and values."""
_ALL: Final[Marks] = {WHOLE: {}}
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

_Path: TypeAlias = "tuple[_Path | None, str | int]"
"""The path of a value: the path of its container, and the value's name or index in the container."""


class Change(StrEnum):
    """The kinds of change of a resource, an attribute or an output."""

    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    REPLACED = "replaced"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A difference in an attribute, or in a part of an attribute.

    Attributes:
        path: such as `tags["env"]` or `ingress[0].port`.
        before: the older value as JSON; None if it is absent or hidden. `after` is the newer value.
        is_sensitive: whether either document marks it as sensitive, so that its value is always hidden.
    """

    path: str
    change: Change
    before: str | None
    after: str | None
    is_sensitive: bool


class Absent:
    """The type of the placeholder for a value that a document does not have."""


ABSENT: Final = Absent()


@dataclass(slots=True)
class Telling:
    """Decide which parts of differences the result contains; `left` is how many characters may follow."""

    values: bool
    left: int

    def name(self, text: str) -> str:
        """Count a name and return it; names are always included."""
        self._count(len(text) + _BESIDE)
        return text

    def value(self, value: object, *, sensitive: bool) -> str | None:
        """Return a value as JSON; None if it is hidden."""
        if sensitive or not self.values or value is ABSENT:
            return None
        text = _json(value)
        self._count(len(text))
        return text

    def _count(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise TooLarge(f"The difference is too large for one response. {INSTEAD}")


def _json(value: object) -> str:
    """Return a value as JSON, with the original digits of its numbers."""
    match value:
        case str():
            return _ENCODE(value)
        case Number():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{_json(name)}: {_json(part)}" for name, part in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_json, value)) + "]"
        case _:
            return _ENCODE(value)


def kind(before: object, after: object) -> Change:
    if before is ABSENT:
        return Change.ADDED
    return Change.REMOVED if after is ABSENT else Change.CHANGED


def attributes(before: Tracked | None, after: Tracked | None, telling: Telling) -> Iterator[Attribute]:
    """Yield the attributes that differ, in parts. Skip null attributes of an added or removed resource."""
    old = before.attributes if before else {}
    new = after.attributes if after else {}
    old_marks = before.marks if before else {}
    new_marks = after.marks if after else {}
    all_sensitive = WHOLE in old_marks or WHOLE in new_marks
    secrets = frozenset(chain(_secrets(old, old_marks), _secrets(new, new_marks)))
    for name in sorted(old.keys() | new.keys()):
        values = old.get(name, ABSENT), new.get(name, ABSENT)
        if before is None or after is None:
            if None in values:
                continue
        elif values[0] == values[1]:
            continue
        either = (_ALL, _ALL) if all_sensitive else (old_marks.get(name, {}), new_marks.get(name, {}))
        yield from _Part((None, name), *values, *either, secrets, telling).differences()


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the attributes, in both documents.

    `secrets` are texts that are marked as sensitive elsewhere in these attributes. Providers copy some
    sensitive texts to other attributes without a mark.
    """

    path: _Path
    before: Any
    after: Any
    old_marks: Marks
    new_marks: Marks
    secrets: frozenset[str]
    telling: Telling

    def differences(self) -> Iterator[Attribute]:
        """Yield the differences, in the smallest parts that may be shown."""
        if WHOLE in self.old_marks or WHOLE in self.new_marks:
            yield from self._sensitive()
            return
        before, old_type = _unwrapped(self.before)
        after, new_type = _unwrapped(self.after)
        if self._is_obscure(before, after, is_wrapped_once=(old_type is None) != (new_type is None)):
            yield from self._sensitive()
        elif old_type != new_type and before == after:
            yield self._retyped(
                ABSENT if old_type is None else old_type, ABSENT if new_type is None else new_type
            )
        elif not _has_parts(before) and not _has_parts(after):
            if before != after:
                yield self._told(kind(before, after), before, after)
        elif type(before) is type(after) or _is_nothing(before) or _is_nothing(after):
            yield from self._within(before, after)
        else:
            yield from self._with(self.before, ABSENT).differences()
            yield from self._with(ABSENT, self.after).differences()

    def _within(self, before: Any, after: Any) -> Iterator[Attribute]:
        """Yield the differences within two objects or lists, one of which may be absent."""
        steps: Sequence[Any]
        if isinstance(before if _has_parts(before) else after, list):
            steps = range(max(len(side) for side in (before, after) if isinstance(side, list)))
        else:
            steps = sorted({name for side in (before, after) if isinstance(side, dict) for name in side})
        for step in steps:
            old, new = _part(before, step), _part(after, step)
            # Values with parts are not compared here, or they would be compared again on each level.
            if not _has_parts(old) and old == new:
                continue
            yield from _Part(
                (self.path, step),
                old,
                new,
                self.old_marks.get(step, {}),
                self.new_marks.get(step, {}),
                self.secrets,
                self.telling,
            ).differences()

    def _is_obscure(self, before: Any, after: Any, *, is_wrapped_once: bool) -> bool:
        """Return whether a part that is marked as sensitive in one document cannot be found in the other."""
        if not self.old_marks and not self.new_marks:
            return False
        for side in (before, after):
            if side is None or side is ABSENT:
                continue
            if not all(isinstance(side, list if isinstance(step, int) else dict) for step in self._marked()):
                return True
        if isinstance(before, dict) and isinstance(after, dict):
            return is_wrapped_once
        if isinstance(before, list) and isinstance(after, list):
            # A sensitive element may have moved to another index, among elements that are not marked.
            marked = len(self.new_marks) - len(self.old_marks)
            open_ = len(after) - len(before) - marked
            return marked * open_ < 0
        return False

    def _marked(self) -> Iterator[str | int]:
        yield from self.old_marks
        yield from self.new_marks

    def _with(self, before: Any, after: Any) -> "_Part":
        return _Part(self.path, before, after, self.old_marks, self.new_marks, self.secrets, self.telling)

    def _sensitive(self) -> Iterator[Attribute]:
        if self.before != self.after:
            path = self.telling.name(_written(self.path))
            yield Attribute(path, kind(self.before, self.after), None, None, is_sensitive=True)

    def _retyped(self, before: object, after: object) -> Attribute:
        # The type of an object contains the names of its members.
        return self._told(
            kind(before, after),
            before,
            after,
            of="type({})",
            sensitive=bool(self.old_marks or self.new_marks),
        )

    def _told(
        self, change: Change, before: object, after: object, *, of: str = "{}", sensitive: bool = False
    ) -> Attribute:
        sensitive = sensitive or any(
            isinstance(side, str) and side in self.secrets for side in (before, after)
        )
        return Attribute(
            self.telling.name(of.format(_written(self.path))),
            change,
            self.telling.value(before, sensitive=sensitive),
            self.telling.value(after, sensitive=sensitive),
            sensitive,
        )


def _secrets(attributes: Mapping[str, Any], marks: Marks) -> Iterator[str]:
    """Yield the sensitive texts of attributes, unless all attributes are sensitive."""
    if WHOLE not in marks:
        for name, below in marks.items():
            yield from _texts(attributes[str(name)], below)


def _texts(value: Any, marks: Marks) -> Iterator[str]:
    """Yield the sensitive texts in a value, except texts so short that they occur by chance."""
    if WHOLE in marks:
        yield from _all_texts(value)
        return
    within, _ = _unwrapped(value)
    for step, below in marks.items():
        yield from _texts(within[step], below)


def _all_texts(value: object) -> Iterator[str]:
    # Without recursion, because each text would pass through a generator per level.
    left = [value]
    while left:
        match left.pop():
            case str(text) if len(text) >= _TELLING_TEXT:
                yield text
            case dict(members):
                left += members.values()
            case list(parts):
                left += parts
            case _:
                pass


def _unwrapped(value: Any) -> tuple[Any, Any]:
    """Return a value and its type; the type is None unless it is stored with the value (`is_dynamic`)."""
    return (value["value"], value["type"]) if is_dynamic(value) else (value, None)


def _part(value: Any, step: Any) -> Any:
    """Return a part of an object or a list; `ABSENT` if the part does not exist."""
    if isinstance(value, dict):
        return value.get(step, ABSENT)
    # The value may be an empty list although the other document has an object.
    return value[step] if isinstance(value, list) and value and step < len(value) else ABSENT


def _has_parts(value: object) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _is_nothing(value: object) -> bool:
    """Return whether a value is absent, null or empty, so that it has no parts to compare."""
    return value in (None, ABSENT, {}, [])


def _written(path: _Path) -> str:
    steps: list[str | int] = []
    rest: _Path | None = path
    while rest:
        rest, step = rest
        steps.append(step)
    steps.reverse()
    written = [str(steps[0])]
    for before, step in pairwise(steps):
        if isinstance(step, int):
            written.append(f"[{step}]")
        elif isinstance(before, int) and _NAME.fullmatch(step):
            written.append(f".{step}")  # an object in a list is a block, as a rule
        else:
            written.append(f"[{_ENCODE(step)}]")
    return "".join(written)
