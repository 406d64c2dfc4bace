"""The function behind `cloud {}`, event in and answer out, on a real S3 server."""

import base64
import gzip
import hashlib
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, cast

import pytest
import urllib3

from holdfast.access import Caller, Role
from holdfast.cloud import workspaces
from holdfast.cloud.ids import OutputId, UploadId, VersionId, WorkspaceId
from holdfast.names import parse
from tests.contract.conftest import Bucket, Server, function_environment
from tests.support.access_calls import CALLS, CLOUD
from tests.support.documents import ADA, BOB, LINEAGE, OPERATOR, encrypted_state, state
from tests.support.events import DOMAIN, Context, cloud_request

BUCKET = "holdfast-cloud"
STAGING = "holdfast-cloud-staging"
READER = Caller("token:reader", Role.READER, ("*",))
ONLY_OUTPUTS = Caller("token:outputs", Role.OUTPUTS, ("*",))
STATE_KEY = "states/network/prod.tfstate"
ORGANIZATION = "organizations/network"
BY_NAME = "organizations/network/workspaces/prod"

Answer = dict[str, Any]
Handle = Callable[[dict[str, Any], Context], Answer]


@pytest.fixture(scope="module")
def function(moto: Server) -> Iterator[Handle]:
    """The function as Lambda starts it: from its environment."""
    moto.direct.create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True)
    Bucket(BUCKET, moto).encrypt_with_kms()
    moto.direct.create_bucket(Bucket=STAGING)
    with function_environment(
        HOLDFAST_BUCKET=BUCKET,
        HOLDFAST_STAGING_BUCKET=STAGING,
        HOLDFAST_MAX_STATE_MB="7",
        HOLDFAST_PRESIGN_ENDPOINT=moto.direct.meta.endpoint_url,
        AWS_ENDPOINT_URL_S3=moto.proxy.endpoint,
    ):
        yield cast("Handle", import_module("cloud.handler").handle)


@pytest.fixture
def cloud(function: Handle, moto: Server) -> Iterator[Handle]:
    yield function
    assert moto.proxy.end_rules() == 0
    for bucket in (BUCKET, STAGING):
        for key in keys(moto, bucket):
            moto.direct.delete_object(Bucket=bucket, Key=key)


def keys(moto: Server, bucket: str = BUCKET) -> list[str]:
    return [found["Key"] for found in moto.direct.list_objects_v2(Bucket=bucket).get("Contents", [])]


def ask(
    cloud: Handle, method: str, path: str, caller: Caller = ADA, data: object = None, **more: Any
) -> Answer:
    body = None if data is None else json.dumps({"data": data})
    return cloud(cloud_request(method, path, caller=caller, body=body, **more), Context())


def data(answer: Answer, status: int = 200) -> Any:
    assert answer["statusCode"] == status, answer
    assert answer["headers"]["Content-Type"] == "application/vnd.api+json"
    body = base64.b64decode(answer["body"]) if answer.get("isBase64Encoded") else answer["body"]
    return json.loads(body)["data"]


def error(answer: Answer) -> tuple[int, str]:
    (found,) = json.loads(answer["body"])["errors"]
    assert found["status"] == str(answer["statusCode"])
    assert found["title"]
    assert found["detail"]
    return answer["statusCode"], found["code"]


def created(cloud: Handle, caller: Caller = ADA, *, name: str = "prod") -> str:
    """Create a workspace and return its ID."""
    document = {"type": "workspaces", "attributes": {"name": name}}
    return str(data(ask(cloud, "POST", f"{ORGANIZATION}/workspaces", caller, document), 201)["id"])


def opened(cloud: Handle, caller: Caller = ADA) -> str:
    """Read the workspace by name, as every command does, and return its ID."""
    return str(data(ask(cloud, "GET", BY_NAME, caller))["id"])


def announced(body: bytes, serial: object = 1, **more: object) -> dict[str, Any]:
    """What a client says of a state before it uploads it."""
    md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
    attributes = {"serial": serial, "md5": md5, "lineage": LINEAGE, **more}
    return {"type": "state-versions", "attributes": attributes}


def create(cloud: Handle, workspace: str, version: object) -> Answer:
    return ask(cloud, "POST", f"workspaces/{workspace}/state-versions", ADA, version)


def upload(cloud: Handle, workspace: str, body: bytes, serial: int = 1, **more: object) -> dict[str, Any]:
    """Create an upload."""
    found: dict[str, Any] = data(create(cloud, workspace, announced(body, serial, **more)), 201)
    return found


def put(address: str, body: bytes) -> None:
    """Upload, as the clients do."""
    kind = {"Content-Type": "application/octet-stream"}
    assert urllib3.request("PUT", address, body=body, headers=kind).status == 200


def commit(cloud: Handle, upload_id: str, caller: Caller = ADA) -> Answer:
    return ask(cloud, "GET", f"state-versions/{upload_id}", caller)


def download(cloud: Handle, version: dict[str, Any], caller: Caller = ADA, **more: Any) -> Answer:
    """Follow the address of a version, which is on the API's own host."""
    path = f"state-versions/{version['id']}/download"
    assert version["attributes"]["hosted-state-download-url"] == f"https://{DOMAIN}/api/v2/{path}"
    return ask(cloud, "GET", path, caller, **more)


def locked(cloud: Handle) -> str:
    """Create the workspace, acquire its lock and return its ID."""
    workspace = created(cloud)
    assert ask(cloud, "POST", f"workspaces/{workspace}/actions/lock")["statusCode"] == 200
    return workspace


def versions(moto: Server, after: int = 0) -> int:
    """How many versions the state has got since there were so many; delete markers count, too."""
    return len([key for key, _ in Bucket(BUCKET, moto).history(STATE_KEY) if key == STATE_KEY]) - after


def write(cloud: Handle, workspace: str, body: bytes, serial: int = 1) -> None:
    """Upload and commit."""
    version = upload(cloud, workspace, body, serial)
    put(version["attributes"]["hosted-state-upload-url"], body)
    assert commit(cloud, version["id"])["statusCode"] == 200


def is_now(time: str) -> bool:
    """Return whether a time is now, in the one form that go-tfe reads."""
    moment = datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return abs(datetime.now(UTC) - moment) < timedelta(minutes=5)


@pytest.fixture
def before(cloud: Handle, moto: Server) -> int:  # noqa: ARG001 the bucket is there
    """How many versions the state has got in earlier tests."""
    return versions(moto)


