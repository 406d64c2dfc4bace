"""Start a function that uses S3: environment, client, and the garbage collector.

A missing environment variable raises `KeyError`, an invalid variable `ValueError`.
"""

import gc
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.access import OwnLocks
from holdfast.s3 import retention
from holdfast.s3.store import READ_TIMEOUT, Store, connect, deadline

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

WARM_UP: Final = {"holdfast": "keep warm"}
"""The event of the schedule that keeps a process running. Compare the whole event with it: a client fills
headers, path, query and body of an event, and never its top level."""

_DECLARED_ONLY: Final = {"any": False, "declared": True}


@dataclass(slots=True)
class Function:
    """A started function.

    Attributes:
        bucket: the name of the state bucket.
        account: the ID of the AWS account that must own its buckets.
    """

    s3: Any
    bucket: str
    account: str

    def store(self, context: "LambdaContext", bucket: str = "") -> Store:
        """Return the store of a bucket, by default the state bucket, for the requests of one invocation."""
        until = deadline(context.get_remaining_time_in_millis())
        return Store(self.s3, bucket or self.bucket, self.account, deadline=until)


def start(*, read_timeout: float = READ_TIMEOUT) -> Function:
    """Start a function: create its client, and enable the garbage collector again.

    Args:
        read_timeout: seconds without a byte from S3 after which a request is retried.
    """
    function = Function(
        connect(read_timeout=read_timeout), os.environ["HOLDFAST_BUCKET"], os.environ["HOLDFAST_ACCOUNT"]
    )
    gc.freeze()  # objects that exist now live as long as the process
    gc.enable()
    return function


def largest_state() -> int:
    """Return the size in bytes of the largest accepted state."""
    return int(os.environ["HOLDFAST_MAX_STATE_MB"]) * 1_000_000


def declared_only() -> bool:
    """Return whether names must be declared."""
    value = os.environ["HOLDFAST_NEW_STATES"]
    if value not in _DECLARED_ONLY:
        raise ValueError(f"HOLDFAST_NEW_STATES: {value!r} is neither 'any' nor 'declared'")
    return _DECLARED_ONLY[value]


def own_locks() -> OwnLocks:
    """Return which own locks a writer may remove."""
    return OwnLocks(os.environ["HOLDFAST_OWN_LOCKS"])


def networks() -> tuple[str, ...]:
    """Return the networks from which the team accepts requests; empty for every address."""
    value = os.environ.get("HOLDFAST_NETWORKS")
    if not value:
        return ()
    from holdfast.identity.networks import check

    try:
        return check(value.split(","))
    except ValueError as error:
        raise ValueError(f"HOLDFAST_NETWORKS: {error}") from None


def write_retention() -> retention.Retention | None:
    """Return the retention with which states are written; None means the bucket's default."""
    value = os.environ.get("HOLDFAST_RETENTION")
    try:
        return None if value is None else retention.parse(value)
    except ValueError as error:
        raise ValueError(f"HOLDFAST_RETENTION: {error}") from None
