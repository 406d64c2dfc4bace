"""Freeze a state: a lock that says so, which no force-unlock through the API removes."""

from datetime import datetime

from holdfast.access import Action, Caller
from holdfast.errors import InvalidRequest
from holdfast.names import StateName
from holdfast.s3.store import Store
from holdfast.state import lock_info, locks
from holdfast.state.locks import Freeze, HeldLock
from holdfast.state.operator import check_id, check_reason


def freeze(
    store: Store,
    name: StateName,
    freeze_id: str,
    reason: str,
    until: datetime | None,
    caller: Caller,
    *,
    now: datetime,
) -> Freeze:
    """Freeze a state: nobody acquires its lock until it is unfrozen or the freeze has ended.

    Args:
        name: of the state, which need not exist yet.
        freeze_id: 32 hexadecimal digits, random; a retry has the same.
        reason: why, one line. Clients show it.
        until: when it ends, in whole seconds and with a time zone; None if it does not.
        now: only to refuse a time that has passed. Whether a freeze has ended, S3's clock decides.

    Raises:
        InvalidRequest: reason, time or ID break a rule, or the state is a probe.
        Locked: somebody holds the lock.
        Frozen: another command froze the state. A freeze is never changed: unfreeze first.
    """
    caller.require(Action.FREEZE, name)
    check_id(freeze_id)
    check_reason(reason)
    if until is not None and until <= now:
        raise InvalidRequest("'until' must be in the future.")
    if name.is_probe:
        raise InvalidRequest("This is a probe of 'holdfast doctor', which removes it; it is not frozen.")
    info = lock_info.of_freeze(freeze_id, reason, until, caller)
    frozen = Freeze(freeze_id, reason, until)
    locks.acquire_own(store, name, info, caller, frozen)
    return frozen


def unfreeze(store: Store, name: StateName, freeze_id: str, caller: Caller) -> HeldLock | None:
    """Remove the freeze that is named, and no other lock.

    Returns:
        The freeze; None if the state is not locked any more.

    Raises:
        InvalidRequest: the ID breaks a rule.
        NotFrozen, LockNotMatched: another lock is held. It stays.
    """
    caller.require(Action.FREEZE, name)
    return locks.unfreeze(store, name, check_id(freeze_id))
