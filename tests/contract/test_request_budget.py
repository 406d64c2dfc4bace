"""The requests to S3 of each verb, counted at the S3 client."""

from collections.abc import Callable, Sequence
from threading import Barrier

import pytest

from holdfast.access import Caller
from holdfast.errors import Locked
from holdfast.memory import Memory
from holdfast.state import held
from holdfast.state.acquiring import acquire
from holdfast.state.delete import delete
from holdfast.state.read import read, read_outputs
from holdfast.state.releasing import release
from holdfast.state.undelete import undelete
from holdfast.state.write import write
from tests.contract.conftest import NAME, ONE, Bucket
from tests.support.documents import ADA, BOB, OPERATOR, lock_info, only_id, state
from tests.support.request_budget import ACQUIRE, FIRST_WRITE, LOOK, READ, RELEASE, WRITE, WRITE_REMEMBERED
from tests.support.work import work

pytestmark = pytest.mark.two_servers

PUSH = lock_info("push", operation="state-push")


def acquire_held(bucket: Bucket) -> None:
    with pytest.raises(Locked):
        acquire(work(bucket.store(), NAME, BOB), lock_info("two"))


VERBS: dict[str, Callable[[Bucket], object]] = {
    "acquire": lambda bucket: acquire(work(bucket.store(), NAME, ADA), ONE),
    "acquire-held": acquire_held,
    "read": lambda bucket: read(work(bucket.store(), NAME, ADA)),
    "write": lambda bucket: write(work(bucket.store(), NAME, ADA, require_lock=True), state(1), "one"),
    "write-next": lambda bucket: write(work(bucket.store(), NAME, ADA, require_lock=True), state(2), "one"),
    "write-unlocked": lambda bucket: write(work(bucket.store(), NAME, ADA), state(1), None),
    "release": lambda bucket: release(work(bucket.store(), NAME, ADA), ONE),
    "force-unlock": lambda bucket: release(work(bucket.store(), NAME, OPERATOR), only_id("one")),
    "delete": lambda bucket: delete(work(bucket.store(), NAME, OPERATOR)),
    "undelete": lambda bucket: undelete(work(bucket.store(), NAME, OPERATOR), bucket.marker(NAME.state_key)),
    "retain": Bucket.retain_everything,
}


@pytest.mark.parametrize(
    ("before", "verb", "requests"),
    [
        ("", "acquire", ACQUIRE),
        ("acquire", "acquire-held", ("PUT", "GET")),
        ("", "read", (*READ, *LOOK)),
        ("acquire write", "read", READ),
        ("acquire", "write", FIRST_WRITE),
        ("acquire write", "write-next", WRITE),
        ("acquire write", "write", ("GET", "GET")),
        ("acquire", "release", RELEASE),
        ("retain acquire", "release", ("GET", "DELETE", "DELETE")),
        ("acquire", "force-unlock", ("GET", "DELETE", "GET")),
        ("retain acquire", "force-unlock", ("GET", "DELETE", "DELETE", "GET")),
        ("", "delete", ("GET", "GET")),
        ("write-unlocked", "delete", ("GET", "PUT", "DELETE", "GET", "DELETE")),
        (
            "write-unlocked delete",
            "undelete",
            ("GET", "PUT", "GET", "GET", "GET", *LOOK, "GET", "PUT", "GET", "DELETE"),
        ),
    ],
)
def test_a_verb_sends_no_more_requests_than_promised(
    bucket: Bucket, before: str, verb: str, requests: Sequence[str]
) -> None:
    for step in before.split():
        VERBS[step](bucket)
    with bucket.sent("host") as sent:
        VERBS[verb](bucket)
    assert tuple(method for method, _ in sent) == requests


# --- a warm process ------------------------------------------------------------------------------------

OVERTAKEN = ("GET", "PUT", *WRITE)
"""A read of the lock, a PutObject whose precondition fails, and a whole write."""

Step = Callable[[Bucket, Memory], object]


def warm_read(bucket: Bucket, memory: Memory) -> None:
    read(work(bucket.store(), NAME, ADA, memory))


def warm_read_of_outputs(bucket: Bucket, memory: Memory) -> None:
    read_outputs(work(bucket.store(), NAME, ADA, memory))


