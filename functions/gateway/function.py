"""Start a function that uses S3: its client, and the garbage collector."""

import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.policy import Deployment
from holdfast.s3.store import READ_TIMEOUT, Store, connect, deadline

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

WARM_UP: Final = {"holdfast": "keep warm"}
"""The event of the schedule that keeps a process running. Compare the whole event with it: a client fills
headers, path, query and body of an event, and never its top level."""


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
    deployment = Deployment.from_environment("bucket", "account")
    function = Function(connect(read_timeout=read_timeout), deployment.bucket, deployment.account)
    gc.freeze()  # objects that exist now live as long as the process
    gc.enable()
    return function
