"""Says who holds a lock in a source, from the lock info document of its clients."""

from holdfast.errors import HoldfastError
from holdfast.state import lock_info
from holdfast.state.lock_info import LockInfo
from holdfast_cli.importing.source import LockedThereError
from holdfast_cli.terminal.output import plain


def parse(body: bytes) -> LockInfo | None:
    """Return the holder's lock info; None if the source does not tell it."""
    try:
        return lock_info.parse(body)
    except HoldfastError:
        return None


def refusal(state: str, holder: LockInfo | None) -> LockedThereError:
    """Return the error about a lock of somebody else."""
    who = "somebody unknown"
    if holder is not None:
        shown = (holder.text or holder.operation, holder.id and f"lock ID {holder.id}")
        who = plain(f"{holder.who or 'somebody'} ({'; '.join(filter(None, shown))})")
    return LockedThereError(
        f"{state} is locked in the source by {who}; run the command again when that lock is released."
    )
