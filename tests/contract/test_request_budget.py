"""How many requests each verb sends to S3, counted at the S3 client."""

from collections.abc import Callable, Sequence

import pytest

from holdfast import names
from holdfast.errors import Locked
from holdfast.state import locks
from holdfast.state.delete import delete
from holdfast.state.read import read
from holdfast.state.undelete import undelete
from holdfast.state.write import write
from tests.contract.conftest import Bucket
from tests.support.documents import ADA, BOB, OPERATOR, lock_info, only_id, state
from tests.support.request_budget import ACQUIRE, READ, RELEASE, WRITE

NAME = names.parse("network/prod")
ONE = lock_info("one")


def acquire_free(bucket: Bucket) -> None:
    locks.acquire(bucket.store(), NAME, ONE, ADA)


def acquire_held(bucket: Bucket) -> None:
    with pytest.raises(Locked):
        locks.acquire(bucket.store(), NAME, lock_info("two"), BOB)


def read_state(bucket: Bucket) -> None:
    assert read(bucket.store(), NAME, ADA) == state(1)


def read_nothing(bucket: Bucket) -> None:
    assert read(bucket.store(), NAME, ADA) is None


def write_first(bucket: Bucket) -> None:
    write(bucket.store(), NAME, state(1), "one", ADA, require_lock=True)


def write_next(bucket: Bucket) -> None:
    write(bucket.store(), NAME, state(2), "one", ADA, require_lock=True)


def write_same(bucket: Bucket) -> None:
    write(bucket.store(), NAME, state(1), "one", ADA, require_lock=True)


def release(bucket: Bucket) -> None:
    locks.release(bucket.store(), NAME, ONE, ADA)


def force_unlock(bucket: Bucket) -> None:
    locks.release(bucket.store(), NAME, only_id("one"), OPERATOR)


def retain(bucket: Bucket) -> None:
    bucket.retain_everything()


def write_unlocked(bucket: Bucket) -> None:
    write(bucket.store(), NAME, state(1), None, ADA, require_lock=False)


def delete_state(bucket: Bucket) -> None:
    delete(bucket.store(), NAME, OPERATOR)


def undelete_state(bucket: Bucket) -> None:
    undelete(bucket.store(), NAME, OPERATOR, None)


@pytest.mark.parametrize(
    ("before", "verb", "requests"),
    [
        ([], acquire_free, ACQUIRE),
        ([acquire_free], acquire_held, ["PUT", "GET"]),
        ([], read_nothing, READ),
        ([acquire_free, write_first], read_state, READ),
        ([acquire_free], write_first, WRITE),
        ([acquire_free, write_first], write_next, WRITE),
        ([acquire_free, write_first], write_same, ["GET", "GET"]),
        ([acquire_free], release, RELEASE),
        ([retain, acquire_free], release, ["GET", "DELETE", "DELETE"]),
        ([acquire_free], force_unlock, ["GET", "DELETE", "GET"]),
        ([retain, acquire_free], force_unlock, ["GET", "DELETE", "DELETE", "GET"]),
        ([], delete_state, ["GET", "GET"]),
        ([write_unlocked], delete_state, ["GET", "PUT", "DELETE", "GET", "DELETE"]),
        (
            [write_unlocked, delete_state],
            undelete_state,
            ["GET", "PUT", "GET", "GET", "GET", "PUT", "GET", "DELETE"],
        ),
    ],
)
def test_a_verb_sends_no_more_requests_than_promised(
    bucket: Bucket,
    before: list[Callable[[Bucket], None]],
    verb: Callable[[Bucket], None],
    requests: Sequence[str],
) -> None:
    for step in before:
        step(bucket)
    with bucket.sent("host") as sent:
        verb(bucket)
    assert [method for method, _ in sent] == list(requests)
