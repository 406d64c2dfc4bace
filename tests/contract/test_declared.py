"""Names that must be declared: the refusals, their number of requests, and how to declare a name."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any
from uuid import uuid4

import pytest

from holdfast import names
from holdfast.access import Caller, Grant, Role
from holdfast.cloud import locking, records, workspaces
from holdfast.cloud.ids import WorkspaceId
from holdfast.errors import BaseChanged, DeleteOutcomeUnknown, HoldfastError, NotDeclared
from holdfast.state import acquiring, declared, held
from holdfast.state.read import read, read_outputs
from holdfast.state.write import write
from tests.contract.cloud_api import announced
from tests.contract.conftest import NAME, PROBE, Answer, Bucket, Handle, Server, started
from tests.support.documents import ADA, OPERATOR, lock_info, state
from tests.support.events import Context, cloud_request, manage_request, request
from tests.support.request_budget import ACQUIRE, FIRST_WRITE, LOOK, READ, WRITE
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

BUCKET = "holdfast-declared"
STATE = "states/network/prod.tfstate"
RECORD = "workspaces/network/prod.json"
LOCK = lock_info("one").decode()


@dataclass(frozen=True)
class Api:
    """The functions of a team whose names must be declared, and its bucket."""

    handlers: dict[str, Handle]
    bucket: Bucket

    def http(self, method: str, route: str, name: str, **more: Any) -> Answer:
        event = request(method, f"/{route}/{{name+}}", name, **{"caller": ADA, **more})
        return self.handlers["terraform_http"](event, Context())

    def cloud(self, method: str, path: str, data: object = None) -> Answer:
        body = None if data is None else json.dumps({"data": data})
        return self.handlers["cloud"](cloud_request(method, path, caller=ADA, body=body), Context())

    def manage(self, path: str, caller: Caller = ADA, body: str | None = None) -> Answer:
        return self.handlers["management"](manage_request("POST", path, caller=caller, body=body), Context())

    def put(self, key: str, body: bytes = b"") -> None:
        self.bucket.s3.put_object(Bucket=BUCKET, Key=key, Body=body or state(1))

    def stored(self) -> list[str]:
        listed = self.bucket.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return [found["Key"] for found in listed]


@pytest.fixture(scope="module")
def functions(moto: Server) -> Iterator[Api]:
    with started(
        moto,
        *("terraform_http", "cloud", "management"),
        HOLDFAST_BUCKET=BUCKET,
        HOLDFAST_REQUIRE_LOCK="false",
        HOLDFAST_NEW_STATES="declared",
    ) as handlers:
        yield Api(handlers, Bucket(BUCKET, moto))


@pytest.fixture
def api(functions: Api) -> Iterator[Api]:
    yield functions
    functions.bucket.empty()


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "route", "body"),
    [
        ("PUT", "locks", LOCK),
        ("LOCK", "states", LOCK),
        ("GET", "states", None),
        ("GET", "outputs", None),
        ("POST", "states", state(1).decode()),
    ],
)
def test_a_name_that_nobody_declared_is_refused_with_a_lock_document_that_says_so(
    api: Api, log: list[str], method: str, route: str, body: str | None
) -> None:
    api.put(STATE)
    refused = api.http(method, route, "network/prdo", body=body)

    assert refused["statusCode"] == 423
    holder = json.loads(refused["body"])
    declare = "'holdfast state declare network/prdo'"
    assert holder["ID"] == f"no such state: network/prdo (nearest: network/prod); {declare} declares the name"
    assert declare in holder["Info"]
    # A time that Go cannot parse would make it a fault for the client.
    assert holder["Created"] == "0001-01-01T00:00:00Z"
    assert api.stored() == [STATE]
    line = json.loads(log[-1])
    assert (line["message"], line["error"], line["status"]) == ("request.refused", "not_declared", 423)


@pytest.mark.parametrize("declared_by", [STATE, RECORD])
def test_a_state_or_a_record_declares_a_name(api: Api, declared_by: str) -> None:
    api.put(declared_by)
    read = api.http("GET", "states", "network/prod")
    assert read["statusCode"] == (200 if declared_by == STATE else 204)
    assert api.http("PUT", "locks", "network/prod", body=LOCK)["statusCode"] == 200
    body = state(2).decode()
    assert api.http("POST", "states", "network/prod", body=body, lock_id="one")["statusCode"] == 200
    assert api.http("GET", "outputs", "network/prod")["statusCode"] == 200


def test_a_record_that_s3_refuses_to_show_declares_nothing(api: Api) -> None:
    api.bucket.proxy.fail("GET", RECORD, Fault.DENIED)
    refused = api.http("GET", "states", "network/prod")
    assert (refused["statusCode"], json.loads(refused["body"])["error"]) == (500, "storage_refused")


def test_a_probe_of_the_doctor_needs_no_declaration(api: Api) -> None:
    probe = f"holdfast-doctor/{uuid4().hex}"
    assert api.http("GET", "states", probe)["statusCode"] == 204
    assert api.http("PUT", "locks", probe, body=LOCK)["statusCode"] == 200
    body = json.dumps({**json.loads(state(1)), "outputs": {}})
    assert api.http("POST", "states", probe, body=body, lock_id="one")["statusCode"] == 200


def test_who_may_not_use_a_name_does_not_learn_whether_it_is_declared(api: Api) -> None:
    api.put(RECORD)
    outside = Caller("token:x", (Grant(Role.WRITER, ("app/*",)),))
    for name in ("network/prod", "network/prdo"):
        assert api.http("GET", "states", name, caller=outside)["statusCode"] == 403


def test_cloud_refuses_to_create_what_a_typing_error_does_not_find(api: Api) -> None:
    api.put(STATE)
    # The client reads this as "create it", and shows the response to its create.
    assert api.cloud("GET", "organizations/network/workspaces/prdo")["statusCode"] == 404
    document = {"type": "workspaces", "attributes": {"name": "prdo"}}
    refused = api.cloud("POST", "organizations/network/workspaces", document)

    # 409 is what clients wait for.
    assert refused["statusCode"] == 423
    (error,) = json.loads(refused["body"])["errors"]
    assert (error["status"], error["code"], error["title"]) == ("423", "not_declared", "Not declared")
    assert "'holdfast state declare network/prdo'" in error["detail"]
    assert "network/prod." in error["detail"]
    assert api.stored() == [STATE]


@pytest.mark.parametrize(
    ("method", "call", "data"),
    [
        ("POST", "actions/lock", None),
        ("GET", "current-state-version", None),
        ("GET", "current-state-version-outputs", None),
        ("POST", "state-versions", announced(b"x")),
    ],
)
def test_cloud_refuses_by_id_what_it_refuses_by_name(api: Api, method: str, call: str, data: object) -> None:
    workspace = WorkspaceId.mint(names.parse("network/prdo"))
    if data:  # by somebody who acquired the lock before names had to be declared
        store = api.bucket.direct_store()
        acquiring.acquire_own(work(store, workspace.name, ADA), locking.lock_info(workspace, ADA))
    refused = api.cloud(method, f"workspaces/{workspace}/{call}", data)
    (error,) = json.loads(refused["body"])["errors"]
    assert (refused["statusCode"], error["code"]) == (423, "not_declared")


def test_cloud_creates_the_workspace_of_a_state_that_is_there(api: Api) -> None:
    api.put(STATE)
    document = {"type": "workspaces", "attributes": {"name": "prod"}}
    assert api.cloud("POST", "organizations/network/workspaces", document)["statusCode"] == 201


# --- the nearest names ----------------------------------------------------------------------------------


def nearest(bucket: Bucket, name: str, caller: Caller = ADA) -> list[str]:
    return declared.nearest(work(bucket.store(), names.parse(name), caller))


def test_the_nearest_names_are_of_states_and_records_in_the_callers_scope(bucket: Bucket) -> None:
    for key in (
        STATE,
        "workspaces/network/prod2.json",
        "states/secret/prod.tfstate",
        "states/odd key.tfstate",
    ):
        bucket.s3.put_object(Bucket=bucket.name, Key=key, Body=b"{}")
    assert nearest(bucket, "network/prdo")[:2] == ["network/prod", "network/prod2"]
    assert nearest(bucket, "secret/prdo")[0] == "secret/prod"
    assert nearest(bucket, "something/else") == []
    scope = Caller("token:x", (Grant(Role.OUTPUTS, ("network/*",)),))
    assert set(nearest(bucket, "secret/prdo", scope)) <= {"network/prod", "network/prod2"}


def test_of_many_states_some_are_looked_at_first_those_that_begin_alike(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declared, "_PAGE", 2)
    for name in ("app/a", "app/b", "app/c", "network/prod", "network/zzzzzz"):
        for key in (f"states/{name}.tfstate", f"workspaces/{name}.json"):
            bucket.s3.put_object(Bucket=bucket.name, Key=key, Body=b"{}")
    with bucket.sent("host") as sent:
        assert nearest(bucket, "network/prdo") == ["network/prod"]
    assert len(sent) == 4


# --- what it costs --------------------------------------------------------------------------------------

Step = Callable[[Bucket], object]


def acquire(bucket: Bucket, name: names.StateName = NAME) -> None:
    acquiring.acquire(work(bucket.store(), name, ADA, declared_only=True), lock_info("one"))


def first_write(bucket: Bucket) -> None:
    write(work(bucket.store(), NAME, ADA, declared_only=True), state(1), None)


def next_write(bucket: Bucket) -> None:
    write(work(bucket.store(), NAME, ADA, declared_only=True), state(2), None)


def declare(bucket: Bucket) -> None:
    records.create(bucket.store(), NAME, {}, "token:ada")


def read_it(bucket: Bucket) -> None:
    read(work(bucket.store(), NAME, ADA, declared_only=True))
    read_outputs(work(bucket.store(), NAME, ADA, declared_only=True))


@pytest.mark.parametrize(
    ("before", "verb", "requests"),
    [
        pytest.param([declare, first_write], acquire, ["GET", *ACQUIRE], id="acquire, with a state"),
        pytest.param([declare], acquire, ["GET", "GET", *ACQUIRE], id="acquire, without a state"),
        pytest.param([], lambda bucket: acquire(bucket, PROBE), ACQUIRE, id="acquire, of a probe"),
        pytest.param([declare, first_write], read_it, [*READ, *READ], id="read"),
        pytest.param([declare], read_it, [*READ, "GET", *LOOK] * 2, id="read, without a state"),
        pytest.param(
            [declare],
            first_write,
            ["GET", *FIRST_WRITE[:4], *LOOK, *FIRST_WRITE[4:], *LOOK],
            id="first write, unlocked",
        ),
        pytest.param([declare, first_write], next_write, WRITE, id="next write"),
    ],
)
def test_a_verb_sends_no_more_requests_than_promised(
    bucket: Bucket, before: list[Step], verb: Step, requests: Sequence[str]
) -> None:
    for step in before:
        step(bucket)
    with bucket.sent("host") as sent:
        verb(bucket)
    assert [method for method, _ in sent] == list(requests)


def test_a_first_write_under_a_lock_is_refused_if_the_record_is_gone(bucket: Bucket) -> None:
    declare(bucket)
    acquire(bucket)
    bucket.s3.delete_object(Bucket=bucket.name, Key=NAME.record_key)
    with pytest.raises(NotDeclared):
        write(work(bucket.store(), NAME, ADA, require_lock=True, declared_only=True), state(1), "one")
    assert bucket.bodies(NAME.state_key) == []


# --- how a name is declared -----------------------------------------------------------------------------


def answer(found: Answer, status: int = 200) -> Any:
    assert found["statusCode"] == status, found
    return json.loads(found["body"])


@pytest.mark.parametrize("name", ["network/prod", "prod"])
def test_a_writer_declares_a_name_once(api: Api, log: list[str], name: str) -> None:
    assert answer(api.manage(f"create/{name}")) == {"name": name, "created": True}
    assert api.stored() == [f"workspaces/{name}.json"]
    assert json.loads(log[-1])["message"] == "state.declared"
    for caller in (ADA, OPERATOR):
        assert answer(api.manage(f"create/{name}", caller, "{}")) == {"name": name, "created": False}
    assert api.http("PUT", "locks", name, body=LOCK)["statusCode"] == 200


def test_a_state_that_is_there_is_declared_without_a_record(api: Api) -> None:
    api.put(STATE)
    assert answer(api.manage("create/network/prod"))["created"] is False
    assert api.stored() == [STATE]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"create/{PROBE}", "invalid_state_name"),
        ("create/network//prod", "invalid_state_name"),
        ("create", "invalid_request"),
    ],
)
def test_what_cannot_be_declared(api: Api, path: str, code: str) -> None:
    assert answer(api.manage(path), 400)["error"] == code
    assert api.stored() == []


def test_a_state_that_was_deleted_is_declared_by_its_record_alone_and_comes_back_without(api: Api) -> None:
    for name in ("network/prod", "network/other"):
        api.put(f"states/{name}.tfstate")
    api.put(RECORD)
    for name, status in (("network/prod", 204), ("network/other", 423)):
        assert api.http("DELETE", "states", name, caller=OPERATOR)["statusCode"] == 200
        assert api.http("GET", "states", name)["statusCode"] == status
        undone = json.dumps({"marker": api.bucket.marker(f"states/{name}.tfstate")})
        assert answer(api.manage(f"undelete/{name}", OPERATOR, undone))["serial"] == 1
        assert api.http("GET", "states", name)["statusCode"] == 200


# --- how a declaration is undone ------------------------------------------------------------------------


def test_a_maintainer_undeclares_a_name_and_leaves_neither_record_nor_lock(api: Api, log: list[str]) -> None:
    answer(api.manage("create/network/prod"))
    record = api.bucket.direct_store().read_version(RECORD)
    assert record
    seen = json.dumps({"record": record.version_id})
    # A retry finds it done.
    for removed, event in ((True, "state.undeclared"), (False, "state.unchanged")):
        told = answer(api.manage("undeclare/network/prod", OPERATOR, seen))
        assert told == {"name": "network/prod", "removed": removed}
        assert api.stored() == []
        line = json.loads(log[-1])
        assert (line["message"], line["state"]) == (event, "network/prod")
    assert api.http("PUT", "locks", "network/prod", body=LOCK)["statusCode"] == 423


def test_a_first_apply_that_holds_the_lock_is_not_cut_off(api: Api) -> None:
    answer(api.manage("create/network/prod"))
    record = api.bucket.direct_store().read_version(RECORD)
    assert record
    assert api.http("PUT", "locks", "network/prod", body=LOCK)["statusCode"] == 200
    seen = json.dumps({"record": record.version_id})
    assert answer(api.manage("undeclare/network/prod", OPERATOR, seen), 423)["error"] == "locked"
    body = state(1).decode()
    assert api.http("POST", "states", "network/prod", body=body, lock_id="one")["statusCode"] == 200
    assert RECORD in api.stored()


def put_state(bucket: Bucket) -> None:
    bucket.s3.put_object(Bucket=bucket.name, Key=NAME.state_key, Body=state(1))


def tag(bucket: Bucket) -> None:
    found = records.read(bucket.direct_store(), NAME)
    assert found
    assert records.change(bucket.direct_store(), NAME, found, {"team": "a"})


def remove_lock(bucket: Bucket) -> None:
    bucket.s3.delete_object(Bucket=bucket.name, Key=NAME.lock_key)


@pytest.mark.parametrize(
    ("request_", "meanwhile", "error", "is_declared"),
    [
        (("PUT", ".tflock"), put_state, BaseChanged, True),
        (("PUT", ".tflock"), tag, BaseChanged, True),
        (("DELETE", ".json"), tag, BaseChanged, True),
        (("DELETE", ".json"), remove_lock, DeleteOutcomeUnknown, False),
    ],
    ids=["a state", "another record", "another record at last", "the lock removed"],
)
def test_an_undeclare_compares_what_it_finds_under_its_lock(
    bucket: Bucket,
    request_: tuple[str, str],
    meanwhile: Callable[[Bucket], None],
    error: type[HoldfastError],
    is_declared: bool,
) -> None:
    declare(bucket)
    record = bucket.direct_store().read_version(NAME.record_key)
    assert record
    bucket.proxy.before(*request_, lambda: meanwhile(bucket))
    with pytest.raises(error):
        workspaces.undeclare(work(bucket.store(), NAME, OPERATOR), record.version_id)
    bucket.proxy.end_rules()
    assert (records.read(bucket.direct_store(), NAME) is not None) is is_declared
    assert held.read(bucket.direct_store(), NAME) is None


def test_a_name_is_suggested_however_many_foreign_names_come_before_it(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declared, "_PAGE", 2)
    bucket.s3.put_object(Bucket=bucket.name, Key="states/b/mine-of-ours.tfstate", Body=b"{}")
    caller = Caller("token:writer", (Grant(Role.WRITER, ("*/mine-of-ours", "zz/*")),))
    for foreign in ("a/1", "a/2", "a/3", "b/a"):
        assert nearest(bucket, "zz/mine-of-ours", caller) == ["b/mine-of-ours"]
        bucket.s3.put_object(Bucket=bucket.name, Key=f"states/{foreign}.tfstate", Body=b"{}")


def test_few_of_many_similar_names_are_compared_in_full(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz" * 7
    same_letters = [letters[at:] + letters[:at] for at in range(26)]
    for name in [*(f"{one}-{two}" for one in same_letters for two in "abc")]:
        bucket.s3.put_object(Bucket=bucket.name, Key=f"states/{name}.tfstate", Body=b"{}")
    compared = []
    ratio = SequenceMatcher.ratio

    def counted(matcher: SequenceMatcher[str]) -> float:
        compared.append(1)
        return ratio(matcher)

    monkeypatch.setattr(SequenceMatcher, "ratio", counted)
    assert nearest(bucket, letters) == [f"{letters}-{two}" for two in "abc"]
    assert len(compared) <= 50
