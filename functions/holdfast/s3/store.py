"""Send conditional requests to S3. No other module talks to S3.

Every request names the account that must own the bucket. The name of a deleted bucket is free, so another
account could own the bucket by now. S3 then refuses the request, and no state reaches a stranger.

Every write has a condition. A failed precondition is an outcome (`PreconditionFailed`), not an error: the
caller reads again and decides. A request whose response was lost is retried with the same condition. So a
failed precondition can mean that the first attempt took effect: the caller compares the stored object.

An incomplete response counts as lost. The SDK does not notice that a response is incomplete: it takes the end
of the connection for the end of the headers. So this module checks every response. It sends no HEAD requests,
because their responses end with the headers, so a missing header would not be noticed.
"""

import base64
import hashlib
import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, urlencode

from botocore.exceptions import ClientError

from holdfast.errors import StorageRefused
from holdfast.s3 import connections, object_metadata
from holdfast.s3.budget import Budget
from holdfast.s3.objects import (
    Deleted,
    HistoryEntry,
    IfAbsent,
    IfMatch,
    KeysPage,
    Larger,
    ListedKey,
    Object,
    ObjectVersion,
    PreconditionFailed,
    Protected,
    Stored,
    VersionsPage,
    is_unique,
)
from holdfast.s3.retention import Retention
from holdfast.s3.retry import ResponseCutShortError, until_decided

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import (
        GetObjectOutputTypeDef,
        ListObjectsV2OutputTypeDef,
        ListObjectVersionsOutputTypeDef,
    )

CONTENT_TYPE: Final = "application/json"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Empty:
    """The object exists and has zero bytes, so its first byte cannot be read."""


