"""An S3 of this process that answers at once, so that a function's own time is what is measured."""

import http.server
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from local_aws.server import Certificates

BUCKET: Final = "benchmark"


@contextmanager
def tiny_s3(objects: Mapping[str, bytes], tls: Certificates) -> Iterator[str]:
    """Serve some objects over HTTPS, take every other and keep none, for as long as the context lasts.

    Args:
        objects: by key.
        tls: the server's certificate.

    Yields:
        The base URL, without a trailing slash.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are two packets

        def do_GET(self) -> None:
            self._answer(objects[Path(self.path.partition("?")[0]).relative_to(f"/{BUCKET}").as_posix()])

        def do_PUT(self) -> None:
            if "Content-Length" in self.headers:
                self.rfile.read(int(self.headers["Content-Length"]))
            else:  # of older versions (--beside) the SDK sends a checksum after the body, in chunks
                while size := int(self.rfile.readline(), 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name is the base class's
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.cert, tls.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
