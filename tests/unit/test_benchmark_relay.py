"""The benchmark's relay: what it passes on, counts and delays."""

import http.client
import random
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest

from benchmarks import latency
from benchmarks.relay import Passed, Relay
from local_aws import loopback


def test_a_relay_passes_everything_on_and_counts_it() -> None:
    sent = random.Random(1).randbytes(3_000_000)  # noqa: S311 the same in every run

    class Echo(loopback.Handler):
        def respond(self) -> None:
            self.answer(200, self.read_body())

    with loopback.serving(Echo) as address, Relay(address, 0.001) as relay:
        client = http.client.HTTPConnection(urlsplit(relay.endpoint).netloc, timeout=10)
        for body in (sent, b"short"):
            client.request("PUT", "/", body)
            assert client.getresponse().read() == body
        assert relay.take() == Passed(connections=1, requests=2)
        relay.disconnect()
        assert client.sock.recv(1) == b""
        client.close()


@pytest.mark.parametrize(
    ("method", "path", "condition", "seconds"),
    [
        ("GET", "/bucket/key", {}, 0.02),
        ("PUT", "/bucket/key", {}, 0.03),
        ("PUT", "/bucket/key", {"if-match": '"1"'}, 0.06),
        ("DELETE", "/bucket/key", {}, 0.03),
        ("PUT", "/_aws/execute-api/1/locks/a", {}, 0.0),
    ],
)
def test_a_response_takes_the_latency_of_its_method(
    method: str, path: str, condition: Mapping[str, str], seconds: float
) -> None:
    class Empty(loopback.Handler):
        def respond(self) -> None:
            self.read_body()
            self.answer(200)

    with (
        loopback.serving(Empty) as address,
        Relay(address, 0.01, connecting=0.05, latency=latency.of) as relay,
    ):
        client = http.client.HTTPConnection(urlsplit(relay.endpoint).netloc, timeout=10)
        for waiting in (0.06 + seconds, 0.01 + seconds):
            started = time.perf_counter()
            client.request(method, path, b"body", dict(condition))
            client.getresponse().read()
            assert time.perf_counter() - started >= waiting
            assert relay.waiting(relay.take()) == pytest.approx(waiting)
        client.close()
