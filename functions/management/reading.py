"""Handlers of the management API that read: states, history, content, locks, the caller."""

from collections.abc import Mapping
from typing import Final

from gateway import downloads, payload
from gateway.payload import Payload
from gateway.responses import Response
from holdfast.access import Action
from holdfast.api import v1
from holdfast.api.form import Document
from holdfast.audit import Event
from holdfast.errors import InvalidRequest, NoState, TooLarge
from holdfast.policy import Deployment
from holdfast.s3.store import Object, ObjectVersion
from holdfast.state import catalog, declared, description, freeze, history, read
from holdfast.state import locks as state_locks
from holdfast.state import resolve as resolving
from holdfast.state.operator import check_version_id
from management import documents
from management.requests import Request, text

_BUCKET: Final = Deployment.from_environment("bucket").bucket


def states(request: Request) -> Response:
    """Respond with a page of the states."""
    asked = request.parameters
    deleted, declared_ = _flag(asked, "deleted"), _flag(asked, "declared")
    if deleted and declared_:
        raise InvalidRequest("'deleted' and 'declared' do not go together.")
    list_page = (
        catalog.page_of_deleted
        if deleted
        else catalog.page_of_declared
        if declared_
        else catalog.page_of_states
    )
    page = list_page(request.store, asked.get("prefix", ""), asked.get("cursor"), request.caller)
    return _large(request, documents.states(page))


def state(request: Request) -> Response:
    """Respond with one state."""
    found = description.describe(request.store, request.name, request.caller)
    record = request.store.read_version(request.name.record_key)
    if not (found.current or found.lock or record):
        raise _no_state(request)
    return Response(
        documents.answer(documents.state(request.name, found, record)),
        _version_read(found.current.version if found.current else None),
    )


def versions(request: Request) -> Response:
    """Respond with a page of the history of a state."""
    cursor = request.parameters.get("cursor")
    page = history.page(request.store, request.name, cursor, request.caller)
    if not page.versions and cursor is None and not _is_known(request):
        raise _no_state(request)
    return _large(request, documents.history(request.name, page))


def resolve(request: Request) -> Response:
    """Respond with the version to which a reference resolves, and the current version."""
    sent = request.parameters
    reference = resolving.parse(text(sent, "version"))
    try:
        resolution = resolving.resolve(
            request.store, request.name, reference, sent.get("cursor"), request.caller
        )
    except NoState:
        raise _no_state(request) from None
    return _large(request, documents.resolved(request.name, reference, resolution))


def names(request: Request) -> Response:
    """Respond with a page of the names that match a pattern."""
    sent = request.parameters
    found, next_ = catalog.page_of_names(
        request.store, text(sent, "pattern"), sent.get("cursor"), request.caller
    )
    page = v1.NamePage(names=tuple(name.value for name in found), next=next_)
    return _large(request, page)


def content(request: Request) -> Response:
    """Respond with a version's content or a redirect to it. The role `outputs` gets only the outputs."""
    version_id = request.parameters.get("version")
    if version_id:
        check_version_id(version_id)
    whole = request.caller.may(Action.READ, request.name)
    try:
        return _whole(request, version_id) if whole else _outputs(request, version_id)
    except NoState:
        raise _no_state(request) from None


def locks(request: Request) -> Response:
    """Respond with a page of locks."""
    asked = request.parameters
    page = catalog.page_of_locks(request.store, asked.get("prefix", ""), asked.get("cursor"), request.caller)
    return _large(request, documents.locks(page))


def lock(request: Request) -> Response:
    """Respond with the lock of one state."""
    request.caller.require(Action.READ_METADATA, request.name)
    held = state_locks.read(request.store, request.name)
    document = v1.LockOfState(name=request.name.value, lock=documents.lock(held) if held else None)
    return _large(request, document)


def freezes(request: Request) -> Response:
    """Respond with the frozen patterns that the caller may see."""
    found = freeze.frozen_patterns(request.store, request.caller)
    listed = (documents.pattern_freeze(one, request.caller) for one in found)
    return _large(request, v1.PatternFreezes(freezes=tuple(listed)))


def whoami(request: Request) -> Response:
    """Respond with the caller."""
    return Response(documents.answer(documents.caller(request.require_authenticated())))


def _large(request: Request, document: Document) -> Response:
    return Response(documents.large(document, accepts_gzip=request.accepts_gzip))


def _whole(request: Request, version_id: str | None) -> Response:
    found = read.read_version(
        request.store, request.name, version_id, request.caller, limit=payload.MAX_BYTES
    )
    if isinstance(found, Object):
        if body := downloads.encoded(found.body, accepts_gzip=request.accepts_gzip):
            return _content(found.version, body)
        found = found.version
    elsewhere = downloads.redirect(_BUCKET, request.name, found.version_id)
    return _content(found, elsewhere, status=307)


def _outputs(request: Request, version_id: str | None) -> Response:
    version, reduced = read.read_outputs_of_version(
        request.store, request.name, version_id, request.caller, limit=description.LARGEST_READ
    )
    try:
        encoded = payload.encode(reduced, accepts_gzip=request.accepts_gzip)
    except TooLarge:
        raise TooLarge(
            f"The outputs have {len(reduced)} bytes; the platform carries {payload.MAX_BYTES} bytes a "
            "response. Read the whole state, with a token that has the role 'reader'."
        ) from None
    return _content(version, encoded, event=Event.OUTPUTS_READ)


def _content(
    version: ObjectVersion, body: Payload, *, status: int = 200, event: Event | None = None
) -> Response:
    headers = {**body.headers, "Holdfast-Version": version.version_id}
    return Response(
        Payload(body.text, is_base64=body.is_base64, headers=headers),
        {**_version_read(version), "bytes": version.size},
        status,
        event,
    )


def _version_read(version: ObjectVersion | None) -> Mapping[str, str]:
    return {"version_id": version.version_id} if version else {}


def _is_known(request: Request) -> bool:
    """Return whether a name without a version is locked or declared."""
    return (
        state_locks.read(request.store, request.name) is not None
        or request.store.read_version(request.name.record_key) is not None
    )


def _no_state(request: Request) -> NoState:
    """Return the error for a missing state. It says when the state was deleted, or suggests names."""
    said = [f"There is no state '{request.name}'."]
    if deleted := description.deleted_at(request.store, request.name):
        undelete = f"holdfast state undelete {request.name}"
        said.append(f"It was deleted at {documents.time(deleted)}; '{undelete}' brings it back.")
    elif similar := declared.nearest(request.store, request.name, request.caller):
        near = f"The nearest names are: {', '.join(similar)}."
        said.append("Its name is declared." if request.name.value in similar else near)
    return NoState(" ".join(said))


def _flag(asked: Mapping[str, str], name: str) -> bool:
    value = asked.get(name, "false")
    if value not in ("true", "false"):
        raise InvalidRequest(f"'{name}' must be 'true' or 'false'.")
    return value == "true"
