"""The requests that each role may send: one table of every route, for the functions and for a deployed stack.

A route without a row fails the tests, and a verb that a path does not have gets 405. Every request names a
state that somebody else has locked. So a change that a role may make is refused after its authorization, with
another status than 403, and no request of the table changes anything. An unlock names a lock not held.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gateway.router import Route
from holdfast.access import Action, Role, allowed
from holdfast.cloud.ids import OutputId, UploadId, VersionId, WorkspaceId
from holdfast.cloud.names import organization_and_workspace
from holdfast.names import parse
from tests.support import documents
from tests.support.routes import as_described, names_a_state

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

VERBS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "LOCK", "UNLOCK"})
MANAGEMENT: Final = "/manage/v1/"
CLOUD: Final = "/api/v2/"

TABLES: Final = {
    "/": """
request                                     nobody outputs auditor reader writer maintainer | beside elsewhere
GET    states/{name}                           401     403     403    200    200        200 |    403       403
POST   states/{name}                           401     403     403    403    423        423 |    403       403
PUT    states/{name}                           401     403     403    403    423        423 |    403       403
DELETE states/{name}                           401     403     403    403    403        423 |    403       403
LOCK   states/{name}                           401     403     403    403    423        423 |    403       403
UNLOCK states/{name}                           401     403     403    403    200        200 |    403       403
GET    outputs/{name}                          401     200     403    200    200        200 |    403       403
GET    outputs/{name}?mask=sensitive           401     200     403    200    200        200 |    403       403
PUT    locks/{name}                            401     403     403    403    423        423 |    403       403
POST   locks/{name}                            401     403     403    403    423        423 |    403       403
LOCK   locks/{name}                            401     403     403    403    423        423 |    403       403
DELETE locks/{name}                            401     403     403    403    200        200 |    403       403
UNLOCK locks/{name}                            401     403     403    403    200        200 |    403       403
POST   unlocks/{name}                          401     403     403    403    200        200 |    403       403
UNLOCK unlocks/{name}                          401     403     403    403    200        200 |    403       403
POST   sessions                                401     403     403    403    403        403 |      -         -
POST   sessions/aws                            403     403     403    403    403        403 |      -         -
GET    health                                  200     200     200    200    200        200 |      -         -
GET    .well-known/terraform.json              200     200     200    200    200        200 |      -         -
GET    app/settings/tokens                     200     200     200    200    200        200 |      -         -
GET    console                                 308     308     308    308    308        308 |      -         -
HEAD   console                                 308     308     308    308    308        308 |      -         -
GET    console/                                200     200     200    200    200        200 |      -         -
HEAD   console/                                200     200     200    200    200        200 |      -         -
GET    console/{path}                          400     400     400    400    400        400 |    400       400
HEAD   console/{path}                          400     400     400    400    400        400 |    400       400
""",
    MANAGEMENT: """