def test_the_life_of_a_state(cloud: Handle, moto: Server) -> None:
    assert error(ask(cloud, "GET", BY_NAME)) == (404, "no_workspace")
    workspace = created(cloud)
    assert error(ask(cloud, "GET", f"workspaces/{workspace}/current-state-version")) == (404, "no_state")
    assert data(ask(cloud, "GET", f"workspaces/{workspace}/current-state-version-outputs")) == []
    assert data(ask(cloud, "POST", f"workspaces/{workspace}/actions/lock"))["attributes"]["locked"]
    body = state(1)
    version = upload(cloud, workspace, body)
    put(version["attributes"]["hosted-state-upload-url"], body)
    put(version["attributes"]["hosted-json-state-upload-url"], b"{}")
    assert data(commit(cloud, version["id"]))["id"] == version["id"]
    assert keys(moto, STAGING) == []
    assert data(ask(cloud, "POST", f"workspaces/{workspace}/actions/unlock"))["attributes"]["locked"] is False
    current = data(ask(cloud, "GET", f"workspaces/{opened(cloud)}/current-state-version"))
    assert current["attributes"]["serial"] == 1
    assert is_now(current["attributes"]["created-at"])
    assert data(ask(cloud, "GET", f"state-versions/{current['id']}")) == current
    read = download(cloud, current)
    assert (read["statusCode"], read["body"].encode()) == (200, body)
    assert keys(moto) == ["states/network/prod.tfstate", "workspaces/network/prod.json"]


def test_the_service_describes_itself_to_clients_of_every_version(cloud: Handle) -> None:
    ping = ask(cloud, "GET", "ping")
    assert (ping["statusCode"], ping["body"]) == (204, "")
    assert ping["headers"]["TFP-API-Version"] == "2.5"
    assert ping["headers"]["TFP-AppName"] == "HCP Terraform"
    entitlements = data(ask(cloud, "GET", f"{ORGANIZATION}/entitlement-set"))
    assert (entitlements["type"], entitlements["attributes"]["operations"]) == ("entitlement-sets", False)
    assert data(ask(cloud, "GET", f"{ORGANIZATION}/projects")) == []
    assert data(ask(cloud, "GET", "account/details"))["attributes"] == {"username": "token:ada"}


def test_every_document_says_how_often_an_apply_saves_also_an_error(cloud: Handle) -> None:
    path = f"workspaces/{created(cloud)}"
    for answer in (ask(cloud, "GET", path), ask(cloud, "GET", f"{path}/current-state-version")):
        assert answer["headers"]["X-Terraform-Snapshot-Interval"] == "20"


@pytest.mark.parametrize("role", Role)
def test_a_workspace_says_what_its_reader_may_do(cloud: Handle, role: Role) -> None:
    created(cloud)
    found = data(ask(cloud, "GET", BY_NAME, Caller("token:x", role, ("network/*",))))["attributes"]
    permissions = found.pop("permissions")
    assert is_now(found.pop("created-at"))
    assert found == {
        "name": "prod",
        "execution-mode": "local",
        "operations": False,
        "locked": False,
        "terraform-version": "latest",
        "tag-names": [],
    }
    writer = {"can-update", "can-lock", "can-unlock"} if role in (Role.WRITER, Role.MAINTAINER) else set()
    maintainer = {"can-force-unlock", "can-destroy", "can-force-delete"} if role is Role.MAINTAINER else set()
    granted = {name for name, may in permissions.items() if may}
    assert granted == {"can-read-settings", *writer, *maintainer}
    assert isinstance(permissions["can-force-delete"], bool), "clients delete without looking"


def tag(name: str) -> dict[str, Any]:
    return {"type": "tags", "attributes": {"name": name}}


def binding(key: str, value: str | None = None) -> dict[str, Any]:
    attributes = {"key": key} if value is None else {"key": key, "value": value}
    return {"type": "tag-bindings", "attributes": attributes}


def test_tags_come_as_list_and_as_map_and_filter_the_workspaces(cloud: Handle) -> None:
    for name, relations in {
        "prod": {"tag-bindings": {"data": [binding("env", "prod"), binding("app")]}},
        "eu:dev": {"tags": {"data": [tag("app")]}, "tag-bindings": None},
    }.items():
        document = {"type": "workspaces", "attributes": {"name": name}, "relationships": relations}
        data(ask(cloud, "POST", f"{ORGANIZATION}/workspaces", ADA, document), 201)
    workspace = opened(cloud)
    bindings, tags = f"workspaces/{workspace}/tag-bindings", f"workspaces/{workspace}/relationships/tags"
    assert ask(cloud, "POST", tags, ADA, [tag("env"), tag("x")])["statusCode"] == 204  # env keeps its value
    changed = data(ask(cloud, "PATCH", bindings, ADA, [binding("team", "a")]))
    assert changed == data(ask(cloud, "GET", bindings))
    assert {one["attributes"]["key"]: one["attributes"]["value"] for one in changed} == {
        "app": "",
        "env": "prod",
        "team": "a",
        "x": "",
    }
    assert ask(cloud, "DELETE", tags, ADA, [tag("x"), tag("team")])["statusCode"] == 204
    assert data(ask(cloud, "GET", BY_NAME))["attributes"]["tag-names"] == ["app", "env"]

    def listed(**query: str) -> list[str]:
        found = data(ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query=query))
        return [one["attributes"]["name"] for one in found]

    assert listed() == ["eu:dev", "prod"]
    assert listed(**{"search[name]": "u:d"}) == ["eu:dev"]
    assert listed(**{"search[tags]": "app"}) == ["eu:dev", "prod"]
    assert listed(**{"search[tags]": "app,env"}) == ["prod"]
    assert listed(**{"filter[tagged][0][key]": "env", "filter[tagged][0][value]": "prod"}) == ["prod"]
    assert listed(**{"filter[tagged][0][key]": "env", "filter[tagged][0][value]": "dev"}) == []
    assert listed(**{"filter[project][id]": "prj-1"}) == []
    assert listed(**{"filter[current-run][status]": "applied"}) == []
    assert listed(sort="-name", include="organization") == ["prod", "eu:dev"]
    page = {"page[number]": "2", "page[size]": "1"}
    answer = ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query=page)
    assert [one["attributes"]["name"] for one in data(answer)] == ["prod"]
    assert json.loads(answer["body"])["meta"]["pagination"] == {
        "current-page": 2,
        "page-size": 1,
        "prev-page": 1,
        "next-page": None,
        "total-pages": 2,
        "total-count": 2,
    }


