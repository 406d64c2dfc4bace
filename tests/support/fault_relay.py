"""A relay in front of an HTTP server that injects faults into single requests.

It passes all other requests on byte by byte, so that only the fault differs from a direct connection. It
keeps its connections, so that it costs next to nothing.
"""

import itertools
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from io import BufferedIOBase
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Final, Self
from urllib.parse import urlsplit


class Fault(Enum):
    """The faults of a request."""

    NEVER_ARRIVES = "never arrives"
    """The connection is closed; the server does not see the request."""
    ANSWER_LOST = "answer lost"
    """The server carries out the request; the connection is closed in place of the response."""
    RESET = "reset in the body"
    """Both connections are reset in the middle of the request's body, so the server gets half of it."""
    HALF_AN_ANSWER = "half an answer"
    """The connection is closed in the middle of the response's body, or of its headers if it has no body."""
    HALF_THE_HEADERS = "half the headers"
    """The connection is closed in the middle of the response's headers."""
    SERVER_ERROR = "500"
    """500; the server does not see the request."""
    SERVER_ERROR_AFTERWARDS = "500 afterwards"
    """The server carries out the request; the response is 500."""
    SLOW_DOWN = "503"
    """503 SlowDown; the server does not see the request."""
    CONFLICT = "409"
    """409 ConditionalRequestConflict; the server does not see the request."""
    DENIED = "403"
    """403 AccessDenied."""
    CLOCK_SKEWED = "403 clock"
    """403 RequestTimeTooSkewed, a transient error."""
    LATE = "late"
    """The connection is closed at once; the server sees the request only some time later."""
    LATENCY = "latency"
    """The request, or its response, takes longer."""
    HANG = "hang"
    """The request, or its response, takes longer than anybody waits for it."""
    TRICKLE = "trickle"
    """The response comes in small pieces, with pauses that no client gives up in."""
    DISTANCE = "distance"
    """The request arrives later, and the server takes some time at least."""


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request, before its body is read.

    `path` has no query. `connected` is the time at which its connection was opened, of the monotonic clock.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    connected: float = 0.0

    @property
    def has_body(self) -> bool:
        """Return whether the body has two bytes or more, so that it can be cut."""
        return int(self.headers.get("content-length", 0)) > 1

    @property
    def is_conditional_write(self) -> bool:
        """Return whether S3 could refuse the request as a conflict with another request."""
        return self.method in ("PUT", "POST", "DELETE") and not self.headers.keys().isdisjoint(
            ("if-match", "if-none-match")
        )


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault to inject into a request.

    `seconds` is the length of a delay. `at` says where the request is cut, or which side of the exchange
    waits; 0 = at the beginning, 1 = at the end. `after` is the number of bytes after which a response is cut;
    None = `at` applies. `server` is the seconds that the server takes at least.
    """

    fault: Fault
    seconds: float = 0.0
    at: float = 0.5
    after: int | None = None
    server: float = 0.0


@dataclass(slots=True)
class Exchange:
    """A request that arrived, and its result.

    `body` is incomplete if the connection was reset. `answered` is the status of the server's response; None
    if the server did not get the whole request. `told` is the status of the response that the client got;
    None if it got no whole response. `answer` is the server's response, from its status line on.
    """

    method: str
    target: str
    body: bytes = b""
    answered: int | None = None
    told: int | None = None
    answer: bytes = field(default=b"", compare=False)


REFUSALS: Final = {
    Fault.SERVER_ERROR: (500, "InternalError"),
    Fault.SERVER_ERROR_AFTERWARDS: (500, "InternalError"),
    Fault.SLOW_DOWN: (503, "SlowDown"),
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
    Fault.DENIED: (403, "AccessDenied"),
    Fault.CLOCK_SKEWED: (403, "RequestTimeTooSkewed"),
}
"""Status and S3's code of the faults that are a response."""


def s3_refusal(fault: Fault) -> tuple[int, str, bytes]:
    """Return status, content type and body of a fault, as S3 sends them."""
    status, code = REFUSALS[fault]
    text = f"<Error><Code>{code}</Code><Message>made by a test</Message></Error>"
    return status, "application/xml", f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()


