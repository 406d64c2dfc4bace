"""The fence: what write, commit, restore, undelete and delete do to lose nobody's write.

- The state is read before the lock. A lock that is one's own afterwards was so when the state was read, and
  nobody else's write since it was acquired has been acknowledged. The other way round, the state could be the
  next holder's already.
- The lock is read again after a PutObject. In between it can be broken and acquired by somebody else. If the
  very same lock is still there, the version was written while it was held, and the next holder has read it.
- A verb's own lock is released as the lock object that it is, whatever became of the verb.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from holdfast import audit
from holdfast.access import Caller
from holdfast.errors import HoldfastError, OutcomeUnknown
from holdfast.names import StateName
from holdfast.s3.retention import Retention
from holdfast.s3.store import IfAbsent, IfMatch, ObjectVersion, Store, Stored
from holdfast.state import guards, locks
from holdfast.state.current_state import CurrentState, version_metadata
from holdfast.state.document import StateDocument
from holdfast.state.lock_info import LockInfo
from holdfast.state.locks import HeldLock, LockIdentity

_S = TypeVar("_S")


def look(
    store: Store, name: StateName, read_state: Callable[[Store, StateName], _S]
) -> tuple[_S, HeldLock | None]:
    """Read the state, then the lock.

    Args:
        read_state: reads what the verb must know of the state. Only that of a write may remember it.
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
    """Put a version over the one that was seen, then read the lock again.

    Args:
        seen: what `look` returned.
        check_lock: raises if that is another lock, so that the version does not count.
        retention: never asked for a probe, which is removed.

    Returns:
        The version; None if another one than was seen is current. That may be our own first attempt, whose
        response was lost: only another look tells.
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


@contextmanager
def own_lock(
    store: Store, name: StateName, info: LockInfo, caller: Caller, *, seconds: float = 3.0
) -> Iterator[LockIdentity]:
    """Hold a lock of the verb's own, and release that very lock object in the end.

    If S3 does not release it in time, it may be left. Then nothing is answered with success: an error of the
    verb stays the error, else that of the release is raised. Either has a note that names the lock. A retry
    that has the same lock info takes it up; another command does not.

    Args:
        seconds: the least time that there is for the release, however long the rest took.
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
    except BaseException as error:  # an interrupt, too
        if failure := _release(store, name, acquired, seconds):
            error.add_note(may_be_left)
            if isinstance(error, HoldfastError) and not isinstance(failure, OutcomeUnknown):
                reason = failure.message if isinstance(failure, HoldfastError) else audit.failure(failure)
                error.logged = {**error.logged, "reason": reason}  # a fault of the deployment, or of ours
        raise
    if failure := _release(store, name, acquired, seconds):
        failure.add_note(may_be_left)
        raise failure


def _release(store: Store, name: StateName, acquired: LockIdentity, seconds: float) -> Exception | None:
    """Release a verb's own lock; return what went wrong."""
    store.prolong(seconds)
    try:
        locks.release_own(store, name, acquired)
    except Exception as error:  # noqa: BLE001 the caller raises it
        return error
    return None