def test_a_list_leaves_out_whom_a_wildcard_or_an_excluded_tag_leaves_out(cloud: Handle, moto: Server) -> None:
    for name, tags in {"app-eu": ["app"], "app-us": ["app", "old"], "net-eu": ["old"], "new-eu": []}.items():
        relations = {"tags": {"data": [tag(one) for one in tags]}}
        document = {"type": "workspaces", "attributes": {"name": name}, "relationships": relations}
        data(ask(cloud, "POST", f"{ORGANIZATION}/workspaces", ADA, document), 201)
    # One that another protocol made has no tags; what the tags of the other are, nobody can tell.
    moto.direct.put_object(Bucket=BUCKET, Key="states/network/state-eu.tfstate", Body=state(1))
    moto.direct.put_object(Bucket=BUCKET, Key="workspaces/network/damaged-eu.json", Body=b"{}")

    def listed(**query: str) -> list[str]:
        query = {f"search[{name.replace('_', '-')}]": value for name, value in query.items()}
        found = data(ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query=query))
        return [one["attributes"]["name"] for one in found]

    everything = ["app-eu", "app-us", "damaged-eu", "net-eu", "new-eu", "state-eu"]
    assert listed(wildcard_name="*") == listed(wildcard_name="") == everything
    assert listed(wildcard_name="app-*") == ["app-eu", "app-us"]
    assert listed(wildcard_name="*-us") == ["app-us"]
    assert listed(wildcard_name="*p-*") == ["app-eu", "app-us"]
    assert listed(wildcard_name="n*-*u") == ["net-eu", "new-eu"]
    for none in ("app", "APP-*", "ne?-eu", "[n]*", "*" + "a*" * 2000):
        assert listed(wildcard_name=none) == [], none
    assert listed(exclude_tags="old") == ["app-eu", "new-eu", "state-eu"]
    assert listed(exclude_tags="app, old") == ["new-eu", "state-eu"]
    assert listed(exclude_tags="old", tags="app", wildcard_name="*-eu", name="app") == ["app-eu"]


def test_a_parameter_that_a_call_would_ignore_is_refused_by_its_name(cloud: Handle) -> None:
    calls = {(call.method, call.route.removeprefix(CLOUD)) for call in CALLS if call.route.startswith(CLOUD)}
    for method, path in sorted(calls):
        for name in ("filter[status]", "search[names]", "filter[tagged][0][kay]", "page", "x" * 300):
            refused = ask(cloud, method, path, query={name: "a"})
            assert error(refused) == (400, "invalid_document"), (path, name)
            (found,) = json.loads(refused["body"])["errors"]
            assert found["source"] == {"parameter": name[:200]}
            assert name[:60] in found["detail"]
    query = {"filter[names]": "a", "page[number]": "1"}
    assert data(ask(cloud, "GET", f"{ORGANIZATION}/projects", query=query)) == []


def test_a_create_that_is_repeated_finds_its_own_workspace_and_nobody_elses(cloud: Handle) -> None:
    for _ in range(2):
        created(cloud)
    with_tags = {**WORKSPACE, "relationships": {"tags": {"data": [tag("app")]}}}
    for caller, document in ((BOB, WORKSPACE), (ADA, with_tags)):
        refused = ask(cloud, "POST", f"{ORGANIZATION}/workspaces", caller, document)
        assert error(refused) == (409, "workspace_exists")


def test_tags_make_no_workspace_of_an_id_whose_workspace_is_gone(cloud: Handle, moto: Server) -> None:
    for method, path in (("PATCH", "tag-bindings"), ("DELETE", "relationships/tags")):
        assert error(ask(cloud, method, f"workspaces/{WS}/{path}", ADA, []))[0] == 409
    assert keys(moto) == []


def test_a_change_of_a_workspace_that_would_not_be_kept_is_refused_by_its_name(cloud: Handle) -> None:
    path = f"workspaces/{created(cloud)}"
    # What clients send, and what is so already.
    same = {"terraform-version": "1.15.5", "name": "prod", "execution-mode": "local", "vcs-repo": None}
    for kept in ({"attributes": same}, {"relationships": {"project": {"data": None}, "tags": {"data": []}}}):
        found = data(ask(cloud, "PATCH", path, ADA, {"type": "workspaces", **kept}))
        assert found["attributes"]["terraform-version"] == "latest"
    unchanged = data(ask(cloud, "GET", BY_NAME))
    data(
        ask(
            cloud,
            "PATCH",
            path,
            ADA,
            {name: unchanged[name] for name in ("type", "attributes", "relationships")},
        )
    )
    for name, value in {
        "name": "other",
        "execution-mode": "remote",
        "description": "",
        "locked": True,
    }.items():
        refused = ask(cloud, "PATCH", path, ADA, {"type": "workspaces", "attributes": {**same, name: value}})
        assert error(refused) == (400, "invalid_document")
        assert "renamed" in refused["body"] if name == "name" else f"'{name}'" in refused["body"]
    for relation in ({"tag-bindings": {"data": [binding("a")]}}, {"project": {"data": {"id": "prj-1"}}}):
        refused = ask(cloud, "PATCH", path, ADA, {"type": "workspaces", "relationships": relation})
        assert error(refused) == (400, "invalid_document")
        assert next(iter(relation)) in refused["body"]


def test_a_workspace_names_its_organization_and_who_holds_its_lock(cloud: Handle, moto: Server) -> None:
    organization = {"organization": {"data": {"id": "network", "type": "organizations"}}}
    mine = created(cloud)
    assert data(ask(cloud, "GET", BY_NAME))["relationships"] == organization
    locked_by = {**organization, "locked-by": {"data": {"id": "token:ada", "type": "users"}}}
    assert data(ask(cloud, "POST", f"workspaces/{mine}/actions/lock"))["relationships"] == locked_by
    for path in (BY_NAME, f"workspaces/{mine}"):
        assert data(ask(cloud, "GET", path, BOB))["relationships"] == locked_by
    assert data(ask(cloud, "POST", f"workspaces/{mine}/actions/unlock"))["relationships"] == organization
    # Another program made these: nobody knows since when the workspace is, or who holds its lock.
    moto.direct.put_object(Bucket=BUCKET, Key="states/network/other.tfstate", Body=b"{}")
    moto.direct.put_object(Bucket=BUCKET, Key="states/network/other.tfstate.tflock", Body=b'{"ID": "x"}')
    other = data(ask(cloud, "GET", f"{ORGANIZATION}/workspaces/other"))
    assert (other["attributes"]["locked"], other["relationships"]) == (True, organization)
    assert "created-at" not in other["attributes"]


