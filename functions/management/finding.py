"""Handlers of the management API about resources: those of a state, the attributes of one, and the search."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from gateway.responses import Response
from holdfast import audit
from holdfast.api import form, v1
from holdfast.errors import InvalidRequest, UnknownRoute
from holdfast.state import find as searching
from holdfast.state import resources as listing
from holdfast.state.find import By, Wanted
from holdfast.state.operator import check_version_id
from holdfast.state.resources import Resource
from management import documents
from management.requests import Request, flag, text

_next_pages: Final = deque[tuple[str, Wanted, str, str]](maxlen=100)
"""Principal, text, prefix and cursor of the pages that follow those of this process."""


def resources(request: Request) -> Response:
    """Respond with a page of the resources of a state."""
    cursor = request.parameters.get("cursor")
    page = listing.page(request.work, cursor)
    document = v1.ResourcePage(
        name=request.name.value,
        version=page.version_id,
        encrypted=page.encrypted,
        resources=tuple(map(_resource, page.resources)),
        next=page.next,
    )
    body = documents.large(document, accepts_gzip=request.accepts_gzip)
    return Response(body, {"version_id": page.version_id})


def attributes(request: Request) -> Response:
    """Respond with the attributes of one resource. No log line contains its address."""
    parameters = request.parameters
    address, version_id = text(parameters, "address"), parameters.get("version")
    if version_id:
        check_version_id(version_id)
    values = flag(parameters, "values")
    found = listing.detail(request.work, address, version_id, values=values)
    document = v1.Attributes(
        name=request.name.value,
        version=found.version_id,
        address=found.resource.address,
        type=found.resource.type,
        provider=found.resource.provider,
        tainted=found.resource.is_tainted,
        values=values,
        attributes=tuple(
            v1.AttributeValue(path=each.path, value=each.after, sensitive=each.is_sensitive)
            for each in found.attributes
        ),
    )
    body = documents.large(document, accepts_gzip=request.accepts_gzip)
    return Response(body, {"version_id": found.version_id})


def find(request: Request) -> Response:
    """Respond with a page of the states that have a resource. No log line contains the search.

    The first page of a search is an event of the audit trail, and so is a page that follows one of another
    process: anybody can make up a cursor, so a cursor alone proves no earlier page.
    """
    if "{" in request.event["routeKey"]:  # as for /manage/v1/find/: the limits of another route
        raise UnknownRoute(
            "Send a search to /manage/v1/find, without a state name and without a slash at the end."
        )
    sent = request.document(*form.names(v1.Find))
    wanted, prefix, cursor = _wanted(sent), _optional(sent, "prefix") or "", _optional(sent, "cursor")
    page = searching.page(request.store, wanted, prefix, cursor, request.caller)
    principal = request.caller.principal
    unaudited = {audit.MARK_FIELD: None} if (principal, wanted, prefix, cursor) in _next_pages else {}
    if page.next:
        _next_pages.append((principal, wanted, prefix, page.next))
    document = v1.FoundPage(
        states=tuple(
            v1.FoundState(
                name=state.name.value,
                matches=state.matches,
                resources=tuple(map(_resource, state.resources)),
            )
            for state in page.states
        ),
        skipped=tuple(
            v1.SkippedState(name=skipped.name.value, why=skipped.why, size=skipped.size)
            for skipped in page.skipped
        ),
        searched=page.searched,
        left=page.left,
        next=page.next,
    )
    return Response(documents.large(document, accepts_gzip=request.accepts_gzip), unaudited)


def _wanted(sent: Mapping[str, Any]) -> Wanted:
    try:
        [by] = [each for each in By if each in sent]
    except ValueError:
        raise InvalidRequest(f"Send exactly one of the members {', '.join(By)}.") from None
    return Wanted(by, text(sent, by))


def _optional(sent: Mapping[str, Any], name: str) -> str | None:
    return text(sent, name) if name in sent else None


def _resource(resource: Resource) -> v1.Resource:
    return v1.Resource(
        address=resource.address,
        module=resource.module or None,
        mode=resource.mode,
        type=resource.type,
        name=resource.name,
        provider=resource.provider,
        tainted=resource.is_tainted,
        deposed=resource.deposed or None,
    )
