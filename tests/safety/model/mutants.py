"""Deliberate faults in the production code. A search must find each of them.

Each removes or changes a decision that keeps an invariant. Its edits name what they change, see `edits`: a
mutant whose target is gone or ambiguous is an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.safety.model import edits
from tests.safety.model.edits import (
    Argument,
    Before,
    Calls,
    Compares,
    Condition,
    Edit,
    NeverRaises,
    OnlyIf,
    Outcome,
    Replaced,
    Returns,
    Swapped,
    WithoutCall,
    WithoutKey,
    WithoutOperand,
)
from tests.safety.model.invariants import Invariant


@dataclass(frozen=True, slots=True)
class Mutant:
    """A deliberate fault.

    The search of `scenario` finds it within `bounds`: faults, repeats, ticks. `breaks` is the invariant that
    the shortest interleaving violates.
    """

    name: str
    scenario: str
    bounds: tuple[int, int, int]
    breaks: Invariant
    edits: tuple[Edit, ...]

    def apply(self, functions: Path) -> None:
        edits.apply(self.edits, functions)


_PUT: Final = "holdfast.s3.store:Store.write"
_STORED: Final = 'Stored(ObjectVersion("", "none", 0, datetime.now(UTC), {}, False))'
_DELETE_OBJECT: Final = "holdfast.s3.store:Store.delete"
_REMOVE_VERSION: Final = "holdfast.s3.store:Store.remove_version"
_IS_DECISION: Final = "holdfast.s3.retry:is_decision"
_ACQUIRE: Final = "holdfast.state.acquiring:acquire_or_read"
_ACQUIRED_WITH: Final = "holdfast.state.held:HeldLock.was_acquired_with"
_OF_OBJECT: Final = "holdfast.state.held:of_object"
_REMOVE: Final = "holdfast.state.held:_remove"
_REMOVE_READ: Final = "holdfast.state.held:remove"
_READ_AND_REMOVE: Final = "holdfast.state.held:read_and_remove"
_TAKE_LOCK: Final = "holdfast.memory:Memory.take_lock"
_RELEASE: Final = "holdfast.state.releasing:release"
_FORCE_UNLOCK_NAMED: Final = "holdfast.state.removing:force_unlock_named"
_FORCE_UNLOCK_UNNAMED: Final = "holdfast.state.removing:force_unlock_unnamed"
_IS_OLD_ENOUGH: Final = "holdfast.state.removing:_is_old_enough"
_LEFT_LOCK: Final = "holdfast.state.delete:_release_left_lock"
_LOOK: Final = "holdfast.state.fence:look"
_PUT_FENCED: Final = "holdfast.state.fence:put_fenced"
_OWN_LOCK: Final = "holdfast.state.fence:own_lock"
_READ: Final = "holdfast.state.read:_current"
_WRITE: Final = "holdfast.state.write:write"
_DELETE: Final = "holdfast.state.delete:delete"
_CHECK_LOCK: Final = "holdfast.state.guards:check_lock"
_CHECK_SUCCESSION: Final = "holdfast.state.guards:check_succession"
_COUNTS_AS_WRITTEN: Final = "holdfast.state.guards:counts_as_written"
_UNDECLARE: Final = "holdfast.cloud.workspaces:undeclare"
_DELETE_RECORD: Final = "holdfast.cloud.workspaces:_delete_record"
_UNDELETE: Final = "holdfast.state.undelete:undelete"
_UNDELETE_AGAIN: Final = "holdfast.state.undelete:_write_again"
_LEARN: Final = "holdfast.memory:Memory.learn"
_COMMIT: Final = "holdfast.cloud.uploads:commit"
_DELETE_WORKSPACE: Final = "holdfast.cloud.workspaces:_delete"
_CHECK_RECORD: Final = "holdfast.cloud.workspaces:_check_record"
_CREATE_RECORD: Final = "holdfast.cloud.records:create"
_MAY_BE_CURRENT: Final = "holdfast.cloud.uploads:_may_be_current"
_WRITTEN_UNDER: Final = "holdfast.state.guards:was_written_under"
_COMPARE: Final = "holdfast.cloud.uploads:_compare"
_COMMITTED: Final = "holdfast.state.write:committed"
_CHECK_BASE: Final = "holdfast.state.guards:check_base"
_RELEASE_EXACTLY: Final = "holdfast.state.releasing:release_exactly"
_FORCE_UNLOCK_VERSION: Final = "holdfast.state.removing:force_unlock_version"
_RESTORE: Final = "holdfast.state.restore:restore"
_OWN_FREEZE: Final = "holdfast.state.restore:_own_freeze"
_RESTORE_AGAIN: Final = "holdfast.state.restore:_write_again"
_IS_RESTORED: Final = "holdfast.state.restore:_is_restored"
_FOLLOWING: Final = "holdfast.state.restore:_following"
_IS_ENDED: Final = "holdfast.state.held:HeldFreeze.is_ended_freeze"
_FREEZE: Final = "holdfast.state.freezing.states:freeze"
_UNFREEZE: Final = "holdfast.state.freezing.states:unfreeze"
_FREEZE_PATTERN: Final = "holdfast.state.freezing.patterns:freeze_pattern"
_FREEZE_MATCHING: Final = "holdfast.state.freezing.patterns:freeze_matching"
_UNFREEZE_PATTERN: Final = "holdfast.state.freezing.patterns:unfreeze_pattern"
_PLACE: Final = "holdfast.state.freezing.states:place"
_REQUIRE_NOT_FROZEN: Final = "holdfast.state.freezing.record:require_not_frozen"
_IS_OLDER: Final = "holdfast.state.freezing.record:_is_older"
_BREAK: Final = "holdfast.state.removing:break_exactly"
_CHECK_REMOVAL: Final = "holdfast.state.removing:_check_removal"
_IS_OWN: Final = "holdfast.state.removing:_is_own"
_ANSWER_ACQUIRE: Final = "terraform_http.handler:_acquire"
_ANSWER_RELEASE: Final = "terraform_http.handler:_release"
_ROUTE_CHECK: Final = "gateway.router:Route.check"
_NEVER_ACKNOWLEDGED: Final = "holdfast.state.guards:was_never_acknowledged"


_RELEASES_ANYWAY: Final = Before(_OWN_LOCK, "add_note", "_release(work, acquired)", which=(1, 4))
_KEEPS_ITS_LOCK: Final = Returns("holdfast.state.fence:_release", "None")
_REMOVES_WHAT_IS_THERE: Final = Before(_REMOVE, "_remove_version", "lock = read(store, name) or lock")
_FOR_EACH: Final = "rest = _for_each(store, pattern.pattern, (LOCKS, STATES), place, freeze)"
_IS_LIFTED: Final = "is_lifted = _entry(record.entries(store.read(FROZEN_PATTERNS)), freeze_id) is None"
_MARK: Final = 'mark = Freeze(metadata["freeze"], lock_info.reason_of_freeze(identity.info), until)'
_FREEZE_IS_A_LOCK: Final = Condition(_CHECK_REMOVAL, "CommandLock", "False")


def _at(where: str, *changes: Edit) -> tuple[str, tuple[Edit, ...]]:
    """Return the scenario that shows a fault, with its bounds if they are not all 0, and the edits."""
    return where, changes


_BY_INVARIANT: Final[Mapping[Invariant, Mapping[str, tuple[str, tuple[Edit, ...]]]]] = {
    Invariant.ONE_HOLDER: {
        "an acquire that finds the lock released meanwhile and takes that for success": _at(
            "three-applies",
            Replaced(
                _ACQUIRE,
                "if lock is None:\n    continue",
                'if lock is None:\n    return LockIdentity("gone", info, caller.principal)',
            ),
        ),
        "an acquire whose 412 counts as success": _at("two-applies", Outcome(_PUT, 412, _STORED)),
        "a client that sends the holder's lock info holds the lock": _at(
            "copied-lock", WithoutOperand(_ACQUIRED_WITH, "principal")
        ),
        "a delete that does not acquire the lock": _at(
            "delete", Calls(_OWN_LOCK, "acquire_own", 'LockIdentity("none", info, work.caller.principal)')
        ),
        "a delete releases its lock before it deletes": _at(
            "delete-broken", Before(_DELETE, "IfMatch", "held.remove_acquired(store, name, acquired)")
        ),
    },
    Invariant.SEEN: {
        "a restore whose outcome is unknown releases its lock": _at(
            "shared-token-restore 100", _RELEASES_ANYWAY
        ),
        "an undelete whose outcome is unknown releases its lock": _at("undelete-three 100", _RELEASES_ANYWAY),
        "a write without If-Match": _at("broken-lock-digests", WithoutKey(_PUT, "IfMatch")),
        "a write that reads the lock before the state": _at(
            "broken-lock-gap", Swapped(_LOOK, "read_state", "read")
        ),
        "a write without a lock is let through": _at(
            "without-lock", NeverRaises(_CHECK_LOCK, "LockRequired")
        ),
        "a client that knows a lock's ID may write under it": _at(
            "borrowed-id", WithoutOperand(_CHECK_LOCK, "principal")
        ),
        "a delete without If-Match": _at("delete", WithoutKey(_DELETE_OBJECT, "IfMatch")),
        "an undelete that writes over what is there": _at(
            "undelete-broken", OnlyIf(_PUT, "IfNoneMatch", 'key.endswith(".tflock")')
        ),
        "an undelete that does not read the lock again": _at(
            "undelete-broken", WithoutCall(_PUT_FENCED, "check_lock")
        ),
        "a write over an old cached version reads the lock before the state": _at(
            "broken-lock-gap",
            Before(_WRITE, "check_lock", "if remembered and not guess:\n    current = read_current(work)"),
        ),
        "a write over an old cached version does not read the lock after the state": _at(
            "broken-lock-gap",
            Replaced(
                _WRITE,
                "current, lock = fence.look(work, partial(_current, guess=guess))",
                "current = _current(work, guess)\n"
                "if guess or not remembered:\n"
                "    lock = fence.held.read(work.store, work.name)",
            ),
        ),
        "a version is cached whose ETag another version can have": _at(
            "broken-lock-push-digests", WithoutOperand(_LEARN, "has_own_etag")
        ),
        "an upload without a base": _at("cloud-breaks-native-lock 001", WithoutCall(_WRITE, "check_base")),
        "an upload with force without a base": _at(
            "cloud-breaks-native-lock-push 001", OnlyIf(_WRITE, "check_base", "not upload.force")
        ),
        "a client that knows the ID of a workspace may save under its lock": _at(
            "cloud-borrower", WithoutOperand(_CHECK_LOCK, "principal")
        ),
        "a restore goes over what the operator has not seen": _at(
            "restore", NeverRaises(_FOLLOWING, "BaseChanged")
        ),
        "a restore goes over whatever lies below a version that nobody acknowledged": _at(
            "restore-breaks-lock 001",
            Condition(
                _FOLLOWING,
                "base",
                "wanted.base not in (None, current.version.version_id) "
                "and not guards.was_never_acknowledged(current, lock)",
            ),
        ),
        "a restore does not read the lock again": _at(
            "restore-broken", WithoutCall(_PUT_FENCED, "check_lock")
        ),
        "a restore under a freeze need not name the current version": _at(
            "two-restores-frozen-blindly", NeverRaises(_RESTORE, "InvalidRequest")
        ),
        "a restore reads the lock before the state": _at(
            "restore-broken 100",
            Replaced(
                _RESTORE_AGAIN,
                "current, lock = fence.look(work, read_current)",
                "lock = fence.held.read(work.store, name)\ncurrent = read_current(work)",
            ),
        ),
        "a delete goes over what the operator has not seen": _at(
            "manage-delete", Condition(_DELETE, "check", "False")
        ),
        "an undelete whose PutObject failed its condition goes round once more": _at(
            "undelete-broken",
            Before(
                _UNDELETE_AGAIN,
                "_of_first_try",
                "fence.put_fenced(work, new, fence.look(work, read_current), require_own)",
            ),
        ),
        "a delete takes the cached version for the current state": _at(
            "delete",
            Replaced(
                _DELETE,
                "current = store.read(name.state_key)",
                "version = work.memory and work.memory.take(name)\n"
                'cached = Object(version, b"", version.last_modified) if version else None\n'
                "current = cached or store.read(name.state_key)",
            ),
        ),
    },
    Invariant.KEPT: {
        "a state reads as none": _at("two-applies", Condition(_READ, "stored", "True")),
        "the state is stored in other bytes": _at(
            "two-applies", Argument(_PUT_FENCED, "write", 1, "new.body.replace(b' ', b'')")
        ),
        "a read answers other bytes": _at(
            "two-applies", Replaced(_READ, "return stored.body", "return stored.body.replace(b' ', b'')")
        ),
        "a write tidies up the version that it replaces": _at(
            "two-applies",
            Before(
                _PUT_FENCED,
                "check_lock",
                "if current:\n    store.remove_version(name.state_key, current.version.version_id)",
            ),
        ),
        "a commit that does not compare what was uploaded with what was announced": _at(
            "cloud-mixed-up", NeverRaises(_COMPARE, "UploadAltered", which=(0, 2))
        ),
        "a missing upload that counts as written": _at(
            "cloud-forgetful", Condition(_COMMIT, "written", "False", which=(0, 2))
        ),
        "a commit takes a document of the current serial for the current one": _at(
            "cloud-same-serial",
            Replaced(
                _WRITE,
                "same_bytes = current is not None and current.sha256 == new.sha256",
                "same_bytes = current is not None and current.revision == revision",
            ),
        ),
        "another's workspace is taken for one's own": _at(
            "two-workspace-creates", WithoutOperand(_CREATE_RECORD, "created_by")
        ),
        "an undelete takes what somebody else made for its own": _at(
            "undelete 100", WithoutOperand("holdfast.state.undelete:_made_before", "lock_id")
        ),
    },
    Invariant.OWN_LOCK: {
        "an acquire without If-None-Match": _at("two-applies", WithoutKey(_PUT, "IfNoneMatch")),
        "a release that removes whatever lock is there by then": _at(
            "broken-lock", WithoutKey(_REMOVE_VERSION, "VersionId")
        ),
        "a release of a protected lock without If-Match": _at(
            "broken-lock-protected", WithoutKey(_DELETE_OBJECT, "IfMatch")
        ),
        "a release that does not look whose lock it is": _at(
            "broken-lock",
            Condition(_RELEASE, "was_acquired_with", "not received.names_only_its_id"),
        ),
        "a force-unlock that goes on to a newer lock": _at("broken-lock-three", _REMOVES_WHAT_IS_THERE),
        "a force-unlock that removes another lock than the one it names": _at(
            "broken-lock-three",
            Replaced(_FORCE_UNLOCK_NAMED, "is_named = lock.info.id == lock_id", "is_named = True"),
        ),
        "a release removes the cached lock of another document": _at(
            "own-lock 001", WithoutOperand(_TAKE_LOCK, "digest")
        ),
        "a release with a cached lock removes whatever lock is there": _at(
            "broken-lock",
            Replaced(
                _READ_AND_REMOVE,
                "removal = Removal(version_id, beside.submit(_remove_version, store, name, version_id))",
                "removal = Removal(version_id, beside.submit(lambda: bool(store.discard(name.lock_key))))",
            ),
        ),
        "a release with a cached lock goes on to the next lock with its ID": _at(
            "lock-of-the-same-id 100", Replaced(_RELEASE, "if removal:\n    return Released(info.id)", "pass")
        ),
        "a release that ignores the ID in the query": _at(
            "release-by-query 001", Argument(_RELEASE, "of_release", 1, "None")
        ),
        "a release by the ID in the query that takes the ID of whatever lock is there": _at(
            "release-by-query",
            Replaced(
                _RELEASE,
                "received = lock_info.of_release(body, lock_id)",
                "if lock_id:\n"
                "    there = held.read(work.store, work.name)\n"
                "    return there and removing.force_unlock_named(work, there, there.info.id)\n"
                "received = lock_info.of_release(body, lock_id)",
            ),
        ),
        "a force-unlock without an ID that removes a lock one second old": _at(
            "broken-lock-without-id", Returns(_IS_OLD_ENOUGH, "True")
        ),
        "a force-unlock without an ID that removes a lock ten seconds old": _at(
            "broken-lock-ten-seconds 001", Compares(_IS_OLD_ENOUGH, ">", ">=")
        ),
        "an unlock of a workspace that drops whatever lock is there": _at(
            "cloud-broken-lock", Condition(_RELEASE_EXACTLY, "was_acquired_with", "False")
        ),
        "an unlock of a workspace by the lock's ID alone": _at(
            "cloud-unlocker",
            Condition(_RELEASE_EXACTLY, "was_acquired_with", "lock.info.id != info.id"),
        ),
        "a force-unlock of a workspace that ignores which lock was seen": _at(
            "cloud-operator 001",
            Replaced(
                _FORCE_UNLOCK_VERSION, "was_seen = lock.identity.version_id == version_id", "was_seen = True"
            ),
        ),
        "two restores of a version share a lock": _at(
            "two-restores",
            Argument(_RESTORE, "of_verb", 0, 'f"{work.name.state_key}?versionId={wanted.version_id}"'),
        ),
        "a break names the lock by its ID alone": _at(
            "break-restore 010",
            Before(_BREAK, "_check_removal", "is_named = lock.info.id == lock_id"),
        ),
        "a break removes a freeze": _at("frozen-forced", _FREEZE_IS_A_LOCK),
        "a freeze is changed by writing over it": _at(
            "two-freezes",
            Before(
                _PLACE,
                "acquire_or_read",
                "from holdfast.s3.objects import IfMatch\n"
                "lock = held.read(work.store, work.name)\n"
                "if lock and lock.freeze:\n"
                "    metadata = {'locked-by': work.caller.principal, **wanted.metadata()}\n"
                "    condition = IfMatch(lock.version.etag)\n"
                "    work.store.write(work.name.lock_key, info.to_json(), condition, metadata=metadata)\n"
                "    return",
            ),
        ),
        "a freeze has ended by Lambda's clock": _at(
            "frozen-for-a-while",
            Replaced(
                _IS_ENDED,
                "return self.mark.until is not None and self.mark.until <= self.read_at",
                "return self.mark.until is not None and self.mark.until <= datetime.now(UTC)",
            ),
        ),
        "an acquire lifts a freeze that has not ended": _at(
            "freeze-cloud", WithoutOperand(_ACQUIRE, "is_ended_freeze")
        ),
        "an acquire lifts a later freeze than the ended one": _at(
            "frozen-for-a-while 001", _REMOVES_WHAT_IS_THERE
        ),
        "an unfreeze lifts whatever freeze there is": _at(
            "unfreeze-another", NeverRaises(_UNFREEZE, "LockNotMatched")
        ),
        "a release of a freeze by the document that everybody is told": _at(
            "frozen", WithoutOperand(_RELEASE, "CommandLock")
        ),
        "a force-unlock removes a freeze": _at("frozen", _FREEZE_IS_A_LOCK),
        "a freeze ends a second early": _at(
            "frozen-almost-over 001",
            Replaced(
                _IS_ENDED,
                "return self.mark.until is not None and self.mark.until <= self.read_at",
                "from datetime import timedelta\n"
                "return self.mark.until is not None "
                "and self.mark.until <= self.read_at + timedelta(seconds=1)",
            ),
        ),
        "a delete of nothing releases any lock of its token that says delete": _at(
            "says-delete",
            Condition(_LEFT_LOCK, "was_left", "left is None or left.info.operation != _OPERATION"),
        ),
        "a freeze is read as the lock of a command": _at("frozen", Condition(_OF_OBJECT, "metadata", "True")),
        "a delete of nothing does not look at the state after the lock": _at(
            "two-deletes-of-nothing", Condition(_LEFT_LOCK, "read_version", "True")
        ),
    },
    Invariant.FORWARD: {
        "the serial is not checked": _at("long-apply 010", NeverRaises(_CHECK_SUCCESSION, "SerialNotNewer")),
        "an equal serial passes": _at("same-serial", Compares(_CHECK_SUCCESSION, "<=", "<")),
        "the lineage is not checked": _at("wrong-address", NeverRaises(_CHECK_SUCCESSION, "LineageChanged")),
        "a push of a file that is no state empties the state": _at(
            "push-of-no-state", WithoutCall(_WRITE, "check_not_blank")
        ),
        "over a write that nobody acknowledged a file that is no state goes": _at(
            "broken-lock-push-of-no-state 001",
            OnlyIf(
                _WRITE,
                "check_not_blank",
                "current is None or not guards.was_never_acknowledged(current, lock)",
            ),
        ),
        "a write in the lock's own second counts as not acknowledged": _at(
            "wrong-address-first-state", Compares(_NEVER_ACKNOWLEDGED, ">", ">=")
        ),
        "an own earlier save counts as not acknowledged": _at(
            "long-apply 011", WithoutOperand(_NEVER_ACKNOWLEDGED, "lock_id")
        ),
        "over a write that nobody acknowledged everything goes": _at(
            "broken-lock-wrong-address 001",
            Before(
                _CHECK_SUCCESSION,
                "last_acknowledged_revision",
                "if was_never_acknowledged(current, lock):\n    return",
            ),
        ),
        "a write is cached with the time of another clock": _at(
            "wrong-address-first-state",
            Argument(_PUT, "_object_version", 2, "responded_at.replace(year=2100)"),
        ),
        "an announcement of the current serial passes, under whichever lock that was written": _at(
            "cloud-same-serial", WithoutOperand(_WRITTEN_UNDER, "lock_id")
        ),
        "a lock that was acquired again vouches for what was written under the first": _at(
            "cloud-interrupted-broken-lock 101", WithoutOperand(_WRITTEN_UNDER, "last_modified")
        ),
        "a restore of another lineage": _at("restore-foreign", NeverRaises(_FOLLOWING, "LineageChanged")),
        "a restore keeps the serial": _at(
            "restore",
            Replaced(
                _RESTORE_AGAIN,
                "new = NewVersion(following, source.with_serial(following.revision.serial), notes)",
                "new = NewVersion(following, source.body, notes)",
            ),
        ),
        "a restore takes the serial of a version that nobody acknowledged": _at(
            "restore-blindly-breaks-lock 001",
            Replaced(
                _FOLLOWING,
                "serials = [revision.serial for revision in (current.revision, acknowledged) if revision]",
                "serials = [revision.serial for revision in (acknowledged,) if revision]",
            ),
        ),
    },
    Invariant.REPEATED: {
        "an unfreeze of a pattern takes its own first try for another change of the record": _at(
            "unfreeze-pattern-alone 100",
            Replaced(_UNFREEZE_PATTERN, _IS_LIFTED, "is_lifted = False"),
        ),
        "an acquire whose 412 is always somebody else's lock": _at(
            "two-applies 100", Condition(_ACQUIRE, "was_acquired_with", "False")
        ),
        "S3's 409 for two writers at once counts as success": _at(
            "first-state 100", Outcome(_PUT, 409, _STORED)
        ),
        "S3's 503 for a throttled write counts as success": _at(
            "two-applies 100", Outcome(_PUT, 503, _STORED), Returns(_IS_DECISION, "True")
        ),
        "a write whose 412 is always somebody else's state": _at(
            "two-applies 100", Condition(_WRITE, "same_bytes", "False", which=(0, 2))
        ),
        "an upload that is the current version is not recognised": _at(
            "cloud-two-applies 010", Condition(_COMMITTED, "upload", "True")
        ),
        "a repeated one-step write that is refused for its own serial": _at(
            "cloud-at-once 010",
            Replaced(
                _MAY_BE_CURRENT, "return current.sha256 == hashlib.sha256(body).hexdigest()", "return False"
            ),
        ),
        "a repeated commit that writes twice": _at(
            "cloud-two-applies 010",
            Condition(_WRITE, "same_bytes", "not upload and same_bytes", which=(0, 2)),
            OnlyIf(_WRITE, "check_base", "not same_bytes"),
        ),
        "a lock of a workspace that says when it was asked for": _at(
            "cloud-two-applies 010",
            Replaced(
                "holdfast.cloud.locking:lock",
                "return acquiring.acquire_own(work, lock_info(workspace, work.caller))",
                "info = dict(lock_info(workspace, work.caller).document)\n"
                "info['Created'] = datetime.now(UTC).isoformat()\n"
                "return acquiring.acquire_own(work, LockInfo(info))",
            ),
        ),
        "an unlock of a workspace that S3 confirms at its second attempt is refused": _at(
            "cloud-two-applies 100",
            Replaced(
                _RELEASE_EXACTLY,
                "return Released(info.id, held.remove(work.store, work.name, lock))",
                "marker_created = held.remove(work.store, work.name, lock)\n"
                "if len(work.store.budget.requests) > 2:\n"
                '    raise LockNotMatched("gone")\n'
                "return Released(info.id, marker_created)",
            ),
        ),
        "a repeated delete of a workspace does not ask whether its state was deleted": _at(
            "workspace-delete 010", WithoutOperand(_CHECK_RECORD, "state_key")
        ),
        "a delete of a workspace deletes whatever record is there in the end": _at(
            "workspace-delete",
            Replaced(
                _DELETE_WORKSPACE,
                "if record:\n    records.delete(store, name, record)",
                "record = store.read(name.record_key)\nif record:\n    records.delete(store, name, record)",
            ),
        ),
        "a repeated delete of a workspace deletes its first state": _at(
            "workspace-delete-first-state 010", NeverRaises(_DELETE_WORKSPACE, "_just_deleted")
        ),
        "a repeated safe delete of a workspace deletes what was made since": _at(
            "workspace-safe-delete 010",
            Condition(_DELETE_WORKSPACE, "record", "record and not minted_at", which=(0, 2)),
        ),
        "a repeated delete of a workspace leaves the record that the first has left": _at(
            "workspace-safe-delete 010",
            Replaced(_CHECK_RECORD, "until = record.version.last_modified", "until = None"),
        ),
        "a repeated undeclare deletes a record that was created since": _at(
            "undeclare-beside-create 010", WithoutOperand(_DELETE_RECORD, "seen")
        ),
        "a restore does not ask what was restored already": _at(
            "restore-alone 100", Returns(_IS_RESTORED, "wanted.version_id == current.version.version_id")
        ),
        "a version does not tell what it was restored from": _at(
            "restore-blindly 100", WithoutKey("holdfast.state.current_state:parse_metadata", "restored_from")
        ),
        "an undelete does not recognise what it made": _at(
            "undelete-again 100", Returns("holdfast.state.undelete:_made_before", "None")
        ),
        "a repeated delete of a workspace does not ask whether its record was deleted": _at(
            "workspace-delete-recorded 010", WithoutOperand(_CHECK_RECORD, "record_key")
        ),
        "a repeated delete of a workspace deletes the state that was made since": _at(
            "workspace-delete-written 010", WithoutOperand(_DELETE_WORKSPACE, "state_key")
        ),
    },
    Invariant.HELD: {
        "a write that does not read the lock first": _at("broken-lock", WithoutCall(_WRITE, "check_lock")),
        "a write that does not read the lock again": _at(
            "broken-lock", WithoutCall(_PUT_FENCED, "check_lock")
        ),
        "a retried write that skips the checks": _at(
            "broken-lock-digests",
            WithoutCall(_WRITE, "check_same_lock", which=(1, 2)),
            *(OnlyIf(_WRITE, check, "attempt == 0") for check in ("check_lock", "check_succession")),
            Argument(_WRITE, "put_fenced", 3, "check_same_lock if attempt == 0 else (lambda _: None)"),
        ),
        "the same bytes are acknowledged without a look at the lock": _at(
            "broken-lock 010",
            Before(
                _WRITE,
                "check_lock",
                "if current and current.sha256 == new.sha256:\n"
                "    return Written(revision, None, current.version.version_id, None, new_version=False)",
            ),
        ),
        "a commit that does not read the lock again": _at(
            "cloud-broken-lock",
            Argument(_WRITE, "put_fenced", 3, "(lambda _: None) if upload else check_same_lock"),
        ),
        "a commit that adopts whatever lock is held": _at(
            "cloud-broken-lock",
            OnlyIf(_WRITE, "check_lock", "not upload"),
            WithoutCall(_WRITE, "check_upload_lock"),
        ),
        "an upload that is the current version counts as written without a look at the lock": _at(
            "cloud-broken-lock 010",
            Before(
                _WRITE,
                "check_lock",
                "if upload and current and current.upload == upload.key:\n"
                "    return Written(revision, None, current.version.version_id, None, new_version=False)",
            ),
        ),
        "an upload that was removed counts as written without a look at the lock": _at(
            "cloud-broken-lock 010",
            WithoutCall(_COMMITTED, "check_lock"),
            WithoutCall(_COMMITTED, "check_upload_lock"),
        ),
        "an upload with force goes over a lock": _at(
            "cloud-broken-lock-push",
            OnlyIf(_WRITE, "check_lock", "not (upload and upload.force)"),
            OnlyIf(_WRITE, "check_upload_lock", "not upload.force"),
        ),
        "what matches a pattern is listed before the record of the freeze": _at(
            "freeze-pattern",
            Replaced(
                _FREEZE_PATTERN, "return _recorded(store, wanted, begun_for), place", "return wanted, place"
            ),
            Replaced(_FREEZE_MATCHING, _FOR_EACH, f"{_FOR_EACH}\n_recorded(store, pattern, None)"),
        ),
        "a freeze of a pattern does not list locks": _at(
            "freeze-pattern",
            Replaced(_FREEZE_MATCHING, _FOR_EACH, _FOR_EACH.replace("LOCKS, STATES", "STATES,")),
        ),
        "a freeze of a pattern lists states before locks": _at(
            "freeze-pattern-two",
            Replaced(_FREEZE_MATCHING, _FOR_EACH, _FOR_EACH.replace("LOCKS, STATES", "STATES, LOCKS")),
        ),
        "a freeze of a pattern lists locks alone": _at(
            "freeze-pattern-written",
            Replaced(_FREEZE_MATCHING, _FOR_EACH, _FOR_EACH.replace(", STATES", ",")),
        ),
        "a freeze of a pattern takes each lock for its freeze": _at(
            "freeze-pattern-written", Calls(_FREEZE_MATCHING, "place", "None")
        ),
        "a first write does not look for frozen patterns": _at(
            "freeze-pattern-read-before", WithoutCall(_WRITE, "require_creatable")
        ),
        "an undelete does not look for frozen patterns": _at(
            "freeze-pattern-undelete", WithoutCall(_UNDELETE_AGAIN, "require_not_frozen", which=(0, 2))
        ),
        "an undelete does not look for frozen patterns when its first try took effect late": _at(
            "freeze-pattern-undelete-broken 100",
            WithoutCall(_UNDELETE_AGAIN, "require_not_frozen", which=(1, 2)),
        ),
        "a lock of the record's own second counts as older": _at(
            "freeze-pattern", Compares(_IS_OLDER, "<", "<=")
        ),
        "a freeze of a pattern ends by another clock than S3's": _at(
            "freeze-pattern-until", Argument(_REQUIRE_NOT_FROZEN, "has_ended", 0, "datetime.now(UTC)")
        ),
        "a restore under any freeze of its caller": _at(
            "restore-frozen-again", WithoutOperand(_OWN_FREEZE, "freeze_id")
        ),
        "a restore under somebody else's freeze": _at(
            "restore-frozen-by-another", WithoutOperand(_OWN_FREEZE, "caller")
        ),
        "a restore under a freeze does not read the lock again": _at(
            "restore-unfrozen", WithoutCall(_PUT_FENCED, "check_lock")
        ),
        "a restore under a freeze that has ended meanwhile": _at(
            "restore-frozen-for-a-while 001", WithoutOperand(_RESTORE_AGAIN, "is_ended_freeze")
        ),
        "a write under a freeze by its creator": _at(
            "freeze-copied", WithoutOperand(_CHECK_LOCK, "is_frozen")
        ),
        "a delete whose lock is gone is acknowledged": _at(
            "delete-broken", Condition(_DELETE, "lock", "False")
        ),
        "an undeclare whose lock is gone is acknowledged": _at(
            "undeclare-broken", NeverRaises(_DELETE_RECORD, "DeleteOutcomeUnknown")
        ),
    },
    Invariant.RELEASED: {
        "a release that leaves the lock": _at("two-applies", Returns(_REMOVE, "False")),
        "an unlock of a workspace that says that the held lock is gone": _at(
            "cloud-two-applies", Condition(_RELEASE_EXACTLY, "lock", "True", which=(0, 2))
        ),
        "a release that answers and does nothing": _at(
            "two-applies", Before(_RELEASE, "at", "return Released(None)")
        ),
        "a delete that keeps its lock": _at("delete", _KEEPS_ITS_LOCK),
        "a release with a cached lock is answered before it has read the lock": _at(
            "broken-lock 100",
            Replaced(
                _RELEASE,
                "if lock is None:\n    return Released(info.id)",
                "if lock is None or removal:\n    return Released(info.id)",
            ),
        ),
        "a release removes the cached lock, and not the lock that it has read": _at(
            "broken-lock 100", WithoutOperand(_REMOVE_READ, "version_id")
        ),
        "a release with a cached lock does not look whether S3 has removed it": _at(
            "two-applies 100", Replaced(_REMOVE_READ, "is_gone = removal.is_done.result()", "is_gone = True")
        ),
        "a release with a cached lock is answered though S3 protects the version": _at(
            "broken-lock-protected",
            Replaced(
                _REMOVE_READ, "return not is_gone and _delete_by_etag(store, name, lock)", "return False"
            ),
        ),
        "a restore keeps its lock": _at("restore", _KEEPS_ITS_LOCK),
        "an undeclare keeps its lock": _at("undeclare", _KEEPS_ITS_LOCK),
        "an undelete keeps its lock": _at("undelete", _KEEPS_ITS_LOCK),
        "a delete is answered with success though its lock may be left": _at(
            "delete 100", Condition(_OWN_LOCK, "failure", "False", which=(2, 3))
        ),
        "a restore is answered with success though its lock may be left": _at(
            "restore-alone 100", Condition(_OWN_LOCK, "failure", "False", which=(2, 3))
        ),
        "an undelete is answered with success though its lock may be left": _at(
            "undelete-again 100", Condition(_OWN_LOCK, "failure", "False", which=(2, 3))
        ),
    },
    Invariant.FOLLOWED: {
        "a late commit of its own keeps the holder's next one out": _at(
            "cloud-long-apply 210", Condition(_CHECK_BASE, "was_written_under", "False")
        ),
        "a delete whose outcome is unknown releases its lock": _at("cloud-delete 100", _RELEASES_ANYWAY),
        "a delete of a workspace that has only a record does not acquire the lock": _at(
            "workspace-delete-declared",
            Calls(_DELETE_WORKSPACE, "_delete_record", "records.delete(store, name, record)"),
        ),
        "a delete of a workspace releases its lock before it deletes the record": _at(
            "workspace-delete-declared-written",
            WithoutKey(_DELETE_WORKSPACE, "then"),
            Replaced(_DELETE_WORKSPACE, "return removed", "delete_record()\nreturn removed"),
        ),
        "a repeated delete of a workspace releases the lock of the first, which deletes the record": _at(
            "workspace-delete-declared-written 010", Condition(_DELETE, "then", "True", which=(0, 2))
        ),
        "a write that nobody acknowledged counts as acknowledged": _at(
            "broken-lock 001", Calls(_CHECK_SUCCESSION, "last_acknowledged_revision", "current.revision")
        ),
        "a forced push is compared with the current state": _at(
            "push", Condition(_CHECK_SUCCESSION, "COMPARED_BY_CLIENT", "False")
        ),
        "a write that does not follow the cached version is refused": _at(
            "push", Condition(_WRITE, "guess", "False")
        ),
        "a write over an old cached version does not look for the current state": _at(
            "two-applies",
            Replaced(_WRITE, "guess = remembered if attempt == 0 else None", "guess = remembered"),
        ),
        "an upload whose base must be current, also over what nobody acknowledged": _at(
            "cloud-breaks-lock 001",
            Condition(_CHECK_BASE, "was_never_acknowledged", "version == upload.base"),
        ),
        "a document that was saved under this lock may not be announced once more": _at(
            "cloud-interrupted", Returns(_WRITTEN_UNDER, "False")
        ),
        "a restore does not read the lock first": _at(
            "restore-broken 001", WithoutCall(_RESTORE_AGAIN, "require_own")
        ),
        "an undeclare does not acquire the lock": _at(
            "undeclare", Calls(_OWN_LOCK, "acquire_own", 'LockIdentity("none", info, work.caller.principal)')
        ),
        "an undeclare releases its lock before it deletes": _at(
            "undeclare",
            Before(_DELETE_RECORD, "read", "held.remove_acquired(store, name, acquired)", which=(0, 1)),
        ),
        "a frozen pattern refuses a first write whatever the ages": _at(
            "freeze-pattern 001", Returns(_IS_OLDER, "False")
        ),
        "a freeze is told by its operation": _at(
            "says-freeze",
            Condition(_OF_OBJECT, "metadata", "identity.info.operation != lock_info.FREEZE"),
            Replaced(_OF_OBJECT, _MARK, 'mark = Freeze("", "", None)'),
            NeverRaises("holdfast.state.acquiring:acquire", "InvalidLockInfo"),
        ),
    },
    Invariant.DELETED: {
        "a delete that found another state and says that it is deleted": _at(
            "delete", NeverRaises(_DELETE, "RacedWriter")
        ),
        "an undelete does not compare the delete marker": _at(
            "undelete-beside-delete 010", NeverRaises("holdfast.state.undelete:_newest", "BaseChanged")
        ),
    },
    Invariant.CURRENT: {
        "a write under a lock that is not there any more": _at(
            "broken-lock", NeverRaises(_CHECK_LOCK, "_lock_lost"), NeverRaises(_CHECK_LOCK, "LockRequired")
        ),
        "the same bytes as the cached version count as written": _at(
            "there-and-back", Condition(_WRITE, "remembered", "False")
        ),
        "the same bytes of an earlier lock count as written": _at(
            "broken-lock-push-of-the-first", Returns(_COUNTS_AS_WRITTEN, "True")
        ),
    },
    Invariant.ALLOWED: {
        f"neither {what} nor its route asks for the right": _at(
            where, WithoutCall(function, "require", which=which), Returns(_ROUTE_CHECK, "None")
        )
        for what, function, which, where in (
            ("a delete", _DELETE, (0, 1), "writer-tries"),
            ("a restore", _RESTORE, (0, 1), "writer-tries"),
            ("a freeze", _FREEZE, (0, 1), "writer-tries"),
            ("an undelete", _UNDELETE, (0, 1), "writer-undeletes"),
            ("an acquire", "holdfast.state.acquiring:acquire", (0, 2), "reader-tries"),
            ("an acquire of a workspace's lock", "holdfast.cloud.locking:lock", (0, 2), "reader-tries"),
            ("a create of a workspace", "holdfast.cloud.workspaces:create", (0, 2), "reader-tries"),
            ("an undeclare", _UNDECLARE, (0, 1), "writer-undeclares"),
            ("an unfreeze", _UNFREEZE, (0, 1), "writer-unfreezes"),
        )
    }
    | {
        f"{what} does not ask whose lock it is": _at(where, WithoutCall(function, "_check_removal", which))
        for what, function, which, where in (
            ("a break", _BREAK, (0, 1), "writer-tries"),
            ("a force-unlock with an ID", _FORCE_UNLOCK_NAMED, (0, 1), "writer-tries"),
            ("a force-unlock of a workspace", _FORCE_UNLOCK_VERSION, (0, 1), "writer-tries 001"),
        )
    }
    | {
        "a release removes the cached lock of another principal": _at(
            "writer-tries", WithoutOperand(_TAKE_LOCK, "principal")
        ),
        "a force-unlock without an ID does not ask for the right": _at(
            "writer-breaks-stuck-lock",
            WithoutCall(_FORCE_UNLOCK_UNNAMED, "_require_force_unlock"),
            WithoutCall(_FORCE_UNLOCK_UNNAMED, "_check_removal"),
        ),
        "own locks need no ID": _at(
            "own-lock-without-id 001", WithoutCall(_FORCE_UNLOCK_UNNAMED, "_require_force_unlock")
        ),
        "every lock of a client is an own lock": _at("writer-tries", WithoutOperand(_IS_OWN, "principal")),
        "the lock of a verb is an own lock": _at("own-lock-of-a-restore", WithoutOperand(_IS_OWN, "VERBS")),
    },
}
"""The mutants by the invariant that the shortest interleaving violates, and by name."""


def _mutant(breaks: Invariant, name: str, where: str, changes: tuple[Edit, ...]) -> Mutant:
    scenario, _, bounds = where.partition(" ")
    faults, repeats, ticks = map(int, bounds or "000")
    return Mutant(name, scenario, (faults, repeats, ticks), breaks, changes)


MUTANTS: Final = tuple(
    _mutant(breaks, name, *made) for breaks, rows in _BY_INVARIANT.items() for name, made in rows.items()
)