@pytest.mark.parametrize("written", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-01-01"])
def test_a_record_whose_time_is_none_is_refused_as_unreadable(
    cloud: Handle, moto: Server, written: str
) -> None:
    record = json.dumps({"tags": {}, "created_by": "x", "created": written})
    moto.direct.put_object(Bucket=BUCKET, Key="workspaces/network/prod.json", Body=record)
    assert error(ask(cloud, "GET", BY_NAME)) == (409, "unreadable_record")


def test_a_held_lock_is_409_names_its_holder_and_stays(cloud: Handle) -> None:
    mine = locked(cloud)
    assert data(ask(cloud, "POST", f"workspaces/{mine}/actions/lock"))["attributes"]["locked"], "a retry"
    for caller in (ADA, BOB):  # with the same token, too
        other = f"workspaces/{opened(cloud, caller)}"
        refused = ask(cloud, "POST", f"{other}/actions/lock", caller)
        assert error(refused) == (409, "locked")
        assert "token:ada" in json.loads(refused["body"])["errors"][0]["title"]
        unlock = ask(cloud, "POST", f"{other}/actions/unlock", caller)
        assert error(unlock) == (409, "lock_not_matched")
        # Texts on which clients act: they would try again, or say that another user's run holds it.
        assert not re.search("still pending|is locked by (Run|Team|User)", unlock["body"])
        create = ask(cloud, "POST", f"{other}/state-versions", caller, announced(b"x"))
        assert error(create) == (409, "locked")
    assert data(ask(cloud, "GET", BY_NAME))["attributes"]["locked"]
    young = ask(cloud, "POST", f"workspaces/{opened(cloud)}/actions/force-unlock", OPERATOR)
    assert error(young) == (409, "lock_not_matched")
    for _ in range(2):
        assert ask(cloud, "POST", f"workspaces/{mine}/actions/unlock")["statusCode"] == 200


def test_a_safe_delete_says_what_clients_look_for(cloud: Handle, moto: Server) -> None:
    by_name = f"{ORGANIZATION}/workspaces/safe"
    mine = created(cloud, name="safe")
    ask(cloud, "POST", f"workspaces/{mine}/actions/lock")
    document = {**json.loads(state(1)), "resources": [{"mode": "managed"}]}
    write(cloud, mine, json.dumps(document).encode())
    for path in (f"workspaces/{mine}", by_name):
        refused = ask(cloud, "POST", f"{path}/actions/safe-delete", OPERATOR)
        assert error(refused) == (409, "resources_tracked")
        assert not re.search("locked|being processed", refused["body"])
    write(cloud, mine, state(2), serial=2)
    refused = ask(cloud, "POST", f"{by_name}/actions/safe-delete", OPERATOR)
    assert error(refused) == (409, "locked")
    assert "locked" in json.loads(refused["body"])["errors"][0]["title"]
    ask(cloud, "POST", f"workspaces/{mine}/actions/unlock")
    assert ask(cloud, "POST", f"{by_name}/actions/safe-delete", OPERATOR)["statusCode"] == 204
    assert error(ask(cloud, "GET", by_name)) == (404, "no_workspace")
    assert keys(moto) == []


def test_a_workspace_without_a_state_is_not_deleted_while_its_first_is_on_the_way(cloud: Handle) -> None:
    mine = locked(cloud)
    for method, path in (("DELETE", BY_NAME), ("POST", f"workspaces/{mine}/actions/safe-delete")):
        assert error(ask(cloud, method, path, OPERATOR)) == (409, "locked")
    assert ask(cloud, "GET", BY_NAME)["statusCode"] == 200


def save(cloud: Handle, workspace: str) -> None:
    """Write the first state, as an apply does."""
    ask(cloud, "POST", f"workspaces/{workspace}/actions/lock")
    write(cloud, workspace, state(1))
    ask(cloud, "POST", f"workspaces/{workspace}/actions/unlock")


def deletes(name: str, workspace: str) -> dict[str, tuple[str, str]]:
    """The requests that delete a workspace."""
    by_name = f"{ORGANIZATION}/workspaces/{name}"
    return {
        "forced": ("DELETE", by_name),
        "safe": ("POST", f"{by_name}/actions/safe-delete"),
        "by-id": ("POST", f"workspaces/{workspace}/actions/safe-delete"),
    }


@pytest.mark.parametrize("how", ["forced", "safe", "by-id"])
@pytest.mark.parametrize("had", ["a record", "a state", "both"])
def test_a_workspace_that_was_made_anew_is_not_deleted_by_a_repeat(
    cloud: Handle, moto: Server, how: str, had: str
) -> None:
    name = f"{how}-{had[-5:].strip()}"
    state_key, record_key = f"states/network/{name}.tfstate", f"workspaces/network/{name}.json"
    mine = created(cloud, name=name)
    if had != "a record":
        save(cloud, mine)
    if had == "a state":
        version = moto.direct.head_object(Bucket=BUCKET, Key=record_key)["VersionId"]
        moto.direct.delete_object(Bucket=BUCKET, Key=record_key, VersionId=version)
    request = deletes(name, mine)[how]
    for _ in range(2):
        assert ask(cloud, *request, OPERATOR)["statusCode"] == 204
    assert keys(moto) == []
    anew = created(cloud, name=name)
    for there in ([record_key], [state_key, record_key]):
        refused = ask(cloud, *request, OPERATOR)
        assert error(refused) == (409, "just_deleted")
        # By these words the client of a safe-delete says to try again later; it looks for "locked" first.
        assert "being processed" in refused["body"]
        assert "locked" not in refused["body"]
        assert keys(moto) == there
        if there == [record_key]:
            save(cloud, anew)


@pytest.mark.parametrize("how", ["forced", "safe", "by-id"])
def test_a_repeat_deletes_the_record_that_a_delete_has_left(cloud: Handle, moto: Server, how: str) -> None:
    mine = created(cloud, name=f"left-{how}")
    save(cloud, mine)
    time.sleep(1.1)  # within a second, the record may have been created after the delete
    moto.direct.delete_object(Bucket=BUCKET, Key=f"states/network/left-{how}.tfstate")
    assert ask(cloud, *deletes(f"left-{how}", mine)[how], OPERATOR)["statusCode"] == 204
    assert keys(moto) == []


def test_an_id_of_before_a_delete_does_not_delete_what_was_made_since(
    cloud: Handle, moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "JUST_DELETED", timedelta(0))
    before = created(cloud, name="dated")
    assert ask(cloud, "DELETE", f"{ORGANIZATION}/workspaces/dated", OPERATOR)["statusCode"] == 204
    time.sleep(1.1)  # times have whole seconds
    since = created(cloud, name="dated")
    for workspace, status in ((before, 409), (since, 204)):
        answer = ask(cloud, *deletes("dated", workspace)["by-id"], OPERATOR)
        assert answer["statusCode"] == status, answer
    assert keys(moto) == []


OUTPUTS = """{
  "plain": {"value": {"a": 12345678901234567890, "b": "\\u00e4"}, "type": ["object", {"a": "number"}]},
  "hidden": {"value": "secret", "type": "string", "sensitive": true},
  "flags": {"value": [true], "type": [ "tuple", ["bool"]]}, "flag": {"value": 1, "type": "odd"}
}"""


def test_outputs_come_from_the_state_sensitive_ones_one_by_one(cloud: Handle, log: list[str]) -> None:
    mine = locked(cloud)
    write(
        cloud, mine, f'{{"version": 4, "serial": 1, "lineage": "{LINEAGE}", "outputs": {OUTPUTS}}}'.encode()
    )
    for caller in (ONLY_OUTPUTS, READER):
        path = f"workspaces/{opened(cloud, caller)}/current-state-version-outputs"
        found = {one["attributes"]["name"]: one for one in data(ask(cloud, "GET", path, caller))}
        assert {name: one["attributes"] for name, one in found.items()} == {
            "plain": {
                "name": "plain",
                "sensitive": False,
                "value": {"a": 12345678901234567890, "b": "\u00e4"},
                "detailed-type": ["object", {"a": "number"}],
                "type": "object",
            },
            "hidden": {
                "name": "hidden",
                "sensitive": True,
                "value": None,
                "detailed-type": "string",
                "type": "string",
            },
            "flags": {
                "name": "flags",
                "sensitive": False,
                "value": [True],
                "detailed-type": ["tuple", ["bool"]],
                "type": "array",
            },
            "flag": {"name": "flag", "sensitive": False, "value": 1, "detailed-type": "odd"},
        }
        hidden = data(ask(cloud, "GET", f"state-version-outputs/{found['hidden']['id']}", caller))
        assert hidden["attributes"]["value"] == "secret"
    whole = ask(cloud, "GET", f"workspaces/{mine}/current-state-version", ONLY_OUTPUTS)
    assert error(whole) == (403, "not_allowed")
    assert "secret" not in "".join(log)


def test_of_an_encrypted_state_one_output_without_a_type_has_the_client_read_it(
    cloud: Handle, moto: Server
) -> None:
    mine = locked(cloud)
    body = encrypted_state(1, "c2VjcmV0")
    plain = b'{"hidden": "secret"}'
    more = {"lineage": json.loads(body)["lineage"], "json-state-outputs": base64.b64encode(plain).decode()}
    version = upload(cloud, mine, body, **more)
    put(version["attributes"]["hosted-state-upload-url"], body)
    put(version["attributes"]["hosted-json-state-upload-url"], plain)
    data(commit(cloud, version["id"]))
    (only,) = data(ask(cloud, "GET", f"workspaces/{mine}/current-state-version-outputs"))
    assert not {"detailed-type", "type"} & only["attributes"].keys()
    assert error(ask(cloud, "GET", f"state-version-outputs/{only['id']}")) == (409, "no_version")
    stored = [moto.direct.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys(moto)]
    assert body in stored
    assert not any(b"hidden" in one or b"aGlkZGVu" in one for one in stored)
    assert keys(moto, STAGING) == []


@pytest.mark.parametrize("is_large", [False, True])
def test_a_state_is_downloaded_compressed_or_by_a_redirect_to_that_very_version(
    cloud: Handle, log: list[str], is_large: bool
) -> None:
    mine = locked(cloud)
    body = state(1, content="x" * (6_500_000 if is_large else 5_000))
    write(cloud, mine, body)
    current = data(ask(cloud, "GET", f"workspaces/{mine}/current-state-version"))
    write(cloud, mine, state(2), serial=2)
    found = download(cloud, current, READER, headers={"accept-encoding": "gzip"})
    if is_large:
        assert (found["statusCode"], found["body"]) == (307, "")
        assert "X-Amz-Expires=60" in found["headers"]["Location"]
        assert urllib3.request("GET", found["headers"]["Location"]).data == body
    else:
        assert found["headers"]["Content-Encoding"] == "gzip"
        assert gzip.decompress(base64.b64decode(found["body"])) == body
    assert json.loads(log[-1])["message"] == "state.read"
    assert "X-Amz-" not in "".join(log)


def test_an_address_is_on_the_api_and_not_where_a_header_says_that_it_is(cloud: Handle) -> None:
    mine = locked(cloud)
    write(cloud, mine, state(1))
    other = dict.fromkeys(("host", "x-forwarded-host", "x-amzn-remapped-host"), "elsewhere.example")
    found = {**other, "forwarded": "host=elsewhere.example", "x-forwarded-proto": "http"}
    current = ask(cloud, "GET", f"workspaces/{mine}/current-state-version", headers=found)
    version = data(current)
    again = ask(cloud, "GET", f"state-versions/{version['id']}", headers=found)
    for answer in (current, again):
        assert "elsewhere" not in answer["body"]
        assert download(cloud, data(answer))["body"].encode() == state(1)


# Uploads that do not come as announced. Nothing of it is written.


def test_an_upload_that_never_comes_is_refused(cloud: Handle, moto: Server, before: int) -> None:
    version = upload(cloud, locked(cloud), state(1))
    refused = commit(cloud, version["id"])
    assert error(refused) == (409, "upload_missing")
    assert "terraform force-unlock network/prod" in refused["body"]
    assert versions(moto, before) == 0


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        (state(1)[:-5], (409, "upload_altered")),
        (state(1) + b" ", (409, "upload_altered")),
        (state(1, content="other"), (409, "upload_altered")),
        (b"", (409, "upload_altered")),
        (b"x" * 7_000_001, (413, "too_large")),
    ],
    ids=["shorter", "longer", "other", "empty", "too large"],
)
def test_an_upload_that_is_not_what_was_announced_is_refused(
    cloud: Handle, moto: Server, before: int, sent: bytes, refusal: tuple[int, str]
) -> None:
    version = upload(cloud, locked(cloud), state(1))
    put(version["attributes"]["hosted-state-upload-url"], sent)
    assert error(commit(cloud, version["id"])) == refusal
    assert versions(moto, before) == 0


