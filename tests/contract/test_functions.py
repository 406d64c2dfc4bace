"""The function behind the routes of states and locks, from event to response, on a real S3 server."""

import base64
import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import FrameType
from typing import Any, cast

import pytest

from gateway import payload
from gateway.headers import JSON
from holdfast.access import Caller, Grant, Role
from holdfast.state import removing
from tests.contract.conftest import (
    ACCOUNT,
    ONLY_OUTPUTS,
    READER,
    Answer,
    Bucket,
    Handle,
    Server,
    error,
    noted,
    started,
)
from tests.support.documents import (
    ADA,
    BOB,
    OPERATOR,
    blank_state,
    encrypted_state,
    lock_info,
    old_state,
    only_id,
    state,
)
from tests.support.events import Context, request
from tests.support.s3_fault_proxy import Fault

BUCKET = "holdfast-functions"
LOCK_KEY = "states/a.tfstate.tflock"
STATES = "/states/{name+}"
OUTPUTS = "/outputs/{name+}"
LOCKS = "/locks/{name+}"
UNLOCKS = "/unlocks/{name+}"
STATE = state(1).decode()
LOCK = lock_info("one").decode()


@pytest.fixture(scope="module")
def function(moto: Server) -> Iterator[Handle]:
    with started(moto, "terraform_http", HOLDFAST_BUCKET=BUCKET) as handlers:
        Bucket(BUCKET, moto).encrypt_with_kms()
        yield handlers["terraform_http"]


@pytest.fixture
def backend(function: Handle, moto: Server) -> Iterator[Handle]:
    yield function
    Bucket(BUCKET, moto).empty()


def ask(backend: Handle, method: str, route: str, name: str | None = "a", **more: Any) -> Answer:
    return backend(request(method, route, name, **more), Context())


def md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def keys(moto: Server) -> list[str]:
    return [found["Key"] for found in moto.direct.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def test_the_life_of_a_state_of_which_every_request_to_s3_names_the_account(backend: Handle) -> None:
    client = vars(import_module("terraform_http.handler"))["_function"].s3
    with noted(client, "x-amz-expected-bucket-owner") as requests:
        assert ask(backend, "GET", STATES, caller=ADA)["statusCode"] == 204
        assert ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)["statusCode"] == 200
        assert ask(backend, "POST", STATES, caller=ADA, body=STATE, lock_id="one")["statusCode"] == 200
        assert ask(backend, "DELETE", LOCKS, caller=ADA, body=LOCK)["statusCode"] == 200
        read = ask(backend, "GET", STATES, caller=READER)
        assert ask(backend, "DELETE", STATES, caller=OPERATOR)["statusCode"] == 200
        assert ask(backend, "GET", STATES, caller=READER)["statusCode"] == 204
    assert (read["statusCode"], read["body"], read["isBase64Encoded"]) == (200, STATE, False)
    assert read["headers"] == JSON
    assert {method for method, _ in requests} == {"GET", "PUT", "DELETE"}
    assert {owner for _, owner in requests} == {ACCOUNT}


def test_a_request_enters_the_handlers_module_once_for_the_function_of_its_verb(backend: Handle) -> None:
    module, entered = backend.__code__.co_filename, []

    def note(frame: FrameType, event: str, _: object) -> None:
        caller = frame.f_back
        if event == "call" and frame.f_code.co_filename == module != (caller and caller.f_code.co_filename):
            entered.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        for method, route, more in (
            ("PUT", LOCKS, {"body": LOCK}),
            ("POST", STATES, {"body": STATE, "lock_id": "one"}),
            ("GET", STATES, {}),
            ("GET", OUTPUTS, {"query": {"mask": "all"}}),
            ("DELETE", LOCKS, {"body": LOCK}),
        ):
            assert ask(backend, method, route, caller=OPERATOR, **more)["statusCode"] == 200
    finally:
        sys.setprofile(None)
    functions = ("_acquire", "_write", "_read", "_read_outputs", "_release")
    assert entered == [name for function in functions for name in ("handle", function)]


