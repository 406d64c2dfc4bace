"""Restore, freeze and break on real S3 servers, with lost answers and others in between."""

import hashlib
import json
import time
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import names
from holdfast.access import Caller
from holdfast.cloud import locking
from holdfast.cloud.ids import WorkspaceId
from holdfast.errors import (
    BaseChanged,
    EncryptedState,
    Frozen,
    HoldfastError,
    InvalidLockInfo,
    InvalidRequest,
    LineageChanged,
    Locked,
    LockNotMatched,
    NoSuchVersion,
    NotFrozen,
    OutcomeUnknown,
    RacedWriter,
    RestoreOutcomeUnknown,
    SerialNotNewer,
    StateDeleted,
    TooLarge,
    UnreadableVersion,
)
from holdfast.names import StateName
from holdfast.s3 import object_metadata
from holdfast.s3.retention import Retention
from holdfast.state import acquiring, releasing, removing
from holdfast.state.delete import delete
from holdfast.state.document import Revision
from holdfast.state.freezing.states import freeze, unfreeze
from holdfast.state.held import Freeze
from holdfast.state.lock_info import LockInfo
from holdfast.state.removing import ForceUnlocked
from holdfast.state.restore import Restored, Wanted, restore
from holdfast.state.undelete import undelete
from holdfast.state.write import write
from holdfast.work import Work
from tests.contract.conftest import ANOTHER, COMMAND, KEY, LOCK_KEY, NAME, ONE, PROBE, TWO, Bucket, Team
from tests.support.documents import (
    ADA,
    BOB,
    LINEAGE,
    OPERATOR,
    encrypted_state,
    lock_info,
    only_id,
    state,
)
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.two_servers

LATER_COMMAND = "fedcba9876543210" * 2
REASON = "back to Tuesday"


def works(
    team: Team, caller: Caller = OPERATOR, name: StateName = NAME, *, seconds: float = 20.0, **decided: Any
) -> Work:
    """Return the work of one request, through the proxy."""
    return work(team.bucket.store(seconds=seconds), name, caller, **decided)


def metadata(team: Team, key: str = KEY) -> dict[str, str]:
    return dict(team.bucket.s3.head_object(Bucket=team.bucket.name, Key=key)["Metadata"])


# --- restore -------------------------------------------------------------------------------------------


def restored(
    team: Team,
    version_id: str,
    *,
    command: str = COMMAND,
    base: str | None = None,
    reason: str = REASON,
    caller: Caller = OPERATOR,
    seconds: float = 20.0,
    freeze_id: str | None = None,
) -> Restored:
    wanted = Wanted(version_id, reason, command, base, freeze_id=freeze_id)
    return restore(works(team, caller, seconds=seconds), wanted)


def test_a_restore_writes_the_old_content_with_the_next_serial_and_notes_why(team: Team) -> None:
    first, second, third = team.written(state(1, content="ümläut"), state(2), state(3))
    done = restored(team, first, reason="zurück, weil …")
    assert done == Restored(
        done.version_id, Revision(4, LINEAGE), first, Revision(1, LINEAGE), Revision(3, LINEAGE), changed=True
    )
    assert team.current() == state(4, content="ümläut")
    assert team.version_ids() == [first, second, third, done.version_id]
    assert team.bucket.history(LOCK_KEY) == []
    stored = metadata(team)
    assert stored.pop("sha256")
    assert stored.pop("lock-id")
    assert stored == {
        "serial": "4",
        "lineage": LINEAGE,
        "terraform-version": "1.15.5",
        "who": "token:operator",
        "operation": "restore",
        "written-by": "token:operator",
        "over-serial": "3",
        "over-lineage": LINEAGE,
        "restored-from": first,
        "reason": object_metadata.encode("zurück, weil …"),
    }
    team.lock()
    with pytest.raises(SerialNotNewer, match="4"):
        team.write(state(4, content="made from the version before"))
    assert team.write(state(5)).new_version


