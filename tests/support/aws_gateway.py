"""A reverse proxy with the limits of AWS's HTTP API and Lambda that the local AWS does not have.

Its numbers are quotas of https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
and https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html. Where AWS's documents allow two
readings, the proxy follows the harsher one: it passes on as much as AWS might, and returns as little.
"""

import base64
import contextlib
import http.client
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final, Self, cast
from urllib.parse import unquote, urlsplit

METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
MAX_PAYLOAD: Final = 10_000_000
"""Bytes of a request's body ("10 MB")."""
MAX_INVOCATION: Final = 6_291_456
"""Bytes of a function's event, and of its response, as JSON."""
MAX_HEAD: Final = 10_240
"""Bytes of request line and headers."""
INTEGRATION_TIMEOUT: Final = 30.0
"""The most seconds that a function may take."""

MOVED: Final = "/moved"
"""The beginning of the paths to which a redirect leads; see `AwsGateway.redirecting`."""
REMAPPED: Final = frozenset({"content-md5", "date", "server", "www-authenticate"})
_REMAPPED_PREFIX: Final = "x-amzn-remapped-"
_HOP_BY_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})
# The content types that Lambda gets as text. Everything else is base64.
_TEXT_TYPES: Final = frozenset({"application/json", "application/xml", "application/javascript"})
# An authorizer's context, with a scope of many patterns.
_CALLER: Final = {"principal": "token:" + "0" * 20, "role": "maintainer", "scope": "*" * 1024}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request as the client sent it, and its response. `body` is the request's body at the gateway."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    status: int
    answer: bytes

    @property
    def is_write(self) -> bool:
        """Return whether it is a client's write of a state, or the commit of an upload."""
        return _is_write(self.method, self.target)


def _is_write(method: str, target: str) -> bool:
    if method == "GET":
        return target.startswith("/api/v2/state-versions/upload-")
    return method == "POST" and "/states/" in target  # a lock is released by POST, too


@dataclass(slots=True)
class Held:
    """Writes that the gateway has received and does not pass on yet.

    `arrived` is set once the first write is there. Set `released` to pass them on, whether or not their
    clients still live. `passed` is set once the first of them has a response.
    """

    arrived: Event = field(default_factory=Event)
    released: Event = field(default_factory=Event)
    passed: Event = field(default_factory=Event)


