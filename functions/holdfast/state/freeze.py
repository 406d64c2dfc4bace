"""Freeze a state by a lock object with a mark, which no force-unlock through the API removes."""

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
    """Freeze a state: nobody can acquire its lock until it is unfrozen or the freeze has ended.

    Args:
        name: the state's name; it need not exist yet.
        until: when the freeze ends, in whole seconds and with a time zone; None if it does not end.
        now: the current time; an earlier `until` is refused. Later, S3's clock decides when the freeze ends.

    Raises:
        InvalidRequest: also if the name is that of a probe.
        Frozen: another command froze the state. A freeze cannot be changed: unfreeze first.
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
    """Remove the freeze with an ID, and no other lock.

    Returns:
        The removed freeze; None if the state is no longer locked.

    Raises:
        NotFrozen: the lock is not a freeze, and is not removed.
    """
    caller.require(Action.FREEZE, name)
    return locks.unfreeze(store, name, check_id(freeze_id))