_NESTED = '"outputs":{"serial":{"value":{"serial":7},"type":"string"}},"resources":[{"serial" : 7}]'


@pytest.mark.parametrize(
    "document",
    [
        '{"version":4,"serial":@,"lineage":"x"}',
        '\n{ "lineage"\t:"x","version": 4 ,\r\n "serial" :\n@\t,' + _NESTED + " }\n\n",
        "{" + _NESTED + ',"a":"\\"serial\\":7 \u2028 ü","version":4,"serial":@}',
        '{"check":"' + "ü" * 600_000 + '","version":4,"serial":@,' + _NESTED + "}",
    ],
    ids=["compact", "odd spaces", "nested before", "more than 1 MB"],
)
def test_of_the_bytes_only_the_digits_of_the_top_level_serial_change(team: Team, document: str) -> None:
    team.put_beside(document.replace("@", "7").encode())
    [source] = team.version_ids()
    team.put_beside(state(99, lineage=""))
    restored(team, source)
    assert team.current() == document.replace("@", "100").encode()


def test_a_restore_that_is_repeated_makes_no_second_version_and_a_late_one_undoes_nothing(team: Team) -> None:
    first, second = team.written(state(1, content="old"), state(2))
    once = restored(team, first, base=second)
    assert restored(team, first, base=second) == once
    assert (once.superseded, once.changed) == (Revision(2, LINEAGE), True)
    # Another command for the same version, or for the current version, changes nothing.
    for version in (first, once.version_id):
        again = restored(team, version, command=LATER_COMMAND)
        assert (again.version_id, again.revision.serial, again.changed) == (once.version_id, 3, False)
    assert team.versions() == [state(1, content="old"), state(2), state(3, content="old")]
    [later] = team.written(state(4))
    with pytest.raises(BaseChanged, match=later):
        restored(team, first, base=second)
    assert team.current() == state(4)
    assert team.bucket.history(LOCK_KEY) == []


def test_an_id_that_no_version_of_the_state_has_is_refused_before_the_lock(team: Team) -> None:
    bucket = team.bucket
    other = write(work(bucket.direct_store(), names.parse("network/other"), ADA), state(1), None)
    gone, _ = team.written(state(1), state(2))
    bucket.s3.delete_object(Bucket=bucket.name, Key=KEY, VersionId=gone)
    marker = bucket.s3.delete_object(Bucket=bucket.name, Key=KEY)["VersionId"]
    team.put_beside(state(3))
    for version_id in (other.version_id, gone, marker, "null", "../a", "a b"):
        store = bucket.store()
        with pytest.raises(NoSuchVersion, match="holdfast state history"):
            restore(work(store, NAME, OPERATOR), Wanted(version_id, REASON, COMMAND))
        assert set(store.budget.requests) == {"GetObject"}
    assert team.versions() == [state(2), state(3)]


@pytest.mark.parametrize(
    ("old", "current", "refusal", "says"),
    [
        (encrypted_state(1, "AAAA"), state(2), EncryptedState, "docs/operate/history.md has the steps"),
        (b"", state(2), UnreadableVersion, "as a state document"),
        (b"[]", state(2), UnreadableVersion, "as a state document"),
        (state(1, content="x" * 1000), state(2), TooLarge, r"has [\d,]+ bytes.* at most 1,000"),
        (
            *(state(1, lineage="before"), state(2), LineageChanged),
            r"'before'.*'holdfast state get \S+ --version \S+ --output .*'terraform state push -force ",
        ),
        (state(1), state(2**64 - 1), SerialNotNewer, "highest"),
        (state(1), None, StateDeleted, "holdfast state undelete"),
    ],
    ids=["encrypted", "empty", "no state", "too large", "another lineage", "highest serial", "deleted"],
)
def test_a_version_that_cannot_follow_the_current_one_is_not_restored(
    team: Team, old: bytes, current: bytes | None, refusal: type[HoldfastError], says: str
) -> None:
    team.put_beside(old)
    if current is None:
        delete(team.works(OPERATOR))
    else:
        team.put_beside(current)
    before, store = team.versions(), team.bucket.store()
    wanted = Wanted(team.version_ids()[0], REASON, COMMAND)
    with pytest.raises(refusal, match=says):
        restore(work(store, NAME, OPERATOR, largest_state=1000), wanted)
    if refusal in (EncryptedState, UnreadableVersion, TooLarge):  # by the version alone
        assert store.budget.requests == ["GetObject"]
    assert team.versions() == before
    assert team.bucket.history(LOCK_KEY) == []


