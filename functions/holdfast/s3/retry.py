"""Retries a request to S3 until S3 has decided it, or the time is up.

A request whose response was lost may or may not have taken effect. So a retry is the same request with the
same condition, and the caller compares what it finds.
"""

import random
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
)
from botocore.exceptions import ConnectionError as UnreachableError
from urllib3.exceptions import HTTPError as TransportError

from holdfast.errors import OutcomeUnknown, StorageRefused

_T = TypeVar("_T")

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
"""Seconds; a pause is twice the one before it, less a random part of at most a half."""


class ResponseCutShortError(Exception):
    """S3's response ended before its end."""


_LOST: Final = (
    UnreachableError,
    HTTPClientError,
    IncompleteReadError,
    FlexibleChecksumError,
    CredentialRetrievalError,
    TransportError,  # within the body of an error, where the SDK lets it through
    ResponseCutShortError,
)
"""The request may or may not have reached S3, or S3's response us."""

_TRANSIENT: Final = frozenset(
    {
        "BadDigest",
        "BandwidthLimitExceeded",
        "IncompleteBody",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeTooSkewed",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Codes of transient errors that S3 and the services behind it send with a final status."""

# From the system: a snapshot's copies would all draw the same numbers from a seed.
_JITTER = random.SystemRandom()


def until_decided(
    call: Callable[[], _T],
    outcomes: Mapping[int, _T],
    *,
    deadline: float,
    before_each: Callable[[], None],
    unconfirmed: Callable[[], None],
) -> _T:
    """Make a request until S3 has decided it; return what `call` returned, or the outcome of S3's status.

    Args:
        call: sends the request once.
        outcomes: what those statuses mean that are decisions too, such as `412`.
        unconfirmed: called after each attempt that may have taken effect, although no response said so.
    """
    pause = _FIRST_PAUSE
    reason = "no time was left to ask"
    while time.monotonic() < deadline:
        before_each()
        try:
            return call()
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            reason = error.response["Error"]["Code"]
            if is_decision(status, reason):
                # A bucket that is gone is 404 as well, and must never read as "no state, no lock".
                if status in outcomes and reason != "NoSuchBucket":
                    return outcomes[status]
                if not is_retried(status):
                    raise StorageRefused(
                        f"S3 answered {status} {reason}. This is a fault of the deployment: check the "
                        "function's role, the bucket policy and the key, and that the bucket still "
                        "belongs to the account of the stack, then deploy again."
                    ) from error
            if status >= 500 and reason not in _TRANSIENT:
                unconfirmed()
        except _LOST as error:
            reason = type(error).__name__
            unconfirmed()
        time.sleep(pause * _JITTER.uniform(0.5, 1.0))
        pause = min(pause * 2, _LONGEST_PAUSE)
    raise OutcomeUnknown(f"S3 did not decide in time (last: {reason}). A retry is safe.")


def is_decision(status: int, code: str) -> bool:
    """Return whether an error response of S3 is whole and no transient error.

    Where the body, which has the code, did not come whole, the SDK uses the status as the code.

    >>> is_decision(412, "PreconditionFailed"), is_decision(503, "SlowDown"), is_decision(404, "404")
    (True, False, False)
    """
    return code not in _TRANSIENT and code != str(status)


def is_retried(status: int) -> bool:
    """Return whether S3 has not looked at the request: it failed, throttles, or has another one in flight.

    >>> is_retried(500), is_retried(409), is_retried(403)
    (True, True, False)
    """
    return status >= 500 or status in (409, 429)
