"""S3 with conditions: the only module that talks to S3.

Every write says what it expects to find. A condition that did not hold is an outcome (`NotStored`,
`Changed`), not an error: the caller looks again and decides. A request whose answer was lost is
repeated with the same condition until S3 decides or the deadline passes, so an outcome of "did not
hold" can mean "your own first attempt took effect": the caller compares what it finds.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, unquote, urlencode

import boto3
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
)
from botocore.exceptions import ConnectionError as UnreachableError

from holdfast import __version__
from holdfast.errors import StorageRefused, Undecided

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONTENT_TYPE: Final = "application/json"

CONNECT_TIMEOUT: Final = 2.0
"""Seconds for a connection to S3; with READ_TIMEOUT it bounds how late a request may still land."""
READ_TIMEOUT: Final = 5.0
"""Seconds without a byte from S3 before a request is repeated."""

METADATA_VALUE_LIMIT: Final = 200
"""Bytes of one metadata value, encoded; S3 takes 2 KB for all of an object's."""

_BUDGET = 15.0

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Head:
    """What S3 knows of an object without its body.

    Attributes:
        etag: opaque; the condition of the next write.
        version_id: which of the key's versions this is; empty in a bucket without versioning.
        size: bytes.
        last_modified: when S3 took it, in whole seconds.
        metadata: user metadata, decoded.
    """

    etag: str
    version_id: str
    size: int
    last_modified: datetime
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Object:
    """An object with its body.

    Attributes:
        head: what S3 knows of it.
        body: its bytes.
        read_at: S3's clock when it answered, in whole seconds.
    """

    head: Head
    body: bytes
    read_at: datetime


@dataclass(frozen=True, slots=True)
class IfAbsent:
    """Write only if the key has no current object; a delete marker counts as none."""