@pytest.mark.parametrize("body", [b"", b"not a state"])
def test_a_version_is_restored_over_a_current_object_that_is_not_a_state(team: Team, body: bytes) -> None:
    [first] = team.written(state(5))
    team.put_beside(body)
    done = restored(team, first)
    assert (done.revision.serial, done.superseded) == (6, None)
    assert team.current() == state(6)


def test_what_another_program_writes_meanwhile_is_compared_and_followed(team: Team) -> None:
    first, second = team.written(state(1), state(2))
    team.bucket.proxy.before("PUT", KEY, lambda: team.put_beside(state(7)))
    assert restored(team, first).revision.serial == 8
    assert team.versions() == [state(1), state(2), state(7), state(8)]

    team.bucket.proxy.before("PUT", KEY, lambda: team.put_beside(state(9)))
    with pytest.raises(BaseChanged):
        restored(team, second, base=team.version_ids()[-1], command=LATER_COMMAND)
    assert team.current() == state(9)
    assert team.bucket.history(LOCK_KEY) == []


def test_a_restore_that_is_overtaken_again_and_again_gives_up(team: Team) -> None:
    first, _ = team.written(state(1), state(2))
    for serial in (3, 4, 5, 6):
        team.bucket.proxy.before("PUT", KEY, partial(team.put_beside, state(serial)))
    with pytest.raises(RacedWriter):
        restored(team, first)
    assert team.current() == state(6)
    assert team.bucket.history(LOCK_KEY) == []


def lands_late(team: Team, body: bytes, over: int, **more: str) -> None:
    """Under a restore's lock a write lands whose own lock was broken before. Its writer is refused."""
    team.next_second()
    stored = {
        "sha256": hashlib.sha256(body).hexdigest(),
        "serial": str(json.loads(body)["serial"]),
        "lineage": LINEAGE,
        "lock-id": "theirs",
        "over-serial": str(over),
        "over-lineage": LINEAGE,
        **more,
    }
    team.bucket.s3.put_object(Bucket=team.bucket.name, Key=KEY, Body=body, Metadata=stored)


def test_a_late_write_that_was_never_acknowledged_is_written_over_by_whoever_names_no_other(
    team: Team,
) -> None:
    first, second = team.written(state(1, content="old"), state(5))
    late = partial(lands_late, team, state(9, content="late"), 5)
    team.bucket.proxy.before("PUT", KEY, late)
    # Below it may be an acknowledged version that the operator has not seen.
    with pytest.raises(BaseChanged):
        restored(team, first, base=second)
    team.bucket.proxy.before("PUT", KEY, late)
    done = restored(team, first)
    assert (done.revision.serial, done.changed) == (10, True)
    assert team.current() == state(10, content="old")
    # An unacknowledged version can be restored by its ID like any other version.
    refused = team.version_ids()[-2]
    assert restored(team, refused, command=LATER_COMMAND).revision.serial == 11
    assert team.current() == state(11, content="late")


def test_a_late_restore_of_the_same_version_by_somebody_who_was_refused_does_not_count(team: Team) -> None:
    first, _ = team.written(state(1, content="old"), state(2))
    theirs = state(3, content="old")
    late = partial(lands_late, team, theirs, 2, **{"restored-from": first})
    team.bucket.proxy.before("PUT", KEY, late)
    done = restored(team, first)
    assert (done.revision.serial, done.changed) == (4, True)
    assert team.versions() == [state(1, content="old"), state(2), theirs, state(4, content="old")]


