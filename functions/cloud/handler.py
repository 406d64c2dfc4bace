"""The protocol of `cloud {}` and `backend "remote"`.

It only translates events for the library, and the library's results to responses. An unknown route is not a
404, because clients create an object that they do not find.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from cloud import documents
from cloud.requests import Request
from gateway import downloads, function, logged, payload
from gateway.payload import Payload
from gateway.responses import Response, respond
from gateway.router import ANY_CALLER, Route, Router, Target, by_id, by_name, text
from holdfast.access import Action, OwnLocks, named
from holdfast.audit import Event
from holdfast.cloud import locking, staging, uploads, versions, workspaces
from holdfast.cloud.ids import OutputId, UploadId, VersionId, WorkspaceId, parse_version
from holdfast.cloud.names import organization_and_workspace, require_organization, state_name
from holdfast.errors import (
    Absent,
    Conflict,
    HoldfastError,
    Invalid,
    InvalidDocument,
    Locked,
    LockLost,
    NoState,
    NoWorkspace,
    TooLarge,
    UnknownRoute,
)
from holdfast.names import StateName
from holdfast.policy import Policy

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from holdfast.cloud.workspaces import Workspace
    from holdfast.state.delete import Removed
    from holdfast.state.write import Written


_API_VERSION: Final = "2.5"
"""The lowest API version that clients accept."""

_function = function.start(
    Policy.from_environment("largest_state", "declared_only", "own_locks", "retention")
)


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Respond to one request to the API."""
    return respond(Request(event, _function, _function.budget(context)), _ROUTER, documents.error)


# The service.


def _ping(_: Request) -> Response:
    headers = {"TFP-API-Version": _API_VERSION, "TFP-AppName": "HCP Terraform"}
    return Response(Payload("", is_base64=False, headers=headers), status=204)


def _entitlements(request: Request, organization: str) -> Response:
    require_organization(organization, request.caller)
    attributes = {"operations": False, "state-storage": True}
    data = {"id": organization, "type": "entitlement-sets", "attributes": attributes}
    return Response(documents.answer(data))


def _projects(request: Request, organization: str) -> Response:
    require_organization(organization, request.caller)
    return Response(documents.answer([]))


def _create_project(request: Request, organization: str) -> Response:
    require_organization(organization, request.caller)
    raise InvalidDocument("This API has no projects. Remove 'project' from the configuration.")


def _account(request: Request) -> Response:
    caller = request.caller
    shown = {"username": named(caller.principal, caller.owner)}
    data = {"id": caller.principal, "type": "users", "attributes": shown}
    return Response(documents.answer(data))


# Workspaces.


def _list_workspaces(request: Request, organization: str) -> Response:
    caller, query = request.caller, request.query
    number, size = documents.page_wanted(query)
    is_reversed = documents.is_reversed(query)
    listed = workspaces.listed(request.store, organization, documents.wanted(query), caller)
    if is_reversed:
        listed.reverse()
    if not query.keys().isdisjoint(("filter[project][id]", "filter[current-run][status]")):
        listed = []  # no workspace is in a project, or has a run
    return Response(documents.page(listed, number, size, caller, _own_locks(request)))


def _read_workspace(request: Request) -> Response:
    try:
        return _workspace(request, workspaces.read(request.work))
    except NoWorkspace as error:
        # As for a missing state, the log does not say that the request was refused.
        return _absent(error, Event.WORKSPACE_ABSENT)


def _absent(error: HoldfastError, event: Event) -> Response:
    status, document = documents.error(error)
    return Response(document, status=status, event=event)


def _read_workspace_by_id(request: Request, workspace: WorkspaceId) -> Response:
    return _workspace(request, workspaces.read_by_id(request.work, workspace))


def _create_workspace(request: Request, organization: str) -> Response:
    caller = request.caller
    require_organization(organization, caller)
    name, tags = documents.new_workspace(request.body())
    created = workspaces.create(request.at(state_name(organization, name)), tags)
    return _workspace(request, created, 201)


def _change_workspace(request: Request, workspace: WorkspaceId) -> Response:
    request.work.require(Action.WRITE)
    current = workspaces.read_by_id(request.work, workspace)
    documents.check_change(request.body(), _document(request, current))
    return _workspace(request, current)


def _delete_workspace(request: Request) -> Response:
    return _deleted(workspaces.delete(request.work))


