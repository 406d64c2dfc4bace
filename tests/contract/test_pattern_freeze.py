"""A freeze of a pattern, and what begins a state below it, on real S3 servers."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from holdfast.access import Caller, Grant, Role
from holdfast.cloud import locking, uploads, versions, workspaces
from holdfast.cloud.ids import WorkspaceId
from holdfast.errors import (
    Frozen,
    HoldfastError,
    InvalidRequest,
    NotAllowed,
    RacedWriter,
    StorageRefused,
    UnreadableRecord,
)
from holdfast.names import FROZEN_PATTERNS, StateName
from holdfast.s3.store import Store
from holdfast.state import acquiring, catalog, held, walk
from holdfast.state import cursor as cursors
from holdfast.state.document import Revision
from holdfast.state.freezing import patterns, record, states
from holdfast.state.freezing.patterns import (
    At,
    Lifted,
    Matching,
    freeze_matching,
    freeze_pattern,
    frozen_patterns,
    unfreeze_pattern,
)
from holdfast.state.freezing.record import PatternFreeze
from holdfast.state.held import Freeze
from holdfast.state.read import read, read_outputs, read_version
from holdfast.state.undelete import undelete
from holdfast.state.write import Written, write
from holdfast.work import Work
from tests.contract.conftest import COMMAND, KEY, NAME, ONE, PROBE, Bucket, Team, noted
from tests.support.documents import ADA, BOB, LINEAGE, OPERATOR, state
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

NOW = datetime(2020, 1, 1, tzinfo=UTC)
ENDED = NOW + timedelta(hours=1)
"""S3's clock is past it."""
LATER_COMMAND = "fedcba9876543210" * 2


@dataclass(frozen=True)
class Done:
    """The results of all requests that freeze a pattern, with the names in order."""

    pattern: PatternFreeze
    frozen: list[str]
    left: list[str]
    told: list[str]


def of(bucket: Bucket, caller: Caller = OPERATOR) -> At:
    return lambda name: work(bucket.store(), name, caller)


def frozen(
    bucket: Bucket,
    pattern: str = "network/*",
    *,
    freeze_id: str = COMMAND,
    until: datetime | None = None,
    caller: Caller = OPERATOR,
) -> Done:
    frozen_names: set[str] = set()
    left: set[str] = set()
    told: list[str] = []
    cursor: str | None = None
    while True:  # several requests on a busy machine
        placed, matching, more = step(
            bucket, cursor, pattern, freeze_id=freeze_id, until=until, caller=caller
        )
        frozen_names |= set(map(str, matching.frozen))
        left |= set(map(str, matching.left))
        told += more
        cursor = matching.next
        if cursor is None:
            return Done(placed, sorted(frozen_names), sorted(left - frozen_names), told)


def step(
    bucket: Bucket,
    cursor: str | None,
    pattern: str = "network/*",
    *,
    freeze_id: str = COMMAND,
    until: datetime | None = None,
    caller: Caller = OPERATOR,
) -> tuple[PatternFreeze, Matching, list[str]]:
    """Send one request to freeze a pattern."""
    freeze = Freeze(freeze_id, "an incident", until)
    placed, place = freeze_pattern(bucket.store(), caller, pattern, freeze, now=NOW, cursor=cursor)
    told: list[str] = []
    at = of(bucket, caller)
    matching = freeze_matching(bucket.store(), at, placed, place, lambda name, _: told.append(name.value))
    return placed, matching, told


def done(placed: PatternFreeze, matching: Matching, told: list[str]) -> Done:
    frozen_now, left = (sorted(map(str, names)) for names in (matching.frozen, matching.left))
    return Done(placed, frozen_now, left, told)


def unfrozen(
    bucket: Bucket, freeze_id: str = COMMAND, *, caller: Caller = OPERATOR, cursor: str | None = None
) -> Lifted:
    at = of(bucket, caller)
    return unfreeze_pattern(bucket.store(), at, caller, freeze_id, lambda *_: None, cursor)


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
    assert frozen(bucket).left == []
    with pytest.raises(Frozen) as refused:
        BEGINNINGS[verb](bucket)
    assert refused.value.message == (
        "The pattern network/* is frozen by the token operator: an incident. No state whose name matches the "
        "pattern can be created. A maintainer can lift the freeze with 'holdfast state unfreeze' and this "
        "pattern."
    )
    assert refused.value.holder["ID"] == f"frozen: an incident [{COMMAND}]"
    assert refused.value.logged == {"held_by": "token:operator"}
    assert bucket.bodies(KEY) == []
    assert bucket.history(NAME.record_key) == []

    unfrozen(bucket)
    bucket.s3.delete_object(Bucket=bucket.name, Key=NAME.lock_key)
    try:
        BEGINNINGS[verb](bucket)
    except HoldfastError as error:
        assert error.code == "no_state"  # noqa: PT017 what is read has no state


