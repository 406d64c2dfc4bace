"""The fence on real S3 servers: a lock of its own that S3 does not release, and one that is another."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import HoldfastError, LockLeft, LockLost, OutcomeUnknown, StorageRefused
from holdfast.state import locks
from holdfast.state.delete import delete
from holdfast.state.restore import Wanted, restore
from holdfast.state.undelete import undelete
from tests.contract.conftest import KEY, LOCK_KEY, NAME, ONE, Team
from tests.support.documents import ADA, OPERATOR, state
from tests.support.s3_fault_proxy import Fault

Run = Callable[[float], Any]


@pytest.fixture(params=["delete", "restore", "undelete"])
def verb(request: pytest.FixtureRequest, team: Team) -> tuple[str, Run]:
    """A verb with a lock of its own, and what runs it: the same request each time, with so many seconds."""
    team.lock()
    first, _ = (team.write(state(serial)).version_id for serial in (1, 2))
    team.unlock()
    if request.param == "undelete":
        delete(team.bucket.direct_store(), NAME, OPERATOR)
    marker = team.bucket.marker(KEY) if request.param == "undelete" else ""
    wanted = Wanted(first, "back to Tuesday", "0123456789abcdef" * 2)
    runs: dict[str, Run] = {
        "delete": lambda seconds: delete(team.bucket.store(seconds=seconds), NAME, OPERATOR),
        "restore": lambda seconds: restore(
            team.bucket.store(seconds=seconds), NAME, wanted, OPERATOR, limit=10_000, retention=None
        ),
        "undelete": lambda seconds: undelete(
            team.bucket.store(seconds=seconds), NAME, marker, OPERATOR, None
        ),
    }
    return request.param, runs[request.param]


def told(error: HoldfastError) -> str:
    """What its response says: the management API adds the notes to the message."""
    return " ".join([error.message, *getattr(error, "__notes__", [])])


def held_id(team: Team) -> str:
    held = locks.read(team.bucket.direct_store(), NAME)
    assert held is not None
    return held.info.id


def test_a_verb_whose_lock_s3_does_not_release_is_no_success_and_its_retry_takes_the_lock_up(
    team: Team, verb: tuple[str, Run]
) -> None:
    name, run = verb
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(HoldfastError) as left:
        run(1)
    assert team.bucket.proxy.end_rules() < 1000
    assert isinstance(left.value, LockLeft if name == "undelete" else OutcomeUnknown)
    assert f"lock {held_id(team)} of this {name} may be left" in told(left.value)
    assert (team.current() is None) == (name == "delete")
    run(20)
    assert team.bucket.history(LOCK_KEY) == []


@pytest.mark.parametrize(("fault", "is_logged"), [(Fault.SLOW_DOWN, False), (Fault.DENIED, True)])
def test_a_verb_that_fails_and_cannot_release_its_lock_keeps_its_error_and_names_the_lock(
    team: Team, verb: tuple[str, Run], fault: Fault, is_logged: bool
) -> None:
    name, run = verb
    team.bucket.proxy.fail("DELETE" if name == "delete" else "PUT", KEY, Fault.DENIED)
    team.bucket.proxy.fail("DELETE", LOCK_KEY, fault, times=1000)
    with pytest.raises(StorageRefused) as failed:
        run(1)
    assert team.bucket.proxy.end_rules() < 1000
    assert f"lock {held_id(team)} of this {name} may be left" in told(failed.value)
    assert ("reason" in failed.value.logged) is is_logged
    run(20)
    assert team.bucket.history(LOCK_KEY) == []


def test_a_write_that_goes_round_again_demands_the_lock_of_its_first_round(team: Team) -> None:
    def broken_and_acquired_again_and_written_beside() -> None:
        team.break_lock("one")
        team.lock(ONE, ADA)  # as an acquire does that arrives late
        team.put_beside(state(1))

    team.lock(ONE, ADA)
    team.bucket.proxy.before("PUT", KEY, broken_and_acquired_again_and_written_beside)
    with pytest.raises(LockLost):
        team.write_through_faults(state(9))
    assert team.current() == state(1)
