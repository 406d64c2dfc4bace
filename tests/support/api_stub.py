"""An HTTP server on this machine that replaces the team's API and records the requests."""

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast.identity.credentials import new_id, new_secret
from local_aws import loopback


@dataclass(frozen=True)
class Reply:
    """A response of the stub.

    `headers` are sent in addition to its length. The last `cut` bytes of the announced body are not sent.
    `lost`: the connection is closed without a response.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int = 0
    lost: bool = False


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class ApiStub:
    """Sends its replies in order, and the last reply to all later requests."""

    def __init__(self) -> None:
        self.address = ""
        self.asked: list[Asked] = []
        self.replies: list[Reply] = []
        self._lock = threading.Lock()

    def reply(self, *replies: Reply) -> None:
        """Set the responses from now on."""
        self.replies = list(replies)

    def next_reply(self, asked: Asked) -> Reply:
        """Record a request, and return its response."""
        with self._lock:
            self.asked.append(asked)
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def session(**changed: object) -> dict[str, Any]:
    """Return the document of the API's response with a new session."""
    return {
        "id": f"session-{new_id()}",
        "secret": new_secret(),
        "principal": "arn:aws:sts::123456789012:assumed-role/Developer/ada",
        "role": "writer",
        "scope": ["app/*", "shared"],
        "trust": "developers",
        "expires": "2099-11-21T16:44:05+00:00",
        "seconds": 3600,
    } | changed


def made(document: object) -> Reply:
    """Return the response with a session."""
    return Reply(200, json.dumps(document).encode(), {"Content-Type": "application/json"})


def refused(status: int, code: str, message: str) -> Reply:
    """Return an error response of Holdfast's own."""
    return Reply(status, json.dumps({"error": code, "message": message}).encode())


class _Handler(loopback.Handler):
    protocol_version = "HTTP/1.0"
    stub: ApiStub

    def respond(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.stub.next_reply(Asked(self.command, self.path, headers, self.read_body()))
        self.close_connection = True
        if not reply.lost:
            sent = {**reply.headers, "Content-Length": str(len(reply.body))}
            self.answer(reply.status, reply.body[: len(reply.body) - reply.cut], sent)


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[ApiStub]:
    """Run a stub for as long as the context lasts, with TLS if there is a certificate."""
    stub = ApiStub()
    with loopback.serving(type("Handler", (_Handler,), {"stub": stub}), tls=tls) as stub.address:
        yield stub