def recorded(bucket: Bucket, *patterns: tuple[str, datetime | None]) -> None:
    freezes = [
        PatternFreeze(pattern, Freeze(f"{number:032x}", "an incident", until), "token:x", NOW)
        for number, (pattern, until) in enumerate(patterns, 1)
    ]
    assert record.replace(bucket.direct_store(), None, freezes)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_each_pattern_of_the_record_holds_wherever_it_is_in_it(bucket: Bucket, place: int) -> None:
    patterns: list[tuple[str, datetime | None]] = [("app/*", None), ("network/*", NOW - timedelta(days=1))]
    patterns.insert(place, ("network/prod*", None))
    recorded(bucket, *patterns)
    with pytest.raises(Frozen, match=r"The pattern network/prod\* is frozen"):
        unlocked_write(bucket)
    assert bucket.bodies(KEY) == []

    assert unfrozen(bucket, f"{place + 1:032x}").next is None
    left = [entry.pattern for entry in entries(bucket)]
    assert left == ["app/*", "network/*"]
    unlocked_write(bucket)


@pytest.mark.parametrize("verb", BEGINNINGS)
def test_no_verb_begins_a_state_where_s3_refuses_to_show_the_frozen_patterns(
    bucket: Bucket, verb: str
) -> None:
    bucket.proxy.fail("GET", FROZEN_PATTERNS, Fault.DENIED)
    with pytest.raises(StorageRefused):
        BEGINNINGS[verb](bucket)
    assert bucket.bodies(KEY) == []
    assert bucket.history(NAME.record_key) == []


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
    assert (
        f"is frozen by {by}: an incident. No state whose name matches the pattern can be created."
        in refused.message
    )
    assert entry.since
    assert (refused.holder["Who"], refused.holder["Created"]) == (
        "token:operator",
        f"{entry.since:%Y-%m-%dT%H:%M:%SZ}",
    )
    proved = 'principal "token:operator", verified by Holdfast; owner "bea@example.com"; info "frozen'
    assert refused.holder["Info"].startswith(proved)

    stored = json.dumps({"schema": 1, "freezes": [ENTRY]}).encode()
    bucket.s3.put_object(Bucket=bucket.name, Key=FROZEN_PATTERNS, Body=stored)
    [entry] = entries(bucket)
    assert (entry.owner, "frozen by b: " in entry.refusal().message) == ("", True)
    assert not entry.refusal().holder["Created"].startswith("0001")


def test_a_lock_from_before_the_freeze_writes_its_first_state_and_a_later_one_does_not(team: Team) -> None:
    team.lock()
    next_second()
    assert frozen(team.bucket).left == ["network/prod"]
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
    unfrozen(bucket, LATER_COMMAND)
    assert entries(bucket) == [first]


def test_a_freeze_ends_by_the_clock_of_s3_and_is_then_replaced(bucket: Bucket) -> None:
    frozen(bucket, until=ENDED)
    assert read(works(bucket)) is None
    assert frozen_patterns(bucket.store(), OPERATOR) == []
    assert frozen(bucket, freeze_id=LATER_COMMAND).pattern.freeze.id == LATER_COMMAND
    assert [entry.freeze.id for entry in entries(bucket)] == [LATER_COMMAND]


def test_the_second_of_two_freezes_at_once_keeps_the_first(bucket: Bucket) -> None:
    other = partial(
        frozen, replace(bucket), freeze_id=LATER_COMMAND, caller=replace(OPERATOR, principal="token:x")
    )
    bucket.proxy.before("PUT", FROZEN_PATTERNS, other)
    kept = frozen(bucket).pattern
    assert (kept.freeze.id, kept.by) == (LATER_COMMAND, "token:x")
    assert len(entries(bucket)) == 1


def test_a_freeze_whose_answer_was_lost_is_there_once(bucket: Bucket) -> None:
    bucket.proxy.fail("PUT", FROZEN_PATTERNS, Fault.ANSWER_LOST)
    assert frozen(bucket).pattern.freeze.id == COMMAND
    assert len(entries(bucket)) == 1
    bucket.proxy.fail("PUT", FROZEN_PATTERNS, Fault.ANSWER_LOST)
    lifted = unfrozen(bucket)
    assert lifted.pattern is not None
    assert lifted.next is None
    assert unfrozen(bucket).pattern is None
    assert entries(bucket) == []


