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
from urllib.parse import urlsplit

from benchmarks.relay import Relay
from local_aws.deploy import bootstrap, deploy
from local_aws.server import LocalAws
from tests.support.deployed import client, function_name, route_through

TEAM = "platform"
HOLDFAST = Path(sys.executable).with_name("holdfast")


@dataclass(frozen=True, slots=True)
class Stack:
    """A deployed team.

    Attributes:
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
    def relayed(
        self, *functions: str, to_aws: float = 0.0, to_s3: float = 0.0
    ) -> Iterator[tuple[Relay, Relay]]:
        """Put a relay before AWS, for clients, and one between functions and S3, for as long as it lasts.

        Args:
            functions: whose requests to S3 take the second relay.
        """
        names = [function_name(self.aws, f"Holdfast-{TEAM}", function) for function in functions]
        with Relay(self.aws.endpoint, to_aws) as aws, Relay(self.aws.endpoint, to_s3) as s3:
            route_through(self.aws, names, s3.endpoint)
            try:
                yield aws, s3
            finally:
                route_through(self.aws, names, None)


@contextmanager
def deployed(port: int, folder: Path) -> Iterator[Stack]:
    """Start a local AWS, deploy a team into it and make a token, for as long as the context lasts."""
    with LocalAws(port, folder) as aws:
        bootstrap(aws)
        (team,) = deploy(aws, [TEAM])
        made = subprocess.run(
            [HOLDFAST, "token", "create", "--team", TEAM, "--role", "maintainer", "--scope", "*", "--json"],
            env={"PATH": os.environ["PATH"], **aws.environment()},
            capture_output=True,
            check=True,
            timeout=60,
        )
        token = json.loads(made.stdout)
        yield Stack(aws, team.api_address, team.bucket_name, token["id"], token["secret"])


@dataclass(frozen=True, slots=True)
class Response:
    """What came back, and the seconds from the request to the last byte of the response."""

    seconds: float
    body: bytes


class _Connection:
    """A kept connection to one server, whose requests share some headers."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        url = urlsplit(address)
        self._base = url.path
        self._connection = http.client.HTTPConnection(url.netloc, timeout=60)
        self._headers = headers

    def ask(self, method: str, path: str, body: bytes | None = None) -> Response:
        """Send a request that has to succeed."""
        started = time.perf_counter()
        try:
            self._connection.request(method, self._base + path, body, self._headers)
            response = self._connection.getresponse()
            received = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise RuntimeError(f"{method} {path} got no response: {error}") from error
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"{method} {path} was answered with {response.status}")
        return Response(time.perf_counter() - started, received)


class Client(_Connection):
    """An HTTP client of the API that keeps its connection, as Terraform's does."""

    def __init__(self, stack: Stack) -> None:
        credentials = base64.b64encode(f"{stack.username}:{stack.password}".encode()).decode()
        headers = {
            "Authorization": f"Basic {credentials}",
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip",
        }
        super().__init__(stack.address, headers)


class PlainS3(_Connection):
    """A stack's bucket, asked without a signature, which it does not need, and without the SDK's time."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(f"{stack.aws.endpoint}/{stack.bucket}", {})
