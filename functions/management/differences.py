"""The management API's handler that compares two versions of a state."""

import json
from collections.abc import Mapping
from typing import Any, Final

from gateway import payload
from gateway.responses import Response
from holdfast.access import Action
from holdfast.api import form, v1
from holdfast.errors import NoState, NoSuchVersion, TooLarge, UnreadableVersion
from holdfast.names import StateName
from holdfast.s3.objects import Larger, Object
from holdfast.s3.store import Store
from holdfast.state import diff
from holdfast.state.attribute_diff import INSTEAD, INSTEAD_FILES, Attribute
from holdfast.state.diff import Diff, OutputChange, ResourceChange
from holdfast.state.document import StateDocument
from holdfast.state.operator import check_version_id, no_such_version
from management.requests import Request, flag

_HISTORY_PAGE: Final = 20
"""Entries of the history per request. Only delete markers can come before the wanted version."""


def respond(request: Request) -> Response:
    """Respond with the differences between two versions of a state.

    Raises:
        NoState, NoSuchVersion: a version does not exist, or no version precedes it.
        TooLarge: a version or the difference is too large.
        UnreadableVersion: a version is not a state document of version 4 of the format.
    """
    parameters = request.parameters
    name = request.name
    request.caller.require(Action.READ, name)
    values = flag(parameters, "values")
    before, after = _versions(request.store, name, parameters.get("from"), parameters.get("to"))
    difference = diff.compare(before.body, after.body, values=values)
    body = json.dumps(form.write(_document(name, before, after, difference, values=values))).encode()
    try:
        encoded = payload.encode(body, accepts_gzip=request.accepts_gzip)
    except TooLarge:
        raise TooLarge(
            f"The difference has {len(body)} bytes, and a response can have at most {payload.MAX_BYTES}. "
            f"{INSTEAD}"
        ) from None
    return Response(
        encoded,
        {
            "serial_before": difference.before.revision.serial,
            "serial": difference.after.revision.serial,
            "version_id": after.version.version_id,
        },
    )


def _versions(store: Store, name: StateName, older: str | None, newer: str | None) -> tuple[Object, Object]:
    """Read the two versions. If a version is too large, raise `TooLarge` with the sizes of both versions."""
    after = _read(store, name, newer)
    if isinstance(after, Larger):
        # The message contains both sizes, which shows whether another version would be small enough.
        seen = store.read_version(name.state_key, newer)
        if older is None and seen:
            older = _before(store, name, seen.version_id)
        smaller = store.read_version(name.state_key, older)
        raise _too_large(smaller.size if smaller else 0, after.size)
    before = _read(store, name, older or _before(store, name, after.version.version_id))
    if isinstance(before, Larger):
        raise _too_large(before.size, len(after.body))
    for side, version in (("from", before), ("to", after)):
        if not version.body:
            raise UnreadableVersion(
                f"The version that '{side}' names has zero bytes, so it cannot be compared."
            )
    return before, after


def _read(store: Store, name: StateName, version_id: str | None) -> Object | Larger:
    """Read a version, by default the current version. If it is too large, return only its size."""
    if version_id:
        check_version_id(version_id)
    version = store.read_at_most(name.state_key, diff.MAX_BYTES, version_id)
    if version is None:
        if version_id is None:
            raise NoState(
                f"There is no state '{name}' now. If it was deleted, compare two of its versions by their "
                f"IDs, which 'holdfast state history {name}' shows."
            )
        raise no_such_version(name, version_id)
    return version


def _before(store: Store, name: StateName, version_id: str) -> str:
    """Return the ID of the version before a given version; `NoSuchVersion` if no version precedes it."""
    for entry in store.versions(name.state_key, after=version_id, page_size=_HISTORY_PAGE):
        if not entry.is_delete_marker:
            return entry.id
    raise NoSuchVersion(
        f"The state '{name}' has no version before {version_id}, so there is nothing to compare that version "
        "with."
    )


def _too_large(before: int, after: int) -> TooLarge:
    return TooLarge(
        f"The versions have {before} and {after} bytes, and Holdfast compares only versions of at most "
        f"{diff.MAX_BYTES} bytes. {INSTEAD_FILES}"
    )


# --- documents -----------------------------------------------------------------------------------


def _document(
    name: StateName, before: Object, after: Object, difference: Diff, *, values: bool
) -> v1.Differences:
    return v1.Differences(
        name=name.value,
        from_=_side(before, difference.before),
        to=_side(after, difference.after),
        encrypted=difference.encrypted,
        values=values,
        lineage_changed=difference.lineage_changed,
        resources=tuple(map(_resource, difference.resources)),
        outputs=tuple(
            v1.OutputChange(name=output.name, **_values(output), now_sensitive=output.now_sensitive)
            for output in difference.outputs
        ),
        summary=difference.summary,
    )


def _side(version: Object, head: StateDocument) -> v1.Side:
    metadata = version.version.metadata
    return v1.Side(
        version=version.version.version_id,
        serial=head.revision.serial,
        terraform_version=head.terraform_version,
        time=version.version.last_modified,
        size=len(version.body),
        principal=metadata.get("written-by"),
        owner=metadata.get("owner"),
        who=metadata.get("who"),
        operation=metadata.get("operation"),
    )


def _resource(resource: ResourceChange) -> v1.ResourceChange:
    return v1.ResourceChange(
        address=resource.address,
        change=resource.change,
        moved_from=resource.moved_from,
        type=resource.type,
        tainted=resource.tainted,
        provider=v1.Providers(before=resource.providers[0], after=resource.providers[1])
        if resource.providers
        else None,
        attributes=tuple(
            v1.AttributeChange(path=attribute.path, **_values(attribute)) for attribute in resource.attributes
        ),
    )


def _values(differing: Attribute | OutputChange) -> Mapping[str, Any]:
    return {
        "change": differing.change,
        "before": differing.before,
        "after": differing.after,
        "sensitive": differing.is_sensitive,
    }
