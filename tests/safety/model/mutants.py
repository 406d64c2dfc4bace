"""Deliberate faults in the production code, each of which a search must find.

Every one takes away or bends a decision that keeps a promise. Who changes that decision's text in the code
changes it here, too: a mutant whose text is not there exactly once is an error.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.safety.model.promises import Promise


@dataclass(frozen=True, slots=True)
class Edit:
    """Text of a file that is replaced.

    Attributes:
        file: below `functions/`.
        old: what stands there exactly once.
        new: what replaces it.
    """

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A deliberate fault.

    Attributes:
        name: what is wrong with it.
        scenario: where it shows; with the bounds of faults, repeats and ticks.
        breaks: the promise that the shortest schedule breaks.
        edits: how it is made.
    """

    name: str
    scenario: str
    bounds: tuple[int, int, int]
    breaks: Promise
    edits: tuple[Edit, ...]

    def apply(self, functions: Path) -> None:
        """Change a copy of `functions/`.

        Raises:
            ValueError: the text to replace is not there exactly once.
        """
        for edit in self.edits:
            file = functions / edit.file
            text = file.read_text(encoding="utf-8")
            if text.count(edit.old) != 1:
                raise ValueError(f"{self.name}: {edit.file} has {text.count(edit.old)} times: {edit.old!r}")
            file.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


_STORE: Final = "holdfast/store.py"
_LOCKS: Final = "holdfast/locks.py"
_STATES: Final = "holdfast/states.py"

_SECOND_READING: Final = "if not _is_same_lock(first_lock, locks.read(store, name)):"
_FIRST_READING: Final = "check_lock(lock, lock_id, caller, require_lock=require_lock)"
_READ_STATE: Final = "current = _read_current(store, name)"
_READ_LOCK: Final = "lock = locks.read(store, name)"
_OUTCOMES: Final = "outcomes: dict[int, Stored | PreconditionFailed] = {404: PreconditionFailed(), 412: PreconditionFailed()}"


def _mutant(
    name: str, breaks: Promise, scenario: str, bounds: tuple[int, int, int], *edits: tuple[str, str, str]
) -> Mutant:
    return Mutant(name, scenario, bounds, breaks, tuple(Edit(*edit) for edit in edits))