def test_a_restored_version_has_retention_and_its_lock_has_not(team: Team) -> None:
    first, _ = team.written(state(1), state(2))
    modes: list[object] = []

    def look() -> None:
        lock = team.bucket.s3.head_object(Bucket=team.bucket.name, Key=LOCK_KEY)
        modes.append(lock.get("ObjectLockMode"))

    team.bucket.proxy.before("PUT", KEY, look)
    restore(works(team, retention=Retention("GOVERNANCE", 30)), Wanted(first, REASON, COMMAND))
    head = team.bucket.s3.head_object(Bucket=team.bucket.name, Key=KEY)
    assert (head["ObjectLockMode"], modes) == ("GOVERNANCE", [None])


# --- freeze --------------------------------------------------------------------------------------------

NOW = datetime(2020, 1, 1, tzinfo=UTC)
ENDED = NOW + timedelta(hours=1)
"""S3's clock is past it."""
FAR = datetime(2999, 1, 1, tzinfo=UTC)


def frozen(
    team: Team,
    *,
    freeze_id: str = COMMAND,
    reason: str = "an incident",
    until: datetime | None = None,
    caller: Caller = OPERATOR,
) -> Freeze:
    wanted = Freeze(freeze_id, reason, until)
    freeze(works(team, caller), wanted, now=NOW)
    return wanted


def test_a_freeze_is_a_lock_that_shows_its_reason_and_says_so_in_its_metadata(team: Team) -> None:
    done = frozen(team, until=FAR.astimezone(timezone(timedelta(hours=2))))
    assert done == Freeze(COMMAND, "an incident", FAR)
    lock = team.held_lock()
    assert (lock.freeze, lock.is_ended_freeze, lock.principal) == (done, False, "token:operator")
    assert lock.info.for_client() == {
        "ID": f"frozen: an incident until 2999-01-01T00:00:00Z [{COMMAND}]",
        "Operation": "freeze",
        "Info": "frozen until 2999-01-01T00:00:00Z: an incident",
        "Who": "token:operator",
        "Version": "",
        "Created": "0001-01-01T00:00:00Z",
        "Path": f"{team.bucket.name}/{KEY}",
    }
    assert metadata(team, LOCK_KEY) == {
        "locked-by": "token:operator",
        "freeze": COMMAND,
        "freeze-until": "2999-01-01T00:00:00Z",
    }


@pytest.mark.parametrize("until", [None, FAR])
def test_the_id_of_a_freeze_can_be_sent_back_however_long_its_reason_is(
    team: Team, until: datetime | None
) -> None:
    reason = "全部状态都被冻结了因为有事故" * 14
    frozen(team, reason=reason + "好" * (200 - len(reason)), until=until)
    lock = team.held_lock()
    assert len(object_metadata.encode(lock.info.id, limit=None)) <= object_metadata.VALUE_LIMIT
    assert lock.info.id.startswith("frozen: 全部")
    assert lock.info.id.endswith(f"[{COMMAND}]")
    assert lock.freeze == Freeze(COMMAND, reason + "好" * (200 - len(reason)), until)
    with pytest.raises(Frozen):
        team.write(state(1), lock.info.id, OPERATOR)


@pytest.mark.parametrize(
    "again",
    [{"freeze_id": LATER_COMMAND}, {"reason": "another"}, {"until": FAR}, {"caller": ANOTHER}],
    ids=["another command", "another reason", "another end", "somebody else"],
)
def test_a_freeze_is_never_changed_by_another(team: Team, again: dict[str, Any]) -> None:
    first = frozen(team)
    with pytest.raises(Frozen, match=r"frozen by the token operator: an incident\. A maintainer can lift"):
        frozen(team, **again)
    assert team.held_lock().freeze == first