@pytest.mark.parametrize("is_base64", [True, False])
def test_a_state_comes_in_as_text_or_base64_and_goes_out_compressed_where_the_client_takes_it(
    backend: Handle, is_base64: bool
) -> None:
    body = state(1, content="ümlaut " * 1000)
    text = base64.b64encode(body).decode() if is_base64 else body.decode()
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    written = ask(
        backend,
        "POST",
        STATES,
        caller=ADA,
        body=text,
        is_base64=is_base64,
        lock_id="one",
        headers={"content-md5": md5(body), "content-length": str(len(body))},
    )
    assert written["statusCode"] == 200
    for refusing in ("", "br", "gzip;q=0", "gzip; q=0.0, br"):
        read = ask(backend, "GET", STATES, caller=ADA, headers={"accept-encoding": refusing})
        assert read["body"].encode() == body
    read = ask(backend, "GET", STATES, caller=ADA, headers={"accept-encoding": "br, GZIP;q=0.5"})
    assert read["headers"]["Content-Encoding"] == "gzip"
    assert gzip.decompress(base64.b64decode(read["body"])) == body


@pytest.mark.parametrize("body", [b"\xff\x00" * 10, b"\xff\x00" * 100_000, b"\xef\xbb\xbf{}\r\n"])
def test_what_another_program_stored_is_read_byte_for_byte(
    backend: Handle, moto: Server, body: bytes
) -> None:
    moto.direct.put_object(Bucket=BUCKET, Key="states/a.tfstate", Body=body)
    for encoding in ("", "gzip"):
        read = ask(backend, "GET", STATES, caller=READER, headers={"accept-encoding": encoding})
        sent = payload.decode(read["body"], is_base64=read["isBase64Encoded"])
        is_packed = read["headers"].get("Content-Encoding") == "gzip"
        assert (gzip.decompress(sent) if is_packed else sent) == body


@pytest.mark.parametrize(
    ("method", "route"), [("PUT", LOCKS), ("POST", LOCKS), ("LOCK", LOCKS), ("LOCK", STATES)]
)
@pytest.mark.parametrize(
    ("unlock", "unlock_route"),
    [("DELETE", LOCKS), ("UNLOCK", LOCKS), ("UNLOCK", STATES), ("POST", UNLOCKS), ("UNLOCK", UNLOCKS)],
)
def test_locks_are_taken_and_given_back_with_every_verb_that_a_client_may_use(
    backend: Handle, moto: Server, method: str, route: str, unlock: str, unlock_route: str
) -> None:
    assert ask(backend, method, route, caller=ADA, body=LOCK)["statusCode"] == 200
    assert keys(moto) == ["states/a.tfstate.tflock"]
    assert ask(backend, unlock, unlock_route, caller=ADA, body=LOCK)["statusCode"] == 200
    assert keys(moto) == []


def test_a_held_lock_answers_423_with_the_holders_lock_info_and_is_logged_with_the_holder(
    backend: Handle, log: list[str]
) -> None:
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    ask(backend, "POST", STATES, caller=ADA, body=STATE, lock_id="one")
    for refused in (
        ask(backend, "PUT", LOCKS, caller=BOB, body=lock_info("two").decode()),
        ask(backend, "POST", STATES, caller=BOB, body=STATE, lock_id="two"),
        ask(backend, "DELETE", STATES, caller=OPERATOR),
    ):
        assert refused["statusCode"] == 423
        assert json.loads(refused["body"])["ID"] == "one"
    held = [json.loads(line).get("held_by") for line in log]
    assert held == [None, None, *3 * [ADA.principal]]


def test_terraforms_force_unlock_of_a_young_lock_and_opentofus_of_another_id_answer_409(
    backend: Handle,
) -> None:
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    for method, route in (("DELETE", LOCKS), ("POST", UNLOCKS)):
        for body in (None, "", only_id("two").decode()):
            refused = ask(backend, method, route, caller=OPERATOR, body=body)
            assert error(refused) == (409, "lock_not_matched")


