"""Deliberate faults in the production code, each of which a search must find.

Every one removes or bends a decision that keeps an invariant. It names what it changes, see `edits`: a mutant
whose target is gone or ambiguous is an error.
"""

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

    Attributes:
        name: what is wrong with it.
        scenario: where it shows; with the bounds of faults, repeats and ticks.
        breaks: the invariant that the shortest interleaving breaks.
        edits: how it is made.
    """

    name: str
    scenario: str
    bounds: tuple[int, int, int]
    breaks: Invariant
    edits: tuple[Edit, ...]

    def apply(self, functions: Path) -> None:
        """Change a copy of `functions/`.

        Raises:
            ValueError: what is to change is not there exactly once.
        """
        edits.apply(self.edits, functions)


_PUT: Final = "holdfast.s3.store:Store.write"
_STORED: Final = 'Stored(ObjectVersion("", "none", 0, datetime.now(UTC), {}, False))'
_DELETE_OBJECT: Final = "holdfast.s3.store:Store.delete"
_REMOVE_VERSION: Final = "holdfast.s3.store:Store.remove_version"
_IS_DECISION: Final = "holdfast.s3.retry:is_decision"
_ACQUIRE: Final = "holdfast.state.locks:acquire_own"
_ACQUIRED_WITH: Final = "holdfast.state.locks:_was_acquired_with"
_RELEASE: Final = "holdfast.state.locks:release"
_FORCE_UNLOCK: Final = "holdfast.state.locks:_force_unlock"
_CHECK_FORCE_UNLOCK: Final = "holdfast.state.locks:_check_force_unlock"
_REMOVE: Final = "holdfast.state.locks:_remove"
_READ: Final = "holdfast.state.read:_current"
_WRITE: Final = "holdfast.state.write:write"
_DELETE: Final = "holdfast.state.delete:delete"
_CHECK_LOCK: Final = "holdfast.state.guards:check_lock"
_CHECK_SUCCESSION: Final = "holdfast.state.guards:check_succession"
_COUNTS_AS_WRITTEN: Final = "holdfast.state.guards:counts_as_written"
_WRITE_AGAIN: Final = "holdfast.state.undelete:_write_again"
_LEARN: Final = "holdfast.state.memory:Memory.learn"
_COMMIT: Final = "holdfast.cloud.uploads:commit"
_DELETE_WORKSPACE: Final = "holdfast.cloud.workspaces:_delete"
_CHECK_RECORD: Final = "holdfast.cloud.workspaces:_check_record"
_CREATE_RECORD: Final = "holdfast.cloud.records:create"
_MAY_BE_CURRENT: Final = "holdfast.cloud.uploads:_may_be_current"
_WRITTEN_UNDER: Final = "holdfast.state.guards:was_written_under"
_COMPARE: Final = "holdfast.cloud.uploads:_compare"
_COMMITTED: Final = "holdfast.state.write:committed"
_CHECK_BASE: Final = "holdfast.state.guards:check_base"
_RELEASE_EXACTLY: Final = "holdfast.state.locks:release_exactly"
_FORCE_UNLOCK_VERSION: Final = "holdfast.state.locks:force_unlock_version"
_RESTORE: Final = "holdfast.state.restore:restore"
_RESTORE_AGAIN: Final = "holdfast.state.restore:_write_again"
_IS_RESTORED: Final = "holdfast.state.restore:_is_restored"
_FOLLOWING: Final = "holdfast.state.restore:_following"
_FREEZE: Final = "holdfast.state.locks:HeldLock.freeze"
_IS_ENDED: Final = "holdfast.state.locks:HeldLock.is_ended_freeze"
_UNFREEZE: Final = "holdfast.state.locks:unfreeze"
_UNFREEZE_VERB: Final = "holdfast.state.freeze:unfreeze"
_BREAK: Final = "holdfast.state.locks:break_exactly"
_ANSWER_ACQUIRE: Final = "terraform_http.handler:_acquire"
_ANSWER_RELEASE: Final = "terraform_http.handler:_release"
_NEVER_ACKNOWLEDGED: Final = "holdfast.state.guards:was_never_acknowledged"


def _mutant(
    name: str, breaks: Invariant, scenario: str, bounds: tuple[int, int, int], *changes: Edit
) -> Mutant:
    return Mutant(name, scenario, bounds, breaks, changes)


MUTANTS: Final = (
    _mutant(
        "an acquire without If-None-Match",
        Invariant.OWN_LOCK,
        "two-applies",
        (0, 0, 0),
        WithoutKey(_PUT, "IfNoneMatch"),
    ),
    _mutant(
        "an acquire that finds the lock released meanwhile and takes that for success",
        Invariant.ONE_HOLDER,
        "three-applies",
        (0, 0, 0),
        Replaced(
            _ACQUIRE,
            "if held is None:\n    continue",
            'if held is None:\n    return LockIdentity("gone", info, caller.principal)',
        ),
    ),
    _mutant(
        "an acquire whose 412 counts as success",
        Invariant.ONE_HOLDER,
        "two-applies",
        (0, 0, 0),
        Outcome(_PUT, 412, _STORED),
    ),
    _mutant(
        "an acquire whose 412 is always somebody else's lock",
        Invariant.REPEATED,
        "two-applies",
        (1, 0, 0),
        Condition(_ACQUIRE, "_was_acquired_with", "False"),
    ),
    _mutant(
        "S3's 409 for two writers at once counts as success",
        Invariant.REPEATED,
        "first-state",
        (1, 0, 0),
        Outcome(_PUT, 409, _STORED),
    ),
    _mutant(
        "S3's 503 for a throttled write counts as success",
        Invariant.REPEATED,
        "two-applies",
        (1, 0, 0),
        Outcome(_PUT, 503, _STORED),
        Returns(_IS_DECISION, "True"),
    ),
    _mutant(
        "a state reads as none",
        Invariant.KEPT,
        "two-applies",
        (0, 0, 0),
        Condition(_READ, "found", "True"),
    ),
    _mutant(
        "a write without If-Match",
        Invariant.SEEN,
        "broken-lock-digests",
        (0, 0, 0),
        WithoutKey(_PUT, "IfMatch"),
    ),
    _mutant(
        "a write whose 412 is always somebody else's state",
        Invariant.REPEATED,
        "two-applies",
        (1, 0, 0),
        Condition(_WRITE, "same_bytes", "False", which=(0, 2)),
    ),
    _mutant(
        "a write that does not read the lock first",
        Invariant.HELD,
        "broken-lock",
        (0, 0, 0),
        WithoutCall(_WRITE, "check_lock"),
    ),
    _mutant(
        "a write that does not read the lock again",
        Invariant.HELD,
        "broken-lock",
        (0, 0, 0),
        WithoutCall(_WRITE, "check_same_lock", which=(1, 2)),
    ),
    _mutant(
        "a write that reads the lock before the state",
        Invariant.SEEN,
        "broken-lock-gap",
        (0, 0, 0),
        Swapped(_WRITE, "read_current", "read"),
    ),
    _mutant(
        "a retried write that skips the checks",
        Invariant.HELD,
        "broken-lock-digests",
        (0, 0, 0),
        WithoutCall(_WRITE, "check_same_lock", which=(0, 2)),
        *(OnlyIf(_WRITE, check, "attempt == 0") for check in ("check_lock", "check_succession")),
        OnlyIf(_WRITE, "check_same_lock", "attempt == 0"),
    ),
    _mutant(
        "the same bytes are acknowledged without a look at the lock",
        Invariant.HELD,
        "broken-lock",
        (0, 1, 0),
        Before(
            _WRITE,
            "check_lock",
            "if current and current.sha256 == sha256:\n"
            "    return Written(new.revision, None, current.version.version_id, None, new_version=False)",
        ),
    ),
    _mutant(
        "a write under a lock that is not there any more",
        Invariant.CURRENT,
        "broken-lock",
        (0, 0, 0),
        NeverRaises(_CHECK_LOCK, "_lock_lost"),
        NeverRaises(_CHECK_LOCK, "LockRequired"),
    ),
    _mutant(
        "a write without a lock is let through",
        Invariant.SEEN,
        "without-lock",
        (0, 0, 0),
        NeverRaises(_CHECK_LOCK, "LockRequired"),
    ),
    _mutant(
        "whoever knows a lock's ID may write under it",
        Invariant.SEEN,
        "borrowed-id",
        (0, 0, 0),
        WithoutOperand(_CHECK_LOCK, "principal"),
    ),
    _mutant(
        "whoever sends the holder's lock info holds the lock",
        Invariant.ONE_HOLDER,
        "copied-lock",
        (0, 0, 0),
        WithoutOperand(_ACQUIRED_WITH, "principal"),
    ),
    _mutant(
        "the serial is not checked",
        Invariant.FORWARD,
        "long-apply",
        (0, 1, 0),
        NeverRaises(_CHECK_SUCCESSION, "SerialNotNewer"),
    ),
    _mutant(
        "an equal serial passes",
        Invariant.FORWARD,
        "same-serial",
        (0, 0, 0),
        Compares(_CHECK_SUCCESSION, "<=", "<"),
    ),
    _mutant(
        "the lineage is not checked",
        Invariant.FORWARD,
        "wrong-address",
        (0, 0, 0),
        NeverRaises(_CHECK_SUCCESSION, "LineageChanged"),
    ),
    _mutant(
        "a write in the lock's own second counts as not acknowledged",
        Invariant.FORWARD,
        "wrong-address-first-state",
        (0, 0, 0),
        Compares(_NEVER_ACKNOWLEDGED, ">", ">="),
    ),
    _mutant(
        "an own earlier save counts as not acknowledged",
        Invariant.FORWARD,
        "long-apply",
        (0, 1, 1),
        WithoutOperand(_NEVER_ACKNOWLEDGED, "lock_id"),
    ),
    _mutant(
        "over a write that nobody acknowledged everything goes",
        Invariant.FORWARD,
        "broken-lock-wrong-address",
        (0, 0, 1),
        Before(
            _CHECK_SUCCESSION,
            "last_acknowledged_revision",
            "if was_never_acknowledged(current, lock):\n    return",
        ),
    ),
    _mutant(
        "a write that nobody acknowledged counts as acknowledged",
        Invariant.FOLLOWED,
        "broken-lock",
        (0, 0, 1),
        Calls(_CHECK_SUCCESSION, "last_acknowledged_revision", "current.revision"),
    ),
    _mutant(
        "the state is stored in other bytes",
        Invariant.KEPT,
        "two-applies",
        (0, 0, 0),
        Argument(_WRITE, "write", 1, "body.replace(b' ', b'')"),
    ),
    _mutant(
        "a read answers other bytes",
        Invariant.KEPT,
        "two-applies",
        (0, 0, 0),
        Replaced(_READ, "return found.body", "return found.body.replace(b' ', b'')"),
    ),
    _mutant(
        "a write tidies up the version that it replaces",
        Invariant.KEPT,
        "two-applies",
        (0, 0, 0),
        Before(
            _WRITE,
            "check_same_lock",
            "if current:\n    store.remove_version(name.state_key, current.version.version_id)",
            which=(1, 2),
        ),
    ),
    _mutant(
        "a release that removes whatever lock is there by then",
        Invariant.OWN_LOCK,
        "broken-lock",
        (0, 0, 0),
        WithoutKey(_REMOVE_VERSION, "VersionId"),
    ),
    _mutant(
        "a release of a protected lock without If-Match",
        Invariant.OWN_LOCK,
        "broken-lock-protected",
        (0, 0, 0),
        WithoutKey(_DELETE_OBJECT, "IfMatch"),
    ),
    _mutant(
        "a release that does not look whose lock it is",
        Invariant.OWN_LOCK,
        "broken-lock",
        (0, 0, 0),
        Condition(_RELEASE, "_was_acquired_with", "not received.names_only_its_id"),
    ),
    _mutant(
        "a force-unlock that goes on to a newer lock",
        Invariant.OWN_LOCK,
        "broken-lock-three",
        (0, 0, 0),
        Argument(_FORCE_UNLOCK, "_remove", 2, "read(store, name) or held"),
    ),
    _mutant(
        "a force-unlock that removes another lock than the one it names",
        Invariant.OWN_LOCK,
        "broken-lock-three",
        (0, 0, 0),
        NeverRaises(_CHECK_FORCE_UNLOCK, "LockNotMatched", which=(1, 2)),
    ),
    _mutant(
        "a force-unlock without an ID that removes a lock one second old",
        Invariant.OWN_LOCK,
        "broken-lock-without-id",
        (0, 0, 0),
        NeverRaises(_CHECK_FORCE_UNLOCK, "LockNotMatched", which=(0, 2)),
    ),
    _mutant(
        "a force-unlock without an ID that removes a lock ten seconds old",
        Invariant.OWN_LOCK,
        "broken-lock-ten-seconds",
        (0, 0, 1),
        Compares(_CHECK_FORCE_UNLOCK, "<=", "<"),
    ),
    _mutant(
        "a release that leaves the lock",
        Invariant.RELEASED,
        "two-applies",
        (0, 0, 0),
        Returns(_REMOVE, "False"),
    ),
    _mutant(
        "a release that answers and does nothing",
        Invariant.RELEASED,
        "two-applies",
        (0, 0, 0),
        Before(_RELEASE, "_with_path", "return Released(None)"),
    ),
    _mutant(
        "a delete that keeps its lock",
        Invariant.RELEASED,
        "delete",
        (0, 0, 0),
        WithoutCall(_DELETE, "release_own"),
    ),
    _mutant(
        "a delete that does not acquire the lock",
        Invariant.ONE_HOLDER,
        "delete",
        (0, 0, 0),
        Calls(_DELETE, "acquire_own", 'locks.LockIdentity("none", info, caller.principal)'),
    ),
    _mutant(
        "a delete without If-Match",
        Invariant.SEEN,
        "delete",
        (0, 0, 0),
        WithoutKey(_DELETE_OBJECT, "IfMatch"),
    ),
    _mutant(
        "a delete that found another state and says that it is deleted",
        Invariant.DELETED,
        "delete",
        (0, 0, 0),
        NeverRaises(_DELETE, "RacedWriter"),
    ),
    _mutant(
        "an undelete that writes over what is there",
        Invariant.SEEN,
        "undelete-broken",
        (0, 0, 0),
        OnlyIf(_PUT, "IfNoneMatch", 'key.endswith(".tflock")'),
    ),
    _mutant(
        "an undelete that does not read the lock again",
        Invariant.SEEN,
        "undelete-broken",
        (0, 0, 0),
        Condition(_WRITE_AGAIN, "acquired", "False", which=(2, 3)),
    ),
    _mutant(
        "the same bytes as the remembered ones count as written",
        Invariant.CURRENT,
        "there-and-back",
        (0, 0, 0),
        Condition(_WRITE, "remembered", "False"),
    ),
    _mutant(
        "the same bytes of an earlier lock count as written",
        Invariant.CURRENT,
        "broken-lock-push-of-the-first",
        (0, 0, 0),
        Returns(_COUNTS_AS_WRITTEN, "True"),
    ),
    _mutant(
        "a forced push is compared with the current state",
        Invariant.FOLLOWED,
        "push",
        (0, 0, 0),
        Condition(_CHECK_SUCCESSION, "COMPARED_BY_CLIENT", "False"),
    ),
    _mutant(
        "a write that does not follow the remembered state is refused",
        Invariant.FOLLOWED,
        "push",
        (0, 0, 0),
        Condition(_WRITE, "guess", "False"),
    ),
    _mutant(
        "a write that remembers an old state does not look for the current one",
        Invariant.FOLLOWED,
        "two-applies",
        (0, 0, 0),
        Replaced(_WRITE, "guess = remembered if attempt == 0 else None", "guess = remembered"),
    ),
    _mutant(
        "a write that remembered an old state reads the lock before the current one",
        Invariant.SEEN,
        "broken-lock-gap",
        (0, 0, 0),
        Replaced(
            _WRITE,
            "current = guess or read_current(store, name)",
            "current = guess or (None if remembered else read_current(store, name))",
        ),
        Before(_WRITE, "check_lock", "if remembered and not guess:\n    current = read_current(store, name)"),
    ),
    _mutant(
        "a write that remembered an old state does not read the lock after the current one",
        Invariant.SEEN,
        "broken-lock-gap",
        (0, 0, 0),
        OnlyIf(_WRITE, "read", "guess or not remembered", which=(0, 2)),
    ),
    _mutant(
        "a version is remembered whose ETag another one can have",
        Invariant.SEEN,
        "broken-lock-push-digests",
        (0, 0, 0),
        WithoutOperand(_LEARN, "has_own_etag"),
    ),
    _mutant(
        "a write is remembered with the time of another clock",
        Invariant.FORWARD,
        "wrong-address-first-state",
        (0, 0, 0),
        Argument(_PUT, "_object_version", 2, "responded_at.replace(year=2100)"),
    ),
    _mutant(
        "a release removes the lock that is remembered, and reads none",
        Invariant.RELEASED,
        "broken-lock",
        (1, 0, 0),
        Before(_ANSWER_ACQUIRE, "Response", "_memory._known['lock'] = acquired"),
        Before(
            _ANSWER_RELEASE,
            "release",
            "lock = _memory.take('lock')\n"
            "if lock and lock.principal == caller.principal and lock.info.id.encode() in request.body():\n"
            "    request.store.remove_version(name.lock_key, lock.version_id)\n"
            "    return Response(Event.LOCK_RELEASED)",
        ),
    ),
    _mutant(
        "a commit that does not read the lock again",
        Invariant.HELD,
        "cloud-broken-lock",
        (0, 0, 0),
        OnlyIf(_WRITE, "check_same_lock", "not upload", which=(1, 2)),
    ),
    _mutant(
        "a commit that adopts whatever lock is held",
        Invariant.HELD,
        "cloud-broken-lock",
        (0, 0, 0),
        OnlyIf(_WRITE, "check_lock", "not upload"),
        WithoutCall(_WRITE, "check_upload_lock"),
    ),
    _mutant(
        "an upload that is the current version counts as written without a look at the lock",
        Invariant.HELD,
        "cloud-broken-lock",
        (0, 1, 0),
        Before(
            _WRITE,
            "check_lock",
            "if upload and current and current.upload == upload.key:\n"
            "    return Written(new.revision, None, current.version.version_id, None, new_version=False)",
        ),
    ),
    _mutant(
        "an upload that was removed counts as written without a look at the lock",
        Invariant.HELD,
        "cloud-broken-lock",
        (0, 1, 0),
        WithoutCall(_COMMITTED, "check_lock"),
        WithoutCall(_COMMITTED, "check_upload_lock"),
    ),
    _mutant(
        "an upload that is the current version is not recognised",
        Invariant.REPEATED,
        "cloud-two-applies",
        (0, 1, 0),
        Condition(_COMMITTED, "upload", "True"),
    ),
    _mutant(
        "an upload whose base must be current, also over what nobody acknowledged",
        Invariant.FOLLOWED,
        "cloud-breaks-lock",
        (0, 0, 1),
        Condition(_CHECK_BASE, "was_never_acknowledged", "version == upload.base"),
    ),
    _mutant(
        "an upload without a base",
        Invariant.SEEN,
        "cloud-breaks-native-lock",
        (0, 0, 1),
        WithoutCall(_WRITE, "check_base"),
    ),
    _mutant(
        "an upload with force without a base",
        Invariant.SEEN,
        "cloud-breaks-native-lock-push",
        (0, 0, 1),
        OnlyIf(_WRITE, "check_base", "not upload.force"),
    ),
    _mutant(
        "an upload with force goes over a lock",
        Invariant.HELD,
        "cloud-broken-lock-push",
        (0, 0, 0),
        OnlyIf(_WRITE, "check_lock", "not (upload and upload.force)"),
        OnlyIf(_WRITE, "check_upload_lock", "not upload.force"),
    ),
    _mutant(
        "a commit that does not compare what was uploaded with what was announced",
        Invariant.KEPT,
        "cloud-mixed-up",
        (0, 0, 0),
        NeverRaises(_COMPARE, "UploadAltered", which=(0, 2)),
    ),
    _mutant(
        "a missing upload that counts as written",
        Invariant.KEPT,
        "cloud-forgetful",
        (0, 0, 0),
        Condition(_COMMIT, "written", "False"),
    ),
    _mutant(
        "a repeated one-step write that is refused for its own serial",
        Invariant.REPEATED,
        "cloud-at-once",
        (0, 1, 0),
        Replaced(
            _MAY_BE_CURRENT, "return current.sha256 == hashlib.sha256(body).hexdigest()", "return False"
        ),
    ),
    _mutant(
        "a document that was saved under this lock may not be announced once more",
        Invariant.FOLLOWED,
        "cloud-interrupted",
        (0, 0, 0),
        Returns(_WRITTEN_UNDER, "False"),
    ),
    _mutant(
        "an announcement of the current serial passes, under whichever lock that was written",
        Invariant.FORWARD,
        "cloud-same-serial",
        (0, 0, 0),
        WithoutOperand(_WRITTEN_UNDER, "lock_id"),
    ),
    _mutant(
        "a lock that was acquired again vouches for what was written under the first",
        Invariant.FORWARD,
        "cloud-interrupted-broken-lock",
        (1, 0, 1),
        WithoutOperand(_WRITTEN_UNDER, "last_modified"),
    ),
    _mutant(
        "a commit takes a document of the current serial for the current one",
        Invariant.KEPT,
        "cloud-same-serial",
        (0, 0, 0),
        Replaced(
            _WRITE,
            "same_bytes = current is not None and current.sha256 == sha256",
            "same_bytes = current is not None and current.revision == new.revision",
        ),
    ),
    _mutant(
        "a repeated commit that writes twice",
        Invariant.REPEATED,
        "cloud-two-applies",
        (0, 1, 0),
        Condition(_WRITE, "same_bytes", "not upload and same_bytes", which=(0, 2)),
        OnlyIf(_WRITE, "check_base", "not same_bytes"),
    ),
    _mutant(
        "a lock of a workspace that says when it was asked for",
        Invariant.REPEATED,
        "cloud-two-applies",
        (0, 1, 0),
        Replaced(
            "holdfast.cloud.locking:lock",
            "return locks.acquire_own(store, workspace.name, lock_info(workspace, caller), caller)",
            "info = dict(lock_info(workspace, caller).document)\n"
            "info['Created'] = datetime.now(UTC).isoformat()\n"
            "return locks.acquire_own(store, workspace.name, LockInfo(info), caller)",
        ),
    ),
    _mutant(
        "an unlock of a workspace that drops whatever lock is there",
        Invariant.OWN_LOCK,
        "cloud-broken-lock",
        (0, 0, 0),
        NeverRaises(_RELEASE_EXACTLY, "LockNotMatched"),
    ),
    _mutant(
        "an unlock of a workspace by the lock's ID alone",
        Invariant.OWN_LOCK,
        "cloud-unlocker",
        (0, 0, 0),
        Condition(_RELEASE_EXACTLY, "_was_acquired_with", "held.info.id != info.id"),
    ),
    _mutant(
        "an unlock of a workspace whose lock is gone is refused",
        Invariant.REPEATED,
        "cloud-two-applies",
        (0, 1, 0),
        Replaced(
            _RELEASE_EXACTLY, "return Released(info.id)", "raise LockNotMatched('This lock is not held.')"
        ),
    ),
    _mutant(
        "a force-unlock of a workspace that ignores which lock was seen",
        Invariant.OWN_LOCK,
        "cloud-operator",
        (0, 0, 1),
        NeverRaises(_FORCE_UNLOCK_VERSION, "LockNotMatched", which=(1, 2)),
    ),
    _mutant(
        "whoever knows the ID of a workspace may save under its lock",
        Invariant.SEEN,
        "cloud-borrower",
        (0, 0, 0),
        WithoutOperand(_CHECK_LOCK, "principal"),
    ),
    _mutant(
        "another's workspace is taken for one's own",
        Invariant.KEPT,
        "two-workspace-creates",
        (0, 0, 0),
        WithoutOperand(_CREATE_RECORD, "created_by"),
    ),
    _mutant(
        "a repeated delete of a workspace does not ask whether its state was deleted",
        Invariant.REPEATED,
        "workspace-delete",
        (0, 1, 0),
        WithoutOperand(_CHECK_RECORD, "state_key"),
    ),
    _mutant(
        "a delete of a workspace deletes whatever record is there in the end",
        Invariant.REPEATED,
        "workspace-delete",
        (0, 0, 0),
        Replaced(
            _DELETE_WORKSPACE,
            "if record:\n    records.delete(store, name, record)",
            "record = store.read(name.record_key)\nif record:\n    records.delete(store, name, record)",
        ),
    ),
    _mutant(
        "a repeated delete of a workspace deletes its first state",
        Invariant.REPEATED,
        "workspace-delete-first-state",
        (0, 1, 0),
        NeverRaises(_DELETE_WORKSPACE, "_just_deleted"),
    ),
    _mutant(
        "a repeated safe delete of a workspace deletes what was made since",
        Invariant.REPEATED,
        "workspace-safe-delete",
        (0, 1, 0),
        Condition(_DELETE_WORKSPACE, "record", "record and not minted_at", which=(0, 2)),
    ),
    _mutant(
        "a repeated delete of a workspace leaves the record that the first has left",
        Invariant.REPEATED,
        "workspace-safe-delete",
        (0, 1, 0),
        Replaced(_CHECK_RECORD, "until = record.version.last_modified", "until = None"),
    ),
    _mutant(
        "a restore does not ask what was restored already",
        Invariant.REPEATED,
        "restore-alone",
        (1, 0, 0),
        Returns(_IS_RESTORED, "wanted.version_id == current.version.version_id"),
    ),
    _mutant(
        "a version does not tell what it was restored from",
        Invariant.REPEATED,
        "restore-blindly",
        (1, 0, 0),
        WithoutKey("holdfast.state.current_state:noted", "restored_from"),
    ),
    _mutant(
        "two restores of a version share a lock",
        Invariant.OWN_LOCK,
        "two-restores",
        (0, 0, 0),
        Argument(_RESTORE, "of_verb", 0, 'f"{name.state_key}?versionId={wanted.version_id}"'),
    ),
    _mutant(
        "a restore of another lineage",
        Invariant.FORWARD,
        "restore-foreign",
        (0, 0, 0),
        NeverRaises(_FOLLOWING, "LineageChanged"),
    ),
    _mutant(
        "a restore keeps the serial",
        Invariant.FORWARD,
        "restore",
        (0, 0, 0),
        Replaced(
            _RESTORE_AGAIN,
            "body = document.with_serial(content.body, new.revision.serial)",
            "body = content.body",
        ),
    ),
    _mutant(
        "a restore takes the serial of a version that nobody acknowledged",
        Invariant.FORWARD,
        "restore-blindly-breaks-lock",
        (0, 0, 1),
        Replaced(
            _FOLLOWING,
            "serials = [revision.serial for revision in (current.revision, acknowledged) if revision]",
            "serials = [revision.serial for revision in (acknowledged,) if revision]",
        ),
    ),
    _mutant(
        "a restore goes over what the operator has not seen",
        Invariant.SEEN,
        "restore",
        (0, 0, 0),
        NeverRaises(_FOLLOWING, "BaseChanged"),
    ),
    _mutant(
        "a restore goes over whatever lies below a version that nobody acknowledged",
        Invariant.SEEN,
        "restore-breaks-lock",
        (0, 0, 1),
        Condition(
            _FOLLOWING,
            "base",
            "wanted.base not in (None, current.version.version_id) "
            "and not guards.was_never_acknowledged(current, lock)",
        ),
    ),
    _mutant(
        "a restore does not read the lock again",
        Invariant.SEEN,
        "restore-broken",
        (0, 0, 0),
        WithoutCall(_RESTORE_AGAIN, "_require_own", which=(1, 2)),
    ),
    _mutant(
        "a restore does not read the lock first",
        Invariant.FOLLOWED,
        "restore-broken",
        (0, 0, 1),
        WithoutCall(_RESTORE_AGAIN, "_require_own", which=(0, 2)),
    ),
    _mutant(
        "a restore reads the lock before the state",
        Invariant.SEEN,
        "restore-broken",
        (1, 0, 0),
        Swapped(_RESTORE_AGAIN, "read_current", "read"),
    ),
    _mutant(
        "a restore keeps its lock",
        Invariant.RELEASED,
        "restore",
        (0, 0, 0),
        WithoutCall(_RESTORE, "release_own"),
    ),
    _mutant(
        "a delete goes over what the operator has not seen",
        Invariant.SEEN,
        "manage-delete",
        (0, 0, 0),
        Condition(_DELETE, "check", "False"),
    ),
    _mutant(
        "an undelete does not recognise what it made",
        Invariant.REPEATED,
        "undelete-again",
        (1, 0, 0),
        Returns("holdfast.state.undelete:_made_before", "None"),
    ),
    _mutant(
        "an undelete does not compare the delete marker",
        Invariant.DELETED,
        "undelete-beside-delete",
        (0, 1, 0),
        NeverRaises("holdfast.state.undelete:_newest", "BaseChanged"),
    ),
    _mutant(
        "a delete releases its lock before it deletes",
        Invariant.ONE_HOLDER,
        "delete-broken",
        (0, 0, 0),
        Before(_DELETE, "IfMatch", "locks.release_own(store, name, acquired)"),
    ),
    _mutant(
        "a break names the lock by its ID alone",
        Invariant.OWN_LOCK,
        "break-restore",
        (0, 1, 0),
        Condition(_BREAK, "lock_id", "held.info.id != lock_id"),
    ),
    _mutant(
        "a break removes a freeze",
        Invariant.OWN_LOCK,
        "frozen-forced",
        (0, 0, 0),
        Condition(_BREAK, "freeze", "False"),
    ),
    _mutant(
        "a freeze is told by its operation",
        Invariant.FOLLOWED,
        "says-freeze",
        (0, 0, 0),
        Returns(_FREEZE, 'Freeze("", "", None) if self.info.operation == lock_info.FREEZE else None'),
        NeverRaises("holdfast.state.locks:acquire", "InvalidLockInfo"),
    ),
    _mutant(
        "a freeze is changed by writing over it",
        Invariant.OWN_LOCK,
        "two-freezes",
        (0, 0, 0),
        Before(
            "holdfast.state.freeze:freeze",
            "acquire_own",
            "from holdfast.s3.store import IfMatch\n"
            "held = locks.read(store, name)\n"
            "if held and held.freeze:\n"
            "    noted = {'locked-by': caller.principal, **frozen.metadata()}\n"
            "    store.write(name.lock_key, info.to_json(), IfMatch(held.version.etag), metadata=noted)\n"
            "    return frozen",
        ),
    ),
    _mutant(
        "a freeze has ended by Lambda's clock",
        Invariant.OWN_LOCK,
        "frozen-for-a-while",
        (0, 0, 0),
        Replaced(
            _IS_ENDED,
            "return freeze is not None and freeze.until is not None and freeze.until <= self.read_at",
            "return freeze is not None and freeze.until is not None and freeze.until <= datetime.now(UTC)",
        ),
    ),
    _mutant(
        "an acquire lifts a freeze that has not ended",
        Invariant.OWN_LOCK,
        "freeze-cloud",
        (0, 0, 0),
        Condition(_ACQUIRE, "is_ended_freeze", "found"),
    ),
    _mutant(
        "an acquire lifts a freeze that has come after the one that has ended",
        Invariant.OWN_LOCK,
        "frozen-for-a-while",
        (0, 0, 1),
        Replaced(_ACQUIRE, "_remove(store, name, held)", "_remove(store, name, read(store, name) or held)"),
    ),
    _mutant(
        "an unfreeze lifts whatever freeze there is",
        Invariant.OWN_LOCK,
        "unfreeze-another",
        (0, 0, 0),
        NeverRaises(_UNFREEZE, "LockNotMatched"),
    ),
    _mutant(
        "a release of a freeze by the document that everybody is told",
        Invariant.OWN_LOCK,
        "frozen",
        (0, 0, 0),
        WithoutOperand(_RELEASE, "freeze"),
    ),
    _mutant(
        "a force-unlock removes a freeze",
        Invariant.OWN_LOCK,
        "frozen",
        (0, 0, 0),
        Condition(_CHECK_FORCE_UNLOCK, "freeze", "False"),
    ),
    _mutant(
        "a write under a freeze by whoever froze",
        Invariant.HELD,
        "freeze-copied",
        (0, 0, 0),
        WithoutOperand(_CHECK_LOCK, "freeze"),
    ),
    _mutant(
        "a freeze ends a second early",
        Invariant.OWN_LOCK,
        "frozen-almost-over",
        (0, 0, 1),
        Replaced(
            _IS_ENDED,
            "return freeze is not None and freeze.until is not None and freeze.until <= self.read_at",
            "return freeze is not None and freeze.until is not None "
            "and freeze.until <= self.read_at + timedelta(seconds=1)",
        ),
    ),
    _mutant(
        "a delete of nothing releases any lock of its token that says delete",
        Invariant.OWN_LOCK,
        "says-delete",
        (0, 0, 0),
        Condition("holdfast.state.delete:_release_left_lock", "own", "left.info.operation != _OPERATION"),
    ),
    *(
        _mutant(
            f"{what} does not ask for the right",
            Invariant.ALLOWED,
            scenario,
            bounds,
            WithoutCall(function, "require", which=which),
        )
        for what, function, which, scenario, bounds in (
            ("a delete", _DELETE, (0, 1), "writer-tries", (0, 0, 0)),
            ("a restore", _RESTORE, (0, 1), "writer-tries", (0, 0, 0)),
            ("a freeze", "holdfast.state.freeze:freeze", (0, 1), "writer-tries", (0, 0, 0)),
            ("a break", _BREAK, (0, 1), "writer-tries", (0, 0, 0)),
            ("a force-unlock with an ID", _RELEASE, (1, 3), "writer-tries", (0, 0, 0)),
            ("a force-unlock of a workspace", _FORCE_UNLOCK_VERSION, (0, 1), "writer-tries", (0, 0, 1)),
            ("a force-unlock without an ID", _RELEASE, (2, 3), "writer-breaks-stuck-lock", (0, 0, 0)),
            ("an undelete", "holdfast.state.undelete:undelete", (0, 1), "writer-undeletes", (0, 0, 0)),
            ("an unfreeze", _UNFREEZE_VERB, (0, 1), "writer-unfreezes", (0, 0, 0)),
        )
    ),
)
"""Every mutant."""
