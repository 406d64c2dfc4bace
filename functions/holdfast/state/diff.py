"""Compare the resources, attributes and outputs of two state documents.

The result contains names and kinds of change. It contains values on request, except values that either
document marks as sensitive. A state does not mark everything that a provider's schema calls sensitive.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from holdfast.state import document, tracked
from holdfast.state.attribute_diff import ABSENT, Attribute, Change, Telling, attributes, kind
from holdfast.state.document import StateDocument
from holdfast.state.tracked import Address, Output, Tracked, Tracking

MAX_BYTES: Final = 10_000_000
"""Bytes of the largest state that is compared; a larger state could take longer than the API waits."""
MAX_TOLD: Final = 20_000_000
"""Characters of the largest result; a larger result raises `TooLarge`."""


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """A resource that differs. Its `address` has the form in which clients print addresses.

    Attributes:
        moved_from: its address in the older document if it was moved.
        tainted: whether it is tainted in the newer document; None if this did not change.
        providers: the provider's configuration before and after; None if this did not change.
        attributes: the attributes that differ; for an added or removed resource only if values are requested.
    """

    address: str
    change: Change
    moved_from: str | None
    type: str
    tainted: bool | None
    providers: tuple[str, str] | None
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class OutputChange:
    """An output that differs. `before`, `after` and `is_sensitive` have the meaning of `Attribute`.

    `now_sensitive` says whether the newer document marks it as sensitive; None if this did not change.
    """

    name: str
    change: Change
    before: str | None
    after: str | None
    is_sensitive: bool
    now_sensitive: bool | None


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
        TooLarge: both documents have too many values, or a document has too many objects or outputs.
    """
    tracked.check_values(before, after)
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
    telling = Telling(values, max_told)
    with _reading("from' or 'to"):
        return Diff(
            head_before,
            head_after,
            encrypted=False,
            resources=tuple(_resources(older, newer, telling)),
            outputs=tuple(_outputs(outputs_before, outputs_after, telling)),
        )


def _reading(side: str) -> AbstractContextManager[None]:
    return tracked.reading(f"The version that '{side}' names cannot be compared.")


def _once(resources: Sequence[bytes]) -> frozenset[bytes]:
    return frozenset(written for written, times in Counter(resources).items() if times == 1)


# --- resources -----------------------------------------------------------------------------------


def _resources(older: Tracking, newer: Tracking, telling: Telling) -> Iterator[ResourceChange]:
    moved = _moved(older, newer)
    left = set(moved.values())  # old addresses of moved objects
    for address in sorted(older.objects.keys() | newer.objects.keys()):
        gone = older.objects.get(address) if address not in left else None
        came = newer.objects.get(address)
        if came and address in moved:
            yield _changed(address, moved[address], older.objects[moved[address]], came, telling)
        elif came and gone:
            compared = [(each.is_tainted, each.configuration, each.attributes) for each in (gone, came)]
            if compared[0] != compared[1]:
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
    address: Address, was_at: Address, before: Tracked, after: Tracked, telling: Telling
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
        _providers(before, after, telling),
        tuple(attributes(before, after, telling)),
    )


def _providers(before: Tracked, after: Tracked, telling: Telling) -> tuple[str, str] | None:
    if before.configuration == after.configuration:
        return None
    return telling.name(before.configuration), telling.name(after.configuration)


def _whole(
    address: Address, change: Change, before: Tracked | None, after: Tracked | None, telling: Telling
) -> ResourceChange:
    """Return the change of a resource that only one document has."""
    return ResourceChange(
        telling.name(str(address)),
        change,
        None,
        address.type,
        True if after and after.is_tainted else None,
        None,
        # Without values this would list the names of all attributes of the resource.
        tuple(attributes(before, after, telling)) if telling.values else (),
    )


# --- outputs -------------------------------------------------------------------------------------


def _outputs(
    older: Mapping[str, Output], newer: Mapping[str, Output], telling: Telling
) -> Iterator[OutputChange]:
    for name in sorted(older.keys() | newer.keys()):
        before, after = older.get(name), newer.get(name)
        values = before.value if before else ABSENT, after.value if after else ABSENT
        marked = before is not None and after is not None and before.is_sensitive != after.is_sensitive
        if values[0] == values[1] and not marked:
            continue
        sensitive = any(output.is_sensitive for output in (before, after) if output)
        yield OutputChange(
            telling.name(name),
            kind(*values),
            telling.value(values[0], sensitive=sensitive),
            telling.value(values[1], sensitive=sensitive),
            sensitive,
            after.is_sensitive if after and marked else None,
        )