@pytest.mark.parametrize("caller", [ONLY_OUTPUTS, READER, ADA, OPERATOR], ids=lambda caller: caller.principal)
def test_everybody_sees_the_outputs_at_their_route_and_nothing_else(
    backend: Handle, moto: Server, caller: Caller
) -> None:
    assert ask(backend, "GET", OUTPUTS, caller=caller)["statusCode"] == 204
    whole = json.dumps({**json.loads(STATE), "resources": [{"private": True}]}).encode()
    moto.direct.put_object(Bucket=BUCKET, Key="states/a.tfstate", Body=whole)
    seen = json.loads(ask(backend, "GET", OUTPUTS, caller=caller)["body"])
    assert set(seen) == {"version", "terraform_version", "serial", "lineage", "outputs"}
    moto.direct.put_object(Bucket=BUCKET, Key="states/a.tfstate", Body=encrypted_state(1, "AAAA"))
    refused = ask(backend, "GET", OUTPUTS, caller=caller)
    assert error(refused) == (403, "not_allowed")
    assert "AAAA" not in refused["body"]


@pytest.mark.parametrize("query", [{}, {"mask": "sensitive"}, {"mask": "all"}])
def test_outputs_of_a_terraform_before_0_12_are_refused_with_what_to_do_and_are_not_empty(
    backend: Handle, moto: Server, query: dict[str, str]
) -> None:
    moto.direct.put_object(Bucket=BUCKET, Key="states/a.tfstate", Body=old_state())
    refused = ask(backend, "GET", OUTPUTS, caller=ONLY_OUTPUTS, query=query)
    assert error(refused) == (409, "unreadable_state")
    assert "version 3" in refused["body"]
    assert "Terraform 0.12 or later" in refused["body"]
    assert "http://x" not in refused["body"]
    assert ask(backend, "GET", STATES, caller=READER)["body"].encode() == old_state()


def test_a_push_of_a_file_that_is_no_state_is_refused_with_what_to_do(backend: Handle) -> None:
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    ask(backend, "POST", STATES, caller=ADA, body=STATE, lock_id="one")
    ask(backend, "DELETE", LOCKS, caller=ADA, body=LOCK)
    push = lock_info("push", operation="state-push").decode()
    ask(backend, "PUT", LOCKS, caller=ADA, body=push)
    body = blank_state().decode()
    for _ in range(2):  # the process has cached the state's version only the first time
        refused = ask(backend, "POST", STATES, caller=ADA, body=body, lock_id="push")
        assert error(refused) == (409, "lineage_changed")
        assert ".terraform/terraform.tfstate" in refused["body"]
        assert "holdfast state delete" in refused["body"]
    ask(backend, "DELETE", LOCKS, caller=ADA, body=push)
    assert ask(backend, "GET", STATES, caller=READER)["body"] == STATE
    assert ask(backend, "DELETE", STATES, caller=OPERATOR)["statusCode"] == 200
    ask(backend, "PUT", LOCKS, caller=ADA, body=push)
    assert ask(backend, "POST", STATES, caller=ADA, body=body, lock_id="push")["statusCode"] == 200


@pytest.mark.parametrize(("mask", "value"), [("sensitive", "10.0.0.0/8"), ("all", None)])
def test_the_values_of_masked_outputs_do_not_leave_the_function(
    backend: Handle, moto: Server, log: list[str], mask: str, value: str | None
) -> None:
    outputs = {"cidr": {"value": "10.0.0.0/8"}, "password": {"value": "s3cr3t", "sensitive": True}}
    body = json.dumps({**json.loads(STATE), "outputs": outputs})
    moto.direct.put_object(Bucket=BUCKET, Key="states/a.tfstate", Body=body.encode())
    answer = ask(backend, "GET", OUTPUTS, caller=ONLY_OUTPUTS, query={"mask": mask})
    found = json.loads(answer["body"])["outputs"]
    assert {name: output["value"] for name, output in found.items()} == {"cidr": value, "password": None}
    assert "s3cr3t" not in answer["body"]
    assert [json.loads(line)["message"] for line in log] == ["outputs.read"]
    assert "s3cr3t" in ask(backend, "GET", OUTPUTS, caller=ONLY_OUTPUTS)["body"]
    for wrong in ("", "Sensitive", "none", "all,sensitive"):
        refused = ask(backend, "GET", OUTPUTS, caller=ONLY_OUTPUTS, query={"mask": wrong})
        assert error(refused) == (400, "invalid_request")


