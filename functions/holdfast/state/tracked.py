"""Parse the objects that a state document tracks, by address.

Resources are parsed one after the other, so that resources that both documents contain are not kept in
memory.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from holdfast import json_object
from holdfast.errors import InvalidState, TooLarge, UnreadableVersion
from holdfast.json_object import MOST_MEMBERS, Member
from holdfast.state import document, number, sensitivity
from holdfast.state.number import Number
from holdfast.state.sensitivity import Marks

MAX_VALUES: Final = 1_000_000
"""The most values of a parsed document.

A value needs as few as two bytes of a document, and up to 170 bytes of memory. Clients indent documents, so
that a value has 20 bytes or more.
"""
MAX_OBJECTS: Final = 200_000
"""The most objects of a parsed document. An object that a client writes takes 160 bytes or more of it."""

_MANAGED: Final = "managed"
_PROVIDER: Final = re.compile(r'provider\["([^"]*)"\]')
_NO_ID: Final = frozenset({"", "-", "none"})
"""Values of `id` that providers store for a resource without an ID. They do not identify a resource."""
_LONGEST_QUOTED: Final = 200

_T = TypeVar("_T")


class Address(NamedTuple):
    """The address of an object. The order of the fields is the order by which addresses are sorted.

    Attributes:
        module: empty for the root module.
        mode: `managed` or `data`.
        key: the instance's key: a rank (0 for no key, 1 for a number, 2 for a text), the number, the text.
        deposed: the ID of a deposed object; empty for the current one.
    """

    module: str
    mode: str
    type: str
    name: str
    key: tuple[int, int, str]
    deposed: str

    @property
    def characters(self) -> int:
        """The number of characters of its texts. To count them does not copy them."""
        return sum(map(len, (self.module, self.mode, self.type, self.name, self.key[2], self.deposed)))

    def __str__(self) -> str:
        """Return the address as clients print it."""
        parts = [self.type, self.name]
        if self.mode != _MANAGED:
            parts.insert(0, self.mode)
        if self.module:
            parts.insert(0, self.module)
        rank, index, text = self.key
        key = ("", f"[{index}]", f"[{json.dumps(text, ensure_ascii=False)}]")[rank]
        return ".".join(parts) + key + (f" (deposed {self.deposed})" if self.deposed else "")


@contextmanager
def reading(failure: str) -> Iterator[None]:
    """Convert errors in reading a document to `UnreadableVersion`, whose message begins with `failure`."""
    try:
        yield
    except InvalidState as error:
        reason = error.message
    except RecursionError:
        reason = "The values in the state document are nested too deeply."
    else:
        return
    raise UnreadableVersion(f"{failure} {reason}")


class Identity(NamedTuple):
    """The values by which an object is recognized under another address."""

    type: str
    provider: str
    id: str


@dataclass(frozen=True, slots=True)
class Tracked:
    """An object that a state tracks: a resource if it `is_managed`, else a data source.

    Attributes:
        provider: the source address of its provider.
        configuration: the address of the provider's configuration, with module and alias.
        identity: the identity of the object; None if its ID does not identify it.
        is_tainted: whether the next apply replaces it.
        attributes: the attributes in the document, with exact numbers.
        sensitive: its `sensitive_attributes`, as parsed from the document.
    """

    provider: str
    configuration: str
    identity: Identity | None
    is_managed: bool
    is_tainted: bool
    attributes: Mapping[str, Any]
    sensitive: object

    @property
    def marks(self) -> Marks:
        return sensitivity.marks(self.attributes, self.sensitive)

    @property
    def id(self) -> object:
        """The attribute `id`; None if it is missing."""
        return self.attributes.get("id")


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a state document; its numbers are exact."""

    value: object
    is_sensitive: bool


@dataclass(frozen=True, slots=True)
class Tracking:
    """The tracked objects. `objects` lacks common resources; `identities` counts those of all resources."""

    objects: Mapping[Address, Tracked]
    identities: Counter[Identity]


def outline(body: bytes) -> tuple[list[bytes], Mapping[str, Output]]:
    """Return the exact bytes of each resource of a state document, and its outputs.

    `InvalidState` is raised also if the format's version is not 4, or the resources are not a list.
    `TooLarge` is raised if the document has more than `MAX_VALUES` values or outputs than `MOST_MEMBERS`.
    """
    members = _members(body)
    _require_known_format(members)
    resources = list(_resources(body, members))
    outputs = _object(_parsed(members["outputs"].written(body)) if "outputs" in members else None, "outputs")
    if len(outputs) > MOST_MEMBERS:
        raise _too_large(len(outputs), "outputs", MOST_MEMBERS)
    return resources, {name: _output(output) for name, output in outputs.items()}


def objects(body: bytes) -> Iterator[tuple[Address, Tracked]] | None:
    """Return the objects of a state document, in its order; None if its client encrypted it.

    One resource after the other is parsed, so few objects are in memory. `InvalidState` is raised as by
    `outline` and `tracking`, also during the iteration, but not for an address that occurs twice.
    `TooLarge` is raised as by `outline`, and during the iteration after `MAX_OBJECTS` objects.
    """
    members = _members(body)
    if "encrypted_data" in members:
        return None
    _require_known_format(members)
    return _objects(_resources(body, members))


