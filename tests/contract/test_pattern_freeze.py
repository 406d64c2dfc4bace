"""A freeze of a pattern, and what begins a state below it, on real S3 servers."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from holdfast.access import Caller, Grant, Role
from holdfast.cloud import locking, uploads, versions, workspaces
from holdfast.cloud.ids import WorkspaceId
from holdfast.errors import Frozen, HoldfastError, InvalidRequest, NotAllowed, RacedWriter, UnreadableRecord
from holdfast.names import FROZEN_PATTERNS, StateName
from holdfast.state import acquiring, catalog, walk
from holdfast.state import cursor as cursors
from holdfast.state.document import Revision
from holdfast.state.freezing import patterns, record
from holdfast.state.freezing.patterns import freeze_pattern, frozen_patterns, unfreeze_pattern
from holdfast.state.freezing.record import PatternFreeze
from holdfast.state.held import Freeze
from holdfast.state.read import read, read_outputs, read_version
from holdfast.state.undelete import undelete
from holdfast.state.write import Written, write
from holdfast.work import Work
from tests.contract.conftest import COMMAND, KEY, NAME, ONE, PROBE, Bucket, Team
from tests.support.documents import ADA, BOB, LINEAGE, OPERATOR, state
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

NOW = datetime(2020, 1, 1, tzinfo=UTC)
ENDED = NOW + timedelta(hours=1)
"""S3's clock is past it."""
LATER_COMMAND = "fedcba9876543210" * 2


def frozen(
    bucket: Bucket,
    pattern: str = "network/*",
    *,
    freeze_id: str = COMMAND,
    until: datetime | None = None,
    caller: Caller = OPERATOR,
) -> tuple[PatternFreeze, list[str]]:
    freeze = Freeze(freeze_id, "an incident", until)
    done, names, rest = freeze_pattern(bucket.store(), caller, pattern, freeze, now=NOW)
    assert rest is None
    return done, [name.value for name in names]


def listed(bucket: Bucket, cursor: str | None) -> tuple[list[str], str | None]:
    """Freeze a pattern, and return the names of one response and the cursor."""
    freeze = Freeze(COMMAND, "an incident", None)
    _, names, rest = freeze_pattern(bucket.store(), OPERATOR, "network/*", freeze, now=NOW, cursor=cursor)
    return [name.value for name in names], rest


def next_second() -> None:
    """Wait until S3's clock, in whole seconds, has moved on."""
    time.sleep(1.0 - time.time() % 1 + 0.05)


def entries(bucket: Bucket) -> list[PatternFreeze]:
    return list(record.entries(bucket.direct_store().read(FROZEN_PATTERNS)))


def works(
    bucket: Bucket, caller: Caller = ADA, name: StateName = NAME, *, require_lock: bool = False
) -> Work:
    """Return the work of one request, through the proxy."""
    return work(bucket.store(), name, caller, require_lock=require_lock)


def locked(bucket: Bucket) -> None:
    acquiring.acquire(work(bucket.direct_store(), NAME, ADA), ONE)


def upload(bucket: Bucket) -> object:
    workspace = WorkspaceId.mint(NAME)
    locking.lock(work(bucket.direct_store(), NAME, ADA), workspace)
    return uploads.create(works(bucket), workspace.lock_id, Revision(1, LINEAGE), "0" * 32, force=False)


def write_first(bucket: Bucket) -> Written:
    """Write the first state under a lock that is held."""
    return write(works(bucket, require_lock=True), state(1), "one")


def locked_write(bucket: Bucket) -> object:
    locked(bucket)
    return write_first(bucket)


def unlocked_write(bucket: Bucket) -> object:
    return write(works(bucket), state(1), None)


BEGINNINGS: dict[str, Callable[[Bucket], object]] = {
    "read": lambda bucket: read(works(bucket)),
    "outputs": lambda bucket: read_outputs(works(bucket)),
    "content": lambda bucket: read_version(works(bucket), None, limit=1),
    "write": locked_write,
    "unlocked write": unlocked_write,
    "create": lambda bucket: workspaces.create(works(bucket), {}),
    "declare": lambda bucket: workspaces.declare(works(bucket)),
    "current": lambda bucket: versions.current(works(bucket)),
    "upload": upload,
}


