"""An HTTP proxy in front of an S3 server that loses answers, refuses to serve, and lets others go first."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


class Fault(Enum):
    """What happens to a request."""

    NEVER_ARRIVES = auto()
    """The connection is closed; the server does not see the request."""
    ANSWER_LOST = auto()
    """The server carries the request out; the connection is closed instead of answering."""
    HALF_AN_ANSWER = auto()
    """The connection is closed in the middle of the answer's body."""
    SLOW_DOWN = auto()
    """503 SlowDown."""
    CONFLICT = auto()
    """409 ConditionalRequestConflict."""
    DENIED = auto()
    """403 AccessDenied."""
    CLOCK_SKEWED = auto()
    """403 RequestTimeTooSkewed, which passes."""


_XML = (
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code>'
    "<Message>made by a test</Message></Error>"
)
_REFUSALS = {
    Fault.SLOW_DOWN: (503, "SlowDown"),
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
    Fault.DENIED: (403, "AccessDenied"),
    Fault.CLOCK_SKEWED: (403, "RequestTimeTooSkewed"),
}


@dataclass
class _Rule:
    method: str
    suffix: str
    action: Fault | Callable[[], object]
    left: int


@dataclass
class S3FaultProxy:
    """A proxy on a loopback port; `endpoint` is where it listens."""

    endpoint: str
    _rules: list[_Rule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(self, method: str, suffix: str, fault: Fault, *, times: int = 1) -> None:
        """Let the next requests with this method, to a key that ends so, go wrong."""
        self._rules.append(_Rule(method, suffix, fault, times))

    def before(self, method: str, suffix: str, act: Callable[[], object]) -> None:
        """Do something just before the next such request reaches the server, then let it through."""
        self._rules.append(_Rule(method, suffix, act, 1))

    def _next_action(self, method: str, path: str) -> Fault | Callable[[], object] | None:
        with self._lock:
            for rule in self._rules:
                if rule.left and rule.method == method and path.endswith(rule.suffix):
                    rule.left -= 1
                    return rule.action
        return None

    def end_rules(self) -> int:
        """Forget every fault and say how many of those that were asked for did not happen."""
        unused = sum(rule.left for rule in self._rules)
        self._rules.clear()
        return unused


@contextmanager
def running(upstream: str) -> Iterator[S3FaultProxy]:
    """Run a proxy in front of an S3 server for as long as the context lasts."""
    target = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self._body()
            action = proxy._next_action(self.command, urlsplit(self.path).path)  # noqa: SLF001 one component
            if isinstance(action, Fault) and action in _REFUSALS:
                status, code = _REFUSALS[action]
                self._answer(status, [("Content-Type", "application/xml")], _XML.format(code=code).encode())
                return
            if action is Fault.NEVER_ARRIVES:
                self.close_connection = True
                return
            if callable(action):
                action()
            connection = http.client.HTTPConnection(target, timeout=30)
            try:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in _HOP_BY_HOP:
                        connection.putheader(name, value)
                connection.putheader("Content-Length", str(len(body)))
                connection.endheaders(body)
                answer = connection.getresponse()
                content = answer.read()
            finally:
                connection.close()
            if action is Fault.ANSWER_LOST:
                self.close_connection = True
                return
            headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in _HOP_BY_HOP]
            if self.command == "HEAD":
                headers.append(("Content-Length", answer.headers.get("Content-Length", "0")))
            self._answer(answer.status, headers, content, cut=action is Fault.HALF_AN_ANSWER)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 the base class's names

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        def _answer(
            self, status: int, headers: list[tuple[str, str]], content: bytes, *, cut: bool = False
        ) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            if self.command != "HEAD" and status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[: len(content) // 2] if cut else content)
            if cut:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        proxy = S3FaultProxy(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
