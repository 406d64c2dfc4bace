"""The protocol of `cloud {}` and `backend "remote"`: event -> library -> response.

It translates and decides nothing. What it does not have is no 404, which clients take for "there is none, so
I create it".
"""

import gc
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cloud import documents
from gateway import logged, payload, requests, settings
from gateway.payload import Payload
from gateway.responses import Response, respond_with
from holdfast import names
from holdfast.access import Action
from holdfast.audit import Event
from holdfast.cloud import locking, staging, uploads, versions, workspaces
from holdfast.cloud.ids import OutputId, UploadId, VersionId, WorkspaceId
from holdfast.cloud.names import organization_and_workspace, require_organization, state_name
from holdfast.errors import (
    HoldfastError,
    InvalidDocument,
    Locked,
    LockLost,
    MethodNotAllowed,
    NoState,
    NotAllowed,
    NoWorkspace,
    TooLarge,
    UnknownRoute,
)
from holdfast.s3 import snapshot
from holdfast.s3.presigned import Presigned, Signer
from holdfast.s3.store import Store, connect, deadline
from holdfast.state.read import require_read

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from holdfast.cloud.workspaces import Workspace
    from holdfast.state.delete import Removed
    from holdfast.state.write import Written

_BUCKET: Final = os.environ["HOLDFAST_BUCKET"]
_ACCOUNT: Final = os.environ["HOLDFAST_ACCOUNT"]
_STAGING_BUCKET: Final = os.environ["HOLDFAST_STAGING_BUCKET"]
_LARGEST_STATE: Final = int(os.environ.get("HOLDFAST_MAX_STATE_MB", "100")) * 1_000_000
_API_ADDRESS: Final = os.environ.get("HOLDFAST_API_ADDRESS", "https://{domain}")
"""The API's base URL, with `{api}` for its ID and `{domain}` for its host name."""
_DECLARED_ONLY: Final = settings.declared_only()
_RETENTION: Final = settings.write_retention()

_DOWNLOAD_SECONDS: Final = 60
"""How long a client may take from a redirect to S3."""
_API_VERSION: Final = "2.5"
"""The least that clients ask for."""


@cache
def _signer() -> Signer:
    # Not for every process: reading a state that is not large needs none.
    return Signer(endpoint_url=os.environ.get("HOLDFAST_PRESIGN_ENDPOINT"))


_s3 = connect()
snapshot.prepare(_s3, _BUCKET, _ACCOUNT, names.StateName("").state_key, load=_signer)
gc.freeze()  # nor is anything of it looked at later
gc.enable()