@pytest.mark.parametrize("verb", BEGINNINGS)
def test_no_verb_begins_a_state_that_matches_a_frozen_pattern(bucket: Bucket, verb: str) -> None:
    assert frozen(bucket)[1] == []
    with pytest.raises(Frozen) as refused:
        BEGINNINGS[verb](bucket)
    assert refused.value.message == (
        "No state that matches network/* may be created: it is frozen by token:operator: an incident. "
        "'holdfast state unfreeze' of this pattern lifts it."
    )
    assert refused.value.holder["ID"] == f"frozen: an incident [{COMMAND}]"
    assert bucket.bodies(KEY) == []
    assert bucket.history(NAME.record_key) == []

    unfreeze_pattern(bucket.store(), OPERATOR, COMMAND)
    bucket.s3.delete_object(Bucket=bucket.name, Key=NAME.lock_key)
    try:
        BEGINNINGS[verb](bucket)
    except HoldfastError as error:
        assert error.code == "no_state"  # noqa: PT017 what is read has no state


def test_an_undelete_brings_nothing_back_that_matches_a_frozen_pattern(team: Team) -> None:
    team.deleted()
    frozen(team.bucket)
    with pytest.raises(Frozen):
        undelete(works(team.bucket, OPERATOR), team.bucket.marker(KEY))
    assert (len(team.versions()), team.held()) == (2, None)


@pytest.mark.parametrize("pattern", ["app/*", "network/p", "network/*/eu", "*x"])
def test_what_does_not_match_is_not_refused(bucket: Bucket, pattern: str) -> None:
    if "*" in pattern:
        frozen(bucket, pattern)
    assert read(works(bucket)) is None
    assert read(works(bucket, OPERATOR, PROBE)) is None


def test_a_state_that_exists_needs_no_request_more(team: Team) -> None:
    team.written(state(1))
    frozen(team.bucket)
    store = team.bucket.store()
    assert read(work(store, NAME, ADA)) == state(1)
    assert store.budget.requests == ["GetObject"]


def test_a_refusal_names_the_owner_and_the_time_also_of_a_record_that_lacks_them(bucket: Bucket) -> None:
    frozen(bucket, caller=replace(OPERATOR, owner="bea@example.com"))
    [entry] = entries(bucket)
    refused = entry.refusal()
    by = "bea@example.com (token:operator)"
    assert f"is frozen by {by}: an incident." in refused.message
    assert entry.since
    assert (refused.holder["Who"], refused.holder["Created"]) == (by, f"{entry.since:%Y-%m-%dT%H:%M:%SZ}")

    stored = json.dumps({"schema": 1, "freezes": [ENTRY]}).encode()
    bucket.s3.put_object(Bucket=bucket.name, Key=FROZEN_PATTERNS, Body=stored)
    [entry] = entries(bucket)
    assert (entry.owner, "frozen by b: r" in entry.refusal().message) == ("", True)
    assert not entry.refusal().holder["Created"].startswith("0001")


def test_a_lock_from_before_the_freeze_writes_its_first_state_and_a_later_one_does_not(team: Team) -> None:
    team.lock()
    next_second()
    assert frozen(team.bucket)[1] == ["network/prod"]
    # Terraform reads once more before it writes a first state.
    assert read(works(team.bucket)) is None
    with pytest.raises(Frozen):
        read(works(team.bucket, BOB))
    team.unlock()
    next_second()
    team.lock()
    with pytest.raises(Frozen):
        team.write(state(1))
    team.unlock()


def test_the_holder_from_before_is_waited_for(team: Team) -> None:
    team.lock()
    next_second()
    frozen(team.bucket)
    assert team.write(state(1)).new_version


def test_another_frozen_pattern_leaves_the_time_of_the_first(bucket: Bucket) -> None:
    frozen(bucket)
    [first] = entries(bucket)
    next_second()
    locked(bucket)
    next_second()
    frozen(bucket, "app/*", freeze_id=LATER_COMMAND)
    assert entries(bucket)[0] == first
    with pytest.raises(Frozen):  # the lock is younger than its pattern's freeze, though older than the object
        write_first(bucket)
    unfreeze_pattern(bucket.store(), OPERATOR, LATER_COMMAND)
    assert entries(bucket) == [first]


