"""The work of a verb: a caller at a state, with a policy that decides little unless a test says otherwise."""

from dataclasses import fields
from typing import Any

from holdfast.access import Caller, OwnLocks
from holdfast.memory import Memory
from holdfast.names import StateName
from holdfast.policy import Policy
from holdfast.s3.store import Store
from holdfast.work import Work


def policy(**decided: Any) -> Policy:
    """Return a policy: no lock is required, names need not be declared, and no lock is a writer's own."""
    decisions = {
        "require_lock": False,
        "declared_only": False,
        "own_locks": OwnLocks.NONE,
        "largest_state": 100_000_000,
        "retention": None,
    }
    missing = dict.fromkeys(each.name for each in fields(Policy))
    return Policy(**{**missing, **decisions, **decided})


def work(store: Store, name: StateName, caller: Caller, memory: Memory | None = None, **decided: Any) -> Work:
    """Return the work of a caller at a state, with the fields of the policy that are named."""
    return Work(store, name, caller, policy(**decided), memory)