def _safe_delete_by_name(request: Request) -> Response:
    return _safe_delete(request, WorkspaceId.mint(request.name))


def _safe_delete(request: Request, workspace: WorkspaceId) -> Response:
    return _deleted(workspaces.safe_delete(request.work, workspace))


def _deleted(removed: "Removed") -> Response:
    # People look for the event of a deleted state, whichever protocol deleted it.
    event = Event.STATE_DELETED if removed.version_id else None
    return Response(logged={"version_id": removed.version_id}, status=204, event=event)


def _workspace(request: Request, workspace: "Workspace", status: int = 200) -> Response:
    return Response(documents.answer(_document(request, workspace)), status=status)


def _document(request: Request, workspace: "Workspace") -> Mapping[str, Any]:
    return documents.workspace(workspace, request.caller, _own_locks(request))


def _own_locks(request: Request) -> OwnLocks:
    return request.function.policy.own_locks


# Tags.


def _read_tags(request: Request, _: WorkspaceId) -> Response:
    return Response(documents.tag_bindings(workspaces.read_tags(request.work)))


def _bind_tags(request: Request, workspace: WorkspaceId) -> Response:
    bindings = documents.received_bindings(request.body())
    changed = _change_tags(request, workspace, lambda tags: {**tags, **bindings})
    return Response(documents.tag_bindings(changed.tags))


def _add_tags(request: Request, workspace: WorkspaceId) -> Response:
    added = documents.received_names(request.body())
    _change_tags(request, workspace, lambda tags: {**added, **tags})
    return Response(status=204)


def _remove_tags(request: Request, workspace: WorkspaceId) -> Response:
    removed = documents.received_names(request.body())
    _change_tags(
        request, workspace, lambda tags: {key: value for key, value in tags.items() if key not in removed}
    )
    return Response(status=204)