def test_whoever_reads_outputs_alone_is_told_their_address_where_the_whole_state_is(backend: Handle) -> None:
    refused = ask(backend, "GET", STATES, "network/prod", caller=ONLY_OUTPUTS)
    assert error(refused) == (403, "not_allowed")
    assert "/outputs/network/prod" in refused["body"]
    elsewhere = Caller("token:x", (Grant(Role.OUTPUTS, ("dns/*",)),))
    refused = ask(backend, "GET", STATES, "network/prod", caller=elsewhere)
    assert "/outputs/" not in refused["body"]


@pytest.mark.parametrize("route", [STATES, OUTPUTS])
def test_an_object_of_zero_bytes_is_an_error_and_not_the_absence_of_a_state(
    backend: Handle, moto: Server, route: str
) -> None:
    moto.direct.put_object(Bucket=BUCKET, Key="states/a.tfstate", Body=b"")
    refused = ask(backend, "GET", route, caller=READER)
    assert error(refused) == (409, "unreadable_state")


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_a_path_without_a_route_gets_400_with_the_nearest_one_and_never_404(
    backend: Handle, log: list[str], method: str
) -> None:
    path = "/stats/network/prod"
    refused = ask(backend, method, "$default", None, caller=ADA, path=path)
    assert error(refused) == (400, "unknown_route")
    assert "/states/network/prod" in refused["body"]
    (line,) = log
    logged = json.loads(line)
    assert (logged["message"], logged["error"], logged["principal"], logged["trail"]) == (
        *("request.refused", "unknown_route"),
        *("token:ada", "holdfast.audit"),
    )
    assert path not in line


def test_a_route_that_an_older_function_does_not_know_gets_400(backend: Handle) -> None:
    refused = ask(backend, "GET", "/elsewhere", None, caller=OPERATOR)
    assert error(refused) == (400, "unknown_route")


def test_a_request_without_a_verified_caller_gets_401_whatever_its_headers_say(backend: Handle) -> None:
    forged = {"principal": "token:x", "role": "maintainer", "scope": '["*"]', "authorization": "Basic eDp5"}
    refused = ask(backend, "GET", STATES, headers=forged)
    assert error(refused) == (401, "not_authenticated")


@pytest.mark.parametrize(
    "headers",
    [
        {"content-length": "300"},
        {"content-length": "9" * 5000},
        {"content-md5": md5(b"{}")},
        {"x-amzn-remapped-content-md5": md5(b"{}")},
    ],
)
@pytest.mark.parametrize(
    ("method", "route"), [("DELETE", LOCKS), ("POST", UNLOCKS), ("PUT", LOCKS), ("POST", STATES)]
)
def test_a_body_that_was_announced_and_did_not_arrive_is_no_empty_one(
    backend: Handle, headers: dict[str, str], method: str, route: str
) -> None:
    refused = ask(backend, method, route, caller=OPERATOR, headers=headers)
    assert error(refused) == (400, "invalid_body")


