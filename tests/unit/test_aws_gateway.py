"""The stand-in for AWS's limits, in front of a server that shows what arrives there."""

import base64
import gzip
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from local_aws import loopback
from tests.support.aws_gateway import (
    MAX_HEAD,
    MAX_INVOCATION,
    MAX_PAYLOAD,
    AwsGateway,
    answer_size,
    event_size,
)

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Arrived:
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Upstream:
    """What the proxied server got, and what it answers."""

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
    """A body of plain letters with which the event is that large, sent as `send` does."""
    sent = {**headers, "Host": "127.0.0.1:00000", "Accept-Encoding": "identity", "Content-Length": "0000000"}
    empty = event_size("POST", target, sent, b"x")
    return b"x" * (size - empty + 1)


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


@pytest.mark.parametrize(
    ("method", "body", "headers", "status", "message"),
    [
        pytest.param(
            *("POST", b"x" * (MAX_PAYLOAD + 1), JSON, 413, "Request Entity Too Large"), id="more than 10 MB"
        ),
        pytest.param(
            *("GET", b"", {"X-Long": "x" * MAX_HEAD}, 431, "Request Header Fields Too Large"),
            id="a head above 10,240 bytes",
        ),
        *((verb, b"{}", JSON, 400, "Bad Request") for verb in ("LOCK", "UNLOCK", "BREW")),
    ],
)
def test_what_aws_does_not_pass_never_arrives(
    gateway: AwsGateway,
    upstream: Upstream,
    method: str,
    body: bytes,
    headers: Mapping[str, str],
    status: int,
    message: str,
) -> None:
    answer = send(gateway, method, "/states/a", body, headers)

    assert (answer.status, json.loads(answer.body)) == (status, {"message": message})
    assert upstream.arrived == []
    assert send(gateway, "GET", "/states/a", headers={"X-Long": "x" * (MAX_HEAD - 200)}).status == 200


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


def test_a_delete_can_lose_its_body_and_keeps_its_announcement(
    gateway: AwsGateway, upstream: Upstream
) -> None:
    with gateway.dropping_delete_bodies():
        send(gateway, "DELETE", "/locks/a", b'{"ID": "1"}', {**JSON, "Content-MD5": "its"})
        send(gateway, "PUT", "/locks/a", b'{"ID": "1"}')
    send(gateway, "DELETE", "/locks/a", b'{"ID": "1"}')

    assert [arrived.body for arrived in upstream.arrived] == [b"", b'{"ID": "1"}', b'{"ID": "1"}']
    assert upstream.arrived[0].headers["x-amzn-remapped-content-md5"] == "its"


def test_what_is_recorded_is_what_passed_meanwhile(gateway: AwsGateway, upstream: Upstream) -> None:
    upstream.status = 409
    send(gateway, "GET", "/before")
    with gateway.recording() as exchanges:
        send(gateway, "PUT", "/locks/a", b'{"ID": "1"}')
        send(gateway, "LOCK", "/states/a")
    send(gateway, "GET", "/after")

    assert [(seen.method, seen.target, seen.body, seen.status) for seen in exchanges] == [
        ("PUT", "/locks/a", b'{"ID": "1"}', 409),
        ("LOCK", "/states/a", b"", 400),
    ]


def test_a_held_write_arrives_when_it_is_released_though_its_client_is_gone(
    gateway: AwsGateway, upstream: Upstream
) -> None:
    with gateway.recording() as exchanges, gateway.holding_writes() as held:
        host, _, port = gateway.address.removeprefix("http://").partition(":")
        client = http.client.HTTPConnection(host, int(port), timeout=20)
        client.request("POST", "/states/a", b"late")
        assert held.arrived.wait(10)
        client.close()
        assert send(gateway, "GET", "/states/a").status == 200
        assert send(gateway, "POST", "/unlocks/a", b"{}").status == 200
        assert [arrived.method for arrived in upstream.arrived] == ["GET", "POST"]

        held.released.set()
        assert held.passed.wait(10)

    assert upstream.arrived[-1].body == b"late"
    assert [(seen.is_write, seen.status) for seen in exchanges] == [(False, 200), (False, 200), (True, 200)]


def test_the_answer_to_one_write_is_lost_and_to_its_repeat_is_not(
    gateway: AwsGateway, upstream: Upstream
) -> None:
    commit = "/api/v2/state-versions/upload-WyJhIl0"
    with gateway.losing_the_answer_to_a_write():
        assert send(gateway, "GET", "/api/v2/state-versions/sv-WyJhIl0").status == 200
        with pytest.raises(http.client.RemoteDisconnected):
            send(gateway, "GET", commit)
        assert send(gateway, "GET", commit).status == 200

    assert [arrived.target for arrived in upstream.arrived].count(f"/stage/$default{commit}") == 2