def warm_write(serial: int) -> Step:
    def step(bucket: Bucket, memory: Memory) -> None:
        write(work(bucket.store(), NAME, ADA, memory, require_lock=True), state(serial), "one")

    return step


def elsewhere(body: bytes) -> Step:
    """Another process writes under the same lock."""
    return lambda bucket, _: write(work(bucket.store(), NAME, ADA, require_lock=True), body, "one")


def pushed_elsewhere(body: bytes) -> Step:
    """Another process acquires the lock, writes `body`, and releases the lock."""

    def step(bucket: Bucket, _: Memory) -> None:
        VERBS["release"](bucket)
        acquire(work(bucket.store(), NAME, ADA), PUSH)
        write(work(bucket.store(), NAME, ADA, require_lock=True), body, "push")
        release(work(bucket.store(), NAME, ADA), PUSH)
        VERBS["acquire"](bucket)

    return step


def deleted_elsewhere(bucket: Bucket, _: Memory) -> None:
    bucket.s3.delete_object(Bucket=bucket.name, Key=NAME.state_key)


def put_by_another_program(body: bytes) -> Step:
    return lambda bucket, _: bucket.s3.put_object(Bucket=bucket.name, Key=NAME.state_key, Body=body)


def unlocked(bucket: Bucket, memory: Memory) -> None:
    VERBS["release"](bucket)
    write(work(bucket.store(), NAME, ADA, memory), state(2), None)


@pytest.mark.parametrize(
    ("before", "last", "requests"),
    [
        pytest.param([], warm_write(1), FIRST_WRITE, id="a new process"),
        pytest.param([warm_read], warm_write(1), FIRST_WRITE, id="there was no state"),
        pytest.param([elsewhere(state(1)), warm_read], warm_write(2), WRITE_REMEMBERED, id="after a read"),
        pytest.param(
            [elsewhere(state(1)), warm_read_of_outputs],
            *(warm_write(2), WRITE_REMEMBERED),
            id="after a read of the outputs",
        ),
        pytest.param([warm_write(1)], warm_write(2), WRITE_REMEMBERED, id="after a write"),
        pytest.param([warm_write(1), warm_write(2)], warm_write(3), WRITE_REMEMBERED, id="after two"),
        pytest.param([warm_write(1)], warm_write(1), ("GET", "GET"), id="the same bytes"),
        pytest.param(
            [warm_write(1), warm_write(1)], warm_write(2), WRITE_REMEMBERED, id="after the same bytes"
        ),
        pytest.param([warm_write(1)], unlocked, ("GET", "DELETE", *WRITE), id="without a lock"),
        pytest.param(
            [warm_write(1), elsewhere(state(2))], warm_write(3), OVERTAKEN, id="superseded elsewhere"
        ),
        pytest.param(
            [warm_write(1), deleted_elsewhere],
            *(warm_write(2), ("GET", "PUT", *FIRST_WRITE)),
            id="deleted elsewhere",
        ),
        pytest.param(
            [warm_write(5), pushed_elsewhere(state(1))],
            *(warm_write(2), ("GET", *WRITE)),
            id="a serial that the cached version would refuse",
        ),
        pytest.param(
            [put_by_another_program(state(1)), warm_read],
            *(warm_write(2), ("GET", *WRITE)),
            id="a state of another program",
        ),
        pytest.param(
            [put_by_another_program(b"")], warm_write(1), ("GET", "GET", *WRITE), id="a state of zero bytes"
        ),
        pytest.param(
            [warm_write(1), put_by_another_program(state(2)), warm_read],
            *(warm_write(3), ("GET", *WRITE)),
            id="a state of another program, over a cached version",
        ),
    ],
)
def test_a_warm_process_saves_a_write_the_reading_of_what_it_remembers(
    bucket: Bucket, before: list[Step], last: Step, requests: Sequence[str]
) -> None:
    bucket.encrypt_with_kms()
    VERBS["acquire"](bucket)
    memory = Memory()
    for step in before:
        step(bucket, memory)
    with bucket.sent("host") as sent:
        last(bucket, memory)
    assert tuple(method for method, _ in sent) == requests