@pytest.mark.parametrize(("method", "route"), [("DELETE", LOCKS), ("POST", UNLOCKS)])
def test_the_md5_of_nothing_is_what_terraforms_force_unlock_sends(
    backend: Handle, method: str, route: str
) -> None:
    headers = {"content-length": "0", "content-md5": md5(b"")}
    assert ask(backend, method, route, caller=OPERATOR, headers=headers)["statusCode"] == 200


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"body": STATE, "headers": {"content-md5": md5(b"other")}}, 400, "invalid_body"),
        ({"body": STATE, "headers": {"content-length": str(len(STATE) - 2)}}, 400, "invalid_body"),
        ({"body": "!!!", "is_base64": True}, 400, "invalid_body"),
        ({"body": "\ud800"}, 400, "invalid_body"),
        ({"body": "[]"}, 400, "invalid_state"),
        ({"body": ""}, 400, "invalid_state"),
        ({"body": STATE}, 428, "lock_required"),
        ({"body": STATE, "lock_id": ""}, 400, "invalid_request"),
        ({"body": STATE, "lock_id": "gone"}, 409, "lock_lost"),
        ({"body": STATE, "lock_id": "\ud800"}, 400, "invalid_request"),
        ({"body": STATE, "name": "a//b"}, 400, "invalid_state_name"),
        ({"body": state(1, content='"' * 3_200_000).decode()}, 413, "too_large"),
        ({"method": "PUT", "route": LOCKS, "body": ""}, 400, "invalid_lock_info"),
        ({"method": "PUT", "route": LOCKS, "body": "{}"}, 400, "invalid_lock_info"),
        ({"method": "PUT", "route": LOCKS, "body": "x" * 1_000_000}, 413, "too_large"),
    ],
)
def test_a_request_that_breaks_a_rule_gets_its_status_and_changes_nothing(
    backend: Handle, moto: Server, more: dict[str, Any], status: int, code: str
) -> None:
    refused = ask(backend, **{"method": "POST", "route": STATES, "caller": ADA, **more})
    assert error(refused) == (status, code)
    assert keys(moto) == []


RELEASES = [("DELETE", LOCKS), ("UNLOCK", LOCKS), ("UNLOCK", STATES), ("POST", UNLOCKS), ("UNLOCK", UNLOCKS)]
OF_A_BODY = ["content-type", "content-md5", "x-amzn-remapped-content-md5"]


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize(
    "more",
    [
        # With DELETE at the address of the state: a release, a force-unlock, an acquire and a write.
        {"body": LOCK, "headers": dict.fromkeys(OF_A_BODY[:2], md5(LOCK.encode()))},
        {"headers": {"content-type": "application/json", "content-length": "0", "content-md5": md5(b"")}},
        {"body": only_id("one").decode(), "headers": {"content-type": "application/json"}},
        {"body": STATE, "lock_id": "one", "headers": {"content-type": "application/json"}},
        # The same when a front drops the body, or each of the headers.
        {"body": LOCK},
        *({"headers": {name: md5(b"")}} for name in OF_A_BODY),
        {"headers": {"content-length": "120"}},
        # A script's release in the form of GitLab.
        {"lock_id": "one"},
        {"lock_id": ""},
    ],
)
def test_no_request_but_a_plain_delete_deletes_a_state(
    backend: Handle, moto: Server, more: dict[str, Any], is_held: bool
) -> None:
    moto.direct.put_object(Bucket=BUCKET, Key="states/a.tfstate", Body=STATE.encode())
    if is_held:
        ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    before = keys(moto)
    refused = ask(backend, "DELETE", STATES, caller=OPERATOR, **more)
    assert error(refused) == (400, "bent_request")
    assert keys(moto) == before


