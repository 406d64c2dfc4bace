"""What the store promises of S3, on two independent S3 servers."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import boto3
import pytest

from holdfast.errors import StorageRefused, Undecided
from holdfast.store import Changed, Deleted, IfAbsent, IfMatch, NotStored, Object, Store, Stored, connect
from tests.contract.conftest import Bucket
from tests.free_port import free_port
from tests.s3_fault_proxy import Fault

KEY = "states/a.tfstate"


def put(store: Store, body: bytes, condition: IfAbsent | IfMatch) -> Stored | NotStored:
    return store.write(KEY, body, condition, metadata={})


def create(bucket: Bucket, body: bytes = b"one") -> Stored:
    stored = put(bucket.direct_store(), body, IfAbsent())
    assert isinstance(stored, Stored)
    return stored


def found(store: Store) -> Object:
    read = store.read(KEY)
    assert read is not None
    return read


def test_an_object_is_created_only_where_there_is_none(bucket: Bucket) -> None:
    assert isinstance(put(bucket.store(), b"one", IfAbsent()), Stored)
    assert isinstance(put(bucket.store(), b"two", IfAbsent()), NotStored)
    assert bucket.bodies(KEY) == [b"one"]


def test_a_delete_marker_counts_as_absent(bucket: Bucket) -> None:
    create(bucket)
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)
    assert bucket.store().read(KEY) is None
    assert bucket.store().head(KEY) is None
    assert isinstance(put(bucket.store(), b"two", IfAbsent()), Stored)
    assert bucket.bodies(KEY) == [b"one", b"two"]


def test_an_object_is_replaced_only_by_who_names_its_etag(bucket: Bucket) -> None:
    first = create(bucket)
    second = put(bucket.store(), b"two", IfMatch(first.etag))
    assert isinstance(second, Stored)
    assert isinstance(put(bucket.store(), b"three", IfMatch(first.etag)), NotStored)
    assert found(bucket.store()).body == b"two"
    assert bucket.bodies(KEY) == [b"one", b"two"]


def test_a_write_over_an_object_that_is_gone_is_not_stored(bucket: Bucket) -> None:
    first = create(bucket)
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)
    assert isinstance(put(bucket.store(), b"two", IfMatch(first.etag)), NotStored)
    assert bucket.store().read(KEY) is None


def test_an_object_is_deleted_only_by_who_names_its_etag(bucket: Bucket) -> None:
    first = create(bucket)
    assert isinstance(put(bucket.store(), b"two", IfMatch(first.etag)), Stored)
    assert bucket.store().delete(KEY, IfMatch(first.etag)) == Changed()
    read = found(bucket.store())
    assert read.body == b"two"
    assert bucket.store().delete(KEY, IfMatch(read.head.etag)) == Deleted()
    assert bucket.store().read(KEY) is None
    assert bucket.bodies(KEY) == [b"one", b"two"]


def test_deleting_what_is_gone_counts_as_deleted(bucket: Bucket) -> None:
    first = create(bucket)
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)
    assert bucket.store().delete(KEY, IfMatch(first.etag)) == Deleted()


def test_missing_keys_read_as_none(bucket: Bucket) -> None:
    assert bucket.store().read(KEY) is None
    assert bucket.store().head(KEY) is None


def test_a_missing_bucket_is_a_fault_and_never_reads_as_a_missing_key(bucket: Bucket) -> None:
    store = Store(bucket.s3, "holdfast-gone", deadline=time.monotonic() + 20)
    with pytest.raises(StorageRefused, match="NoSuchBucket"):
        store.read(KEY)
    with pytest.raises(StorageRefused, match="NoSuchBucket"):
        put(store, b"one", IfAbsent())


def test_what_is_written_is_read_back_with_what_s3_knows_of_it(bucket: Bucket) -> None:
    body = bytes(range(256)) * 40
    stored = bucket.store().write(
        KEY, body, IfAbsent(), metadata={"who": "ada@büro 100%\n", "serial": "7"}, tags={"holdfast": "lock"}
    )
    read = found(bucket.store())
    assert read.body == body
    assert stored == Stored(read.head.etag, read.head.version_id)
    assert read.head.size == len(body)
    assert read.head.metadata == {"who": "ada@büro 100%\n", "serial": "7"}
    assert bucket.store().head(KEY) == read.head
    assert abs(read.read_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert timedelta(0) <= read.read_at - read.head.last_modified < timedelta(minutes=1)
    tags = bucket.s3.get_object_tagging(Bucket=bucket.name, Key=KEY)["TagSet"]
    assert tags == [{"Key": "holdfast", "Value": "lock"}]
    assert bucket.s3.head_object(Bucket=bucket.name, Key=KEY)["ContentType"] == "application/json"


def test_exactly_one_of_many_simultaneous_creations_is_stored(bucket: Bucket) -> None:
    with ThreadPoolExecutor(16) as clients:
        outcomes = list(clients.map(lambda n: put(bucket.store(), b"%d" % n, IfAbsent()), range(16)))
    winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Stored)]
    assert len(winners) == 1
    assert bucket.bodies(KEY) == [b"%d" % winners[0]]


def test_exactly_one_of_many_simultaneous_replacements_is_stored(bucket: Bucket) -> None:
    first = create(bucket)
    with ThreadPoolExecutor(16) as clients:
        outcomes = list(clients.map(lambda n: put(bucket.store(), b"%d" % n, IfMatch(first.etag)), range(16)))
    winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Stored)]
    assert len(winners) == 1
    assert bucket.bodies(KEY) == [b"one", b"%d" % winners[0]]


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.CONFLICT, Fault.NEVER_ARRIVES])
def test_a_request_that_s3_did_not_take_is_repeated(bucket: Bucket, fault: Fault) -> None:
    bucket.proxy.fail("PUT", KEY, fault, times=3)
    store = bucket.store()
    assert isinstance(put(store, b"one", IfAbsent()), Stored)
    assert store.requests == ["PutObject"] * 4
    bucket.proxy.fail("HEAD", KEY, fault)
    bucket.proxy.fail("GET", KEY, fault)
    assert bucket.store().head(KEY) == found(bucket.store()).head


def test_a_read_that_broke_off_is_repeated(bucket: Bucket) -> None:
    create(bucket, b"x" * 100_000)
    bucket.proxy.fail("GET", KEY, Fault.HALF_AN_ANSWER)
    assert found(bucket.store()).body == b"x" * 100_000


def test_a_write_whose_answer_was_lost_comes_back_as_not_stored_once(bucket: Bucket) -> None:
    bucket.proxy.fail("PUT", KEY, Fault.ANSWER_LOST)
    assert isinstance(put(bucket.store(), b"one", IfAbsent()), NotStored)
    assert bucket.bodies(KEY) == [b"one"]


def test_a_delete_whose_answer_was_lost_counts_as_deleted(bucket: Bucket) -> None:
    first = create(bucket)
    bucket.proxy.fail("DELETE", KEY, Fault.ANSWER_LOST)
    assert bucket.store().delete(KEY, IfMatch(first.etag)) == Deleted()


def test_a_delete_in_conflict_with_another_request_is_repeated(bucket: Bucket) -> None:
    first = create(bucket)
    bucket.proxy.fail("DELETE", KEY, Fault.CONFLICT)
    assert bucket.store().delete(KEY, IfMatch(first.etag)) == Deleted()
    assert bucket.store().read(KEY) is None


def test_when_s3_keeps_throttling_the_request_ends_undecided_at_its_deadline(bucket: Bucket) -> None:
    bucket.proxy.fail("GET", KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(Undecided, match="SlowDown") as undecided:
        bucket.store(seconds=0.5).read(KEY)
    assert undecided.value.headers() == {"Retry-After": "1"}
    assert bucket.proxy.end_rules() < 1000


def test_an_s3_that_cannot_be_connected_to_ends_undecided() -> None:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    nobody = connect(session, endpoint_url=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(Undecided, match="EndpointConnectionError"):
        Store(nobody, "bucket", deadline=time.monotonic() + 0.2).read(KEY)


def test_no_request_starts_after_the_deadline(bucket: Bucket) -> None:
    late = Store(bucket.s3, bucket.name, deadline=time.monotonic())
    with pytest.raises(Undecided, match="no time"):
        put(late, b"one", IfAbsent())
    assert late.requests == []
    assert bucket.bodies(KEY) == []


def test_a_refusal_by_s3_is_a_fault_and_never_reads_as_a_missing_key(bucket: Bucket) -> None:
    create(bucket)
    bucket.proxy.fail("GET", KEY, Fault.DENIED)
    bucket.proxy.fail("HEAD", KEY, Fault.DENIED)
    with pytest.raises(StorageRefused, match="AccessDenied"):
        bucket.store().read(KEY)
    with pytest.raises(StorageRefused, match="403"):
        bucket.store().head(KEY)
