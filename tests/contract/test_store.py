"""The store's use of S3, on two independent S3 servers."""

import base64
import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from holdfast.errors import OutcomeUnknown, StorageRefused
from holdfast.s3.budget import Budget
from holdfast.s3.objects import (
    Deleted,
    HistoryEntry,
    IfAbsent,
    IfMatch,
    Object,
    PreconditionFailed,
    Protected,
    Stored,
    is_unique,
)
from holdfast.s3.retention import Retention
from holdfast.s3.sdk import EXPECT_THRESHOLD
from holdfast.s3.store import Store
from tests.contract.conftest import ACCOUNT, Bucket, client
from tests.support.free_port import free_port
from tests.support.s3_fault_proxy import Fault

pytestmark = pytest.mark.two_servers

KEY = "states/a.tfstate"


def put(store: Store, body: bytes, condition: IfAbsent | IfMatch) -> Stored | PreconditionFailed:
    return store.write(KEY, body, condition, metadata={})


def create(bucket: Bucket, body: bytes = b"one") -> Stored:
    stored = put(bucket.direct_store(), body, IfAbsent())
    assert isinstance(stored, Stored)
    return stored


def found(store: Store) -> Object:
    read = store.read(KEY)
    assert read is not None
    return read


def test_an_object_is_created_only_where_there_is_none_and_a_delete_marker_counts_as_none(
    bucket: Bucket,
) -> None:
    def absent() -> None:
        assert bucket.store().read(KEY) is None
        assert bucket.store().read_version(KEY) is None

    absent()
    assert isinstance(put(bucket.store(), b"one", IfAbsent()), Stored)
    assert isinstance(put(bucket.store(), b"two", IfAbsent()), PreconditionFailed)
    assert bucket.bodies(KEY) == [b"one"]
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)
    absent()
    assert isinstance(put(bucket.store(), b"two", IfAbsent()), Stored)
    assert bucket.bodies(KEY) == [b"one", b"two"]


def test_an_object_is_replaced_only_by_who_names_its_etag(bucket: Bucket) -> None:
    first = create(bucket)
    second = put(bucket.store(), b"two", IfMatch(first.etag))
    assert isinstance(second, Stored)
    assert isinstance(put(bucket.store(), b"three", IfMatch(first.etag)), PreconditionFailed)
    assert found(bucket.store()).body == b"two"
    assert bucket.bodies(KEY) == [b"one", b"two"]
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)
    assert isinstance(put(bucket.store(), b"three", IfMatch(second.etag)), PreconditionFailed)
    assert bucket.store().read(KEY) is None


def test_an_object_is_deleted_only_by_who_names_its_etag(bucket: Bucket) -> None:
    first = create(bucket)
    assert isinstance(put(bucket.store(), b"two", IfMatch(first.etag)), Stored)
    assert bucket.store().delete(KEY, IfMatch(first.etag)) == PreconditionFailed()
    read = found(bucket.store())
    assert read.body == b"two"
    for _ in range(2):  # what is gone counts as deleted
        assert bucket.store().delete(KEY, IfMatch(read.version.etag)) == Deleted()
        assert bucket.store().read(KEY) is None
    assert bucket.bodies(KEY) == [b"one", b"two"]


