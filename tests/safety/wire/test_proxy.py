"""The proxy injects each fault as its name says, counts it, and changes nothing else."""

import http.client
import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.safety.wire.proxy import NONE, Exchange, Fault, FaultProxy, Plan, Side
from tests.support.waiting import wait_until

BODY = b"0123456789" * 20
ANSWER = b"abcdefghij" * 20


@dataclass
class Upstream:
    """A plain server that records the whole requests that it got."""

    endpoint: str
    got: list[tuple[str, str, bytes]] = field(default_factory=list)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            try:
                body = self.rfile.read(length)
            except ConnectionResetError:
                body = b""
            if len(body) < length:
                self.close_connection = True
                return
            server.got.append((self.command, self.path, body))
            self.send_response_only(204 if self.command == "DELETE" else 200)
            self.send_header("ETag", '"0123456789abcdef"')
            if self.command != "DELETE":
                self.send_header("Content-Length", str(len(ANSWER)))
            self.end_headers()
            if self.command not in ("HEAD", "DELETE"):
                self.wfile.write(ANSWER)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 the base class's names

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the base class's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        server = Upstream(f"http://127.0.0.1:{listening.server_address[1]}")
        thread = threading.Thread(target=listening.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


def ask(
    proxy: FaultProxy, method: str = "PUT", body: bytes | None = BODY, **headers: str
) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(proxy.endpoint.removeprefix("http://"), timeout=10)) as client:
        client.request(method, "/key?a=b", body, {name.replace("_", "-"): headers[name] for name in headers})
        answer = client.getresponse()
        return answer.status, answer.read()


def always(upstream: Upstream, fault: Fault, side: Side = Side.S3, **plan: Any) -> FaultProxy:
    return FaultProxy(upstream.endpoint, Plan({fault: 1.0}, **plan), seed=1, side=side)


WHOLE = ("PUT", "/key?a=b", BODY)


def test_without_a_plan_everything_passes_over_one_connection(upstream: Upstream) -> None:
    with FaultProxy(upstream.endpoint, NONE, seed=1) as proxy:
        address = proxy.endpoint.removeprefix("http://")
        with closing(http.client.HTTPConnection(address, timeout=10)) as client:
            for method in ("PUT", "HEAD", "GET", "DELETE", "POST"):
                client.request(method, "/key?a=b", BODY)
                answer = client.getresponse()
                assert answer.headers["ETag"] == '"0123456789abcdef"'
                assert answer.read() == (b"" if method in ("HEAD", "DELETE") else ANSWER)
        assert proxy.faults == 0
    assert [method for method, _, _ in upstream.got] == ["PUT", "HEAD", "GET", "DELETE", "POST"]


def test_a_body_that_waits_to_be_asked_for_is_asked_for_at_once(upstream: Upstream) -> None:
    with FaultProxy(upstream.endpoint, NONE, seed=1) as proxy:
        started = time.monotonic()
        assert ask(proxy, expect="100-continue") == (200, ANSWER)
        assert time.monotonic() - started < 0.5
    assert upstream.got == [WHOLE]


def test_a_request_that_never_arrives_is_not_seen_by_the_server(upstream: Upstream) -> None:
    with always(upstream, Fault.NEVER_ARRIVES) as proxy:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(proxy)
        proxy.settle()
        assert proxy.happened == {Fault.NEVER_ARRIVES: 1}
    assert upstream.got == []


def test_a_lost_answer_belongs_to_a_request_that_took_effect(upstream: Upstream) -> None:
    with always(upstream, Fault.ANSWER_LOST) as proxy:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(proxy)
        proxy.settle()
        assert proxy.happened == {Fault.ANSWER_LOST: 1}
    assert upstream.got == [WHOLE]


def test_a_reset_comes_in_the_middle_of_a_body_of_which_the_server_gets_a_part(upstream: Upstream) -> None:
    with always(upstream, Fault.RESET) as proxy:
        with pytest.raises(ConnectionResetError):
            ask(proxy)
        proxy.settle()
        assert proxy.happened == {Fault.RESET: 1}
        assert ask(proxy, "GET", None) == (200, ANSWER)  # there is no body to be cut
        assert proxy.faults == 1
    assert upstream.got == [("GET", "/key?a=b", b"")]


