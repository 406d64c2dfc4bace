"""The reading routes of the management API, from event to response, on a real S3 server."""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pytest
import urllib3

from holdfast import names
from holdfast.access import Action, Caller, Grant, Role, roles_with
from holdfast.api import form, v1
from holdfast.s3.objects import ObjectVersion
from holdfast.state import acquiring
from holdfast.state.catalog import Listed
from holdfast.state.cursor import Page
from holdfast.state.freezing.states import freeze
from holdfast.state.held import CommandLock, Freeze, LockIdentity
from holdfast.state.lock_info import LockInfo
from holdfast.state.write import write
from tests.contract.conftest import NAME, ONLY_OUTPUTS, READER, Answer, Bucket, Handle, Server, started
from tests.support.documents import ADA, LINEAGE, OPERATOR, encrypted_state, lock_info, old_state, state
from tests.support.environment import SETTINGS
from tests.support.events import Context, manage_request
from tests.support.work import work

BUCKET = "holdfast-management-reading"
ELSEWHERE = Caller("token:elsewhere", (Grant(Role.MAINTAINER, ("billing/*",)),), "the billing team")
AUDITOR = Caller("token:auditor", (Grant(Role.AUDITOR, ("*",)),))
BEA = replace(ADA, owner="bea@example.com")