request                                     nobody outputs auditor reader writer maintainer | beside elsewhere
GET    states?prefix={name}                    401     200     200    200    200        200 |    200       200
GET    states?prefix={name}&deleted=true       401     200     200    200    200        200 |    200       200
GET    states?prefix={name}&declared=true      401     200     200    200    200        200 |    200       200
GET    locks?prefix={name}                     401     200     200    200    200        200 |    200       200
GET    names?pattern=*                         401     200     200    200    200        200 |      -         -
GET    activity                                401     403     200    403    403        200 |      -         -
GET    activity?state={name}                   401     403     200    403    403        200 |    403       403
GET    whoami                                  401     200     200    200    200        200 |      -         -
GET    states/{name}                           401     200     200    200    200        200 |    403       403
GET    locks/{name}                            401     200     200    200    200        200 |    403       403
GET    versions/{name}                         401     403     200    200    200        200 |    403       403
GET    versions/{name}?version={version}       401     403     200    200    200        200 |    403       403
GET    resolve/{name}?version=@2999-01-01T00:00Z  401  403     200    200    200        200 |    403       403
GET    content/{name}                          401     200     403    200    200        200 |    403       403
GET    content/{name}?version={version}        401     200     403    200    200        200 |    403       403
GET    diff/{name}?values=true                 401     403     403    200    200        200 |    403       403
GET    resources/{name}                        401     403     403    200    200        200 |    403       403
GET    attributes/{name}?address=a.a           401     403     403    200    200        200 |    403       403
POST   find                                    401     403     403    200    200        200 |      -         -
POST   create/{name}                           401     403     403    403    200        200 |    403       403
POST   undeclare/{name}                        401     403     403    403    403        423 |    403       403
POST   restore/{name}                          401     403     403    403    403        423 |    403       403
POST   delete/{name}                           401     403     403    403    403        423 |    403       403
POST   undelete/{name}                         401     403     403    403    403        409 |    403       403
DELETE locks/{name}?id=x&version=x             401     403     403    403    409        409 |    403       403
PUT    freeze/{name}                           401     403     403    403    403        423 |    403       403
DELETE freeze/{name}?id={command}              401     403     403    403    403        409 |    403       403
PUT    freezes                                 401     403     403    403    403        400 |      -         -
GET    freezes                                 401     200     200    200    200        200 |      -         -
DELETE freezes?id=0123456789abcdef0123456789abcdef 401  403 403  403    403        200 |      -         -
""",
    CLOUD: """
request                                     nobody outputs auditor reader writer maintainer | beside elsewhere
GET    ping                                    401     204     204    204    204        204 |      -         -
GET    account/details                         401     200     200    200    200        200 |      -         -
GET    {org}/entitlement-set                   401     200     200    200    200        200 |    200       403
GET    {org}/projects                          401     200     200    200    200        200 |    200       403
POST   {org}/projects                          401     400     400    400    400        400 |    400       403
GET    {org}/workspaces                        401     200     200    200    200        200 |    200       403
POST   {org}/workspaces                        401     403     403    403    409        409 |    403       403
GET    {org}/workspaces/{workspace}            401     200     200    200    200        200 |    403       403
DELETE {org}/workspaces/{workspace}            401     403     403    403    403        409 |    403       403
POST   {org}/workspaces/{workspace}/{safe}     401     403     403    403    403        409 |    403       403
GET    {ws}                                    401     200     200    200    200        200 |    403       403
PATCH  {ws}                                    401     403     403    403    200        200 |    403       403
GET    {ws}/tag-bindings                       401     200     200    200    200        200 |    403       403
PATCH  {ws}/tag-bindings                       401     403     403    403    200        200 |    403       403
POST   {ws}/relationships/tags                 401     403     403    403    204        204 |    403       403
DELETE {ws}/relationships/tags                 401     403     403    403    204        204 |    403       403
POST   {ws}/actions/lock                       401     403     403    403    409        409 |    403       403
POST   {ws}/actions/unlock                     401     403     403    403    409        409 |    403       403
POST   {ws}/actions/force-unlock               401     403     403    403    409        409 |    403       403
POST   {ws}/{safe}                             401     403     403    403    403        409 |    403       403
GET    {ws}/current-state-version              401     403     403    200    200        200 |    403       403
GET    {ws}/current-state-version-outputs      401     200     403    200    200        200 |    403       403
POST   {ws}/state-versions                     401     403     403    403    409        409 |    403       403
GET    state-versions?{of}                     401     403     200    200    200        200 |    403       403
GET    state-versions/{version_id}             401     403     403    200    200        200 |    403       403
GET    state-versions/{version_id:upload}      401     403     403    403    409        409 |    403       403
GET    state-versions/{version_id}/download    401     403     403    200    200        200 |    403       403
GET    state-versions/{version_id:large}/download  401 403     403    307    307        307 |    403       403
GET    state-version-outputs/{output_id}       401     200     403    200    200        200 |    403       403
""",
}
"""The columns: each role's status for a state inside of its scope, then every role's status for two outside.