@pytest.mark.parametrize("seed", range(5))
def test_half_an_answer_has_its_headers_and_a_part_of_its_body(upstream: Upstream, seed: int) -> None:
    with FaultProxy(upstream.endpoint, Plan({Fault.HALF_AN_ANSWER: 1.0}), seed) as proxy:
        with pytest.raises(http.client.IncompleteRead) as raised:
            ask(proxy)
        assert ANSWER.startswith(raised.value.partial)
        proxy.settle()
        assert proxy.happened == {Fault.HALF_AN_ANSWER: 1}
    assert upstream.got == [WHOLE]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD"])
def test_half_the_headers_lack_the_empty_line_at_their_end(
    upstream: Upstream, seed: int, method: str
) -> None:
    with FaultProxy(upstream.endpoint, Plan({Fault.HALF_THE_HEADERS: 1.0}), seed) as proxy:
        address = urlsplit(proxy.endpoint)
        with socket.create_connection((address.hostname, address.port), timeout=10) as client:
            client.sendall(f"{method} /key HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            content = client.makefile("rb").read()
        assert content.startswith(b"HTTP/1.1 20")
        assert b"\r\n\r\n" not in content
        proxy.settle()
        assert proxy.happened == {Fault.HALF_THE_HEADERS: 1}
    assert len(upstream.got) == 1


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (Fault.SERVER_ERROR, 500, "InternalError"),
        (Fault.SERVER_ERROR_AFTERWARDS, 500, "InternalError"),
        (Fault.SLOW_DOWN, 503, "SlowDown"),
    ],
)
def test_refusals_look_as_the_server_behind_would_make_them(
    upstream: Upstream, fault: Fault, status: int, code: str
) -> None:
    for side in Side:
        with always(upstream, fault, side) as proxy:
            answered, body = ask(proxy)
            assert answered == status
            if side is Side.S3:
                assert f"<Code>{code}</Code>".encode() in body
            else:
                assert list(json.loads(body)) == ["message"]
            assert ask(proxy, "HEAD", None) == (status, b"")
            proxy.settle()
            assert proxy.happened == {fault: 2}
    took_effect = fault is Fault.SERVER_ERROR_AFTERWARDS
    assert [method for method, _, _ in upstream.got] == (["PUT", "HEAD"] * 2 if took_effect else [])


def test_a_conflict_meets_conditional_writes_to_s3_only(upstream: Upstream) -> None:
    with always(upstream, Fault.CONFLICT) as proxy:
        assert ask(proxy, if_none_match="*")[0] == 409
        assert ask(proxy)[0] == 200
        assert ask(proxy, "GET", None, if_none_match="*")[0] == 200
        proxy.settle()
        assert proxy.happened == {Fault.CONFLICT: 1}
    with always(upstream, Fault.CONFLICT, Side.API) as proxy:
        assert ask(proxy, if_none_match="*")[0] == 200
        assert proxy.faults == 0


def test_a_late_request_arrives_after_its_connection_was_closed(upstream: Upstream) -> None:
    with always(upstream, Fault.LATE, late=(0.3, 0.3)) as proxy:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(proxy)
        assert upstream.got == []
        assert proxy.faults == 0
        proxy.settle()
        assert proxy.happened == {Fault.LATE: 1}
        assert upstream.got == [WHOLE]


def test_a_late_request_that_does_not_come_before_the_end_never_arrives(upstream: Upstream) -> None:
    with always(upstream, Fault.LATE, late=(60, 60)) as proxy, pytest.raises(http.client.RemoteDisconnected):
        ask(proxy)
    assert proxy.happened == {Fault.NEVER_ARRIVES: 1}
    assert upstream.got == []


def test_nothing_is_late_between_client_and_api(upstream: Upstream) -> None:
    with always(upstream, Fault.LATE, Side.API) as proxy:
        assert ask(proxy) == (200, ANSWER)
        assert proxy.faults == 0


def test_latency_lasts_as_long_as_asked_and_is_no_fault(upstream: Upstream) -> None:
    with always(upstream, Fault.LATENCY, latency=(0.2, 0.3)) as proxy:
        started = time.monotonic()
        assert ask(proxy) == (200, ANSWER)
        assert 0.2 <= time.monotonic() - started < 1.0
        proxy.settle()
        assert proxy.happened == {Fault.LATENCY: 1}
        assert proxy.faults == 0


def test_who_does_not_wait_for_a_hanging_request_leaves_it_to_be_carried_out(upstream: Upstream) -> None:
    with always(upstream, Fault.HANG, hang=(0.5, 0.5)) as proxy:
        with closing(http.client.HTTPConnection(proxy.endpoint.removeprefix("http://"), timeout=0.1)) as gone:
            gone.request("PUT", "/key?a=b", BODY)
            with pytest.raises(TimeoutError):
                gone.getresponse()
        proxy.settle()
        assert proxy.happened == {Fault.HANG: 1}
    assert upstream.got == [WHOLE]


