"""Handlers of the management API that change: declare a name, restore or freeze a state, for example."""

from datetime import UTC, datetime
from typing import Final

from gateway import logged
from gateway.responses import Response
from holdfast.api import form, v1
from holdfast.audit import Event
from holdfast.cloud import workspaces
from holdfast.errors import BaseChanged, InvalidRequest
from holdfast.policy import Policy
from holdfast.s3.store import Object
from holdfast.state import freeze as freezing
from holdfast.state import locks
from holdfast.state.delete import delete as delete_state
from holdfast.state.operator import check_version_id
from holdfast.state.restore import Wanted, how_to_replace
from holdfast.state.restore import restore as restore_state
from holdfast.state.undelete import undelete as undelete_state
from management import documents
from management.requests import Request, moment, text

_POLICY: Final = Policy.from_environment("largest_state", "own_locks", "retention")
_GONE: Final = "replace_lineage"
"""A member that commands of 0.3.0 send."""


def create(request: Request) -> Response:
    """Declare the name of a state."""
    request.document()
    created = workspaces.declare(request.store, request.name, request.caller)
    answered = documents.answer(v1.Declared(name=request.name.value, created=created))
    return Response(answered, event=_unless(created))


def undeclare(request: Request) -> Response:
    """Delete the record of a name without a state if it is still the record that the operator saw."""
    seen = text(request.document(*form.names(v1.Undeclare)), "record")
    removed = workspaces.undeclare(request.store, request.name, seen, request.caller)
    answered = documents.answer(v1.Undeclared(name=request.name.value, removed=removed))
    return Response(answered, event=_unless(removed))


def restore(request: Request) -> Response:
    """Write the content of an earlier version again."""
    asked = request.document(*form.names(v1.Restore), _GONE)
    version_id = check_version_id(text(asked, "version"))
    if _GONE in asked:
        raise InvalidRequest(f"'{_GONE}' was removed. {how_to_replace(request.name, version_id)}")
    restored = restore_state(
        request.store,
        request.name,
        Wanted(
            version_id,
            text(asked, "reason"),
            text(asked, "id"),
            *(text(asked, member) if member in asked else None for member in ("current", "frozen")),
        ),
        request.caller,
        limit=_POLICY.largest_state,
        retention=_POLICY.retention,
    )
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
            "reason": asked["reason"],
        },
        event=_unless(restored.changed),
    )


def delete(request: Request) -> Response:
    """Delete a state if the version that the operator saw is still current."""
    seen = check_version_id(text(request.document(*form.names(v1.Delete)), "version"))

    def check(current: Object) -> None:
        if current.version.version_id != seen:
            raise BaseChanged(
                f"The state has changed since you looked: its version {current.version.version_id} is "
                f"current, not {seen[:60]}. Nothing was deleted; look at it, then run the command again."
            )

    removed = delete_state(request.store, request.name, request.caller, seen=seen, check=check)
    return Response(
        documents.answer(v1.Deleted(name=request.name.value, version=removed.version_id)),
        {"version_id": removed.version_id},
    )


def undelete(request: Request) -> Response:
    """Undelete a state if the delete marker that the operator saw is still the newest entry."""
    asked = request.document(*form.names(v1.Undelete))
    if "marker" not in asked:
        raise InvalidRequest(
            "'marker' must be the version ID of the delete marker that is undone. A 'holdfast' command of an "
            "earlier version does not send it: upgrade the command to the version of the deployed stack."
        )
    undeleted = undelete_state(
        request.store, request.name, text(asked, "marker"), request.caller, _POLICY.retention
    )
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
        },
    )


def break_lock(request: Request) -> Response:
    """Remove exactly the lock with the requested ID and version."""
    asked = request.parameters
    request.document()
    removed = locks.break_exactly(
        request.store,
        request.name,
        text(asked, "id"),
        text(asked, "version"),
        request.caller,
        own_locks=_POLICY.own_locks,
    )
    return Response(
        documents.answer(v1.Removed(name=request.name.value, removed=removed.info is not None)),
        logged.of_removed(removed),
    )


def freeze(request: Request) -> Response:
    """Freeze a state."""
    asked = request.document(*form.names(v1.Freeze))
    until = moment(asked["until"], "until") if "until" in asked else None
    frozen = freezing.freeze(
        request.store,
        request.name,
        text(asked, "id"),
        text(asked, "reason"),
        until,
        request.caller,
        now=datetime.now(UTC),
    )
    ends = documents.time(until) if until else None
    return Response(
        documents.answer(v1.Frozen(name=request.name.value, freeze=documents.freeze(frozen))),
        logged={"freeze": frozen.id, "reason": frozen.reason, "until": ends},
    )


def unfreeze(request: Request) -> Response:
    """Remove exactly the freeze with the requested ID."""
    request.document()
    freeze_id = text(request.parameters, "id")
    removed = freezing.unfreeze(request.store, request.name, freeze_id, request.caller)
    said = {"freeze": removed.freeze.id, "held_by": removed.principal} if removed and removed.freeze else {}
    answered = documents.answer(v1.Removed(name=request.name.value, removed=removed is not None))
    return Response(answered, said, event=_unless(removed is not None))


def freeze_pattern(request: Request) -> Response:
    """Freeze a pattern for names without a state, and respond with the names to freeze one by one."""
    asked = request.document(*form.names(v1.FreezePattern))
    cursor = text(asked, "cursor") if "cursor" in asked else None
    frozen, names, next_ = freezing.freeze_pattern(
        request.store,
        text(asked, "pattern"),
        text(asked, "id"),
        text(asked, "reason"),
        moment(asked["until"], "until") if "until" in asked else None,
        request.caller,
        now=datetime.now(UTC),
        cursor=cursor,
    )
    placed = frozen.freeze
    is_new = placed.id == asked["id"]
    ends = documents.time(placed.until) if placed.until else None
    said = {"reason": placed.reason, "until": ends} if is_new else {"held_by": frozen.by}
    document = v1.FrozenPattern(
        freeze=documents.pattern_freeze(frozen, request.caller),
        names=tuple(name.value for name in names),
        next=next_,
    )
    return Response(
        documents.large(document, accepts_gzip=request.accepts_gzip),
        logged={"state": frozen.pattern, "freeze": placed.id, **said},
        event=Event.STATES_LISTED if cursor else _unless(is_new),
    )


def unfreeze_pattern(request: Request) -> Response:
    """Remove the frozen pattern with the requested ID. Frozen states stay frozen."""
    request.document()
    freeze_id = text(request.parameters, "id")
    lifted = freezing.unfreeze_pattern(request.store, freeze_id, request.caller)
    said = {"state": lifted.pattern, "freeze": freeze_id, "held_by": lifted.by} if lifted else {}
    answered = documents.answer(v1.LiftedPattern(pattern=lifted.pattern if lifted else None))
    return Response(answered, said, event=_unless(lifted is not None))


def _unless(changed: bool) -> Event | None:
    """Return the event of a request that changed nothing; None, for the route's event, if it changed."""
    return None if changed else Event.STATE_UNCHANGED
