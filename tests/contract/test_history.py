"""The history of a state on real S3 servers: the facts of each version, wherever a page ends."""

import time
from collections.abc import Sequence
from itertools import product

import pytest

from holdfast.errors import InvalidRequest, LockLost, NoSuchVersion
from holdfast.state import history, resolve
from holdfast.state.acquiring import acquire
from holdfast.state.delete import delete
from holdfast.state.history import Version
from holdfast.state.releasing import release
from holdfast.state.restore import Wanted, restore
from holdfast.state.undelete import undelete
from holdfast.state.write import write
from tests.contract.conftest import KEY, NAME, ONE, READER, TWO, Bucket, coded, decoded, never_asked
from tests.support.documents import ADA, BOB, OPERATOR, lock_info, only_id, state
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

pytestmark = pytest.mark.two_servers


def put(bucket: Bucket, body: bytes) -> None:
    """Write without a lock."""
    write(work(bucket.direct_store(), NAME, ADA), body, None)


def put_beside(bucket: Bucket, body: bytes) -> None:
    """Write as another program."""
    bucket.s3.put_object(Bucket=bucket.name, Key=KEY, Body=body)


def write_too_late(bucket: Bucket, body: bytes, *, operation: str = "OperationTypeApply") -> None:
    """Let Ada's PutObject arrive after her lock was broken and Bob acquired it: refused, but stored."""

    def break_lock() -> None:
        release(work(bucket.direct_store(), NAME, OPERATOR), only_id("one"))
        acquire(work(bucket.direct_store(), NAME, BOB), TWO)
        time.sleep(1.1)  # S3's times have whole seconds, and within one the write counts

    acquire(work(bucket.direct_store(), NAME, ADA), lock_info("one", operation=operation))
    bucket.proxy.before("PUT", KEY, break_lock)
    with pytest.raises(LockLost):
        write(work(bucket.store(), NAME, ADA, require_lock=True), body, "one")


def every_page(bucket: Bucket, page_size: int) -> list[Version]:
    versions: list[Version] = []
    cursor = None
    while True:
        page = history.page(work(bucket.store(), NAME, READER), cursor, page_size=page_size)
        assert len(page.items) <= page_size
        versions += page.items
        cursor = page.next
        if cursor is None:
            return versions


def told(versions: Sequence[Version]) -> list[tuple[int | None, str | None]]:
    """Return the serial of each version, and the status of its write."""
    return [
        (each.state.revision.serial if each.state and each.state.revision else None, each.status)
        for each in versions
    ]


def test_each_version_says_what_became_of_its_write_wherever_a_page_ends(bucket: Bucket) -> None:
    put(bucket, state(1))
    write_too_late(bucket, state(2, content="ada's"))
    assert told(every_page(bucket, 20)) == [(2, "never_acknowledged"), (1, "acknowledged")]
    write(work(bucket.direct_store(), NAME, BOB, require_lock=True), state(2, content="bob's"), "two")
    release(work(bucket.direct_store(), NAME, BOB), TWO)
    put_beside(bucket, state(3))
    put(bucket, state(4))
    time.sleep(1.1)  # within a second, S3 does not tell the order of a version and a delete marker
    delete(work(bucket.direct_store(), NAME, OPERATOR))
    put(bucket, state(1, lineage="another"))
    put(bucket, state(7, lineage="another"))
    for name in ("states/network/prod.tfstate-x.tfstate", f"{KEY}x"):
        bucket.s3.put_object(Bucket=bucket.name, Key=name, Body=b"another key's")
    expected = [
        (7, "acknowledged"),
        (1, "acknowledged"),
        (None, None),
        (4, "acknowledged"),
        (None, "other_program"),
        (2, "acknowledged"),
        (2, "never_acknowledged"),
        (1, "acknowledged"),
    ]
    for page_size in (1, 2, 3, 4, 5, 8, 20):
        versions = every_page(bucket, page_size)
        if page_size == 1:
            # The marker and the version after it have the same second, so they may come in either order.
            assert sorted(told(versions), key=str) == sorted(expected, key=str)
            continue
        assert [one for one in told(versions) if one[1]] == [one for one in expected if one[1]], page_size
        (marker,) = [one.entry for one in versions if one.entry.is_delete_marker]
        assert (marker.size, marker.is_current) == (None, False)
        assert [one.entry.is_current for one in versions] == [True, *[False] * 7]
    counted = [one for one in every_page(bucket, 20) if not one.entry.is_delete_marker]
    for first, count in product(range(9), (1, 2, 3, 8)):
        window = history.numbered(work(bucket.store(), NAME, READER), first, count)
        assert window == (counted[first : first + count], 7), (first, count)


