"""Retry a request to S3 that failed, was lost or met a conflict, until S3 decides or the deadline passes.

A request whose response was lost may have taken effect. So a retry is the same request with the same
condition. If the precondition of a retry fails, the caller compares the stored object with its own.
"""

import random
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
)
from botocore.exceptions import ConnectionError as UnreachableError
from urllib3.exceptions import HTTPError as TransportError

from holdfast.errors import OutcomeUnknown, StorageRefused
from holdfast.s3.budget import Budget

_T = TypeVar("_T")

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
"""In seconds. The pause doubles with each retry; a random part of up to a half is subtracted."""


class ResponseCutShortError(Exception):
    """S3's response is incomplete."""


_LOST: Final = (
    UnreachableError,
    HTTPClientError,
    IncompleteReadError,
    FlexibleChecksumError,
    CredentialRetrievalError,
    TransportError,  # the SDK raises it unchanged while it reads the body of an error response
    ResponseCutShortError,
)
"""Errors after which it is unknown whether S3 received the request."""

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
"""The codes of transient errors. S3 and the services behind it may send them with a 4xx status."""

_JITTER = random.SystemRandom()


def until_decided(operation: str, call: Callable[[], _T], outcomes: Mapping[int, _T], budget: Budget) -> _T:
    """Repeat a request until S3 has accepted or refused it; return the result of `call` or of `outcomes`.

    It pauses before each retry, except once after a closed connection: S3 and Lambda close idle connections,
    and the function may learn of it only when it sends a request.

    Args:
        operation: the operation's name, for the budget's record.
        call: sends the request once.
        outcomes: the results for expected error statuses, such as `412`.

    Raises:
        StorageRefused: S3 refused the request, and `outcomes` has no result for this refusal.
        OutcomeUnknown: the deadline has passed.
    """
    pause = _FIRST_PAUSE
    closed = False
    reason = "no time was left for the request"
    while time.monotonic() < budget.deadline:
        budget.requests.append(operation)
        try:
            return call()
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            reason = error.response["Error"]["Code"]
            if is_decision(status, reason):
                # The 404 of a deleted bucket must never be read as "no state, no lock".
                if status in outcomes and reason != "NoSuchBucket":
                    return outcomes[status]
                if not is_retried(status):
                    raise StorageRefused(
                        f"S3 responded with {status} {reason}. This is a fault of the deployment: check the "
                        "function's role, the bucket policy, the KMS key, and whether the bucket still "
                        "belongs to the account of the stack. Then deploy again."
                    ) from error
            if status >= 500 and reason not in _TRANSIENT:
                budget.unconfirmed.append(operation)
        except _LOST as error:
            reason = type(error).__name__
            budget.unconfirmed.append(operation)
            if isinstance(error, ConnectionClosedError) and not closed:
                closed = True
                continue
        time.sleep(pause * _JITTER.uniform(0.5, 1.0))
        pause = min(pause * 2, _LONGEST_PAUSE)
    raise OutcomeUnknown(f"S3 did not complete the request in time (last error: {reason}). A retry is safe.")


def is_decision(status: int, code: str) -> bool:
    """Return whether an error response of S3 is complete and not a transient error.

    If the body, which contains the code, is incomplete, the SDK uses the status as the code.

    >>> is_decision(412, "PreconditionFailed"), is_decision(503, "SlowDown"), is_decision(404, "404")
    (True, False, False)
    """
    return code not in _TRANSIENT and code != str(status)


def is_retried(status: int) -> bool:
    """Return whether a status asks for a retry: S3 failed, throttles, or handles a conflicting request.

    >>> is_retried(500), is_retried(409), is_retried(403)
    (True, True, False)
    """
    return status >= 500 or status in (409, 429)