class Store:
    """Send requests for one bucket, within a budget. Several threads may use a store at the same time."""

    def __init__(self, client: "S3Client", bucket: str, owner: str, budget: Budget) -> None:
        self.bucket = bucket
        self.budget = budget
        self._client = client
        self._where: Mapping[str, Any] = {"Bucket": bucket, "ExpectedBucketOwner": owner}

    def open_second_connection(self) -> None:
        """Begin to open a second connection to S3, for two requests at once. It sends no request."""
        connections.open_second(self._client)

    def read(self, key: str, version_id: str | None = None) -> Object | None:
        """Read an object, by default its current version; return None if it does not exist.

        The result is also None for a delete marker, and for a version ID that S3 rejects as malformed.
        """
        which = _which(version_id)

        def get() -> Object | None:
            return self._get(key, **which)

        return self._decided("GetObject", _none_if_invalid(get, which), _absent(version_id))

    def read_at_most(self, key: str, limit: int, version_id: str | None = None) -> Object | Larger | None:
        """Read an object like `read`; if it is larger than the limit, return only its size."""
        which = _which(version_id)

        def get() -> Object | Larger | None:
            response = self._begun(key, **which)
            size = response.get("ContentLength", 0)
            if size > limit:
                response["Body"].close()
                return Larger(size)
            return _object(response)

        absent: dict[int, Object | Larger | None] = {**_absent(version_id)}
        return self._decided("GetObject", _none_if_invalid(get, which), absent)

    def read_version(self, key: str, version_id: str | None = None) -> ObjectVersion | None:
        """Read the metadata of a version of an object; return None if it does not exist.

        It reads the first byte: if that arrives, all headers have arrived. An empty object costs a second
        request.
        """
        which = _which(version_id)

        def get() -> Object | _Empty | None:
            return self._get(key, Range="bytes=0-0", **which)

        outcomes: dict[int, Object | _Empty | None] = {**_absent(version_id), 416: _Empty()}
        stored = self._decided("GetObject", _none_if_invalid(get, which), outcomes)
        if isinstance(stored, _Empty):
            stored = self.read(key, version_id)
        return stored.version if stored else None

    def _get(self, key: str, **which: Any) -> Object:
        return _object(self._begun(key, **which))

    def _begun(self, key: str, **which: Any) -> "GetObjectOutputTypeDef":
        """Send a GetObject, and return its response before the body is read."""
        try:
            return self._client.get_object(**self._where, Key=key, **which)
        except UnicodeEncodeError:  # a fault of our own request, which a retry would repeat
            raise
        except (KeyError, ValueError) as error:  # a header is cut
            raise ResponseCutShortError from error

    def versions(
        self, key: str, *, after: str | None = None, page_size: int = 1000
    ) -> Iterator[HistoryEntry]:
        """Yield the history of exactly this key, newest first. Further pages are requested on demand.

        S3 lists versions and delete markers separately, with times in whole seconds. So the order of a
        version and a marker of the same second is unknown, except for the current entry.

        Args:
            after: the ID of the version after which the list begins.
        """
        where = {"KeyMarker": key, "VersionIdMarker": after} if after else {}
        while True:
            page = self._list_versions(Prefix=key, MaxKeys=page_size, **where)
            versions, markers = page.get("Versions", []), page.get("DeleteMarkers", [])
            yield from heapq.merge(
                [_version(entry, is_delete_marker=False) for entry in versions if entry["Key"] == key],
                [_version(entry, is_delete_marker=True) for entry in markers if entry["Key"] == key],
                key=_newest_first,
            )
            # Keys come in order, and this key comes before all longer keys that begin with it.
            if not page["IsTruncated"] or any(entry["Key"] != key for entry in (*versions, *markers)):
                return
            where = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}

    def versions_page(
        self, prefix: str, *, after: tuple[str, str] | None = None, page_size: int = 1000
    ) -> VersionsPage | None:
        """List the versions and delete markers of the keys that begin with a prefix, with one request.

        Args:
            after: the key and version ID after which the page begins, from an entry or from `last` of the
                page before. If the version ID is empty, the page begins after all versions of the key.

        Returns:
            The page; None if S3 rejects the version ID in `after`.
        """
        markers = zip(("KeyMarker", "VersionIdMarker"), after or ("", ""), strict=True)
        where = {name: value for name, value in markers if value}
        try:
            page = self._list_versions(Prefix=prefix, MaxKeys=page_size, **where)
        except StorageRefused as error:
            refused = error.__cause__
            if (
                "VersionIdMarker" in where
                and isinstance(refused, ClientError)
                and _is_invalid_argument(refused)
            ):
                return None
            raise
        entries = heapq.merge(
            [(entry["Key"], _version(entry, is_delete_marker=False)) for entry in page.get("Versions", [])],
            [
                (entry["Key"], _version(entry, is_delete_marker=True))
                for entry in page.get("DeleteMarkers", [])
            ],
            key=lambda entry: (entry[0], _newest_first(entry[1])),
        )
        last = (page["NextKeyMarker"], page["NextVersionIdMarker"]) if page["IsTruncated"] else None
        return VersionsPage(list(entries), last)

    def _list_versions(self, **request: Any) -> "ListObjectVersionsOutputTypeDef":
        def list_versions() -> "ListObjectVersionsOutputTypeDef":
            page = self._client.list_object_versions(**self._where, **request)
            if "IsTruncated" not in page:  # the SDK reads a missing body as an empty one
                raise ResponseCutShortError
            return page

        return self._decided("ListObjectVersions", list_versions, {})

    def list_keys(self, prefix: str, *, page_size: int = 1000) -> Iterator[str]:
        """Yield the keys of the current objects that begin with a prefix, requesting pages on demand."""
        after: dict[str, str] = {}
        while True:
            page = self._list_objects(Prefix=prefix, MaxKeys=page_size, **after)
            for entry in page.get("Contents", []):
                yield entry["Key"]
            if not page["IsTruncated"]:
                return
            after = {"ContinuationToken": page["NextContinuationToken"]}

    def keys_page(self, prefix: str, *, after: str = "", page_size: int = 1000) -> KeysPage:
        """List a page of the current objects whose keys begin with a prefix.

        Args:
            after: the key after which the page begins; it need not exist.
        """
        where = {"StartAfter": after} if after else {}
        while True:
            page = self._list_objects(Prefix=prefix, MaxKeys=page_size, **where)
            keys = [
                ListedKey(entry["Key"], entry["Size"], entry["LastModified"].astimezone(UTC))
                for entry in page.get("Contents", [])
            ]
            if not page["IsTruncated"]:
                return KeysPage(keys, None)
            if keys:
                return KeysPage(keys, keys[-1].key)
            # S3 may return an empty page although more follow; then there is no last key to continue from.
            where = {"ContinuationToken": page["NextContinuationToken"]}

    def _list_objects(self, **request: Any) -> "ListObjectsV2OutputTypeDef":
        def list_objects() -> "ListObjectsV2OutputTypeDef":
            page = self._client.list_objects_v2(**self._where, **request)
            if "IsTruncated" not in page:  # the SDK reads a missing body as an empty one
                raise ResponseCutShortError
            return page

        return self._decided("ListObjectsV2", list_objects, {})

    def write(
        self,
        key: str,
        body: bytes,
        condition: IfAbsent | IfMatch,
        *,
        metadata: Mapping[str, str],
        tags: Mapping[str, str] | None = None,
        retention: Retention | None = None,
        sha256: str | None = None,
    ) -> Stored | PreconditionFailed:
        """Write an object under a condition.

        Args:
            metadata: user metadata; values are encoded and cut.
            tags: the object's tags, by which lifecycle rules select it.
            retention: how long S3 protects this version; None means the bucket's default.
            sha256: the hash of the body, if the caller has it. S3 refuses a body with another hash.
        """
        encoded = object_metadata.encode_all(metadata)
        digest = hashlib.sha256(body).digest() if sha256 is None else bytes.fromhex(sha256)
        request: dict[str, Any] = {
            **self._where,
            "Key": key,
            "Body": body,
            "ContentType": CONTENT_TYPE,
            # A write with retention needs a checksum. An environment setting can switch off the checksum of
            # the SDK, which would be sent after the body, in chunks.
            "ChecksumAlgorithm": "SHA256",
            "ChecksumSHA256": base64.b64encode(digest).decode(),
            "Metadata": encoded,
        }
        match condition:
            case IfAbsent():
                request["IfNoneMatch"] = "*"
            case IfMatch(etag):
                request["IfMatch"] = etag
        if tags:
            request["Tagging"] = urlencode(tags)
        if retention:
            request["ObjectLockMode"] = retention.mode
            request["ObjectLockRetainUntilDate"] = retention.until(datetime.now(UTC))

        def put() -> Stored:
            response = self._client.put_object(**request)
            responded_at = _require_whole(response, b"")
            return Stored(_object_version(response, len(body), responded_at, encoded))

        outcomes: dict[int, Stored | PreconditionFailed] = {
            404: PreconditionFailed(),
            412: PreconditionFailed(),
        }
        return self._decided("PutObject", put, outcomes)

    def delete(self, key: str, condition: IfMatch) -> Deleted | PreconditionFailed:
        """Delete an object under a condition; a missing object counts as deleted."""

        def delete() -> Deleted:
            self._client.delete_object(**self._where, Key=key, IfMatch=condition.etag)
            return Deleted()

        outcomes: dict[int, Deleted | PreconditionFailed] = {404: Deleted(), 412: PreconditionFailed()}
        return self._decided("DeleteObject", delete, outcomes)

    def discard(self, key: str) -> Deleted:
        """Delete an object without a condition; a bucket with versioning keeps its versions.

        Use it only for objects with random keys, which are never written twice.
        """

        def delete() -> Deleted:
            self._client.delete_object(**self._where, Key=key)
            return Deleted()

        return self._decided("DeleteObject", delete, {404: Deleted()})

    def remove_version(self, key: str, version_id: str) -> Deleted | Protected:
        """Remove one version permanently; a missing version counts as deleted.

        Other versions of the key never change, even if the request arrives late or twice. If the version is
        current, the version before it becomes current.
        """
        if not is_unique(version_id):
            raise ValueError("without versioning there is no version to remove")  # S3 may delete any object

        def remove() -> Deleted:
            self._client.delete_object(**self._where, Key=key, VersionId=version_id)
            return Deleted()

        outcomes: dict[int, Deleted | Protected] = {403: Protected(), 404: Deleted()}
        return self._decided("DeleteObject", remove, outcomes)

    def _decided(self, operation: str, call: Callable[[], _T], outcomes: Mapping[int, _T]) -> _T:
        """Repeat a call until S3 accepts or refuses it; `outcomes` has the results of expected refusals."""
        return until_decided(operation, call, outcomes, self.budget)