@pytest.mark.parametrize(
    ("body", "announcement", "refusal"),
    [
        (state(1), {"serial": 2}, (409, "upload_altered")),
        (state(1), {"lineage": "other"}, (409, "upload_altered")),
        (b"[]", {}, (400, "invalid_state")),
    ],
)
def test_the_upload_is_a_state_of_the_announced_revision(
    cloud: Handle,
    moto: Server,
    before: int,
    body: bytes,
    announcement: dict[str, Any],
    refusal: tuple[int, str],
) -> None:
    version = data(create(cloud, locked(cloud), announced(body, **announcement)), 201)
    put(version["attributes"]["hosted-state-upload-url"], body)
    assert error(commit(cloud, version["id"])) == refusal
    assert versions(moto, before) == 0


def test_a_repeated_commit_writes_once_with_and_without_the_upload(
    cloud: Handle, moto: Server, before: int
) -> None:
    mine, body = locked(cloud), state(1)
    version = upload(cloud, mine, body)
    for _ in range(2):
        put(version["attributes"]["hosted-state-upload-url"], body)
        for _ in range(2):
            assert data(commit(cloud, version["id"]))["id"] == version["id"]
    assert versions(moto, before) == 1
    assert error(commit(cloud, version["id"], BOB)) == (409, "locked")
    ask(cloud, "POST", f"workspaces/{mine}/actions/unlock")
    assert error(commit(cloud, version["id"])) == (409, "lock_lost")


