"""An S3 in this process that responds at once, so that only a function's own time is measured."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from local_aws import loopback
from local_aws.server import Certificates

BUCKET: Final = "benchmark"


@contextmanager
def tiny_s3(objects: Mapping[str, bytes], tls: Certificates) -> Iterator[str]:
    """Serve some objects over HTTPS, and accept writes without storing them, while the context lasts.

    Args:
        objects: the contents by key.
        tls: the server's certificate.

    Yields:
        The base URL.
    """

    class Handler(loopback.Handler):
        def respond(self) -> None:
            body = b""
            if self.command == "GET":
                key = Path(self.path.partition("?")[0]).relative_to(f"/{BUCKET}").as_posix()
                body = objects[key]
            elif "Content-Length" in self.headers:
                self.read_body()
            else:  # the SDK of older versions (--beside) sends chunks, and a checksum after the body
                while size := int(self.rfile.readline(), 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
            self.answer(200, body, {"ETag": '"1"', "Last-Modified": "Fri, 02 Jan 2026 03:04:05 GMT"})

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.cert, tls.key)
    with loopback.serving(Handler, tls=context) as address:
        yield address