def _change_tags(
    request: Request, workspace: WorkspaceId, change: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> "Workspace":
    return workspaces.change_tags(request.work, workspace, change)


# Locks. Clients only check that the responses are workspaces.


def _lock(request: Request, workspace: WorkspaceId) -> Response:
    acquired = locking.lock(request.work, workspace)
    document = _document(request, workspaces.Workspace(workspace))
    document["attributes"]["locked"] = True
    document["relationships"]["locked-by"] = documents.locked_by(request.caller.principal)
    return Response(documents.answer(document), logged.of_acquired(acquired))


def _unlock(request: Request, workspace: WorkspaceId) -> Response:
    released = locking.unlock(request.work, workspace)
    fields = {"lock_id": released.lock_id, "marker_left": released.marker_created}
    return _unlocked(request, workspace, fields)


def _force_unlock(request: Request, workspace: WorkspaceId) -> Response:
    removed = locking.force_unlock(request.work, workspace)
    return _unlocked(request, workspace, logged.of_removed(removed))


def _unlocked(request: Request, workspace: WorkspaceId, fields: Mapping[str, Any]) -> Response:
    return Response(documents.answer(_document(request, workspaces.Workspace(workspace))), fields)


# State versions.


def _current_version(request: Request, _: WorkspaceId) -> Response:
    try:
        current = versions.current(request.work)
    except NoState as error:
        return _absent(error, Event.STATE_ABSENT)
    # The client has not read the content yet: the download logs `state.read`.
    document = documents.version(current, request.api_address)
    return Response(document, {"version_id": current.id.version_id})


def _list_versions(request: Request) -> Response:
    name = state_name(*documents.workspace_wanted(request.query))
    request.target = Target(name)  # the query names the state, which the log shows
    number, size = documents.page_wanted(request.query)
    listed, total = versions.listed(request.work, (number - 1) * size, size)
    return Response(documents.versions(listed, number, size, total, request.api_address))


def _read_version(request: Request, version: VersionId | UploadId) -> Response:
    """Describe a version, or commit an upload: after an upload clients always request its description."""
    if isinstance(version, UploadId):
        return _commit(request, version)
    described = versions.describe(request.work, version.version_id)
    return Response(documents.version(described, request.api_address))


def _download(request: Request, which: VersionId | UploadId) -> Response:
    version = VersionId.parse(str(which))  # an upload has nothing to download
    fields = {"version_id": version.version_id, "bytes": version.size}
    if version.size <= payload.MAX_BYTES:
        body = versions.read(request.work, version.version_id)
        if encoded := downloads.encoded(body, accepts_gzip=request.accepts_gzip):
            return Response(encoded, fields)
    request.work.require(Action.READ)
    elsewhere = downloads.redirect(request.store.bucket, version.name, version.version_id)
    return Response(elsewhere, fields, status=307)


def _create_version(request: Request, workspace: WorkspaceId) -> Response:
    work, new = request.work, documents.new_version(request.body())
    with _lock_stays(work.name):
        upload = uploads.create(
            work, workspace.lock_id, new.announced, new.md5, force=new.force, body=new.state
        )
    if new.state is None:
        presigned = downloads.presigned(request.staging.bucket)
        addresses = staging.addresses(presigned, upload, work.caller)
        fields = {"lock_id": upload.lock_id, "serial": upload.serial}
        return Response(documents.upload(upload, *addresses), fields, status=201)
    with _lock_stays(work.name):
        written = uploads.write_at_once(work, upload, new.state)
    return _written(upload, written, 201)


def _commit(request: Request, upload: UploadId) -> Response:
    with _lock_stays(upload.name):
        written = uploads.commit(request.work, request.staging, upload)
    return _written(upload, written, 200)


@contextmanager
def _lock_stays(name: StateName) -> Iterator[None]:
    """Add to a refused write's error that the lock is held: clients do not release it after a failure."""
    try:
        yield
    except (Invalid, Absent, Conflict) as error:
        if not isinstance(error, Locked | LockLost):
            workspace = "/".join(organization_and_workspace(name) or ())
            error.add_note(f"The lock is kept until you run 'terraform force-unlock {workspace}'.")
        raise


def _written(upload: UploadId, written: "Written", status: int) -> Response:
    event = Event.STATE_WRITTEN if written.new_version else Event.STATE_UNCHANGED
    return Response(documents.committed(upload), logged.of_write(written), status, event)


# Outputs.


def _read_outputs(request: Request, workspace: WorkspaceId) -> Response:
    try:
        outputs = versions.outputs(request.work)
    except NoState:
        return Response(documents.answer([]), event=Event.STATE_ABSENT)
    fields = {"version_id": outputs.version.version_id}
    try:
        return _of_outputs(request, documents.outputs(outputs), fields)
    except TooLarge:
        if not request.caller.may(Action.READ, workspace.name):
            raise
        # Respond as for an encrypted state: the client then reads the state itself, which may be of any size.
        return _of_outputs(request, documents.outputs(versions.Outputs(outputs.version, None)), fields)


def _read_output(request: Request, output: OutputId) -> Response:
    value = versions.output(request.work, output)
    return _of_outputs(request, documents.output(output, value), {"version_id": output.version.version_id})


def _of_outputs(request: Request, document: bytes, fields: Mapping[str, Any]) -> Response:
    try:
        encoded = payload.encode(document, accepts_gzip=request.accepts_gzip)
    except TooLarge:
        raise TooLarge(
            f"The outputs have {len(document)} bytes, and a response can have at most {payload.MAX_BYTES}. "
            "Read the whole state with 'terraform state pull' and credentials that have the role 'reader'."
        ) from None
    headers = {**documents.HEADERS, **encoded.headers}
    return Response(Payload(encoded.text, is_base64=encoded.is_base64, headers=headers), fields)


def _refuse(_: str) -> HoldfastError:
    return UnknownRoute(
        "This API has only organizations, workspaces, locks, state versions and outputs. It has no runs, "
        "variables, policies or registry. Run Terraform on your own machine or in CI, and set the variables "
        "there."
    )


_ORGANIZATION: Final = "/organizations/{organization}"
_WORKSPACES: Final = f"{_ORGANIZATION}/workspaces"
_BY_NAME: Final = f"{_WORKSPACES}/{{workspace}}"
_BY_ID: Final = "/workspaces/{workspace_id}"

_ROUTES: Final = [
    Route("/ping", "GET", _ping, Event.SERVICE_DESCRIBED, needs=ANY_CALLER),
    Route("/account/details", "GET", _account, Event.SERVICE_DESCRIBED, needs=ANY_CALLER),
    Route(
        f"{_ORGANIZATION}/entitlement-set", "GET", _entitlements, Event.SERVICE_DESCRIBED, needs=ANY_CALLER
    ),
    Route(
        f"{_ORGANIZATION}/projects",
        "GET",
        _projects,
        Event.SERVICE_DESCRIBED,
        needs=ANY_CALLER,
        query=documents.OF_PROJECTS,
    ),
    Route(f"{_ORGANIZATION}/projects", "POST", _create_project, Event.SERVICE_DESCRIBED, needs=ANY_CALLER),
    Route(
        _WORKSPACES,
        "GET",
        _list_workspaces,
        Event.WORKSPACES_LISTED,
        needs=ANY_CALLER,
        query=documents.OF_WORKSPACES,
    ),
    Route(_WORKSPACES, "POST", _create_workspace, Event.WORKSPACE_CREATED, needs=Action.WRITE),
    Route(_BY_NAME, "GET", _read_workspace, Event.WORKSPACE_READ, needs=Action.READ_METADATA),
    Route(_BY_NAME, "DELETE", _delete_workspace, Event.WORKSPACE_DELETED, needs=Action.DELETE),
    Route(
        f"{_BY_NAME}/actions/safe-delete",
        "POST",
        _safe_delete_by_name,
        Event.WORKSPACE_DELETED,
        needs=Action.DELETE,
    ),
    Route(_BY_ID, "GET", _read_workspace_by_id, Event.WORKSPACE_READ, needs=Action.READ_METADATA),
    Route(_BY_ID, "PATCH", _change_workspace, Event.WORKSPACE_READ, needs=Action.WRITE),
    Route(f"{_BY_ID}/tag-bindings", "GET", _read_tags, Event.WORKSPACE_READ, needs=Action.READ_METADATA),
    Route(f"{_BY_ID}/tag-bindings", "PATCH", _bind_tags, Event.WORKSPACE_CHANGED, needs=Action.WRITE),
    Route(f"{_BY_ID}/relationships/tags", "POST", _add_tags, Event.WORKSPACE_CHANGED, needs=Action.WRITE),
    Route(
        f"{_BY_ID}/relationships/tags", "DELETE", _remove_tags, Event.WORKSPACE_CHANGED, needs=Action.WRITE
    ),
    Route(f"{_BY_ID}/actions/lock", "POST", _lock, Event.LOCK_ACQUIRED, needs=Action.LOCK),
    Route(f"{_BY_ID}/actions/unlock", "POST", _unlock, Event.LOCK_RELEASED, needs=Action.UNLOCK),
    Route(
        f"{_BY_ID}/actions/force-unlock",
        "POST",
        _force_unlock,
        Event.LOCK_FORCE_UNLOCKED,
        needs=Action.UNLOCK,
    ),
    Route(
        f"{_BY_ID}/actions/safe-delete", "POST", _safe_delete, Event.WORKSPACE_DELETED, needs=Action.DELETE
    ),
    Route(
        f"{_BY_ID}/current-state-version", "GET", _current_version, Event.WORKSPACE_READ, needs=Action.READ
    ),
    Route(
        f"{_BY_ID}/current-state-version-outputs",
        "GET",
        _read_outputs,
        Event.OUTPUTS_READ,
        needs=Action.READ_OUTPUTS,
    ),
    Route(f"{_BY_ID}/state-versions", "POST", _create_version, Event.UPLOAD_CREATED, needs=Action.WRITE),
    Route(
        "/state-versions",
        "GET",
        _list_versions,
        Event.HISTORY_READ,
        needs=Action.READ_HISTORY,
        query=documents.OF_VERSIONS,
    ),
    Route("/state-versions/{version_id}", "GET", _read_version, Event.WORKSPACE_READ, needs=Action.READ),
    Route("/state-versions/{version_id}/download", "GET", _download, Event.STATE_READ, needs=Action.READ),
    Route(
        "/state-version-outputs/{output_id}",
        "GET",
        _read_output,
        Event.OUTPUTS_READ,
        needs=Action.READ_OUTPUTS,
    ),
]
_KINDS: Final = {
    "organization": text,
    "organization workspace": by_name(state_name),
    "workspace_id": by_id(WorkspaceId.parse),
    "version_id": by_id(parse_version),
    "output_id": by_id(OutputId.parse),
}
_ROUTER: Final = Router(_ROUTES, _KINDS, _refuse, prefix="/api/v2")
