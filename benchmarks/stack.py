"""A deployed team for the benchmark, and a client for it."""

import gzip
import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from benchmarks import latency
from benchmarks.relay import Relay
from holdfast.access import Grant, Role
from holdfast.identity import tokens
from holdfast.identity.credentials import basic
from local_aws.deploy import bootstrap, deploy
from local_aws.server import LocalAws
from tests.support.deployed import client, function_name, route_through

TEAM: Final = "platform"


@dataclass(frozen=True, slots=True)
class Response:
    """The body of a response, and the milliseconds from the request to its last byte."""

    ms: float
    body: bytes

    def content(self) -> bytes:
        """Return the body without its compression; small bodies have none."""
        return gzip.decompress(self.body) if self.body.startswith(b"\x1f\x8b") else self.body

    def json(self) -> Any:
        """Parse the body."""
        return json.loads(self.content())


class Client:
    """A client that keeps one connection open, as Terraform does, and sends `headers` with each request.

    Its context ends with the connection.
    """

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        url = urlsplit(address)
        self._base = url.path
        self._connection = http.client.HTTPConnection(url.netloc, timeout=60)
        self._headers = headers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: bytes | None = None) -> Response:
        """Send a request; RuntimeError if it fails."""
        started = time.perf_counter()
        try:
            self._connection.request(method, self._base + path, body, self._headers)
            response = self._connection.getresponse()
            received = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise RuntimeError(f"{method} {path} got no response: {error}") from error
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"{method} {path} was answered with {response.status}")
        return Response(1000 * (time.perf_counter() - started), received)


class Stack:
    """A deployed team, with a token for its API. The connections of its clients close with `at_end`."""

    def __init__(self, aws: LocalAws, address: str, bucket: str, at_end: ExitStack) -> None:
        self._at_end = at_end
        self.aws = aws
        self.address = address
        self.bucket = bucket
        self._s3 = self.s3()
        self._token = self.new_token()

    def environment(self) -> dict[str, str]:
        """Return the environment of a command that uses this stack. The user's own settings are left out."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        more = {"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
        return {**kept, **self.aws.environment(), **self._token, **more}

    def new_token(self, scope: str = "*") -> dict[str, str]:
        """Create a token, which the gateway cannot have cached; return environment variables that hold it."""
        now = datetime.now(UTC)
        token, secret = tokens.create(
            [Grant(Role.MAINTAINER, (scope,))], description="", created_by="benchmark", now=now, expires=None
        )
        self._s3.ask("PUT", f"/{token.key}", token.to_json())
        return {
            "TF_HTTP_USERNAME": token.id,
            "TF_HTTP_PASSWORD": secret,
            "TF_TOKEN_holdfast_local": f"{token.id}.{secret}",
        }

    def api(self) -> Client:
        """Return a client of the API that authenticates with the stack's token."""
        authorization = basic(self._token["TF_HTTP_USERNAME"], self._token["TF_HTTP_PASSWORD"])
        return self.client(Authorization=authorization, **{"Content-Type": "application/json"})

    def client(self, **headers: str) -> Client:
        """Return a client of the API that accepts compressed responses, and sends these headers."""
        return self._at_end.enter_context(Client(self.address, {"Accept-Encoding": "gzip", **headers}))

    def s3(self) -> Client:
        """Return a client of the bucket that signs nothing and does not use the SDK, which takes time."""
        return self._at_end.enter_context(Client(f"{self.aws.endpoint}/{self.bucket}", {}))

    def log(self, prefix: str, function: str = "backend") -> list[dict[str, Any]]:
        """Return a function's log lines about states whose names begin with `prefix`, oldest first."""
        paginator = client(self.aws, "logs").get_paginator("filter_log_events")
        pages = paginator.paginate(logGroupName=f"/holdfast/{TEAM}/{function}")
        messages = (event["message"] for page in pages for event in page["events"])
        lines = (json.loads(message) for message in messages if message.startswith("{"))
        return [line for line in lines if (line.get("state") or "").startswith(prefix)]

    @contextmanager
    def relayed(self, *functions: str, round_trip: float | None = None) -> Iterator[tuple[Relay, Relay]]:
        """Run two relays while the context lasts: one between clients and AWS, one between functions and S3.

        Args:
            functions: the functions whose requests to S3 pass through the second relay.
            round_trip: the seconds from clients to AWS and back, in addition to the latency of S3. None: the
                relays only count.
        """
        names = [function_name(self.aws, f"Holdfast-{TEAM}", function) for function in functions]
        if round_trip is None:
            aws, s3 = Relay(self.aws.endpoint), Relay(self.aws.endpoint)
        else:
            connecting = latency.NEW_CONNECTION / 1000
            aws = Relay(self.aws.endpoint, round_trip, latency=latency.of)
            s3 = Relay(self.aws.endpoint, connecting=connecting, latency=latency.of)
        with aws, s3:
            route_through(self.aws, names, s3.endpoint)
            try:
                yield aws, s3
            finally:
                route_through(self.aws, names, None)


@contextmanager
def deployed(port: int, folder: Path) -> Iterator[Stack]:
    """Yield a team deployed in its own local AWS, which stops when the context ends."""
    with LocalAws(port, folder) as aws, ExitStack() as at_end:
        bootstrap(aws)
        (team,) = deploy(aws, [TEAM])
        yield Stack(aws, team.api_address, team.bucket_name, at_end)


def program(name: str) -> Path:
    """Return the path of a module of this package that runs as a program of its own."""
    return Path(__file__).with_name(f"{name}.py")


def printed(what: str, *command: str | Path, **options: Any) -> str:
    """Run a command, and return its standard output; RuntimeError if it fails.

    Args:
        what: the command's name in the error's message.
        options: keyword arguments of `subprocess.run`.
    """
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    if ended.returncode:
        raise RuntimeError(f"{what} failed:\n{ended.stdout}{ended.stderr}")
    return str(ended.stdout)
