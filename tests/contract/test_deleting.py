"""Delete and undelete on real S3 servers: the objects that they change, and those that they leave alone.

The tests that they share with other verbs are in `test_verbs_and_faults.py`.
"""

from collections.abc import Callable

import pytest
from botocore.exceptions import TokenRetrievalError

from holdfast import names
from holdfast.access import Caller
from holdfast.errors import (
    BaseChanged,
    LockLeft,
    NoVersions,
    OutcomeUnknown,
    RacedWriter,
    SerialNotNewer,
    StorageRefused,
    UnreadableVersion,
)
from holdfast.s3.store import Store
from holdfast.state import held
from holdfast.state.delete import Removed, delete
from holdfast.state.document import Revision
from holdfast.state.undelete import Undeleted, undelete
from holdfast.state.write import write
from tests.contract.conftest import ANOTHER, KEY, LOCK_KEY, NAME, ONE, Team
from tests.support.documents import ADA, LINEAGE, OPERATOR, encrypted_state, lock_info, state
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

pytestmark = pytest.mark.two_servers

# --- delete --------------------------------------------------------------------------------------------


def delete_as(team: Team, caller: Caller = OPERATOR, *, seconds: float = 20.0) -> Removed:
    return delete(work(team.bucket.store(seconds=seconds), NAME, caller))


def test_a_delete_leaves_the_versions_one_marker_and_no_lock(team: Team) -> None:
    team.write_unlocked(state(1))
    assert delete_as(team).version_id is not None
    assert team.current() is None
    assert (team.versions(), team.bucket.delete_markers(KEY)) == ([state(1)], 1)
    assert team.bucket.history(LOCK_KEY) == []
    team.lock()
    team.write(state(1, lineage="new"))  # a first write may start anew
    assert team.current() == state(1, lineage="new")


@pytest.mark.parametrize(("verb", "key"), [("PUT", LOCK_KEY), ("DELETE", KEY)])
def test_a_delete_does_not_remove_what_was_written_meanwhile(team: Team, verb: str, key: str) -> None:
    team.write_unlocked(state(1))
    team.bucket.proxy.before(verb, key, lambda: team.put_beside(state(2)))
    with pytest.raises(RacedWriter):
        delete_as(team)
    assert team.current() == state(2)
    assert team.held() is None


def a_delete_that_leaves_its_lock(team: Team, caller: Caller = OPERATOR) -> None:
    """It takes effect, and S3 stalls then."""
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown):
        delete_as(team, caller, seconds=1)
    assert team.bucket.proxy.end_rules() < 1000
    assert team.current() is None
    assert team.held() is not None


def somebody_elses_delete(team: Team) -> None:
    team.write_unlocked(state(1))
    a_delete_that_leaves_its_lock(team, ANOTHER)


def a_copy_of_the_callers_delete(team: Team) -> None:
    team.write_unlocked(state(1))
    a_delete_that_leaves_its_lock(team)
    document = team.held_lock().info.to_json()
    assert delete_as(team) == Removed(None)
    assert team.held() is None
    team.lock(document, ANOTHER)


@pytest.mark.parametrize(
    "theirs",
    [
        somebody_elses_delete,
        a_copy_of_the_callers_delete,
        lambda team: team.lock(ONE, OPERATOR),
        lambda team: team.lock(lock_info("one", operation="delete"), OPERATOR),
    ],
    ids=[
        "somebody else's delete",
        "somebody else's copy of the caller's delete",
        "the caller's, for something else",
        "a lock info that only says delete",
    ],
)
def test_a_delete_of_nothing_leaves_every_other_lock(team: Team, theirs: Callable[[Team], object]) -> None:
    theirs(team)
    lock = team.held()
    assert delete_as(team) == Removed(None)
    assert team.held_lock().identity == (lock and lock.identity)


def test_a_delete_of_nothing_that_names_a_version_leaves_the_lock_of_another_ones_delete(team: Team) -> None:
    for serial in (1, 2):
        team.write_unlocked(state(serial))
    first, latest = team.version_ids()
    a_delete_that_leaves_its_lock(team)
    for seen, is_held in ((first, True), (latest, False)):
        assert delete(work(team.bucket.store(), NAME, OPERATOR), seen=seen) == Removed(None)
        assert (team.held() is not None) is is_held