def test_a_page_by_number_reads_its_own_versions_and_the_next_newer_one(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for serial in range(1, 8):
        put(bucket, state(serial))
    for first, count, read in ((0, 2, 3), (2, 3, 4), (7, 2, 0)):
        store = bucket.store()
        history.numbered(work(store, NAME, READER), first, count)
        assert sorted(store.budget.requests) == [*["GetObject"] * read, "ListObjectVersions"], first
    monkeypatch.setattr(history, "MOST_NUMBERED", 5)
    versions, total = history.numbered(work(bucket.store(), NAME, READER), 4, 20)
    assert ([serial for serial, _ in told(versions)], total) == ([3], 5)


@pytest.mark.parametrize("listed", [1, 2, 3, 1000])
def test_one_version_is_told_as_its_page_tells_it_however_long_the_list_is(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    put(bucket, state(1))
    write_too_late(bucket, state(2, content="ada's"))
    write(work(bucket.direct_store(), NAME, BOB, require_lock=True), state(2, content="bob's"), "two")
    release(work(bucket.direct_store(), NAME, BOB), TWO)
    put_beside(bucket, state(3))
    put(bucket, state(4))
    delete(work(bucket.direct_store(), NAME, OPERATOR))
    time.sleep(1.1)  # within a second, S3 does not tell the order of a version and a delete marker
    put(bucket, state(1, lineage="another"))
    write_too_late(bucket, state(2, lineage="another"))
    monkeypatch.setattr(history, "_LISTED", listed)
    versions = every_page(bucket, 20)
    assert [one.status for one in versions].count(history.Status.NEVER_ACKNOWLEDGED) == 2
    for expected in versions:
        assert history.version(work(bucket.store(), NAME, READER), expected.entry.id) == expected


def test_one_version_costs_a_list_and_two_readings_wherever_it_is(bucket: Bucket) -> None:
    for serial in range(1, 31):
        put(bucket, state(serial))
    newest, *_, oldest = every_page(bucket, 20)
    for wanted in (newest, oldest):
        store = bucket.store()
        assert history.version(work(store, NAME, READER), wanted.entry.id) == wanted
        assert sorted(store.budget.requests) == [*["GetObject"] * 2, "ListObjectVersions"]


def test_a_version_that_the_history_lacks_is_told(bucket: Bucket) -> None:
    with pytest.raises(NoSuchVersion, match="has no version made-up"):
        history.version(work(bucket.store(), NAME, READER), "made-up")
    put(bucket, state(1))
    put(bucket, state(2))
    removed = every_page(bucket, 20)[0].entry.id

    def remove() -> None:
        bucket.s3.delete_object(
            Bucket=bucket.name, Key=KEY, VersionId=removed, BypassGovernanceRetention=True
        )

    bucket.proxy.before("GET", KEY, remove)
    with pytest.raises(NoSuchVersion, match="has no version"):
        history.version(work(bucket.store(), NAME, READER), removed)


def test_a_refused_push_of_the_serial_that_it_replaced_was_never_acknowledged(bucket: Bucket) -> None:
    put(bucket, state(1))
    write_too_late(bucket, state(1, content="pushed with -force"), operation="state-push")
    write(work(bucket.direct_store(), NAME, BOB, require_lock=True), state(2), "two")
    release(work(bucket.direct_store(), NAME, BOB), TWO)
    push = lock_info("one", operation="state-push")
    acquire(work(bucket.direct_store(), NAME, ADA), push)
    for content in ("pushed", "pushed again"):
        write(work(bucket.direct_store(), NAME, ADA, require_lock=True), state(2, content=content), "one")
    for page_size in (1, 2, 20):
        assert told(every_page(bucket, page_size)) == [
            *[(2, "acknowledged")] * 3,
            (1, "never_acknowledged"),
            (1, "acknowledged"),
        ]


def test_a_version_has_what_its_writer_noted_and_its_size(bucket: Bucket) -> None:
    acquire(work(bucket.direct_store(), NAME, ADA), ONE)
    write(work(bucket.direct_store(), NAME, ADA, require_lock=True), state(1), "one")
    (version,) = every_page(bucket, 20)
    assert version.entry.size == len(state(1))
    assert version.metadata["who"] == "ada@laptop"
    assert version.metadata["written-by"] == "token:ada"
    assert version.metadata["lock-id"] == "one"


def test_many_versions_of_one_second_are_all_there_in_order(bucket: Bucket) -> None:
    for serial in range(1, 46):
        put(bucket, state(serial))
    for page_size in (20, 7):
        assert told(every_page(bucket, page_size)) == [
            (serial, "acknowledged") for serial in range(45, 0, -1)
        ]


def test_what_was_deleted_undeleted_and_restored_was_acknowledged(bucket: Bucket) -> None:
    put(bucket, state(1))
    first = every_page(bucket, 20)[0].entry.id
    delete(work(bucket.direct_store(), NAME, OPERATOR))
    # All within the same second, or not.
    undelete(work(bucket.direct_store(), NAME, OPERATOR), bucket.marker(KEY))
    wanted = Wanted(first, "it was better", "0" * 32)
    put(bucket, state(2))
    restore(work(bucket.direct_store(), NAME, OPERATOR, largest_state=10**6), wanted)
    for page_size in (1, 2, 20):
        versions = every_page(bucket, page_size)
        assert sorted(told(versions), key=str) == sorted(
            [(3, "acknowledged"), (2, "acknowledged"), *[(1, "acknowledged")] * 2, (None, None)], key=str
        )
        (restored,) = (one for one in versions if one.entry.is_current)
        assert restored.metadata["restored-from"] == first
        assert restored.metadata["reason"] == "it was better"


def test_a_first_state_that_was_refused_is_told_so_though_the_next_was_deleted_later(bucket: Bucket) -> None:
    write_too_late(bucket, state(1, content="ada's"))
    write(work(bucket.direct_store(), NAME, BOB, require_lock=True), state(1, content="bob's"), "two")
    release(work(bucket.direct_store(), NAME, BOB), TWO)
    time.sleep(1.1)  # within a second, S3 does not tell the order of a version and a delete marker
    delete(work(bucket.direct_store(), NAME, OPERATOR))
    for page_size in (1, 2, 20):
        statuses = [each.status for each in every_page(bucket, page_size)]
        assert statuses == [None, "acknowledged", "never_acknowledged"], page_size


def test_a_deleted_state_has_a_history_and_its_last_version_was_acknowledged(bucket: Bucket) -> None:
    put(bucket, state(1))
    delete(work(bucket.direct_store(), NAME, OPERATOR))
    for page_size in (1, 20):
        versions = every_page(bucket, page_size)
        assert told(versions) == [(None, None), (1, "acknowledged")]
        assert versions[0].entry.is_current


def test_a_version_that_is_removed_meanwhile_is_left_out_and_nothing_is_said_against_the_one_before(
    bucket: Bucket,
) -> None:
    for serial in (1, 2, 3):
        put(bucket, state(serial))
    removed = every_page(bucket, 20)[1].entry.id

    def remove() -> None:
        bucket.s3.delete_object(
            Bucket=bucket.name, Key=KEY, VersionId=removed, BypassGovernanceRetention=True
        )

    bucket.proxy.before("GET", NAME.lock_key, remove)
    first = history.page(work(bucket.store(), NAME, READER), None, page_size=1)
    assert told(first.items) == [(3, "acknowledged")]
    assert told(every_page(bucket, 20)) == [(3, "acknowledged"), (1, "acknowledged")]
    assert first.next
    fields = decoded(first.next)
    gone = coded(*fields[:3], removed, *fields[4:])
    assert told(history.page(work(bucket.store(), NAME, READER), gone).items) == [(1, "acknowledged")]


def test_a_page_costs_a_list_a_reading_of_each_version_and_one_more(bucket: Bucket) -> None:
    for serial in range(1, 4):
        put(bucket, state(serial))
    put_beside(bucket, state(4))
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)
    store = bucket.store()
    page = history.page(work(store, NAME, READER), None, page_size=3)
    assert sorted(store.budget.requests) == [*["GetObject"] * (2 + 1), "ListObjectVersions"]
    store = bucket.store()
    history.page(work(store, NAME, READER), page.next, page_size=3)
    assert sorted(store.budget.requests) == [*["GetObject"] * (2 + 1), "ListObjectVersions"]


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.NEVER_ARRIVES, Fault.HALF_AN_ANSWER])
def test_a_history_survives_lost_answers(bucket: Bucket, fault: Fault) -> None:
    for serial in (1, 2, 3):
        put(bucket, state(serial))
    bucket.proxy.fail("GET", KEY, fault, times=3)
    bucket.proxy.fail("GET", bucket.name, fault)
    assert told(every_page(bucket, 20)) == [(serial, "acknowledged") for serial in (3, 2, 1)]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "made-up",
        coded("versions", "network/dev", "one", "two", False),
        coded("versions", "network/prod", "", "two", False),
        coded("versions", "network/prod", "one", "two"),
        coded("versions", "network/prod", "one", 2, False),
        coded("versions", "network/prod", "one", "two", 0),
        coded("versions", "network/prod", "x" * 201, "two", False),
        coded("versions", "network/prod", "one", "x" * 201, False),
        coded("states", "network/prod", "one", "two", False),
    ],
)
def test_a_cursor_that_no_page_gave_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        history.page(work(never_asked(), NAME, READER), cursor)


def test_a_search_of_a_long_history_sends_few_requests_at_once_and_is_continued(bucket: Bucket) -> None:
    for number in range(3 * history.PAGE + 1):
        put_beside(bucket, state(number))

    def requests(reference: str, cursor: str | None) -> tuple[int, str | None]:
        store = bucket.store()
        found = resolve.resolve(work(store, NAME, READER), resolve.parse(reference), cursor)
        return len(store.budget.requests), found.next

    assert requests("@previous", None) == (history.PAGE + 2, None)
    first, cursor = requests("@2001-01-01T00:00Z", None)
    assert (first, cursor is not None) == (resolve.PAGES * (history.PAGE + 2), True)
    with pytest.raises(NoSuchVersion, match="The oldest acknowledged one is"):
        requests("@2001-01-01T00:00Z", cursor)
