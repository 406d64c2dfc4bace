"""Start a function that uses S3: its client, and the garbage collector."""

import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.policy import Deployment, Policy
from holdfast.s3.budget import READ_TIMEOUT, Budget
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from holdfast.memory import Memory


@dataclass(slots=True)
class Function:
    """A started function.

    Attributes:
        bucket: the name of the state bucket.
        account: the ID of the AWS account that must own its buckets.
        policy: the decisions of the team that the function declares.
        memory: the process's cache of current versions; None if the function has none.
    """

    s3: Any
    bucket: str
    account: str
    policy: Policy
    memory: "Memory | None"

    def budget(self, context: "LambdaContext") -> Budget:
        """Return the budget of one invocation."""
        return Budget.of_invocation(context.get_remaining_time_in_millis())

    def store(self, budget: Budget, bucket: str = "") -> Store:
        """Return the store of a bucket, by default the state bucket."""
        return Store(self.s3, bucket or self.bucket, self.account, budget)


def start(
    policy: Policy | None = None, memory: "Memory | None" = None, *, read_timeout: float = READ_TIMEOUT
) -> Function:
    """Start a function: create its client, and enable the garbage collector again.

    Args:
        policy: the fields of the team's policy that the function declares; None for no field.
        memory: the process's cache of current versions, if the function has one.
        read_timeout: seconds without a byte from S3 after which a request is retried.
    """
    deployment = Deployment.from_environment("bucket", "account")
    client = connect(read_timeout=read_timeout)
    decisions = policy or Policy.from_environment()
    function = Function(client, deployment.bucket, deployment.account, decisions, memory)
    gc.freeze()  # objects that exist now live as long as the process
    gc.enable()
    return function