def test_a_delete_of_nothing_leaves_the_lock_of_a_later_delete_that_is_still_to_come(team: Team) -> None:
    def a_new_state_and_the_lock_of_its_delete() -> None:
        team.write_unlocked(state(1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Store, "delete", lambda *_: pytest.fail("is not as far as this"))
            patch.setattr(held, "remove_acquired", lambda *_: None)
            with pytest.raises(pytest.fail.Exception):
                delete(team.works(OPERATOR))

    team.bucket.proxy.before("GET", LOCK_KEY, a_new_state_and_the_lock_of_its_delete)
    assert delete_as(team) == Removed(None)
    assert team.current() == state(1)
    assert team.held() is not None


def test_a_delete_has_the_same_lock_id_in_every_try_and_another_for_each_version_and_caller(
    team: Team,
) -> None:
    def seen_by_others(caller: Caller) -> str:
        # S3 refuses the removal of its lock, so that others can see the lock.
        team.bucket.proxy.fail("DELETE", KEY, Fault.DENIED)
        team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
        with pytest.raises(StorageRefused):
            delete_as(team, caller)
        lock_id = team.held_lock().info.id
        team.broken()
        return lock_id

    team.write_unlocked(state(1))
    first = seen_by_others(OPERATOR)
    assert seen_by_others(OPERATOR) == first
    assert seen_by_others(ANOTHER) != first
    team.write_unlocked(state(2))
    assert seen_by_others(OPERATOR) != first


# --- undelete ------------------------------------------------------------------------------------------


def undelete_as(team: Team, caller: Caller = OPERATOR, *, marker: str | None = None) -> Undeleted:
    return undelete(work(team.bucket.store(), NAME, caller), marker or team.bucket.marker(KEY))


def test_an_undelete_brings_the_newest_version_back_as_a_new_one_and_notes_who_did(team: Team) -> None:
    team.deleted(state(1), state(2, content="ümläut"))
    [first, newest] = team.version_ids()
    undeleted = undelete_as(team)
    assert team.current() == state(2, content="ümläut")
    assert team.version_ids() == [first, newest, undeleted.version_id]
    assert (undeleted.revision, undeleted.from_version) == (Revision(2, LINEAGE), newest)
    assert team.bucket.history(LOCK_KEY) == []
    noted = team.bucket.s3.head_object(Bucket=team.bucket.name, Key=KEY)["Metadata"]
    assert noted.pop("sha256")
    assert noted.pop("lock-id")
    assert noted == {
        "serial": "2",
        "lineage": LINEAGE,
        "terraform-version": "1.15.5",
        "who": "token:operator",
        "operation": "undelete",
        "written-by": "token:operator",
    }
    team.lock()
    with pytest.raises(SerialNotNewer):
        team.write(state(2, content="other"))
    assert team.write(state(3)).new_version


def test_an_undelete_that_is_repeated_after_it_worked_says_the_same_and_releases_its_lock(
    team: Team,
) -> None:
    team.deleted()
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
    with pytest.raises(LockLeft, match=r"is back, as version .*'holdfast lock break network/prod'") as left:
        undelete_as(team)
    once = undelete_as(team)
    assert once.version_id in left.value.message
    assert team.bucket.history(LOCK_KEY) == []
    assert undelete_as(team) == once
    assert (once.version_id, once.from_version) == (team.version_ids()[-1], team.version_ids()[-2])
    assert team.versions() == [state(1), state(2), state(2)]
    # A version that somebody else undeleted, or wrote since, is not this undelete's own.
    with pytest.raises(BaseChanged):
        undelete_as(team, ANOTHER)
    team.written(state(3))
    with pytest.raises(BaseChanged):
        undelete_as(team)
    assert team.bucket.history(LOCK_KEY) == []


def test_a_state_that_was_deleted_twice_comes_back_with_its_last_version(team: Team) -> None:
    team.deleted(state(7))
    team.deleted(encrypted_state(4, "AAAA"))
    longer = names.parse("network/prod.tfstate.old")  # a name that begins with its own
    write(work(team.bucket.direct_store(), longer, ADA), state(9), None)
    assert undelete_as(team).revision.serial == 4
    assert team.current() == encrypted_state(4, "AAAA")


def test_a_state_that_is_not_deleted_stays_and_nothing_is_written(team: Team) -> None:
    for body in (state(5), b""):
        team.put_beside(body)
        store = team.bucket.store()
        with pytest.raises(BaseChanged, match="holdfast state restore"):
            undelete(work(store, NAME, OPERATOR), team.bucket.marker(KEY))
        assert set(store.budget.requests) == {"ListObjectVersions"}
    assert team.versions() == [state(5), b""]
    assert team.bucket.history(LOCK_KEY) == []


@pytest.mark.parametrize("body", [b"", b"not a state", b"[]"])
def test_a_version_that_is_not_a_state_stays_deleted_and_is_named_with_a_lock_that_is_left(
    team: Team, body: bytes
) -> None:
    team.put_beside(state(1))
    team.put_beside(body)
    team.bucket.s3.delete_object(Bucket=team.bucket.name, Key=KEY)
    with pytest.raises(UnreadableVersion, match=team.version_ids()[-1]):
        undelete_as(team)
    assert team.bucket.history(LOCK_KEY) == []
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
    with pytest.raises(UnreadableVersion) as failed:
        undelete_as(team)
    left = f"lock {team.held_lock().info.id} of this undelete may still be held"
    assert left in " ".join(failed.value.__notes__)
    assert team.current() is None
    assert team.versions() == [state(1), body]


@pytest.mark.parametrize("theirs", [state(1, lineage=""), state(1), state(9), b"", b"not a state"])
def test_an_undelete_never_writes_over_a_state_that_was_made_just_before_it_lands(
    team: Team, theirs: bytes
) -> None:
    team.deleted()
    team.bucket.proxy.before("PUT", KEY, lambda: team.put_beside(theirs))
    with pytest.raises(BaseChanged) as refused:
        undelete_as(team)
    # Its own lock is released: a force-unlock would now remove the next holder's lock.
    assert "force-unlock" not in refused.value.message
    assert team.versions() == [state(1), state(2), theirs]
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_finds_a_state_that_was_made_before_it_had_the_lock(team: Team) -> None:
    team.deleted()
    team.bucket.proxy.before("PUT", LOCK_KEY, lambda: team.write_beside(state(3)))
    with pytest.raises(BaseChanged):
        undelete_as(team)
    assert team.versions() == [state(1), state(2), state(3)]
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_leaves_what_was_deleted_again_before_it_had_the_lock(team: Team) -> None:
    team.deleted()
    team.bucket.proxy.before("PUT", LOCK_KEY, lambda: team.deleted(state(8, lineage="new")))
    with pytest.raises(BaseChanged, match="was deleted again"):
        undelete_as(team)
    assert team.current() is None
    assert team.bucket.history(LOCK_KEY) == []
    assert undelete_as(team).revision == Revision(8, "new")


def test_a_state_that_is_made_and_deleted_while_an_undelete_lands_is_left_deleted(team: Team) -> None:
    team.deleted()

    def delete_it() -> None:
        team.bucket.s3.delete_object(Bucket=team.bucket.name, Key=KEY)

    def made_and_deleted() -> None:
        team.put_beside(state(9))
        team.bucket.proxy.before("GET", KEY, delete_it)

    team.bucket.proxy.before("PUT", KEY, made_and_deleted)
    with pytest.raises(RacedWriter):
        undelete_as(team)
    assert team.current() is None
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_of_a_version_that_is_removed_meanwhile_brings_nothing_back(team: Team) -> None:
    team.deleted(state(1))
    [only] = team.version_ids()

    def remove() -> None:
        team.bucket.s3.delete_object(Bucket=team.bucket.name, Key=KEY, VersionId=only)

    team.bucket.proxy.before("GET", KEY, remove)
    with pytest.raises(NoVersions, match="removed just now"):
        undelete_as(team)
    assert team.current() is None
    assert team.bucket.history(LOCK_KEY) == []


def test_an_undelete_whose_release_fails_for_any_other_reason_says_so(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    def session_has_ended(*_: object) -> None:
        raise TokenRetrievalError(provider="sso", error_msg="expired")

    team.deleted()
    monkeypatch.setattr(held, "remove_acquired", session_has_ended)
    with pytest.raises(LockLeft):
        undelete_as(team)