REQUESTS: dict[str, Callable[[Store], object]] = {
    "read": lambda store: store.read(KEY),
    "read_version": lambda store: store.read_version(KEY),
    "write": lambda store: put(store, b"one", IfAbsent()),
    "remove_version": lambda store: store.remove_version(KEY, "x"),
    "versions": lambda store: next(store.versions(KEY)),
    "list_keys": lambda store: list(store.list_keys("tokens/")),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_missing_bucket_and_a_refusal_are_faults_and_never_read_as_a_missing_key(
    bucket: Bucket, name: str
) -> None:
    gone = Store(bucket.s3, "holdfast-gone", ACCOUNT, Budget.seconds(20))
    with pytest.raises(StorageRefused, match="NoSuchBucket"):
        REQUESTS[name](gone)
    if name != "remove_version":  # which may not be done, so that the version is protected
        create(bucket)
        bucket.proxy.fail("PUT" if name == "write" else "GET", "", Fault.DENIED)
        with pytest.raises(StorageRefused, match="AccessDenied"):
            REQUESTS[name](bucket.store())


def test_what_is_written_is_read_back_with_what_s3_knows_of_it(bucket: Bucket) -> None:
    body = bytes(range(256)) * 40
    stored = bucket.store().write(
        KEY, body, IfAbsent(), metadata={"who": "ada@büro 100%\n", "serial": "7"}, tags={"holdfast": "lock"}
    )
    read = found(bucket.store())
    assert read.body == body
    assert isinstance(stored, Stored)
    assert replace(stored.version, last_modified=read.version.last_modified) == read.version
    assert timedelta(0) <= stored.version.last_modified - read.version.last_modified < timedelta(minutes=1)
    assert read.version.size == len(body)
    assert read.version.metadata == {"who": "ada@büro 100%\n", "serial": "7"}
    assert bucket.store().read_version(KEY) == read.version
    assert abs(read.read_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert timedelta(0) <= read.read_at - read.version.last_modified < timedelta(minutes=1)
    tags = bucket.s3.get_object_tagging(Bucket=bucket.name, Key=KEY)["TagSet"]
    assert tags == [{"Key": "holdfast", "Value": "lock"}]
    assert bucket.s3.head_object(Bucket=bucket.name, Key=KEY)["ContentType"] == "application/json"


@pytest.mark.parametrize("replaced", [False, True])
def test_exactly_one_of_many_simultaneous_writes_is_stored(bucket: Bucket, replaced: bool) -> None:
    condition = IfMatch(create(bucket).etag) if replaced else IfAbsent()
    with ThreadPoolExecutor(16) as clients:
        outcomes = list(clients.map(lambda n: put(bucket.store(), b"%d" % n, condition), range(16)))
    winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Stored)]
    assert len(winners) == 1
    assert bucket.bodies(KEY)[int(replaced) :] == [b"%d" % winners[0]]


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.CONFLICT, Fault.NEVER_ARRIVES])
def test_a_request_that_s3_did_not_take_is_repeated(bucket: Bucket, fault: Fault) -> None:
    bucket.proxy.fail("PUT", KEY, fault, times=3)
    store = bucket.store()
    assert isinstance(put(store, b"one", IfAbsent()), Stored)
    assert store.budget.requests == ["PutObject"] * 4
    assert store.budget.unconfirmed == (["PutObject"] * 3 if fault is Fault.NEVER_ARRIVES else [])
    bucket.proxy.fail("GET", KEY, fault)
    head = bucket.store().read_version(KEY)
    bucket.proxy.fail("GET", KEY, fault)
    assert head == found(bucket.store()).version


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.SERVER_ERROR_AFTERWARDS])
def test_a_write_whose_answer_was_lost_comes_back_as_not_stored_once(bucket: Bucket, fault: Fault) -> None:
    bucket.proxy.fail("PUT", KEY, fault)
    store = bucket.store()
    assert isinstance(put(store, b"one", IfAbsent()), PreconditionFailed)
    assert store.budget.unconfirmed == ["PutObject"]
    assert bucket.bodies(KEY) == [b"one"]


def test_an_s3_that_cannot_be_connected_to_ends_undecided() -> None:
    nobody = client(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(OutcomeUnknown, match="EndpointConnectionError"):
        Store(nobody, "bucket", ACCOUNT, Budget.seconds(0.2)).read(KEY)


def test_no_request_starts_after_the_deadline(bucket: Bucket) -> None:
    late = Store(bucket.s3, bucket.name, ACCOUNT, Budget(time.monotonic()))
    with pytest.raises(OutcomeUnknown, match="no time"):
        put(late, b"one", IfAbsent())
    assert late.budget.requests == []
    assert bucket.bodies(KEY) == []


# --- one version ------------------------------------------------------------------------------------


def version_of(stored: Stored | PreconditionFailed) -> str:
    assert isinstance(stored, Stored)
    return stored.version_id


def test_removing_a_version_leaves_no_trace_of_it_and_every_other_as_it_was(bucket: Bucket) -> None:
    first = create(bucket)
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)
    second = version_of(put(bucket.store(), b"two", IfAbsent()))
    before = bucket.history(KEY)
    assert bucket.store().remove_version(KEY, second) == Deleted()
    assert bucket.store().read(KEY) is None
    assert bucket.history(KEY) == [entry for entry in before if entry[1] != second]
    assert bucket.bodies(KEY) == [b"one"]
    assert (KEY, version_of(first)) in bucket.history(KEY)


