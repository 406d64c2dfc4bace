"""The schemas of docs/openapi.yaml that are made from the documents of `holdfast.api.v1`."""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from holdfast.api import form, v1
from holdfast.api.form import Document, Member, Presence, Rule

_TYPES: Final[Mapping[Any, Mapping[str, str]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Mapping: {"type": "object"},
}
_MAY_BE_MISSING: Final = {Presence.LEFT_OUT, Presence.OPTIONAL}
_NEVER_NULL: Final = {Presence.NEVER_NULL, Presence.LEFT_OUT}
_WIDTH: Final = 120


def documents() -> dict[str, type[Document]]:
    """Return the documents in requests and responses of the management API, by name."""
    return {
        name: kind
        for name, kind in vars(v1).items()
        if isinstance(kind, type) and issubclass(kind, Document) and kind.__module__ == v1.__name__
    }


def yaml() -> str:
    """Return the schemas in the form that docs/openapi.yaml contains."""
    return "".join(f"    {line}\n" for name, kind in documents().items() for line in _lines(name, kind))


def meanings(kind: type[Document]) -> dict[str, str]:
    """Return the comment of each member, from the source of a document and of its base documents."""
    extended = [
        each for each in reversed(kind.__mro__) if issubclass(each, Document) and each is not Document
    ]
    return {
        name.removesuffix("_"): f"{said[0].upper()}{said[1:]}."
        for each in extended
        for name, said in re.findall(r"^    (\w+): .+?  # (.+)$", inspect.getsource(each), re.MULTILINE)
    }


def _lines(name: str, kind: type[Document]) -> Iterator[str]:
    members = form.members(kind)
    said = meanings(kind)
    yield f"{name}:"
    yield f"  description: {json.dumps((kind.__doc__ or '').partition(chr(10))[0])}"
    yield "  type: object"
    required = [each.name for each in members if not _MAY_BE_MISSING & {*each.notes}]
    if required:
        yield "  required:"
        yield from (f"    - {name}" for name in required)
    yield "  additionalProperties: false"
    yield "  properties:"
    for member in members:
        schema = _schema(member)
        line = f"    {member.name}: {_flow({**schema, 'description': said[member.name]})}"
        if len(line) + 4 <= _WIDTH:
            yield line
            continue
        yield f"    {member.name}:"
        for key, value in schema.items():
            yield from _entry(key, value)
        yield f"      description: {json.dumps(said[member.name])}"


def _entry(key: str, value: object) -> Iterator[str]:
    """Yield the lines of a member of a schema, one for each item of a list that is too long for one line."""
    line = f"      {key}: {_flow(value)}"
    if isinstance(value, list) and len(line) + 4 > _WIDTH:
        yield f"      {key}:"
        yield from (f"        - {_flow(each)}" for each in value)
    else:
        yield line


def _schema(member: Member) -> dict[str, Any]:
    schema = _of_type(member.type, is_nullable=not _NEVER_NULL & {*member.notes})
    for rule in member.notes:
        if isinstance(rule, Rule):
            if rule.words:
                nothing = [None] if "null" in schema["type"] else []
                schema = {"enum": [*rule.words, *nothing]}
            limits = {"pattern": rule.pattern, "minLength": rule.min_length, "maxLength": rule.max_length}
            schema |= {name: limit for name, limit in limits.items() if limit is not None}
    return schema


def _of_type(kind: Any, *, is_nullable: bool = True) -> dict[str, Any]:
    if get_origin(kind) is UnionType:
        [given] = [each for each in get_args(kind) if each is not NoneType]
        schema = _of_type(given)
        if not is_nullable:
            return schema
        if "$ref" in schema:
            return {"oneOf": [schema, {"type": "null"}]}
        return {**schema, "type": [schema["type"], "null"]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _of_type(get_args(kind)[0])}
    if isinstance(kind, type) and issubclass(kind, Document):
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    return dict(_TYPES[get_origin(kind) or kind])


def _flow(value: object) -> str:
    """Return a value as YAML writes it in one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return value if isinstance(value, str) and re.fullmatch(r"(?!null)[a-z_-]+", value) else json.dumps(value)
