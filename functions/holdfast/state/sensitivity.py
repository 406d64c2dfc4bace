"""Find the sensitive parts of a resource's attributes.

In version 4 of the format `sensitive_attributes` is a list of paths. A step of a path is the name of an
attribute (`get_attr`), or an index with its type (`index`).

An attribute of dynamic type is stored as an object with its `value` and its `type`. Paths have no step for
that object, so this module skips it.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeGuard

from holdfast.state.number import Number

_Step: TypeAlias = str | int
Marks: TypeAlias = dict[_Step, "Marks"]
"""The sensitive parts by step. The step `WHOLE` marks the whole value."""

WHOLE: Final = -1
"""The step that marks a whole value as sensitive; an index is never negative."""

_SIMPLE_TYPES: Final = ("string", "number", "bool", "dynamic")
_TYPES_OF_PARTS: Final = ("object", "map", "list", "set", "tuple")


class _MalformedError(Exception):
    """A path breaks a rule."""


def marks(attributes: Mapping[str, Any], sensitive: object) -> Marks:
    """Return the sensitive parts of a resource's attributes.

    A path to a missing value marks the last value on the path as sensitive. If one path is malformed, all
    attributes are sensitive.

    Args:
        sensitive: the resource's `sensitive_attributes`, as parsed from the document.
    """
    marked: Marks = {}
    if sensitive is None or sensitive == []:
        return marked
    try:
        for path in _list(sensitive):
            _mark(marked, attributes, _steps(path))
    except _MalformedError:
        return {WHOLE: {}}
    return marked


def is_dynamic(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value has the stored form of dynamic type: an object with `value` and `type`."""
    if not isinstance(value, dict) or len(value) != 2 or "value" not in value:
        return False
    type_ = value.get("type")
    if isinstance(type_, list):
        return len(type_) > 1 and type_[0] in _TYPES_OF_PARTS
    return type_ in _SIMPLE_TYPES


def _mark(marked: Marks, attributes: Mapping[str, Any], steps: list[_Step]) -> None:
    here = marked
    value: Any = attributes
    for step in steps:
        within = value
        if value is not attributes and is_dynamic(value):
            if step in ("value", "type"):
                break  # the path may mean a member of either object
            within = value["value"]
        if not _has(within, step):
            break
        here, value = here.setdefault(step, {}), within[step]
    here[WHOLE] = {}


def _has(value: object, step: _Step) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _steps(path: object) -> list[_Step]:
    return [_step(step) for step in _list(path)]


def _list(value: object) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise _MalformedError
    return value


def _step(step: object) -> _Step:
    match step:
        case {"type": "get_attr", "value": str(name)}:
            return name
        case {"type": "index", "value": {"type": "string", "value": str(key)}}:
            return key
        case {"type": "index", "value": {"type": "number", "value": Number() as number}}:
            index = number.as_index()
            if index is not None:
                return index
        case _:
            pass
    raise _MalformedError
