"""A deployed team of the benchmark's own, and a client for it."""

import base64
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from local_aws.deploy import bootstrap, deploy
from local_aws.server import LocalAws
from tests.support.deployed import client

TEAM = "platform"
HOLDFAST = Path(sys.executable).with_name("holdfast")


@dataclass(frozen=True, slots=True)
class Stack:
    """A deployed team.

    Attributes:
        aws: where it is deployed.
        address: the API's base URL.
        bucket: its bucket's name.
        username: a maintainer token's ID.
        password: its secret.
    """

    aws: LocalAws
    address: str
    bucket: str
    username: str
    password: str

    def environment(self) -> dict[str, str]:
        """Variables for a command that works with this stack, and nothing else of the user's."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        return {
            **kept,
            **self.aws.environment(),
            "TF_HTTP_USERNAME": self.username,
            "TF_HTTP_PASSWORD": self.password,
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
        }

    def log(self, state: str, function: str = "backend") -> list[dict[str, Any]]:
        """Return a function's own lines about the states whose names begin so, oldest first."""
        pages = (
            client(self.aws, "logs")
            .get_paginator("filter_log_events")
            .paginate(logGroupName=f"/holdfast/{TEAM}/{function}")
        )
        messages = (event["message"] for page in pages for event in page["events"])
        lines = (json.loads(message) for message in messages if message.startswith("{"))
        return [line for line in lines if (line.get("state") or "").startswith(state)]


@contextmanager
def deployed(port: int, folder: Path) -> Iterator[Stack]:
    """Start a local AWS, deploy a team into it and make a token, for as long as the context lasts."""
    with LocalAws(port, folder) as aws:
        bootstrap(aws)
        name = f"Holdfast-{TEAM}"
        outputs = deploy(aws, [name])[name]
        made = subprocess.run(
            [HOLDFAST, "token", "create", "--team", TEAM, "--role", "maintainer", "--scope", "*", "--json"],
            env={"PATH": os.environ["PATH"], **aws.environment()},
            capture_output=True,
            check=True,
            timeout=60,
        )
        token = json.loads(made.stdout)
        yield Stack(aws, outputs.api_address, outputs.bucket_name, token["id"], token["secret"])


@dataclass(frozen=True, slots=True)
class Response:
    """What came back.

    Attributes:
        status: of HTTP.
        seconds: from the request to the last byte of the response.
        body: its body, as it came.
    """

    status: int
    seconds: float
    body: bytes

    @property
    def received(self) -> int:
        """Bytes of the body."""
        return len(self.body)


class Client:
    """An HTTP client that keeps its connection, as Terraform's does."""

    def __init__(self, stack: Stack) -> None:
        address = urlsplit(stack.address)
        self._base = address.path
        self._connection = http.client.HTTPConnection(address.netloc, timeout=60)
        credentials = base64.b64encode(f"{stack.username}:{stack.password}".encode()).decode()
        self._headers: Mapping[str, str] = {
            "Authorization": f"Basic {credentials}",
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip",
        }

    def ask(
        self, method: str, path: str, body: bytes = b"", *, expect: int = 200, anonymous: bool = False
    ) -> float:
        """Send a request, with the credentials unless it is to be anonymous.

        Returns:
            How long it took, in seconds.

        Raises:
            RuntimeError: the status is another one than expected.
        """
        response = self.send(method, path, body, anonymous=anonymous)
        if response.status != expect:
            raise RuntimeError(f"{method} {path} was answered with {response.status} instead of {expect}")
        return response.seconds

    def send(self, method: str, path: str, body: bytes = b"", *, anonymous: bool = False) -> Response:
        """Send a request as `ask` does, whatever the status.

        Raises:
            RuntimeError: there was no response.
        """
        headers = {} if anonymous else self._headers
        return _exchange(self._connection, method, self._base + path, body, headers)


class PlainS3:
    """The local S3, asked without a signature, which it does not need, and without the SDK's time.

    Args:
        stack: whose bucket it is.
        endpoint: where S3 is reached.
    """

    def __init__(self, stack: Stack, endpoint: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=60)
        self._bucket = f"/{stack.bucket}"

    def ask(self, method: str, name: str, body: bytes | None = None, *, folder: str = "native/") -> float:
        """Send a request for an object.

        Args:
            method: the verb.
            name: of the object, below the folder.
            body: the object, of a PUT.
            folder: with a slash at its end.

        Returns:
            How long it took, in seconds.

        Raises:
            RuntimeError: S3 refused it, or did not respond.
        """
        return self._send(method, f"{self._bucket}/{folder}{name}", body)

    def list(self, prefix: str, after: str) -> float:
        """List a page of keys.

        Returns:
            How long it took, in seconds.

        Raises:
            RuntimeError: S3 refused it, or did not respond.
        """
        asked = {
            "list-type": 2,
            "max-keys": 1000,
            "prefix": prefix,
            "start-after": after,
            "encoding-type": "url",
        }
        return self._send("GET", f"{self._bucket}?{urlencode(asked)}", None)

    def _send(self, method: str, path: str, body: bytes | None) -> float:
        response = _exchange(self._connection, method, path, body, {})
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"S3 answered {method} with {response.status}")
        return response.seconds

    def close(self) -> None:
        """Close the connection; the next request opens one."""
        self._connection.close()


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None,
    headers: Mapping[str, str],
) -> Response:
    started = time.perf_counter()
    try:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        received = response.read()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise RuntimeError(f"{method} {path} got no response: {error}") from error
    return Response(response.status, time.perf_counter() - started, received)
