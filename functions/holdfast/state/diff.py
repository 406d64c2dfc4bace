"""Compare the resources, attributes and outputs of two state documents.

The result contains names and kinds of change. It contains values on request, except values that either
document marks as sensitive. A state does not mark everything that a provider's schema calls sensitive.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, pairwise
from typing import Any, Final, TypeAlias

from holdfast.errors import InvalidState, TooLarge, UnreadableVersion
from holdfast.state import document, tracked
from holdfast.state.document import StateDocument
from holdfast.state.number import Number
from holdfast.state.sensitivity import WHOLE, Marks, is_dynamic
from holdfast.state.tracked import Address, Output, Tracked, Tracking

MAX_BYTES: Final = 10_000_000
"""Bytes of the largest state that is compared; a larger state could take longer than the API waits."""
MAX_TOLD: Final = 20_000_000
"""Characters of the largest result; a larger result raises `TooLarge`."""
INSTEAD_FILES: Final = "Save both with 'holdfast state get STATE --version ID' and compare the files."
"""Advice if two versions are too large to be compared."""
INSTEAD: Final = f"{INSTEAD_FILES} Without values, or between closer versions, less differs."
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


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """A resource that differs. Its `address` has the form in which clients print addresses.

    Attributes:
        moved_from: its address in the older document if it was moved.
        tainted: whether it is tainted in the newer document; None if this did not change.
        attributes: the attributes that differ; for an added or removed resource only if values are requested.
    """

    address: str
    change: Change
    moved_from: str | None
    type: str
    tainted: bool | None
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class OutputChange:
    """An output that differs. `before`, `after` and `is_sensitive` have the meaning of `Attribute`."""

    name: str
    change: Change
    before: str | None
    after: str | None
    is_sensitive: bool


@dataclass(frozen=True, slots=True)
class Diff:
    """The differences, by address or name. They are empty if the client `encrypted` either document."""

    before: StateDocument
    after: StateDocument
    encrypted: bool
    resources: tuple[ResourceChange, ...] = ()
    outputs: tuple[OutputChange, ...] = ()

    @property
    def lineage_changed(self) -> bool:
        return not self.before.revision.same_lineage(self.after.revision)

    @property
    def summary(self) -> Mapping[str, int]:
        """The number of resources for each kind of change, and the number of changed outputs."""
        counted = Counter(resource.change for resource in self.resources)
        return {**{change.value: counted[change] for change in Change}, "outputs": len(self.outputs)}


def compare(before: bytes, after: bytes, *, values: bool = False, max_told: int = MAX_TOLD) -> Diff:
    """Compare two state documents.

    Args:
        values: whether to include values that neither document marks as sensitive.
        max_told: about how many characters the result may have; `TooLarge` is raised if it has more.

    Raises:
        UnreadableVersion: a document is not of format version 4; the message says which document it is.
    """
    with _reading("from"):
        head_before = document.parse(before)
    with _reading("to"):
        head_after = document.parse(after)
    if document.is_encrypted(before) or document.is_encrypted(after):
        return Diff(head_before, head_after, encrypted=True)
    with _reading("from"):
        resources_before, outputs_before = tracked.outline(before)
    with _reading("to"):
        resources_after, outputs_after = tracked.outline(after)
    common = _once(resources_before) & _once(resources_after)
    with _reading("from"):
        older = tracked.tracking(resources_before, common)
    with _reading("to"):
        newer = tracked.tracking(resources_after, common)
    telling = _Telling(values, max_told)
    with _reading("from' or 'to"):
        return Diff(
            head_before,
            head_after,
            encrypted=False,
            resources=tuple(_resources(older, newer, telling)),
            outputs=tuple(_outputs(outputs_before, outputs_after, telling)),
        )


@contextmanager
def _reading(side: str) -> Iterator[None]:
    """Convert errors in reading a document to `UnreadableVersion`, with a message that names the `side`."""
    try:
        yield
    except InvalidState as error:
        reason = error.message
    except RecursionError:
        reason = "Its values are nested too deeply."
    else:
        return
    raise UnreadableVersion(f"The state at '{side}' cannot be compared. {reason}")


def _once(resources: Sequence[bytes]) -> frozenset[bytes]:
    return frozenset(written for written, times in Counter(resources).items() if times == 1)


# --- the result ----------------------------------------------------------------------------------


class _Absent:
    """The type of the placeholder for a value that a document does not have."""


_ABSENT: Final = _Absent()


@dataclass(slots=True)
class _Telling:
    """Decide which parts of differences the result contains; `left` is how many characters may follow."""

    values: bool
    left: int

    def name(self, text: str) -> str:
        """Count a name and return it; names are always included."""
        self._count(len(text) + _BESIDE)
        return text

    def value(self, value: object, *, sensitive: bool) -> str | None:
        """Return a value as JSON; None if it is hidden."""
        if sensitive or not self.values or value is _ABSENT:
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


def _kind(before: object, after: object) -> Change:
    if before is _ABSENT:
        return Change.ADDED
    return Change.REMOVED if after is _ABSENT else Change.CHANGED


# --- resources -----------------------------------------------------------------------------------


def _resources(older: Tracking, newer: Tracking, telling: _Telling) -> Iterator[ResourceChange]:
    moved = _moved(older, newer)
    left = set(moved.values())  # old addresses of moved objects
    for address in sorted(older.objects.keys() | newer.objects.keys()):
        gone = older.objects.get(address) if address not in left else None
        came = newer.objects.get(address)
        if came and address in moved:
            yield _changed(address, moved[address], older.objects[moved[address]], came, telling)
        elif came and gone:
            if gone.is_tainted != came.is_tainted or gone.attributes != came.attributes:
                yield _changed(address, address, gone, came, telling)
            continue
        elif came:
            yield _whole(address, Change.ADDED, None, came, telling)
        if gone:
            yield _whole(address, Change.REMOVED, gone, None, telling)


def _moved(older: Tracking, newer: Tracking) -> Mapping[Address, Address]:
    """Return the old address of each moved object, by its new address.

    An object is only recognized if its identity occurs once in each document.
    """

    def single(tracking: Tracking) -> Mapping[tracked.Identity, Address]:
        return {
            resource.identity: address
            for address, resource in tracking.objects.items()
            if resource.identity and tracking.identities[resource.identity] == 1 and not address.deposed
        }

    before, after = single(older), single(newer)
    return {
        address: before[identity]
        for identity, address in after.items()
        if identity in before and before[identity] != address
    }


def _changed(
    address: Address, was_at: Address, before: Tracked, after: Tracked, telling: _Telling
) -> ResourceChange:
    ids = before.id, after.id
    if was_at != address:
        change = Change.MOVED
    elif after.is_managed and all(ids) and ids[0] != ids[1]:
        change = Change.REPLACED
    else:
        change = Change.CHANGED
    return ResourceChange(
        telling.name(str(address)),
        change,
        telling.name(str(was_at)) if was_at != address else None,
        address.type,
        after.is_tainted if after.is_tainted != before.is_tainted else None,
        tuple(_attributes(before, after, telling)),
    )


def _whole(
    address: Address, change: Change, before: Tracked | None, after: Tracked | None, telling: _Telling
) -> ResourceChange:
    """Return the change of a resource that only one document has."""
    return ResourceChange(
        telling.name(str(address)),
        change,
        None,
        address.type,
        True if after and after.is_tainted else None,
        # Without values this would list the names of all attributes of the resource.
        tuple(_attributes(before, after, telling)) if telling.values else (),
    )


# --- attributes ----------------------------------------------------------------------------------


def _attributes(before: Tracked | None, after: Tracked | None, telling: _Telling) -> Iterator[Attribute]:
    """Yield the attributes that differ, in parts. Skip null attributes of an added or removed resource."""
    old = before.attributes if before else {}
    new = after.attributes if after else {}
    old_marks = before.marks if before else {}
    new_marks = after.marks if after else {}
    all_sensitive = WHOLE in old_marks or WHOLE in new_marks
    secrets = frozenset(chain(_secrets(old, old_marks), _secrets(new, new_marks)))
    for name in sorted(old.keys() | new.keys()):
        values = old.get(name, _ABSENT), new.get(name, _ABSENT)
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
    telling: _Telling

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
                _ABSENT if old_type is None else old_type, _ABSENT if new_type is None else new_type
            )
        elif not _has_parts(before) and not _has_parts(after):
            if before != after:
                yield self._told(_kind(before, after), before, after)
        elif type(before) is type(after) or _is_nothing(before) or _is_nothing(after):
            yield from self._within(before, after)
        else:
            yield from self._with(self.before, _ABSENT).differences()
            yield from self._with(_ABSENT, self.after).differences()

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
            if side is None or side is _ABSENT:
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
            yield Attribute(path, _kind(self.before, self.after), None, None, is_sensitive=True)

    def _retyped(self, before: object, after: object) -> Attribute:
        # The type of an object contains the names of its members.
        return self._told(
            _kind(before, after),
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
    """Return a part of an object or a list; `_ABSENT` if the part does not exist."""
    if isinstance(value, dict):
        return value.get(step, _ABSENT)
    # The value may be an empty list although the other document has an object.
    return value[step] if isinstance(value, list) and value and step < len(value) else _ABSENT


def _has_parts(value: object) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _is_nothing(value: object) -> bool:
    """Return whether a value is absent, null or empty, so that it has no parts to compare."""
    return value in (None, _ABSENT, {}, [])


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


# --- outputs -------------------------------------------------------------------------------------


def _outputs(
    older: Mapping[str, Output], newer: Mapping[str, Output], telling: _Telling
) -> Iterator[OutputChange]:
    for name in sorted(older.keys() | newer.keys()):
        before, after = older.get(name), newer.get(name)
        values = before.value if before else _ABSENT, after.value if after else _ABSENT
        if values[0] == values[1]:
            continue
        sensitive = any(output.is_sensitive for output in (before, after) if output)
        yield OutputChange(
            telling.name(name),
            _kind(*values),
            telling.value(values[0], sensitive=sensitive),
            telling.value(values[1], sensitive=sensitive),
            sensitive,
        )