The first state outside is in an organization with states inside of the scope, the second in another. A
request that names no state has no status outside. `{version_id:large}` is the ID of a version that is too
large for a response.
"""

OF_A_WORKSPACE: Final = "filter[organization][name]={organization}&filter[workspace][name]={workspace}"
_SHORT: Final = {
    "{org}": "organizations/{organization}",
    "{ws}": "workspaces/{workspace_id}",
    "{safe}": "actions/safe-delete",
    "{of}": OF_A_WORKSPACE,
}
_COMMAND: Final = "0123456789abcdef" * 2
_MD5: Final = "0" * 32
_LOCK: Final = json.loads(documents.lock_info("another", who="bob@desk"))
"""A lock that nobody holds: an unlock with it leaves the held lock."""
_LOCKING: Final = [
    *("LOCK /states", "UNLOCK /states", "PUT /locks", "POST /locks", "LOCK /locks", "DELETE /locks"),
    *("UNLOCK /locks", "POST /unlocks", "UNLOCK /unlocks"),
]
BODIES: Final[Mapping[str, object]] = {
    **{f"{verb} /states/{{name}}": json.loads(documents.state(3)) for verb in ("POST", "PUT")},
    **{f"{request}/{{name}}": _LOCK for request in _LOCKING},
    "POST /manage/v1/restore/{name}": {"version": "{version}", "reason": "back", "id": _COMMAND},
    "POST /manage/v1/undeclare/{name}": {"record": "{version}"},
    "POST /manage/v1/delete/{name}": {"version": "{version}"},
    "POST /manage/v1/undelete/{name}": {"marker": "{version}"},
    "PUT /manage/v1/freeze/{name}": {"reason": "an incident", "id": _COMMAND},
    # Nothing may change, and the right depends on the pattern, so it is not one.
    "PUT /manage/v1/freezes": {"pattern": "roles", "reason": "an incident", "id": _COMMAND},
    "POST /manage/v1/find": {"type": "a"},
    "POST /api/v2/organizations/{organization}/projects": {},
    "POST /api/v2/organizations/{organization}/workspaces": {
        "data": {"type": "workspaces", "attributes": {"name": "{workspace}"}}
    },
    "PATCH /api/v2/workspaces/{workspace_id}": {
        "data": {"type": "workspaces", "attributes": {"name": "{workspace}"}}
    },
    "PATCH /api/v2/workspaces/{workspace_id}/tag-bindings": {"data": []},
    "POST /api/v2/workspaces/{workspace_id}/relationships/tags": {"data": []},
    "DELETE /api/v2/workspaces/{workspace_id}/relationships/tags": {"data": []},
    "POST /api/v2/workspaces/{workspace_id}/state-versions": {
        "data": {"type": "state-versions", "attributes": {"serial": 9, "md5": _MD5}}
    },
}
"""The bodies of requests that have one. Each is valid: only the caller's role can be why it is refused."""

LISTS: Final = (
    f"{MANAGEMENT}states",
    f"{MANAGEMENT}locks",
    f"{MANAGEMENT}find",
    f"{CLOUD}organizations/{{organization}}/workspaces",
)
"""Routes that list states. Each caller must see exactly the states in its scope."""

SCOPE: Final = "roles/inside/*"
INSIDE: Final = "roles/inside/calls"
OUTSIDE: Final = ("roles/outside/calls", "elsewhere/outside/calls")
"""In the order of the table's columns."""


