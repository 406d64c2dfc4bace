"""Compare two state documents: which resources, attributes and outputs differ.

It shows names and kinds of change. It shows values on request, and never those that either document marks as
sensitive. A state does not know everything that a provider's schema calls sensitive.
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
"""Bytes of a state above which it is not compared: larger ones can take longer than the API waits."""
MAX_TOLD: Final = 20_000_000
"""Characters of all that a comparison tells, above which it gives up."""
INSTEAD_FILES: Final = "Save both with 'holdfast state get STATE --version ID' and compare the files."
"""What to do if two versions are too large to be compared."""
INSTEAD: Final = f"{INSTEAD_FILES} Without values, or between closer versions, less differs."
"""What to do if too much differs between two versions."""

_TELLING_TEXT: Final = 4
"""Characters from which a text that is sensitive in one place is so everywhere in its resource."""
_BESIDE: Final = 100
"""About how many characters a difference takes beside its name and its values."""
_ALL: Final[Marks] = {WHOLE: {}}
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

_Path: TypeAlias = "tuple[_Path | None, str | int]"
"""Where a value is: the path of what it is in, and its name or its index there."""


class Change(StrEnum):
    """What happened to a resource, an attribute or an output."""

    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    REPLACED = "replaced"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute, or a part of one, that differs.

    Attributes:
        path: such as `tags["env"]` or `ingress[0].port`.
        before: the value as JSON, as `after`; None if there was none, or it is not told.
        is_sensitive: whether either document marks it, so that it is never told.
    """

    path: str
    change: Change
    before: str | None
    after: str | None
    is_sensitive: bool


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """A resource that differs; `address` is as clients print it.

    Attributes:
        moved_from: its address in the older document if it was moved.
        tainted: whether it became tainted; None if it is as tainted as before.
        attributes: those that differ; of a resource that was added or removed only if values are asked for.
    """

    address: str
    change: Change
    moved_from: str | None
    type: str
    tainted: bool | None
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class OutputChange:
    """An output that differs; its values are as those of an `Attribute`."""

    name: str
    change: Change
    before: str | None
    after: str | None
    is_sensitive: bool


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs, by address or name; nothing can be compared if the client `encrypted` either document."""

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
        """How many resources there are of each kind of change, and how many outputs."""
        counted = Counter(resource.change for resource in self.resources)
        return {**{change.value: counted[change] for change in Change}, "outputs": len(self.outputs)}


def compare(before: bytes, after: bytes, *, values: bool = False, max_told: int = MAX_TOLD) -> Diff:
    """Compare two state documents.

    Args:
        values: whether to show values that neither document marks as sensitive.
        max_told: about how many characters to show; `TooLarge` if more differs.

    Raises:
        UnreadableVersion: one is not a state document of version 4 of the format; the message says which.
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
    """Say in `UnreadableVersion` which of the documents cannot be read."""
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


# --- what is told --------------------------------------------------------------------------------


class _Absent:
    """Stands where a document has nothing."""


_ABSENT: Final = _Absent()


@dataclass(slots=True)
class _Telling:
    """Decides what is shown of differences, of which `left` more characters may be."""

    values: bool
    left: int

    def name(self, text: str) -> str:
        """Return a name, which is always told."""
        self._count(len(text) + _BESIDE)
        return text

    def value(self, value: object, *, sensitive: bool) -> str | None:
        """Return a value as JSON; None if it is not told."""
        if sensitive or not self.values or value is _ABSENT:
            return None
        text = _json(value)
        self._count(len(text))
        return text

    def _count(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise TooLarge(f"More differs between the two versions than one response can tell. {INSTEAD}")


def _json(value: object) -> str:
    """Return a value as JSON, with the digits that its numbers were written with."""
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
    left = set(moved.values())  # addresses that the older document has for what is elsewhere now
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
    """Return the new addresses of what was moved, each with the old one.

    Only where an identity occurs once in either document, so that there is nothing to guess.
    """

    def single(tracking: Tracking) -> Mapping[tracked.Identity, Address]:
        return {
            found.identity: address
            for address, found in tracking.objects.items()
            if found.identity and tracking.identities[found.identity] == 1 and not address.deposed
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
    """Return a resource of which one document has nothing."""
    return ResourceChange(
        telling.name(str(address)),
        change,
        None,
        address.type,
        True if after and after.is_tainted else None,
        # Without values these were the names of all that such a resource has.
        tuple(_attributes(before, after, telling)) if telling.values else (),
    )


# --- attributes ----------------------------------------------------------------------------------


def _attributes(before: Tracked | None, after: Tracked | None, telling: _Telling) -> Iterator[Attribute]:
    """Yield the attributes that differ, part by part; of a whole resource not those that are null."""
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

    `secrets` are texts that are sensitive elsewhere in these attributes. A provider copies some, unmarked.
    """

    path: _Path
    before: Any
    after: Any
    old_marks: Marks
    new_marks: Marks
    secrets: frozenset[str]
    telling: _Telling

    def differences(self) -> Iterator[Attribute]:
        """Yield what differs, the smallest parts that can be told."""
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
        """Yield what differs within objects or lists, of which one may be nothing."""
        steps: Sequence[Any]
        if isinstance(before if _has_parts(before) else after, list):
            steps = range(max(len(side) for side in (before, after) if isinstance(side, list)))
        else:
            steps = sorted({name for side in (before, after) if isinstance(side, dict) for name in side})
        for step in steps:
            old, new = _part(before, step), _part(after, step)
            # In this order: what has parts is compared once, and not again on each level above.
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
        """Return whether nobody can tell where in one document that is what the other marks."""
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
            # One that was sensitive may be among those that are not any more, at another index.
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
        # The type of an object has the names of what is in it.
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
    """Yield the texts that are sensitive where only a part of the attributes is."""
    if WHOLE not in marks:
        for name, below in marks.items():
            yield from _texts(attributes[str(name)], below)


def _texts(value: Any, marks: Marks) -> Iterator[str]:
    """Yield the texts that are sensitive, without those so short that they occur by chance."""
    if WHOLE in marks:
        yield from _all_texts(value)
        return
    within, _ = _unwrapped(value)
    for step, below in marks.items():
        yield from _texts(within[step], below)


def _all_texts(value: object) -> Iterator[str]:
    # Not by recursion: each text would pass through as many generators as it is deep.
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
    """Return a value and, if it is one of any type, its type."""
    return (value["value"], value["type"]) if is_dynamic(value) else (value, None)


def _part(value: Any, step: Any) -> Any:
    """Return a part of an object or a list, if it has it."""
    if isinstance(value, dict):
        return value.get(step, _ABSENT)
    # An empty list may stand where the other document has an object.
    return value[step] if isinstance(value, list) and value and step < len(value) else _ABSENT


def _has_parts(value: object) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _is_nothing(value: object) -> bool:
    """Return whether parts of the other document have nothing to be compared with here."""
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