@dataclass(frozen=True, slots=True)
class Request(requests.Request):
    """A request for a workspace, or for what is in one.

    Attributes:
        staging: the staging bucket, for the requests to S3 that this request takes.
    """

    staging: Store

    @property
    def path(self) -> Sequence[str]:
        """The path's segments after `/api/v2/`. The gateway has decoded it: it is never decoded again."""
        path: str = self.event["pathParameters"]["path"]
        return path.split("/")

    @property
    def api_address(self) -> str:
        """The API's base URL, without a slash at the end.

        API Gateway tells under which of its own host names the request came. A header could tell any.
        """
        context = self.event["requestContext"]
        return _API_ADDRESS.replace("{api}", context["apiId"]).replace("{domain}", context["domainName"])

    @property
    def state(self) -> str | None:
        """What the request says the name of the state is, for the log; None if it names none."""
        _, parameters = _route(self.path)
        try:
            match parameters:
                case {"organization": organization, "workspace": workspace}:
                    return state_name(organization, workspace).value
                case {"workspace_id": text}:
                    return WorkspaceId.parse(text).name.value
                case {"version_id": text}:
                    return _version_id(text).name.value
                case {"output_id": text}:
                    return OutputId.parse(text).version.name.value
                case _:
                    return None
        except HoldfastError:
            return None

    @property
    def s3_requests(self) -> int:
        """How many requests to S3 it took."""
        return len(self.store.requests) + len(self.staging.requests)


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Respond to one request to the API.

    Args:
        event: an API Gateway HTTP API event, payload format 2.0.
        context: the invocation's.
    """
    until = deadline(context.get_remaining_time_in_millis())
    store, staged = (Store(_s3, bucket, _ACCOUNT, deadline=until) for bucket in (_BUCKET, _STAGING_BUCKET))
    request = Request(event, store, staged)
    return respond_with(request, lambda: _respond(request), documents.error)


def _respond(request: Request) -> Response:
    method = request.event["requestContext"]["http"]["method"]
    verbs, parameters = _route(request.path)
    if verbs is None:
        raise UnknownRoute(
            "This API keeps states: organizations, workspaces, locks, state versions and outputs. It has no "
            "runs, variables, policies or registry; set these where Terraform runs."
        )
    if method not in verbs:
        raise MethodNotAllowed(method, tuple(verbs))
    request.require_authenticated()
    respond = verbs[method]
    documents.check_parameters(request.query, _PARAMETERS.get(respond, ()))
    return respond(request, **parameters)


# The service.


def _ping(_: Request) -> Response:
    headers = {"TFP-API-Version": _API_VERSION, "TFP-AppName": "HCP Terraform"}
    return Response(Event.SERVICE_DESCRIBED, 204, Payload("", is_base64=False, headers=headers))


def _entitlements(request: Request, organization: str) -> Response:
    require_organization(organization, request.caller)
    attributes = {"operations": False, "state-storage": True}
    data = {"id": organization, "type": "entitlement-sets", "attributes": attributes}
    return Response(Event.SERVICE_DESCRIBED, 200, documents.answer(data))


def _projects(request: Request, organization: str) -> Response:
    require_organization(organization, request.caller)
    return Response(Event.SERVICE_DESCRIBED, 200, documents.answer([]))


def _create_project(request: Request, organization: str) -> Response:
    require_organization(organization, request.caller)
    raise InvalidDocument("This API has no projects. Remove 'project' from the configuration.")


def _account(request: Request) -> Response:
    principal = request.caller.principal
    data = {"id": principal, "type": "users", "attributes": {"username": principal}}
    return Response(Event.SERVICE_DESCRIBED, 200, documents.answer(data))


# Workspaces.


def _list_workspaces(request: Request, organization: str) -> Response:
    caller, query = request.caller, request.query
    number, size = documents.page_wanted(query)
    is_reversed = documents.is_reversed(query)
    found = workspaces.listed(request.store, organization, documents.wanted(query), caller)
    if is_reversed:
        found.reverse()
    if not query.keys().isdisjoint(("filter[project][id]", "filter[current-run][status]")):
        found = []  # nothing is in a project, or has a run
    return Response(Event.WORKSPACES_LISTED, 200, documents.page(found, number, size, caller))


def _read_workspace(request: Request, organization: str, workspace: str) -> Response:
    try:
        found = workspaces.read(request.store, organization, workspace, request.caller)
    except NoWorkspace as error:
        # Like a state that is absent, it is nothing that was refused.
        status, document = documents.error(error)
        return Response(Event.WORKSPACE_ABSENT, status, document)
    return _workspace(request, Event.WORKSPACE_READ, found)


def _read_workspace_by_id(request: Request, workspace_id: str) -> Response:
    found = workspaces.read_by_id(request.store, WorkspaceId.parse(workspace_id), request.caller)
    return _workspace(request, Event.WORKSPACE_READ, found)


def _create_workspace(request: Request, organization: str) -> Response:
    caller = request.caller
    require_organization(organization, caller)
    name, tags = documents.new_workspace(request.body())
    created = workspaces.create(request.store, organization, name, tags, caller, declared_only=_DECLARED_ONLY)
    return _workspace(request, Event.WORKSPACE_CREATED, created, 201)


def _change_workspace(request: Request, workspace_id: str) -> Response:
    workspace = WorkspaceId.parse(workspace_id)
    request.caller.require(Action.WRITE, workspace.name)
    found = workspaces.read_by_id(request.store, workspace, request.caller)
    documents.check_change(request.body(), found, request.caller)
    return _workspace(request, Event.WORKSPACE_READ, found)


def _delete_workspace(request: Request, organization: str, workspace: str) -> Response:
    return _deleted(workspaces.delete(request.store, organization, workspace, request.caller))


def _safe_delete_by_name(request: Request, organization: str, workspace: str) -> Response:
    return _safe_delete(request, WorkspaceId.mint(state_name(organization, workspace)))


def _safe_delete_by_id(request: Request, workspace_id: str) -> Response:
    return _safe_delete(request, WorkspaceId.parse(workspace_id))


def _safe_delete(request: Request, workspace: WorkspaceId) -> Response:
    return _deleted(workspaces.safe_delete(request.store, workspace, request.caller))


def _deleted(removed: "Removed") -> Response:
    # A state that is gone is the event that people look for, whichever protocol deleted it.
    event = Event.STATE_DELETED if removed.version_id else Event.WORKSPACE_DELETED
    return Response(event, 204, logged={"version_id": removed.version_id})


def _workspace(request: Request, event: Event, found: "Workspace", status: int = 200) -> Response:
    return Response(event, status, documents.answer(documents.workspace(found, request.caller)))


# Tags.


def _read_tags(request: Request, workspace_id: str) -> Response:
    found = workspaces.read_by_id(request.store, WorkspaceId.parse(workspace_id), request.caller)
    return Response(Event.WORKSPACE_READ, 200, documents.tag_bindings(found.tags))


def _bind_tags(request: Request, workspace_id: str) -> Response:
    bindings = documents.received_bindings(request.body())
    changed = _change_tags(request, workspace_id, lambda tags: {**tags, **bindings})
    return Response(Event.WORKSPACE_CHANGED, 200, documents.tag_bindings(changed.tags))


def _add_tags(request: Request, workspace_id: str) -> Response:
    added = documents.received_names(request.body())
    _change_tags(request, workspace_id, lambda tags: {**added, **tags})
    return Response(Event.WORKSPACE_CHANGED, 204)


def _remove_tags(request: Request, workspace_id: str) -> Response:
    removed = documents.received_names(request.body())
    _change_tags(
        request,
        workspace_id,
        lambda tags: {key: value for key, value in tags.items() if key not in removed},
    )
    return Response(Event.WORKSPACE_CHANGED, 204)


def _change_tags(
    request: Request, workspace_id: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> "Workspace":
    return workspaces.change_tags(request.store, WorkspaceId.parse(workspace_id), change, request.caller)


# Locks. Clients read nothing of the responses but that they are workspaces.


def _lock(request: Request, workspace_id: str) -> Response:
    workspace = WorkspaceId.parse(workspace_id)
    acquired = locking.lock(request.store, workspace, request.caller, declared_only=_DECLARED_ONLY)
    return _locked(request, Event.LOCK_ACQUIRED, workspace, logged.of_acquired(acquired))


def _unlock(request: Request, workspace_id: str) -> Response:
    workspace = WorkspaceId.parse(workspace_id)
    released = locking.unlock(request.store, workspace, request.caller)
    said = {"lock_id": released.lock_id, "marker_left": released.marker_created}
    return _locked(request, Event.LOCK_RELEASED, workspace, said)


def _force_unlock(request: Request, workspace_id: str) -> Response:
    workspace = WorkspaceId.parse(workspace_id)
    removed = locking.force_unlock(request.store, workspace, request.caller)
    said = {
        **logged.of_lock(removed.info),
        "held_by": removed.principal,
        "marker_left": removed.marker_created,
    }
    return _locked(request, Event.LOCK_FORCE_UNLOCKED, workspace, said)


def _locked(request: Request, event: Event, workspace: WorkspaceId, said: Mapping[str, Any]) -> Response:
    found = documents.workspace(workspaces.Workspace(workspace), request.caller)
    if event is Event.LOCK_ACQUIRED:
        found["attributes"]["locked"] = True
        found["relationships"]["locked-by"] = documents.locked_by(request.caller.principal)
    return Response(event, 200, documents.answer(found), said)


# State versions.


def _current_version(request: Request, workspace_id: str) -> Response:
    workspace = WorkspaceId.parse(workspace_id)
    try:
        found = versions.current(request.store, workspace.name, request.caller, declared_only=_DECLARED_ONLY)
    except NoState as error:
        status, document = documents.error(error)
        return Response(Event.STATE_ABSENT, status, document)
    # What is in it was not read yet: the download is the event.
    document = documents.version(found, request.api_address)
    return Response(Event.WORKSPACE_READ, 200, document, {"version_id": found.id.version_id})


def _read_version(request: Request, version_id: str) -> Response:
    """Describe a version, or commit an upload: clients describe what they have uploaded, always."""
    which = _version_id(version_id)
    if isinstance(which, UploadId):
        return _commit(request, which)
    found = versions.describe(request.store, which, request.caller)
    return Response(Event.WORKSPACE_READ, 200, documents.version(found, request.api_address))


def _download(request: Request, version_id: str) -> Response:
    version, caller = VersionId.parse(version_id), request.caller
    said = {"version_id": version.version_id, "bytes": version.size}
    if version.size <= payload.MAX_BYTES:
        body = versions.read(request.store, version, caller)
        try:
            encoded = payload.encode(body, accepts_gzip=request.accepts_gzip)
        except TooLarge:
            pass  # so the client gets it from S3
        else:
            return Response(Event.STATE_READ, 200, encoded, said)
    require_read(version.name, caller)
    address = Presigned(_signer().client(), _BUCKET).get(
        version.name.state_key, version.version_id, _DOWNLOAD_SECONDS
    )
    return Response(Event.STATE_READ, 307, Payload("", is_base64=False, headers={"Location": address}), said)


def _create_version(request: Request, workspace_id: str) -> Response:
    workspace, caller = WorkspaceId.parse(workspace_id), request.caller
    new = documents.new_version(request.body())
    with _lock_stays(workspace.name):
        upload = uploads.create(
            request.store,
            workspace,
            new.announced,
            new.md5,
            caller,
            force=new.force,
            body=new.state,
            declared_only=_DECLARED_ONLY,
        )
    if new.state is None:
        presigned = Presigned(_signer().client(), _STAGING_BUCKET)
        addresses = staging.addresses(presigned, workspace.name, caller, upload.key)
        said = {"lock_id": upload.lock_id, "serial": upload.serial}
        return Response(Event.UPLOAD_CREATED, 201, documents.upload(upload, *addresses), said)
    with _lock_stays(workspace.name):
        written = uploads.write_at_once(
            request.store,
            upload,
            new.state,
            caller,
            limit=_LARGEST_STATE,
            retention=_RETENTION,
            declared_only=_DECLARED_ONLY,
        )
    return _written(upload, written, 201)


def _commit(request: Request, upload: UploadId) -> Response:
    with _lock_stays(upload.name):
        written = uploads.commit(
            request.store,
            request.staging,
            upload,
            request.caller,
            limit=_LARGEST_STATE,
            retention=_RETENTION,
            declared_only=_DECLARED_ONLY,
        )
    return _written(upload, written, 200)


@contextmanager
def _lock_stays(name: names.StateName) -> Iterator[None]:
    """Say in a refusal that clients keep the lock after a write that failed: they show it as the user's."""
    try:
        yield
    except HoldfastError as error:
        if 400 <= error.status < 500 and not isinstance(error, Locked | LockLost | NotAllowed):
            workspace = "/".join(organization_and_workspace(name) or ())
            error.message += f" The lock stays until you run 'terraform force-unlock {workspace}'."
        raise


