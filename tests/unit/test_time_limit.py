"""An authentication ends within 8.5 seconds of the start of the init that its request waits for."""

import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, Final

import pytest

from holdfast.errors import OutcomeUnknown
from holdfast.identity import time_limit, trust
from holdfast.identity.authentication import Authenticated, Denied
from holdfast.identity.credentials import Credentials, IdToken, SessionCredentials, TokenCredentials
from holdfast.identity.oidc import keys
from holdfast.identity.oidc.fetch import IssuerUnreachable
from holdfast.identity.sign_in import sign_in
from holdfast.identity.time_limit import SECONDS, TimeLimit
from holdfast.s3.budget import Budget
from holdfast.s3.store import Store
from holdfast_cdk.functions import FUNCTIONS
from local_aws import loopback
from tests.support import events
from tests.support.environment import set_environment
from tests.support.events import ANYWHERE
from tests.support.id_tokens import ISSUER, RSA, claims, record, signed
from tests.support.pages import page, text

ROOT: Final = Path(__file__).parents[2]
(TIMEOUT,) = (spec.seconds for spec in FUNCTIONS if spec.name == "authorizer")
LATE: Final = 0.4
"""Seconds by which a busy machine may be late."""

BY_TOKEN: Final = TokenCredentials("a1" * 10, "x")
BASIC: Final = f"Basic {base64.b64encode(f'{BY_TOKEN.token_id}:x'.encode()).decode()}"
BY_SESSION: Final = SessionCredentials("session-" + "a" * 20, "x")
PUBLISHED: Final = json.dumps(
    {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/k", "keys": [RSA.as_dict(private=False)]}
).encode()
"""An issuer's configuration and its keys in one document."""
# Its time is that of the import, and the whole suite can take longer than a usual ID token lasts.
BY_ID_TOKEN: Final = IdToken(signed(RSA, claims(exp=int(time.time()) + 86_400)))


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3 whose buckets differ: `silent`, `second` (silent at first), and healthy ones."""
    over, asked = Event(), set()

    class Handler(loopback.Handler):
        def respond(self) -> None:
            _, bucket, key = self.path.split("/", 2)
            is_first = self.path not in asked
            asked.add(self.path)
            if bucket == "silent" or (bucket.startswith("second") and is_first):
                over.wait(20)
                self.close_connection = True
            elif key == trust.KEY:
                head = {"ETag": '"x"', "Last-Modified": self.date_time_string()}
                self.answer(200, trust.Records((record(),)).to_json(), head)
            else:
                self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    with loopback.serving(Handler) as address:
        yield address
        over.set()


@pytest.fixture
def handler(s3: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    set_environment(monkeypatch, AWS_ENDPOINT_URL_S3=s3)
    monkeypatch.delitem(sys.modules, "authorizer.handler", raising=False)
    return import_module("authorizer.handler")


REQUESTS: Final[tuple[tuple[float, str, Credentials, type[object]], ...]] = (
    *((init, "healthy", BY_SESSION, Denied) for init in (0, 3, 6)),
    *((init, f"second-{init}", BY_TOKEN, Denied) for init in (0, 3, 5.5)),
    (3, "second-of-two", BY_SESSION, Denied),
    *((init, "silent", BY_SESSION, OutcomeUnknown) for init in (0, 3, 6, 9)),
    *((init, "issuer", BY_ID_TOKEN, IssuerUnreachable) for init in (0, 3, 6)),
)
"""Seconds of the init, bucket, credentials, and what has to come of the request that waits for the init."""


def test_with_any_init_and_any_silence_the_end_comes_in_time_and_no_healthy_request_is_refused(
    handler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    never, client = Event(), vars(handler)["_function"].s3
    issuers = keys.Issuers(fetch=lambda _: bytes(never.wait(20)))
    monkeypatch.setattr(keys, "process_issuers", issuers)
    Store(client, "healthy", "", Budget.seconds(5)).read("x")  # the SDK loads what it needs

    def outcome(
        init: float, bucket: str, credentials: Credentials, expected: type[object]
    ) -> tuple[object, float]:
        began = time.monotonic() - init
        ends = TimeLimit(began).ends(TIMEOUT)
        try:
            store = Store(client, bucket, "", Budget(ends))
            result: object = sign_in(credentials, store, ANYWHERE, ends)
        except (OutcomeUnknown, IssuerUnreachable) as error:
            result = error
        return isinstance(result, expected), time.monotonic() - began < max(SECONDS, init) + LATE

    with ThreadPoolExecutor(len(REQUESTS)) as at_once:
        ended = [at_once.submit(outcome, *request) for request in REQUESTS]
    never.set()
    for request, future in zip(REQUESTS, ended, strict=True):
        assert future.result() == (True, True), request


@pytest.mark.parametrize(("init", "bucket"), [(6, "healthy"), (3, "second-handler"), (8, "silent")])
def test_the_handler_counts_the_init_and_logs_that_the_time_was_over(
    handler: Any, monkeypatch: pytest.MonkeyPatch, init: float, bucket: str
) -> None:
    function, logged = vars(handler)["_function"], []
    function.bucket = bucket
    monkeypatch.setattr(handler.log, "error", lambda event, extra: logged.append((event, extra["error"])))
    began = time.monotonic()
    monkeypatch.setattr(handler, "_time_limit", TimeLimit(began - init))

    try:
        answer = handler.handle(events.sign_in(BASIC), events.Context(TIMEOUT * 1000))
    except OutcomeUnknown:
        answer = None

    assert time.monotonic() - began < SECONDS - init + LATE
    assert (answer, logged) == (
        (None, [("sign_in.failed", "Undecided")]) if bucket == "silent" else ({"isAuthorized": False}, [])
    )


@pytest.mark.parametrize(
    ("init", "idle", "left", "seconds"),
    [
        (None, 0, 10, SECONDS),  # provisioned concurrency, or the local AWS
        (3, 0, 10, SECONDS - 3),
        (9, 0, 10, SECONDS - 9),
        (3, 0.9, 10, SECONDS - 3.9),
        (9, 30, 10, SECONDS),  # nobody waited: Lambda started the process ahead of a request
        (3, 0, 5, 4),  # Lambda stops the function before the gateway gives up
    ],
)
def test_the_first_request_has_what_the_init_left_and_each_later_one_all(
    monkeypatch: pytest.MonkeyPatch, init: float | None, idle: float, left: float, seconds: float
) -> None:
    now = 1000.0
    monkeypatch.setattr(time_limit, "time", SimpleNamespace(monotonic=lambda: now))
    limit = TimeLimit(None if init is None else now - init)
    now += idle
    assert limit.ends(left) - now == pytest.approx(seconds)
    now += 0.1
    assert limit.ends(10) - now == pytest.approx(SECONDS)


_AGE: Final = """
import time
time.sleep(0.5)
from holdfast.identity.time_limit import init_began
began = init_began()
print(None if began is None else time.monotonic() - began)
"""


@pytest.mark.parametrize("kind", ["on-demand", "provisioned-concurrency", ""])
def test_the_init_begins_with_the_process_and_a_request_waits_only_for_one_on_demand(kind: str) -> None:
    began = time.monotonic()
    environment = {"PYTHONPATH": str(ROOT / "functions"), "AWS_LAMBDA_INITIALIZATION_TYPE": kind}
    said = subprocess.check_output([sys.executable, "-c", _AGE], env=environment, text=True).strip()
    if kind == "on-demand":
        assert 0.5 < float(said) < time.monotonic() - began + 0.05  # the system counts in hundredths
    else:
        assert said == "None"


def test_where_the_system_does_not_tell_the_start_the_time_counts_from_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
    # The process on which these tests run is older than Lambda lets an init be, or the field is missing.
    for stat in (f"1 (python) {' '.join(['0'] * 50)}", ""):
        monkeypatch.setattr(Path, "read_text", lambda _, stat=stat: stat)
        assert time_limit.init_began() is None


def test_a_late_answer_of_s3_does_not_make_the_issuer_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(_: str) -> bytes:
        time.sleep(0.05)
        return PUBLISHED

    monkeypatch.setattr(keys, "process_issuers", keys.Issuers(fetch=fetch))
    late = [0.3, 0.0]

    class Bucket:
        def read(self, _: str) -> SimpleNamespace:
            time.sleep(late.pop(0))
            return SimpleNamespace(body=trust.Records((record(),)).to_json())

    store: Any = Bucket()
    others = set(threading.enumerate())
    with pytest.raises(OutcomeUnknown):
        sign_in(BY_ID_TOKEN, store, ANYWHERE, time.monotonic() + 0.2)
    # The first request's thread goes on with the second request, if Lambda stopped the process meanwhile.
    for thread in set(threading.enumerate()) - others:
        thread.join()
    assert isinstance(sign_in(BY_ID_TOKEN, store, ANYWHERE, time.monotonic() + 8), Authenticated)


def test_a_failure_of_an_issuer_is_as_old_as_its_time_was() -> None:
    clock = [0.0]

    def fetch(_: str) -> bytes:
        clock[0] += 3600  # Lambda stopped the process meanwhile
        if clock[0] < 4000:
            raise IssuerUnreachable("slow")
        return PUBLISHED

    issuers = keys.Issuers(fetch=fetch, clock=lambda: clock[0])
    with pytest.raises(IssuerUnreachable):
        issuers.keys(ISSUER, None, 1.0)
    assert issuers.keys(ISSUER, None, 1.0)


def test_the_document_has_the_time() -> None:
    assert f"| time of an authentication | {SECONDS} seconds" in text(page("limits.md"))
