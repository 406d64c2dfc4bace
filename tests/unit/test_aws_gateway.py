"""The stand-in for AWS's limits, in front of a server that records each request."""

import base64
import gzip
import http.client
import json
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from local_aws import loopback
from tests.support.aws_gateway import (
    MAX_INVOCATION,
    AwsGateway,
    answer_size,
    event_size,
)
from tests.support.pages import page

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Arrived:
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Upstream:
    """The proxied server: the requests that arrived, and its response."""

    address: str = ""
    arrived: list[Arrived] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    seen = Upstream()

    class Handler(loopback.Handler):
        def respond(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen.arrived.append(Arrived(self.command, self.path, headers, self.read_body()))
            self.answer(seen.status, seen.body, seen.headers)

    with loopback.serving(Handler) as seen.address:
        yield seen


@pytest.fixture
def gateway(upstream: Upstream) -> Iterator[AwsGateway]:
    with AwsGateway(f"{upstream.address}/stage/$default") as running:
        yield running


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


def send(
    gateway: AwsGateway, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] = JSON
) -> Response:
    host = gateway.address.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=20)
    try:
        connection.request(method, target, body or None, dict(headers))
        response = connection.getresponse()
        got = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, got, response.read())
    finally:
        connection.close()


def body_for_event(size: int, target: str, headers: Mapping[str, str]) -> bytes:
    """A body of plain letters that makes an event of this size when `send` sends it."""
    return b"x" * (size - event_size("POST", target, as_sent(headers), b"x") + 1)