def test_a_freeze_ends_by_the_clock_of_s3_and_is_then_replaced(bucket: Bucket) -> None:
    frozen(bucket, until=ENDED)
    assert read(works(bucket)) is None
    assert frozen_patterns(bucket.store(), OPERATOR) == []
    assert frozen(bucket, freeze_id=LATER_COMMAND)[0].freeze.id == LATER_COMMAND
    assert [entry.freeze.id for entry in entries(bucket)] == [LATER_COMMAND]


def test_the_second_of_two_freezes_at_once_keeps_the_first(bucket: Bucket) -> None:
    other = partial(
        frozen, replace(bucket), freeze_id=LATER_COMMAND, caller=replace(OPERATOR, principal="token:x")
    )
    bucket.proxy.before("PUT", FROZEN_PATTERNS, other)
    done, _ = frozen(bucket)
    assert (done.freeze.id, done.by) == (LATER_COMMAND, "token:x")
    assert len(entries(bucket)) == 1


def test_a_freeze_whose_answer_was_lost_is_there_once(bucket: Bucket) -> None:
    bucket.proxy.fail("PUT", FROZEN_PATTERNS, Fault.ANSWER_LOST)
    assert frozen(bucket)[0].freeze.id == COMMAND
    assert len(entries(bucket)) == 1
    assert unfreeze_pattern(bucket.store(), OPERATOR, COMMAND) is not None
    assert unfreeze_pattern(bucket.store(), OPERATOR, COMMAND) is None


def test_what_has_a_lock_or_a_state_is_named(bucket: Bucket) -> None:
    for name in ("network/eu", "network/a/b", "app/eu", "networks"):
        bucket.s3.put_object(Bucket=bucket.name, Key=StateName(name).state_key, Body=state(1))
    locked(bucket)
    assert frozen(bucket)[1] == ["network/a/b", "network/eu", "network/prod"]


def test_a_slow_list_is_continued_and_names_every_lock_before_a_state(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "SECONDS", 0.0)
    bucket.s3.put_object(Bucket=bucket.name, Key=StateName("network/a").state_key, Body=state(1))
    locked(bucket)
    assert (first := listed(bucket, None))[0] == ["network/prod"]
    assert listed(bucket, first[1]) == (["network/a"], None)
    monkeypatch.setattr(walk, "SECONDS", 8.0)
    monkeypatch.setattr(catalog, "PAGE", 1)
    assert listed(bucket, None) == first

    monkeypatch.setattr(catalog, "PAGE", 999)
    ends = cursors.encode("freeze", [COMMAND, "network/*", 0, "states/network/%00"])
    assert listed(bucket, None)[0] == frozen(bucket)[1] == ["network/a", "network/prod"]
    for fields in ([COMMAND, "app/*", 1, ""], [COMMAND, "network/*", -1, ""], [COMMAND, "network/*", 1, "a"]):
        with pytest.raises(InvalidRequest, match="cursor"):
            listed(bucket, cursors.encode("freeze", fields))
    for freeze_id in (None, LATER_COMMAND):  # a new freeze does not know the locks that were listed
        unfreeze_pattern(bucket.store(), OPERATOR, COMMAND)
        if freeze_id:
            frozen(bucket, freeze_id=freeze_id)
        with pytest.raises(RacedWriter, match="lifted"):
            listed(bucket, ends)


def test_an_unlocked_first_write_beside_the_freeze_is_not_acknowledged(bucket: Bucket) -> None:
    """No lock tells the freeze to wait for it."""
    bucket.proxy.before("PUT", KEY, partial(frozen, replace(bucket)))
    with pytest.raises(Frozen):
        unlocked_write(bucket)


def test_an_unlocked_first_write_beside_the_freeze_whose_answer_is_lost_is_not_acknowledged(
    bucket: Bucket,
) -> None:
    def freeze_and_take_effect() -> None:
        frozen(replace(bucket))
        bucket.s3.put_object(Bucket=bucket.name, Key=KEY, Body=state(1))

    bucket.proxy.before("PUT", KEY, freeze_and_take_effect)
    with pytest.raises(Frozen):
        unlocked_write(bucket)


