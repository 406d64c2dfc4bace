"""The fence: steps by which write, commit, restore, undelete and delete avoid losing anybody's write.

- The state is read before the lock. If the caller then still holds the lock, they held it while the state was
  read, and no other write has been acknowledged since they acquired the lock. In the reverse order, the next
  holder could already have written the state.
- The lock is read again after a PutObject, because somebody could have broken it meanwhile. If it is still
  the same lock object, the version was written while the lock was held, so the next holder reads the version.
- A verb releases exactly its own lock object, even if the verb fails.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from holdfast import audit
from holdfast.access import Caller
from holdfast.errors import HoldfastError, OutcomeUnknown
from holdfast.names import StateName
from holdfast.s3.retention import Retention
from holdfast.s3.store import IfAbsent, IfMatch, ObjectVersion, Store, Stored
from holdfast.state import declared, guards, locks
from holdfast.state.current_state import CurrentState, version_metadata
from holdfast.state.document import StateDocument
from holdfast.state.lock_info import LockInfo
from holdfast.state.locks import HeldLock, LockIdentity

_RELEASE_SECONDS: Final = 3.0
"""The least time for the release of a verb's own lock, even if the verb took long."""

_S = TypeVar("_S")


def look(
    store: Store, name: StateName, read_state: Callable[[Store, StateName], _S]
) -> tuple[_S, HeldLock | None]:
    """Read the state, then the lock.

    Args:
        read_state: reads the part of the state that the verb needs. Only a write may read it from the cache.
    """
    state = read_state(store, name)
    lock = locks.read(store, name)
    return state, lock


def put_fenced(
    store: Store,
    name: StateName,
    new: StateDocument,
    body: bytes,
    seen: tuple[CurrentState | None, HeldLock | None],
    caller: Caller,
    check_lock: Callable[[HeldLock | None], None],
    *,
    sha256: str,
    retention: Retention | None,
    notes: Mapping[str, str] | None = None,
) -> ObjectVersion | None:
    """Write a version that replaces the current version in `seen`, then read the lock again.

    Args:
        seen: the result of `look`.
        check_lock: raises an error if the lock has changed; then the write is not acknowledged.
        retention: ignored for a probe, which is removed later.

    Returns:
        The new version; None if the version in `seen` is no longer current. Then call `look` again: our own
        first attempt, whose response was lost, may have written the current version.
    """
    current, lock = seen
    superseded = guards.last_acknowledged(current, lock)
    stored = store.write(
        name.state_key,
        body,
        IfMatch(current.version.etag) if current else IfAbsent(),
        metadata=version_metadata(new, sha256, superseded, lock, caller, notes),
        retention=None if name.is_probe else retention,
    )
    if not isinstance(stored, Stored):
        return None
    check_lock(locks.read(store, name))
    return stored.version


def require_creatable(
    store: Store,
    name: StateName,
    caller: Caller,
    *,
    declared_only: bool = False,
    check_lock: Callable[[HeldLock | None], None] | None = None,
) -> None:
    """Raise `NotDeclared` or `Frozen` if no state may be created under a name, which has none.

    It sends one request, with `declared_only` two.

    Args:
        check_lock: raises an error if the lock has changed; None if no PutObject follows. The lock is read
            once more, so that a PutObject is sent only directly after a read of the lock.
    """
    # Imported here, because requests for existing states never need it.
    from holdfast.state import pattern_freeze

    if declared_only:
        declared.require_record(store, name, caller)
    pattern_freeze.require_not_frozen(store, name, caller)
    if check_lock:
        check_lock(locks.read(store, name))


@contextmanager
def own_lock(store: Store, name: StateName, info: LockInfo, caller: Caller) -> Iterator[LockIdentity]:
    """Acquire a lock for a verb, and release exactly this lock object at the end.

    The lock stays if the outcome of a request is unknown. Otherwise the request could take effect under the
    next holder's lock, and a retry would then acknowledge what that holder never read. The lock may also be
    left if S3 does not confirm the release in time. Then the verb fails: its own error is raised, or else the
    error of the release. A note of the error names the lock. A retry with the same lock info continues to use
    the lock; another command cannot.
    """
    may_be_left = (
        f"The lock {info.id} of this {info.operation} may be left: only a retry of this very request, before "
        "the state changes, takes it up. If the lock is still held before you run the command again, remove "
        "it with 'holdfast lock break'."
    )
    try:
        acquired = locks.acquire_own(store, name, info, caller)
    except OutcomeUnknown as error:
        error.add_note(may_be_left)
        raise
    try:
        yield acquired
    except OutcomeUnknown as error:
        error.add_note(may_be_left)
        raise
    except BaseException as error:  # also an interrupt
        if failure := _release(store, name, acquired):
            error.add_note(may_be_left)
            if isinstance(error, HoldfastError) and not isinstance(failure, OutcomeUnknown):
                reason = failure.message if isinstance(failure, HoldfastError) else audit.failure(failure)
                error.logged = {**error.logged, "reason": reason}  # a fault of the deployment, or of ours
        raise
    if failure := _release(store, name, acquired):
        failure.add_note(may_be_left)
        raise failure


def _release(store: Store, name: StateName, acquired: LockIdentity) -> Exception | None:
    """Release a verb's own lock. Return the error of the release; None if it succeeded."""
    store.prolong(_RELEASE_SECONDS)
    try:
        locks.release_own(store, name, acquired)
    except Exception as error:  # noqa: BLE001 the caller raises it
        return error
    return None