STATE_NAMES = ("network/eu", "network/a/b", "app/eu", "networks")


def of_states(bucket: Bucket, *names: str) -> None:
    for name in names:
        bucket.s3.put_object(Bucket=bucket.name, Key=StateName(name).state_key, Body=state(1))


def freeze_of(bucket: Bucket, name: str) -> str | None:
    lock = held.read(bucket.direct_store(), StateName(name))
    return lock.freeze.id if lock and lock.freeze else None


def test_what_has_a_state_is_frozen_and_what_is_locked_is_left(bucket: Bucket) -> None:
    of_states(bucket, *STATE_NAMES)
    locked(bucket)
    first = frozen(bucket)
    assert (first.frozen, first.left) == (["network/a/b", "network/eu"], ["network/prod"])
    assert sorted(first.told) == first.frozen
    assert [freeze_of(bucket, name) for name in STATE_NAMES] == [COMMAND, COMMAND, None, None]
    assert sorted(frozen(bucket).told) == first.frozen  # each once, with a lock and a state
    other = replace(OPERATOR, principal="token:x")
    again = frozen(bucket, freeze_id=LATER_COMMAND, caller=other)  # keeps the freeze of before
    assert (again.frozen, again.left, again.told) == (first.frozen, first.left, [])


@pytest.mark.parametrize("until", [None, NOW + timedelta(days=36500)])
def test_a_state_with_another_freeze_is_left(bucket: Bucket, until: datetime | None) -> None:
    of_states(bucket, "network/eu")
    states.freeze(of(bucket)(StateName("network/eu")), Freeze(LATER_COMMAND, "r", until), now=NOW)
    assert frozen(bucket).left == ["network/eu"]
    assert freeze_of(bucket, "network/eu") == LATER_COMMAND


