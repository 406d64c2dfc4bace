"""Raw requests to a deployed API, for tests that need exact requests."""

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_TIME_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access token: its ID and its secret."""

    username: str
    password: str

    @property
    def header(self) -> str:
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    @property
    def cloud_token(self) -> str:
        """ID and secret as one word, in the form that `cloud {}` and `backend "remote"` use."""
        return f"{self.username}.{self.password}"

    @property
    def bearer(self) -> str:
        """The `Authorization` header of `cloud {}` and `backend "remote"`."""
        return f"Bearer {self.cloud_token}"


@dataclass(frozen=True, slots=True)
class Response:
    """A response. Its body is not decoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str]:
        """Return status and error code of a refusal, whose message must not be empty."""
        assert self.status >= 400, self
        document = self.json()
        assert len(document["message"]) > 20, document
        return self.status, document["error"]


class Client:
    """A client of an API, with a connection for each request. Without `credentials` it sends none."""

    def __init__(self, address: str, tls: ssl.SSLContext | None, credentials: Credentials | None) -> None:
        self.credentials = credentials
        self._url = urlsplit(address)
        self._tls = tls

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send one request. The path is not encoded. A body is JSON unless `headers` say otherwise."""
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if self.credentials:
            sent["Authorization"] = self.credentials.header
        connection = self._connect()
        try:
            connection.request(method, self._url.path + path, body, {**sent, **(headers or {})})
            response = connection.getresponse()
            got = {name.lower(): value for name, value in response.getheaders()}
            return Response(response.status, got, response.read())
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=_TIME_LIMIT, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=_TIME_LIMIT)

    # --- Terraform's verbs, in the documented configuration ----------------------------------------

    def read(self, state: str) -> Response:
        return self.request("GET", f"/states/{state}")

    def outputs(self, state: str) -> Response:
        return self.request("GET", f"/outputs/{state}")

    def write(self, state: str, body: bytes, lock_id: str | None = None) -> Response:
        """`POST` the state, with the lock's ID if it is given."""
        return self.request("POST", f"/states/{state}" + (f"?ID={lock_id}" if lock_id else ""), body)

    def delete(self, state: str) -> Response:
        return self.request("DELETE", f"/states/{state}")

    def lock(self, state: str, body: bytes) -> Response:
        return self.request("PUT", f"/locks/{state}", body)

    def unlock(self, state: str, body: bytes | None) -> Response:
        """`DELETE` the lock. Without a body this is a force-unlock."""
        return self.request("DELETE", f"/locks/{state}", body)