@pytest.mark.parametrize("route", [STATES, OUTPUTS])
@pytest.mark.parametrize(
    "more",
    [
        {"lock_id": "one"},
        {"lock_id": ""},
        {"lock_id": "one", "headers": {"content-md5": md5(STATE.encode())}},
        {"headers": {"content-md5": md5(STATE.encode())}},
        {"headers": {"x-amzn-remapped-content-md5": md5(LOCK.encode())}},
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_read_that_a_redirect_has_made_of_a_write_or_of_a_lock_is_refused(
    backend: Handle, moto: Server, route: str, more: dict[str, Any], exists: bool
) -> None:
    if exists:
        moto.direct.put_object(Bucket=BUCKET, Key="states/a.tfstate", Body=STATE.encode())
    refused = ask(backend, "GET", route, caller=ADA, **more)
    assert error(refused) == (400, "bent_request")


def test_a_read_may_have_a_content_type_and_any_other_query(backend: Handle) -> None:
    headers = {"content-type": "application/json", "content-length": "0"}
    answer = ask(backend, "GET", STATES, caller=READER, headers=headers, query={"team": "a"})
    assert answer["statusCode"] == 204


@pytest.mark.parametrize(("method", "route"), RELEASES)
def test_the_id_in_the_query_of_a_release_without_a_body_names_the_lock(
    backend: Handle, moto: Server, method: str, route: str
) -> None:
    def release(lock_id: str, caller: Caller = OPERATOR, body: str | None = None) -> Answer:
        return ask(backend, method, route, caller=caller, lock_id=lock_id, body=body)

    assert release("one")["statusCode"] == 200  # nothing is locked, as after a retry
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    assert error(release("two")) == (409, "lock_not_matched")
    assert error(release("one", BOB)) == (403, "not_allowed")
    assert error(release("")) == (400, "invalid_request")
    assert error(release("two", ADA, LOCK)) == (400, "invalid_lock_info")
    assert keys(moto) == [LOCK_KEY]
    assert release("one")["statusCode"] == 200  # no lock is too young for a request that names it
    assert keys(moto) == []
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    assert release("one", ADA, LOCK)["statusCode"] == 200
    assert keys(moto) == []


@pytest.mark.parametrize(
    ("method", "route", "takes_id"),
    [
        *((*release, True) for release in [*RELEASES, ("POST", STATES), ("PUT", STATES)]),
        *(
            (*other, False)
            for other in [("PUT", LOCKS), ("LOCK", STATES), ("DELETE", STATES), ("GET", STATES)]
        ),
    ],
)
@pytest.mark.parametrize(
    "bent",
    [
        {"queryStringParameters": {"ID": "one,one"}, "rawQueryString": "ID=one&ID=one"},
        {"queryStringParameters": {"ID": ""}, "rawQueryString": "ID"},
        {"queryStringParameters": {"id": "one"}, "rawQueryString": "id=one"},
    ],
)
def test_a_query_that_does_not_name_exactly_one_lock_changes_nothing(
    backend: Handle, moto: Server, method: str, route: str, takes_id: bool, bent: dict[str, Any]
) -> None:
    ask(backend, "PUT", LOCKS, caller=OPERATOR, body=LOCK)
    body = {STATES: STATE, LOCKS: LOCK}.get(route) if method in ("POST", "PUT") else None
    refused = backend(request(method, route, "a", caller=OPERATOR, body=body) | bent, Context())
    is_misspelled = "ID" not in bent["queryStringParameters"]
    code = "invalid_request" if takes_id or is_misspelled else "bent_request"
    assert error(refused) == (400, code)
    assert keys(moto) == [LOCK_KEY]


def test_an_acquire_has_its_id_in_the_body_alone(backend: Handle, moto: Server) -> None:
    refused = ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK, lock_id="one")
    assert error(refused) == (400, "bent_request")
    assert keys(moto) == []


def test_s3_out_of_reach_answers_503_with_retry_after(backend: Handle, moto: Server) -> None:
    moto.proxy.fail("GET", "states/a.tfstate", Fault.SLOW_DOWN, times=1000)
    answer = backend(request("GET", STATES, "a", caller=ADA), Context(milliseconds=8_300))
    assert moto.proxy.end_rules() < 1000
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "1")


def test_a_fault_of_ours_answers_500_and_neither_answer_nor_log_holds_content(
    backend: Handle, log: list[str]
) -> None:
    event = request("POST", STATES, "a", caller=ADA, body="confidential")
    del event["headers"]  # no gateway leaves them out
    answer = backend(event, Context())
    assert error(answer) == (500, "fault")
    assert event["requestContext"]["requestId"] in answer["body"]
    (line,) = log
    assert json.loads(line)["error"] == "KeyError"
    assert "confidential" not in line + answer["body"]