def test_a_trickle_comes_to_its_end_without_a_pause_that_anybody_gives_up_in(upstream: Upstream) -> None:
    with always(upstream, Fault.TRICKLE, hang=(4.0, 4.0)) as proxy:
        started = time.monotonic()
        address = proxy.endpoint.removeprefix("http://")
        with closing(http.client.HTTPConnection(address, timeout=3)) as client:
            client.request("PUT", "/key?a=b", BODY)
            assert client.getresponse().read() == ANSWER
        assert 3.9 < time.monotonic() - started < 5.0
        assert proxy.happened == {Fault.TRICKLE: 1}


@pytest.mark.parametrize(
    ("fault", "answered", "told"),
    [
        (Fault.NEVER_ARRIVES, None, None),
        (Fault.ANSWER_LOST, 200, None),
        (Fault.HALF_AN_ANSWER, 200, None),
        (Fault.SERVER_ERROR, None, 500),
        (Fault.SERVER_ERROR_AFTERWARDS, 200, 500),
        (Fault.LATENCY, 200, 200),
    ],
)
def test_of_every_request_it_is_known_what_the_server_said_and_what_the_client_got(
    upstream: Upstream, fault: Fault, answered: int | None, told: int | None
) -> None:
    heard: list[Exchange] = []
    with FaultProxy(upstream.endpoint, Plan({fault: 1.0}), 1, heard=heard.append) as proxy:
        with suppress(http.client.HTTPException):
            ask(proxy)
        proxy.settle()
    assert heard == [Exchange("PUT", "/key?a=b", BODY, answered, told)]


def test_only_what_the_plan_names_goes_wrong(upstream: Upstream) -> None:
    plan = Plan.always(Fault.SLOW_DOWN, lambda method, path: (method, path) == ("PUT", "/key"))
    with FaultProxy(upstream.endpoint, plan, seed=1) as proxy:
        assert ask(proxy, "GET", None)[0] == 200
        assert ask(proxy)[0] == 503
        proxy.plan = NONE
        assert ask(proxy)[0] == 200


def test_the_same_seed_makes_the_same_choices(upstream: Upstream) -> None:
    def statuses(seed: int) -> list[int]:
        plan = Plan({Fault.SLOW_DOWN: 0.3, Fault.SERVER_ERROR: 0.3})
        with FaultProxy(upstream.endpoint, plan, seed) as proxy:
            return [ask(proxy)[0] for _ in range(40)]

    first = statuses(1)
    assert set(first) == {200, 500, 503}
    assert statuses(1) == first
    assert statuses(2) != first


def test_chances_above_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 1"):
        Plan({Fault.SLOW_DOWN: 0.6, Fault.CONFLICT: 0.6})


def test_a_server_that_is_gone_is_a_closed_connection_and_no_fault() -> None:
    with FaultProxy("http://127.0.0.1:1", NONE, seed=1) as proxy:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(proxy)
        assert proxy.faults == 0


def test_the_end_does_not_wait_for_what_is_under_way(upstream: Upstream) -> None:
    gone: list[BaseException] = []

    def wait_long() -> None:
        try:
            ask(proxy)
        except http.client.RemoteDisconnected as error:
            gone.append(error)

    with always(upstream, Fault.HANG, hang=(60, 60)) as proxy:
        thread = threading.Thread(target=wait_long)
        thread.start()
        wait_until(lambda: proxy.under_way == 1, "the request has come")
        with pytest.raises(TimeoutError):
            proxy.settle(0.1)
        ended = time.monotonic()
    thread.join()
    assert time.monotonic() - ended < 2
    assert len(gone) == 1
    assert proxy.faults == 0


def test_it_adds_a_millisecond_at_most(upstream: Upstream) -> None:
    def median(address: str) -> float:
        seconds = []
        with closing(http.client.HTTPConnection(address, timeout=10)) as client:
            for _ in range(300):
                started = time.perf_counter()
                client.request("PUT", "/key", BODY)
                client.getresponse().read()
                seconds.append(time.perf_counter() - started)
        return statistics.median(seconds)

    with FaultProxy(upstream.endpoint, NONE, seed=1) as proxy:
        direct = median(upstream.endpoint.removeprefix("http://"))
        proxied = median(proxy.endpoint.removeprefix("http://"))
    assert proxied - direct < 0.002, f"{direct * 1000:.2f} ms, {proxied * 1000:.2f} ms"
