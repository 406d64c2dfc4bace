"""How the functions that use S3 start: environment, client, snapshot, and the garbage collector.

A variable of the environment that is missing raises `KeyError`, a wrong one `ValueError`.
"""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast import names
from holdfast.s3 import retention, snapshot
from holdfast.s3.store import Store, connect, deadline

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

NO_STATE: Final = names.StateName("").state_key
"""A key that no state has: a name is not empty."""

_DECLARED_ONLY: Final = {"any": False, "declared": True}


@dataclass(slots=True)
class Function:
    """A function that has started.

    Attributes:
        bucket: of the states.
        account: the AWS account that its buckets must belong to.
    """

    s3: Any
    bucket: str
    account: str

    def store(self, context: "LambdaContext", bucket: str = "") -> Store:
        """Return a bucket, by default that of the states, for the requests to S3 of one invocation."""
        until = deadline(context.get_remaining_time_in_millis())
        return Store(self.s3, bucket or self.bucket, self.account, deadline=until)


def start(key: str, *, load: Callable[[], object] | None = None) -> Function:
    """Start a function: make its client, prepare a snapshot, and switch the garbage collector on again.

    Args:
        key: of an object that the function may read, for the snapshot.
        load: loads what the function otherwise loads when it needs it, into a snapshot.
    """
    function = Function(connect(), os.environ["HOLDFAST_BUCKET"], os.environ["HOLDFAST_ACCOUNT"])
    snapshot.prepare(function.s3, function.bucket, function.account, key, load=load)
    gc.freeze()  # what exists by now stays for as long as the process
    gc.enable()
    return function


def largest_state() -> int:
    """Return the bytes of the largest state that is written."""
    return int(os.environ["HOLDFAST_MAX_STATE_MB"]) * 1_000_000


def declared_only() -> bool:
    """Return whether a name is refused that has neither a state nor a record."""
    value = os.environ["HOLDFAST_NEW_STATES"]
    if value not in _DECLARED_ONLY:
        raise ValueError(f"HOLDFAST_NEW_STATES: {value!r} is neither 'any' nor 'declared'")
    return _DECLARED_ONLY[value]


def write_retention() -> retention.Retention | None:
    """Return what every write of a state asks S3 Object Lock for; None leaves that to the bucket."""
    value = os.environ.get("HOLDFAST_RETENTION")
    try:
        return None if value is None else retention.parse(value)
    except ValueError as error:
        raise ValueError(f"HOLDFAST_RETENTION: {error}") from None
