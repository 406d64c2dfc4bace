"""The proxy injects each fault as its name says, counts it, and changes nothing else."""

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from local_aws import loopback
from tests.safety.wire.proxy import NONE, FaultProxy, Plan, gateway_refusal
from tests.support.fault_relay import Exchange, Fault

BODY = b"0123456789" * 20
ANSWER = b"abcdefghij" * 20
WHOLE = ("PUT", "/key?a=b", BODY)


@dataclass
class Upstream:
    """A server that records the whole requests that it got."""

    endpoint: str = ""
    got: list[tuple[str, str, bytes]] = field(default_factory=list)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    class Handler(loopback.Handler):
        def respond(self) -> None:
            body = self.read_body()
            if len(body) == int(self.headers.get("Content-Length", 0)):
                server.got.append((self.command, self.path, body))
                self.answer(200, ANSWER, {"ETag": '"0123456789abcdef"'})

    server = Upstream()
    with loopback.serving(Handler) as server.endpoint:
        yield server


def ask(proxy: FaultProxy, method: str = "PUT", body: bytes | None = BODY, **headers: str) -> object:
    """Send a request; return the status of a whole response, or what is raised."""
    with closing(http.client.HTTPConnection(proxy.endpoint.removeprefix("http://"), timeout=10)) as client:
        try:
            client.request(
                method, "/key?a=b", body, {name.replace("_", "-"): headers[name] for name in headers}
            )
            answer = client.getresponse()
            assert answer.status != 200 or answer.read() == ANSWER
        except (OSError, http.client.HTTPException) as error:
            return type(error)
        return answer.status


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("fault", "answered", "told", "outcome"),
    [
        (Fault.NEVER_ARRIVES, None, None, http.client.RemoteDisconnected),
        (Fault.ANSWER_LOST, 200, None, http.client.RemoteDisconnected),
        (Fault.RESET, None, None, ConnectionResetError),
        (Fault.HALF_AN_ANSWER, 200, None, http.client.IncompleteRead),
        (Fault.SERVER_ERROR, None, 500, 500),
        (Fault.SERVER_ERROR_AFTERWARDS, 200, 500, 500),
        (Fault.SLOW_DOWN, None, 503, 503),
        (Fault.CONFLICT, None, 409, 409),
        (Fault.LATENCY, 200, 200, 200),
    ],
)
def test_each_fault_reaches_server_and_client_as_its_name_says(
    upstream: Upstream, fault: Fault, answered: int | None, told: int | None, outcome: object, seed: int
) -> None:
    heard: list[Exchange] = []
    with FaultProxy(upstream.endpoint, Plan({fault: 1.0}), seed, heard=heard.append) as proxy:
        assert ask(proxy, if_none_match="*") == outcome
        proxy.settle()
        assert proxy.happened == {fault: 1}
        assert proxy.faults == (fault is not Fault.LATENCY)
    assert upstream.got == ([WHOLE] if answered else [])
    (exchange,) = heard
    assert (exchange.answered, exchange.told) == (answered, told)
    assert BODY.startswith(exchange.body)
    assert (exchange.body == BODY) is (fault is not Fault.RESET)


@pytest.mark.parametrize("seed", range(5))
def test_half_the_headers_lack_the_empty_line_at_their_end(upstream: Upstream, seed: int) -> None:
    with FaultProxy(upstream.endpoint, Plan({Fault.HALF_THE_HEADERS: 1.0}), seed) as proxy:
        with closing(http.client.HTTPConnection(proxy.endpoint.removeprefix("http://"))) as client:
            client.request("PUT", "/key?a=b", BODY)
            assert client.sock
            received = client.sock.makefile("rb").read()
        assert received.startswith(b"HTTP/1.1 200")
        assert b"\r\n\r\n" not in received
    assert upstream.got == [WHOLE]


def test_what_cannot_meet_a_request_leaves_it_as_it_is(upstream: Upstream) -> None:
    with FaultProxy(upstream.endpoint, Plan({Fault.RESET: 1.0}), 1) as proxy:
        assert ask(proxy, "GET", None) == 200
        proxy.plan = Plan({Fault.CONFLICT: 1.0})
        assert ask(proxy) == 200
        proxy.plan = Plan({Fault.SLOW_DOWN: 1.0}, lambda _, request: request.method == "GET")
        assert (ask(proxy), ask(proxy, "GET", None)) == (200, 503)
        proxy.plan = NONE
        assert ask(proxy, "GET", None, expect="100-continue") == 200
        proxy.settle()
        assert proxy.happened == {Fault.SLOW_DOWN: 1}


def test_the_gateway_refuses_with_a_message() -> None:
    status, kind, body = gateway_refusal(Fault.SLOW_DOWN)
    assert (status, kind, list(json.loads(body))) == (503, "application/json", ["message"])


@pytest.mark.parametrize(("seconds", "happened"), [(0.3, Fault.LATE), (60, Fault.NEVER_ARRIVES)])
def test_a_late_request_arrives_after_its_connection_was_closed_or_never(
    upstream: Upstream, seconds: float, happened: Fault
) -> None:
    with FaultProxy(upstream.endpoint, Plan({Fault.LATE: 1.0}, late=(seconds, seconds)), 1) as proxy:
        assert ask(proxy) is http.client.RemoteDisconnected
        assert upstream.got == []
        assert proxy.faults == 0
        if happened is Fault.LATE:
            proxy.settle()
    assert proxy.happened == {happened: 1}
    assert upstream.got == [WHOLE] * (happened is Fault.LATE)


def test_who_does_not_wait_for_a_hanging_request_leaves_it_to_be_carried_out(upstream: Upstream) -> None:
    with FaultProxy(upstream.endpoint, Plan({Fault.HANG: 1.0}, hang=(0.5, 0.5)), 1) as proxy:
        with closing(http.client.HTTPConnection(proxy.endpoint.removeprefix("http://"), timeout=0.1)) as gone:
            gone.request("PUT", "/key?a=b", BODY)
            with pytest.raises(TimeoutError):
                gone.getresponse()
        with pytest.raises(TimeoutError):
            proxy.settle(0.1)
        proxy.settle()
        assert proxy.happened == {Fault.HANG: 1}
    assert upstream.got == [WHOLE]


def test_a_trickle_comes_to_its_end_without_a_pause_that_anybody_gives_up_in(upstream: Upstream) -> None:
    with FaultProxy(upstream.endpoint, Plan({Fault.TRICKLE: 1.0}, hang=(4.0, 4.0)), 1) as proxy:
        started = time.monotonic()
        assert ask(proxy) == 200
        assert 3.9 < time.monotonic() - started < 6.0
        assert proxy.happened == {Fault.TRICKLE: 1}


def test_the_same_seed_makes_the_same_choices(upstream: Upstream) -> None:
    def statuses(seed: int) -> list[object]:
        plan = Plan.evenly(0.6, Fault.SLOW_DOWN, Fault.SERVER_ERROR)
        with FaultProxy(upstream.endpoint, plan, seed) as proxy:
            return [ask(proxy) for _ in range(40)]

    first = statuses(1)
    assert set(first) == {200, 500, 503}
    assert statuses(1) == first
    assert statuses(2) != first


def test_a_server_that_is_gone_is_a_closed_connection_and_no_fault() -> None:
    with FaultProxy("http://127.0.0.1:1", NONE, seed=1) as proxy:
        assert ask(proxy) is http.client.RemoteDisconnected
        assert proxy.faults == 0
