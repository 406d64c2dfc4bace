"""The changing routes of the management API, from event to response, on a real S3 server."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl

import pytest

from gateway.headers import JSON
from holdfast import audit
from holdfast.access import Caller, Grant, Role
from holdfast.names import StateName
from holdfast.state import acquiring, held, walk
from holdfast.state.write import write
from tests.contract.conftest import (
    ACCOUNT,
    COMMAND,
    NAME,
    ONE,
    Answer,
    Bucket,
    Handle,
    Server,
    noted,
    started,
)
from tests.support import access_calls
from tests.support.documents import ADA, LINEAGE, OPERATOR, state
from tests.support.events import Context, manage_request
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

BUCKET = "holdfast-management"
ANOTHER_COMMAND = "f" * 32
RESTORE, DELETE, UNDELETE = "restore/network/prod", "delete/network/prod", "undelete/network/prod"
LOCK, FREEZE = "locks/network/prod", "freeze/network/prod"


@pytest.fixture(scope="module")
def function(moto: Server) -> Iterator[Handle]:
    with started(moto, "management", HOLDFAST_BUCKET=BUCKET, HOLDFAST_MAX_STATE_MB="1") as handlers:
        Bucket(BUCKET, moto).encrypt_with_kms()
        yield handlers["management"]


@pytest.fixture
def bucket(function: Handle, moto: Server) -> Iterator[Bucket]:  # noqa: ARG001 it makes the bucket
    """The bucket of the function. It is empty at the start of a test, without any version."""
    found = Bucket(BUCKET, moto)
    yield found
    found.empty()


@pytest.fixture
def manage(function: Handle, bucket: Bucket) -> Handle:  # noqa: ARG001 it empties the bucket afterwards
    return function


def ask(
    manage: Handle, method: str, path: str, body: object = None, caller: Caller = OPERATOR, **more: Any
) -> Answer:
    sent = body if isinstance(body, str) or body is None else json.dumps(body)
    return manage(manage_request(method, path, caller=caller, body=sent, **more), Context())


def done(answer: Answer) -> Any:
    assert answer["statusCode"] == 200, answer
    assert answer["headers"] == JSON
    return json.loads(answer["body"])


def error(answer: Answer) -> tuple[int, str]:
    document = json.loads(answer["body"])
    assert document["message"]
    assert (document.keys() == {"error", "message", "lock"}) is (answer["statusCode"] == 423)
    return answer["statusCode"], document["error"]


def message(answer: Answer) -> str:
    return str(json.loads(answer["body"])["message"])


def written(bucket: Bucket, *bodies: bytes) -> list[str]:
    """Write these versions; return their IDs."""
    by_ada = work(bucket.direct_store(), NAME, ADA)
    return [write(by_ada, body, None).version_id for body in bodies]


def locked(bucket: Bucket) -> str:
    """Acquire the lock as a client does; return its version."""
    return acquiring.acquire(work(bucket.direct_store(), NAME, ADA), ONE).version_id


def marker(bucket: Bucket) -> dict[str, str]:
    """Return the document of an undelete of the newest delete."""
    return {"marker": bucket.marker(NAME.state_key)}


def back_to(version: object, **more: object) -> dict[str, object]:
    return {"version": version, "reason": "back to Tuesday", "id": COMMAND, **more}


def frozen(**more: object) -> dict[str, object]:
    return {"reason": "an incident", "id": COMMAND, **more}


# --- what each route does --------------------------------------------------------------------------


def test_a_pattern_is_frozen_listed_and_unfrozen_and_a_restore_under_the_freeze_leaves_no_gap(
    manage: Handle, bucket: Bucket, log: list[str]
) -> None:
    first, second = written(bucket, state(1), state(2))
    placed = {**frozen(until="2999-01-01T00:00:00Z"), "pattern": "network/*"}
    told = done(ask(manage, "PUT", "freezes", placed))
    freeze = {**placed, "by": "token:operator", "owner": None, "since": None, "liftable": True}
    assert told == {"freeze": freeze, "frozen": ["network/prod"], "names": [], "next": None}
    [listed] = done(ask(manage, "GET", "freezes"))["freezes"]
    assert listed == {**freeze, "since": listed["since"]}
    reader = Caller("token:reader", (Grant(Role.OUTPUTS, ("network/*",)),))
    seen = done(ask(manage, "GET", "freezes", caller=reader))
    assert seen == {"freezes": [{**listed, "liftable": False}]}
    assert listed["since"]
    again = done(ask(manage, "PUT", "freezes", {**placed, "id": ANOTHER_COMMAND}))
    assert again == {**told, "freeze": {**freeze, "since": listed["since"]}}

    assert error(ask(manage, "GET", "content/network/new")) == (423, "frozen")
    assert error(ask(manage, "POST", "create/network/new", caller=ADA)) == (423, "frozen")
    assert error(ask(manage, "PUT", FREEZE, frozen(id=ANOTHER_COMMAND))) == (423, "frozen")
    assert error(ask(manage, "POST", RESTORE, back_to(first, frozen=COMMAND))) == (400, "invalid_request")
    back = back_to(first, frozen=COMMAND, current=second)
    assert done(ask(manage, "POST", RESTORE, back))["serial"] == 3

    lifted = {"pattern": "network/*", "unfrozen": ["network/prod"], "covered": [], "next": None}
    assert done(ask(manage, "DELETE", "freezes", query={"id": COMMAND})) == lifted
    nothing: dict[str, object] = {"pattern": None, "unfrozen": [], "covered": [], "next": None}
    assert done(ask(manage, "DELETE", "freezes", query={"id": COMMAND})) == nothing
    lines = [json.loads(line) for line in log]
    events = [(line["message"], line["state"], line["freeze"]) for line in lines if line.get("freeze")]
    assert events == [
        ("state.frozen", "network/*", COMMAND),
        ("state.frozen", "network/prod", COMMAND),
        ("states.listed", "network/*", COMMAND),
        ("state.frozen", "network/prod", COMMAND),
        ("state.unchanged", "network/*", COMMAND),
        ("state.unfrozen", "network/prod", COMMAND),
        ("state.unfrozen", "network/*", COMMAND),
    ]
    assert lines[-1]["message"] == "state.unchanged"
    assert error(ask(manage, "DELETE", "freezes", query={"id": "zz"})) == (400, "invalid_request")


def events_of(log: list[str]) -> list[tuple[str, str | None]]:
    return [(line["message"], line.get("state")) for line in map(json.loads, log)]


def test_the_trail_has_each_state_of_a_pattern_also_if_a_later_state_fails(
    manage: Handle, bucket: Bucket, log: list[str]
) -> None:
    names = [StateName(f"network/{letter}") for letter in "ab"]
    for name in names:
        bucket.s3.put_object(Bucket=bucket.name, Key=name.state_key, Body=state(1))
    bucket.proxy.fail("PUT", names[1].lock_key, Fault.DENIED)
    assert error(ask(manage, "PUT", "freezes", {**frozen(), "pattern": "network/*"})) == (
        500,
        "storage_refused",
    )
    assert events_of(log) == [
        ("state.frozen", "network/*"),
        ("state.frozen", "network/a"),
        ("request.refused", "network/b"),
    ]


def test_the_pattern_is_unfrozen_with_the_last_of_several_requests(
    manage: Handle, bucket: Bucket, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(bucket, state(1))
    done(ask(manage, "PUT", "freezes", {**frozen(), "pattern": "network/*"}))
    log.clear()
    monkeypatch.setattr(walk, "SECONDS", 0.0)
    told = done(ask(manage, "DELETE", "freezes", query={"id": COMMAND}))
    while told["next"]:
        told = done(ask(manage, "DELETE", "freezes", query={"id": COMMAND, "cursor": told["next"]}))
    events = [event for event in events_of(log) if event[0] != "state.unchanged"]
    assert events == [("state.unfrozen", "network/prod"), ("state.unfrozen", "network/*")]
    assert events_of(log)[-1] == ("state.unfrozen", "network/*")


def test_the_trail_has_a_pattern_that_several_requests_freeze_once(
    manage: Handle, bucket: Bucket, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(bucket, state(1))
    monkeypatch.setattr(walk, "SECONDS", 0.0)
    placed = {**frozen(), "pattern": "network/*"}
    told = done(ask(manage, "PUT", "freezes", placed))
    assert told["next"]
    while told["next"]:
        told = done(ask(manage, "PUT", "freezes", {**placed, "cursor": told["next"]}))
    events = [event for event in events_of(log) if event[0] == "state.frozen"]
    assert events == [("state.frozen", "network/*"), ("state.frozen", "network/prod")]


def test_what_changed_nothing_is_not_in_the_audit_trail_as_a_change(manage: Handle, log: list[str]) -> None:
    for _ in range(2):
        done(ask(manage, "POST", "create/network/new"))
    done(ask(manage, "DELETE", FREEZE, query={"id": COMMAND}))
    events = [json.loads(line)["message"] for line in log]
    assert events == ["state.declared", "state.unchanged", "state.unchanged"]


def test_an_incident_from_freeze_to_restore_of_which_every_request_to_s3_names_the_account(
    manage: Handle, bucket: Bucket
) -> None:
    first, second = written(bucket, state(1, content="good"), state(2))
    freeze = {"id": COMMAND, "reason": "an incident", "until": "2999-01-01T00:00:00Z"}
    client = vars(import_module("management.handler"))["_function"].s3
    with noted(client, "x-amz-expected-bucket-owner") as requests:
        for _ in range(2):
            answer = ask(manage, "PUT", FREEZE, frozen(until="2999-01-01T02:00:00.9+02:00"))
            assert done(answer) == {"name": "network/prod", "freeze": freeze}
        refused = ask(manage, "POST", RESTORE, back_to(first))
        assert error(refused) == (423, "frozen")
        assert json.loads(refused["body"])["lock"]["Info"] == (
            'principal "token:operator", verified by Holdfast; '
            'info "frozen until 2999-01-01T00:00:00Z: an incident"'
        )
        for removed in (True, False):
            answer = ask(manage, "DELETE", FREEZE, query={"id": COMMAND})
            assert done(answer) == {"name": "network/prod", "removed": removed}
        restored = done(ask(manage, "POST", RESTORE, back_to(first, current=second)))
    assert {method for method, _ in requests} == {"GET", "PUT", "DELETE"}
    assert {owner for _, owner in requests} == {ACCOUNT}
    assert restored == {
        "name": "network/prod",
        "version": restored["version"],
        "serial": 3,
        "restored_from": first,
        "restored_serial": 1,
        "lineage": LINEAGE,
        "changed": True,
    }
    assert done(ask(manage, "POST", RESTORE, back_to(first, current=second))) == restored
    again = done(ask(manage, "POST", RESTORE, back_to(first, id=ANOTHER_COMMAND)))
    assert again == {**restored, "changed": False}
    assert bucket.bodies(NAME.state_key) == [state(1, content="good"), state(2), state(3, content="good")]


def test_only_the_version_that_the_operator_saw_is_deleted_and_it_comes_back(
    manage: Handle, bucket: Bucket
) -> None:
    first, second = written(bucket, state(1), state(2))
    refused = ask(manage, "POST", DELETE, {"version": first})
    assert error(refused) == (409, "base_changed")
    assert second in message(refused)
    assert bucket.bodies(NAME.state_key) == [state(1), state(2)]
    assert done(ask(manage, "POST", DELETE, {"version": second})) == {
        "name": "network/prod",
        "version": second,
    }
    assert done(ask(manage, "POST", DELETE, {"version": second})) == {"name": "network/prod", "version": None}
    assert "Upgrade the command" in message(ask(manage, "POST", UNDELETE))
    undone = marker(bucket)
    back = done(ask(manage, "POST", UNDELETE, undone))
    assert back == {
        "name": "network/prod",
        "version": back["version"],
        "serial": 2,
        "lineage": LINEAGE,
        "from_version": second,
        "from_time": back["from_time"],
    }
    assert back["from_time"].endswith("Z")
    assert done(ask(manage, "POST", UNDELETE, undone)) == back
    done(ask(manage, "POST", DELETE, {"version": back["version"]}))
    refused = ask(manage, "POST", UNDELETE, undone)  # a repeat undoes no later delete
    assert error(refused) == (409, "base_changed")
    assert marker(bucket)["marker"] in message(refused)
    assert bucket.bodies(NAME.state_key) == [state(1), state(2), state(2)]
    assert bucket.history(NAME.lock_key) == []


def test_a_lock_is_broken_by_id_and_version_alone(manage: Handle, bucket: Bucket) -> None:
    version = locked(bucket)
    refused = ask(manage, "PUT", FREEZE, frozen())
    assert error(refused) == (423, "locked")
    assert json.loads(refused["body"])["lock"]["Who"] == "ada@laptop"
    refused = ask(manage, "DELETE", FREEZE, query={"id": COMMAND})
    assert error(refused) == (409, "not_frozen")
    assert "ada@laptop" in message(refused)
    for query in ({"id": "two", "version": version}, {"id": "one", "version": "null"}):
        refused = ask(manage, "DELETE", LOCK, query=query)
        assert error(refused) == (409, "lock_not_matched")
        assert "ada@laptop" in message(refused)
    for removed in (True, False):
        answer = ask(manage, "DELETE", LOCK, query={"id": "one", "version": version})
        assert done(answer) == {"name": "network/prod", "removed": removed}
    assert bucket.history(NAME.lock_key) == []
    ask(manage, "PUT", FREEZE, frozen())
    freeze = held.read(bucket.direct_store(), NAME)
    assert freeze is not None
    refused = ask(manage, "DELETE", LOCK, query={"id": freeze.info.id, "version": freeze.identity.version_id})
    assert error(refused) == (423, "frozen")


def test_what_there_is_not_gets_its_code(manage: Handle, bucket: Bucket) -> None:
    assert error(ask(manage, "POST", RESTORE, back_to("x"))) == (404, "no_such_version")
    assert error(ask(manage, "POST", UNDELETE, {"marker": "x"})) == (404, "no_versions")
    [only] = written(bucket, state(1))
    assert error(ask(manage, "POST", UNDELETE, {"marker": only})) == (409, "base_changed")
    done(ask(manage, "POST", DELETE, {"version": only}))
    assert error(ask(manage, "POST", RESTORE, back_to(only))) == (409, "state_deleted")
    [large] = written(bucket, state(1, content="x" * 1_000_000))
    written(bucket, state(2))
    assert error(ask(manage, "POST", RESTORE, back_to(large))) == (413, "too_large")


# --- references, which move, and exact IDs, which do not ---------------------------------------------


def resolved(manage: Handle, reference: str) -> Any:
    return done(ask(manage, "GET", "resolve/network/prod", query={"version": reference}))


@pytest.mark.parametrize("is_lost", ["request", "response"])
@pytest.mark.parametrize("form", ["@1", "@previous", "time"])
def test_a_restore_whose_answer_is_lost_never_restores_what_a_reference_means_later(
    manage: Handle, bucket: Bucket, form: str, is_lost: str
) -> None:
    first, second = written(bucket, state(1), state(2))
    reference = f"@{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}" if form == "time" else form
    meant = resolved(manage, reference)
    exact = second if form == "time" else first
    assert (meant["found"]["version"], meant["current"]["version"]) == (exact, second)
    wanted = back_to(exact, current=second)
    if is_lost == "response":
        done(ask(manage, "POST", RESTORE, wanted))
    before = bucket.bodies(NAME.state_key)
    applied = state(len(before) + 1, content="applied in between")
    written(bucket, applied)

    retried = ask(manage, "POST", RESTORE, wanted)

    assert error(retried) == (409, "base_changed")
    assert bucket.bodies(NAME.state_key) == [*before, applied]
    if form == "@previous":
        assert resolved(manage, form)["found"]["version"] != exact


def test_an_undelete_whose_answer_is_lost_undoes_the_deletion_that_was_meant(
    manage: Handle, bucket: Bucket
) -> None:
    [only] = written(bucket, state(1))
    done(ask(manage, "POST", DELETE, {"version": only}))
    meant = resolved(manage, "@deleted")["found"]["version"]
    assert {"marker": meant} == marker(bucket)
    back = done(ask(manage, "POST", UNDELETE, {"marker": meant}))
    assert resolved(manage, "@deleted")["found"]["version"] == meant
    [applied] = written(bucket, state(2))
    assert error(ask(manage, "POST", UNDELETE, {"marker": meant})) == (409, "base_changed")
    done(ask(manage, "POST", DELETE, {"version": applied}))
    assert resolved(manage, "@deleted")["found"]["version"] != meant
    assert error(ask(manage, "POST", UNDELETE, {"marker": meant})) == (409, "base_changed")
    assert back["from_version"] == only


@pytest.mark.parametrize("reference", ["@1", "@previous", "@deleted", "@2026-11-20T14:00:00Z", "@"])
def test_what_changes_a_state_or_reads_a_version_takes_no_reference(
    manage: Handle, bucket: Bucket, reference: str
) -> None:
    written(bucket, state(1), state(2))
    for method, path, body, query in (
        ("POST", RESTORE, back_to(reference), {}),
        ("POST", DELETE, {"version": reference}, {}),
        ("POST", UNDELETE, {"marker": reference}, {}),
        ("GET", "content/network/prod", None, {"version": reference}),
        ("GET", "diff/network/prod", None, {"from": reference}),
    ):
        refused = ask(manage, method, path, body, query=query)
        assert error(refused) == (400, "invalid_request"), path
        assert "is a reference, and the version that it means can change" in message(refused)
    assert bucket.bodies(NAME.state_key) == [state(1), state(2)]


def test_a_reference_of_a_state_that_there_is_not_gets_its_code(manage: Handle, bucket: Bucket) -> None:
    path = "resolve/network/prod"
    assert error(ask(manage, "GET", path, query={"version": "@1"})) == (404, "no_state")
    written(bucket, state(1))
    for query, expected in (
        ({"version": "@2"}, (404, "no_such_version")),
        ({"version": "@tomorrow"}, (400, "invalid_request")),
        ({"version": "v-1"}, (400, "invalid_request")),
        ({}, (400, "invalid_request")),
        ({"version": "@1", "cursor": "x"}, (400, "invalid_request")),
    ):
        assert error(ask(manage, "GET", path, query=query)) == expected


# --- what breaks a rule --------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "/", "stats/network/prod", "Restore/a", "restore/../a/x", "whoami/x"])
def test_another_route_gets_400_and_never_404(manage: Handle, log: list[str], path: str) -> None:
    refused = ask(manage, "POST", path)
    assert refused["statusCode"] == 400
    assert error(refused)[1] in ("unknown_route", "invalid_state_name")
    assert json.loads(log[-1])["message"] == "request.refused"


@pytest.mark.parametrize("path", ["restore", "restore/", "freeze", "undelete/"])
def test_a_route_of_a_state_without_its_name_says_what_is_missing(manage: Handle, path: str) -> None:
    refused = ask(manage, "POST", path)
    assert error(refused) == (400, "invalid_request")
    assert "Name the state" in message(refused)


@pytest.mark.parametrize(
    "name",
    [
        *("..", "a//b", "a/", ".a", "ü", "a\x00", "a" * 201),
        *("holdfast-doctor/x", f"holdfast-doctor/{COMMAND}"),
    ],
)
def test_a_name_that_breaks_a_rule_gets_400_before_s3_is_asked(
    manage: Handle, log: list[str], name: str
) -> None:
    values = {"name": name, "version": "x", "command": COMMAND}
    calls = (call for call in access_calls.CALLS if call.route.startswith(access_calls.MANAGEMENT))
    for call in (call for call in calls if "/{name}" in call.route):
        method, address, body = access_calls.request(call, values)
        path, _, query = address.removeprefix(access_calls.MANAGEMENT).partition("?")
        refused = ask(manage, method, path, body and body.decode(), query=dict(parse_qsl(query)))
        assert error(refused) == (400, "invalid_state_name"), call
    assert {json.loads(line)["s3_requests"] for line in log} == {0}


REASONS: list[object] = ["", " ", "a\nb", "a\x00", "\x1b[31mred", "a\u2028b", "x" * 201, "x" * 10_000, 5, []]
IDS: list[object] = [
    "",
    "x",
    COMMAND[1:],
    COMMAND + "0",
    COMMAND + "\n",
    COMMAND.upper(),
    "٣" * 32,
    5,
    {"a": 1},
]
TIMES: list[object] = [
    *("", "tomorrow", "2999-01-01", "2999-01-01T00:00:00", "2020-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", 5, True, ["2999-01-01T00:00:00Z"]),
]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        *(("PUT", FREEZE, frozen(reason=reason)) for reason in REASONS),
        *(("POST", RESTORE, back_to("x", reason=reason)) for reason in REASONS),
        *(("PUT", FREEZE, frozen(id=odd)) for odd in IDS),
        *(("POST", RESTORE, back_to("x", id=odd)) for odd in IDS),
        *(("PUT", FREEZE, frozen(until=until)) for until in TIMES),
        *(("POST", RESTORE, back_to(odd)) for odd in ("", "x" * 201, "\ud800")),
        *(("POST", RESTORE, back_to("x", current=odd)) for odd in ("", 5, "\udfff")),
        *(("POST", RESTORE, back_to("x", replace_lineage=odd)) for odd in (True, False, "true")),
        ("POST", RESTORE, back_to("\udfff", replace_lineage=True)),
        ("POST", RESTORE, back_to("x", cursor="y")),
        *(("POST", DELETE, {"version": odd}) for odd in ("", 5)),
        *(("POST", DELETE, {"version": "x", "reason": odd}) for odd in ("", 5, "x" * 201, "a\nb")),
        *(("POST", UNDELETE, {"marker": "x", "reason": odd}) for odd in (" ", "x" * 201, "a\x1bb")),
        *(("POST", path, None) for path in (RESTORE, DELETE)),
        ("PUT", FREEZE, None),
        ("PUT", FREEZE, frozen(force=True)),
        ("POST", RESTORE, back_to("x", serial=5)),
        ("POST", DELETE, {"version": "x", "id": COMMAND}),
        *(
            ("POST", UNDELETE, odd)
            for odd in (None, {}, {"version": "x"}, {"marker": "x" * 201}, {"marker": 5})
        ),
        ("DELETE", FREEZE, {"id": COMMAND}),
        *(("POST", UNDELETE, odd) for odd in ("[]", "null", "{", '{"a":1,"a":1}', "[" * 10_000, '"\ud800')),
    ],
)
def test_a_document_that_breaks_a_rule_is_refused_before_s3_is_asked(
    manage: Handle, log: list[str], method: str, path: str, body: object
) -> None:
    refused = ask(manage, method, path, body)
    assert refused["statusCode"] == 400, refused
    assert error(refused)[1] in ("invalid_request", "invalid_body")
    (line,) = log
    assert json.loads(line)["s3_requests"] == 0
    assert len(line) < 2048


def test_a_command_of_0_3_0_that_replaces_a_lineage_is_told_what_to_do_instead(manage: Handle) -> None:
    refused = message(ask(manage, "POST", RESTORE, back_to("v-12", current="v-14", replace_lineage=True)))
    assert "no longer accepts the member 'replace_lineage'" in refused
    assert "'holdfast state get network/prod --version v-12 --output old.tfstate'" in refused
    assert "'terraform state push -force old.tfstate'" in refused


def test_a_document_that_is_larger_than_any_is_refused(manage: Handle) -> None:
    refused = ask(manage, "PUT", FREEZE, frozen(reason="x" * 70_000))
    assert error(refused) == (413, "too_large")


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("DELETE", LOCK, {}),
        ("DELETE", LOCK, {"id": "one"}),
        ("DELETE", LOCK, {"id": "one", "version": ""}),
        ("DELETE", LOCK, {"id": "one", "version": "x", "force": "true"}),
        ("DELETE", LOCK, {"id": "one", "version": "x", "reason": "x" * 201}),
        ("DELETE", LOCK, {"id": "\ud800", "version": "x"}),
        ("DELETE", LOCK, {"id": "one", "version": "\ud800"}),
        ("DELETE", FREEZE, {}),
        ("DELETE", FREEZE, {"id": COMMAND[1:]}),
        ("DELETE", FREEZE, {"ID": COMMAND}),
        ("POST", UNDELETE, {"version": "x"}),
        ("POST", RESTORE, {"version": "x"}),
    ],
)
def test_a_parameter_that_is_missing_misspelled_or_too_many_removes_nothing(
    manage: Handle, bucket: Bucket, method: str, path: str, query: dict[str, str]
) -> None:
    version = locked(bucket)
    refused = ask(manage, method, path, back_to("x") if path == RESTORE else None, query=query)
    assert error(refused) == (400, "invalid_request")
    lock = held.read(bucket.direct_store(), NAME)
    assert lock is not None
    assert lock.identity.version_id == version


def test_a_body_that_did_not_arrive_whole_changes_nothing(manage: Handle, bucket: Bucket) -> None:
    refused = ask(manage, "PUT", FREEZE, frozen(), headers={"content-length": "5"})
    assert error(refused) == (400, "invalid_body")
    assert bucket.history("") == []


# --- the log -------------------------------------------------------------------------------------


def test_every_request_leaves_one_line_with_what_the_audit_trail_keeps_and_no_content(
    manage: Handle, bucket: Bucket, log: list[str]
) -> None:
    first, second = written(bucket, state(1, content="confidential"), state(2, content="confidential"))
    version = locked(bucket)
    ask(manage, "DELETE", LOCK, query={"id": "one", "version": version, "reason": "its runner is gone"})
    ask(manage, "PUT", FREEZE, frozen(until="2999-01-01T00:00:00Z"))
    ask(manage, "POST", DELETE, {"version": second})
    ask(manage, "DELETE", FREEZE, query={"id": COMMAND})
    restored = done(ask(manage, "POST", RESTORE, back_to(first, current=second)))
    ask(manage, "POST", RESTORE, back_to(first, id=ANOTHER_COMMAND))
    ask(manage, "POST", DELETE, {"version": restored["version"], "reason": "moved to network/two"})
    back = done(ask(manage, "POST", UNDELETE, {**marker(bucket), "reason": "deleted too early"}))
    lines = [json.loads(line) for line in log]
    told = [{name: line[name] for name in line.keys() & set(audit.FIELDS)} for line in lines]
    for line in told:
        assert line.pop("request_id")
        common = ("principal", "owner", "source", "role", "state", "source_ip", "token", "status", "trust")
        who = {name: line.pop(name, None) for name in common}
        assert (who["principal"], who["role"], who["state"]) == (
            "token:operator",
            "maintainer",
            "network/prod",
        )
    assert [line["message"] for line in lines] == [
        *("lock.force_unlocked", "state.frozen", "request.refused", "state.unfrozen"),
        *("state.restored", "state.unchanged", "state.deleted", "state.undeleted"),
    ]
    restored_line = {
        "operation": "restore",
        "serial": 3,
        "version_id": restored["version"],
        "restored_from": first,
        "restored_serial": 1,
        "reason": "back to Tuesday",
    }
    assert told == [
        {
            "lock_id": "one",
            "operation": "OperationTypeApply",
            "who": "ada@laptop",
            "held_by": "token:ada",
            "marker_left": False,
            "reason": "its runner is gone",
        },
        {"freeze": COMMAND, "reason": "an incident", "until": "2999-01-01T00:00:00Z"},
        {"error": "frozen", "held_by": "token:operator"},
        {"freeze": COMMAND, "held_by": "token:operator"},
        {**restored_line, "serial_before": 2},
        {**restored_line, "serial_before": 2},
        {"version_id": restored["version"], "reason": "moved to network/two"},
        {
            "operation": "undelete",
            "serial": 3,
            "version_id": back["version"],
            "restored_from": restored["version"],
            "reason": "deleted too early",
        },
    ]
    assert {line["level"] for line in lines} == {"INFO", "WARNING"}
    assert "confidential" not in "".join(log)


def test_a_failure_is_logged_with_what_it_was_about_and_can_be_retried(
    manage: Handle, bucket: Bucket, log: list[str]
) -> None:
    version = locked(bucket)
    bucket.proxy.fail("DELETE", NAME.lock_key, Fault.DENIED, times=2)
    refused = ask(manage, "DELETE", LOCK, query={"id": "one", "version": version})
    assert error(refused) == (500, "storage_refused")
    line = json.loads(log[-1])
    assert (line["level"], line["lock_id"], line["held_by"]) == ("ERROR", "one", "token:ada")
    assert "AccessDenied" in line["reason"]
    ask(manage, "DELETE", LOCK, query={"id": "one", "version": version})

    [only] = written(bucket, state(1))
    done(ask(manage, "POST", DELETE, {"version": only}))
    bucket.proxy.fail("DELETE", NAME.lock_key, Fault.DENIED, times=2)
    left = ask(manage, "POST", UNDELETE, marker(bucket))
    assert error(left) == (500, "lock_left")
    assert done(ask(manage, "POST", UNDELETE, marker(bucket)))["from_version"] == only
    assert bucket.history(NAME.lock_key) == []
