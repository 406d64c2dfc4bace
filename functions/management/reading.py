"""Handlers of the management API that read: states, history, content, locks, the caller."""

from collections.abc import Mapping
from typing import Final

from gateway import downloads, payload
from gateway.payload import Payload
from gateway.responses import Response
from holdfast import timestamp
from holdfast.access import Action
from holdfast.api import v1
from holdfast.api.form import Document
from holdfast.audit import Event
from holdfast.errors import InvalidRequest, NoState, TooLarge
from holdfast.policy import Deployment
from holdfast.s3.objects import Object, ObjectVersion
from holdfast.state import catalog, declared, description, held, history, read
from holdfast.state import resolve as resolving
from holdfast.state.cursor import Page
from holdfast.state.freezing import patterns
from holdfast.state.operator import check_version_id
from management import documents
from management.requests import Request, flag, text

_DEPLOYMENT: Final = Deployment.from_environment("team", "account")


def states(request: Request) -> Response:
    """Respond with a page of the states."""
    parameters = request.parameters
    deleted, declared_ = flag(parameters, "deleted"), flag(parameters, "declared")
    if deleted and declared_:
        raise InvalidRequest("'deleted' and 'declared' cannot be combined.")
    list_page = (
        catalog.page_of_deleted
        if deleted
        else catalog.page_of_declared
        if declared_
        else catalog.page_of_states
    )
    page = list_page(request.store, parameters.get("prefix", ""), parameters.get("cursor"), request.caller)
    return _large(request, documents.states(page))


def state(request: Request) -> Response:
    """Respond with one state."""
    described = description.describe(request.work)
    record = request.store.read_version(request.name.record_key)
    if not (described.current or described.lock or record):
        raise _no_state(request)
    return Response(
        documents.answer(documents.state(request.name, described, record)),
        _version_read(described.current.version if described.current else None),
    )


def versions(request: Request) -> Response:
    """Respond with a page of the history of a state, or with one version of it."""
    version_id, cursor = map(request.parameters.get, ("version", "cursor"))
    if version_id and cursor:
        raise InvalidRequest("'version' and 'cursor' cannot be combined.")
    if version_id:
        version = history.version(request.work, check_version_id(version_id))
        return _large(request, documents.history(request.name, Page([version], None)))
    page = history.page(request.work, cursor)
    if not page.items and cursor is None and not _is_known(request):
        raise _no_state(request)
    return _large(request, documents.history(request.name, page))


def resolve(request: Request) -> Response:
    """Respond with the version to which a reference resolves, and the current version."""
    parameters = request.parameters
    reference = resolving.parse(text(parameters, "version"))
    try:
        resolution = resolving.resolve(request.work, reference, parameters.get("cursor"))
    except NoState:
        raise _no_state(request) from None
    return _large(request, documents.resolved(request.name, reference, resolution))


def names(request: Request) -> Response:
    """Respond with a page of the names that match a pattern."""
    parameters = request.parameters
    page = catalog.page_of_names(
        request.store, text(parameters, "pattern"), parameters.get("cursor"), request.caller
    )
    document = v1.NamePage(names=tuple(name.value for name in page.items), next=page.next)
    return _large(request, document)


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
    parameters = request.parameters
    page = catalog.page_of_locks(
        request.store, parameters.get("prefix", ""), parameters.get("cursor"), request.caller
    )
    return _large(request, documents.locks(page))


def lock(request: Request) -> Response:
    """Respond with the lock of one state."""
    request.caller.require(Action.READ_METADATA, request.name)
    current = held.read(request.store, request.name)
    document = v1.LockOfState(name=request.name.value, lock=documents.lock(current) if current else None)
    return _large(request, document)


def freezes(request: Request) -> Response:
    """Respond with the frozen patterns that the caller may see."""
    frozen = patterns.frozen_patterns(request.store, request.caller)
    listed = (documents.pattern_freeze(entry, request.caller) for entry in frozen)
    return _large(request, v1.PatternFreezes(freezes=tuple(listed)))


def whoami(request: Request) -> Response:
    """Respond with the caller."""
    caller = documents.caller(request.require_authenticated(), _DEPLOYMENT.team, _DEPLOYMENT.account)
    return Response(documents.answer(caller))


def _large(request: Request, document: Document) -> Response:
    return Response(documents.large(document, accepts_gzip=request.accepts_gzip))


def _whole(request: Request, version_id: str | None) -> Response:
    stored = read.read_version(request.work, version_id, limit=payload.MAX_BYTES)
    if isinstance(stored, Object):
        if body := downloads.encoded(stored.body, accepts_gzip=request.accepts_gzip):
            return _content(stored.version, body)
        stored = stored.version
    elsewhere = downloads.redirect(request.store.bucket, request.name, stored.version_id)
    return _content(stored, elsewhere, status=307)


def _outputs(request: Request, version_id: str | None) -> Response:
    version, reduced = read.read_outputs_of_version(request.work, version_id, limit=description.LARGEST_READ)
    try:
        encoded = payload.encode(reduced, accepts_gzip=request.accepts_gzip)
    except TooLarge:
        raise TooLarge(
            f"The outputs have {len(reduced)} bytes, and a response can have at most {payload.MAX_BYTES}. "
            "Read the whole state, with credentials that have the role 'reader'."
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
        held.read(request.store, request.name) is not None
        or request.store.read_version(request.name.record_key) is not None
    )


def _no_state(request: Request) -> NoState:
    """Return the error for a missing state. It says when the state was deleted, or suggests names."""
    sentences = [f"There is no state '{request.name}'."]
    if deleted := description.deleted_at(request.store, request.name):
        sentences.append(
            f"The state was deleted at {timestamp.write(deleted)}. A maintainer can bring it back with "
            f"'holdfast state undelete {request.name}'."
        )
    elif similar := declared.nearest(request.work):
        near = f"The nearest names are: {', '.join(similar)}."
        sentences.append("The name is declared, but has no state." if request.name.value in similar else near)
    else:
        sentences.append("'holdfast state list' shows the states in your scope.")
    return NoState(" ".join(sentences))
