"""Acquire, release and force-unlock on real S3 servers, with lost answers and others in between."""

import json
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from holdfast import names
from holdfast.access import Caller, OwnLocks
from holdfast.errors import (
    Locked,
    LockNotMatched,
    NotAllowed,
    OutcomeUnknown,
    UnlockOutcomeUnknown,
)
from holdfast.memory import Memory
from holdfast.state import held, removing
from holdfast.state.acquiring import acquire
from holdfast.state.lock_info import parse as lock_info_of
from holdfast.state.releasing import Released, release
from holdfast.state.removing import ForceUnlocked
from tests.contract.conftest import LOCK_KEY as KEY
from tests.contract.conftest import NAME, Bucket
from tests.support.documents import ADA, BOB, OPERATOR, lock_info, only_id
from tests.support.s3_fault_proxy import Fault
from tests.support.waiting import wait_until
from tests.support.work import work

pytestmark = pytest.mark.two_servers


@pytest.fixture(params=["cold", "warm"], autouse=True)
def process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in processes that cache nothing, and in one process that caches the locks it acquires."""
    memory = Memory() if request.param == "warm" else None
    monkeypatch.setitem(globals(), "work", partial(work, memory=memory))


def stored_lock(bucket: Bucket) -> dict[str, str] | None:
    listed = bucket.s3.list_objects_v2(Bucket=bucket.name, Prefix=KEY).get("Contents", [])
    if not listed:
        return None
    document: dict[str, str] = json.loads(bucket.s3.get_object(Bucket=bucket.name, Key=KEY)["Body"].read())
    return document


def held_id(bucket: Bucket) -> str | None:
    stored = stored_lock(bucket)
    return stored["ID"] if stored else None


def released_and_taken(bucket: Bucket) -> None:
    """The holder releases the lock, and somebody else acquires it."""
    release(work(bucket.direct_store(), NAME, ADA), lock_info("one"))
    acquire(work(bucket.direct_store(), NAME, BOB), lock_info("two", who="bob@desk"))


def broken_and_taken(bucket: Bucket) -> None:
    """The lock is broken, and somebody else acquires it."""
    release(work(bucket.direct_store(), NAME, OPERATOR), only_id("one"))
    acquire(work(bucket.direct_store(), NAME, BOB), lock_info("two"))


def wait_until_older_than_the_minimum(bucket: Bucket, name: names.StateName) -> None:
    """Wait until the lock is old enough for a force-unlock without an ID, by S3's clock in whole seconds."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        lock = held.read(bucket.direct_store(), name)
        assert lock is not None
        if lock.read_at - lock.version.last_modified > removing.FORCE_UNLOCK_MIN_AGE:
            return
        time.sleep(0.5)
    pytest.fail("the lock does not grow older")


def test_a_free_lock_is_acquired_with_one_request_and_stored_as_received_with_its_path(
    bucket: Bucket,
) -> None:
    store = bucket.store()
    acquired = acquire(work(store, NAME, ADA), lock_info("one"))
    assert acquired.info.id == "one"
    assert store.budget.requests == ["PutObject"]
    assert stored_lock(bucket) == {**json.loads(lock_info("one")), "Path": f"{bucket.name}/{NAME.state_key}"}
    head = bucket.s3.head_object(Bucket=bucket.name, Key=KEY)
    assert head["Metadata"] == {"locked-by": "token:ada"}
    assert head["ContentType"] == "application/json"
    tags = bucket.s3.get_object_tagging(Bucket=bucket.name, Key=KEY)["TagSet"]
    assert tags == [{"Key": "holdfast", "Value": "lock"}]


def test_a_held_lock_is_refused_with_the_holders_lock_info_after_two_requests(bucket: Bucket) -> None:
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    store = bucket.store()
    with pytest.raises(Locked) as refused:
        acquire(work(store, NAME, BOB), lock_info("two", who="bob@desk"))
    assert store.budget.requests == ["PutObject", "GetObject"]
    assert refused.value.body() == {
        **json.loads(lock_info("one")),
        "Path": f"{bucket.name}/{NAME.state_key}",
        "Info": 'principal "token:ada", verified by Holdfast',
    }
    assert held_id(bucket) == "one"


