"""The scenarios: clients that work on a state at the same time, and the faults that may happen."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.safety.model import clients
from tests.safety.model.clients import (
    LINEAGE,
    LOCK_KEY,
    STATE_KEY,
    Client,
    lock_document,
    state_document,
)
from tests.safety.model.invariants import Exemption
from tests.safety.model.production import BUCKET, READERS, WRITERS, time_of
from tests.safety.model.s3 import Bucket, Request, carry_out
from tests.safety.model.world import TICK, Scenario


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of an interleaving.

    `faults` limits the requests to S3 that fail. `repeats` limits the requests that a client repeats while
    the first try still runs, and the functions that die. `ticks` limits the ticks of the clock.
    """

    faults: int
    repeats: int
    ticks: int = 0

    @classmethod
    def parse(cls, digits: str) -> "Bounds":
        """Parse three digits: faults, repeats, ticks. An empty text means "000"."""
        return cls(*map(int, digits or "000"))

    def __str__(self) -> str:
        return f"{self.faults} faults, {self.repeats} repeats, {self.ticks} ticks"


@dataclass(frozen=True, slots=True)
class Plan:
    """A scenario and its bounds. The long run searches the bounds of the quick run, too."""

    scenario: Scenario
    quick: tuple[Bounds, ...]
    long: tuple[Bounds, ...]


def within(scenario: Scenario, bounds: Bounds) -> Scenario:
    return replace(scenario, faults=bounds.faults, repeats=bounds.repeats, ticks=bounds.ticks)


def _written() -> Bucket:
    """One acknowledged state."""
    return _with_state(Bucket(), serial=1)


def _tenth() -> Bucket:
    """The same with a higher serial."""
    return _with_state(Bucket(), serial=10)


def _with_state(
    bucket: Bucket, *, serial: int, lineage: str = LINEAGE, operation: str = "OperationTypeApply"
) -> Bucket:
    body = state_document("Z", serial, lineage=lineage)
    noted = {
        "sha256": hashlib.sha256(body).hexdigest(),
        "serial": str(serial),
        "lineage": lineage,
        "lock-id": "lock-Z",
        "operation": operation,
    }
    put = Request("PutObject", STATE_KEY, body=body, metadata=tuple(sorted(noted.items())))
    return carry_out(bucket, put, -100)[0]


def _recorded() -> Bucket:
    """A workspace that has no state yet."""
    return _with_record(Bucket())


def _workspace() -> Bucket:
    """A workspace with a state."""
    return _with_record(_written())


def _with_record(bucket: Bucket) -> Bucket:
    record = {"schema": 1, "tags": {}, "created_by": "token:Z", "created": "2026-11-20T10:00:00+00:00"}
    put = Request("PutObject", clients.RECORD_KEY, body=json.dumps(record).encode())
    return carry_out(bucket, put, -100)[0]


def _foreign() -> Bucket:
    """One state that another program wrote."""
    put = Request("PutObject", STATE_KEY, None, None, True, state_document("Z", 1))
    return carry_out(Bucket(), put, -100)[0]


def _twice() -> Bucket:
    """A state that was written twice, so that a process may have cached the first version."""
    return _with_state(_written(), serial=2)


def _digests() -> Bucket:
    """One state, in a bucket where an ETag is a digest of the bytes."""
    return _with_state(Bucket(digests=True), serial=1)


def _twice_digests() -> Bucket:
    """The same with a state that was written twice."""
    return _with_state(_digests(), serial=2)


def _deleted() -> Bucket:
    return carry_out(_written(), Request("DeleteObject", STATE_KEY), -50)[0]


def _two_lineages() -> Bucket:
    """A state that was replaced by a state of another lineage."""
    first = _with_state(Bucket(), serial=1, lineage="lineage-2")
    return _with_state(first, serial=2, operation="state-push")


def _frozen() -> Bucket:
    """A state that is frozen, without an end."""
    return _with_freeze(None, _written())


def _twice_frozen() -> Bucket:
    """A state that was written twice, and is frozen without an end."""
    return _with_freeze(None, _twice())


def _twice_frozen_for_a_while() -> Bucket:
    """The same with a freeze that ends."""
    return _with_freeze(clients.FREEZE_ENDS, _twice())


