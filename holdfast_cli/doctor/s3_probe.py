"""Tests whether a bucket honours every condition that Holdfast relies on.

Some servers with an S3 API ignore a condition, and then a lock does not lock. Only a trial shows this. Each
request is sent once: after a retry, a failed precondition could be the effect of the first attempt.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from holdfast import names
from holdfast.s3.objects import is_unique
from holdfast_cli.doctor import clock
from holdfast_cli.doctor.checks import attempt
from holdfast_cli.doctor.cleaning import cleaned
from holdfast_cli.doctor.findings import Finding, ok, problem
from holdfast_cli.errors import CommandError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_AT_ONCE: Final = 8
"""The number of concurrent writers of one key."""
_METADATA: Final = {"who": "doctor%40laptop", "lock-id": "0f4e-1"}

_NOT_TRIED: Final = ("KMS.", "NoSuchBucket")
"""The prefixes of error codes whose cause is not a condition, such as `KMS.DisabledException`."""

_NOT_S3: Final = (
    "Do not keep states in this bucket. Holdfast is safe only if the store evaluates S3's conditional "
    "requests as Amazon S3 does."
)
_NO_DATE: Final = "S3 sends no Date header, so Holdfast cannot know how old a lock is."
_VERSIONING: Final = (
    "Enable versioning with `aws s3api put-bucket-versioning --bucket {bucket} "
    "--versioning-configuration Status=Enabled`."
)


@dataclass(frozen=True, slots=True)
class Reply:
    """S3's response to one request whose condition it evaluated.

    `etag` and `version_id` are empty if S3 sent none. `metadata` is as S3 returns it. `code` is the error
    code; it is empty if the request succeeded.
    """

    status: int
    etag: str = ""
    version_id: str = ""
    body: bytes = b""
    metadata: dict[str, str] | None = None
    code: str = ""


def check(client: "S3Client", bucket: str, owner: str) -> list[Finding]:
    """Test the conditions of a bucket on keys below a new prefix, and remove every object that was written.

    The client must send each request once, as `holdfast.s3.store.connect` makes it.
    """
    # Below this prefix a lifecycle rule of the bucket removes objects that are left.
    prefix = f"{names.parse(f'{names.RESERVED}/{secrets.token_hex(16)}').state_key}/"
    probe = _Probe(client, bucket, owner, prefix)

    def run() -> Iterator[Finding]:
        return attempt("s3", probe.run)

    return cleaned(client, bucket, owner, prefix, run, check="s3.removed")


class _Probe:
    """The trials. Each trial yields a sentence for every deviation, of which `run` reports the first."""

    def __init__(self, client: "S3Client", bucket: str, owner: str, prefix: str) -> None:
        self._client = client
        self._where: dict[str, Any] = {"Bucket": bucket, "ExpectedBucketOwner": owner}
        self._prefix = prefix
        self._bucket = bucket

    def run(self) -> Iterator[Finding]:
        trials: tuple[tuple[str, Callable[[str], Iterable[str]], str, str], ...] = (
            ("clock", self._clock, "The clocks of S3 and of this machine agree.", clock.DO),
            ("versioning", self._versioning, "Every write gets its own version ID.", _VERSIONING),
            ("create", self._create, "If-None-Match creates an object once.", _NOT_S3),
            (
                "create_at_once",
                self._create_at_once,
                "Of several concurrent creators, exactly one succeeds.",
                _NOT_S3,
            ),
            (
                "create_again",
                self._create_again,
                "If-None-Match creates an object over a delete marker.",
                _NOT_S3,
            ),
            ("replace", self._replace, "If-Match replaces the version that it names and no other.", _NOT_S3),
            (
                "replace_at_once",
                self._replace_at_once,
                "Of several concurrent writers, exactly one succeeds.",
                _NOT_S3,
            ),
            (
                "delete",
                self._delete,
                "A delete with If-Match affects only an object with the ETag that it names.",
                _NOT_S3,
            ),
            ("remove_version", self._remove_version, "Removing a version keeps all other versions.", _NOT_S3),
            ("read", self._read, "A read returns the last write.", _NOT_S3),
            ("metadata", self._metadata, "User metadata comes back as it was written.", _NOT_S3),
        )
        for name, trial, good, do in trials:
            deviation = next(iter(trial(f"{self._prefix}{name}")), None)
            if deviation is None:
                yield ok(f"s3.{name}", good)
            elif deviation == _NO_DATE:
                yield problem(f"s3.{name}", deviation, "Check whether a proxy removes the header.")
            else:
                yield problem(f"s3.{name}", deviation, do.format(bucket=self._bucket))

    # --- the tests -----------------------------------------------------------------------------------

    def _clock(self, key: str) -> Iterator[str]:
        before = time.time()
        try:
            response: Any = self._client.get_object(**self._where, Key=key)
        except ClientError as error:  # the object does not exist; the response has the header all the same
            response = error.response
        date = response["ResponseMetadata"]["HTTPHeaders"].get("date", "")
        if (off := clock.seconds_off(date, before, time.time())) is None:
            yield _NO_DATE
        else:
            yield from clock.deviation(off, "S3")

    def _versioning(self, key: str) -> Iterator[str]:
        first = self._make(key)
        second = self._put(key, b"2", IfMatch=first.etag)
        # `replace` tests whether it is accepted at all.
        version_ids = [reply.version_id for reply in (first, second) if reply.status == 200]
        for version_id in version_ids:
            if not is_unique(version_id):
                yield (
                    f"S3 returned the version ID {version_id or 'none'!r} for a write to {self._bucket}, so "
                    "the bucket keeps only one version and no history."
                )
        if len(set(version_ids)) < len(version_ids):
            yield "Two writes to one key got the same version ID."

    def _create(self, key: str) -> Iterator[str]:
        self._make(key)
        yield from _unless(412, self._put(key, b"2", IfNoneMatch="*"), "create an object that exists")
        yield from self._unless_holds(key, b"1", "S3 refused to create the object again")

    def _create_at_once(self, key: str) -> Iterator[str]:
        yield from self._unless_one_wins(key, "created the same object", IfNoneMatch="*")

    def _create_again(self, key: str) -> Iterator[str]:
        made = self._make(key)
        self._delete_object(key, IfMatch=made.etag)
        yield from _unless(200, self._put(key, b"2", IfNoneMatch="*"), "create an object that was deleted")

    def _replace(self, key: str) -> Iterator[str]:
        first = self._make(key)
        second = self._put(key, b"2", IfMatch=first.etag)
        yield from _unless(200, second, "replace an object with its ETag in If-Match")
        yield from _unless(
            412,
            self._put(key, b"3", IfMatch=first.etag),
            "replace an object with an earlier ETag in If-Match",
        )
        yield from self._unless_holds(key, b"2", "S3 refused to replace the object")
        missing = f"{key}_missing"
        reply = self._put(missing, b"1", IfMatch=second.etag)
        if reply.status not in (404, 412):
            yield (
                f"S3 responded with {reply.status}, not 404, to a request to replace an object that does not "
                "exist."
            )

    def _replace_at_once(self, key: str) -> Iterator[str]:
        etag = self._make(key, b"first").etag  # another body than the writers': equal bodies have equal ETags
        yield from self._unless_one_wins(key, "replaced the same version", IfMatch=etag)

    def _delete(self, key: str) -> Iterator[str]:
        first = self._make(key)
        second = self._put(key, b"2", IfMatch=first.etag)
        reply = self._delete_object(key, IfMatch=first.etag)
        if self._get(key).status != 200:
            yield (
                "S3 deleted an object whose ETag is not the one in If-Match, and responded with "
                f"{reply.status}. It ignores If-Match on DELETE, so a late release would remove another "
                "client's lock."
            )
        yield from _unless(412, reply, "delete an object with another ETag in If-Match")
        yield from _unless(
            204, self._delete_object(key, IfMatch=second.etag), "delete an object with its ETag in If-Match"
        )
        yield from _unless(404, self._get(key), "read a deleted object")
        yield from _unless(404, self._delete_object(key, IfMatch=second.etag), "delete a deleted object")

    def _remove_version(self, key: str) -> Iterator[str]:
        first = self._make(key)
        second = self._put(key, b"2", IfMatch=first.etag)
        if not is_unique(second.version_id):
            yield "S3 returned no new version ID for a test write, so the check could not remove it."
        yield from _unless(204, self._delete_object(key, VersionId=second.version_id), "remove a version")
        yield from self._unless_holds(key, b"1", "the newest version was removed")
        if self._get(key, VersionId=second.version_id).status != 404:
            yield "S3 confirmed that it removed a version, but the version still exists."

    def _read(self, key: str) -> Iterator[str]:
        etag = self._make(key).etag
        for number in range(5):
            body = str(number).encode()
            etag = self._put(key, body, IfMatch=etag).etag
            yield from self._unless_holds(key, body, "the object was replaced")

    def _metadata(self, key: str) -> Iterator[str]:
        self._make(key, Metadata=_METADATA)
        if (found := self._get(key).metadata) != _METADATA:
            yield f"S3 returned the user metadata {found} of an object that was written with {_METADATA}."

    # --- shared by the tests -------------------------------------------------------------------------

    def _unless_one_wins(self, key: str, what: str, **condition: str) -> Iterator[str]:
        def write(number: int) -> Reply:
            return self._put(key, str(number).encode(), **condition)

        with ThreadPoolExecutor(_AT_ONCE) as threads:
            replies = list(threads.map(write, range(_AT_ONCE)))
        winners = [number for number, reply in enumerate(replies) if reply.status == 200]
        if len(winners) != 1:
            yield f"{len(winners)} of {_AT_ONCE} concurrent writers {what}, but exactly one must succeed."
        # 409: another write is in progress.
        if others := {reply.status for reply in replies} - {200, 409, 412}:
            yield f"S3 responded with {min(others)}, not 412, to a concurrent writer that did not succeed."
        yield from self._unless_holds(key, str(winners[0]).encode(), "several writers competed")

    def _unless_holds(self, key: str, body: bytes, after: str) -> Iterator[str]:
        found = self._get(key)
        if (found.status, found.body) != (200, body):
            yield (
                f"After {after}, S3 did not return the current version. The read had the status "
                f"{found.status}."
            )

    def _make(self, key: str, body: bytes = b"1", **more: Any) -> Reply:
        """Create a trial's object. If S3 refuses it, the trial is impossible: raise `CommandError`."""
        made = self._put(key, body, IfNoneMatch="*", **more)
        if made.status != 200:
            raise CommandError(
                f"S3 refused to write a new object with If-None-Match: {made.status} {made.code}. "
                "If this is not Amazon S3, do not keep states in it."
            )
        return made

    def _put(self, key: str, body: bytes, **condition: Any) -> Reply:
        # With a checksum, as Holdfast writes, so that no damaged body is stored.
        return self._reply(
            lambda: self._client.put_object(
                **self._where, Key=key, Body=body, ChecksumAlgorithm="SHA256", **condition
            )
        )

    def _get(self, key: str, **which: Any) -> Reply:
        return self._reply(lambda: self._client.get_object(**self._where, Key=key, **which))

    def _delete_object(self, key: str, **which: Any) -> Reply:
        return self._reply(lambda: self._client.delete_object(**self._where, Key=key, **which))

    def _reply(self, send: Callable[[], Any]) -> Reply:
        try:
            response = send()
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            code = error.response["Error"]["Code"]
            if status in (403, 429) or (status >= 500 and status != 501) or code.startswith(_NOT_TRIED):
                raise  # S3 has not evaluated the condition
            return Reply(status, code=code)
        return Reply(
            response["ResponseMetadata"]["HTTPStatusCode"],
            response.get("ETag", ""),
            response.get("VersionId", ""),
            response["Body"].read() if "Body" in response else b"",
            response.get("Metadata"),
        )


def _unless(status: int, reply: Reply, what: str) -> Iterator[str]:
    if reply.status != status:
        yield f"S3 responded with {reply.status}, not {status}, to a request to {what}."
