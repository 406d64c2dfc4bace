"""A warm-up is recognised as a whole event, which no client can send. It costs no request and no log line."""

import json
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from gateway.log import log
from holdfast.access import Caller, Grant, Role
from holdfast.identity.authentication import DenialReason, Denied
from holdfast.identity.time_limit import SECONDS, TimeLimit
from holdfast.team import WARM_UP
from holdfast_cdk.functions import FUNCTIONS
from tests.support.environment import set_environment
from tests.support.events import Context, request, sign_in

EVENTS: Final = {
    "authorizer": sign_in("Basic YTFhMWExYTFhMWExYTFhMWExYTE6eA=="),
    "terraform_http": request(
        *("GET", "/states/{name+}", "network/prod"),
        caller=Caller("ada", (Grant(Role.READER, ("*",)),)),
        headers={"user-agent": "Terraform", "authorization": "Basic eA=="},
        body="{}",
        query={"team": "c0ffee"},
    )
    | {"cookies": ["a=b"]},
}
"""A request that each function answers after requests to S3, by the function's folder."""


class Bucket:
    """An S3 client of an empty bucket, which counts the requests."""

    def __init__(self) -> None:
        self.requests = 0

    def get_object(self, **_: object) -> None:
        self.requests += 1
        missing: Any = {"Error": {"Code": "NoSuchKey"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
        raise ClientError(missing, "GetObject")


@pytest.fixture(params=[spec.folder for spec in FUNCTIONS if spec.kept_warm])
def function(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The handler module of each function that is kept warm, with its `bucket` and the `lines` of its log."""
    set_environment(monkeypatch)
    monkeypatch.delitem(sys.modules, f"{request.param}.handler", raising=False)
    handler: Any = import_module(f"{request.param}.handler")
    vars(handler)["_function"].s3 = handler.bucket = Bucket()
    handler.lines = []
    monkeypatch.setattr(log, "handle", handler.lines.append)
    return handler


def with_constant(value: Any) -> Iterator[Any]:
    """Yield copies of a value with the constant in one place: as members of an object, or as a text."""
    match value:
        case dict():
            yield {**value, **WARM_UP}
            yield from ({**value, name: one} for name, item in value.items() for one in with_constant(item))
        case list():
            yield from ([one] for item in value for one in with_constant(item))
        case str():
            yield from (json.dumps(WARM_UP), *WARM_UP, *WARM_UP.values())
        case _:  # a flag, which no client fills
            pass


def test_a_warm_up_sends_nothing_and_logs_nothing_and_is_a_refusal_to_whoever_would_read_it(
    function: Any,
) -> None:
    answer = function.handle(json.loads(json.dumps(WARM_UP)), Context())

    assert (
        answer
        == {"authorizer": {"isAuthorized": False}, "terraform_http": {"statusCode": 400}}[
            function.__package__
        ]
    )
    assert (function.bucket.requests, function.lines) == (0, [])


def test_a_request_after_a_warm_up_waits_for_no_init(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)
    handler: Any = import_module("authorizer.handler")
    ends: list[float] = []

    def sign_in(*arguments: Any) -> Denied:
        ends.append(arguments[-1])
        return Denied(DenialReason.MALFORMED)

    monkeypatch.setattr(handler, "sign_in", sign_in)
    monkeypatch.setattr(handler, "_time_limit", TimeLimit(time.monotonic() - 5))

    handler.handle(WARM_UP, Context())
    handler.handle(EVENTS["authorizer"], Context())

    assert ends[0] - time.monotonic() > SECONDS - 1


def test_a_request_that_has_the_constant_in_any_place_is_an_ordinary_request(
    function: Any,
) -> None:
    event = EVENTS[function.__package__]
    ordinary = function.handle(event, Context())
    sent = function.bucket.requests
    assert sent
    assert len(function.lines) == 1
    by_client = {"headers", "queryStringParameters", "rawQueryString", "rawPath", "cookies", "body"}

    for number, placed in enumerate(with_constant(event), start=2):
        answer = function.handle(placed, Context())
        assert len(function.lines) == number, placed
        assert ("headers" in answer) == ("headers" in ordinary)
        if placed.keys() == event.keys() and all(
            placed[name] == event[name] for name in event.keys() - by_client
        ):
            assert (answer, function.lines[-1].s3_requests) == (ordinary, sent)
    assert function.bucket.requests > 10


@pytest.mark.parametrize(
    "event", [{}, {"holdfast": ""}, {**WARM_UP, "more": ""}, [WARM_UP], json.dumps(WARM_UP), None]
)
def test_what_is_not_the_whole_constant_is_not_a_warm_up(function: Any, event: Any) -> None:
    with pytest.raises((KeyError, TypeError)):
        function.handle(event, Context())