MUTANTS: Final = (
    _mutant(
        "an acquire without If-None-Match",
        Promise.OWN_LOCK,
        "two-applies",
        (0, 0, 0),
        (_STORE, 'request["IfNoneMatch"] = "*"', "pass"),
    ),
    _mutant(
        "an acquire that finds the lock given back meanwhile and takes that for success",
        Promise.ONE_HOLDER,
        "three-applies",
        (0, 0, 0),
        (_LOCKS, "continue  # released in between", 'return Acquired(info, "gone")'),
    ),
    _mutant(
        "an acquire whose 412 counts as success",
        Promise.ONE_HOLDER,
        "two-applies",
        (0, 0, 0),
        (_STORE, _OUTCOMES, _OUTCOMES.replace("412: PreconditionFailed()", '412: Stored("", "none")')),
    ),
    _mutant(
        "an acquire whose 412 is always somebody else's lock",
        Promise.REPEATED,
        "two-applies",
        (1, 0, 0),
        (
            _LOCKS,
            "if held.is_same(info, caller):\n            return Acquired",
            "if False:\n            return Acquired",
        ),
    ),
    _mutant(
        "S3's 409 for two writers at once counts as success",
        Promise.REPEATED,
        "first-state",
        (1, 0, 0),
        (_STORE, _OUTCOMES, _OUTCOMES.replace("412:", '409: Stored("", "none"), 412:')),
    ),
    _mutant(
        "S3's 503 for a throttled write counts as success",
        Promise.REPEATED,
        "two-applies",
        (1, 0, 0),
        (_STORE, _OUTCOMES, _OUTCOMES.replace("412:", '503: Stored("", "none"), 412:')),
        (_STORE, "if final and status in outcomes and", "if status in outcomes and"),
    ),
    _mutant(
        "a state reads as none",
        Promise.KEPT,
        "two-applies",
        (0, 0, 0),
        (_STATES, "if found is None or not found.body:\n", "if True:\n"),
    ),
    _mutant(
        "a write without If-Match",
        Promise.SEEN,
        "broken-lock",
        (0, 0, 0),
        (_STORE, 'request["IfMatch"] = etag', "pass"),
    ),
    _mutant(
        "a write whose 412 is always somebody else's state",
        Promise.REPEATED,
        "two-applies",
        (1, 0, 0),
        (_STATES, "if current and current.sha256 == sha256:", "if False:"),
    ),
    _mutant(
        "a write that does not read the lock first",
        Promise.HELD,
        "broken-lock",
        (0, 0, 0),
        (_STATES, _FIRST_READING, "pass"),
    ),
    _mutant(
        "a write that does not read the lock again",
        Promise.HELD,
        "broken-lock",
        (0, 0, 0),
        (_STATES, _SECOND_READING, "if False:"),
    ),
    _mutant(
        "a write that reads the lock before the state",
        Promise.SEEN,
        "broken-lock-gap",
        (0, 0, 0),
        (
            _STATES,
            f"        {_READ_STATE}\n        {_READ_LOCK}\n        check_lock",
            f"        {_READ_LOCK}\n        {_READ_STATE}\n        check_lock",
        ),
    ),
    _mutant(
        "a repeated write that skips the checks",
        Promise.HELD,
        "broken-lock",
        (0, 0, 0),
        (_STATES, _FIRST_READING, f"if attempt == 0:\n            {_FIRST_READING}"),
        (_STATES, "elif not _is_same_lock(first_lock, lock):", "elif False:"),
        (
            _STATES,
            "check_succession(new.position, current, lock)\n        stored",
            "if attempt == 0:\n            check_succession(new.position, current, lock)\n        stored",
        ),
        (
            _STATES,
            _SECOND_READING,
            "if attempt == 0 and not _is_same_lock(first_lock, locks.read(store, name)):",
        ),
    ),
    _mutant(
        "the same bytes are acknowledged without a look at the lock",
        Promise.HELD,
        "broken-lock",
        (0, 1, 0),
        (
            _STATES,
            _FIRST_READING,
            "if current and current.sha256 == sha256:\n"
            "            return Written(\n"
            "                new.position, None, current.head.version_id, lock_id, new_version=False\n"
            "            )\n"
            f"        {_FIRST_READING}",
        ),
    ),
    _mutant(
        "a write under a lock that is not there any more",
        Promise.SEEN,
        "broken-lock",
        (0, 0, 0),
        (_STATES, "elif lock_id is not None:", "elif False:"),
        (_STATES, "elif require_lock:", "elif False:"),
    ),
    _mutant(
        "a write without a lock is let through",
        Promise.SEEN,
        "without-lock",
        (0, 0, 0),
        (_STATES, "elif require_lock:", "elif False:"),
    ),
    _mutant(
        "whoever knows a lock's ID may write under it",
        Promise.SEEN,
        "borrowed-id",
        (0, 0, 0),
        (
            _LOCKS,
            "return self.info.id == lock_id and self.principal == caller.principal",
            "return self.info.id == lock_id",
        ),
    ),
    _mutant(
        "whoever sends the holder's lock info holds the lock",
        Promise.ONE_HOLDER,
        "copied-lock",
        (0, 0, 0),
        (
            _LOCKS,
            "return self.info == info and self.principal == caller.principal",
            "return self.info == info",
        ),
    ),
    _mutant(
        "the serial is not checked",
        Promise.FORWARD,
        "long-apply",
        (0, 1, 0),
        (_STATES, "if new.serial <= before.serial:", "if False:"),
    ),
    _mutant(
        "an equal serial passes",
        Promise.FORWARD,
        "same-serial",
        (0, 0, 0),
        (_STATES, "if new.serial <= before.serial:", "if new.serial < before.serial:"),
    ),
    _mutant(
        "the lineage is not checked",
        Promise.FORWARD,
        "wrong-address",
        (0, 0, 0),
        (_STATES, "if not new.same_lineage(before):", "if False:"),
    ),
    _mutant(
        "a write in the lock's own second counts as not acknowledged",
        Promise.FORWARD,
        "wrong-address-first-state",
        (0, 0, 0),
        (_STATES, "current.head.last_modified > lock", "current.head.last_modified >= lock"),
    ),
    _mutant(
        "an own earlier save counts as not acknowledged",
        Promise.FORWARD,
        "long-apply",
        (0, 1, 1),
        (_STATES, "        and current.lock_id != lock.info.id\n", ""),
    ),
    _mutant(
        "over a write that nobody acknowledged everything goes",
        Promise.FORWARD,
        "broken-lock-wrong-address",
        (0, 0, 1),
        (_STATES, "        before = current.over\n", "        return\n"),
    ),
    _mutant(
        "a write that nobody acknowledged counts as acknowledged",
        Promise.FOLLOWED,
        "broken-lock",
        (0, 0, 1),
        (_STATES, "    if was_never_acknowledged(current, lock):\n", "    if False:\n"),
    ),
    _mutant(
        "the state is stored in other bytes",
        Promise.KEPT,
        "two-applies",
        (0, 0, 0),
        (
            _STATES,
            "            name.state_key,\n            body,\n",
            "            name.state_key,\n            body.replace(b' ', b''),\n",
        ),
    ),
    _mutant(
        "a read answers other bytes",
        Promise.KEPT,
        "two-applies",
        (0, 0, 0),
        (_STATES, "return found.body\n    try", "return found.body.replace(b' ', b'')\n    try"),
    ),
    _mutant(
        "a write tidies up the version that it replaces",
        Promise.KEPT,
        "two-applies",
        (0, 0, 0),
        (
            _STATES,
            "            # The second reading: only the very same",
            "            if current:\n"
            "                store.remove_version(name.state_key, current.head.version_id)\n"
            "            # The second reading: only the very same",
        ),
    ),
    _mutant(
        "a release that removes whatever lock is there by then",
        Promise.OWN_LOCK,
        "broken-lock",
        (0, 0, 0),
        (
            _STORE,
            "self._client.delete_object(Bucket=self.bucket, Key=key, VersionId=version_id)",
            "self._client.delete_object(Bucket=self.bucket, Key=key)",
        ),
    ),
    _mutant(
        "a release of a protected lock without If-Match",
        Promise.OWN_LOCK,
        "broken-lock-protected",
        (0, 0, 0),
        (_STORE, "Key=key, IfMatch=condition.etag)", "Key=key)"),
    ),
    _mutant(
        "a release that does not look whose lock it is",
        Promise.OWN_LOCK,
        "broken-lock",
        (0, 0, 0),
        (
            _LOCKS,
            "    if held.is_same(info, caller):\n        # That it",
            "    if not received.names_only_its_id:\n        # That it",
        ),
    ),
    _mutant(
        "a force-unlock that goes on to a newer lock",
        Promise.OWN_LOCK,
        "broken-lock-three",
        (0, 0, 0),
        (
            _LOCKS,
            "        marker_left = _remove(store, name, held)\n",
            "        marker_left = _remove(store, name, read(store, name) or held)\n",
        ),
    ),
    _mutant(
        "a force-unlock that removes another lock than the one it names",
        Promise.OWN_LOCK,
        "broken-lock-three",
        (0, 0, 0),
        (_LOCKS, "elif lock_id != held.info.id:", "elif False:"),
    ),
    _mutant(
        "a force-unlock without an ID that removes a lock one second old",
        Promise.OWN_LOCK,
        "broken-lock-without-id",
        (0, 0, 0),
        (_LOCKS, "if age <= FORCE_UNLOCK_MIN_AGE:", "if False:"),
    ),
    _mutant(
        "a force-unlock without an ID that removes a lock ten seconds old",
        Promise.OWN_LOCK,
        "broken-lock-ten-seconds",
        (0, 0, 1),
        (_LOCKS, "if age <= FORCE_UNLOCK_MIN_AGE:", "if age < FORCE_UNLOCK_MIN_AGE:"),
    ),
    _mutant(
        "a release that leaves the lock",
        Promise.RELEASED,
        "two-applies",
        (0, 0, 0),
        (
            _LOCKS,
            "return not _remove_version(store, name, held.version_id) and _hide(store, name, held)",
            "return False",
        ),
    ),
    _mutant(
        "a release that answers and does nothing",
        Promise.RELEASED,
        "two-applies",
        (0, 0, 0),
        (_LOCKS, "    info = _with_path(received, store, name)\n", "    return Released(None)\n"),
    ),
    _mutant(
        "a delete that keeps its lock",
        Promise.RELEASED,
        "delete",
        (0, 0, 0),
        (
            _STATES,
            "        locks.release_own(store, name, acquired)\n    if isinstance(deleted",
            "        pass\n    if isinstance(deleted",
        ),
    ),
    _mutant(
        "a delete that does not take the lock",
        Promise.ONE_HOLDER,
        "delete",
        (0, 0, 0),
        (
            _STATES,
            "    acquired = locks.acquire_own(store, name, lock, caller)\n    try:\n        deleted",
            '    acquired = Acquired(lock, "none")\n    try:\n        deleted',
        ),
    ),
    _mutant(
        "a delete without If-Match",
        Promise.SEEN,
        "delete",
        (0, 0, 0),
        (_STORE, "Key=key, IfMatch=condition.etag)", "Key=key)"),
    ),
    _mutant(
        "a delete that found another state and says that it is deleted",
        Promise.DELETED,
        "delete",
        (0, 0, 0),
        (_STATES, "    if isinstance(deleted, Changed):\n", "    if False:\n"),
    ),
    _mutant(
        "an undelete that writes over what is there",
        Promise.SEEN,
        "undelete-broken",
        (0, 0, 0),
        (
            _STORE,
            'request["IfNoneMatch"] = "*"',
            'request |= {"IfNoneMatch": "*"} if key.endswith(".tflock") else {}',
        ),
    ),
)
"""Every mutant."""
