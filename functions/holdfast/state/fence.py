"""The fence: steps by which write, commit, restore, undelete and delete avoid losing anybody's write.

- The state is read before the lock. If the caller then still holds the lock, they held it while the state was
  read, and no other write has been acknowledged since they acquired the lock. In the reverse order, the next
  holder could already have written the state.
- The lock is read again after a PutObject, because somebody could have broken it meanwhile. If it is still
  the same lock object, the version was written while the lock was held, so the next holder reads the version.
- A verb releases exactly its own lock object, even if the verb fails.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from holdfast import audit
from holdfast.errors import HoldfastError, OutcomeUnknown
from holdfast.s3.objects import IfAbsent, IfMatch, ObjectVersion, Stored
from holdfast.state import acquiring, declared, guards, held
from holdfast.state.current_state import CurrentState, version_metadata
from holdfast.state.document import StateDocument
from holdfast.state.held import HeldLock, LockIdentity
from holdfast.state.lock_info import LockInfo
from holdfast.work import Work

_RELEASE_SECONDS: Final = 3.0
"""The least time for the release of a verb's own lock, even if the verb took long."""

_S = TypeVar("_S")


@dataclass(frozen=True, slots=True)
class NewVersion:
    """The next version of a state, as a verb writes it.

    Attributes:
        document: the revision and the client's version, for the metadata.
        body: the state document; stored byte for byte.
        notes: metadata that the verb adds or replaces, such as `upload`, `restored-from` or `operation`.
        sha256: the hash of the body.
    """

    document: StateDocument
    body: bytes
    notes: Mapping[str, str] = field(default_factory=dict)
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha256", hashlib.sha256(self.body).hexdigest())


def look(work: Work, read_state: Callable[[Work], _S]) -> tuple[_S, HeldLock | None]:
    """Read the state, then the lock.

    Args:
        read_state: reads the part of the state that the verb needs. Only a write may read it from the cache.
    """
    state = read_state(work)
    lock = held.read(work.store, work.name)
    return state, lock


def put_fenced(
    work: Work,
    new: NewVersion,
    seen: tuple[CurrentState | None, HeldLock | None],
    check_lock: Callable[[HeldLock | None], None],
) -> ObjectVersion | None:
    """Write a version that replaces the current version in `seen`, then read the lock again.

    The team's retention is not set for a probe, which is removed later.

    Args:
        seen: the result of `look`.
        check_lock: raises an error if the lock has changed; then the write is not acknowledged.

    Returns:
        The new version; None if the version in `seen` is no longer current. Then call `look` again: our own
        first attempt, whose response was lost, may have written the current version.
    """
    current, lock = seen
    store, name = work.store, work.name
    superseded = guards.last_acknowledged(current, lock)
    stored = store.write(
        name.state_key,
        new.body,
        IfMatch(current.version.etag) if current else IfAbsent(),
        metadata=version_metadata(new.document, new.sha256, superseded, lock, work.caller, new.notes),
        retention=None if name.is_probe else work.policy.retention,
        sha256=new.sha256,
    )
    if not isinstance(stored, Stored):
        return None
    check_lock(held.read(store, name))
    return stored.version


def require_creatable(work: Work, check_lock: Callable[[HeldLock | None], None] | None = None) -> None:
    """Raise `NotDeclared` or `Frozen` if no state may be created under a name, which has none.

    It sends one request, and another if names must be declared.

    Args:
        check_lock: as in `require_not_frozen`.
    """
    if work.policy.declared_only:
        declared.require_record(work)
    require_not_frozen(work, check_lock)


def require_not_frozen(work: Work, check_lock: Callable[[HeldLock | None], None] | None = None) -> None:
    """Raise `Frozen` if a name, which has no state, matches a frozen pattern; then check the lock again.

    Args:
        check_lock: raises an error if the lock has changed; None if no PutObject follows. The lock is read
            once more, so that a PutObject is sent only directly after a read of the lock.
    """
    # Imported here, because requests for existing states never need it.
    from holdfast.state.freezing import record

    record.require_not_frozen(work)
    if check_lock:
        check_lock(held.read(work.store, work.name))


@contextmanager
def own_lock(work: Work, info: LockInfo) -> Iterator[LockIdentity]:
    """Acquire a lock for a verb, and release exactly this lock object at the end.

    The lock stays if the outcome of a request is unknown. Otherwise the request could take effect under the
    next holder's lock, and a retry would then acknowledge what that holder never read. The lock may also be
    left if S3 does not confirm the release in time. Then the verb fails: its own error is raised, or else the
    error of the release. A note of the error names the lock. A retry with the same lock info continues to use
    the lock; another command cannot.
    """
    may_be_left = (
        f"The lock {info.id} of this {info.operation} may still be held. Before you run the command again, "
        f"look at the lock with 'holdfast lock show {work.name}'. If this lock is still held, remove it with "
        f"'holdfast lock break {work.name}'."
    )
    try:
        acquired = acquiring.acquire_own(work, info)
    except OutcomeUnknown as error:
        error.add_note(may_be_left)
        raise
    try:
        yield acquired
    except OutcomeUnknown as error:
        error.add_note(may_be_left)
        raise
    except BaseException as error:  # also an interrupt
        if failure := _release(work, acquired):
            error.add_note(may_be_left)
            if isinstance(error, HoldfastError) and not isinstance(failure, OutcomeUnknown):
                reason = failure.message if isinstance(failure, HoldfastError) else audit.failure(failure)
                error.logged = {**error.logged, "reason": reason}  # a fault of the deployment, or of ours
        raise
    if failure := _release(work, acquired):
        failure.add_note(may_be_left)
        raise failure


def _release(work: Work, acquired: LockIdentity) -> Exception | None:
    """Release a verb's own lock. Return the error of the release; None if it succeeded."""
    work.store.budget.prolong(_RELEASE_SECONDS)
    try:
        held.remove_acquired(work.store, work.name, acquired)
    except Exception as error:  # noqa: BLE001 the caller raises it
        return error
    return None