def _objects(resources: Iterable[bytes]) -> Iterator[tuple[Address, Tracked]]:
    tracked = chain.from_iterable(_tracked(_parsed(written)) for written in resources)
    for count, each in enumerate(tracked, start=1):
        _check_objects(count)
        yield each


def check_values(*bodies: bytes) -> None:
    """Raise `TooLarge` if documents have more than `MAX_VALUES` values together."""
    values = sum(json_object.count_values(body, MAX_VALUES // len(bodies)) for body in bodies)
    if values > MAX_VALUES:
        raise _too_large(values, "values", MAX_VALUES)


def _check_objects(count: int) -> None:
    if count > MAX_OBJECTS:
        raise _too_large(count, "instances", MAX_OBJECTS)


def _too_large(count: int, things: str, most: int) -> TooLarge:
    return TooLarge(
        f"This request would read at least {count:,} {things} of the state, but it can read at most "
        f"{most:,}. Save the state with 'holdfast state get', and look at that file."
    )


def _members(body: bytes) -> Mapping[str, Member]:
    check_values(body)
    try:
        return json_object.members(body)
    except ValueError as error:
        raise InvalidState(f"The state document {error}.") from None


def _require_known_format(members: Mapping[str, Member]) -> None:
    document.require_known_format(members["version"].value if "version" in members else None)


def _resources(body: bytes, members: Mapping[str, Member]) -> Iterator[bytes]:
    if "resources" not in members or members["resources"].value is None:
        return
    try:
        yield from json_object.elements(members["resources"].written(body))
    except ValueError as error:
        raise InvalidState(f"The member 'resources' of the state document {error}.") from None


def tracking(resources: Sequence[bytes], common: frozenset[bytes]) -> Tracking:
    """Parse the objects of resources, without keeping the objects of `common` resources.

    A common resource occurs once in each document, with the same bytes. `InvalidState` is raised if a member
    is missing or has a wrong type, or if an address occurs twice. `TooLarge` is raised for more than
    `MAX_OBJECTS` objects.
    """
    objects: dict[Address, Tracked] = {}
    seen: set[Address] = set()
    identities: Counter[Identity] = Counter()
    for written in resources:
        is_common = written in common  # once per resource, because it compares all bytes
        for address, tracked in _tracked(_parsed(written)):
            if address in seen:
                raise InvalidState(
                    f"The state document has the address {str(address)[:_LONGEST_QUOTED]} more than once."
                )
            seen.add(address)
            _check_objects(len(seen))
            if tracked.identity:
                identities[tracked.identity] += 1
            if not is_common:
                objects[address] = tracked
    return Tracking(objects, identities)


def _tracked(resource: object) -> Iterator[tuple[Address, Tracked]]:
    whole = _object(resource, "resources")
    mode, type_, name = (_member(whole, member, str) for member in ("mode", "type", "name"))
    module = _optional(whole, "module", str) or ""
    for item in _optional(whole, "instances", list) or ():
        instance = _object(item, "instances")
        deposed = _optional(instance, "deposed", str) or ""
        address = Address(module, mode, type_, name, _key(instance.get("index_key")), deposed)
        attributes = _optional(instance, "attributes", dict)
        if attributes is None:
            attributes = _optional(instance, "attributes_flat", dict) or {}
        provider = _optional(instance, "provider", str) or _optional(whole, "provider", str) or ""
        match = _PROVIDER.search(provider)
        source = match[1] if match else provider
        id_ = attributes.get("id")
        identity = None
        if mode == _MANAGED and isinstance(id_, str) and id_ not in _NO_ID:
            identity = Identity(type_, source, id_)
        is_tainted = _optional(instance, "status", str) == "tainted"
        sensitive = instance.get("sensitive_attributes")
        yield (
            address,
            Tracked(source, provider, identity, mode == _MANAGED, is_tainted, attributes, sensitive),
        )


def _key(index: object) -> tuple[int, int, str]:
    match index:
        case None:
            return 0, 0, ""
        case str():
            return 2, 0, index
        case Number() if (position := index.as_index()) is not None:
            return 1, position, ""
    raise InvalidState(
        "The state document has an instance with an 'index_key' that is neither a string nor a whole number."
    )


def _output(output: object) -> Output:
    members = _object(output, "outputs")
    # An unexpected value counts as "sensitive".
    return Output(members.get("value"), members.get("sensitive") not in (None, False))


def _parsed(written: bytes) -> Any:
    return json.loads(written, parse_int=number.parse, parse_float=number.parse)


def _object(value: object, where: str) -> Mapping[str, Any]:
    if value is None and where == "outputs":
        return {}
    if not isinstance(value, dict):
        raise InvalidState(f"An entry in '{where}' of the state document is not an object.")
    return value


def _member(members: Mapping[str, Any], name: str, kind: type[_T]) -> _T:
    value = _optional(members, name, kind)
    if value is None:
        raise InvalidState(f"A resource in the state document has no '{name}'.")
    return value


def _optional(members: Mapping[str, Any], name: str, kind: type[_T]) -> _T | None:
    """Return a member, or None if it is missing or null; raise `InvalidState` for another type."""
    value = members.get(name)
    if value is not None and not isinstance(value, kind):
        raise InvalidState(f"The '{name}' of a resource in the state document has the wrong type.")
    return value