def test_somebody_else_does_not_commit_what_was_uploaded(cloud: Handle, moto: Server, before: int) -> None:
    version = upload(cloud, locked(cloud), state(1))
    put(version["attributes"]["hosted-state-upload-url"], state(1))
    assert error(commit(cloud, version["id"], READER)) == (403, "not_allowed")
    assert error(commit(cloud, version["id"], BOB)) == (409, "locked")
    assert versions(moto, before) == 0


def test_who_holds_the_lock_does_not_commit_what_another_principal_has_uploaded(
    cloud: Handle, moto: Server, before: int
) -> None:
    mine = locked(cloud)
    version = upload(cloud, mine, state(1))
    put(version["attributes"]["hosted-state-upload-url"], state(1))
    ask(cloud, "POST", f"workspaces/{mine}/actions/unlock")
    others = opened(cloud, BOB)
    ask(cloud, "POST", f"workspaces/{others}/actions/lock", BOB)
    path = f"workspaces/{others}/state-versions"
    own = UploadId.parse(data(ask(cloud, "POST", path, BOB, announced(state(1))), 201)["id"])
    with_its_key = replace(own, key=UploadId.parse(version["id"]).key)
    assert error(commit(cloud, str(with_its_key), BOB)) == (409, "upload_missing")
    assert versions(moto, before) == 0


def test_a_commit_after_its_lock_was_lost_writes_nothing_even_under_the_same_id(
    cloud: Handle, moto: Server, before: int
) -> None:
    mine = locked(cloud)
    version = upload(cloud, mine, state(1))
    put(version["attributes"]["hosted-state-upload-url"], state(1))
    for action in ("unlock", "lock"):  # the acquire arrives once more
        assert ask(cloud, "POST", f"workspaces/{mine}/actions/{action}")["statusCode"] == 200
        assert error(commit(cloud, version["id"])) == (409, "lock_lost")
    assert versions(moto, before) == 0


@pytest.mark.parametrize("force", [False, True])
def test_a_commit_on_another_base_is_refused_with_force_too(
    cloud: Handle, moto: Server, before: int, force: bool
) -> None:
    mine = locked(cloud)
    version = upload(cloud, mine, state(2), serial=2, force=force)
    put(version["attributes"]["hosted-state-upload-url"], state(2))
    write(cloud, mine, state(1))
    assert error(commit(cloud, version["id"])) == (409, "base_changed")
    assert versions(moto, before) == 1


def test_a_version_that_was_never_acknowledged_does_not_stop_the_holder(cloud: Handle, moto: Server) -> None:
    mine = locked(cloud)
    held = moto.direct.head_object(Bucket=BUCKET, Key=f"{STATE_KEY}.tflock")["LastModified"]
    version = upload(cloud, mine, state(1))
    put(version["attributes"]["hosted-state-upload-url"], state(1))
    late = {"sha256": "0" * 64, "serial": "7", "lineage": LINEAGE, "lock-id": "broken"}
    written = held
    while written <= held:  # times have whole seconds
        moto.direct.put_object(Bucket=BUCKET, Key=STATE_KEY, Body=state(7), Metadata=late)
        written = moto.direct.head_object(Bucket=BUCKET, Key=STATE_KEY)["LastModified"]
    data(commit(cloud, version["id"]))
    current = data(ask(cloud, "GET", f"workspaces/{mine}/current-state-version"))
    assert current["attributes"]["serial"] == 1


def test_serials_and_lineages_that_do_not_follow_are_refused_at_create_unless_forced(cloud: Handle) -> None:
    mine = locked(cloud)
    write(cloud, mine, state(2), serial=2)
    for announcement, code in (
        ({"serial": 1}, "serial_not_newer"),
        ({"serial": 2, "lineage": ""}, "serial_not_newer"),
        ({"serial": 3, "lineage": "other"}, "lineage_changed"),
    ):
        assert error(create(cloud, mine, announced(b"x", **announcement))) == (409, code)
        data(create(cloud, mine, announced(b"x", **announcement, force=True)), 201)


def test_what_was_saved_under_a_lock_may_be_announced_under_it_once_more(
    cloud: Handle, moto: Server, before: int
) -> None:
    mine, body = locked(cloud), state(1)
    write(cloud, mine, body)
    write(cloud, mine, body)  # as an interrupted first apply does
    other = upload(cloud, mine, state(1, content="other"))
    put(other["attributes"]["hosted-state-upload-url"], state(1, content="other"))
    assert error(commit(cloud, other["id"])) == (409, "serial_not_newer")
    lineage = create(cloud, mine, announced(body, lineage="other"))
    assert error(lineage) == (409, "lineage_changed")
    ask(cloud, "POST", f"workspaces/{mine}/actions/unlock")
    next_holder = opened(cloud)
    ask(cloud, "POST", f"workspaces/{next_holder}/actions/lock")
    assert error(create(cloud, next_holder, announced(body))) == (409, "serial_not_newer")
    assert versions(moto, before) == 1