def _frozen_for_a_while() -> Bucket:
    """A state whose freeze ends."""
    return _with_freeze(clients.FREEZE_ENDS, _written())


def _with_freeze(ends: int | None, bucket: Bucket) -> Bucket:
    freeze_id = clients.command_id("Z")
    until = time_of(ends) if ends is not None else None
    shown = f" until {until}" if until else ""
    document = {
        "ID": f"frozen: Z{shown} [{freeze_id}]",
        "Operation": "freeze",
        "Info": f"frozen{shown}: Z",
        "Who": "token:Z",
        "Version": "",
        "Created": "0001-01-01T00:00:00Z",
        "Path": f"{BUCKET}/{STATE_KEY}",
    }
    noted = {"locked-by": "token:Z", "freeze": freeze_id, **({"freeze-until": until} if until else {})}
    body = json.dumps(document, separators=(",", ":")).encode()
    put = Request("PutObject", LOCK_KEY, body=body, metadata=tuple(sorted(noted.items())))
    return carry_out(bucket, put, -60)[0]


def _stuck() -> Bucket:
    """A state with the lock of a client that died."""
    noted = (("locked-by", "token:Z"),)
    put = Request("PutObject", LOCK_KEY, None, None, True, lock_document("Z"), noted)
    return carry_out(_written(), put, -60)[0]


def _left_restore() -> Bucket:
    """A state with the lock of a restore by a principal that is a writer now."""
    noted = (("locked-by", _OWN),)
    put = Request("PutObject", LOCK_KEY, None, None, True, lock_document("Z", "restore"), noted)
    return carry_out(_written(), put, -60)[0]


_OWN: Final = f"{WRITERS}ci"
_OWN_A: Final = Client("A", clients.apply, _OWN)
_OWN_K: Final = Client("K", clients.breaker, _OWN)
_A: Final = Client("A", clients.apply)
_WRITER: Final = Client("A", clients.apply, f"{WRITERS}A")
_A2: Final = Client("A", clients.apply_with_two_saves)
_B: Final = Client("B", clients.apply)
_CLOUD: Final = Client("A", clients.cloud_apply)
_C: Final = Client("C", clients.apply)
_DELETER: Final = Client("D", clients.workspace_delete)
_SAFE_DELETER: Final = Client("D", clients.workspace_safe_delete)
_CREATOR: Final = Client("C", clients.workspace_creator)
_CI_D: Final = Client("D", clients.delete, "ci")
_CI_E: Final = Client("E", clients.delete, "ci")
_CI_K: Final = Client("K", clients.breaker, "ci")
_NAMING: Final = Client("B", clients.impatient)
_UNNAMING: Final = Client("B", clients.impatient_without_id)
_RESTORER: Final = Client("R", clients.restore)
_FROZEN_RESTORER: Final = Client("R", clients.restore_under_own_freeze)
_PATTERN_FREEZER: Final = Client("F", clients.freeze_pattern)
_BREAKER: Final = Client("K", clients.breaker)
_UNDECLARER: Final = Client("U", clients.undeclare)
_FREEZER: Final = Client("F", clients.freeze)


def _plan(
    name: str,
    who: Sequence[Client],
    quick: str,
    long: str = "",
    *,
    before: Callable[[], Bucket] = _written,
    protected: bool = False,
    tick: int = TICK,
) -> Plan:
    scenario = Scenario(name, tuple(who), before=before, protected=protected, tick=tick)
    return Plan(scenario, *(tuple(map(Bounds.parse, each.split())) for each in (quick, long)))


