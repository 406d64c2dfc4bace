"""Connections to S3 that S3 has closed while they were idle, and requests that open none."""

import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import SimpleNamespace
from typing import ClassVar

import boto3
import pytest
from botocore.awsrequest import AWSHTTPConnection

from benchmarks.relay import Passed, Relay
from holdfast.access import Caller, Grant, Role
from holdfast.s3 import retry
from holdfast.s3.budget import Budget
from holdfast.s3.connections import THREAD
from holdfast.s3.objects import IfAbsent, Stored
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store
from local_aws import loopback
from local_aws.server import Certificates
from tests.support import fault_relay
from tests.support.environment import set_environment
from tests.support.events import Context, request, sign_in
from tests.support.fault_relay import Exchange, Fault, Injected
from tests.support.waiting import HANGS

READER = Caller("ada", (Grant(Role.READER, ("*",)),))


class Accepting(loopback.Handler):
    """`before` has what is called before each response."""

    before: ClassVar[Sequence[Callable[[], object]]] = ()

    def respond(self) -> None:
        self.read_body()
        for act in self.before:
            act()
        self.answer(200, headers={"ETag": '"1"', "Date": "Fri, 02 Jan 2026 03:04:05 GMT"})


@pytest.fixture
def s3() -> Iterator[str]:
    """The address of an S3 that accepts everything."""
    with loopback.serving(Accepting) as address:
        yield address


def store(address: str) -> Store:
    client = connect(boto3.Session("test", "test", region_name="us-east-1"), endpoint_url=address)
    return Store(client, "bucket", "123456789012", Budget.seconds(10))


def lock(s3: Store) -> None:
    assert isinstance(s3.write("locks/a", b"{}", IfAbsent(), metadata={}), Stored)


def test_a_connection_that_s3_has_closed_costs_a_connection_and_no_request(s3: str) -> None:
    with Relay(s3) as relay:
        through_relay = store(relay.endpoint)
        for _ in range(2):
            lock(through_relay)
        assert relay.take() == Passed(connections=1, requests=2)
        relay.disconnect()
        lock(through_relay)
        assert relay.take() == Passed(connections=1, requests=1)
        assert through_relay.budget.requests == ["PutObject"] * 3
        assert through_relay.budget.unconfirmed == []


@pytest.mark.parametrize(("lost", "pauses"), [(1, 0), (2, 1)])
def test_a_request_on_a_closed_connection_is_sent_again_at_once_and_then_after_a_pause(
    s3: str, lost: int, pauses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: list[Injected | None] = [None, *[Injected(Fault.NEVER_ARRIVES)] * lost, None]
    arrived: list[Exchange] = []
    slept: list[float] = []
    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=time.monotonic, sleep=slept.append))
    with fault_relay.Relay(s3, lambda _: faults.pop(0), heard=arrived.append) as relay:
        through_relay = store(relay.endpoint)
        for _ in range(2):
            lock(through_relay)
    assert [exchange.answered for exchange in arrived] == [200, *[None] * lost, 200]
    assert through_relay.budget.unconfirmed == ["PutObject"] * lost
    assert len(slept) == pauses


def test_a_second_connection_is_opened_beside_a_request_and_then_used(s3: str) -> None:
    with Relay(s3) as relay:
        through_relay = store(relay.endpoint)
        through_relay.open_second_connection()
        assert relay.take() == Passed()  # a new client's first connection comes first
        lock(through_relay)
        assert relay.take() == Passed(connections=1, requests=1)
        relay.disconnect()
        for connections in (2, 0):
            assert lock_and_open_another(through_relay) == connections
            lock_twice_at_once(through_relay)
            assert relay.take() == Passed(connections=connections, requests=3)
        assert through_relay.budget.unconfirmed == []


@pytest.mark.parametrize("tickets", [0, 2])
def test_a_second_connection_with_tls_is_used_whether_or_not_the_server_sends_session_tickets(
    tickets: int, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificates.ca))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.cert, certificates.key)
    tls.num_tickets = tickets
    connected: list[None] = []

    class Counting(Accepting):
        def setup(self) -> None:
            connected.append(None)
            super().setup()

    with loopback.serving(Counting, tls=tls) as address:
        over_tls = store(address)
        lock(over_tls)
        over_tls.open_second_connection()
        end_threads()
        time.sleep(0.3)  # a ticket that nobody has waited for arrives
        lock_twice_at_once(over_tls)
        assert len(connected) == 2


def test_where_no_thread_can_start_the_first_connection_stays(s3: str) -> None:
    with Relay(s3) as relay:
        through_relay = store(relay.endpoint)
        lock(through_relay)
        with pytest.MonkeyPatch.context() as exhausted:
            exhausted.setattr(threading.Thread, "start", no_thread)
            for _ in range(20):  # more often than a client keeps connections
                through_relay.open_second_connection()
        lock(through_relay)
        assert relay.take() == Passed(connections=1, requests=2)


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_second_connection_that_fails_leaves_the_next_requests_alone(s3: str) -> None:
    with Relay(s3) as relay:
        through_relay = store(relay.endpoint)
        lock(through_relay)
        with pytest.MonkeyPatch.context() as unreachable:
            unreachable.setattr(AWSHTTPConnection, "connect", refused)
            through_relay.open_second_connection()
            end_threads()
        lock_twice_at_once(through_relay)
        assert relay.take() == Passed(connections=2, requests=3)


def refused(_: AWSHTTPConnection) -> None:
    raise ConnectionRefusedError


def end_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join()


def lock_and_open_another(s3: Store) -> int:
    """Send a request, and open the second connection after its arrival and before its response.

    Return how many connections the client has opened. The relay counts one when it accepts it, which may be
    after the client's `connect` has returned, so it has counted surely those with a request.
    """
    arrived = threading.Event()
    opened: list[AWSHTTPConnection] = []
    connect_at_once = AWSHTTPConnection.connect

    def connect_later(connection: AWSHTTPConnection) -> None:
        if threading.current_thread().name == THREAD:
            assert arrived.wait(HANGS)
        connect_at_once(connection)
        opened.append(connection)

    def open_another() -> None:
        arrived.set()
        end_threads()

    with pytest.MonkeyPatch.context() as beside:
        beside.setattr(AWSHTTPConnection, "connect", connect_later)
        beside.setattr(Accepting, "before", [open_another])
        s3.open_second_connection()
        lock(s3)
    return len(opened)


def lock_twice_at_once(s3: Store) -> None:
    """Send two requests, neither of which gets a response before the other has arrived."""
    with pytest.MonkeyPatch.context() as holding, ThreadPoolExecutor(2) as both:
        holding.setattr(Accepting, "before", [threading.Barrier(2, timeout=HANGS).wait])
        for sent in [both.submit(lock, s3) for _ in range(2)]:
            sent.result()


def test_a_request_that_is_refused_opens_no_connection(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Relay(s3) as relay:
        set_environment(monkeypatch, AWS_ENDPOINT_URL_S3=relay.endpoint)
        handles = {}
        for function in ("authorizer", "terraform_http"):
            monkeypatch.delitem(sys.modules, f"{function}.handler", raising=False)
            handles[function] = import_module(f"{function}.handler").handle
            monkeypatch.delitem(sys.modules, f"{function}.handler")  # it has made-up settings
        acquire = request("PUT", "/locks/{name+}", "a", caller=READER, body='{"ID": "1"}')
        assert handles["terraform_http"](acquire, Context())["statusCode"] == 403
        assert handles["authorizer"](sign_in("Basic x"), Context()) == {"isAuthorized": False}
        assert relay.take() == Passed()