def test_the_same_request_again_is_acquired_again_but_by_nobody_else_and_with_no_other_document(
    bucket: Bucket,
) -> None:
    body = lock_info("one")
    first = acquire(work(bucket.store(), NAME, ADA), body)
    assert acquire(work(bucket.store(), NAME, ADA), body) == first
    for other, caller in ((body, BOB), (lock_info("one", operation="OperationTypePlan"), ADA)):
        with pytest.raises(Locked):
            acquire(work(bucket.store(), NAME, caller), other)


def test_a_lock_that_is_released_while_it_is_looked_at_is_acquired(bucket: Bucket) -> None:
    theirs = lock_info("one")
    acquire(work(bucket.store(), NAME, BOB), theirs)
    bucket.proxy.before("GET", KEY, lambda: release(work(bucket.direct_store(), NAME, BOB), theirs))
    acquire(work(bucket.store(), NAME, ADA), lock_info("two"))
    assert held_id(bucket) == "two"


def test_a_lock_object_that_is_no_json_is_a_lock_that_says_so_and_can_be_forced(bucket: Bucket) -> None:
    bucket.s3.put_object(Bucket=bucket.name, Key=KEY, Body=b"\xff not json")
    with pytest.raises(Locked) as refused:
        acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    holder = refused.value.body()
    assert holder["ID"].startswith("unreadable-")
    assert "has no valid lock info" in holder["Info"]
    assert f"{bucket.name}/{KEY}" in holder["Info"]
    release(work(bucket.store(), NAME, OPERATOR), only_id(holder["ID"]))
    assert stored_lock(bucket) is None


def test_a_release_takes_two_requests_and_repeated_it_leaves_the_next_lock_alone(bucket: Bucket) -> None:
    body = lock_info("one")
    acquire(work(bucket.store(), NAME, ADA), body)
    store = bucket.store()
    assert release(work(store, NAME, ADA), body) == Released("one")
    assert sorted(store.budget.requests) == ["DeleteObject", "GetObject"]
    assert stored_lock(bucket) is None
    assert release(work(bucket.store(), NAME, ADA), body) == Released("one")
    acquire(work(bucket.store(), NAME, BOB), lock_info("two"))
    assert release(work(bucket.store(), NAME, ADA), body) == Released("one")
    assert held_id(bucket) == "two"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(only_id("one"), id="only the ID"),
        pytest.param(lock_info("one", who="bob@desk"), id="the ID with another document"),
        pytest.param(lock_info("one"), id="another caller"),
    ],
)
def test_whoever_did_not_take_the_lock_needs_the_permission_to_force_it(bucket: Bucket, body: bytes) -> None:
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    store = bucket.store()
    with pytest.raises(NotAllowed, match="maintainer"):
        release(work(store, NAME, BOB), body)
    assert store.budget.requests == ([] if body == b"" else ["GetObject"])
    assert held_id(bucket) == "one"


def test_opentofus_force_unlock_removes_the_lock_that_it_names(bucket: Bucket) -> None:
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    with pytest.raises(LockNotMatched, match="one"):
        release(work(bucket.store(), NAME, OPERATOR), only_id("two"))
    assert held_id(bucket) == "one"
    outcome = release(work(bucket.store(), NAME, OPERATOR), only_id("one"))
    assert isinstance(outcome, ForceUnlocked)
    assert (outcome.info and outcome.info.id, outcome.principal) == ("one", "token:ada")
    assert stored_lock(bucket) is None


def test_a_force_unlock_whose_lock_changed_and_then_was_released_has_nothing_left_to_do(
    bucket: Bucket,
) -> None:
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))

    def released_twice() -> None:
        broken_and_taken(bucket)
        bucket.proxy.before(
            "GET", KEY, lambda: release(work(bucket.direct_store(), NAME, BOB), lock_info("two"))
        )

    bucket.proxy.before("DELETE", KEY, released_twice)
    assert isinstance(release(work(bucket.store(), NAME, OPERATOR), only_id("one")), ForceUnlocked)
    assert stored_lock(bucket) is None