PLANS: Final = (
    _plan("two-applies", [_WRITER, _B], "110 200", "111 210"),
    _plan("three-applies", [_A, _B, _C], "000", "100 010"),
    _plan("long-apply", [_A2], "110 020 011", "210 120 111"),
    _plan("first-state", [_A, _B], "100 010", "110 200 111", before=Bucket),
    _plan("another-programs-state", [_A, _B], "100", "110", before=_foreign),
    _plan("shared-token", [Client("A", clients.apply, "ci"), Client("B", clients.apply, "ci")], "100", "110"),
    _plan("own-lock", [_OWN_A, Client("B", clients.impatient, _OWN)], "100 001", "110 101 011"),
    _plan("own-lock-break", [_OWN_A, Client("B", clients.apply, _OWN), _OWN_K], "000", "100 001"),
    _plan(
        "own-lock-cloud",
        [Client("A", clients.cloud_apply, _OWN), Client("B", clients.cloud_impatient, _OWN)],
        "001",
        "101 011",
    ),
    _plan(
        "own-lock-without-id",
        [_OWN_A, Client("B", clients.impatient_without_id, _OWN)],
        "001",
        "101 011",
    ),
    _plan(
        "own-lock-of-a-restore",
        [Client("W", clients.what_a_maintainer_may, _OWN)],
        "001",
        "111",
        before=_left_restore,
    ),
    _plan(
        "shared-token-restore",
        [Client("R", clients.restore, "ci"), Client("A", clients.apply, "ci"), _CI_K],
        "000",
        "100 010",
        before=_twice,
    ),
    _plan("shared-token-deletes", [_CI_D, _CI_E, _CI_K], "000", "100 010"),
    _plan("lock-of-the-same-id", [_A, Client("B", clients.namesake)], "100", "101"),
    _plan("broken-lock", [_WRITER, _NAMING], "100 010 001", "101 110 200 011"),
    _plan(
        "broken-lock-gap", [Client("A", clients.apply_with_a_gap), _NAMING], "100", "110 101", before=_twice
    ),
    _plan("broken-lock-digests", [_A, _NAMING], "100", "110", before=_digests),
    _plan("broken-lock-first-state", [_A, _NAMING], "100", "110", before=Bucket),
    _plan("broken-lock-protected", [_A, _NAMING], "100", "110", protected=True),
    _plan("broken-lock-two-saves", [_A2, _NAMING], "100", "010 110 011"),
    _plan("broken-lock-without-id", [_A, _UNNAMING], "100 010 101", "110 011 111"),
    _plan("broken-lock-ten-seconds", [_A, _UNNAMING], "001", "011", tick=10),
    _plan("broken-lock-three", [_A, _NAMING, _C], "000", "001 100 010"),
    _plan("operator", [_A, _B, Client("O", clients.operator)], "001", "101 011"),
    _plan("release-by-query", [_WRITER, _B, Client("Q", clients.releaser)], "001", "101 011"),
    _plan("broken-lock-query", [_A, Client("B", clients.impatient_by_query)], "100 010 001", "110 101"),
    _plan("stuck-lock", [_NAMING, Client("C", clients.impatient)], "001 010", "100", before=_stuck),
    _plan(
        "stuck-lock-without-id",
        [_UNNAMING, Client("C", clients.impatient_without_id)],
        "010 100",
        "101 110",
        before=_stuck,
    ),
    _plan("delete", [_WRITER, Client("D", clients.delete)], "100 010", "110 111 200"),
    _plan("delete-broken", [Client("D", clients.delete), _NAMING], "100", "010 101"),
    _plan("two-deletes", [_CI_D, _CI_E], "100 010", "110 200"),
    _plan("push", [_A, Client("P", clients.push_back)], "100", "110", before=_tenth),
    _plan("push-of-no-state", [_A, Client("P", clients.push_of_no_state)], "100", "110"),
    _plan(
        "broken-lock-push-of-no-state",
        [_A, Client("P", clients.impatient_push_of_no_state)],
        "000",
        "100 010 001",
    ),
    _plan("push-of-the-first", [_A, Client("P", clients.push_of_the_first)], "100", "010 110"),
    _plan("push-of-the-first-digests", [Client("P", clients.push_of_the_first)], "100 010", before=_digests),
    _plan("there-and-back", [Client("P", clients.there_and_back)], "000", "100"),
    _plan(
        "broken-lock-push-of-the-first",
        [_A, Client("P", clients.impatient_push_of_the_first)],
        "000",
        "100 010",
    ),
    _plan(
        "broken-lock-push-digests",
        [_A, Client("P", clients.impatient_push_of_the_first)],
        "000",
        "100 010",
        before=_twice_digests,
    ),
    _plan("broken-lock-reader", [_A, _NAMING, Client("R", clients.reader)], "000", "100 001"),
    _plan("push-digests", [_NAMING, Client("P", clients.push_back)], "000", "100", before=_digests),
    _plan("cloud-two-applies", [_CLOUD, Client("B", clients.cloud_apply)], "100 010", "110 200"),
    _plan("cloud-beside-http", [_CLOUD, _B], "100 010", "110 200"),
    _plan("cloud-first-state", [_CLOUD, _B], "100", "110", before=_recorded),
    _plan("cloud-long-apply", [Client("A", clients.cloud_apply_with_two_saves)], "110", "210 120 220"),
    _plan("cloud-broken-lock", [_CLOUD, _NAMING], "100 010 001", "110 101 200"),
    _plan("cloud-broken-lock-gap", [Client("A", clients.cloud_apply_with_a_gap), _NAMING], "000", "010 110"),
    _plan("cloud-broken-lock-digests", [_CLOUD, _NAMING], "000", "010 110", before=_digests),
    _plan("cloud-broken-lock-protected", [_CLOUD, _NAMING], "000", "110", protected=True),
    _plan(
        "cloud-shared-token",
        [Client("A", clients.cloud_apply, "ci"), Client("B", clients.cloud_impatient, "ci")],
        "001",
        "101 011",
    ),
    _plan("cloud-breaks-lock", [Client("A", clients.cloud_after_a_break), _B], "001", "100 010 011"),
    _plan("cloud-breaks-lock-it-saw", [Client("A", clients.cloud_impatient), _B], "001", "101 011"),
    _plan("cloud-operator", [_A, _B, Client("O", clients.cloud_operator)], "001", "101 011"),
    _plan("cloud-unlocker", [_CLOUD, Client("U", clients.cloud_unlocker)], "100", "110"),
    _plan("cloud-borrower", [_CLOUD, Client("B", clients.cloud_borrower)], "100", "110"),
    _plan("cloud-push", [_A, Client("P", clients.cloud_push_back)], "100", "110", before=_tenth),
    _plan("cloud-broken-lock-push", [Client("A", clients.cloud_push_back), _NAMING], "000", "100 010"),
    _plan("cloud-wrong-address", [_A, Client("W", clients.cloud_wrong_address)], "000", "100"),
    _plan("cloud-at-once", [Client("A", clients.cloud_apply_at_once)], "110"),
    _plan("cloud-at-once-broken-lock", [Client("A", clients.cloud_apply_at_once), _NAMING], "000", "100 010"),
    _plan("cloud-mixed-up", [Client("A", clients.cloud_mixed_up)], "110"),
    _plan("cloud-forgetful", [Client("A", clients.cloud_forgetful)], "110"),
    _plan("cloud-interrupted", [Client("A", clients.cloud_interrupted)], "110", "210", before=_recorded),
    _plan(
        "cloud-interrupted-broken-lock",
        [Client("A", clients.cloud_interrupted), _BREAKER],
        "101",
        "110",
        before=_recorded,
    ),
    _plan("cloud-same-serial", [_A, Client("S", clients.cloud_same_serial)], "000", "100"),
    _plan("cloud-delete", [_CLOUD, Client("D", clients.delete)], "100", "110"),
    _plan(
        "two-workspace-creates",
        [Client("A", clients.workspace_creator), Client("B", clients.workspace_creator)],
        "100 010",
        "110",
        before=Bucket,
    ),
    _plan("workspace-delete", [_DELETER, _CREATOR], "100 010", "110 011"),
    _plan(
        "workspace-delete-first-state",
        [_DELETER, Client("A", clients.apply)],
        "010",
        "100 110",
        before=_recorded,
    ),
    *(
        _plan(
            f"workspace-delete-declared{name}",
            [_DELETER, Client("A", clients.declared_apply), *others],
            *bounds,
            before=before,
        )
        for name, others, bounds, before in (
            ("", [], ("100 010", "110 200"), _recorded),
            ("-written", [], ("100 010", "110 200"), _workspace),
            ("-broken", [_BREAKER], ("000", "100 010"), _recorded),
        )
    ),
    _plan("workspace-safe-delete", [_SAFE_DELETER, _CREATOR], "100 010", "110 011", before=_workspace),
    _plan("two-deletes-of-nothing", [_A, _CI_D, _CI_E], "000", before=Bucket),
    *(
        _plan(f"workspace-{name}", who, "100 010", "011", before=before)
        for name, who, before in (
            ("delete-recorded", [_DELETER, _CREATOR], _recorded),
            ("delete-written", [_DELETER, _A], _written),
            ("safe-delete-recorded", [_SAFE_DELETER, _CREATOR], _recorded),
            ("safe-delete-written", [_SAFE_DELETER, _A], _written),
        )
    ),
    _plan("cloud-beside-native", [_CLOUD, Client("N", clients.native_apply)], "000", "001"),
    _plan(
        "cloud-breaks-native-lock",
        [Client("A", clients.cloud_impatient_with_a_gap), Client("N", clients.native_apply)],
        "001",
        "002",
    ),
    _plan(
        "cloud-breaks-native-lock-push",
        [Client("P", clients.cloud_impatient_push_back), Client("N", clients.native_apply)],
        "001",
        "002",
    ),
    _plan(
        "undeclare",
        [Client("A", clients.declared_apply), _UNDECLARER],
        "100 010",
        "110 200",
        before=_recorded,
    ),
    _plan("undeclare-beside-create", [_UNDECLARER, _CREATOR], "010", "110 200", before=_recorded),
    _plan(
        "undeclare-broken",
        [Client("A", clients.declared_apply), _UNDECLARER, _BREAKER],
        "000",
        "100 010",
        before=_recorded,
    ),
    _plan("writer-undeclares", [Client("U", clients.undeclare, f"{WRITERS}U")], "110", before=_recorded),
    _plan("without-lock", [_A, Client("W", clients.without_lock)], "110"),
    _plan("borrowed-id", [_A2, Client("B", clients.borrower)], "100", "110"),
    _plan("wrong-address-first-state", [_A, Client("W", clients.wrong_address)], "010", "110", before=Bucket),
    _plan("copied-lock", [_A, Client("B", clients.copier)], "110"),
    _plan("wrong-address", [_A, Client("W", clients.wrong_address)], "100", "110"),
    _plan("same-serial", [_A, Client("S", clients.same_serial)], "100"),
    _plan(
        "broken-lock-wrong-address", [_A, Client("W", clients.impatient_at_wrong_address)], "001", "101 011"
    ),
    _plan("undelete-broken", [Client("U", clients.undelete), _NAMING], "000", "100 010", before=_deleted),
    _plan(
        "undelete-three",
        [Client("U", clients.undelete, "ci"), Client("A", clients.apply, "ci"), _CI_K],
        "000",
        "100 010",
        before=_deleted,
    ),
    _plan("undelete", [_A, Client("U", clients.undelete)], "100", "010 200", before=_deleted),
    _plan("undelete-again", [Client("U", clients.undelete)], "110", "200", before=_deleted),
    _plan(
        "undelete-beside-delete",
        [Client("U", clients.undelete), Client("D", clients.delete)],
        "100 010",
        "110",
        before=_deleted,
    ),
    _plan("restore", [_WRITER, _RESTORER], "100 010", "110 200", before=_twice),
    _plan("restore-blindly", [_A, Client("X", clients.restore_blindly)], "100", "110", before=_twice),
    _plan("restore-alone", [_RESTORER], "110 200", "210", before=_twice),
    _plan("restore-foreign", [_RESTORER], "110", before=_two_lineages),
    _plan("restore-digests", [_A, _RESTORER], "000", "100", before=_twice_digests),
    _plan("restore-protected", [_A, _RESTORER], "000", "100", before=_twice, protected=True),
    _plan("restore-cloud", [_CLOUD, _RESTORER], "000", "100 010", before=_twice),
    _plan("restore-native", [_RESTORER, Client("N", clients.native_apply)], "000", "100", before=_twice),
    _plan("restore-broken", [_RESTORER, _NAMING], "000 100 001", "010 101 110", before=_twice),
    _plan(
        "restore-breaks-lock",
        [_A2, Client("R", clients.restore_after_a_break)],
        "001",
        "101 010",
        before=_twice,
    ),
    _plan(
        "restore-blindly-breaks-lock",
        [_A, Client("X", clients.restore_blindly_after_a_break)],
        "001",
        "101 011",
        before=_twice,
    ),
    _plan(
        "two-restores",
        [Client("R", clients.restore, "ci"), Client("S", clients.restore_as_another, "ci")],
        "100 010",
        "110",
        before=_twice,
    ),
    _plan(
        "restore-beside-delete", [_RESTORER, Client("D", clients.manage_delete)], "100", "010", before=_twice
    ),
    _plan("restore-frozen", [_WRITER, _FROZEN_RESTORER], "100 010", "110", before=_twice),
    _plan(
        "two-restores-frozen",
        [
            Client("R", clients.restore_under_the_freeze, "token:Z"),
            Client("S", clients.restore_the_second_under_the_freeze, "token:Z"),
        ],
        "100 010",
        "110 200",
        before=_twice_frozen,
    ),
    _plan(
        "two-restores-frozen-blindly",
        [
            Client("R", clients.restore_under_the_freeze, "token:Z"),
            Client("S", clients.restore_under_the_freeze_without_a_look, "token:Z"),
        ],
        "000",
        "100 010",
        before=_twice_frozen,
    ),
    _plan(
        "restore-frozen-for-a-while",
        [_A, Client("R", clients.restore_under_the_freeze, "token:Z")],
        "001",
        "101 011",
        before=_twice_frozen_for_a_while,
    ),
    _plan(
        "restore-frozen-by-another",
        [Client("R", clients.restore_under_the_freeze), Client("U", clients.unfreeze)],
        "100",
        "110",
        before=_twice_frozen,
    ),
    _plan(
        "restore-unfrozen",
        [Client("R", clients.restore_under_the_freeze, "token:Z"), Client("U", clients.unfreeze), _A],
        "000",
        "100 010",
        before=_twice_frozen,
    ),
    _plan(
        "restore-frozen-again",
        [
            Client("R", clients.restore_under_own_freeze, "ci"),
            Client("U", clients.unfreeze),
            Client("G", clients.freeze, "ci"),
        ],
        "000",
        "100 010",
        before=_twice,
    ),
    _plan("manage-delete", [_A, Client("D", clients.manage_delete)], "100", "010 110"),
    _plan("break", [_A, _B, _BREAKER], "000", "100 010"),
    _plan("break-late", [_A, _BREAKER], "100 010", "110"),
    _plan("break-restore", [_RESTORER, _BREAKER], "010", "110", before=_twice),
    _plan("break-protected", [_A, _B, _BREAKER], "000", "100", protected=True),
    _plan("freeze", [_WRITER, _FREEZER, Client("U", clients.unfreeze)], "000", "100 010"),
    _plan("freeze-cloud", [_CLOUD, _FREEZER], "000", "100 010"),
    _plan("freeze-native", [_FREEZER, Client("N", clients.native_apply)], "000", "100"),
    _plan("freeze-broken-lock", [_A2, _BREAKER, _FREEZER], "000", "100 001"),
    _plan("two-freezes", [_FREEZER, Client("G", clients.freeze_for_long)], "100 010", "110"),
    _plan("unfreeze", [_FREEZER, Client("U", clients.unfreeze)], "100 010", "110"),
    _plan("unfreeze-another", [_A, Client("U", clients.unfreeze_another)], "000", "100", before=_frozen),
    _plan("freeze-copied", [_FREEZER, Client("C", clients.freeze_copier, "token:F")], "000", "100 010"),
    _plan(
        "frozen", [_NAMING, Client("C", clients.freeze_copier, "token:Z")], "001", "100 010", before=_frozen
    ),
    _plan(
        "frozen-forced",
        [_UNNAMING, Client("C", clients.cloud_impatient), Client("K", clients.breaker)],
        "001",
        "100 010",
        before=_frozen,
    ),
    _plan(
        "frozen-for-a-while",
        [_A, Client("G", clients.freeze_for_long)],
        "001",
        "101 011",
        before=_frozen_for_a_while,
    ),
    _plan(
        "frozen-for-a-while-cloud",
        [_CLOUD, Client("D", clients.manage_delete)],
        "001",
        "101 011",
        before=_frozen_for_a_while,
    ),
    _plan(
        "frozen-for-a-while-restore",
        [_RESTORER, Client("U", clients.unfreeze)],
        "001",
        "101 011",
        before=_frozen_for_a_while,
    ),
    _plan("freeze-pattern", [_WRITER, _PATTERN_FREEZER], "001 100 010", "101 110 011", before=Bucket),
    _plan("freeze-pattern-two", [_A, _B, _PATTERN_FREEZER], "000", "001 100", before=Bucket),
    _plan(
        "freeze-pattern-read-before",
        [Client("A", clients.apply_that_reads_first), _PATTERN_FREEZER],
        "001 100",
        "101 110",
        before=Bucket,
    ),
    _plan("freeze-pattern-cloud", [_CLOUD, _PATTERN_FREEZER], "001 100", "101 110", before=_recorded),
    _plan("freeze-pattern-written", [_A, _PATTERN_FREEZER], "000", "100 010 001"),
    _plan(
        "freeze-pattern-undelete",
        [Client("U", clients.undelete), _PATTERN_FREEZER],
        "100 001",
        "110 101",
        before=_deleted,
    ),
    _plan(
        "freeze-pattern-undelete-broken",
        [Client("U", clients.undelete), _PATTERN_FREEZER, _BREAKER],
        "000",
        "100 010",
        before=_deleted,
    ),
    _plan(
        "freeze-pattern-until",
        [Client("A", clients.apply_that_reads_first), Client("F", clients.freeze_pattern_until)],
        "001",
        "101 011",
        before=Bucket,
    ),
    _plan(
        "two-freezes-of-a-pattern",
        [_A, _PATTERN_FREEZER, Client("G", clients.freeze_pattern)],
        "000",
        "001 100",
        before=Bucket,
    ),
    _plan(
        "unfreeze-pattern",
        [_A, _PATTERN_FREEZER, Client("U", clients.unfreeze_pattern)],
        "000",
        "001 100",
        before=Bucket,
    ),
    _plan(
        "unfreeze-pattern-written",
        [_A, _PATTERN_FREEZER, Client("U", clients.unfreeze_pattern)],
        "000",
        "001",
    ),
    _plan(
        "unfreeze-pattern-alone",
        [_PATTERN_FREEZER, Client("U", clients.unfreeze_pattern)],
        "100 010",
        "110 101",
    ),
    _plan("frozen-almost-over", [_WRITER], "001", "111", before=_frozen_for_a_while, tick=9),
    _plan(
        "writer-tries",
        [_WRITER, Client("W", clients.what_a_maintainer_may, f"{WRITERS}W")],
        "000",
        "100 010 001",
    ),
    _plan("reader-tries", [_A, Client("W", clients.what_a_writer_may, f"{READERS}W")], "000", "100 010"),
    _plan("writer-undeletes", [Client("U", clients.undelete, f"{WRITERS}U")], "110", before=_deleted),
    _plan("writer-unfreezes", [Client("U", clients.unfreeze, f"{WRITERS}U")], "110", before=_frozen),
    _plan(
        "writer-breaks-stuck-lock",
        [Client("B", clients.impatient_without_id, f"{WRITERS}B")],
        "001",
        "111",
        before=_stuck,
    ),
    _plan(
        "says-delete",
        [Client("A", clients.lock_says_delete, "ci"), Client("D", clients.delete, "ci")],
        "000",
        "100",
        before=Bucket,
    ),
    _plan("says-freeze", [Client("A", clients.lock_says_freeze), _NAMING], "000", "100"),
)
"""Every scenario with the bounds of the quick and of the long run, in the digits of `Bounds.parse`."""

LIMITS: Final = (
    Scenario("late-acquire", (_A, _NAMING), faults=1, repeats=0, before=_written, late_acquires=True),
    Scenario(
        "late-create",
        (_A, Client("D", clients.delete)),
        faults=1,
        repeats=0,
        excused=frozenset(Exemption) - {Exemption.LATE_CREATE},
    ),
    Scenario(
        "late-delete",
        (Client("D", clients.delete), _NAMING),
        faults=0,
        repeats=0,
        before=_written,
        excused=frozenset(Exemption) - {Exemption.LATE_DELETE},
    ),
)
"""Scenarios that each drop an assumption or an exemption of `safety.md`, and so violate an invariant."""

BY_NAME: Final[Mapping[str, Scenario]] = {
    scenario.name: scenario for scenario in (*(plan.scenario for plan in PLANS), *LIMITS)
}
