"""Raw requests of `cloud {}` and `backend "remote"`, for tests that need exact requests."""

import base64
import hashlib
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from holdfast import names
from holdfast.cloud.names import organization_and_workspace
from tests.support.http_client import Client, Credentials, Response

API = "/api/v2/"
JSON_API = "application/vnd.api+json"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error of a response, in the two parts that a client shows: what happened, and the details."""

    status: int
    title: str
    detail: str


def refusal(response: Response) -> Refusal:
    """Return the only error of a response. Its own status must equal the HTTP status."""
    assert response.status >= 400, response
    [error] = response.json()["errors"]
    assert error["status"] == str(response.status), error
    assert len(error["title"] + error["detail"]) > 20, error
    return Refusal(response.status, error["title"], error["detail"])


def place(state: str) -> tuple[str, str]:
    found = organization_and_workspace(names.parse(state))
    assert found, state
    return found


class CloudClient:
    """A client of the API that keeps no data between calls: IDs come from `open`.

    Without `credentials` it sends none.
    """

    def __init__(self, address: str, credentials: Credentials | None, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._api = Client(address, tls, None)
        self._tls = tls
        self._headers = {"Accept": JSON_API}
        if credentials:
            self._headers["Authorization"] = credentials.bearer

    def call(self, method: str, path: str, document: object = None) -> Response:
        """Send one request. The path is the part after `/api/v2/`. The document becomes JSON."""
        body = None if document is None else json.dumps(document).encode()
        headers = self._headers if body is None else {**self._headers, "Content-Type": JSON_API}
        return self._api.request(method, urljoin(API, path), body, headers)

    # --- workspaces --------------------------------------------------------------------------------------

    def read(self, state: str) -> Response:
        return self.call("GET", _by_name(state))

    def open(self, state: str) -> str:
        """Return a new ID of a state's workspace, which must exist."""
        found = self.read(state)
        assert found.status == 200, found
        return _id(found)

    def create(self, state: str) -> Response:
        organization, workspace = place(state)
        data = {"type": "workspaces", "attributes": {"name": workspace}}
        return self.call("POST", f"organizations/{quote(organization)}/workspaces", {"data": data})

    def delete(self, state: str) -> Response:
        """`DELETE` a workspace by name, as clients without a safe delete do."""
        return self.call("DELETE", _by_name(state))

    # --- the lock ----------------------------------------------------------------------------------------

    def lock(self, workspace: str) -> Response:
        return self.call("POST", f"workspaces/{workspace}/actions/lock", {"reason": "Locked by Terraform"})

    def unlock(self, workspace: str) -> Response:
        return self.call("POST", f"workspaces/{workspace}/actions/unlock")

    def force_unlock(self, workspace: str) -> Response:
        """Remove the lock that was held when the ID was created."""
        return self.call("POST", f"workspaces/{workspace}/actions/force-unlock")

    # --- the state ---------------------------------------------------------------------------------------

    def announce(self, workspace: str, body: bytes, **changes: object) -> Response:
        """Create a state version for a document, without the document.

        `changes` replace the announced serial, lineage and MD5, or add attributes such as `force` or `state`.
        """
        document = json.loads(body)
        attributes = {
            "serial": document["serial"],
            "lineage": document["lineage"],
            "md5": hashlib.md5(body, usedforsecurity=False).hexdigest(),
            **changes,
        }
        data = {"type": "state-versions", "attributes": attributes}
        return self.call("POST", f"workspaces/{workspace}/state-versions", {"data": data})

    def write_at_once(self, workspace: str, body: bytes) -> Response:
        """Create a state version together with its document, as Terraform before 1.6 does."""
        return self.announce(workspace, body, state=base64.b64encode(body).decode())

    def upload(self, announced: Response, body: bytes, json_state: bytes | None = None) -> list[int]:
        """`PUT` a document, and its JSON form if given, to the addresses in the response to `announce`.

        Return the statuses of the responses.
        """
        attributes = announced.json()["data"]["attributes"]
        bodies = {"hosted-state-upload-url": body}
        if json_state is not None:
            bodies["hosted-json-state-upload-url"] = json_state
        return [self.put(attributes[name], content).status for name, content in bodies.items()]

    def put(self, address: str, body: bytes) -> Response:
        """`PUT` bytes to a presigned address, without credentials."""
        url = urlsplit(address)
        bucket = Client(f"{url.scheme}://{url.netloc}", self._tls, None)
        headers = {"Content-Type": "application/octet-stream"}
        return bucket.request("PUT", f"{url.path}?{url.query}", body, headers)

    def commit(self, announced: Response) -> Response:
        """`GET` the state version from the response to `announce`. That commits the upload."""
        return self.call("GET", f"state-versions/{_id(announced)}")

    def write(self, workspace: str, body: bytes) -> Response:
        """Announce, upload and commit a document; return the last response."""
        announced = self.announce(workspace, body)
        if announced.status >= 300:
            return announced
        statuses = self.upload(announced, body, b"{}")
        assert statuses == [200, 200], statuses
        return self.commit(announced)

    def current(self, workspace: str) -> Response:
        """`GET` the current state version."""
        return self.call("GET", f"workspaces/{workspace}/current-state-version")

    def download(self, current: Response) -> Response:
        """`GET` the state from a response to `current`, without following a redirect."""
        address = attributes(current)["hosted-state-download-url"]
        api, path, version = address.partition(API)
        assert (api, path) == (self._address, API), "clients follow it as it stands"
        return self.call("GET", version)

    def outputs(self, workspace: str) -> Response:
        return self.call("GET", f"workspaces/{workspace}/current-state-version-outputs")


def attributes(response: Response) -> Mapping[str, Any]:
    """Return the attributes of the only resource in a response."""
    found: Mapping[str, Any] = response.json()["data"]["attributes"]
    return found


def _by_name(state: str) -> str:
    organization, workspace = place(state)
    return f"organizations/{quote(organization)}/workspaces/{quote(workspace)}"


def _id(response: Response) -> str:
    return str(response.json()["data"]["id"])