def test_terraforms_force_unlock_removes_an_older_lock_but_never_one_taken_since(bucket: Bucket) -> None:
    undisturbed = names.parse("network/undisturbed")
    for name in (undisturbed, NAME):
        acquire(work(bucket.store(), name, ADA), lock_info("one"))
    wait_until_older_than_the_minimum(bucket, NAME)

    bucket.proxy.before("DELETE", KEY, lambda: released_and_taken(bucket))
    with pytest.raises(
        LockNotMatched, match=r"one is gone.*bob@desk.*lock ID two.*That lock was not removed"
    ):
        release(work(bucket.store(), NAME, OPERATOR), b"")
    assert held_id(bucket) == "two"

    assert isinstance(release(work(bucket.store(), undisturbed, OPERATOR), b""), ForceUnlocked)
    assert bucket.history(undisturbed.lock_key) == []


def test_a_force_unlock_without_an_id_that_stays_undecided_gets_no_status_that_is_repeated(
    bucket: Bucket,
) -> None:
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    wait_until_older_than_the_minimum(bucket, NAME)
    bucket.proxy.fail("DELETE", KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(UnlockOutcomeUnknown) as undecided:
        release(work(bucket.store(seconds=0.5), NAME, OPERATOR), b"")
    assert undecided.value.status == 409
    assert undecided.value.logged == {"lock_id": "one", "held_by": "token:ada"}
    with pytest.raises(OutcomeUnknown) as named:
        release(work(bucket.store(seconds=0.5), NAME, OPERATOR), only_id("one"))
    assert named.value.logged == {"lock_id": "one", "held_by": "token:ada"}
    assert bucket.proxy.end_rules() < 1000


@pytest.fixture
def no_minimum_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removing, "FORCE_UNLOCK_MIN_AGE", timedelta(seconds=-1))


@pytest.mark.usefixtures("no_minimum_age")
@pytest.mark.parametrize("body", [b"", only_id("one")], ids=["no ID", "its ID"])
def test_a_force_unlock_that_worked_and_cannot_be_looked_at_gets_no_status_that_is_repeated_without_an_id(
    bucket: Bucket, body: bytes
) -> None:
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    bucket.proxy.before("DELETE", KEY, lambda: bucket.proxy.fail("GET", KEY, Fault.SLOW_DOWN, times=1000))
    with pytest.raises(OutcomeUnknown if body else UnlockOutcomeUnknown) as undecided:
        release(work(bucket.store(seconds=1), NAME, OPERATOR), body)
    assert bucket.proxy.end_rules() < 1000
    assert stored_lock(bucket) is None
    assert undecided.value.logged == {"lock_id": "one", "held_by": "token:ada"}


@pytest.mark.usefixtures("no_minimum_age")
@pytest.mark.parametrize("last", ["DELETE", "GET"])
def test_a_force_unlock_without_an_id_that_s3_refuses_after_it_worked_gets_no_status_that_is_repeated(
    bucket: Bucket, last: str
) -> None:
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    if last == "DELETE":
        bucket.proxy.fail("DELETE", KEY, Fault.ANSWER_LOST)
        bucket.proxy.fail("DELETE", KEY, Fault.DENIED, times=2)
    else:
        bucket.proxy.before("DELETE", KEY, lambda: bucket.proxy.fail("GET", KEY, Fault.DENIED))
    with pytest.raises(UnlockOutcomeUnknown) as undecided:
        release(work(bucket.store(), NAME, OPERATOR), b"")
    assert undecided.value.status == 409
    assert stored_lock(bucket) is None
    assert "AccessDenied" in undecided.value.logged["reason"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"ID": "one"}',
        b'{"ID":"one","x":1e300,"y":true}',
        b'{"ID":"one","Info":"' + b"x" * 65_000 + b'","a":"\\u00fc"}',
    ],
)
def test_whatever_is_accepted_as_lock_info_can_be_released(bucket: Bucket, body: bytes) -> None:
    acquire(work(bucket.store(), NAME, ADA), body)
    assert held_id(bucket) == "one"
    acquire(work(bucket.store(), NAME, ADA), body)
    assert release(work(bucket.store(), NAME, ADA), body) == Released("one")
    assert stored_lock(bucket) is None


@pytest.mark.parametrize("body", [b"", only_id("one"), lock_info("one")])
def test_unlocking_what_is_not_locked_succeeds(bucket: Bucket, body: bytes) -> None:
    assert isinstance(release(work(bucket.store(), NAME, OPERATOR), body), Released | ForceUnlocked)


