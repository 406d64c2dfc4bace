"""The log fields of locks and writes, the same for every protocol."""

from typing import Any, Final

from holdfast.state.held import LockIdentity
from holdfast.state.lock_info import LockInfo
from holdfast.state.removing import ForceUnlocked
from holdfast.state.write import Written

# CloudWatch splits long lines, and the audit trail ignores half a line.
_OF_CLIENT: Final = 100  # characters of each text that a client can choose


def of_lock(info: LockInfo | None) -> dict[str, str | None]:
    """Return the log fields of a lock, without its free text `Info`."""
    if info is None:
        return {"lock_id": None}
    return {
        "lock_id": info.id,
        "operation": info.operation[:_OF_CLIENT],
        "who": info.who[:_OF_CLIENT],
    }


def of_write(written: Written) -> dict[str, Any]:
    """Return the log fields of an acknowledged write."""
    return {
        **of_lock(written.lock),
        "serial": written.revision.serial,
        "serial_before": written.superseded.serial if written.superseded else None,
        "version_id": written.version_id,
    }


def of_acquired(acquired: LockIdentity) -> dict[str, str | None]:
    """Return the log fields of an acquired lock, with the ID of the ended freeze that it replaced."""
    return {**of_lock(acquired.info), **({"freeze": acquired.lifted} if acquired.lifted else {})}


def of_removed(removed: ForceUnlocked) -> dict[str, Any]:
    """Return the log fields of a removed lock; `held_by` is the principal who held the lock."""
    return {**of_lock(removed.info), "held_by": removed.principal, "marker_left": removed.marker_created}