def test_removing_a_version_again_never_touches_the_same_bytes_written_since(bucket: Bucket) -> None:
    first = version_of(create(bucket, b"same"))
    assert bucket.store().remove_version(KEY, first) == Deleted()
    second = version_of(create(bucket, b"same"))
    assert bucket.store().remove_version(KEY, first) == Deleted()
    assert found(bucket.store()).version.version_id == second


@pytest.mark.parametrize("retention", [None, Retention("GOVERNANCE", 1), Retention("COMPLIANCE", 1)])
def test_a_version_that_may_not_be_removed_is_protected_and_stays(
    bucket: Bucket, retention: Retention | None
) -> None:
    stored = bucket.store().write(KEY, b"one", IfAbsent(), metadata={}, retention=retention)
    if retention is None:
        bucket.proxy.fail("DELETE", KEY, Fault.DENIED)
    assert bucket.store().remove_version(KEY, version_of(stored)) == Protected()
    assert found(bucket.store()).body == b"one"
    assert bucket.delete_markers(KEY) == 0


@pytest.mark.parametrize("version_id", ["", "null"])
def test_what_names_no_version_is_never_removed(bucket: Bucket, version_id: str) -> None:
    create(bucket)
    store = bucket.store()
    with pytest.raises(ValueError, match="versioning"):
        store.remove_version(KEY, version_id)
    assert store.budget.requests == []


def test_without_versioning_no_version_id_is_unique(unversioned: Bucket) -> None:
    stored = put(unversioned.store(), b"one", IfAbsent())
    assert not is_unique(version_of(stored))
    assert not is_unique(found(unversioned.store()).version.version_id)


# --- the history ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page_size", [1, 2, 3, 1000])
def test_the_history_is_that_of_the_key_alone_and_newest_first(bucket: Bucket, page_size: int) -> None:
    made = []
    for body in (b"one", b"two"):
        made.append(version_of(create(bucket, body)))
        made.append(bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)["VersionId"])
        time.sleep(1.1)  # S3's times have whole seconds
    third = create(bucket, b"three")
    made.append(version_of(third))
    made.append(version_of(put(bucket.direct_store(), b"four", IfMatch(third.etag))))
    for other in (f"{KEY}.tflock", f"{KEY}x", "states/a", "states/a.tfstat"):
        bucket.s3.put_object(Bucket=bucket.name, Key=other, Body=b"other")
    history = list(bucket.store().versions(KEY, page_size=page_size))
    by_id = {version.id: version for version in history}
    assert [version.id for version in history if not version.is_delete_marker] == [
        made[position] for position in (5, 4, 2, 0)
    ]
    assert [version.id for version in history if version.is_delete_marker] == [made[3], made[1]]
    assert [version.is_current for version in history] == [True, False, False, False, False, False]
    # MiniStack lists milliseconds, which AWS does not.
    listed = by_id[made[2]].last_modified.replace(microsecond=0)
    assert listed == found_version(bucket, made[2]).version.last_modified
    assert history.index(by_id[made[2]]) in (2, 3)
    assert {history[4].id, history[5].id} == {made[0], made[1]}


def found_version(bucket: Bucket, version_id: str) -> Object:
    read = bucket.store().read(KEY, version_id)
    assert read is not None
    return read


def test_the_newest_entry_comes_first_also_within_a_second(bucket: Bucket) -> None:
    for _ in range(3):
        create(bucket)
        marker = bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)["VersionId"]
        first = next(bucket.store().versions(KEY))
        assert (first.id, first.is_current, first.is_delete_marker) == (marker, True, True)


def test_no_more_pages_are_asked_for_than_are_looked_at(bucket: Bucket) -> None:
    for body in (b"one", b"two", b"three"):
        bucket.s3.put_object(Bucket=bucket.name, Key=KEY, Body=body)
    store = bucket.store()
    next(store.versions(KEY, page_size=1))
    assert store.budget.requests == ["ListObjectVersions"]


def test_the_listing_ends_with_the_key_and_has_nothing_of_another(bucket: Bucket) -> None:
    for number in range(5):
        bucket.s3.put_object(Bucket=bucket.name, Key=f"{KEY}.{number}", Body=b"other")
    bucket.s3.delete_object(Bucket=bucket.name, Key=f"{KEY}.1")
    assert list(bucket.store().versions(KEY)) == []
    create(bucket)
    store = bucket.store()
    [only] = store.versions(KEY, page_size=1)
    assert (only.is_current, only.is_delete_marker) == (True, False)
    assert store.budget.requests == ["ListObjectVersions"] * 2