@dataclass(frozen=True)
class Api:
    handle: Handle
    bucket: Bucket

    def ask(
        self,
        path: str,
        caller: Caller | None = READER,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        event = manage_request("GET", path, caller=caller, headers=headers, query=query)
        return self.handle(event, Context())

    def get(self, path: str, caller: Caller = READER, **query: str) -> Any:
        answer = self.ask(path, caller, query)
        assert answer["statusCode"] == 200, answer
        assert answer["headers"]["Content-Type"] == "application/json"
        return json.loads(answer["body"])

    def refused(self, path: str, caller: Caller = READER, /, **query: str) -> tuple[int, str, str]:
        answer = self.ask(path, caller, query)
        document = json.loads(answer["body"])
        return answer["statusCode"], document["error"], document["message"]

    def write(self, body: bytes, name: names.StateName = NAME, lock_id: str | None = None) -> str:
        """Write, and return the ID of the version."""
        return write(work(self.bucket.direct_store(), name, BEA), body, lock_id).version_id


@pytest.fixture(scope="module")
def function(moto: Server) -> Iterator[Api]:
    endpoint = moto.direct.meta.endpoint_url
    with started(moto, "management", HOLDFAST_BUCKET=BUCKET, HOLDFAST_PRESIGN_ENDPOINT=endpoint) as handlers:
        yield Api(handlers["management"], Bucket(BUCKET, moto))


@pytest.fixture
def api(function: Api) -> Iterator[Api]:
    yield function
    function.bucket.empty()


def tracked(serial: int) -> bytes:
    """A state with resources of each kind."""
    resources = [
        {
            "mode": "managed",
            "type": "a",
            "name": "many",
            "instances": [{"attributes": {"instances": [1]}}] * 3,
        },
        {"mode": "managed", "type": "a", "name": "none", "instances": []},
        {"mode": "data", "type": "b", "name": "one", "instances": [{"attributes": {"mode": "managed"}}]},
        {"mode": "ephemeral", "type": "c", "name": "other", "instances": [{}]},
    ]
    document = {**json.loads(state(serial)), "resources": resources, "outputs": {"ä": {"value": {}}, "b": {}}}
    return json.dumps(document, ensure_ascii=False).encode()


def test_a_list_has_states_and_locks_and_says_who_holds_them(api: Api) -> None:
    api.write(state(1))
    acquiring.acquire(work(api.bucket.direct_store(), names.parse("network/new"), BEA), lock_info("one"))
    found = api.get("states", prefix="network/")
    new, prod = sorted(found["states"], key=lambda one: str(one["name"]))
    assert found["next"] is None
    lock = new.pop("lock")
    assert new == {"name": "network/new", "size": None, "modified": None, "deleted": False}
    assert (lock["id"], lock["who"], lock["principal"]) == ("one", "ada@laptop", "token:ada")
    assert lock["owner"] == "bea@example.com"
    assert (lock["operation"], lock["freeze"]) == ("OperationTypeApply", None)
    assert (prod["name"], prod["size"], prod["lock"]) == ("network/prod", len(state(1)), None)
    assert prod["modified"].endswith("Z")
    assert [one["name"] for one in api.get("locks")["locks"]] == ["network/new"]
    assert api.get("locks/network/new")["lock"]["version"] == lock["version"]
    assert api.get("locks/network/prod") == {"name": "network/prod", "lock": None}
    assert api.get("states", ELSEWHERE)["states"] == []


def test_a_frozen_state_says_why_wherever_locks_are_shown(api: Api) -> None:
    by_operator = work(api.bucket.direct_store(), NAME, OPERATOR)
    freeze(by_operator, Freeze("0" * 32, "incident", None), now=datetime.now(UTC))
    for lock in (
        api.get("states")["states"][0]["lock"],
        api.get("locks")["locks"][0],
        api.get("locks/network/prod")["lock"],
    ):
        shown = dict(lock["freeze"])
        assert shown.pop("since") == lock["since"]
        assert shown == {
            "id": "0" * 32,
            "reason": "incident",
            "by": "token:operator",
            "until": None,
            "ended": False,
        }


def test_deleted_states_are_listed_when_asked_for(api: Api) -> None:
    api.write(state(1))
    api.bucket.s3.delete_object(Bucket=BUCKET, Key=NAME.state_key)
    assert api.get("states")["states"] == []
    (found,) = api.get("states", deleted="true")["states"]
    assert found == {
        "name": "network/prod",
        "size": None,
        "modified": found["modified"],
        "deleted": True,
        "lock": None,
    }
    status, code, message = api.refused("states/network/prod")
    assert (status, code) == (404, "no_state")
    assert "holdfast state undelete" in message


def test_names_with_a_record_are_listed_when_asked_for(api: Api) -> None:
    api.write(state(1))
    for name in ("network/new", "network/prod", "holdfast-doctor/x"):
        api.bucket.s3.put_object(Bucket=BUCKET, Key=f"workspaces/{name}.json", Body=b"{}")
    found = api.get("states", declared="true")["states"]
    assert [one["name"] for one in found] == ["network/new", "network/prod"]
    assert {(one["size"], one["deleted"], bool(one["modified"])) for one in found} == {(None, False, True)}


def test_a_page_of_a_thousand_states_with_the_longest_locks_fits_a_response(function: Api) -> None:
    assert function
    documents, payload = import_module("management.documents"), import_module("gateway.payload")
    for text in ('"\\\n' * 9000, "\U0001f512" * 9000, "\0" * 9000):
        info = LockInfo({"ID": "i" * 200, "Who": text, "Info": text, "Operation": text})
        version = ObjectVersion("", "v" * 32, 1, datetime.now(UTC), {"owner": "o" * 200}, has_own_etag=True)
        lock = CommandLock(LockIdentity("v" * 32, info, "p" * 200), version, version.last_modified)
        listed = [Listed(names.StateName("n" * 200), 10**8, version.last_modified, lock=lock)] * 1000
        for page in (documents.states(Page(listed, "c" * 3000)), documents.locks(Page(listed, "c" * 3000))):
            sent = documents.large(page, accepts_gzip=False)
            assert len(json.dumps({"body": sent.text})) < payload.MAX_BYTES
            assert documents.large(page, accepts_gzip=True).headers == {"Content-Encoding": "gzip"}


def test_one_state_says_what_it_is_and_who_wrote_it(api: Api) -> None:
    acquiring.acquire(work(api.bucket.direct_store(), NAME, ADA), lock_info("one"))
    version = api.write(tracked(3), lock_id="one")
    found = api.get("states/network/prod")
    assert found.pop("lock")["id"] == "one"
    assert found.pop("modified").endswith("Z")
    assert found == {
        "name": "network/prod",
        "version": version,
        "size": len(tracked(3)),
        "serial": 3,
        "lineage": LINEAGE,
        "terraform_version": "1.15.5",
        "principal": "token:ada",
        "owner": "bea@example.com",
        "who": "ada@laptop",
        "operation": "OperationTypeApply",
        "status": "acknowledged",
        "encrypted": False,
        "resources": {"managed": 3, "data": 1, "outputs": 2},
        "record": False,
        "record_version": None,
    }
    for_outputs = api.get("states/network/prod", ONLY_OUTPUTS)
    assert (for_outputs["serial"], for_outputs["resources"], for_outputs["encrypted"]) == (3, None, None)


@pytest.mark.parametrize(
    ("body", "serial", "encrypted"),
    [
        (encrypted_state(9, "secret"), 9, True),
        (b'{"version": 3, "serial": 4, "modules": [{"resources": {}}]}', 4, False),
        (b'{"version": 3, "serial": 4, "backend": {"type": "http"}}', 4, False),
        (b'{"version": 5, "serial": 6, "resources": [], "outputs": {}}', 6, False),
        (b'{"version": 4, "serial": 5, "resources": {}, "outputs": []}', 5, False),
        (b"not a state", None, None),
        (b"", None, None),
    ],
)
def test_a_state_of_another_program_tells_what_its_document_does(
    api: Api, body: bytes, serial: int | None, encrypted: bool | None
) -> None:
    api.bucket.s3.put_object(Bucket=BUCKET, Key=NAME.state_key, Body=body)
    found = api.get("states/network/prod")
    assert (found["status"], found["serial"], found["encrypted"]) == ("other_program", serial, encrypted)
    assert (found["resources"], found["principal"], found["size"]) == (None, None, len(body))


def test_a_name_with_only_a_lock_or_a_record_is_described_without_a_state(api: Api) -> None:
    acquiring.acquire(work(api.bucket.direct_store(), NAME, ADA), lock_info("one"))
    found = api.get("states/network/prod")
    assert (found["version"], found["resources"], found["lock"]["id"]) == (None, None, "one")
    put = api.bucket.s3.put_object(Bucket=BUCKET, Key="workspaces/network/new.json", Body=b"{}")
    found = api.get("states/network/new")
    assert (found["version"], found["lock"]) == (None, None)
    assert (found["record"], found["record_version"]) == (True, put["VersionId"])
    for name in ("network/prod", "network/new"):
        assert api.get(f"versions/{name}") == {"name": name, "versions": [], "next": None}
    _, _, message = api.refused("resolve/network/new", version="@1")
    assert message == "There is no state 'network/new'. The name is declared, but has no state."


def test_an_unknown_name_is_404_with_the_nearest_ones_that_the_caller_may_know(api: Api) -> None:
    api.write(state(1))
    api.write(state(1), names.parse("billing/prod"))
    for path in ("states", "versions", "content"):
        status, code, message = api.refused(f"{path}/network/prdo")
        assert (status, code) == (404, "no_state")
        assert "network/prod" in message
        _, _, message = api.refused(
            f"{path}/network/prdo", Caller("token:n", (Grant(Role.READER, ("network/prdo",)),))
        )
        assert "network/prod" not in message


def test_the_history_says_who_wrote_each_version_and_pages_through(api: Api) -> None:
    written = [api.write(state(serial)) for serial in range(1, 24)]
    first = api.get("versions/network/prod")
    assert (first["name"], len(first["versions"])) == ("network/prod", 20)
    rest = api.get("versions/network/prod", cursor=first["next"])
    assert rest["next"] is None
    versions = [*first["versions"], *rest["versions"]]
    assert [one["version"] for one in versions] == written[::-1]
    newest = versions[0]
    assert list(newest) == list(form.names(v1.Version))
    assert newest["time"].endswith("Z")
    assert newest == {
        **newest,
        "version": written[-1],
        "size": len(state(23)),
        "current": True,
        "delete_marker": False,
        "serial": 23,
        "lineage": LINEAGE,
        "terraform_version": "1.15.5",
        "principal": "token:ada",
        "owner": "bea@example.com",
        "who": None,
        "operation": None,
        "lock_id": None,
        "sha256": hashlib.sha256(state(23)).hexdigest(),
        "status": "acknowledged",
        "restored_from": None,
        "reason": None,
    }
    for one in (versions[0], versions[21]):
        alone = api.get("versions/network/prod", version=one["version"])
        assert alone == {"name": "network/prod", "versions": [one], "next": None}
    api.bucket.s3.delete_object(Bucket=BUCKET, Key=NAME.state_key)
    marker = api.get("versions/network/prod")["versions"][0]
    assert api.get("versions/network/prod", version=marker["version"])["versions"] == [marker]
    assert (marker["delete_marker"], marker["size"], marker["serial"], marker["status"]) == (
        *(True, None, None, None),
    )


def test_content_is_the_bytes_of_the_version_that_is_named_or_of_the_current_one(api: Api) -> None:
    old, new = api.write(state(1)), api.write(state(2, content="ü"))
    for query, version, body in (({}, new, state(2, content="ü")), ({"version": old}, old, state(1))):
        answer = api.ask("content/network/prod", query=query)
        assert (answer["statusCode"], answer["headers"]["Holdfast-Version"]) == (200, version)
        assert answer["body"].encode() == body
    api.write(state(1), names.parse("billing/prod"))
    for path in ("content", "versions"):
        for wrong in ("made-up", "null"):
            status, code, message = api.refused(f"{path}/network/prod", version=wrong)
            assert (status, code) == (404, "no_such_version")
            assert f"The state 'network/prod' has no version {wrong}. Perhaps the ID is mistyped" in message
        assert api.refused(f"{path}/network/prod", version="x" * 201)[:2] == (400, "invalid_request")
        assert api.refused(f"{path}/network/prod", version="@1")[:2] == (400, "invalid_request")
        assert api.refused(f"{path}/billing/prod", version=old)[:2] == (404, "no_such_version")


def test_who_may_read_neither_the_state_nor_its_outputs_is_told_the_role_for_the_state(api: Api) -> None:
    api.write(tracked(1))

    status, code, message = api.refused("content/network/prod", AUDITOR)

    assert (status, code) == (403, "not_allowed")
    assert "does not allow you to read. Use credentials with the role 'reader'." in message
    assert api.refused("content/network/prod", ELSEWHERE)[:2] == (403, "not_allowed")


def test_who_reads_only_outputs_gets_those_of_any_version(api: Api) -> None:
    old, new = api.write(tracked(1)), api.write(tracked(2))
    for query, serial in (({}, 2), ({"version": old}, 1)):
        answer = api.ask("content/network/prod", ONLY_OUTPUTS, query)
        document = json.loads(answer["body"])
        assert (document["serial"], "resources" in document) == (serial, False)
        assert set(document["outputs"]) == {"ä", "b"}
        assert answer["headers"]["Holdfast-Version"] == (query.get("version") or new)
    api.write(encrypted_state(3, "secret"))
    assert api.refused("content/network/prod", ONLY_OUTPUTS)[:2] == (403, "not_allowed")
    api.bucket.s3.put_object(Bucket=BUCKET, Key=NAME.state_key, Body=old_state())
    status, code, message = api.refused("content/network/prod", ONLY_OUTPUTS)
    assert (status, code) == (409, "unreadable_state")
    assert "Terraform 0.12 or later" in message
    api.bucket.s3.put_object(Bucket=BUCKET, Key=NAME.state_key, Body=b"x" * 20_000_001)
    assert api.refused("content/network/prod", ONLY_OUTPUTS)[:2] == (413, "too_large")
    assert api.get("states/network/prod")["encrypted"] is None  # a large state is not read to describe it


def test_what_does_not_fit_a_response_is_at_an_address_of_s3_and_small_answers_are_not(api: Api) -> None:
    large = state(1, content="\\" * 3_000_000)
    version = api.write(large)
    packed = api.ask("content/network/prod", headers={"accept-encoding": "gzip"})
    assert gzip.decompress(base64.b64decode(packed["body"])) == large
    for query in ({}, {"version": version}):
        answer = api.ask("content/network/prod", query=query)
        assert (answer["statusCode"], answer["headers"]["Holdfast-Version"]) == (307, version)
        assert (answer["body"], answer["headers"]["Cache-Control"]) == ("", "no-store")
        assert "X-Amz-Expires=60" in answer["headers"]["Location"]
        assert urllib3.request("GET", answer["headers"]["Location"]).data == large
    assert api.ask("content/network/prod", ONLY_OUTPUTS)["statusCode"] == 413


def test_the_caller_learns_who_they_are(api: Api) -> None:
    assert api.get("whoami")["owner"] is None
    who = api.get("whoami", ELSEWHERE)
    may = who.pop("may")
    assert who == {
        "team": SETTINGS["HOLDFAST_TEAM"],
        "account": SETTINGS["HOLDFAST_ACCOUNT"],
        "principal": "token:elsewhere",
        "owner": "the billing team",
        "role": "maintainer",
        "scope": ["billing/*"],
        "grants": [{"role": "maintainer", "scope": ["billing/*"]}],
        "method": "token",
        "trust": None,
        "expires": None,
    }
    assert {each["action"]: each["scope"] for each in may} == {action: ["billing/*"] for action in Action}
    assert {each["action"]: each["roles"] for each in may} == {
        action: list(roles_with(action)) for action in Action
    }


def test_the_caller_learns_what_they_may_do_where_and_which_roles_allow_the_rest(api: Api) -> None:
    may = {each["action"]: each for each in api.get("whoami", ONLY_OUTPUTS)["may"]}

    assert [name for name, each in may.items() if each["scope"]] == ["read_metadata", "read_outputs"]
    assert may["read_activity"]["roles"] == ["auditor", "maintainer"]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("states", {"prefix": "/"}),
        ("states", {"cursor": "made-up"}),
        ("states", {"deleted": "yes"}),
        ("states", {"prefixes": "a"}),
        ("states", {"declared": "yes"}),
        ("states", {"declared": "true", "deleted": "true"}),
        ("states", {"deleted": "true", "cursor": "made-up"}),
        ("locks", {"prefix": "a b"}),
        ("locks", {"cursor": "made-up"}),
        ("locks/network/prod", {"cursor": "x"}),
        ("versions/network/prod", {"cursor": "made-up"}),
        ("versions/network/prod", {"cursor": "made-up", "version": "made-up"}),
        ("versions", {}),
        ("content", {}),
        ("whoami", {"x": "y"}),
    ],
)
def test_a_wrong_question_is_refused(api: Api, path: str, query: dict[str, str]) -> None:
    assert api.refused(path, **query)[:2] == (400, "invalid_request")


def test_every_answer_is_an_event_of_the_audit_trail(api: Api, log: list[str]) -> None:
    version = api.write(state(1))
    for path in ("states", "states/network/prod", "versions/network/prod", "content/network/prod"):
        api.ask(path)
    for path in ("locks", "locks/network/prod", "whoami"):
        api.ask(path)
    api.ask("content/network/prod", replace(ONLY_OUTPUTS, owner="Béa"))
    lines = [json.loads(line) for line in log]
    assert [line["owner"] for line in lines] == [*[""] * 7, "Béa"]
    assert [(line["message"], line.get("state")) for line in lines] == [
        ("states.listed", None),
        ("state.described", "network/prod"),
        ("history.read", "network/prod"),
        ("state.read", "network/prod"),
        ("locks.listed", None),
        ("locks.listed", "network/prod"),
        ("caller.described", None),
        ("outputs.read", "network/prod"),
    ]
    assert [line.get("version_id") for line in lines] == [
        *(None, version, None, version),
        *(None, None, None, version),
    ]
    assert [line["s3_requests"] for line in lines] == [1, 3, 3, 1, 1, 1, 0, 1]
