"""The time that the requests of an invocation have, and a record of what was sent."""

import time
from typing import Final, Self

CONNECT_TIMEOUT: Final = 2.0
"""Seconds to open a connection to S3. This and READ_TIMEOUT bound how late a request can take effect."""
READ_TIMEOUT: Final = 5.0
"""Seconds without a byte from S3 after which a request is retried."""

_LONGEST: Final = 15.0
"""The longest time in seconds in which the requests of an invocation may begin."""


class Budget:
    """The budget of an invocation or of a command, which its stores share. Several threads may use it.

    Attributes:
        deadline: the `time.monotonic()` value after which no request starts.
        requests: the operation names of all requests to S3, retries included.
        unconfirmed: the operation names of requests that may have taken effect although no response confirmed
            it. If the precondition of a retry then fails, the first attempt may have taken effect.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.requests: list[str] = []
        self.unconfirmed: list[str] = []

    @classmethod
    def seconds(cls, seconds: float) -> Self:
        """Return a budget whose deadline is some seconds from now."""
        return cls(time.monotonic() + seconds)

    @classmethod
    def of_invocation(cls, remaining_milliseconds: int) -> Self:
        """Return the budget of an invocation that Lambda stops after some milliseconds.

        The last request times out before Lambda stops the function. So no write takes effect long after the
        function has ended.
        """
        last_request = CONNECT_TIMEOUT + READ_TIMEOUT
        return cls.seconds(min(_LONGEST, remaining_milliseconds / 1000 - last_request - 1))

    def prolong(self, seconds: float) -> None:
        """Postpone the deadline to `seconds` from now, if it is earlier."""
        self.deadline = max(self.deadline, time.monotonic() + seconds)