@pytest.mark.parametrize(
    ("how", "refusal"),
    [
        ("no freeze", NotFrozen),
        ("another freeze", Frozen),
        ("somebody else's", Frozen),
        ("ended", Frozen),
        ("a lock", Locked),
        ("without current", InvalidRequest),
        ("no ID", InvalidRequest),
        ("another version is current", BaseChanged),
    ],
)
def test_a_restore_under_a_freeze_takes_the_named_own_freeze_and_no_other_lock(
    team: Team, how: str, refusal: type[HoldfastError]
) -> None:
    first, second = team.written(state(1), state(2))
    if how == "a lock":
        team.lock()
    elif how != "no freeze":
        frozen(
            team,
            freeze_id=LATER_COMMAND if how == "another freeze" else COMMAND,
            caller=ANOTHER if how == "somebody else's" else OPERATOR,
            until=ENDED if how == "ended" else None,
        )
    before = team.bucket.history(LOCK_KEY)
    base = {"without current": None, "another version is current": first}.get(how, second)
    with pytest.raises(refusal):
        restored(team, first, base=base, freeze_id="x" if how == "no ID" else COMMAND)
    assert team.version_ids() == [first, second]
    assert team.bucket.history(LOCK_KEY) == before


def test_a_restore_under_a_freeze_leaves_no_gap_and_undoes_no_other_under_the_same_freeze(team: Team) -> None:
    first, second = team.written(state(1), state(2))
    frozen(team)
    freeze_lock = team.held_lock()
    done = restored(team, first, base=second, freeze_id=COMMAND)
    # Not the whole lock, which has the time of the reading.
    now_held = team.held_lock().identity
    assert (done.changed, done.revision, now_held) == (True, Revision(3, LINEAGE), freeze_lock.identity)
    stored = metadata(team)
    assert (stored["operation"], stored["lock-id"]) == (
        "restore",
        object_metadata.encode(freeze_lock.info.id),
    )
    # The retry finds its version; another command with the same wish changes nothing.
    assert restored(team, first, base=second, freeze_id=COMMAND).version_id == done.version_id
    again = restored(team, first, base=done.version_id, command=LATER_COMMAND, freeze_id=COMMAND)
    assert (again.changed, again.version_id) == (False, done.version_id)
    other = restored(team, second, base=done.version_id, command=LATER_COMMAND, freeze_id=COMMAND)
    with pytest.raises(BaseChanged):
        restored(team, first, base=second, freeze_id=COMMAND)
    assert team.version_ids()[-1] == other.version_id


@pytest.mark.parametrize("lifted", [True, False], ids=["lifted", "lifted and frozen again"])
def test_a_restore_whose_freeze_ends_meanwhile_is_not_acknowledged(team: Team, lifted: bool) -> None:
    first, second = team.written(state(1), state(2))
    frozen(team)

    def change() -> None:
        unfreeze(team.works(OPERATOR), COMMAND)
        if not lifted:
            frozen(team)

    team.bucket.proxy.before("PUT", KEY, change)
    with pytest.raises(RestoreOutcomeUnknown, match="the freeze has ended, or an operator unfroze the state"):
        restored(team, first, base=second, freeze_id=COMMAND)


def test_a_probe_is_never_frozen(team: Team) -> None:
    with pytest.raises(InvalidRequest, match="cannot be frozen"):
        freeze(works(team, name=PROBE), Freeze(COMMAND, REASON, None), now=NOW)
    assert team.bucket.history("probes/") == []