@pytest.mark.parametrize(
    ("scope", "pattern", "allowed"),
    [
        (("*",), "*", True),
        (("network/*",), "network/*", True),
        (("network/*",), "network/*/eu", True),
        (("network/*",), "network/eu-*", True),
        (("network/*",), "*", False),
        (("network/*",), "*/prod", False),
        (("network/*",), "net*/prod", False),
        (("network/eu",), "network/e*", False),
        (("network/**",), "network/*", False),
        (("**",), "*", False),
        (("a/**", "a/*/**"), "a/*", False),
        (("*/prod",), "*/prod", True),
        (("*/prod",), "*/*", False),
    ],
)
def test_who_freezes_a_pattern_may_freeze_all_that_it_can_match(
    bucket: Bucket, scope: tuple[str, ...], pattern: str, allowed: bool
) -> None:
    caller = Caller("token:m", (Grant(Role.MAINTAINER, scope),))
    if allowed:
        frozen(bucket, pattern, caller=caller)
        assert len(frozen_patterns(bucket.store(), caller)) == 1
        return
    with pytest.raises(NotAllowed):
        frozen(bucket, pattern, caller=caller)
    frozen(bucket, pattern)
    assert frozen_patterns(bucket.store(), caller) == []
    with pytest.raises(NotAllowed):
        unfreeze_pattern(bucket.store(), caller, COMMAND)


@pytest.mark.parametrize("pattern", ["network/prod", "a//*", "app/**", "holdfast-doctor/*", "", "*" * 300])
def test_what_is_no_pattern_of_states_is_refused(bucket: Bucket, pattern: str) -> None:
    with pytest.raises(InvalidRequest):
        frozen(bucket, pattern)
    assert bucket.history(FROZEN_PATTERNS) == []


ENTRY = {"pattern": "x/*", "id": COMMAND, "reason": "r", "by": "b", "until": None, "since": None}


@pytest.mark.parametrize(
    "stored",
    [
        {"schema": 2, "freezes": []},
        {"freezes": []},
        {"schema": 1, "freezes": [{"pattern": "app/*"}]},
        {"schema": 1, "freezes": [{**ENTRY, "pattern": "a//b"}]},
        {"schema": 1, "freezes": [{**ENTRY, "until": "2026-11-20T10:00:00"}]},
        {"schema": 1, "freezes": [{**ENTRY, "by": 7}]},
        {"schema": 1, "freezes": [{**ENTRY, "owner": None}]},
        {"schema": 1, "freezes": "all"},
        [],
    ],
)
def test_a_record_that_is_not_understood_refuses_every_first_state(bucket: Bucket, stored: object) -> None:
    bucket.s3.put_object(Bucket=bucket.name, Key=FROZEN_PATTERNS, Body=json.dumps(stored).encode())
    for refused in (BEGINNINGS["read"], BEGINNINGS["unlocked write"], frozen):
        with pytest.raises(UnreadableRecord, match="lifts the freezes of all patterns"):
            refused(bucket)


def test_a_record_that_others_keep_changing_gives_up(bucket: Bucket) -> None:
    def change(number: int) -> None:
        changed = {"schema": 1, "freezes": [{**ENTRY, "pattern": f"x{number}/*"}]}
        body = json.dumps(changed).encode()
        bucket.s3.put_object(Bucket=bucket.name, Key=FROZEN_PATTERNS, Body=body)
        if number:
            bucket.proxy.before("PUT", FROZEN_PATTERNS, partial(change, number - 1))

    bucket.proxy.before("PUT", FROZEN_PATTERNS, partial(change, 4))
    with pytest.raises(RacedWriter):
        frozen(bucket)


def test_there_is_a_limit_to_the_patterns(bucket: Bucket) -> None:
    many = [{**ENTRY, "pattern": f"x{number}/*"} for number in range(patterns.MAX_PATTERNS)]
    stored = json.dumps({"schema": 1, "freezes": many}).encode()
    bucket.s3.put_object(Bucket=bucket.name, Key=FROZEN_PATTERNS, Body=stored)
    with pytest.raises(InvalidRequest, match="100 patterns"):
        frozen(bucket)