def _written(upload: UploadId, written: "Written", status: int) -> Response:
    event = Event.STATE_WRITTEN if written.new_version else Event.STATE_UNCHANGED
    return Response(event, status, documents.committed(upload), logged.of_write(written))


def _version_id(text: str) -> VersionId | UploadId:
    return UploadId.parse(text) if text.startswith("upload-") else VersionId.parse(text)


# Outputs.


def _read_outputs(request: Request, workspace_id: str) -> Response:
    workspace = WorkspaceId.parse(workspace_id)
    try:
        found = versions.outputs(request.store, workspace, request.caller, declared_only=_DECLARED_ONLY)
    except NoState:
        return Response(Event.STATE_ABSENT, 200, documents.answer([]))
    said = {"version_id": found.version.version_id}
    try:
        return _of_outputs(request, documents.outputs(found), said)
    except TooLarge:
        if not request.caller.may(Action.READ, workspace.name):
            raise
        # As if the client had encrypted the state: it reads that itself, which may be as large as it is.
        return _of_outputs(request, documents.outputs(versions.Outputs(found.version, None)), said)


def _read_output(request: Request, output_id: str) -> Response:
    which = OutputId.parse(output_id)
    found = versions.output(request.store, which, request.caller)
    return _of_outputs(request, documents.output(which, found), {"version_id": which.version.version_id})