def test_the_upload_in_one_step_of_older_clients_writes_the_same(
    cloud: Handle, moto: Server, before: int
) -> None:
    mine, body = locked(cloud), state(1)
    whole = {"state": base64.b64encode(body).decode(), "json-state": "!", "json-state-outputs": "!"}
    for _ in range(2):  # a retry
        data(create(cloud, mine, announced(body, **whole)), 201)
    assert error(create(cloud, mine, announced(state(2), 2, **whole))) == (409, "upload_altered")
    large = base64.b64encode(b"x" * 7_000_001).decode()
    assert error(create(cloud, mine, announced(b"x", 2, state=large))) == (413, "too_large")
    for broken in ("!", "a", "\u00e4"):
        assert error(create(cloud, mine, announced(body, 2, state=broken))) == (400, "invalid_document")
    assert versions(moto, before) == 1


# Bad input. Nothing of it is a 5xx or changes anything.

PROD = parse("network/prod")
WORKSPACE = {"type": "workspaces", "attributes": {"name": "prod"}}
WS = str(WorkspaceId(PROD, "0" * 32, 1_700_000_000, ""))
SV = str(VersionId(PROD, "none", 7))
UPLOAD = str(UploadId(PROD, "0" * 32, "v", None, 1, "", "0" * 32, force=False, key="0" * 32))
OUT = str(OutputId(VersionId(PROD, "none", 7), "a"))


BAD_IDS = [
    *(WS[:-1], WS + "A", WS[:10], "ws-", "ws-" + "A" * 5000, "ws-\u00e4", WS.upper()),
    *(SV, UPLOAD, OUT, "prod", "ws-W10", "ws-bnVsbA", "ws-" + "W" * 2000),
]


def test_an_id_that_this_api_did_not_make_is_400(cloud: Handle, moto: Server) -> None:
    calls = (
        ("GET", "", None),
        ("POST", "/actions/lock", None),
        ("GET", "/tag-bindings", None),
        ("POST", "/state-versions", announced(b"x")),
    )
    for given in BAD_IDS:
        for method, suffix, body in calls:
            refused = ask(cloud, method, f"workspaces/{given}{suffix}", ADA, body)
            assert error(refused) == (400, "invalid_id"), given
        for prefix in ("sv-", "upload-"):
            other = prefix + given.partition("-")[2]
            if other not in (SV, UPLOAD):
                assert error(ask(cloud, "GET", f"state-versions/{other}")) == (400, "invalid_id"), other
    assert keys(moto) == []


def other_forms(minted: str) -> Iterator[str]:
    """IDs that say the same as one that was minted."""
    prefix, _, coded = minted.partition("-")
    said = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    for form in (said.replace(",", ", "), said.replace("p", "\\u0070", 1), f" {said}", f"{said} "):
        yield f"{prefix}-{base64.urlsafe_b64encode(form.encode()).decode().rstrip('=')}"
    if len(coded) % 4:
        yield minted + "=" * (-len(coded) % 4)
        yield minted[:-1] + chr(ord(minted[-1]) + 1)  # a bit that no byte has


def test_an_id_in_another_form_than_it_was_minted_is_400(cloud: Handle) -> None:
    padded = 0
    for minted, path in (
        (WS, "workspaces/{}"),
        (SV, "state-versions/{}"),
        (UPLOAD, "state-versions/{}"),
        (OUT, "state-version-outputs/{}"),
    ):
        forms = list(other_forms(minted))
        padded += len(forms) > 4
        for form in forms:
            assert error(ask(cloud, "GET", path.format(form))) == (400, "invalid_id"), form
    assert padded


BAD_NAMES = [
    *(("network", name) for name in ("..", "a%2Fb", "x" * 300, "a::b", ":", "a b", "\u00e4", "-a", "")),
    *((name, "prod") for name in ("..", "a%2Fb", "x" * 300, "a:b", "", "holdfast-doctor")),
]


def test_a_name_that_no_state_can_have_is_400(cloud: Handle, moto: Server) -> None:
    for organization, workspace in BAD_NAMES:
        path = f"organizations/{organization}/workspaces"
        document = {"type": "workspaces", "attributes": {"name": workspace}}
        for refused in (ask(cloud, "GET", f"{path}/{workspace}"), ask(cloud, "POST", path, ADA, document)):
            assert error(refused) == (400, "invalid_state_name"), (organization, workspace)
    assert keys(moto) == []


def test_a_slash_in_a_name_is_400(cloud: Handle) -> None:
    assert error(ask(cloud, "GET", f"{ORGANIZATION}/workspaces/eu/prod")) == (400, "unknown_route")
    document = {"type": "workspaces", "attributes": {"name": "eu/prod"}}
    refused = ask(cloud, "POST", f"{ORGANIZATION}/workspaces", ADA, document)
    assert error(refused) == (400, "invalid_state_name")


CREATE = ("POST", f"{ORGANIZATION}/workspaces")
CHANGE = ("PATCH", f"workspaces/{WS}")
TAGS = ("POST", f"workspaces/{WS}/relationships/tags")
BINDINGS = ("PATCH", f"workspaces/{WS}/tag-bindings")
VERSIONS = ("POST", f"workspaces/{WS}/state-versions")


def related(**relationships: object) -> dict[str, Any]:
    return {"data": {**WORKSPACE, "relationships": relationships}}


def versioned(**attributes: object) -> dict[str, Any]:
    return {"data": announced(b"x", **attributes)}