def _which(version_id: str | None) -> Mapping[str, str]:
    return {} if version_id is None else {"VersionId": version_id}


def _absent(version_id: str | None) -> dict[int, None]:
    """Return the statuses of a missing object. S3 returns 405 for the version ID of a delete marker."""
    return {404: None} if version_id is None else {404: None, 405: None}


def _none_if_invalid(get: Callable[[], _T | None], which: Mapping[str, str]) -> Callable[[], _T | None]:
    """Wrap a call so that it returns None for a malformed version ID.

    S3 returns 400 for a malformed ID, and 404 for an unknown one.
    """

    def get_or_none() -> _T | None:
        try:
            return get()
        except ClientError as error:
            if which and _is_invalid_argument(error):
                return None
            raise

    return get_or_none


def _is_invalid_argument(error: ClientError) -> bool:
    return error.response["Error"]["Code"] == "InvalidArgument"


def _object(response: "GetObjectOutputTypeDef") -> Object:
    """Read the body of a response, check that it is complete, and return the object."""
    try:
        body = response["Body"].read()
        read_at = _require_whole(response, body)
        # A partial response has a range such as "bytes 0-0/123".
        _, _, size = response.get("ContentRange", "").rpartition("/")
        version = _object_version(
            response, int(size or response["ContentLength"]), response["LastModified"], response["Metadata"]
        )
        return Object(version, body, read_at)
    except (KeyError, ValueError) as error:  # a header is missing or cut
        raise ResponseCutShortError from error


