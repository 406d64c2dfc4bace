"""Without any one of its permissions something of Holdfast breaks, as far as the local AWS enforces it.

One case for each permission that the local AWS enforces. That a function has the others, and needs
them, is for test_permissions.py to find.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pytest

from holdfast import names
from tests.e2e.conftest import TEAMS
from tests.support import documents
from tests.support.audit_trail import audit_group, wait_for_events
from tests.support.aws_caller import aws_client, trust_role
from tests.support.aws_permissions import OBJECTS, STAGED, allowed
from tests.support.cloud_client import CloudClient, attributes, place
from tests.support.deployed import FUNCTIONS, DeployedRole
from tests.support.http_client import Client, Response
from tests.support.permissions_drive import manage, new_client, retain_lock
from tests.support.permissions_judged import Roles
from tests.support.team import Team

Request = Callable[[], str]
"""Sends a request and tells what came of it."""


_GATEWAYS: Final = "the gateway's own answer"


def _told(answer: Response) -> str:
    error = ""
    if answer.status >= 400:
        document = answer.json()
        error = document["errors"][0]["code"] if "errors" in document else document.get("error", _GATEWAYS)
    return f"{answer.status} {error}".strip()


# --- requests, each prepared while every permission is there ----------------------------------------


def read(team: Team, state: str) -> Request:
    client = _signed_in(team)
    team.put(f"states/{state}.tfstate", documents.state())
    return lambda: _told(client.read(state))


def sign_in(team: Team, state: str) -> Request:
    """Read a state that is not there, by somebody whose authorization is not cached."""
    client = new_client(team)
    return lambda: _told(client.read(state))


def lock(team: Team, state: str) -> Request:
    client = _signed_in(team)
    return lambda: _told(client.lock(state, documents.lock_info()))


def write(team: Team, state: str) -> Request:
    client, info = _signed_in(team), documents.lock_info()
    assert client.lock(state, info).status == 200
    return lambda: _told(client.write(state, documents.state(), documents.lock_id(info)))


def unlock(team: Team, state: str) -> Request:
    client, info = _signed_in(team), documents.lock_info()
    assert client.lock(state, info).status == 200

    def send() -> str:
        told = _told(client.unlock(state, info))
        versions, markers = team.versions_and_markers(names.parse(state).lock_key)
        return f"{told}, {versions} versions and {markers} markers of the lock stay"

    return send


def unlock_under_retention(team: Team, state: str) -> Request:
    client, info = _signed_in(team), documents.lock_info()
    assert client.lock(state, info).status == 200
    retain_lock(team, state)
    return lambda: _told(client.unlock(state, info))


def delete(team: Team, state: str) -> Request:
    client = _signed_in(team)
    team.put(f"states/{state}.tfstate", documents.state())
    return lambda: _told(client.delete(state))


def write_probe(team: Team, state: str) -> Request:  # noqa: ARG001 a probe has a name of its own
    client, probe, info = _signed_in(team), _probe_name(), documents.lock_info()

    def send() -> str:
        locked = client.lock(probe, info)
        if locked.status != 200:
            return _told(locked)
        return _told(client.write(probe, documents.probe_state(), documents.lock_id(info)))

    return send


def delete_probe(team: Team, state: str) -> Request:  # noqa: ARG001 a probe has a name of its own
    client, probe = _signed_in(team), _probe_name()
    team.put(names.parse(probe).state_key, documents.probe_state())
    return lambda: _told(client.delete(probe))


def unlock_probe(team: Team, state: str) -> Request:  # noqa: ARG001 a probe has a name of its own
    return unlock(team, _probe_name())


def _probe_name() -> str:
    return f"{names.RESERVED}/{uuid4().hex}"


def workspace(team: Team, state: str) -> Request:
    """Read a workspace by its name: record, state and lock."""
    client = _with_a_state(team, state)
    return lambda: _told(client.read(state))


def list_workspaces(team: Team, state: str) -> Request:
    client, (organization, _) = _with_a_state(team, state), place(state)
    return lambda: _told(client.call("GET", f"organizations/{organization}/workspaces"))


def create_workspace(team: Team, state: str) -> Request:
    client = team.cloud_client("maintainer")
    return lambda: _told(client.create(state))


def delete_workspace(team: Team, state: str) -> Request:
    client = _with_a_state(team, state)
    assert client.create(state).status == 201
    return lambda: _told(client.delete(state))


def lock_workspace(team: Team, state: str) -> Request:
    client = _with_a_state(team, state)
    workspace = client.open(state)
    return lambda: _told(client.lock(workspace))


def unlock_workspace(team: Team, state: str) -> Request:
    client = _with_a_state(team, state)
    workspace = _locked(client, state)

    def send() -> str:
        told = _told(client.unlock(workspace))
        versions, markers = team.versions_and_markers(names.parse(state).lock_key)
        return f"{told}, {versions} versions and {markers} markers of the lock stay"

    return send


def unlock_workspace_under_retention(team: Team, state: str) -> Request:
    client = _with_a_state(team, state)
    workspace = _locked(client, state)
    retain_lock(team, state)
    return lambda: _told(client.unlock(workspace))


def download(team: Team, state: str) -> Request:
    client = _with_a_state(team, state)
    current = client.current(client.open(state))
    return lambda: _told(client.download(current))


def upload(team: Team, state: str) -> Request:
    return _upload(team, state, _UPLOADED[0])


def upload_json(team: Team, state: str) -> Request:
    return _upload(team, state, _UPLOADED[1])


def _upload(team: Team, state: str, uploaded: str) -> Request:
    client = _with_a_state(team, state)
    address = attributes(_announced(client, state))[uploaded]
    # S3 itself answers, not in JSON.
    return lambda: str(client.put(address, b"{}").status)


def commit(team: Team, state: str) -> Request:
    client = _with_a_state(team, state)
    announced = _announced(client, state)
    assert client.upload(announced, _NEXT, b"{}") == [200, 200]

    def send() -> str:
        told = _told(client.commit(announced))
        return f"{told}, {_staged(team, announced)} uploaded objects stay"

    return send


_NEXT: Final = documents.state(2)
_UPLOADED: Final = ("hosted-state-upload-url", "hosted-json-state-upload-url")


def _with_a_state(team: Team, state: str) -> CloudClient:
    """A client, and a workspace that has a state."""
    team.put(f"states/{state}.tfstate", documents.state())
    return team.cloud_client("maintainer")


def _locked(client: CloudClient, state: str) -> str:
    workspace = client.open(state)
    assert client.lock(workspace).status == 200
    return workspace


def _announced(client: CloudClient, state: str) -> Response:
    announced = client.announce(_locked(client, state), _NEXT)
    assert announced.status == 201, announced
    return announced


def _staged(team: Team, announced: Response) -> int:
    """How many objects of an upload are in the staging bucket."""
    objects = [urlsplit(attributes(announced)[uploaded]).path.split("/", 2)[1:] for uploaded in _UPLOADED]
    return sum(
        team.s3.list_objects_v2(Bucket=bucket, Prefix=unquote(key))["KeyCount"] for bucket, key in objects
    )


def declare(team: Team, state: str) -> Request:
    client = _signed_in(team)
    return lambda: _told(manage(client, "POST", f"create/{state}", {}))


def read_version(team: Team, state: str) -> Request:
    client, version = _signed_in(team), _written(team, state)
    return lambda: _told(manage(client, "GET", f"content/{state}?version={version}"))


def restore(team: Team, state: str) -> Request:
    client, first = _signed_in(team), _written(team, state)
    team.put(f"states/{state}.tfstate", documents.state(2))
    asked = {"version": first, "reason": "a test", "id": uuid4().hex}
    return lambda: _told(manage(client, "POST", f"restore/{state}", asked))


def delete_by_operator(team: Team, state: str) -> Request:
    client, version = _signed_in(team), _written(team, state)
    return lambda: _told(manage(client, "POST", f"delete/{state}", {"version": version}))


def unfreeze(team: Team, state: str) -> Request:
    send_request = _frozen(team, state)

    def send() -> str:
        told = send_request()
        versions, markers = team.versions_and_markers(names.parse(state).lock_key)
        return f"{told}, {versions} versions and {markers} markers of the lock stay"

    return send


def unfreeze_under_retention(team: Team, state: str) -> Request:
    send = _frozen(team, state)
    retain_lock(team, state)
    return send


def managed(path: str) -> Callable[[Team, str], Request]:
    """Read something of a state that was written."""

    def prepare(team: Team, state: str) -> Request:
        client = _signed_in(team)
        _written(team, state)
        return lambda: _told(manage(client, "GET", path.format(state=state)))

    return prepare


def freeze(team: Team, state: str) -> Request:
    client, document = _signed_in(team), {"reason": "a test", "id": uuid4().hex}
    _written(team, state)
    return lambda: _told(manage(client, "PUT", f"freeze/{state}", document))


def _frozen(team: Team, state: str) -> Request:
    client, freeze_id = _signed_in(team), uuid4().hex
    asked = {"reason": "a test", "id": freeze_id}
    assert manage(client, "PUT", f"freeze/{state}", asked).status == 200
    return lambda: _told(manage(client, "DELETE", f"freeze/{state}?id={freeze_id}"))


def _written(team: Team, state: str) -> str:
    """Write a state as another program would; return its version ID."""
    team.put(f"states/{state}.tfstate", documents.state())
    return team.versions(state)[-1].id


def read_undeclared(team: Team, state: str) -> Request:
    client = team.client("maintainer")
    return lambda: _told(client.read(state))


def sign_in_with_session(team: Team, state: str) -> Request:
    """As `sign_in`, with a new session."""
    session = trust_role(team, "enforced").session(team)
    return lambda: _told(team.client_with(session).read(state))


def make_session(team: Team, state: str) -> Request:  # noqa: ARG001 the cases' signature
    caller = trust_role(team, "enforced")
    return lambda: _told(caller.ask_for_session(team))


def audited(team: Team, state: str) -> Request:
    """Read a state that is not there, and wait for what the audit trail says of it."""
    client = _signed_in(team)

    def send() -> str:
        told = _told(client.read(state))
        events = wait_for_events(team, 1, seconds=15, state=state)
        return f"{told}, {events[0]['event'] if events else 'nothing'}"

    return send


def audited_in_a_new_stream(team: Team, state: str) -> Request:
    """As `audited`, as if it were the first event of the day."""
    send, logs, group = audited(team, state), aws_client(team, "logs"), audit_group(team)

    def send_after() -> str:
        for stream in logs.describe_log_streams(logGroupName=group)["logStreams"]:
            logs.delete_log_stream(logGroupName=group, logStreamName=stream["logStreamName"])
        return send()

    return send_after


def _signed_in(team: Team) -> Client:
    """A client whose authorization is cached, so that the authorizer is not asked again."""
    client = team.client("maintainer")
    assert client.read("never/written").status == 204
    return client


# --- the cases -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """A permission that is taken away.

    Attributes:
        function: whose.
        action: which.
        on: a pattern of keys, `bucket` or `audit`.
        request: what is sent without it.
        works: what came of it with the permission.
        breaks: what comes of it without.
        team: whose functions are used; if it is not `strict`, only that team's have the permission.
    """

    function: str
    action: str
    on: str
    request: Callable[[Team, str], Request]
    works: str
    breaks: str
    team: str = "strict"

    def __str__(self) -> str:
        return f"{self.function}-{self.action}-{self.on}"


STATES, LOCKS, PROBES, TOKENS, SESSIONS, TRUST, WORKSPACES = OBJECTS
UPLOADS, UPLOADED_JSON = STAGED
_REFUSED = "500 storage_refused"
_CLEAN = "200, 0 versions and 0 markers of the lock stay"
_FAULT = f"500 {_GATEWAYS}"
_EVENT, _NO_EVENT = "204, state.absent", "204, nothing"
_COMMITTED = "200, 0 uploaded objects stay"
_ONE_STAYS = "200, 1 uploaded objects stay"
_REFUSED_TO_COMMIT = "500 storage_refused, 2 uploaded objects stay"

CASES: Final = (
    Case("backend", "s3:GetObject", STATES, read, "200", _REFUSED),
    Case("backend", "s3:GetObject", LOCKS, write, "200", _REFUSED),
    Case("backend", "s3:PutObject", STATES, write, "200", _REFUSED),
    Case("backend", "s3:PutObject", LOCKS, lock, "200", _REFUSED),
    Case("backend", "s3:DeleteObject", STATES, delete, "200", _REFUSED),
    Case("backend", "s3:DeleteObject", LOCKS, unlock_under_retention, "200", _REFUSED),
    Case(
        *("backend", "s3:DeleteObjectVersion", LOCKS, unlock, _CLEAN),
        "200, 1 versions and 1 markers of the lock stay",
    ),
    Case("backend", "s3:GetObject", PROBES, write_probe, "200", _REFUSED),
    Case("backend", "s3:PutObject", PROBES, write_probe, "200", _REFUSED),
    Case("backend", "s3:DeleteObject", PROBES, delete_probe, "200", _REFUSED),
    Case(
        *("backend", "s3:DeleteObjectVersion", PROBES, unlock_probe, _CLEAN),
        "200, 1 versions and 1 markers of the lock stay",
    ),
    Case(
        *("backend", "s3:GetObject", WORKSPACES, read_undeclared, f"423 {_GATEWAYS}", _REFUSED), team="whole"
    ),
    Case("cloud", "s3:GetObject", STATES, workspace, "200", _REFUSED),
    Case("cloud", "s3:GetObject", LOCKS, workspace, "200", _REFUSED),
    Case("cloud", "s3:PutObject", STATES, commit, _COMMITTED, _REFUSED_TO_COMMIT),
    Case("cloud", "s3:PutObject", LOCKS, lock_workspace, "200", _REFUSED),
    Case("cloud", "s3:DeleteObject", STATES, delete_workspace, "204", _REFUSED),
    Case("cloud", "s3:DeleteObject", LOCKS, unlock_workspace_under_retention, "200", _REFUSED),
    Case("cloud", "s3:GetObjectVersion", STATES, download, "200", _REFUSED),
    Case(
        *("cloud", "s3:DeleteObjectVersion", LOCKS, unlock_workspace, _CLEAN),
        "200, 1 versions and 1 markers of the lock stay",
    ),
    Case("cloud", "s3:GetObject", WORKSPACES, workspace, "200", _REFUSED),
    Case("cloud", "s3:PutObject", WORKSPACES, create_workspace, "201", _REFUSED),
    Case("cloud", "s3:DeleteObject", WORKSPACES, delete_workspace, "204", _REFUSED),
    Case("cloud", "s3:GetObject", UPLOADS, commit, _COMMITTED, _REFUSED_TO_COMMIT),
    Case("cloud", "s3:PutObject", UPLOADS, upload, "200", "403"),
    Case("cloud", "s3:PutObject", UPLOADED_JSON, upload_json, "200", "403"),
    Case("cloud", "s3:DeleteObject", UPLOADS, commit, _COMMITTED, _ONE_STAYS),
    Case("cloud", "s3:DeleteObject", UPLOADED_JSON, commit, _COMMITTED, _ONE_STAYS),
    Case("cloud", "s3:ListBucket", "bucket", list_workspaces, "200", _REFUSED),
    Case("cloud", "s3:ListBucketVersions", "bucket", delete_workspace, "204", _REFUSED),
    Case("management", "s3:GetObject", STATES, managed("states/{state}"), "200", _REFUSED),
    Case("management", "s3:GetObject", LOCKS, managed("locks/{state}"), "200", _REFUSED),
    Case("management", "s3:PutObject", STATES, restore, "200", _REFUSED),
    Case("management", "s3:PutObject", LOCKS, freeze, "200", _REFUSED),
    Case("management", "s3:DeleteObject", STATES, delete_by_operator, "200", _REFUSED),
    Case("management", "s3:DeleteObject", LOCKS, unfreeze_under_retention, "200", _REFUSED),
    Case("management", "s3:GetObjectVersion", STATES, read_version, "200", _REFUSED),
    Case(
        *("management", "s3:DeleteObjectVersion", LOCKS, unfreeze, _CLEAN),
        "200, 1 versions and 1 markers of the lock stay",
    ),
    Case("management", "s3:GetObject", WORKSPACES, managed("states/{state}"), "200", _REFUSED),
    Case("management", "s3:PutObject", WORKSPACES, declare, "200", _REFUSED),
    Case("management", "s3:ListBucket", "bucket", managed("states"), "200", _REFUSED),
    Case("management", "s3:ListBucketVersions", "bucket", managed("versions/{state}"), "200", _REFUSED),
    Case("management", "logs:FilterLogEvents", "audit", managed("activity"), "200", _REFUSED),
    Case("authorizer", "s3:GetObject", TOKENS, sign_in, "204", _FAULT),
    Case("authorizer", "s3:GetObject", SESSIONS, sign_in_with_session, "204", _FAULT),
    Case("authorizer", "s3:GetObject", TRUST, sign_in_with_session, "204", _FAULT),
    Case("sessions", "s3:GetObject", TRUST, make_session, "200", _REFUSED),
    Case("sessions", "s3:PutObject", SESSIONS, make_session, "200", _REFUSED),
    Case("audit_trail", "logs:CreateLogStream", "audit", audited_in_a_new_stream, _EVENT, _NO_EVENT),
    Case("audit_trail", "logs:PutLogEvents", "audit", audited, _EVENT, _NO_EVENT),
)

_NOT_ENFORCED: Final = frozenset(
    {"kms:Decrypt", "kms:GenerateDataKey", "s3:PutObjectTagging", "s3:PutObjectRetention", "s3:ListBucket"}
)
"""By the local AWS; of `s3:ListBucket` it enforces what lists, and not the 404 for a missing key."""


def _arn(role: DeployedRole, on: str) -> str:
    bucket = f"arn:aws:s3:::{role.reach.bucket}"
    match on:
        case "bucket":
            return bucket
        case "audit":
            return role.reach.audit_group_arn
        case staged if staged in STAGED:
            return f"arn:aws:s3:::{role.reach.staging_bucket}/{staged}"
        case _:
            return f"{bucket}/{on}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_a_permission_its_request_breaks_and_with_it_works(
    teams: dict[str, Team], roles: Roles, state: str, case: Case
) -> None:
    team, role = teams[case.team], roles[case.team, case.function]
    request = case.request(team, state)

    with role.lacking(case.action, _arn(role, case.on)):
        without_it = request()

    assert without_it == case.breaks
    assert case.request(team, f"{state}-again")() == case.works


@pytest.mark.parametrize("team", TEAMS)
def test_there_is_a_case_for_every_permission_that_is_enforced(roles: Roles, team: str) -> None:
    for role in [roles[team, function] for function in FUNCTIONS]:
        cases = {
            (case.action, _arn(role, case.on))
            for case in CASES
            if case.function == role.function and case.team in ("strict", team)
        }
        not_enforced = {
            (action, arn)
            for action, arn in set(allowed(role.statements)) - cases
            if action in _NOT_ENFORCED or arn == role.reach.log_group_arn
        }
        assert cases | not_enforced == set(allowed(role.statements))