def test_a_lock_of_terraforms_own_s3_backend_holds_and_only_a_maintainer_breaks_it(bucket: Bucket) -> None:
    theirs = {**json.loads(lock_info("native")), "Path": f"{bucket.name}/{NAME.state_key}"}
    bucket.s3.put_object(Bucket=bucket.name, Key=KEY, Body=json.dumps(theirs).encode())
    with pytest.raises(Locked) as refused:
        acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    without = "no principal: the lock was acquired without Holdfast"
    assert refused.value.body() == {**theirs, "Info": without}
    assert 'locked by another program (client says "ada@laptop"), lock ID native' in refused.value.message
    with pytest.raises(NotAllowed):
        release(work(bucket.store(), NAME, ADA), json.dumps(theirs).encode())
    assert held_id(bucket) == "native"


HOSTILE = 'ada (token:ada)", verified by Holdfast\n  Info:      principal "token:ada"\u2028\u202e'


@pytest.mark.parametrize("field", ["Who", "Info", "Operation", "Version"])
def test_no_text_of_a_holder_can_pass_for_who_the_holder_is(bucket: Bucket, field: str) -> None:
    claims = {**json.loads(lock_info("one", who="ada@laptop")), field: HOSTILE}
    acquire(work(bucket.store(), NAME, replace(BOB, owner="bea@example.com")), json.dumps(claims).encode())

    with pytest.raises(Locked) as refused:
        acquire(work(bucket.store(), NAME, ADA), lock_info("two"))

    body = refused.value.body()
    assert body["Info"].startswith('principal "token:bob", verified by Holdfast; owner "bea@example.com"')
    assert "token:bob" not in body["Who"]
    assert "bea@example.com" not in body["Who"]
    assert all(text.isprintable() for text in body.values()), "a client prints each field on a line"
    proved, _, rest = body["Info"].partition('; info "')
    assert "token:ada" not in proved
    assert bool(rest) is (field == "Info")
    assert refused.value.message.startswith(
        "The state is locked by bea@example.com (token:bob) (client says "
    )
    assert "locked by ada" not in refused.value.message


# --- what a lock leaves behind, and whose lock a removal can meet -----------------------------------


def take_over(bucket: Bucket) -> None:
    """Somebody breaks the lock, and a late retry of the first request acquires it again."""
    release(work(bucket.direct_store(), NAME, OPERATOR), only_id("one"))
    acquire(work(bucket.direct_store(), NAME, ADA), lock_info("one"))


def held_version(bucket: Bucket) -> str | None:
    lock = held.read(bucket.direct_store(), NAME)
    return lock.identity.version_id if lock else None


def test_a_lock_that_lies_over_an_old_marker_is_given_back_and_the_marker_stays(bucket: Bucket) -> None:
    bucket.s3.put_object(Bucket=bucket.name, Key=KEY, Body=b"{}")
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)
    before = bucket.history(KEY)
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    release(work(bucket.store(), NAME, ADA), lock_info("one"))
    assert stored_lock(bucket) is None
    assert bucket.history(KEY) == before


def test_an_unconditional_lock_over_another_one_gives_it_back_to_its_holder(bucket: Bucket) -> None:
    # Holdfast never writes this. The removal of the upper version must not read as "not locked".
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    bucket.s3.put_object(Bucket=bucket.name, Key=KEY, Body=lock_info("two"))
    with pytest.raises(LockNotMatched, match="one"):
        release(work(bucket.store(), NAME, OPERATOR), only_id("two"))
    assert held_id(bucket) == "one"


@pytest.mark.parametrize("body", [lock_info("one"), only_id("one")], ids=["release", "force-unlock"])
def test_a_lock_under_retention_is_given_back_all_the_same_and_leaves_a_marker(
    bucket: Bucket, body: bytes
) -> None:
    bucket.retain_everything()
    caller = ADA if body == lock_info("one") else OPERATOR
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    store = bucket.store()
    release(work(store, NAME, caller), body)
    assert sorted(store.budget.requests[:3]) == ["DeleteObject", "DeleteObject", "GetObject"]
    assert stored_lock(bucket) is None
    assert len(bucket.bodies(KEY)) == bucket.delete_markers(KEY) == 1
    acquire(work(bucket.store(), NAME, BOB), lock_info("two"))
    assert held_id(bucket) == "two"