def as_sent(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {**headers, "Host": "127.0.0.1:00000", "Accept-Encoding": "identity", "Content-Length": "0000000"}


CHUNKS = b"POST /unlocks/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
LENGTH = b"POST /a HTTP/1.1\r\nContent-Length:"


@pytest.mark.parametrize(
    ("sent", "status", "arrives"),
    [
        (CHUNKS + b"0\r\n\r\n", b"200", [b""]),  # as Go sends an empty POST
        (CHUNKS + b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", b"200", [b"abc0123456789"]),
        (CHUNKS + b"3\r\nabcd\r\n0\r\n\r\n", b"400", []),
        (CHUNKS + b"-1\r\n\r\n", b"400", []),
        (CHUNKS + b"{}", b"400", []),
        (CHUNKS + b"5\r\nab", b"400", []),
        (LENGTH + b" 100\r\n\r\n{}", None, []),
        (LENGTH + b" x\r\n\r\n{}", b"400", []),
        (LENGTH + b" -1\r\n\r\n{}", b"400", []),
        (LENGTH + b"\r\n\r\n{}", b"400", []),
        (LENGTH + b" 2, 2\r\n\r\n{}", b"400", []),
        (b"GET /\xff HTTP/1.1\r\n\r\n", b"400", []),
        (b"GET /\x7f HTTP/1.1\r\n\r\n", b"400", []),
    ],
)
def test_a_body_arrives_whole_or_not_at_all_and_a_malformed_request_never(
    gateway: AwsGateway, upstream: Upstream, sent: bytes, status: bytes | None, arrives: list[bytes]
) -> None:
    port = int(gateway.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        answer = client.makefile("rb").read()

    assert answer.split(b" ")[1:2] == ([status] if status else [])
    assert answer.endswith(b'{"message": "Bad Request"}') is (status == b"400")
    assert [each.body for each in upstream.arrived] == arrives


def test_the_biggest_event_passes_and_one_byte_more_is_413(gateway: AwsGateway, upstream: Upstream) -> None:
    biggest = body_for_event(MAX_INVOCATION, "/states/a", JSON)

    assert send(gateway, "POST", "/states/a", biggest).status == 200
    refused = send(gateway, "POST", "/states/a", biggest + b"x")

    assert (refused.status, json.loads(refused.body)) == (413, {"message": "Request Entity Too Large"})
    assert [arrived.body for arrived in upstream.arrived] == [biggest]


@pytest.mark.parametrize(
    ("letter", "passes", "headers"),
    [
        pytest.param("x", 6_280_000, JSON, id="a byte each"),
        pytest.param('"', 3_130_000, JSON, id="quotation"),
        pytest.param("é", 3_130_000, JSON, id="text beyond ASCII, as it is"),
        pytest.param("x", 4_700_000, {}, id="base64: no type"),
        pytest.param("x", 4_700_000, {"Content-Type": "application/octet-stream"}, id="base64: no text"),
        pytest.param("x", 4_700_000, {**JSON, "Content-Encoding": "gzip"}, id="base64: encoded"),
    ],
)
def test_a_body_counts_in_an_event_as_lambda_gets_it(
    gateway: AwsGateway, letter: str, passes: int, headers: Mapping[str, str]
) -> None:
    for length, status in ((passes, 200), (passes + 30_000, 413)):
        assert send(gateway, "POST", "/states/a", letter.encode() * length, headers).status == status


CLOUD = {"Content-Type": "application/vnd.api+json", "User-Agent": "go-tfe"}


@pytest.mark.parametrize("padding", [0, 9_800], ids=["few headers", "as many headers as may be"])
def test_the_outputs_of_cloud_end_at_the_size_that_the_documents_name(
    gateway: AwsGateway, padding: int
) -> None:
    target, headers = "/api/v2/workspaces/ws-a/state-versions", {**CLOUD, "X-Padding": "x" * padding}

    def announced(outputs: int) -> bytes:
        attributes = {"serial": 1, "json-state-outputs": base64.b64encode(b"x" * outputs).decode()}
        return json.dumps({"data": {"type": "state-versions", "attributes": attributes}}).encode()

    # Three bytes of outputs are four of the body, and three bytes of the body are four of the event.
    room = (MAX_INVOCATION - event_size("POST", target, as_sent(headers), b"x") + 4) // 4 * 3
    largest = (room - len(announced(0))) // 4 * 3

    assert send(gateway, "POST", target, announced(largest), headers).status == 200
    assert send(gateway, "POST", target, announced(largest + 3), headers).status == 413
    named = [re.findall(r"3\.\d+ MB", page(name).read_text()) for name in ("limits.md", "errors.md")]
    assert named == [[f"{largest // 10_000 / 100} MB"]] * 2


def test_an_answer_that_lambda_could_not_give_is_500(gateway: AwsGateway, upstream: Upstream) -> None:
    frame = answer_size(200, {"server": "", "date": ""}, b"")
    upstream.body = b"x" * (MAX_INVOCATION - frame - 500)
    assert send(gateway, "GET", "/states/a").body == upstream.body

    upstream.body = b"x" * MAX_INVOCATION
    refused = send(gateway, "GET", "/states/a")

    assert (refused.status, json.loads(refused.body)) == (500, {"message": "Internal Server Error"})


def test_an_encoded_answer_counts_as_base64(gateway: AwsGateway, upstream: Upstream) -> None:
    upstream.headers = {"Content-Encoding": "gzip"}
    upstream.body = gzip.compress(b"x" * 20_000_000)
    assert gzip.decompress(send(gateway, "GET", "/states/a").body) == b"x" * 20_000_000

    upstream.body = b"\0" * 4_720_000
    assert send(gateway, "GET", "/states/a").status == 500


def test_the_size_of_an_answer_that_is_mostly_quotation_is_that_of_base64() -> None:
    body = b'"' * 3_000_000

    assert answer_size(200, {}, body) - answer_size(200, {}, b"") == len(base64.b64encode(body))


@pytest.mark.parametrize("method", ["UNLOCK", "BREW"])
def test_a_verb_that_aws_does_not_pass_never_arrives(
    gateway: AwsGateway, upstream: Upstream, method: str
) -> None:
    assert send(gateway, method, "/states/a", b"{}").status == 400
    assert upstream.arrived == []


def test_headers_get_their_other_names_in_both_directions(gateway: AwsGateway, upstream: Upstream) -> None:
    upstream.headers = {"Content-MD5": "answer's", "WWW-Authenticate": "Basic"}

    answer = send(gateway, "POST", "/states/a", b"{}", {**JSON, "Content-MD5": "request's"})

    [arrived] = upstream.arrived
    assert "content-md5" not in arrived.headers
    assert arrived.headers["x-amzn-remapped-content-md5"] == "request's"
    assert arrived.headers["x-amzn-remapped-host"] == gateway.address.removeprefix("http://")
    assert not {"content-md5", "www-authenticate", "server"} & set(answer.headers)
    assert answer.headers["x-amzn-remapped-content-md5"] == "answer's"
    assert answer.headers["x-amzn-remapped-www-authenticate"] == "Basic"
    assert {"date", "x-amzn-remapped-date", "x-amzn-remapped-server"} <= set(answer.headers)

    gateway.renames_headers = False
    answer = send(gateway, "POST", "/states/a", b"{}", {**JSON, "Content-MD5": "request's"})
    assert upstream.arrived[-1].headers["content-md5"] == "request's"
    assert answer.headers["content-md5"] == "answer's"