def _of_outputs(request: Request, document: bytes, said: Mapping[str, Any]) -> Response:
    try:
        encoded = payload.encode(document, accepts_gzip=request.accepts_gzip)
    except TooLarge:
        raise TooLarge(
            f"The outputs have {len(document)} bytes; the platform carries {payload.MAX_BYTES} bytes a "
            "response. Read the whole state, by 'terraform state pull' and with a token that has the role "
            "'reader'."
        ) from None
    body = Payload(
        encoded.text, is_base64=encoded.is_base64, headers={**documents.HEADERS, **encoded.headers}
    )
    return Response(Event.OUTPUTS_READ, 200, body, said)


_Verbs = Mapping[str, Callable[..., Response]]

_ROUTES: Final[Mapping[str, _Verbs]] = {
    "/api/v2/ping": {"GET": _ping},
    "/api/v2/account/details": {"GET": _account},
    "/api/v2/organizations/{organization}/entitlement-set": {"GET": _entitlements},
    "/api/v2/organizations/{organization}/projects": {"GET": _projects, "POST": _create_project},
    "/api/v2/organizations/{organization}/workspaces": {
        "GET": _list_workspaces,
        "POST": _create_workspace,
    },
    "/api/v2/organizations/{organization}/workspaces/{workspace}": {
        "GET": _read_workspace,
        "DELETE": _delete_workspace,
    },
    "/api/v2/organizations/{organization}/workspaces/{workspace}/actions/safe-delete": {
        "POST": _safe_delete_by_name
    },
    "/api/v2/workspaces/{workspace_id}": {"GET": _read_workspace_by_id, "PATCH": _change_workspace},
    "/api/v2/workspaces/{workspace_id}/tag-bindings": {"GET": _read_tags, "PATCH": _bind_tags},
    "/api/v2/workspaces/{workspace_id}/relationships/tags": {"POST": _add_tags, "DELETE": _remove_tags},
    "/api/v2/workspaces/{workspace_id}/actions/lock": {"POST": _lock},
    "/api/v2/workspaces/{workspace_id}/actions/unlock": {"POST": _unlock},
    "/api/v2/workspaces/{workspace_id}/actions/force-unlock": {"POST": _force_unlock},
    "/api/v2/workspaces/{workspace_id}/actions/safe-delete": {"POST": _safe_delete_by_id},
    "/api/v2/workspaces/{workspace_id}/current-state-version": {"GET": _current_version},
    "/api/v2/workspaces/{workspace_id}/current-state-version-outputs": {"GET": _read_outputs},
    "/api/v2/workspaces/{workspace_id}/state-versions": {"POST": _create_version},
    "/api/v2/state-versions/{version_id}": {"GET": _read_version},
    "/api/v2/state-versions/{version_id}/download": {"GET": _download},
    "/api/v2/state-version-outputs/{output_id}": {"GET": _read_output},
}
"""Path -> verb -> the function that responds. Parameters are whole segments."""

_PARAMETERS: Final[Mapping[Callable[..., Response], Collection[str]]] = {
    _list_workspaces: documents.OF_WORKSPACES,
    _projects: documents.OF_PROJECTS,
}
"""What the query of a call may hold. The other calls take no parameter."""

_SEGMENTS: Final = [(path.removeprefix("/api/v2/").split("/"), verbs) for path, verbs in _ROUTES.items()]


def _route(path: Sequence[str]) -> tuple[_Verbs | None, dict[str, str]]:
    """Return the verbs of a path, and its parameters; None if it is no route."""
    for route, verbs in _SEGMENTS:
        parameters = _parameters(route, path)
        if parameters is not None:
            return verbs, parameters
    return None, {}


def _parameters(route: Sequence[str], path: Sequence[str]) -> dict[str, str] | None:
    if len(route) != len(path):
        return None
    parameters = {}
    for wanted, segment in zip(route, path, strict=True):
        if wanted.startswith("{"):
            parameters[wanted[1:-1]] = segment
        elif wanted != segment:
            return None
    return parameters
