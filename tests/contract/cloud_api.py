"""Calls of the function behind `cloud {}`, whose fixture is in `conftest.py`."""

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import urllib3

from holdfast.access import Caller
from holdfast.cloud.ids import OutputId, UploadId, VersionId, WorkspaceId
from tests.contract.conftest import CLOUD_BUCKET, NAME, Answer, Bucket, Handle, Server
from tests.support.documents import ADA, LINEAGE
from tests.support.events import DOMAIN, Context, cloud_request

STATE_KEY = "states/network/prod.tfstate"
ORGANIZATION = "organizations/network"
BY_NAME = "organizations/network/workspaces/prod"


def keys(moto: Server, bucket: str = CLOUD_BUCKET) -> list[str]:
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
    document = {"type": "workspaces", "attributes": {"name": name}}
    return str(data(ask(cloud, "POST", f"{ORGANIZATION}/workspaces", caller, document), 201)["id"])


def opened(cloud: Handle, caller: Caller = ADA) -> str:
    """Read the workspace by name, as every command does, and return its ID."""
    return str(data(ask(cloud, "GET", BY_NAME, caller))["id"])


def announced(body: bytes, serial: object = 1, **more: object) -> dict[str, Any]:
    """Return the document with which a client announces an upload."""
    md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
    attributes = {"serial": serial, "md5": md5, "lineage": LINEAGE, **more}
    return {"type": "state-versions", "attributes": attributes}


def create(cloud: Handle, workspace: str, version: object) -> Answer:
    return ask(cloud, "POST", f"workspaces/{workspace}/state-versions", ADA, version)


def upload(cloud: Handle, workspace: str, body: bytes, serial: int = 1, **more: object) -> dict[str, Any]:
    found: dict[str, Any] = data(create(cloud, workspace, announced(body, serial, **more)), 201)
    return found


def put(address: str, body: bytes) -> None:
    """Upload, as the clients do."""
    kind = {"Content-Type": "application/octet-stream"}
    assert urllib3.request("PUT", address, body=body, headers=kind).status == 200


def commit(cloud: Handle, upload_id: str, caller: Caller = ADA) -> Answer:
    return ask(cloud, "GET", f"state-versions/{upload_id}", caller)


def download(cloud: Handle, version: dict[str, Any], caller: Caller = ADA, **more: Any) -> Answer:
    """Download from the address of a version, which is on the API's own host."""
    path = f"state-versions/{version['id']}/download"
    assert version["attributes"]["hosted-state-download-url"] == f"https://{DOMAIN}/api/v2/{path}"
    return ask(cloud, "GET", path, caller, **more)


def locked(cloud: Handle) -> str:
    """Create the workspace, acquire its lock and return its ID."""
    workspace = created(cloud)
    assert ask(cloud, "POST", f"workspaces/{workspace}/actions/lock")["statusCode"] == 200
    return workspace


def unlock(cloud: Handle, workspace: str) -> Answer:
    return ask(cloud, "POST", f"workspaces/{workspace}/actions/unlock")


def uploaded(cloud: Handle, workspace: str, body: bytes, serial: int = 1, **more: object) -> str:
    """Create an upload and upload; return its ID."""
    version = upload(cloud, workspace, body, serial, **more)
    put(version["attributes"]["hosted-state-upload-url"], body)
    return str(version["id"])


def versions(moto: Server) -> int:
    """Return how many versions the state has, including delete markers."""
    return len([key for key, _ in Bucket(CLOUD_BUCKET, moto).history(STATE_KEY) if key == STATE_KEY])


def write(cloud: Handle, workspace: str, body: bytes, serial: int = 1) -> None:
    assert commit(cloud, uploaded(cloud, workspace, body, serial))["statusCode"] == 200


def is_now(time: str) -> bool:
    """Return whether a time is now, in the only form that go-tfe reads."""
    moment = datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return abs(datetime.now(UTC) - moment) < timedelta(minutes=5)


def tag(name: str) -> dict[str, Any]:
    return {"type": "tags", "attributes": {"name": name}}


def binding(key: str, value: str | None = None) -> dict[str, Any]:
    attributes = {"key": key} if value is None else {"key": key, "value": value}
    return {"type": "tag-bindings", "attributes": attributes}


WORKSPACE = {"type": "workspaces", "attributes": {"name": "prod"}}
WS = str(WorkspaceId(NAME, "0" * 32, 1_700_000_000, ""))
SV = str(VersionId(NAME, "none", 7))
NOUGHTS = "0" * 32
UPLOAD = str(UploadId(NOUGHTS, NOUGHTS, "v", None, force=False, name=NAME, serial=1, lineage="", md5=NOUGHTS))
OUT = str(OutputId(VersionId(NAME, "none", 7), "a"))
