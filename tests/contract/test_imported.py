"""Imported versions on real S3 servers: stored once, beside the state, and listed after it."""

import base64
import gzip
import hashlib
import json
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import urllib3

from gateway import payload
from holdfast import names
from holdfast.access import Action, Caller
from holdfast.errors import (
    InvalidName,
    InvalidRequest,
    NoSuchVersion,
    NotAllowed,
    OutcomeUnknown,
    UnreadableVersion,
)
from holdfast.s3 import object_metadata
from holdfast.s3.retention import Retention
from holdfast.s3.store import Object
from holdfast.state import imported
from holdfast.state.document import SERIAL_END
from holdfast.state.imported import Claims, Number
from tests.contract.conftest import (
    NAME,
    ONLY_OUTPUTS,
    READER,
    Answer,
    Bucket,
    Handle,
    Server,
    Team,
    error,
    started,
)
from tests.support.documents import ADA, LINEAGE, OPERATOR, encrypted_state, state
from tests.support.events import Context, manage_request
from tests.support.s3_fault_proxy import Fault

OLD = state(12, content="old")
SHA256 = hashlib.sha256(OLD).hexdigest()
NUMBER = Number(12, SHA256[:16])
AT = datetime(2024, 2, 29, 12, tzinfo=UTC)
CLAIMS = Claims("ada@büro", AT, "s3://old-bucket/prod")


def put(bucket: Bucket, body: bytes = OLD, name: names.StateName = NAME, claims: Claims = CLAIMS) -> bool:
    return imported.put(bucket.direct_store(), name, body, claims, OPERATOR).created


def serials(bucket: Bucket, name: names.StateName = NAME) -> list[int]:
    found = imported.page(bucket.direct_store(), name, None, READER)
    return [one.number.serial for one in found.versions]


def test_a_version_is_stored_beside_the_state_with_one_request_and_its_claims_apart(team: Team) -> None:
    team.written(state(1), state(2))
    before = team.bucket.history("")
    store = team.bucket.direct_store()
    owned = replace(OPERATOR, owner="bea@example.com")

    assert imported.put(store, NAME, OLD, CLAIMS, owned) == imported.Put(NUMBER, created=True)

    assert store.requests == ["PutObject"]
    assert {key for key, _ in {*team.bucket.history("")} - {*before}} == {NUMBER.key(NAME)}
    [found] = imported.page(team.bucket.direct_store(), NAME, None, READER).versions
    assert (found.number, found.version.size) == (NUMBER, len(OLD))
    assert found.version.metadata == {
        "sha256": SHA256,
        "serial": "12",
        "lineage": LINEAGE,
        "imported-by": "token:operator",
        "owner": "bea@example.com",
        "says-author": "ada@büro",
        "says-time": "2024-02-29T12:00:00Z",
        "says-from": "s3://old-bucket/prod",
    }
    read = imported.read(team.bucket.direct_store(), NAME, NUMBER, READER, limit=len(OLD))
    assert isinstance(read, Object)
    assert read.body == OLD
    assert imported.read(team.bucket.direct_store(), NAME, NUMBER, READER, limit=1) == read.version


def test_a_repeated_import_changes_nothing_and_the_first_claims_stay(bucket: Bucket) -> None:
    assert put(bucket)
    assert not put(bucket, claims=Claims("somebody else"))

    assert len(bucket.history("")) == 1
    [found] = imported.page(bucket.direct_store(), NAME, None, READER).versions
    assert found.version.metadata["says-author"] == "ada@büro"


def test_other_content_under_the_same_number_is_refused_and_never_replaced(bucket: Bucket) -> None:
    bucket.s3.put_object(Bucket=bucket.name, Key=NUMBER.key(NAME), Body=b"other")

    with pytest.raises(UnreadableVersion, match="Nothing was replaced"):
        put(bucket)

    assert bucket.bodies(NUMBER.key(NAME)) == [b"other"]
    assert serials(bucket) == []  # another program wrote it


def test_two_versions_of_one_serial_are_both_kept(bucket: Bucket) -> None:
    assert put(bucket)
    assert put(bucket, state(12, content="forced"))
    assert serials(bucket) == [12, 12]


def test_pages_have_the_highest_serial_first(bucket: Bucket) -> None:
    for serial in (9, SERIAL_END - 1, 0, 100):
        put(bucket, state(serial))
    found, cursor = [], None
    for _ in range(2):
        page = imported.page(bucket.direct_store(), NAME, cursor, READER, page_size=2)
        found += [one.number.serial for one in page.versions]
        cursor = page.next
    assert (found, cursor) == ([SERIAL_END - 1, 100, 9, 0], None)