NO_DOCUMENTS: list[object] = [[], {}, {"data": 7}, None]
NO_ATTRIBUTES: list[object] = [[], None, {"name": 7}, {}]
NO_TAGS: list[object] = [7, {"data": 7}, {"data": [7]}, {"data": [binding("a")]}]
BAD_DOCUMENTS: list[tuple[tuple[str, str], object]] = [
    *((call, bad) for call in (CREATE, CHANGE, TAGS, BINDINGS, VERSIONS) for bad in NO_DOCUMENTS),
    *((call, {"data": {"type": "runs"}}) for call in (CREATE, CHANGE, VERSIONS)),
    *((CREATE, {"data": {"type": "workspaces", "attributes": bad}}) for bad in NO_ATTRIBUTES),
    *((CREATE, related(tags=bad)) for bad in NO_TAGS),
    (CREATE, related(**{"tag-bindings": {"data": [tag("a")]}})),
    (CREATE, {"data": {**WORKSPACE, "relationships": []}}),
    (VERSIONS, {"data": {"type": "state-versions", "attributes": {"lineage": "\ud800"}}}),
    *((TAGS, {"data": [tag(bad)]}) for bad in ("", "\u00e4", "x" * 129)),
    *((TAGS, {"data": [bad]}) for bad in ({"type": "tags"}, {"type": "tags", "attributes": {"name": None}})),
    *((BINDINGS, {"data": [binding("a", value)]}) for value in ("\u00e4", "x" * 257)),
    (BINDINGS, {"data": [{"type": "tag-bindings", "attributes": {"key": "a", "value": 7}}]}),
    (BINDINGS, {"data": [{"type": "tag-bindings", "attributes": {"value": "a"}}]}),
    (BINDINGS, {"data": [binding(f"a{number}") for number in range(51)]}),
    *((VERSIONS, versioned(serial=bad)) for bad in (-1, 2**64, "1", True, 1.5, None)),
    *((VERSIONS, versioned(md5=bad)) for bad in ("", "x" * 32, "0" * 31, 7, None)),
    *((VERSIONS, versioned(lineage=bad)) for bad in (7, "x" * 201, "\ud800")),
    *((VERSIONS, versioned(force=bad)) for bad in ("true", 1)),
    (VERSIONS, versioned(state=7)),
]


def test_a_document_that_is_not_what_its_call_takes_is_400(cloud: Handle, moto: Server) -> None:
    for call, document in BAD_DOCUMENTS:
        body = "{" if document is None else json.dumps(document)
        answer = cloud(cloud_request(*call, caller=OPERATOR, body=body), Context())
        assert error(answer) == (400, "invalid_document"), (call, document)
    assert keys(moto) == []


def test_ten_megabytes_of_tags_are_413(cloud: Handle, moto: Server) -> None:
    many = [tag("x" * 100_000)] * 100
    for method, path in (TAGS, BINDINGS):
        assert error(ask(cloud, method, path, ADA, many)) == (413, "too_large")
    whole = {**WORKSPACE, "relationships": {"tags": {"data": many}}}
    assert error(ask(cloud, *CREATE, ADA, whole)) == (413, "too_large")
    assert keys(moto) == []


def test_a_list_with_parameters_that_are_none_is_400(cloud: Handle) -> None:
    for query in (
        *({"page[number]": bad} for bad in ("0", "-1", "x", "1" * 30, "\u0663", "")),
        {"page[size]": "0"},
        {"filter[tagged][0][value]": "a"},
        {"sort": "current-run.created-at"},
    ):
        refused = ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query=query)
        assert error(refused) == (400, "invalid_document"), query
    refused = ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query={"search[name]": "\ud800"})
    assert error(refused) == (400, "invalid_request")


def test_what_is_no_call_is_400_with_what_there_is(cloud: Handle, log: list[str]) -> None:
    for path in ("", "runs", "ping/", f"{ORGANIZATION}/runs", "workspaces", "../ping", "x" * 300):
        refused = ask(cloud, "GET", path)
        assert error(refused) == (400, "unknown_route"), path
        assert "no runs" in refused["body"]
        assert "state" not in json.loads(log[-1])


def test_a_verb_that_a_call_does_not_have_is_405(cloud: Handle) -> None:
    refused = ask(cloud, "PUT", BY_NAME)
    assert error(refused) == (405, "method_not_allowed")
    assert refused["headers"]["Allow"] == "GET, DELETE"


def test_a_log_line_names_the_state_whether_a_name_or_an_id_was_given(cloud: Handle, log: list[str]) -> None:
    ask(cloud, "GET", BY_NAME)
    ask(cloud, "POST", f"workspaces/{WS}/actions/lock")
    ask(cloud, "POST", f"workspaces/{WS}/actions/unlock")
    ask(cloud, "GET", f"state-versions/{UPLOAD}", READER)
    ask(cloud, "GET", f"state-version-outputs/{OUT}")
    ask(cloud, "GET", "workspaces/ws-none")
    found = [json.loads(line) for line in log]
    assert [line.get("state") for line in found] == ["network/prod"] * 5 + [None]
    refused = ["request.refused"] * 3
    assert [line["message"] for line in found] == [
        *("workspace.absent", "lock.acquired", "lock.released", *refused)
    ]


def test_a_commit_of_what_another_upload_wrote_may_be_repeated(cloud: Handle) -> None:
    workspace, body = created(cloud), state(1)
    ask(cloud, "POST", f"workspaces/{workspace}/actions/lock")
    write(cloud, workspace, body)
    version = upload(cloud, workspace, body, force=True)
    put(version["attributes"]["hosted-state-upload-url"], body)
    for _ in range(2):
        assert data(commit(cloud, version["id"]))["id"] == version["id"]


def test_ids_of_versions_that_have_no_address_are_refused(cloud: Handle) -> None:
    version = VersionId(parse("network/prod"), "\ud800", 1)
    for path in (
        f"state-versions/{version}",
        f"state-versions/{version}/download",
        f"state-version-outputs/{OutputId(version, 'content')}",
    ):
        assert error(ask(cloud, "GET", path)) == (400, "invalid_id")


def test_outputs_that_no_response_carries_have_the_client_read_the_state(cloud: Handle, moto: Server) -> None:
    value = base64.b64encode(random.Random(0).randbytes(5_000_000)).decode()  # noqa: S311 gzip must fail
    document = {"version": 4, "serial": 1, "outputs": {"large": {"value": value, "type": "string"}}}
    moto.direct.put_object(Bucket=BUCKET, Key="states/network/prod.tfstate", Body=json.dumps(document))
    path = f"workspaces/{opened(cloud)}/current-state-version-outputs"
    (output,) = data(ask(cloud, "GET", path))
    assert "detailed-type" not in output["attributes"]
    refused = ask(cloud, "GET", path, ONLY_OUTPUTS)
    assert error(refused) == (413, "too_large")
    assert "terraform state pull" in refused["body"]


def test_a_list_by_tags_keeps_its_connections(
    cloud: Handle, moto: Server, caplog: pytest.LogCaptureFixture
) -> None:
    record = {"tags": {"team": "net"}, "created_by": "x", "created": "2026-01-01T00:00:00+00:00"}
    for number in range(30):
        key = f"workspaces/network/w{number}.json"
        moto.direct.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(record))
    # One that is damaged hides no other.
    moto.direct.put_object(Bucket=BUCKET, Key="workspaces/network/damaged.json", Body=b"{}")
    query = {"search[tags]": "team"}
    assert len(data(ask(cloud, "GET", "organizations/network/workspaces", query=query))) == 30
    assert "pool is full" not in caplog.text
