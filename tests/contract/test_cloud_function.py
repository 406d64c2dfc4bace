"""The function behind `cloud {}`, event in and answer out, on a real S3 server."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast

import pytest
import urllib3

from holdfast.access import Caller, Role
from tests.contract.conftest import ACCOUNT, Bucket, Server
from tests.support.documents import ADA, LINEAGE, state
from tests.support.events import Context, cloud_request

BUCKET = "holdfast-cloud"
STAGING = "holdfast-cloud-staging"
READER = Caller("token:reader", Role.READER, ("*",))
ONLY_OUTPUTS = Caller("token:outputs", Role.OUTPUTS, ("*",))
BY_NAME = "organizations/network/workspaces/prod"

Answer = dict[str, Any]
Handle = Callable[[dict[str, Any], Context], Answer]


@pytest.fixture(scope="module")
def function(moto: Server) -> Iterator[Handle]:
    """The function as Lambda starts it: from its environment."""
    moto.direct.create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True)
    Bucket(BUCKET, moto).encrypt_with_kms()
    moto.direct.create_bucket(Bucket=STAGING)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {
            "HOLDFAST_ACCOUNT": ACCOUNT,
            "HOLDFAST_BUCKET": BUCKET,
            "HOLDFAST_STAGING_BUCKET": STAGING,
            "HOLDFAST_MAX_STATE_MB": "7",
            "HOLDFAST_PRESIGN_ENDPOINT": moto.direct.meta.endpoint_url,
            "POWERTOOLS_SERVICE_NAME": "holdfast",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_S3": moto.proxy.endpoint,
        }.items():
            environment.setenv(name, value)
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


def created(cloud: Handle, caller: Caller = ADA) -> str:
    """Create the workspace and return its ID."""
    document = {"type": "workspaces", "attributes": {"name": "prod"}}
    return str(data(ask(cloud, "POST", "organizations/network/workspaces", caller, document), 201)["id"])


def opened(cloud: Handle, caller: Caller = ADA) -> str:
    """Read the workspace by name, as every command does, and return its ID."""
    return str(data(ask(cloud, "GET", BY_NAME, caller))["id"])


def announced(body: bytes, serial: int = 1, lineage: str | None = LINEAGE, **more: object) -> dict[str, Any]:
    """What a client says of a state before it uploads it."""
    md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
    attributes = {"serial": serial, "md5": md5, "lineage": lineage, **more}
    return {"type": "state-versions", "attributes": attributes}


def upload(cloud: Handle, workspace: str, body: bytes, serial: int = 1, **more: object) -> dict[str, Any]:
    """Create an upload."""
    path = f"workspaces/{workspace}/state-versions"
    found: dict[str, Any] = data(ask(cloud, "POST", path, ADA, announced(body, serial, **more)), 201)
    return found


def put(address: str, body: bytes) -> None:
    """Upload, as the clients do."""
    kind = {"Content-Type": "application/octet-stream"}
    assert urllib3.request("PUT", address, body=body, headers=kind).status == 200


def commit(cloud: Handle, upload_id: str, caller: Caller = ADA) -> Answer:
    return ask(cloud, "GET", f"state-versions/{upload_id}", caller)


def write(cloud: Handle, workspace: str, body: bytes, serial: int = 1) -> None:
    """Upload and commit."""
    version = upload(cloud, workspace, body, serial)
    put(version["attributes"]["hosted-state-upload-url"], body)
    assert commit(cloud, version["id"])["statusCode"] == 200


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
    read = ask(cloud, "GET", current["attributes"]["hosted-state-download-url"])
    assert (read["statusCode"], read["body"].encode()) == (200, body)
    assert keys(moto) == ["states/network/prod.tfstate", "workspaces/network/prod.json"]