def test_a_cursor_is_for_one_name(bucket: Bucket) -> None:
    for serial in (1, 2):
        put(bucket, state(serial))
    cursor = imported.page(bucket.direct_store(), NAME, None, READER, page_size=1).next
    with pytest.raises(InvalidRequest, match="cursor"):
        imported.page(bucket.direct_store(), names.parse("network"), cursor, READER)


def test_a_name_has_its_own_versions_even_if_other_names_look_like_its_keys(bucket: Bucket) -> None:
    put(bucket)
    key = NUMBER.key(NAME).removeprefix("imported/")
    with pytest.raises(InvalidName):
        names.parse(key)
    others = ["network", "network/prod/x", "network/prod.tfstate", "network/prod/0", "network/prod-"]
    for serial, other in enumerate(others):
        put(bucket, state(serial), names.parse(other))
    assert serials(bucket) == [12]
    assert [serials(bucket, names.parse(other)) for other in others] == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.SERVER_ERROR_AFTERWARDS])
def test_an_import_whose_answer_was_lost_is_done_once_and_counts_as_new(bucket: Bucket, fault: Fault) -> None:
    bucket.proxy.fail("PUT", NUMBER.key(NAME), fault)
    assert imported.put(bucket.store(), NAME, OLD, CLAIMS, OPERATOR).created
    assert bucket.bodies(NUMBER.key(NAME)) == [OLD]


def test_an_import_that_is_not_decided_in_time_says_so_and_its_repeat_is_done_once(bucket: Bucket) -> None:
    bucket.proxy.fail("PUT", NUMBER.key(NAME), Fault.ANSWER_LOST)
    bucket.proxy.fail("PUT", NUMBER.key(NAME), Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown):
        imported.put(bucket.store(seconds=1), NAME, OLD, CLAIMS, OPERATOR)
    assert bucket.proxy.end_rules() < 1000
    assert not put(bucket)
    assert bucket.bodies(NUMBER.key(NAME)) == [OLD]


def test_only_a_maintainer_imports_and_whoever_reads_states_reads_it(bucket: Bucket) -> None:
    with pytest.raises(NotAllowed, match="import history; use a token with the role 'maintainer'"):
        imported.put(bucket.direct_store(), NAME, OLD, CLAIMS, ADA)
    assert not READER.may(Action.IMPORT_HISTORY, NAME)
    with pytest.raises(NoSuchVersion, match=str(NUMBER)):
        imported.read(bucket.direct_store(), NAME, NUMBER, READER, limit=1)


def test_an_imported_version_is_under_the_retention_of_a_state(bucket: Bucket) -> None:
    store, retention = bucket.direct_store(), Retention("GOVERNANCE", 2)
    imported.put(store, NAME, OLD, CLAIMS, OPERATOR, retention=retention)
    assert bucket.s3.head_object(Bucket=bucket.name, Key=NUMBER.key(NAME))["ObjectLockMode"] == "GOVERNANCE"


def test_the_longest_metadata_is_cut_and_fits(bucket: Bucket) -> None:
    long = Claims("ü" * 500, AT, "ß" * 500)
    body = state(SERIAL_END - 1, lineage="é" * 33)
    caller = Caller("x" * 200, OPERATOR.grants, "y" * 200)
    number = imported.put(bucket.direct_store(), NAME, body, long, caller).number
    found = bucket.s3.head_object(Bucket=bucket.name, Key=number.key(NAME))["Metadata"]
    size = sum(len(object_metadata.PREFIX + name + value) for name, value in found.items())
    assert size < object_metadata.TOTAL_LIMIT
    assert "owner" in found


@pytest.mark.parametrize("number", ["", "12", "12-", f"012-{'0' * 16}", f"{SERIAL_END}-{'0' * 16}", "-1-a"])
def test_a_number_that_no_version_has_is_refused(number: str) -> None:
    with pytest.raises(InvalidRequest, match="state history"):
        imported.parse(f"imported:{number}")


# --- the routes ------------------------------------------------------------------------------------

BUCKET = "holdfast-imported"
LIMIT = 9_000_000


@pytest.fixture(scope="module")
def function(moto: Server) -> Iterator[Handle]:
    settings = {"HOLDFAST_PRESIGN_ENDPOINT": moto.direct.meta.endpoint_url, "HOLDFAST_MAX_STATE_MB": "9"}
    with started(moto, "management", HOLDFAST_BUCKET=BUCKET, **settings) as handlers:
        yield handlers["management"]


@pytest.fixture
def manage(function: Handle, moto: Server) -> Iterator[Handle]:
    yield function
    Bucket(BUCKET, moto).empty()


def send(manage: Handle, body: bytes, coding: str = "gzip", query: Mapping[str, str] | None = None) -> Answer:
    """Import a body as API Gateway delivers it."""
    headers = {"content-encoding": coding} if coding else {}
    sent = base64.b64encode(body).decode()
    at, more = "imported/network/prod", {"headers": headers, "query": query}
    event = manage_request("PUT", at, caller=OPERATOR, body=sent, is_base64=True, **more)
    return manage(event, Context())