def test_everybody_who_meets_a_freeze_is_told_why_and_until_when(team: Team) -> None:
    team.written(state(1), state(2))
    frozen(team, until=FAR)
    freeze_lock = team.held_lock()
    for refused in (
        lambda: team.lock(),
        lambda: team.lock(freeze_lock.info.to_json(), BOB),
        lambda: team.write(state(3)),
        # Every refusal contains the ID. Even with the same principal nobody can write under a freeze.
        lambda: team.write(state(3), freeze_lock.info.id, OPERATOR),
        lambda: team.write_unlocked(state(3)),
        lambda: delete(works(team)),
        lambda: restored(team, team.version_ids()[0]),
    ):
        with pytest.raises((Frozen, InvalidLockInfo)) as refusal:
            refused()
        if isinstance(refusal.value, Frozen):
            assert refusal.value.message == (
                "The state is frozen by the token operator: an incident. The freeze ends at "
                "2999-01-01T00:00:00Z. A maintainer can lift the freeze with 'holdfast state unfreeze'; a "
                "force-unlock cannot."
            )
            since = freeze_lock.version.last_modified.strftime("%Y-%m-%dT%H:%M:%SZ")
            assert refusal.value.body() == {
                **freeze_lock.info.for_client(),
                "Created": since,
                "Info": 'principal "token:operator", verified by Holdfast; '
                'info "frozen until 2999-01-01T00:00:00Z: an incident"',
            }
    assert team.versions() == [state(1), state(2)]
    still = team.held_lock()
    assert (still.identity, still.version) == (freeze_lock.identity, freeze_lock.version)


@pytest.mark.parametrize("until", [FAR, ENDED], ids=["not ended", "ended"])
def test_no_unlock_and_no_force_unlock_lifts_a_freeze(
    team: Team, monkeypatch: pytest.MonkeyPatch, until: datetime
) -> None:
    monkeypatch.setattr(removing, "FORCE_UNLOCK_MIN_AGE", timedelta(seconds=-1))
    frozen(team, until=until)
    lock = team.held_lock()
    lock_id, version = lock.info.id, lock.identity.version_id
    whole = lock.info.to_json()
    workspace = WorkspaceId.mint(NAME, version)
    attempts: dict[str, tuple[type[HoldfastError], Callable[[], object]]] = {
        "empty": (Frozen, lambda: releasing.release(works(team), b"")),
        "its ID": (Frozen, lambda: releasing.release(works(team), only_id(lock_id))),
        "its document": (Frozen, lambda: releasing.release(works(team), whole)),
        "its ID, another document": (Frozen, lambda: releasing.release(works(team), lock_info(lock_id))),
        "exactly": (LockNotMatched, lambda: releasing.release_exactly(works(team), lock.info)),
        "by version": (Frozen, lambda: removing.force_unlock_version(works(team), version)),
        "cloud": (Frozen, lambda: locking.force_unlock(works(team), workspace)),
        "cloud unlock": (LockNotMatched, lambda: locking.unlock(works(team), workspace)),
        "break": (Frozen, lambda: removing.break_exactly(works(team), lock_id, version)),
    }
    for how, (refusal, attempt) in attempts.items():
        with pytest.raises(refusal) as refused:
            attempt()
        assert not isinstance(refused.value, Frozen) or "an incident" in refused.value.message, how
        assert team.held_lock().identity == lock.identity, how


@pytest.mark.parametrize("how", ["http", "cloud", "restore", "delete", "undelete", "freeze"])
def test_an_ended_freeze_is_lifted_by_the_next_who_acquires_the_lock(team: Team, how: str) -> None:
    first, second = team.written(state(1, content="old"), state(2))
    if how == "undelete":
        delete(team.works(OPERATOR))
    frozen(team, until=ENDED)
    assert team.held_lock().is_ended_freeze
    store = team.bucket.store()
    match how:
        case "http":
            acquired = acquiring.acquire(work(store, NAME, ADA), ONE)
            assert (acquired.lifted, team.held_lock().info.id) == (COMMAND, "one")
            assert store.budget.requests == ["PutObject", "GetObject", "DeleteObject", "PutObject"]
        case "cloud":
            acquired = locking.lock(work(store, NAME, ADA), WorkspaceId.mint(NAME))
            assert (acquired.lifted, team.held_lock().identity) == (COMMAND, acquired)
        case "restore":
            assert restored(team, first, base=second).changed
        case "delete":
            delete(work(store, NAME, OPERATOR))
            assert team.current() is None
        case "undelete":
            undelete(work(store, NAME, OPERATOR), team.bucket.marker(KEY))
            assert team.current() == state(2)
        case _:
            again = frozen(team, freeze_id=LATER_COMMAND)
            assert team.held_lock().freeze == again
    # The bucket contains no part of the freeze any more.
    now = team.held()
    assert team.bucket.history(LOCK_KEY) == ([(LOCK_KEY, now.identity.version_id)] if now else [])