# --- several processes -----------------------------------------------------------------------------


def another_process(monkeypatch: pytest.MonkeyPatch) -> Handle:
    """The function in another Lambda environment, which shares nothing with the first."""
    monkeypatch.delitem(sys.modules, "terraform_http.handler")
    return cast("Handle", import_module("terraform_http.handler").handle)


def test_a_write_takes_one_request_less_in_the_process_that_knows_the_current_version(
    backend: Handle, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = another_process(monkeypatch)

    def apply(*processes: Handle, serial: int) -> list[int]:
        """Lock, read, write and unlock, each in a given process; return the requests to S3 of each."""
        log.clear()
        body = state(serial).decode()
        lock, read, write, unlock = processes
        ask(lock, "PUT", LOCKS, "warm", caller=ADA, body=LOCK)
        ask(read, "GET", STATES, "warm", caller=ADA)
        assert ask(write, "POST", STATES, "warm", caller=ADA, body=body, lock_id="one")["statusCode"] == 200
        ask(unlock, "DELETE", LOCKS, "warm", caller=ADA, body=LOCK)
        return [json.loads(line)["s3_requests"] for line in log]

    assert apply(*4 * [backend], serial=1) == [1, 2, 6, 2]  # nothing is cached, or there
    assert apply(*4 * [backend], serial=2) == [1, 1, 3, 2]
    assert apply(backend, backend, other, backend, serial=3) == [1, 1, 4, 2]
    assert apply(other, other, backend, other, serial=4) == [1, 1, 6, 2]  # its cached version is superseded
    assert apply(other, other, other, backend, serial=5) == [1, 1, 3, 2]


# --- settings --------------------------------------------------------------------------------------


def retaining(monkeypatch: pytest.MonkeyPatch, retention: str) -> Handle:
    """Another backend function, started with this retention."""
    monkeypatch.setenv("HOLDFAST_RETENTION", retention)
    return another_process(monkeypatch)


@pytest.mark.usefixtures("backend")
def test_states_are_written_with_the_retention_of_the_environment_and_locks_without(
    moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = retaining(monkeypatch, "governance 2")
    assert ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)["statusCode"] == 200
    assert ask(backend, "POST", STATES, caller=ADA, body=STATE, lock_id="one")["statusCode"] == 200
    head = moto.direct.head_object(Bucket=BUCKET, Key="states/a.tfstate")
    assert head["ObjectLockMode"] == "GOVERNANCE"
    days = head["ObjectLockRetainUntilDate"] - datetime.now(UTC)
    assert timedelta(days=1, hours=23) < days <= timedelta(days=2)
    assert "ObjectLockMode" not in moto.direct.head_object(Bucket=BUCKET, Key=LOCK_KEY)


def test_states_are_written_without_retention_where_the_environment_names_none(
    backend: Handle, moto: Server
) -> None:
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    assert ask(backend, "POST", STATES, caller=ADA, body=STATE, lock_id="one")["statusCode"] == 200
    assert "ObjectLockMode" not in moto.direct.head_object(Bucket=BUCKET, Key="states/a.tfstate")


@pytest.mark.usefixtures("backend")
def test_a_retention_that_is_none_stops_the_function_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"HOLDFAST_RETENTION.*'governance 30'"):
        retaining(monkeypatch, "30")


# --- the log --------------------------------------------------------------------------------------


