"""Who may do what by the functions of `/manage/v1/` and `/api/v2/`, event in and response out."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl

import boto3
import pytest

from holdfast.access import Caller, Role
from tests.contract.conftest import Bucket, Server, new_processes
from tests.support import access_calls
from tests.support.access_calls import CALLS, CLOUD, INSIDE, MANAGEMENT, OUTSIDE, SCOPE, Call
from tests.support.documents import OPERATOR
from tests.support.environment import set_environment
from tests.support.events import Context, cloud_request, manage_request
from tests.unit.test_openapi import DOCUMENT, described

BUCKET, STAGING, GROUP = "holdfast-access", "holdfast-access-staging", "/holdfast/access/audit"
SCOPES = (SCOPE, "elsewhere")
"""The second covers a state of one segment, and no state of the organization of that name."""
VERBS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "LOCK", "UNLOCK"}


@dataclass(frozen=True)
class Functions:
    """Both functions, and the states of the table in their bucket.

    Attributes:
        bucket: theirs.
        prepared: what stands for the placeholders, by the name of the state.
        handles: by the beginning of the addresses.
    """

    bucket: Bucket
    prepared: Mapping[str, Mapping[str, str]]
    handles: Mapping[str, Callable[[dict[str, Any], Context], dict[str, Any]]]

    def ask(self, caller: Caller | None, method: str, address: str, body: bytes | None) -> dict[str, Any]:
        path, _, query = address.partition("?")
        api, event = (CLOUD, cloud_request) if path.startswith(CLOUD) else (MANAGEMENT, manage_request)
        sent = None if body is None else body.decode()
        asked = event(method, path.removeprefix(api), caller=caller, body=sent, query=dict(parse_qsl(query)))
        return self.handles[api](asked, Context())

    def send(self, role: Role | None, method: str, address: str, body: bytes | None) -> tuple[int, str]:
        caller = None if role is None else Caller("token:x", role, SCOPES)
        answer = self.ask(caller, method, address, body)
        return answer["statusCode"], answer["body"]


@pytest.fixture(scope="module")
def functions(moto: Server) -> Iterator[Functions]:
    """The functions as Lambda starts them: from their environment."""
    moto.direct.create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True)
    moto.direct.create_bucket(Bucket=STAGING)
    with pytest.MonkeyPatch.context() as environment, new_processes("management", "cloud"):
        set_environment(
            environment,
            HOLDFAST_BUCKET=BUCKET,
            HOLDFAST_STAGING_BUCKET=STAGING,
            HOLDFAST_AUDIT_GROUP=GROUP,
            HOLDFAST_PRESIGN_ENDPOINT=moto.direct.meta.endpoint_url,
            AWS_ENDPOINT_URL=moto.direct.meta.endpoint_url,
        )
        logs = boto3.Session().client("logs")
        logs.create_log_group(logGroupName=GROUP)
        logs.create_log_stream(logGroupName=GROUP, logStreamName="backend")
        now = int(time.time() * 1000)
        events = [{"event": "state.written", "state": state} for state in (INSIDE, *OUTSIDE)]
        logs.put_log_events(
            logGroupName=GROUP,
            logStreamName="backend",
            logEvents=[{"timestamp": now - 1000, "message": json.dumps(event)} for event in events],
        )
        handles = {
            MANAGEMENT: import_module("management.handler").handle,
            CLOUD: import_module("cloud.handler").handle,
        }
        yield Functions(Bucket(BUCKET, moto), access_calls.prepare(moto.direct, BUCKET), handles)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_everybody_gets_what_the_table_says_and_who_is_refused_before_s3_is_asked(
    functions: Functions, call: Call, log: list[str]
) -> None:
    before = functions.bucket.history("")

    assert list(access_calls.faults(call, functions.prepared, functions.send)) == []

    assert functions.bucket.history("") == before
    lines = [json.loads(line) for line in log]
    assert {line["s3_requests"] for line in lines if line["status"] in (401, 403)} == {0}


def test_the_table_has_every_verb_of_every_path_and_no_other_is_answered(functions: Functions) -> None:
    paths = [path for path in DOCUMENT["paths"] if path.startswith((MANAGEMENT, CLOUD))]
    assert {(call.method, call.route) for call in CALLS} == {
        (verb, path) for path in paths for verb in described(path)
    }
    assert all(list(call.inside) == [None, *Role] for call in CALLS)
    for path in paths:
        for verb in VERBS - set(described(path)):
            address = access_calls.filled(path, functions.prepared[INSIDE])
            assert functions.ask(OPERATOR, verb, address, None)["statusCode"] == 405, (verb, path)


def test_who_is_refused_learns_nothing_of_the_rules_that_the_request_breaks(functions: Functions) -> None:
    for call in CALLS:
        method, address, _ = access_calls.request(call, functions.prepared[INSIDE])
        broken = f"{address.partition('?')[0]}?unknown=1"
        assert functions.send(None, method, broken, b"{")[0] == 401, call
        if "{organization}" in call.address:
            method, address, _ = access_calls.request(call, functions.prepared[OUTSIDE[1]])
            assert functions.send(Role.MAINTAINER, method, address, b"{")[0] == 403, call