def test_nothing_is_remembered_where_equal_bytes_have_equal_etags(bucket: Bucket) -> None:
    bucket.encrypt_with_s3_keys()
    assert_nothing_is_remembered(bucket)


def test_nothing_is_remembered_where_a_version_has_no_id_of_its_own(unversioned: Bucket) -> None:
    unversioned.encrypt_with_kms()
    assert_nothing_is_remembered(unversioned)


def assert_nothing_is_remembered(bucket: Bucket) -> None:
    """Write, read and write: twice the requests of a write."""
    VERBS["acquire"](bucket)
    memory = Memory()
    with bucket.sent("host") as sent:
        warm_write(1)(bucket, memory)
        warm_read(bucket, memory)
        warm_write(2)(bucket, memory)
    assert tuple(method for method, _ in sent) == (*FIRST_WRITE, *READ, *WRITE)


# --- a release of a warm process -------------------------------------------------------------------------


def acquired_by(caller: Caller, body: bytes = ONE) -> Step:
    return lambda bucket, memory: acquire(work(bucket.store(), NAME, caller, memory), body)


def in_a_cold_process(verb: str) -> Step:
    return lambda bucket, _: VERBS[verb](bucket)


@pytest.mark.parametrize(
    ("before", "requests"),
    [
        pytest.param([acquired_by(ADA)], RELEASE, id="the lock that it acquired"),
        pytest.param([acquired_by(ADA)] * 2, RELEASE, id="a repeated acquire"),
        pytest.param([in_a_cold_process("acquire"), acquired_by(ADA)], RELEASE, id="an acquire elsewhere"),
        pytest.param([acquired_by(ADA), in_a_cold_process("release")], RELEASE, id="a lock that is gone"),
        pytest.param(
            [in_a_cold_process("retain"), acquired_by(ADA)], (*RELEASE, "DELETE"), id="a protected version"
        ),
    ],
)
def test_a_process_releases_the_lock_that_it_acquired_in_one_round_trip(
    bucket: Bucket, before: list[Step], requests: Sequence[str]
) -> None:
    memory = Memory()
    for step in before:
        step(bucket, memory)
    both_are_sent = Barrier(2, timeout=10)
    for method in RELEASE:
        bucket.proxy.before(method, NAME.lock_key, both_are_sent.wait)
    with bucket.sent("host") as sent:
        release(work(bucket.store(), NAME, ADA, memory), ONE)
    assert sorted(method for method, _ in sent) == sorted(requests)
    assert held.read(bucket.store(), NAME) is None

    VERBS["acquire"](bucket)  # in a cold process: the lock that the warm process acquired is used up
    assert_read_first(bucket, memory, ADA, ONE, requests)


@pytest.mark.parametrize(
    ("caller", "body", "requests"),
    [
        pytest.param(ADA, lock_info("two"), ("GET",), id="another lock"),
        pytest.param(OPERATOR, ONE, (*RELEASE, "GET"), id="another principal"),
        pytest.param(OPERATOR, lock_info("one", who="else"), (*RELEASE, "GET"), id="another document"),
        pytest.param(OPERATOR, only_id("one"), (*RELEASE, "GET"), id="the ID alone"),
    ],
)
def test_a_process_reads_the_lock_first_for_every_other_release(
    bucket: Bucket, caller: Caller, body: bytes, requests: Sequence[str]
) -> None:
    memory = Memory()
    acquired_by(ADA)(bucket, memory)
    assert_read_first(bucket, memory, caller, body, requests)


def test_a_process_reads_the_lock_first_where_a_lock_has_no_version_id_of_its_own(
    unversioned: Bucket,
) -> None:
    memory = Memory()
    acquired_by(ADA)(unversioned, memory)
    assert_read_first(unversioned, memory, ADA, ONE, RELEASE)


def assert_read_first(
    bucket: Bucket, memory: Memory, caller: Caller, body: bytes, requests: Sequence[str]
) -> None:
    """Release, and check that the requests are sent in this order."""
    with bucket.sent("host") as sent:
        release(work(bucket.store(), NAME, caller, memory), body)
    assert tuple(method for method, _ in sent) == requests