def test_a_slow_request_is_continued_and_lists_every_lock_before_a_state(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_states(bucket, "network/a")
    locked(bucket)
    monkeypatch.setattr(walk, "SECONDS", 0.0)
    results: list[tuple[list[str], list[str]]] = []
    cursor: str | None = None
    while cursor or not results:
        one = step(bucket, cursor)
        results.append((done(*one).frozen, done(*one).left))
        cursor = one[1].next
    assert [result for result in results if any(result)] == [
        ([], [NAME.value]),  # the list of locks
        (["network/a"], []),  # the list of states
    ]

    monkeypatch.setattr(walk, "SECONDS", 8.0)
    ends = cursors.encode("freeze", [COMMAND, "network/*", 0, "states/network/%2F"])
    assert done(*step(bucket, ends)).frozen == ["network/a"]
    for fields in ([COMMAND, "app/*", 1, ""], [COMMAND, "network/*", -1, ""], [COMMAND, "network/*", 1, "a"]):
        with pytest.raises(InvalidRequest, match="cursor"):
            step(bucket, cursors.encode("freeze", fields))
    for freeze_id in (None, LATER_COMMAND):  # a new freeze does not know the locks that were listed
        unfrozen(bucket)
        if freeze_id:
            frozen(bucket, freeze_id=freeze_id)
        with pytest.raises(RacedWriter, match="unfroze"):
            step(bucket, ends)


@pytest.mark.parametrize(
    "rest", ["%00", "%1F", "%EF%BF%BE", "%EF%BF%BF", "a" * 1024], ids=lambda rest: rest[:9]
)
def test_a_place_after_which_s3_lists_nothing_is_refused_before_s3_is_asked_for_a_list(
    bucket: Bucket, rest: str
) -> None:
    frozen(bucket)
    place = f"states/network/{rest}"
    for send in (
        lambda: step(bucket, cursors.encode("freeze", [COMMAND, "network/*", 0, place])),
        lambda: unfrozen(bucket, cursor=cursors.encode("unfreeze", [COMMAND, 0, place, ""])),
    ):
        with noted(bucket.server.proxied, "x-id") as asked, pytest.raises(InvalidRequest, match="cursor"):
            send()
        assert len(asked) == 1  # for the record


def test_a_request_does_not_end_at_a_key_of_another_program_after_which_s3_lists_nothing(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "SECONDS", 0.0)
    keys = ("states/network/\1", "states/network/\2", "states/network/a")
    monkeypatch.setattr(catalog, "matching", lambda *_: ((None, (0, key)) for key in keys))
    next_ = step(bucket, None)[1].next
    assert next_ is not None
    assert cursors.decode("freeze", next_, str, str, int, str)[-1] == "states/network/a"


def test_an_unfreeze_lifts_what_the_freeze_of_the_pattern_froze_and_nothing_else(bucket: Bucket) -> None:
    of_states(bucket, *STATE_NAMES)
    states.freeze(of(bucket)(StateName("network/own")), Freeze(LATER_COMMAND, "r", None), now=NOW)
    frozen(bucket)
    locked(bucket)
    lifted = all_unfrozen(bucket)
    assert sorted(map(str, lifted.unfrozen)) == ["network/a/b", "network/eu"]
    assert (list(lifted.covered), lifted.next, entries(bucket)) == ([], None, [])
    assert [freeze_of(bucket, name) for name in ("network/eu", "network/own")] == [None, LATER_COMMAND]
    assert held.read(bucket.direct_store(), NAME) is not None


def test_a_slow_unfreeze_is_continued_and_keeps_the_pattern_until_its_end(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_states(bucket, *STATE_NAMES)
    frozen(bucket)
    monkeypatch.setattr(walk, "SECONDS", 0.0)
    names: list[str] = []
    cursor: str | None = None
    while cursor or not names:
        lifted = unfrozen(bucket, cursor=cursor)
        names += map(str, lifted.unfrozen)
        cursor = lifted.next
        assert bool(entries(bucket)) is bool(cursor)
    assert names == ["network/a/b", "network/eu"]
    assert [freeze_of(bucket, name) for name in names] == [None, None]
    monkeypatch.setattr(walk, "SECONDS", 8.0)
    frozen(bucket)
    for cursor in (
        cursors.encode("unfreeze", [LATER_COMMAND, 0, "", ""]),
        cursors.encode("unfreeze", [COMMAND, 0, "a", ""]),
    ):
        with pytest.raises(InvalidRequest, match="cursor"):
            unfrozen(bucket, cursor=cursor)


OTHERS = {"*/eu": None, "network/e*": NOW + timedelta(days=36500), "n*/e*": ENDED}
"""Other frozen patterns that cover `network/eu`, and their ends."""


@pytest.mark.parametrize("is_locked", [False, True])
def test_an_unfrozen_state_that_other_patterns_cover_gets_the_freeze_that_ends_last(
    bucket: Bucket, is_locked: bool
) -> None:
    of_states(bucket, *STATE_NAMES)
    frozen(bucket)
    for number, (pattern, until) in enumerate(OTHERS.items()):
        freeze = Freeze(f"{number}" * 32, "r", until)
        freeze_pattern(bucket.store(), OPERATOR, pattern, freeze, now=NOW)
    if is_locked:  # as soon as it is unfrozen
        name = StateName("network/eu")
        acquire = partial(acquiring.acquire, work(bucket.direct_store(), name, ADA), ONE)
        bucket.proxy.before("PUT", name.lock_key, acquire)
    lifted = all_unfrozen(bucket)
    [covered] = lifted.covered
    expected = ("network/eu", "*/eu", not is_locked)
    assert (covered.name.value, covered.pattern.pattern, covered.is_frozen) == expected
    assert freeze_of(bucket, "network/eu") == (None if is_locked else "0" * 32)
    assert [name.value for name in lifted.unfrozen] == ["network/a/b"]


EU = StateName("network/eu")


def all_unfrozen(bucket: Bucket) -> Lifted:
    """Send requests to unfreeze until the end; return the last result, with the states of all."""
    lifted = unfrozen(bucket)
    while lifted.next:
        more = unfrozen(bucket, cursor=lifted.next)
        covered = {each.name: each for each in (*lifted.covered, *more.covered)}
        lifted = replace(more, unfrozen=[*lifted.unfrozen, *more.unfrozen], covered=list(covered.values()))
    return lifted


def other_pattern(bucket: Bucket, caller: Caller = OPERATOR) -> Done:
    return frozen(bucket, "*/eu", freeze_id=LATER_COMMAND, caller=caller)


def test_a_retry_of_an_unfreeze_gives_a_covered_state_the_freeze_that_the_first_try_did_not(
    bucket: Bucket,
) -> None:
    of_states(bucket, *STATE_NAMES)
    frozen(bucket)
    freeze_pattern(bucket.store(), OPERATOR, "*/eu", Freeze(LATER_COMMAND, "r", None), now=NOW)
    bucket.proxy.fail("PUT", EU.lock_key, Fault.DENIED)
    with pytest.raises(StorageRefused) as failed:
        unfrozen(bucket)
    assert failed.value.logged["state"] == "network/eu"
    assert (freeze_of(bucket, "network/eu"), len(entries(bucket))) == (None, 2)

    [covered] = all_unfrozen(bucket).covered
    assert (covered.name, covered.is_frozen, len(entries(bucket))) == (EU, True, 1)
    assert freeze_of(bucket, "network/eu") == LATER_COMMAND


def test_a_pattern_that_is_frozen_while_another_is_unfrozen_freezes_the_states_of_both(
    bucket: Bucket,
) -> None:
    of_states(bucket, *STATE_NAMES)
    frozen(bucket)
    beside = replace(bucket)
    # The other freeze finds the state frozen, before it is unfrozen.
    bucket.proxy.before("DELETE", EU.lock_key, lambda: other_pattern(beside))
    [covered] = all_unfrozen(bucket).covered
    assert (covered.name, covered.pattern.freeze.id, covered.is_frozen) == (EU, LATER_COMMAND, True)
    assert [entry.pattern for entry in entries(bucket)] == ["*/eu"]


def test_a_state_that_somebody_else_freezes_with_the_other_pattern_is_covered(bucket: Bucket) -> None:
    of_states(bucket, *STATE_NAMES)
    frozen(bucket)
    freeze_pattern(bucket.store(), OPERATOR, "*/eu", Freeze(LATER_COMMAND, "an incident", None), now=NOW)
    beside, somebody = replace(bucket), replace(OPERATOR, principal="token:x")
    bucket.proxy.before("PUT", EU.lock_key, lambda: other_pattern(beside, somebody))
    [covered] = all_unfrozen(bucket).covered
    assert covered.is_frozen


def test_a_pattern_that_has_ended_covers_no_state(bucket: Bucket) -> None:
    of_states(bucket, *STATE_NAMES)
    frozen(bucket)
    freeze_pattern(bucket.store(), OPERATOR, "*/eu", Freeze(LATER_COMMAND, "r", ENDED), now=NOW)
    assert (list(all_unfrozen(bucket).covered), freeze_of(bucket, "network/eu")) == ([], None)


def test_an_unfreeze_looks_at_all_states_again_if_the_record_has_changed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_states(bucket, "network/eu", "network/z")
    frozen(bucket)
    frozen(bucket, "app/*", freeze_id="3" * 32)  # another pattern, so that the states are listed, too
    monkeypatch.setattr(walk, "SECONDS", 0.0)
    lifted = unfrozen(bucket)
    while "network/z" not in map(str, lifted.unfrozen):
        lifted = unfrozen(bucket, cursor=lifted.next)
    lifted = unfrozen(bucket, cursor=lifted.next)  # the first of the list of states
    assert lifted.next
    freeze_pattern(bucket.store(), OPERATOR, "*/eu", Freeze(LATER_COMMAND, "r", None), now=NOW)
    while lifted.next:
        lifted = unfrozen(bucket, cursor=lifted.next)
    assert (freeze_of(bucket, "network/eu"), len(entries(bucket))) == (LATER_COMMAND, 2)


def test_a_name_that_one_request_freezes_is_not_left(bucket: Bucket) -> None:
    of_states(bucket, NAME.value)
    locked(bucket)
    lists = iter([None, lambda: bucket.s3.delete_object(Bucket=bucket.name, Key=NAME.lock_key)])
    keys_page = Store.keys_page

    def page(*arguments: Any, **more: Any) -> Any:
        if release := next(lists, None):
            release()
        return keys_page(*arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "keys_page", page)
        _, matching, _ = step(bucket, None)
    assert ([*map(str, matching.frozen)], [*matching.left]) == (["network/prod"], [])


def test_a_freeze_whose_pattern_is_unfrozen_meanwhile_does_not_say_that_it_holds(bucket: Bucket) -> None:
    of_states(bucket, *STATE_NAMES)
    beside = replace(bucket)
    bucket.proxy.before("PUT", EU.lock_key, lambda: unfrozen(beside))
    with pytest.raises(RacedWriter, match=r"While this request was in progress, the pattern .* was unfrozen"):
        frozen(bucket)


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
        unfrozen(bucket, caller=caller)


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
        *(
            {"schema": 1, "freezes": [{**ENTRY, member: no_time}]}
            for member in ("until", "since")
            for no_time in ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", 2**63)
        ),
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
