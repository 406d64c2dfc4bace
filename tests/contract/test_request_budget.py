"""How many requests each verb sends to S3, counted at the S3 client."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import locks, names, states
from holdfast.errors import Locked
from tests.contract.conftest import Bucket
from tests.documents import ADA, BOB, lock_info, state

NAME = names.parse("network/prod")
ONE = lock_info("one")


@pytest.fixture
def sent(bucket: Bucket) -> Iterator[list[str]]:
    """The requests that leave the client, as `PUT`, `GET`, `HEAD`, `DELETE`."""
    methods: list[str] = []

    def note(request: Any, **_: object) -> None:
        methods.append(request.method)

    events = bucket.server.proxied.meta.events
    events.register("before-send.s3", note)
    yield methods
    events.unregister("before-send.s3", note)


def acquire_free(bucket: Bucket) -> None:
    locks.acquire(bucket.store(), NAME, ONE, ADA)


def acquire_held(bucket: Bucket) -> None:
    with pytest.raises(Locked):
        locks.acquire(bucket.store(), NAME, lock_info("two"), BOB)


def read(bucket: Bucket) -> None:
    assert states.read(bucket.store(), NAME, ADA) == state(1)


def read_nothing(bucket: Bucket) -> None:
    assert states.read(bucket.store(), NAME, ADA) is None


def write_first(bucket: Bucket) -> None:
    states.write(bucket.store(), NAME, state(1), "one", ADA, require_lock=True)


def write_next(bucket: Bucket) -> None:
    states.write(bucket.store(), NAME, state(2), "one", ADA, require_lock=True)


def write_same(bucket: Bucket) -> None:
    states.write(bucket.store(), NAME, state(1), "one", ADA, require_lock=True)


def release(bucket: Bucket) -> None:
    locks.release(bucket.store(), NAME, ONE, ADA)


@pytest.mark.parametrize(
    ("before", "verb", "requests"),
    [
        ([], acquire_free, ["PUT"]),
        ([acquire_free], acquire_held, ["PUT", "GET"]),
        ([], read_nothing, ["GET"]),
        ([acquire_free, write_first], read, ["GET"]),
        ([acquire_free], write_first, ["HEAD", "GET", "PUT", "GET"]),
        ([acquire_free, write_first], write_next, ["HEAD", "GET", "PUT", "GET"]),
        ([acquire_free, write_first], write_same, ["HEAD", "GET"]),
        ([acquire_free], release, ["GET", "DELETE"]),
    ],
)
def test_a_verb_sends_no_more_requests_than_promised(
    bucket: Bucket,
    sent: list[str],
    before: list[Callable[[Bucket], None]],
    verb: Callable[[Bucket], None],
    requests: list[str],
) -> None:
    for step in before:
        step(bucket)
    sent.clear()
    verb(bucket)
    assert sent == requests