_PIECE_SECONDS: Final = 2.0
_RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)
_MAX_LINE: Final = 65_536
_TIME_TO_CLOSE: Final = 5.0


class _EndedError(Exception):
    """A connection ended within a message, or was closed because of a fault."""


class Relay:
    """The relay, on a loopback port for as long as its context lasts.

    `decide` is called once for each request and returns the fault to inject; None = pass the request on.
    `refusal` makes the faults that are a response. `happened` is called for each fault that did happen,
    `heard` for each request after the client has got everything that it will get, `connected` for each
    connection of a client. Many threads call them.
    """

    def __init__(
        self,
        upstream: str,
        decide: Callable[[Request], Injected | None],
        *,
        refusal: Callable[[Fault], tuple[int, str, bytes]] = s3_refusal,
        happened: Callable[[Fault], None] = lambda _: None,
        heard: Callable[[Exchange], None] = lambda _: None,
        connected: Callable[[], None] = lambda: None,
    ) -> None:
        url = urlsplit(upstream)
        self._upstream = (url.hostname or "", url.port or 80)
        self._decide = decide
        self._refusal = refusal
        self._happened = happened
        self._heard = heard
        self._closing = threading.Event()
        self._idle = threading.Condition()
        self._under_way = 0
        self._sockets: set[socket.socket] = set()
        self._late: set[threading.Thread] = set()
        relay = self

        class Handler(StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self) -> None:
                relay._serve(self.connection, self.rfile)

        self._server = _Server(("127.0.0.1", 0), Handler, connected)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        with self._idle:
            late = list(self._late)
        self.disconnect()
        for thread in late:
            thread.join()
        with self._idle:
            self._idle.wait_for(lambda: not self._sockets, _TIME_TO_CLOSE)
        self._server.server_close()

    def disconnect(self) -> None:
        """Close every connection, as a server closes idle connections."""
        with self._idle:
            sockets = list(self._sockets)
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @property
    def under_way(self) -> int:
        """How many requests have arrived and not ended yet, including late requests."""
        with self._idle:
            return self._under_way

    def settle(self, seconds: float = 60.0) -> None:
        """Wait until no request is in flight, including those whose client has gone.

        TimeoutError: a request still is.
        """
        with self._idle:
            if not self._idle.wait_for(lambda: self._under_way == 0, seconds):
                raise TimeoutError(f"{self._under_way} requests still are under way after {seconds} s")

    # --- one connection ------------------------------------------------------------------------------

    def _serve(self, client: socket.socket, stream: BufferedIOBase) -> None:
        connection = _Connection(client, stream, _Upstream(self._upstream, self._track), time.monotonic())
        self._track(client, opened=True)
        try:
            while not self._closing.is_set():
                head = _read_head(stream)
                with self._counted():
                    self._one(connection, head)
                if head.headers.get("connection", "").lower() == "close":
                    return
        except (OSError, _EndedError):
            pass  # the other side sees a closed connection
        finally:
            self._track(client, opened=False)
            connection.upstream.close()

    def _one(self, connection: "_Connection", head: "_Head") -> None:
        method, target = head.first.split()[:2]
        request = Request(method, urlsplit(target).path, head.headers, connection.opened)
        injected = self._decide(request)
        if "expect" in head.headers:
            connection.client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        exchange = Exchange(method, target)
        try:
            if injected is not None and injected.fault is Fault.RESET:
                self._reset(connection, head, exchange, injected)
            exchange.body = _read_body(connection.stream, head)
            if injected is None:
                connection.tell(exchange, connection.ask(exchange, head))
            else:
                self._go_wrong(connection, head, exchange, injected)
        finally:
            self._heard(exchange)

    def _go_wrong(
        self, connection: "_Connection", head: "_Head", exchange: Exchange, injected: Injected
    ) -> None:
        fault = injected.fault
        match fault:
            case Fault.NEVER_ARRIVES:
                self._happened(fault)
                raise _EndedError
            case Fault.LATE:
                self._carry_out_later(head.content + exchange.body, exchange.method, injected)
                raise _EndedError
            case Fault.LATENCY | Fault.HANG:
                self._wait(injected.seconds if injected.at < 0.5 else 0)
                answer = connection.ask(exchange, head)
                self._wait(injected.seconds if injected.at >= 0.5 else 0)
                self._happened(fault)
                connection.tell(exchange, answer)
            case Fault.DISTANCE:
                self._wait(injected.seconds)
                began = time.monotonic()
                answer = connection.ask(exchange, head)
                self._wait(max(0.0, injected.server - (time.monotonic() - began)))
                self._happened(fault)
                connection.tell(exchange, answer)
            case Fault.TRICKLE:
                answer = connection.ask(exchange, head)
                self._happened(fault)
                self._trickle(connection.client, answer.content, injected.seconds)
                exchange.told = answer.status
            case Fault.ANSWER_LOST:
                connection.ask(exchange, head)
                self._happened(fault)
                raise _EndedError
            case Fault.HALF_AN_ANSWER | Fault.HALF_THE_HEADERS:
                connection.client.sendall(connection.ask(exchange, head).cut(injected))
                self._happened(fault)
                raise _EndedError
            case _:
                if fault is Fault.SERVER_ERROR_AFTERWARDS:
                    connection.ask(exchange, head)
                connection.tell(exchange, self._refuse(fault, exchange.method))
                self._happened(fault)

    def _reset(
        self, connection: "_Connection", head: "_Head", exchange: Exchange, injected: Injected
    ) -> None:
        length = int(head.headers["content-length"])
        exchange.body = _read(connection.stream, min(max(1, int(length * injected.at)), length - 1))
        connection.upstream.reset_within(head.content + exchange.body)
        self._track(connection.client, opened=False)
        connection.reset()
        self._happened(injected.fault)
        raise _EndedError

    def _carry_out_later(self, sent: bytes, method: str, injected: Injected) -> None:
        def carry_out() -> None:
            upstream = _Upstream(self._upstream, self._track)
            try:
                if self._closing.wait(injected.seconds):
                    self._happened(Fault.NEVER_ARRIVES)
                    return
                upstream.exchange(sent, method)
                self._happened(injected.fault)
            except (OSError, _EndedError):
                self._happened(Fault.NEVER_ARRIVES)  # the server is gone
            finally:
                upstream.close()
                with self._idle:
                    self._late.discard(thread)
                    self._under_way -= 1
                    self._idle.notify_all()

        thread = threading.Thread(target=carry_out, daemon=True)
        with self._idle:
            self._late.add(thread)
            self._under_way += 1
        thread.start()

    def _trickle(self, client: socket.socket, answer: bytes, seconds: float) -> None:
        pieces = min(int(seconds / _PIECE_SECONDS) + 1, len(answer))
        cuts = [len(answer) * number // pieces for number in range(pieces + 1)]
        for begin, end in itertools.pairwise(cuts):
            client.sendall(answer[begin:end])
            self._wait(_PIECE_SECONDS if end < len(answer) else 0)

    def _refuse(self, fault: Fault, method: str) -> "_Answer":
        status, content_type, body = self._refusal(fault)
        head = f"HTTP/1.1 {status} \r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return _Answer(status, head.encode(), b"" if method == "HEAD" else body)

    def _wait(self, seconds: float) -> None:
        if self._closing.wait(seconds):
            raise _EndedError

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._idle:
            self._under_way += 1
        try:
            yield
        finally:
            with self._idle:
                self._under_way -= 1
                self._idle.notify_all()

    def _track(self, each: socket.socket, *, opened: bool) -> None:
        with self._idle:
            (self._sockets.add if opened else self._sockets.discard)(each)
            self._idle.notify_all()
        if opened and self._closing.is_set():
            raise _EndedError


class _Server(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[StreamRequestHandler],
        connected: Callable[[], None],
    ) -> None:
        super().__init__(address, handler)
        self._connected = connected

    def get_request(self) -> tuple[socket.socket, object]:
        accepted = super().get_request()
        self._connected()
        return accepted

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore failed connections, which the relay causes on purpose. Report every other exception."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # the base class's types


# --- messages ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Head:
    first: str
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    head: bytes
    body: bytes

    @property
    def content(self) -> bytes:
        return self.head + self.body

    def cut(self, injected: Injected) -> bytes:
        """Return a part of the response that is never the whole response."""
        if injected.after is not None:
            return self.content[: min(injected.after, len(self.content) - 1)]
        if injected.fault is Fault.HALF_AN_ANSWER and len(self.body) > 1:
            return self.head + self.body[: min(int(len(self.body) * injected.at), len(self.body) - 1)]
        # After the status line, and before the empty line that ends the headers.
        first = self.head.index(b"\n") + 1
        return self.head[: first + int((len(self.head) - first - 3) * injected.at)]


def _read_head(stream: BufferedIOBase) -> _Head:
    lines: list[bytes] = []
    headers: dict[str, str] = {}
    while True:
        line = stream.readline(_MAX_LINE)
        if not line.endswith(b"\n"):
            raise _EndedError
        if line in (b"\r\n", b"\n") and lines:
            lines.append(line)
            return _Head(lines[0].decode("latin-1"), headers, b"".join(lines))
        name, colon, value = line.decode("latin-1").partition(":")
        if lines and colon:
            headers[name.strip().lower()] = value.strip()
            if name.strip().lower() == "expect":  # it is answered here
                continue
        lines.append(line)


def _read(stream: BufferedIOBase, length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise _EndedError
    return content


def _read_body(stream: BufferedIOBase, head: _Head) -> bytes:
    if head.headers.get("transfer-encoding", "").lower() != "chunked":
        return _read(stream, int(head.headers.get("content-length", 0)))
    frames = []
    while True:
        size = stream.readline(_MAX_LINE)
        if not size.endswith(b"\n"):
            raise _EndedError
        length = int(size.split(b";")[0], 16)
        frames += [size, _read(stream, length), stream.readline(_MAX_LINE)]
        if not length:
            return b"".join(frames)


class _Upstream:
    """A connection to the server. It is opened when it is needed, and kept."""

    def __init__(self, address: tuple[str, int], track: Callable[..., None]) -> None:
        self._address = address
        self._track = track
        self._socket: socket.socket | None = None
        self._stream: BufferedIOBase | None = None

    def exchange(self, sent: bytes, method: str) -> _Answer:
        stream = self._open()
        self._send(sent)
        head = _read_head(stream)
        while head.first.split()[1].startswith("1"):
            head = _read_head(stream)
        status = int(head.first.split()[1])
        without_body = method == "HEAD" or status in (204, 304)
        framed = "content-length" in head.headers or "transfer-encoding" in head.headers
        if without_body:
            body = b""
        elif framed:
            body = _read_body(stream, head)
        else:
            body = stream.read()
        if (
            not (without_body or framed)
            or "close" in head.headers.get("connection", "").lower()
            or head.first.startswith("HTTP/1.0")
        ):
            self.close()
        return _Answer(status, head.content, body)

    def reset_within(self, part: bytes) -> None:
        """Send a part of a request, then reset the connection."""
        self._open()
        self._send(part)
        if self._socket:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        self.close()

    def close(self) -> None:
        if self._stream:
            self._stream.close()
        if self._socket:
            self._track(self._socket, opened=False)
            self._socket.close()
        self._socket = self._stream = None

    def _send(self, content: bytes) -> None:
        if self._socket:
            self._socket.sendall(content)

    def _open(self) -> BufferedIOBase:
        # Readable while no request is in flight: the server has closed it.
        if self._socket and select.select([self._socket], [], [], 0)[0]:
            self.close()
        if self._socket is None or self._stream is None:
            self._socket = socket.create_connection(self._address)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._stream = self._socket.makefile("rb")
            self._track(self._socket, opened=True)
        return self._stream


@dataclass(frozen=True, slots=True)
class _Connection:
    """A client's connection, and its own connection to the server."""

    client: socket.socket
    stream: BufferedIOBase
    upstream: _Upstream
    opened: float

    def ask(self, exchange: Exchange, head: _Head) -> _Answer:
        """Send a request to the server, and return its response."""
        answer = self.upstream.exchange(head.content + exchange.body, exchange.method)
        exchange.answered, exchange.answer = answer.status, answer.content
        return answer

    def tell(self, exchange: Exchange, answer: _Answer) -> None:
        """Send the client a whole response."""
        self.client.sendall(answer.content)
        exchange.told = answer.status

    def reset(self) -> None:
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        self.stream.close()  # the socket closes with its last user
        self.client.close()