def test_a_freeze_ends_with_its_second_by_the_clock_of_s3(team: Team) -> None:
    frozen(team, until=FAR)
    until = team.held_lock().read_at + timedelta(seconds=2)
    unfreeze(team.works(OPERATOR), COMMAND)
    frozen(team, until=until)
    while (lock := team.held_lock()).read_at < until:
        assert not lock.is_ended_freeze
        time.sleep(0.1)
    assert lock.is_ended_freeze
    assert acquiring.acquire(works(team, ADA), ONE).lifted == COMMAND


@pytest.mark.parametrize("same_id", [False, True], ids=["a lock", "a freeze with the same ID"])
def test_a_lock_that_came_after_an_ended_freeze_stays(team: Team, same_id: bool) -> None:
    frozen(team, until=ENDED)

    def lifted_and_taken() -> None:
        unfreeze(team.works(OPERATOR), COMMAND)
        if same_id:
            freeze(team.works(OPERATOR), Freeze(COMMAND, "an incident", FAR), now=NOW)
        else:
            team.lock(TWO, BOB)

    team.bucket.proxy.before("DELETE", LOCK_KEY, lifted_and_taken)
    with pytest.raises(Frozen if same_id else Locked) as refused:
        acquiring.acquire(works(team, ADA), ONE)
    assert refused.value.holder["ID"] == team.held_lock().info.id
    assert team.held_lock().freeze == (Freeze(COMMAND, "an incident", FAR) if same_id else None)


def test_an_acquire_whose_removal_of_an_ended_freeze_was_lost_is_acquired(team: Team) -> None:
    frozen(team, until=ENDED)
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.ANSWER_LOST)
    assert acquiring.acquire(works(team, ADA), ONE).lifted == COMMAND
    assert team.held_lock().info.id == "one"


def test_a_client_cannot_send_a_freeze_and_a_lock_that_only_looks_like_one_is_none(team: Team) -> None:
    with pytest.raises(InvalidLockInfo, match="holdfast state freeze"):
        team.lock(lock_info("x", operation="freeze"))
    frozen(team)
    looks_so = team.held_lock().info.to_json()
    unfreeze(works(team), COMMAND)
    team.bucket.s3.put_object(Bucket=team.bucket.name, Key=LOCK_KEY, Body=looks_so)
    assert team.held_lock().freeze is None
    with pytest.raises(NotFrozen):
        unfreeze(works(team), COMMAND)
    team.break_lock(team.held_lock().info.id)
    assert team.held() is None


def test_a_lock_that_is_no_freeze_is_not_taken_for_the_freeze_of_its_document(team: Team) -> None:
    frozen(team)
    document = team.held_lock().info.to_json()
    unfreeze(works(team), COMMAND)
    team.bucket.s3.put_object(
        Bucket=team.bucket.name, Key=LOCK_KEY, Body=document, Metadata={"locked-by": OPERATOR.principal}
    )
    with pytest.raises(Locked):
        frozen(team)


def test_a_freeze_whose_end_cannot_be_read_does_not_end_and_can_be_lifted(team: Team) -> None:
    team.bucket.s3.put_object(
        Bucket=team.bucket.name,
        Key=LOCK_KEY,
        Body=b"not lock info",
        Metadata={"freeze": COMMAND, "freeze-until": "yesterday"},
    )
    with pytest.raises(Frozen, match="another program"):
        team.lock()
    assert unfreeze(works(team), COMMAND) is not None
    assert team.held() is None


