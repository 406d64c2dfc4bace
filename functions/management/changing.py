"""Handlers of the management API that change: declare a name, restore or freeze a state, for example."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from gateway import logged
from gateway.responses import Response
from holdfast import timestamp
from holdfast.api import form, v1
from holdfast.audit import Event
from holdfast.cloud import workspaces
from holdfast.errors import BaseChanged, InvalidRequest
from holdfast.names import StateName
from holdfast.s3.objects import Object
from holdfast.state.delete import delete as delete_state
from holdfast.state.freezing import patterns, states
from holdfast.state.held import Freeze, HeldFreeze
from holdfast.state.operator import check_version_id
from holdfast.state.removing import break_exactly
from holdfast.state.restore import Wanted, how_to_replace
from holdfast.state.restore import restore as restore_state
from holdfast.state.undelete import undelete as undelete_state
from management import documents
from management.requests import Request, moment, reason, text

_GONE: Final = "replace_lineage"
"""A member that commands of 0.3.0 send."""


def create(request: Request) -> Response:
    """Declare the name of a state."""
    request.document()
    created = workspaces.declare(request.work)
    document = documents.answer(v1.Declared(name=request.name.value, created=created))
    return Response(document, event=_unless(created))


def undeclare(request: Request) -> Response:
    """Delete the record of a name without a state if it is still the record that the operator saw."""
    seen = text(request.document(*form.names(v1.Undeclare)), "record")
    removed = workspaces.undeclare(request.work, seen)
    document = documents.answer(v1.Undeclared(name=request.name.value, removed=removed))
    return Response(document, event=_unless(removed))


def restore(request: Request) -> Response:
    """Write the content of an earlier version again."""
    members = request.document(*form.names(v1.Restore), _GONE)
    version_id = check_version_id(text(members, "version"))
    if _GONE in members:
        raise InvalidRequest(
            f"The API no longer accepts the member '{_GONE}'. {how_to_replace(request.name, version_id)}"
        )
    wanted = Wanted(
        version_id,
        text(members, "reason"),
        text(members, "id"),
        *(text(members, member) if member in members else None for member in ("current", "frozen")),
    )
    restored = restore_state(request.work, wanted)
    before = restored.superseded
    return Response(
        documents.answer(
            v1.Restored(
                name=request.name.value,
                version=restored.version_id,
                serial=restored.revision.serial,
                restored_from=restored.restored_from,
                restored_serial=restored.restored.serial,
                changed=restored.changed,
                lineage=restored.revision.lineage,
            )
        ),
        logged={
            "operation": "restore",
            "serial": restored.revision.serial,
            "serial_before": before.serial if before else None,
            "version_id": restored.version_id,
            "restored_from": restored.restored_from,
            "restored_serial": restored.restored.serial,
            "reason": members["reason"],
        },
        event=_unless(restored.changed),
    )


def delete(request: Request) -> Response:
    """Delete a state if the version that the operator saw is still current."""
    members = request.document(*form.names(v1.Delete))
    seen, noted = check_version_id(text(members, "version")), reason(members)

    def check(current: Object) -> None:
        if current.version.version_id != seen:
            raise BaseChanged(
                "The state has changed since you read it: the current version is "
                f"{current.version.version_id}, not {seen[:60]}. Nothing was deleted; look at the state, "
                "then run the command again."
            )

    removed = delete_state(request.work, seen=seen, check=check)
    return Response(
        documents.answer(v1.Deleted(name=request.name.value, version=removed.version_id)),
        {"version_id": removed.version_id, **noted},
    )


def undelete(request: Request) -> Response:
    """Undelete a state if the delete marker that the operator saw is still the newest entry."""
    members = request.document(*form.names(v1.Undelete))
    if "marker" not in members:
        raise InvalidRequest(
            "'marker' must be the version ID of the delete marker that the undelete undoes. If a 'holdfast' "
            "command sent this request, it is older than the deployed stack. Upgrade the command to the "
            "version of the stack."
        )
    noted = reason(members)
    undeleted = undelete_state(request.work, text(members, "marker"))
    return Response(
        documents.answer(
            v1.Undeleted(
                name=request.name.value,
                version=undeleted.version_id,
                serial=undeleted.revision.serial,
                lineage=undeleted.revision.lineage,
                from_version=undeleted.from_version,
                from_time=undeleted.from_time,
            )
        ),
        logged={
            "operation": "undelete",
            "serial": undeleted.revision.serial,
            "version_id": undeleted.version_id,
            "restored_from": undeleted.from_version,
            **noted,
        },
    )


def break_lock(request: Request) -> Response:
    """Remove exactly the lock with the requested ID and version."""
    parameters = request.parameters
    request.document()
    noted = reason(parameters)
    removed = break_exactly(request.work, text(parameters, "id"), text(parameters, "version"))
    return Response(
        documents.answer(v1.Removed(name=request.name.value, removed=removed.info is not None)),
        {**logged.of_removed(removed), **noted},
    )


def freeze(request: Request) -> Response:
    """Freeze a state."""
    frozen = _freeze(request.document(*form.names(v1.Freeze)))
    states.freeze(request.work, frozen, now=datetime.now(UTC))
    return Response(
        documents.answer(v1.Frozen(name=request.name.value, freeze=documents.freeze(frozen))),
        logged=_placed(frozen),
    )


def unfreeze(request: Request) -> Response:
    """Remove exactly the freeze with the requested ID."""
    request.document()
    freeze_id = text(request.parameters, "id")
    removed = states.unfreeze(request.work, freeze_id)
    document = documents.answer(v1.Removed(name=request.name.value, removed=removed is not None))
    return Response(document, _removed(removed) if removed else {}, event=_unless(removed is not None))


def freeze_pattern(request: Request) -> Response:
    """Freeze a pattern for names without a state, and the names that have a state or a lock."""
    members = request.document(*form.names(v1.FreezePattern))
    cursor = text(members, "cursor") if "cursor" in members else None
    pattern, store = text(members, "pattern"), request.store
    frozen, place = patterns.freeze_pattern(
        store, request.caller, pattern, _freeze(members), now=datetime.now(UTC), cursor=cursor
    )
    placed = frozen.freeze
    is_new = placed.id == members["id"]
    if is_new and not cursor:
        request.changes.append((Event.STATE_FROZEN, {"state": frozen.pattern, **_placed(placed)}))
    matching = patterns.freeze_matching(store, request.at, frozen, place, _log(request))
    document = v1.FrozenPattern(
        freeze=documents.pattern_freeze(frozen, request.caller),
        frozen=_sorted(matching.frozen),
        names=_sorted(matching.left),
        next=matching.next,
    )
    return Response(
        documents.large(document, accepts_gzip=request.accepts_gzip),
        logged={"state": frozen.pattern, "freeze": placed.id, "held_by": frozen.by},
        event=Event.STATES_LISTED if is_new or cursor else Event.STATE_UNCHANGED,
    )


def unfreeze_pattern(request: Request) -> Response:
    """Unfreeze what the freeze with the requested ID froze, and at last its pattern."""
    request.document()
    parameters = request.parameters
    freeze_id, cursor = text(parameters, "id"), parameters.get("cursor")
    lifted = patterns.unfreeze_pattern(
        request.store, request.at, request.caller, freeze_id, _log(request), cursor
    )
    of = lifted.pattern
    document = v1.LiftedPattern(
        pattern=of.pattern if of else None,
        unfrozen=_sorted(lifted.unfrozen),
        covered=tuple(
            v1.CoveredState(
                name=each.name.value,
                freeze=documents.pattern_freeze(each.pattern, request.caller),
                frozen=each.is_frozen,
            )
            for each in lifted.covered
        ),
        next=lifted.next,
    )
    return Response(
        documents.large(document, accepts_gzip=request.accepts_gzip),
        logged={"state": of.pattern, "freeze": freeze_id, "held_by": of.by} if of else {},
        event=_unless(of is not None and lifted.next is None),
    )


def _log(request: Request) -> patterns.Tell:
    """Return a function that logs each state that a request about a pattern has frozen or unfrozen."""

    def tell(name: StateName, freeze: Freeze | HeldFreeze) -> None:
        if isinstance(freeze, Freeze):
            event, fields = Event.STATE_FROZEN, _placed(freeze)
        else:
            event, fields = Event.STATE_UNFROZEN, _removed(freeze)
        request.changes.append((event, {"state": name.value, **fields}))

    return tell


def _placed(freeze: Freeze) -> dict[str, str | None]:
    ends = timestamp.write(freeze.until) if freeze.until else None
    return {"freeze": freeze.id, "reason": freeze.reason, "until": ends}


def _removed(freeze: HeldFreeze) -> dict[str, str | None]:
    return {"freeze": freeze.mark.id, "held_by": freeze.principal}


def _sorted(names: Iterable[StateName]) -> tuple[str, ...]:
    return tuple(sorted(name.value for name in names))


def _freeze(members: Mapping[str, Any]) -> Freeze:
    until = moment(members["until"], "until") if "until" in members else None
    return Freeze(text(members, "id"), text(members, "reason"), until)


def _unless(changed: bool) -> Event | None:
    """Return the event of a request that changed nothing; None, for the route's event, if it changed."""
    return None if changed else Event.STATE_UNCHANGED