def event(method: str, target: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Return the event that Lambda gets for a request: payload format 2.0, with the sizes as on AWS."""
    path, _, query = target.partition("?")
    told = {name.lower(): value for name, value in headers.items()}
    told |= {
        "x-amzn-trace-id": "Root=1-00000000-000000000000000000000000",
        "x-forwarded-for": "255.255.255.255",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    }
    kind = told.get("content-type", "").partition(";")[0].strip().lower()
    is_text = (kind in _TEXT_TYPES or kind.startswith("text/")) and "content-encoding" not in told
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /states/{name+}",
        "rawPath": unquote(path),
        "rawQueryString": query,
        "headers": told,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "0123456789",
            "authorizer": {"lambda": _CALLER},
            "domainName": "0123456789.execute-api.ap-southeast-2.amazonaws.com",
            "domainPrefix": "0123456789",
            "http": {
                "method": method,
                "path": unquote(path),
                "protocol": "HTTP/1.1",
                "sourceIp": "255.255.255.255",
                "userAgent": told.get("user-agent", ""),
            },
            "requestId": "0123456789abcdef=",
            "routeKey": "ANY /states/{name+}",
            "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000",
            "timeEpoch": 1767225600000,
        },
        "pathParameters": {"name": unquote(path)},
        "isBase64Encoded": not is_text,
    }
    if query:
        made["queryStringParameters"] = {
            name: value for name, _, value in (pair.partition("=") for pair in query.split("&"))
        }
    if body:
        made["body"] = body.decode(errors="replace") if is_text else base64.b64encode(body).decode()
    return made


def event_size(method: str, target: str, headers: Mapping[str, str], body: bytes) -> int:
    """Return the size in bytes of Lambda's event for a request, with as few escapes as possible."""
    made = event(method, target, headers, body)
    return len(json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode())


def answer_size(status: int, headers: Mapping[str, str], body: bytes) -> int:
    """Return the size in bytes of the function's result for this response.

    An encoded body was base64. For other bodies the response does not show how the function wrote them. They
    count as quoted ASCII or as base64, whichever is smaller.
    """
    frame = len(json.dumps({"statusCode": status, "headers": dict(headers), "isBase64Encoded": False}))
    as_base64 = len(base64.b64encode(body))
    if "content-encoding" in headers:
        return frame + as_base64
    try:
        return frame + min(len(json.dumps(body.decode())), as_base64)
    except UnicodeDecodeError:
        return frame + as_base64


class AwsGateway:
    """The proxy: `https://127.0.0.1:<port>/<path>` goes to `<upstream>/<path>`.

    `upstream` has no trailing slash; `ca` is the authority of its certificate.
    `cert` has the files of certificate and key for TLS; None for plain HTTP.

    Attributes:
        renames_headers: whether headers get AWS's other names, in both directions.
        drops_delete_bodies: whether the body of a DELETE is dropped. AWS does not promise to pass it on.
        refuses_chunks: whether a chunked body is refused. AWS does not document whether it passes it on.
        drops: verbs, each with the lower-case name of a header that is dropped.
        answers_to_lose: how many writes of states will take effect without a response.
        clock_ahead: seconds by which the proxy's clock is ahead.
        redirect: the status of a redirect, and a part of the targets that get it; None for no redirect.
        admits: returns whether the limits let a request pass, by its target; None for no limits.
    """

    def __init__(
        self,
        upstream: str,
        *,
        cert: tuple[Path, Path] | None = None,
        ca: Path | None = None,
    ) -> None:
        self.renames_headers = True
        self.drops_delete_bodies = False
        self.refuses_chunks = False
        self.drops: set[tuple[str, str]] = set()
        self.answers_to_lose = 0
        self.clock_ahead = 0.0
        self.redirect: tuple[int, str] | None = None
        self.admits: Callable[[str], bool] | None = None
        self._upstream = urlsplit(upstream)
        self._upstream_tls = ssl.create_default_context(cafile=str(ca)) if ca else None
        self._recordings: list[list[Exchange]] = []
        self._held: list[Held] = []
        self._lock = Lock()
        self._server = _Server(self, cert)
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        scheme = "https" if cert else "http"
        self.address = f"{scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[Exchange]]:
        """Record the exchanges within the context, in the order of their responses."""
        exchanges: list[Exchange] = []
        self._recordings.append(exchanges)
        try:
            yield exchanges
        finally:
            self._recordings.remove(exchanges)

    @contextlib.contextmanager
    def holding_writes(self) -> Iterator[Held]:
        """Hold the writes of states until they are released, or until the context ends."""
        held = Held()
        self._held.append(held)
        try:
            yield held
        finally:
            self._held.remove(held)
            held.released.set()

    @contextlib.contextmanager
    def _meanwhile(self, **attributes: object) -> Iterator[None]:
        before = {name: getattr(self, name) for name in attributes}
        vars(self).update(attributes)
        try:
            yield
        finally:
            vars(self).update(before)

    def dropping_delete_bodies(self) -> contextlib.AbstractContextManager[None]:
        return self._meanwhile(drops_delete_bodies=True)

    def renaming_headers(self, *, renames: bool) -> contextlib.AbstractContextManager[None]:
        return self._meanwhile(renames_headers=renames)

    def refusing_chunks(self) -> contextlib.AbstractContextManager[None]:
        return self._meanwhile(refuses_chunks=True)

    def with_clock_ahead(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        """Set the proxy's clock ahead within the context."""
        return self._meanwhile(clock_ahead=seconds)

    def throttling(self, admits: Callable[[str], bool]) -> contextlib.AbstractContextManager[None]:
        """Refuse requests that are not admitted within the context, as API Gateway does, with a 429."""
        return self._meanwhile(admits=admits)

    def redirecting(self, status: int, part: str) -> contextlib.AbstractContextManager[None]:
        """Redirect requests whose target has this part, as another front would, within the context.

        The redirect leads to the same target below `MOVED`, which passes on.
        """
        return self._meanwhile(redirect=(status, part))

    def dropping(self, method: str, header: str) -> contextlib.AbstractContextManager[None]:
        """Drop a header of every request with this verb within the context. Its name is in lower case."""
        return self._meanwhile(drops={*self.drops, (method, header)})

    @contextlib.contextmanager
    def losing_the_answer_to_a_write(self) -> Iterator[None]:
        """Close the connection in place of the response to the first write, which must come."""
        self.answers_to_lose += 1
        yield
        assert self.answers_to_lose == 0

    def note(self, exchange: Exchange) -> None:
        with self._lock:
            for recording in self._recordings:
                recording.append(exchange)

    def wait_if_held(self, method: str, target: str) -> list[Held]:
        """Wait until every `Held` that holds this request is released; return them."""
        holders = list(self._held) if _is_write(method, target) else []
        for held in holders:
            held.arrived.set()
            held.released.wait()
        return holders

    def loses_answer(self, exchange: Exchange) -> bool:
        """Return whether this response is lost, and count it."""
        with self._lock:
            lost = exchange.is_write and self.answers_to_lose > 0
            self.answers_to_lose -= lost
            return lost

    def forward(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        if self.drops_delete_bodies and method == "DELETE":
            body = b""
        sent = {
            self._name(name): value
            for name, value in headers.items()
            if name not in _HOP_BY_HOP and (method, name) not in self.drops
        }
        if self.renames_headers:
            sent[f"{_REMAPPED_PREFIX}host"] = headers.get("host", "")
        connection = self._connect()
        with contextlib.closing(connection):
            connection.putrequest(method, f"{self._upstream.path}{target}", skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            response = connection.getresponse()
            answer = response.read()
        answered = ((name.lower(), value) for name, value in response.getheaders())
        got = {self._name(name): value for name, value in answered if name not in _HOP_BY_HOP}
        if got.get("content-type") == "application/vnd.api+json" and "content-encoding" not in got:
            # Responses of `cloud {}` contain the API's address, which on AWS is the gateway's.
            answer = answer.replace(self._upstream.geturl().encode(), self.address.encode())
        return response.status, got, answer

    def _name(self, name: str) -> str:
        return f"{_REMAPPED_PREFIX}{name}" if self.renames_headers and name in REMAPPED else name

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._upstream.hostname or "", self._upstream.port
        if self._upstream_tls:
            return http.client.HTTPSConnection(
                host, port, timeout=INTEGRATION_TIMEOUT, context=self._upstream_tls
            )
        return http.client.HTTPConnection(host, port, timeout=INTEGRATION_TIMEOUT)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, gateway: AwsGateway, cert: tuple[Path, Path] | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.gateway = gateway
        if cert:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*cert)
            # The connection's own thread does the handshake, not the thread that accepts.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing when a client is gone: tests kill some on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60
    raw_requestline: bytes
    path = ""

    @property
    def gateway(self) -> AwsGateway:
        return cast("_Server", self.server).gateway

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        head = len(self.raw_requestline) + sum(len(name) + len(value) + 4 for name, value in headers.items())
        if head > MAX_HEAD:
            self._refuse(431, "Request Header Fields Too Large")
            return
        chunked = "transfer-encoding" in headers
        if chunked and self.gateway.refuses_chunks:
            self._refuse(411, "Length Required")
            return
        announced = headers.get("content-length", "0")
        if not (announced.isascii() and announced.isdigit()) or (chunked and "content-length" in headers):
            self._refuse(400, "Bad Request")
            return
        length = int(announced)
        if length > MAX_PAYLOAD:
            self._refuse(413, "Request Entity Too Large")
            return
        body = self._chunks() if chunked else self.rfile.read(length)
        if body is None:
            self._refuse(400, "Bad Request")
            return
        if len(body) < length:  # the client is gone
            self.close_connection = True
            return
        holders = self.gateway.wait_if_held(self.command, self.path)
        status, got, answer = self._result(headers, body)
        exchange = Exchange(self.command, self.path, headers, body, status, answer)
        self.gateway.note(exchange)
        for held in holders:
            held.passed.set()
        if self.gateway.loses_answer(exchange):
            self.close_connection = True
            return
        self._send(status, got, answer)

    def _chunks(self) -> bytes | None:
        """Return the body of a request without an announced length; None if it does not end correctly.

        Go's client sends an empty body of a POST this way, as in Terraform's force-unlock. AWS does not
        document whether it passes this on.
        """
        body = b""
        while re.fullmatch(rb"[0-9A-Fa-f]{1,8}\r\n", line := self.rfile.readline(16)):
            size = int(line, 16)
            body += self.rfile.read(min(size, MAX_PAYLOAD))
            if len(body) > MAX_PAYLOAD or self.rfile.readline(2) != b"\r\n":
                return None
            if size == 0:
                return body
        return None

    do_DELETE = do_GET = do_HEAD = do_OPTIONS = do_PATCH = do_POST = do_PUT = _answer  # noqa: N815 the base class looks for these names

    def _result(self, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        if self.gateway.admits and not self.gateway.admits(self.path):
            return _own(429, "Too Many Requests")
        redirect = self.gateway.redirect
        if redirect and redirect[1] in self.path and not self.path.startswith(MOVED):
            return redirect[0], {"location": f"{MOVED}{self.path}"}, b""
        target = self.path.removeprefix(MOVED)
        if event_size(self.command, target, headers, body) > MAX_INVOCATION:
            return _own(413, "Request Entity Too Large")
        try:
            status, got, answer = self.gateway.forward(self.command, target, headers, body)
        except OSError:
            return _own(503, "Service Unavailable")
        except (ValueError, http.client.InvalidURL):  # a header or a target that HTTP forbids
            return _own(400, "Bad Request")
        if answer_size(status, got, answer) > MAX_INVOCATION:
            return _own(500, "Internal Server Error")
        return status, got, answer

    def _refuse(self, status: int, message: str) -> None:
        self.close_connection = True
        _, headers, body = _own(status, message)
        self.gateway.note(Exchange(self.command or "", self.path, {}, b"", status, body))
        self._send(status, headers, body)
        # A close before the body is read would reset the connection, and the client would lose the response.
        self.connection.settimeout(5)
        ends = time.monotonic() + 5
        with contextlib.suppress(OSError):
            while time.monotonic() < ends and self.rfile.read1(65536):
                pass

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("date", self.date_time_string(time.time() + self.gateway.clock_ahead))
        for name, value in headers.items():
            if name != "date":
                self.send_header(name, value)
        if self.close_connection:
            self.send_header("connection", "close")
        bodiless = self.command == "HEAD" or status == 204
        if not bodiless:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if not bodiless:
            self.wfile.write(body)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer as AWS does when the base class refuses a malformed request or an unknown verb."""
        del message, explain
        if code == 431:
            self._refuse(431, "Request Header Fields Too Large")
        else:
            self._refuse(400, "Bad Request")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it so
        pass


def _own(status: int, message: str) -> tuple[int, dict[str, str], bytes]:
    return status, {"content-type": "application/json"}, json.dumps({"message": message}).encode()