def test_a_lock_under_retention_that_was_taken_since_is_not_removed(bucket: Bucket) -> None:
    bucket.retain_everything()
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))

    bucket.proxy.before("DELETE", KEY, lambda: None)  # the removal, which is refused
    bucket.proxy.before("DELETE", KEY, lambda: released_and_taken(bucket))
    with pytest.raises(LockNotMatched, match="That lock was not removed"):
        release(work(bucket.store(), NAME, OPERATOR), only_id("one"))
    assert held_id(bucket) == "two"


@pytest.mark.parametrize("forced", [False, True])
def test_a_late_removal_leaves_a_lock_alone_that_was_taken_since_with_the_same_document(
    bucket: Bucket, forced: bool
) -> None:
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    bucket.proxy.before("DELETE", KEY, lambda: take_over(bucket))
    if forced:  # it does not claim that the lock is gone
        with pytest.raises(LockNotMatched, match="That lock was not removed"):
            release(work(bucket.store(), NAME, OPERATOR), only_id("one"))
    else:
        assert release(work(bucket.store(), NAME, ADA), lock_info("one")) == Released("one")
    assert held_id(bucket) == "one"


@pytest.mark.parametrize(
    ("mine", "next_one", "by"),
    [
        pytest.param(lock_info("ci"), lock_info("ci", who="next"), ADA, id="the same ID"),
        pytest.param(lock_info("ci"), lock_info("ci", who="next"), BOB, id="the same ID, another principal"),
        pytest.param(only_id("ci"), lock_info("two"), BOB, id="another ID, after an ID-only document"),
    ],
)
def test_a_removal_that_is_faster_than_the_read_leaves_the_next_lock_alone(
    bucket: Bucket, mine: bytes, next_one: bytes, by: Caller
) -> None:
    memory = Memory()
    acquire(work(bucket.store(), NAME, ADA, memory=memory), mine)

    def acquire_next() -> None:
        wait_until(lambda: held.read(bucket.direct_store(), NAME) is None, "the lock is removed")
        acquire(work(bucket.direct_store(), NAME, by), next_one)

    bucket.proxy.before("GET", KEY, acquire_next)
    released = release(work(bucket.store(), NAME, ADA, memory=memory, own_locks=OwnLocks.NAMED), mine)
    assert released == Released(json.loads(mine)["ID"])
    lock = held.read(bucket.direct_store(), NAME)
    assert lock is not None
    assert lock.was_acquired_with(lock_info_of(next_one).at(f"{bucket.name}/{NAME.state_key}"), by)


def test_a_doubled_release_leaves_a_lock_alone_that_was_taken_since_with_the_same_document(
    bucket: Bucket,
) -> None:
    acquire(work(bucket.store(), NAME, ADA), lock_info("one"))
    first = held_version(bucket)
    assert first is not None
    bucket.proxy.fail("DELETE", KEY, Fault.ANSWER_LOST)  # it took effect, and is sent again
    bucket.proxy.before(
        "DELETE", KEY, lambda: acquire(work(bucket.direct_store(), NAME, ADA), lock_info("one"))
    )
    assert release(work(bucket.store(), NAME, ADA), lock_info("one")) == Released("one")
    again = held_version(bucket)
    assert again not in (None, first)
    for _ in range(2):  # and once more, by anything that kept it
        bucket.s3.delete_object(Bucket=bucket.name, Key=KEY, VersionId=first)
    assert held_version(bucket) == again


@pytest.mark.parametrize("body", [lock_info("one"), only_id("one")], ids=["release", "force-unlock"])
def test_without_versioning_a_lock_is_given_back_by_its_etag(unversioned: Bucket, body: bytes) -> None:
    caller = ADA if body == lock_info("one") else OPERATOR
    acquire(work(unversioned.store(), NAME, ADA), lock_info("one"))
    release(work(unversioned.store(), NAME, caller), body)
    assert stored_lock(unversioned) is None


def test_without_versioning_a_lock_that_was_taken_since_stays(unversioned: Bucket) -> None:
    acquire(work(unversioned.store(), NAME, ADA), lock_info("one"))

    unversioned.proxy.before("DELETE", KEY, lambda: broken_and_taken(unversioned))
    assert release(work(unversioned.store(), NAME, ADA), lock_info("one")) == Released("one")
    assert held_id(unversioned) == "two"