def _require_whole(response: Mapping[str, Any], body: bytes) -> datetime:
    """Check that a response is complete, and return its time by S3's clock.

    The body comes last: if it is complete, so is the response. In a response without a body, only the headers
    that S3 always sends can be checked; a later header could still be missing or cut.
    """
    headers = response["ResponseMetadata"]["HTTPHeaders"]
    date = headers.get("date", "")
    if not (
        headers.get("content-length") == str(len(body))
        and date.endswith(" GMT")
        and headers.get("etag", "")[1:].endswith('"')
    ):
        raise ResponseCutShortError
    try:
        return parsedate_to_datetime(date)
    except ValueError as error:
        raise ResponseCutShortError from error


def _object_version(
    response: Mapping[str, Any], size: int, last_modified: datetime, metadata: Mapping[str, str]
) -> ObjectVersion:
    return ObjectVersion(
        etag=response["ETag"],
        version_id=response.get("VersionId", ""),
        size=size,
        last_modified=last_modified,
        metadata={name: unquote(value) for name, value in metadata.items()},
        has_own_etag=response.get("ServerSideEncryption") == "aws:kms",
        replication_status=response.get("ReplicationStatus", ""),
    )


def _version(entry: Mapping[str, Any], *, is_delete_marker: bool) -> HistoryEntry:
    last_modified = entry["LastModified"].astimezone(UTC)  # the SDK returns it in this machine's time zone
    return HistoryEntry(
        entry["VersionId"], last_modified, entry["IsLatest"], is_delete_marker, entry.get("Size")
    )


def _newest_first(version: HistoryEntry) -> tuple[bool, float]:
    return not version.is_current, -version.last_modified.timestamp()