@dataclass(frozen=True, slots=True)
class IfMatch:
    """Write only over the object with this ETag."""

    etag: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The write took effect."""

    etag: str
    version_id: str


@dataclass(frozen=True, slots=True)
class NotStored:
    """The condition did not hold."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The object is gone."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The object is another one than the condition named; nothing was deleted."""


def connect(session: boto3.Session | None = None, *, endpoint_url: str | None = None) -> "S3Client":
    """Make an S3 client that leaves repeating to `Store`; keep it as long as the process lives.

    No connection is opened before the first request.

    Args:
        session: whose credentials and region; by default those of the environment.
        endpoint_url: where S3 is; by default what the environment says, else AWS.
    """
    config = Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent=f"holdfast/{__version__}",  # botocore would put its own together for every request
    )
    return (session or boto3.Session()).client("s3", config=config, endpoint_url=endpoint_url)


def deadline(remaining_milliseconds: int) -> float:
    """Until when a function that has this much time left may start requests, in `time.monotonic()` seconds.

    Early enough for the last one to time out before the function is stopped: no write lands long after it
    was answered.
    """
    last_request = CONNECT_TIMEOUT + READ_TIMEOUT
    return time.monotonic() + min(_BUDGET, remaining_milliseconds / 1000 - last_request - 1)


class Store:
    """One bucket, for the time of one request.

    Args:
        client: an S3 client made by `connect`.
        bucket: the bucket's name.
        deadline: `time.monotonic()` seconds after which no request starts any more.

    Attributes:
        requests: the name of every request that was sent to S3, repeats included.
    """

    def __init__(self, client: "S3Client", bucket: str, *, deadline: float) -> None:
        self.bucket = bucket
        self.requests: list[str] = []
        self._client = client
        self._deadline = deadline

    def read(self, key: str) -> Object | None:
        """Read an object, or None if there is none.

        Raises:
            Undecided: S3 did not answer in time.
            StorageRefused: S3 refuses the function.
        """

        def get() -> Object:
            answer = self._client.get_object(Bucket=self.bucket, Key=key)
            body = answer["Body"].read()
            read_at = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
            return Object(_head(answer), body, read_at)

        return self._decided("GetObject", get, {404: None})

    def head(self, key: str) -> Head | None:
        """Read what S3 knows of an object, or None if there is none.

        S3 answers a HEAD without a body, so that a bucket that is gone reads as a missing key here: nobody
        may conclude anything from None alone that a read or write of the same request does not confirm.

        Raises:
            Undecided: S3 did not answer in time.
            StorageRefused: S3 refuses the function.
        """

        def head() -> Head:
            return _head(self._client.head_object(Bucket=self.bucket, Key=key))

        return self._decided("HeadObject", head, {404: None})

    def write(
        self,
        key: str,
        body: bytes,
        condition: IfAbsent | IfMatch,
        *,
        metadata: Mapping[str, str],
        tags: Mapping[str, str] | None = None,
    ) -> Stored | NotStored:
        """Write an object under a condition.

        Raises:
            Undecided: S3 did not decide in time; the write may have taken effect.
            StorageRefused: S3 refuses the function.
        """
        request: dict[str, Any] = {
            "Bucket": self.bucket,
            "Key": key,
            "Body": body,
            "ContentType": CONTENT_TYPE,
            "Metadata": {name: encode_metadata(value) for name, value in metadata.items()},
        }
        match condition:
            case IfAbsent():
                request["IfNoneMatch"] = "*"
            case IfMatch(etag):
                request["IfMatch"] = etag
        if tags:
            request["Tagging"] = urlencode(tags)

        def put() -> Stored:
            answer = self._client.put_object(**request)
            return Stored(answer["ETag"], answer.get("VersionId", ""))

        outcomes: dict[int, Stored | NotStored] = {404: NotStored(), 412: NotStored()}
        return self._decided("PutObject", put, outcomes)

    def delete(self, key: str, condition: IfMatch) -> Deleted | Changed:
        """Delete an object under a condition; one that is gone already counts as deleted.

        Raises:
            Undecided: S3 did not decide in time; the delete may have taken effect.
            StorageRefused: S3 refuses the function.
        """

        def delete() -> Deleted:
            self._client.delete_object(Bucket=self.bucket, Key=key, IfMatch=condition.etag)
            return Deleted()

        outcomes: dict[int, Deleted | Changed] = {404: Deleted(), 412: Changed()}
        return self._decided("DeleteObject", delete, outcomes)

    def _decided(self, operation: str, call: Callable[[], _T], outcomes: Mapping[int, _T]) -> _T:
        """Make a call until S3 decides it; the statuses in `outcomes` are decisions too."""
        pause = 0.05
        reason = "no time was left to ask"
        while time.monotonic() < self._deadline:
            self.requests.append(operation)
            try:
                return call()
            except ClientError as error:
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                reason = error.response["Error"]["Code"]
                # A bucket that is gone is 404 as well, and must never read as "no state, no lock".
                if status in outcomes and reason != "NoSuchBucket":
                    return outcomes[status]
                # 409: another request to the key was in flight.
                if status < 500 and status not in (409, 429) and reason not in _PASSING:
                    raise StorageRefused(
                        f"S3 answered {status} {reason}. This is a fault of the deployment: check the "
                        "function's role, the bucket policy and the key, then deploy again."
                    ) from error
            except _LOST as error:
                reason = type(error).__name__
            time.sleep(pause * _JITTER.uniform(0.5, 1.0))
            pause = min(pause * 2, 1.0)
        raise Undecided(f"S3 did not decide in time (last: {reason}). Repeating the request is safe.")


# The request may or may not have reached S3, or S3's answer us.
_LOST = (
    UnreachableError,
    HTTPClientError,
    IncompleteReadError,
    FlexibleChecksumError,
    CredentialRetrievalError,
)

# What S3 and the services behind it send with a final status for a passing condition.
_PASSING = frozenset(
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

# From the system: a snapshot's copies would all draw the same numbers from a seed.
_JITTER = random.SystemRandom()


def _head(answer: Mapping[str, Any]) -> Head:
    return Head(
        etag=answer["ETag"],
        version_id=answer.get("VersionId", ""),
        size=answer["ContentLength"],
        last_modified=answer["LastModified"],
        metadata={name: unquote(value) for name, value in answer["Metadata"].items()},
    )


def encode_metadata(value: str, limit: int | None = METADATA_VALUE_LIMIT) -> str:
    """Percent-encode a metadata value (S3 takes US-ASCII only), cut to `limit` bytes.

    >>> encode_metadata("ada@büro")
    'ada@b%C3%BCro'
    """
    encoded = quote(value, safe="/:@+,()", errors="replace")
    if limit is None or len(encoded) <= limit:
        return encoded
    cut = encoded[:limit]
    return cut.rpartition("%")[0] if "%" in cut[-2:] else cut