def get(manage: Handle, path: str, caller: Caller = READER, **query: str) -> Answer:
    return manage(manage_request("GET", f"{path}/network/prod", caller=caller, query=query), Context())


def shown(answer: Answer) -> Any:
    assert answer["statusCode"] == 200, answer
    return json.loads(answer["body"])


def test_a_compressed_version_is_imported_listed_read_and_in_the_audit_trail(
    manage: Handle, log: list[str]
) -> None:
    claims = {"author": "ada", "time": "2024-02-29T13:00:00+01:00", "from": "s3://old"}
    stored = {"name": "network/prod", "number": str(NUMBER), "created": True}
    assert shown(send(manage, gzip.compress(OLD, mtime=0), query=claims)) == stored
    assert shown(send(manage, OLD, coding="")) == {**stored, "created": False}

    page = shown(get(manage, "imported"))
    [one] = page.pop("versions")
    assert page == {"name": "network/prod", "next": None}
    assert one.pop("time").endswith("Z")
    assert one == {
        "number": str(NUMBER),
        "size": len(OLD),
        "serial": 12,
        "lineage": LINEAGE,
        "sha256": SHA256,
        "by": "token:operator",
        "owner": None,
        "says_author": "ada",
        "says_time": "2024-02-29T12:00:00Z",
        "says_from": "s3://old",
    }
    read = get(manage, "content", version=f"imported:{NUMBER}")
    assert (read["body"].encode(), read["headers"]["Holdfast-Version"]) == (OLD, f"imported:{NUMBER}")
    assert error(get(manage, "states")) == (404, "no_state")

    lines = [json.loads(line) for line in log][:4]
    assert [(line["message"], line["state"]) for line in lines] == [
        (event, "network/prod")
        for event in ("state.version_imported", "state.unchanged", "history.read", "state.read")
    ]
    fields = [(line["version_id"], line["bytes"]) for line in (lines[0], lines[1], lines[3])]
    assert fields == [(f"imported:{NUMBER}", len(OLD))] * 3
    assert lines[0]["serial"] == 12


def test_an_imported_version_is_read_and_nothing_else(manage: Handle) -> None:
    send(manage, gzip.compress(OLD, mtime=0))
    version = f"imported:{NUMBER}"
    assert error(get(manage, "content", ONLY_OUTPUTS, version=version)) == (403, "not_allowed")
    refused = get(manage, "diff", to=version)
    assert error(refused) == (400, "invalid_request")
    assert "can only be read" in refused["body"]


def test_a_version_that_fits_no_response_is_at_an_address_of_s3(manage: Handle) -> None:
    large = state(1, content="x" * 8_000_000)
    number = shown(send(manage, gzip.compress(large, mtime=0)))["number"]
    answer = get(manage, "content", version=f"imported:{number}")
    assert answer["statusCode"] == 307
    assert urllib3.request("GET", answer["headers"]["Location"]).data == large


def test_an_encrypted_version_is_imported(manage: Handle) -> None:
    assert shown(send(manage, gzip.compress(encrypted_state(3, "c2VjcmV0"), mtime=0)))["created"]


def test_a_body_that_decompresses_to_too_much_is_refused_at_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 200_000_000, 1, mtime=0)
    tracemalloc.start()
    assert payload.decompress(bomb, 1_000_000) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000


def test_the_limit_of_a_state_is_that_of_the_decompressed_body(manage: Handle) -> None:
    assert error(send(manage, gzip.compress(b"{" + b" " * LIMIT, mtime=0))) == (413, "too_large")
    full = OLD + b" " * (LIMIT - len(OLD))
    assert shown(send(manage, gzip.compress(full, mtime=0)))["created"]


@pytest.mark.parametrize(
    ("body", "coding", "code"),
    [
        (gzip.compress(OLD, mtime=0)[:-9], "gzip", "invalid_body"),
        (gzip.compress(OLD, mtime=0) + b"x", "gzip", "invalid_body"),
        (OLD, "gzip", "invalid_body"),
        (OLD, "br", "invalid_body"),
        (b"", "gzip", "invalid_body"),
        (b"", "", "invalid_state"),
        (gzip.compress(b"[]", mtime=0), "gzip", "invalid_state"),
    ],
)
def test_a_body_that_is_not_one_whole_state_is_refused(
    manage: Handle, body: bytes, coding: str, code: str
) -> None:
    assert error(send(manage, body, coding)) == (400, code)


def test_a_time_without_an_offset_is_refused(manage: Handle) -> None:
    answer = send(manage, gzip.compress(OLD, mtime=0), query={"time": "2024-02-29T12:00:00"})
    assert error(answer) == (400, "invalid_request")