def test_an_old_version_is_read_by_its_id(bucket: Bucket) -> None:
    first = create(bucket)
    put(bucket.store(), b"two", IfMatch(first.etag))
    marker = bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)["VersionId"]
    read = found_version(bucket, first.version_id)
    assert (read.body, read.version.version_id) == (b"one", first.version_id)
    assert bucket.store().read(KEY, marker) is None
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY, VersionId=first.version_id)
    assert bucket.store().read(KEY, first.version_id) is None


# --- retention and checksum --------------------------------------------------------------------------


def test_a_write_with_retention_is_kept_for_its_days_and_one_without_is_not(bucket: Bucket) -> None:
    store = bucket.store()
    store.write(KEY, b"one", IfAbsent(), metadata={}, retention=Retention("COMPLIANCE", 30))
    head = bucket.s3.head_object(Bucket=bucket.name, Key=KEY)
    assert head["ObjectLockMode"] == "COMPLIANCE"
    days = head["ObjectLockRetainUntilDate"] - datetime.now(UTC)
    assert timedelta(days=30) - timedelta(minutes=1) < days <= timedelta(days=30)
    store.write(f"{KEY}.tflock", b"one", IfAbsent(), metadata={})
    assert "ObjectLockMode" not in bucket.s3.head_object(Bucket=bucket.name, Key=f"{KEY}.tflock")


def test_a_repeated_write_asks_for_the_same_date(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime):
        """A clock that goes on by a day with each look at it."""

        days = 0

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            cls.days += 1
            return datetime.now(tz) + timedelta(days=cls.days)

    monkeypatch.setattr("holdfast.s3.store.datetime", Later)
    bucket.proxy.fail("PUT", KEY, Fault.SLOW_DOWN, times=2)
    with bucket.sent("x-amz-object-lock-retain-until-date") as sent:
        bucket.store().write(KEY, b"one", IfAbsent(), metadata={}, retention=Retention("GOVERNANCE", 30))
    assert len(sent) == 3
    assert len(set(sent)) == 1


