"""What the log says of locks and writes, whichever protocol they came by."""

from typing import Any, Final

from holdfast.state.lock_info import LockInfo
from holdfast.state.locks import ForceUnlocked, LockIdentity
from holdfast.state.write import Written

# CloudWatch cuts long lines in two, and half a line is no event of the audit trail.
_OF_CLIENT: Final = 100  # characters of each text that the client made up


def of_lock(info: LockInfo | None) -> dict[str, str | None]:
    """Return a lock for the log, without its `Info`: a free text that may hold anything."""
    if info is None:
        return {"lock_id": None}
    return {
        "lock_id": info.id,
        "operation": info.operation[:_OF_CLIENT],
        "who": info.who[:_OF_CLIENT],
    }


def of_write(written: Written) -> dict[str, Any]:
    """Return an acknowledged write for the log."""
    return {
        **of_lock(written.lock),
        "serial": written.revision.serial,
        "serial_before": written.superseded.serial if written.superseded else None,
        "version_id": written.version_id,
    }


def of_acquired(acquired: LockIdentity) -> dict[str, str | None]:
    """Return an acquired lock for the log, with the ended freeze that was lifted before."""
    return {**of_lock(acquired.info), **({"freeze": acquired.lifted} if acquired.lifted else {})}


def of_removed(removed: ForceUnlocked) -> dict[str, Any]:
    """Return a removed lock for the log; somebody else than its holder may have removed it."""
    return {**of_lock(removed.info), "held_by": removed.principal, "marker_left": removed.marker_created}
