"""Looks at every current object of a state bucket: its key, its copy in the replica, the state of a lock."""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from holdfast.names import LOCKS, STATES
from holdfast.template import DeployedTemplate
from holdfast.watching import OLD
from holdfast_cli.bucket.aws_errors import code_of
from holdfast_cli.bucket.recovering import NOT_COPIED
from holdfast_cli.doctor.checks import is_denied
from holdfast_cli.doctor.findings import Finding, note, ok, problem
from holdfast_cli.terminal.output import Progress, some

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LATE: Final = timedelta(minutes=15)
"""The age from which an object that S3 has not copied is a problem; S3 copies most within seconds."""

_AT_ONCE: Final = 10
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class _Object:
    """A current object.

    Attributes:
        key: its KMS key; empty if it is under a key of S3.
        replication: S3's status of its copy; empty if S3 does not copy it.
        age: how long ago it was written, by S3's clock.
        is_freeze: whether it is a lock that a freeze made.
    """

    name: str
    key: str
    replication: str
    age: timedelta
    is_freeze: bool


def check(
    s3: "S3Client", bucket: str, template: DeployedTemplate, keys: Collection[str]
) -> Iterator[Finding]:
    """Yield the findings about the keys of objects, the states of locks, and the copies in the replica.

    Args:
        keys: the keys that the functions may use.
    """
    objects, denied = _look(s3, bucket, template.account)
    yield from _keys(objects, denied, keys)
    yield from _locks(objects, denied)
    if any("ReplicationConfiguration" in each for _, each in template.resources("AWS::S3::Bucket")):
        yield from _copies(objects)


def _look(s3: "S3Client", bucket: str, owner: str) -> tuple[list[_Object], list[str]]:
    """Return the current objects, and the names of those that AWS denies."""
    where: Any = {"Bucket": bucket, "ExpectedBucketOwner": owner}
    listed = [
        found["Key"]
        for page in s3.get_paginator("list_objects_v2").paginate(**where)
        for found in page.get("Contents", [])
        if not found["Key"].startswith(NOT_COPIED)
    ]
    denied: list[str] = []

    def look(name: str) -> _Object | None:
        try:
            head = s3.head_object(**where, Key=name)
        except ClientError as error:
            if code_of(error) == "404":
                return None  # removed after it was listed
            if is_denied(error):
                denied.append(name)
                return None
            raise
        now: datetime = parsedate_to_datetime(head["ResponseMetadata"]["HTTPHeaders"]["date"])
        status, key = head.get("ReplicationStatus", ""), head.get("SSEKMSKeyId", "")
        return _Object(name, key, status, now - head["LastModified"], "freeze" in head["Metadata"])

    objects = []
    progress = Progress()
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        for count, seen in enumerate(pool.map(look, listed), start=1):
            progress.count(count, len(listed), "objects looked at")
            if seen:
                objects.append(seen)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C, do not wait for the requests
        progress.end()
    return objects, sorted(denied)


def _keys(objects: Sequence[_Object], denied: Sequence[str], keys: Collection[str]) -> Iterator[Finding]:
    under: dict[str, list[str]] = {key: [] for key in keys}
    for each in objects:
        under.setdefault(each.key, []).append(each.name)
    strange = under.keys() - {*keys, ""}
    for key in sorted(strange):
        yield problem(
            "keys.objects",
            f"The functions may not use the key {key}, which encrypts {some(under[key], _SHOWN)}.",
            f'Add "{key}" to previous_keys in teams.toml, and deploy the stack.',
        )
    if denied:
        yield note(
            "keys.objects",
            (
                f"Not checked: {some(denied, _SHOWN)}. AWS does not allow these credentials to read the "
                "metadata."
            ),
        )
    if not strange:
        counts = [f"{len(names)} with {key or 'keys of S3'}" for key, names in sorted(under.items())]
        which = "every other current object" if denied else "every current object"
        yield ok("keys.objects", f"The functions may read {which}: {', '.join(counts) or 'none'}.")


def _locks(objects: Sequence[_Object], denied: Sequence[str]) -> Iterator[Finding]:
    """Yield the old locks without a state: a wrong `lock_address` leaves them."""
    states = {STATES.name(key) for key in (*denied, *(each.name for each in objects))}
    left = [
        name.value
        for each in objects
        if each.age >= OLD and not each.is_freeze and (name := LOCKS.name(each.name)) and name not in states
    ]
    if left:
        yield note(
            "locks",
            (
                "These names have no state, but they have a lock that is older than an hour: "
                f"{some(left, _SHOWN)}."
            ),
            "If no first apply is running, check that lock_address and address name the same state in the "
            "configuration of the lock's holder. `holdfast lock break STATE` removes the lock.",
        )
    else:
        yield ok("locks", "Every lock that is older than an hour belongs to a state.")


def _copies(objects: Sequence[_Object]) -> Iterator[Finding]:
    """Yield whether S3 has copied each object.

    An object of before the replica has no status, or that of a copy from a bucket before this one.
    """
    failed = [each.name for each in objects if each.replication == "FAILED"]
    late = [each.name for each in objects if each.replication == "PENDING" and each.age > LATE]
    before = [each.name for each in objects if each.replication in ("", "REPLICA")]
    minutes = LATE // timedelta(minutes=1)
    for names, what in ((failed, "S3 failed to copy"), (late, f"After {minutes} minutes S3 has not copied")):
        if names:
            yield problem(
                "replica.copies",
                f"{what} {some(names, _SHOWN)} to the replica.",
                "Check the replication role, and the replica's key and bucket policy. Then copy the objects "
                "with S3 Batch Replication, as docs/operate/recovery.md says.",
            )
    if before:
        yield note(
            "replica.copies",
            f"S3 has not copied these objects, which are older than the replica: {some(before, _SHOWN)}.",
            "Copy them with S3 Batch Replication, as docs/operate/recovery.md says.",
        )
    if not failed and not late:
        copied = sum(each.replication == "COMPLETED" for each in objects)
        yield ok("replica.copies", f"The replica has {copied} of {len(objects)} current objects.")
