"""An HTTP server on 127.0.0.1 for as long as a context lasts."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from local_aws.server import HOST


class Handler(BaseHTTPRequestHandler):
    """A handler that keeps connections open and prints nothing. A subclass responds in `respond`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two packets
    timeout = 60

    def respond(self) -> None:
        """Respond to a request with any verb."""
        raise NotImplementedError

    def do_POST(self) -> None:
        self.respond()

    do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815 the base class looks for these names

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it so
        """Print nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing, because the error is that the client closed the connection."""


@contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler], *, port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Run a server and yield its base URL. Each connection has its own thread; with `tls` it uses HTTPS."""
    with _Server((HOST, port), handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://{HOST}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