@dataclass(frozen=True, slots=True)
class Call:
    """A row of a table.

    `address` has placeholders, and the query. `inside` is the status that each role gets within its scope;
    the role None is a caller without credentials. `outside` is the status that every role gets for each state
    outside of its scope; None if the request names no state.
    """

    method: str
    address: str
    inside: Mapping[Role | None, int]
    outside: Mapping[str, int | None]

    def __str__(self) -> str:
        return f"{self.method} {self.address}"

    @property
    def route(self) -> str:
        """The path as docs/openapi.yaml writes it."""
        return re.sub(r":\w+}", "}", self.address.partition("?")[0])

    @property
    def allows(self) -> list[Role]:
        """The roles that are not refused."""
        return [role for role, status in self.inside.items() if role and status != 403]


def _calls() -> Iterator[Call]:
    for api, table in TABLES.items():
        head, *lines = (line for line in table.splitlines() if line)
        _, nobody, *roles, _, _, _ = head.split()
        assert nobody == "nobody"
        for line in lines:
            method, address, *inside, _, beside, elsewhere = line.split()
            for short, long in _SHORT.items():
                address = address.replace(short, long)
            statuses = zip([None, *map(Role, roles)], map(int, inside), strict=True)
            outside = [None if status == "-" else int(status) for status in (beside, elsewhere)]
            yield Call(method, api + address, dict(statuses), dict(zip(OUTSIDE, outside, strict=True)))


CALLS: Final = tuple(_calls())


def other_verbs(routes: Iterable[Route[Any]], nobody: Callable[[Route[Any]], int]) -> Iterator[Call]:
    """Yield a request for every verb that a path does not have.

    `nobody` returns the status of a request without credentials to a route's path.
    """
    paths = {route.path: route for route in routes}
    for path, route in paths.items():
        allowed = {verb for other in routes if other.path == path for verb in other.verbs.split()}
        for verb in sorted(VERBS - allowed):
            inside: dict[Role | None, int] = {None: nobody(route)}
            inside |= dict.fromkeys(Role, 405)
            yield Call(
                verb,
                as_described(path),
                inside,
                dict.fromkeys(OUTSIDE, 405 if names_a_state(route) else None),
            )


def unlisted(routes: Iterable[Route[Any]]) -> set[str]:
    """Return the verbs and paths that have a route but no row, or a row but no route."""
    listed = {f"{verb} {as_described(route.path)}" for route in routes for verb in route.verbs.split()}
    return listed ^ {f"{call.method} {call.route}" for call in CALLS}


def prepare(s3: "S3Client", bucket: str) -> dict[str, Mapping[str, str]]:
    """Put the states of the table into a bucket. Each is locked, and has a deleted state beside it.

    Return the values of the placeholders, by the name of the state.
    """
    return {state: _prepare(s3, bucket, state) for state in (INSIDE, *OUTSIDE)}


def _prepare(s3: "S3Client", bucket: str, state: str) -> Mapping[str, str]:
    def put(key: str, body: bytes) -> str:
        return s3.put_object(Bucket=bucket, Key=key, Body=body)["VersionId"]

    name, deleted = parse(state), parse(f"{state}-deleted")
    organization, workspace = organization_and_workspace(name) or ("", "")
    record = {"tags": {}, "created_by": "token:holder", "created": "2026-01-01T00:00:00+00:00"}
    put(name.record_key, json.dumps(record).encode())
    put(name.lock_key, documents.lock_info(who=f"holder of {state}"))
    put(deleted.state_key, documents.state(1))
    s3.delete_object(Bucket=bucket, Key=deleted.state_key)
    instances = [{"attributes": {"password": f"secret of {state}"}}]
    resource = {"mode": "managed", "type": "a", "name": "a", "provider": "p", "instances": instances}
    put(name.state_key, documents.state(1))
    latest = json.loads(documents.state(2, content=f"value of {state}"))
    body = json.dumps({**latest, "resources": [resource]}).encode()
    version = put(name.state_key, body)
    version_id = VersionId(name, version, len(body))
    return {
        "name": state,
        "organization": organization,
        "workspace": workspace,
        "command": _COMMAND,
        "path": "x",
        "version": version,
        "workspace_id": str(WorkspaceId.mint(name, "v")),
        "version_id": str(version_id),
        "version_id:large": str(VersionId(name, version, 20_000_000)),
        "version_id:upload": str(
            UploadId(_MD5, _MD5, "v", None, force=False, name=name, serial=9, lineage="", md5=_MD5)
        ),
        "output_id": str(OutputId(version_id, "content")),
    }