def test_every_request_leaves_one_line_without_content_or_secrets(backend: Handle, log: list[str]) -> None:
    lock = LOCK.replace('"Info": ""', '"Info": "confidential"')
    body = state(3, content="confidential").decode()
    ask(backend, "PUT", LOCKS, caller=ADA, body=lock)
    ask(backend, "POST", STATES, caller=ADA, body=body, lock_id="one")
    ask(backend, "POST", STATES, caller=ADA, body=body, lock_id="one")
    ask(backend, "GET", STATES, caller=ADA)
    ask(backend, "GET", OUTPUTS, caller=ADA)
    ask(backend, "POST", STATES, caller=BOB, body=STATE, lock_id="two")
    ask(backend, "DELETE", LOCKS, caller=ADA, body=lock)
    logged = [json.loads(line) for line in log]
    assert [line["message"] for line in logged] == [
        "lock.acquired",
        "state.written",
        "state.unchanged",
        "state.read",
        "outputs.read",
        "request.refused",
        "lock.released",
    ]
    for line in logged[:3]:
        assert (line["state"], line["lock_id"], line["principal"]) == ("a", "one", "token:ada")
        assert (line["operation"], line["who"]) == ("OperationTypeApply", "ada@laptop")
    written = logged[1]
    assert (written["serial"], written["bytes"]) == (3, len(body))
    assert written["milliseconds"] >= 0
    assert "confidential" not in "".join(log)


@pytest.mark.parametrize(("field", "short"), [("operation", "OperationTypeApply"), ("who", "ada@laptop")])
def test_a_lock_with_a_very_long_text_leaves_lines_that_cloudwatch_does_not_cut(
    backend: Handle, log: list[str], field: str, short: str
) -> None:
    long = "\x7f" * 65_000  # a byte of the request, six of the line
    body = LOCK.replace(short, long)
    assert ask(backend, "PUT", LOCKS, caller=ADA, body=body)["statusCode"] == 200
    assert ask(backend, "POST", STATES, caller=ADA, body=STATE, lock_id="one")["statusCode"] == 200
    assert [len(line) < 4096 for line in log] == [True, True]
    assert [json.loads(line)[field] for line in log] == [long[:100]] * 2


def test_a_forced_removal_that_met_the_next_holder_is_in_the_log_with_what_it_removed(
    backend: Handle, moto: Server, log: list[str]
) -> None:
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)

    def taken_once_it_is_free() -> None:
        moto.proxy.before("GET", LOCK_KEY, lambda: moto.direct.put_object(**theirs))

    theirs: Any = {"Bucket": BUCKET, "Key": LOCK_KEY, "Body": lock_info("two"), "IfNoneMatch": "*"}
    moto.proxy.before("DELETE", LOCK_KEY, taken_once_it_is_free)
    answer = ask(backend, "DELETE", LOCKS, caller=OPERATOR, body=only_id("one").decode())
    assert error(answer) == (409, "lock_not_matched")
    line = json.loads(log[-1])
    assert (line["message"], line["level"]) == ("request.refused", "WARNING")
    assert (line["lock_id"], line["held_by"]) == ("one", "token:ada")


def test_a_force_unlock_that_s3_refuses_is_logged_as_an_error_with_the_reason(
    backend: Handle, moto: Server, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removing, "FORCE_UNLOCK_MIN_AGE", timedelta(seconds=-1))
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    moto.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
    answer = ask(backend, "DELETE", LOCKS, caller=OPERATOR, body="")
    assert error(answer) == (409, "unlock_undecided")
    line = json.loads(log[-1])
    assert (line["level"], line["lock_id"], line["held_by"]) == ("ERROR", "one", "token:ada")
    assert "AccessDenied" in line["reason"]


@pytest.mark.parametrize(("body", "caller"), [(LOCK, ADA), (only_id("one").decode(), OPERATOR)])
@pytest.mark.parametrize("may_remove", [True, False])
def test_a_release_that_may_not_remove_the_version_says_so_in_the_log(
    backend: Handle, moto: Server, log: list[str], body: str, caller: Caller, may_remove: bool
) -> None:
    ask(backend, "PUT", LOCKS, caller=ADA, body=LOCK)
    if not may_remove:
        moto.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED)
    assert ask(backend, "DELETE", LOCKS, caller=caller, body=body)["statusCode"] == 200
    line = json.loads(log[-1])
    assert line["marker_left"] is not may_remove
    assert line.get("who") == (None if caller == ADA else "ada@laptop")  # whose lock was broken