@pytest.mark.parametrize("calculation", ["when_supported", "when_required"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_small_write_waits_for_nothing_and_its_checksum_goes_ahead_of_its_body(
    monkeypatch: pytest.MonkeyPatch, scheme: str, calculation: str
) -> None:
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", calculation)
    s3 = client(f"{scheme}://127.0.0.1:1")
    sent = []

    def answer(request: Any, **_: object) -> Any:
        # The SDK holds some as text and some as bytes.
        headers = {
            name: value if isinstance(value, str) else value.decode()
            for name, value in request.headers.items()
        }
        sent.append((headers, request.body.read()))
        whole: Any = {"content-length": "0", "date": "Fri, 02 Jan 2026 03:04:05 GMT", "etag": '"1"'}
        return AWSResponse(request.url, 200, whole, SimpleNamespace(stream=list))

    s3.meta.events.register_last("before-send.s3.PutObject", answer)
    for size in (0, EXPECT_THRESHOLD - 1, EXPECT_THRESHOLD):
        whole = b"x" * size
        put(Store(s3, "bucket", ACCOUNT, Budget.seconds(20)), whole, IfAbsent())
        headers, body = sent.pop()
        assert body == whole  # and not in chunks, with the checksum behind them
        assert headers["Content-Length"] == str(size)
        assert headers["x-amz-checksum-sha256"] == base64.b64encode(hashlib.sha256(whole).digest()).decode()
        # Without it S3 refuses a write with retention.
        assert headers["x-amz-sdk-checksum-algorithm"] == "SHA256"
        assert headers.get("Expect") == (None if size < EXPECT_THRESHOLD else "100-continue")
    # A hash that the caller computed is sent as it is, and S3 compares it with the body.
    digest = b"0" * 32
    Store(s3, "bucket", ACCOUNT, Budget.seconds(20)).write(
        KEY, b"one", IfAbsent(), metadata={}, sha256=digest.hex()
    )
    assert sent.pop()[0]["x-amz-checksum-sha256"] == base64.b64encode(digest).decode()


def test_a_prolonged_store_has_time_left_and_loses_none(bucket: Bucket) -> None:
    late = Store(bucket.s3, bucket.name, ACCOUNT, Budget(time.monotonic()))
    late.budget.prolong(10)
    assert late.read(KEY) is None
    patient = bucket.store()
    patient.budget.prolong(0)
    assert patient.read(KEY) is None


# --- keys ----------------------------------------------------------------------------------------------


def put_keys(bucket: Bucket, *keys: str) -> None:
    for key in keys:
        bucket.s3.put_object(Bucket=bucket.name, Key=key, Body=b"{}")


def test_keys_are_listed_by_prefix_in_order_and_page_by_page_as_they_are_read(bucket: Bucket) -> None:
    wanted = [f"tokens/{number}.json" for number in range(5)]
    put_keys(bucket, *reversed(wanted), wanted[0], "token", "tokens/x", "trust/records.json")
    bucket.s3.delete_object(Bucket=bucket.name, Key="tokens/x")
    store = bucket.store()

    keys = store.list_keys("tokens/", page_size=2)
    assert store.budget.requests == []
    assert next(keys) == wanted[0]
    assert store.budget.requests == ["ListObjectsV2"]
    assert list(keys) == wanted[1:]
    assert store.budget.requests == ["ListObjectsV2"] * 3
    assert list(bucket.store().list_keys("sessions/")) == []


def test_a_prolonged_store_lists_on_after_its_first_deadline(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_keys(bucket, "tokens/a.json", "tokens/b.json")
    store = bucket.store(seconds=20)
    keys, others = (store.list_keys("tokens/", page_size=1) for _ in range(2))
    assert (next(keys), next(others)) == ("tokens/a.json", "tokens/a.json")
    now = time.monotonic
    monkeypatch.setattr("time.monotonic", lambda: now() + 60)
    with pytest.raises(OutcomeUnknown):
        next(others)
    store.budget.prolong(20)
    assert list(keys) == ["tokens/b.json"]


def test_every_request_names_the_account_that_must_own_the_bucket(bucket: Bucket) -> None:
    store = bucket.store()
    retention = Retention("GOVERNANCE", 1)
    with bucket.sent("x-amz-expected-bucket-owner") as requests:
        bucket.proxy.fail("PUT", KEY, Fault.SLOW_DOWN)  # a retry is a request as well
        stored = store.write(KEY, b"one", IfAbsent(), metadata={}, tags={"a": "b"}, retention=retention)
        assert isinstance(stored, Stored)
        replaced = store.write(KEY, b"", IfMatch(stored.etag), metadata={})
        assert isinstance(replaced, Stored)
        assert store.read(KEY)
        assert store.read(KEY, stored.version_id)
        assert store.read_version(KEY)
        assert store.read_at_most(KEY, 0)
        assert len(list(store.versions(KEY, page_size=1))) == 2
        put(store, b"other", IfAbsent())
        assert list(store.list_keys("states/", page_size=1)) == [KEY]
        assert store.keys_page("states/").last is None
        assert store.versions_page("states/")
        assert store.delete(KEY, IfMatch(replaced.etag)) == Deleted()
        assert store.remove_version(KEY, replaced.version_id) == Deleted()
        assert store.discard(KEY) == Deleted()

    assert [owner for _, owner in requests] == [ACCOUNT] * len(store.budget.requests)
    operations = {"GetObject", "PutObject", "DeleteObject", "ListObjectVersions", "ListObjectsV2"}
    assert set(store.budget.requests) == operations


def test_what_the_test_before_drives_is_all_that_a_store_can_do() -> None:
    driven = {"write", "read", "read_version", "read_at_most", "versions", "list_keys"}
    driven |= {"keys_page", "versions_page"}
    driven |= {"delete", "remove_version", "discard"}
    sends_nothing = {"open_second_connection"}
    assert {name for name in vars(Store) if not name.startswith("_")} == driven | sends_nothing


@pytest.mark.parametrize("version", [False, True])
def test_a_bucket_of_another_account_is_a_fault_that_names_the_possibility(
    bucket: Bucket, *, version: bool
) -> None:
    stored = create(bucket)
    bucket.proxy.fail("GET", KEY, Fault.DENIED)  # what S3 responds to another owner
    with pytest.raises(StorageRefused, match="belongs to the account of the stack"):
        bucket.store().read(KEY, stored.version_id if version else None)


@contextmanager
def answering(bucket: Bucket, operation: str, status: int, body: bytes, *, times: int = 9) -> Iterator[None]:
    """Answer the next requests as AWS does, where the servers differ from AWS."""
    left = [body] * times
    length: Any = {"content-length": str(len(body))}

    def answer(**_: object) -> Any:
        raw = SimpleNamespace(stream=lambda: iter([left.pop()]))
        return AWSResponse("http://s3", status, length, raw) if left else None

    bucket.s3.meta.events.register(f"before-send.s3.{operation}", answer)
    try:
        yield
    finally:
        bucket.s3.meta.events.unregister(f"before-send.s3.{operation}", answer)


NO_VERSION_ID = b"<Error><Code>InvalidArgument</Code><Message>Invalid version id specified</Message></Error>"
"""The servers accept every text as a version ID."""


def test_what_is_no_version_id_reads_as_no_version_and_as_no_page_after_it(bucket: Bucket) -> None:
    create(bucket)
    with answering(bucket, "GetObject", 400, NO_VERSION_ID):
        assert bucket.direct_store().read(KEY, "made-up") is None
        with pytest.raises(StorageRefused):
            bucket.direct_store().read(KEY)
    with answering(bucket, "ListObjectVersions", 400, NO_VERSION_ID):
        assert bucket.direct_store().versions_page("states/", after=(KEY, "made-up")) is None
        with pytest.raises(StorageRefused):
            bucket.direct_store().versions_page("states/")


def test_a_request_that_cannot_be_written_is_not_repeated(bucket: Bucket) -> None:
    for read in (
        Store.read,
        Store.read_version,
        lambda store, *which: store.read_at_most(which[0], 9, which[1]),
    ):
        store = bucket.store()
        with pytest.raises(UnicodeEncodeError):
            read(store, KEY, "\ud800")
        assert len(store.budget.requests) == 1


def test_a_page_of_keys_goes_on_where_s3_gives_an_empty_one(bucket: Bucket) -> None:
    put_keys(bucket, "states/a", "states/b")
    text = (
        b"<ListBucketResult><IsTruncated>true</IsTruncated><KeyCount>0</KeyCount>"
        b"<NextContinuationToken>%b</NextContinuationToken></ListBucketResult>"
    ) % bucket.s3.list_objects_v2(Bucket=bucket.name, MaxKeys=1)["NextContinuationToken"].encode()
    with answering(bucket, "ListObjectsV2", 200, text, times=1):
        page = bucket.direct_store().keys_page("states/", page_size=1)
    assert ([entry.key for entry in page.keys], page.last) == (["states/b"], None)


@pytest.mark.parametrize("page_size", [1, 2, 3, 1000])
def test_pages_of_versions_are_those_of_every_key_and_the_current_one_comes_first(
    bucket: Bucket, page_size: int
) -> None:
    put_keys(bucket, "states/a", "states/a", "states/b", "states/b", "states/c", "trust/d")
    bucket.s3.delete_object(Bucket=bucket.name, Key="states/b")
    entries: list[tuple[str, HistoryEntry]] = []
    after = None
    while True:
        page = bucket.store().versions_page("states/", after=after, page_size=page_size)
        assert page is not None
        entries += page.entries
        after = page.last
        if after is None:
            break
    assert [key for key, _ in entries] == [f"states/{name}" for name in "aabbbc"]
    assert [entry.is_current for _, entry in entries] == [True, False, True, False, False, True]
    assert [entry.is_delete_marker for _, entry in entries] == [False, False, True, False, False, False]
    assert [entry.size for _, entry in entries] == [2, 2, None, 2, 2, 2]


ODD_KEYS = ["states/a b", "states/a%20b", "states/a+b", "states/a&amp;b", "states/a<b>", "states/é\U0001f512"]


def test_a_page_has_keys_as_they_are_with_sizes_and_times(bucket: Bucket) -> None:
    put_keys(bucket, *ODD_KEYS)
    entries = bucket.direct_store().keys_page("states/").keys
    assert [entry.key for entry in entries] == sorted(ODD_KEYS)
    for entry in entries:
        version = bucket.direct_store().read_version(entry.key)
        assert version is not None
        assert (entry.size, entry.last_modified.replace(microsecond=0)) == (2, version.last_modified)