Send = Callable[[Role | None, str, str, bytes | None], tuple[int, str]]
"""Role (None = no credentials), verb, address and body of a request -> status and body of its response."""


Cell = tuple[str, Role | None, int]
"""A state, a role (None = no credentials), and the status that it gets."""


def cells(call: Call) -> list[Cell]:
    """Return who sends a request, for which states, and what they get."""
    inside = [(INSIDE, role, status) for role, status in call.inside.items()]
    return inside + [
        (state, role, status) for state, status in call.outside.items() if status for role in Role
    ]


TWO_GRANTS: Final = (
    (Role.MAINTAINER, Role.OUTPUTS),
    (Role.OUTPUTS, Role.WRITER),
    (Role.READER, Role.MAINTAINER),
)
"""Roles of callers with two grants: for the state inside, and for the first state outside."""


def cells_of_two_grants(call: Call, inside: Role, outside: Role) -> list[tuple[str, int]]:
    """Return the status that a caller with two grants gets for each of their states.

    A request that names no state gets what either of the roles gets.
    """
    statuses = {INSIDE: call.inside[inside], OUTSIDE[0]: call.inside[outside]}
    if call.outside[OUTSIDE[0]] is None:
        return [(INSIDE, min(statuses.values(), key=lambda status: status == 403))]
    return list(statuses.items())


def faults(
    call: Call, prepared: Mapping[str, Mapping[str, str]], send: Send, wanted: Iterable[Cell] | None = None
) -> Iterator[str]:
    """Send a request as everybody and for every state; yield what is not as the table says.

    `prepared` is what `prepare` returned; None of `wanted` is all cells.
    """
    for state, role, expected in cells(call) if wanted is None else wanted:
        status, body = send(role, *request(call, prepared[state]))
        for fault in _faults(call, state, role, expected, status, body):
            yield f"{call} for {state}, by {role or 'nobody'}: {fault}; it gets {status} {body[:200]}"


def request(call: Call, values: Mapping[str, str]) -> tuple[str, str, bytes | None]:
    """Return verb, address and body, with the placeholders filled in."""
    body = BODIES.get(f"{call.method} {call.address}")
    return (
        call.method,
        filled(call.address, values),
        None if body is None else filled(json.dumps(body), values).encode(),
    )


def filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"{([a-z_:]+)}", lambda found: values[found[1]], text)


def _faults(
    call: Call, state: str, role: Role | None, expected: int, status: int, body: str
) -> Iterator[str]:
    if status != expected:
        yield f"not {expected}"
        return
    if expected == 403 and not call.route.startswith("/sessions"):
        # A refusal names the least role: the route's for all its requests, or the library's for this request.
        least = (call.allows[0], Role.READER)
        enough = any(f"the role '{allowed}'" in body for allowed in least)
        if "not_allowed" not in body or not (enough or (state != INSIDE and "scope" in body)):
            yield "the refusal says neither which role is enough nor that it is the scope"
    if expected == 200 and state == INSIDE and call.route in LISTS and "inside" not in body:
        yield "it hides what the caller may see"
    shown = [f"{what} of {one}" for one in OUTSIDE for what in ("secret", "value", "holder")]
    may = allowed(role) if role else frozenset[Action]()
    if Action.READ not in may:
        shown.append(f"secret of {INSIDE}")
    if Action.READ_OUTPUTS not in may:
        shown.append(f"value of {INSIDE}")
    if expected < 300:
        shown += ["outside/calls", "outside:calls"]
    yield from (f"it shows '{text}'" for text in shown if text in body)