# --- unfreeze ------------------------------------------------------------------------------------------


def test_an_unfreeze_removes_the_freeze_that_it_names_and_leaves_nothing(team: Team) -> None:
    frozen(team)
    lock = team.held_lock()
    store = team.bucket.store()
    removed = unfreeze(work(store, NAME, ANOTHER), COMMAND)
    assert removed is not None
    assert removed.identity == lock.identity
    assert store.budget.requests == ["GetObject", "DeleteObject"]
    assert team.bucket.history(LOCK_KEY) == []
    assert unfreeze(works(team), COMMAND) is None


def test_an_unfreeze_of_another_freeze_or_of_a_lock_removes_nothing(team: Team) -> None:
    frozen(team)
    with pytest.raises(LockNotMatched, match="an incident"):
        unfreeze(works(team), LATER_COMMAND)
    assert team.held_lock().freeze
    unfreeze(works(team), COMMAND)
    team.lock(TWO, BOB)
    with pytest.raises(NotFrozen, match="bob@desk"):
        unfreeze(works(team), COMMAND)
    assert team.held_lock().info.id == "two"


# --- break ---------------------------------------------------------------------------------------------


def broken(team: Team, lock_id: str, version: str) -> ForceUnlocked:
    return removing.break_exactly(works(team), lock_id, version)


def test_a_lock_with_the_same_id_is_another_one_if_its_version_is(team: Team) -> None:
    team.lock()
    version = team.held_lock().identity.version_id
    with pytest.raises(LockNotMatched, match="lock ID one"):
        broken(team, "two", version)
    for odd in ("", "null", f"{version}x"):
        with pytest.raises(LockNotMatched):
            broken(team, "one", odd)
    team.unlock()
    team.lock()  # a late repeat of the first request
    with pytest.raises(LockNotMatched, match="lock ID one"):
        broken(team, "one", version)
    assert team.held_lock().identity.version_id not in ("", version)


def test_a_break_that_arrives_late_leaves_the_next_lock_alone(team: Team) -> None:
    team.lock()
    version = team.held_lock().identity.version_id

    def released_and_taken() -> None:
        team.unlock()
        team.lock(TWO, BOB)

    team.bucket.proxy.before("DELETE", LOCK_KEY, released_and_taken)
    removed = broken(team, "one", version)
    assert (removed.info and removed.info.id, removed.marker_created) == ("one", False)
    assert team.held_lock().info.id == "two"


def test_a_break_that_is_not_decided_says_whose_lock_it_was(team: Team) -> None:
    team.lock()
    version = team.held_lock().identity.version_id
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.SLOW_DOWN, times=1000)
    with pytest.raises(OutcomeUnknown) as undecided:
        removing.break_exactly(works(team, seconds=0.5), "one", version)
    assert team.bucket.proxy.end_rules() < 1000
    assert undecided.value.logged == {"lock_id": "one", "held_by": "token:ada"}
    assert team.held() is not None


def test_without_versioning_no_lock_is_told_from_the_next_so_nothing_is_broken(unversioned: Bucket) -> None:
    team = Team(unversioned)
    team.lock()
    with pytest.raises(LockNotMatched, match="versioning"):
        broken(team, "one", team.held_lock().identity.version_id)
    assert team.held_lock().info.id == "one"


def test_a_lock_that_is_not_lock_info_is_broken_by_the_id_that_it_is_shown_with(team: Team) -> None:
    team.bucket.s3.put_object(Bucket=team.bucket.name, Key=LOCK_KEY, Body=b"\xff not json")
    lock = team.held_lock()
    assert broken(team, lock.info.id, lock.identity.version_id).info == LockInfo(lock.info.document)
    assert team.held() is None
