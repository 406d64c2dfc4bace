"""The API of a team in this process: the command's requests go to the handlers of the functions."""

import base64
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from holdfast.access import Caller
from holdfast_cli.api import http
from holdfast_cli.api.response import Response
from tests.support.events import Context, cloud_request, manage_request, request

ADDRESS = "https://api.example.com"

Handle = Callable[[dict[str, Any], Context], dict[str, Any]]


@dataclass
class InProcessApi:
    """Takes the place of `http.send`. Requests to other hosts than `ADDRESS` are sent.

    `before` and `after` are called around each request to the API, and may raise.
    """

    handlers: Mapping[str, Handle]
    caller: Caller
    before: Callable[[str, str], None] = lambda *_: None
    after: Callable[[str, str], None] = lambda *_: None
    sent: list[tuple[str, str]] = field(default_factory=list)

    def send(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"", **more: Any
    ) -> Response:
        if not url.startswith(ADDRESS):
            return _SEND(method, url, headers=headers, body=body, **more)
        parts = urlsplit(url)
        path = unquote(parts.path)
        self.before(method, path)
        self.sent.append((method, path))
        handle, event = self._event(method, path, dict(parse_qsl(parts.query)), headers, body)
        answer = handle(event, Context())
        content = answer["body"].encode()
        if answer.get("isBase64Encoded"):
            content = base64.b64decode(content)
        answered = {name.lower(): value for name, value in answer.get("headers", {}).items()}
        if answered.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        self.after(method, path)
        return Response(answer["statusCode"], content, answered)

    def _event(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> tuple[Handle, dict[str, Any]]:
        folder, _, rest = path.removeprefix("/").partition("/")
        lower = {name.lower(): value for name, value in headers.items()}
        common: dict[str, Any] = {"caller": self.caller, "query": query, "headers": lower}
        if body:
            is_text = lower.get("content-type") == "application/json" and "content-encoding" not in lower
            common |= {
                "body": body.decode() if is_text else base64.b64encode(body).decode(),
                "is_base64": not is_text,
            }
        match folder:
            case "manage":
                return self.handlers["management"], manage_request(method, rest.removeprefix("v1/"), **common)
            case "api":
                return self.handlers["cloud"], cloud_request(method, rest.removeprefix("v2/"), **common)
            case _:
                event = request(method, f"/{folder}/{{name+}}", rest, path=path, **common)
                return self.handlers["terraform_http"], event


_SEND = http.send
