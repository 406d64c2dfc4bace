"""Reads, locks and closes states in an S3 bucket, as `backend "s3"` stores and locks them."""

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, FlexibleChecksumError, HTTPClientError, IncompleteReadError

from holdfast.state.lock_info import LockInfo, read_stored
from holdfast_cli.bucket import refusal
from holdfast_cli.bucket.aws_errors import as_command_errors, code_of
from holdfast_cli.bucket.refusal import LARGEST_POLICY, Refusal
from holdfast_cli.errors import CommandError, UnavailableError
from holdfast_cli.importing import layout, source
from holdfast_cli.importing.layout import DEFAULT, MAIN, Place
from holdfast_cli.importing.plan import first_free
from holdfast_cli.importing.source import LockedThereError, OldLock, OldState
from holdfast_cli.terminal.output import plain

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CLOSED: Final = Refusal("HoldfastImportClosed", ("s3:PutObject",))
"""The statement of the bucket policy that refuses writes."""

_CONFIG: Final = Config(
    connect_timeout=5,
    read_timeout=20,
    max_pool_connections=source.AT_ONCE,
    # The mode "adaptive" sends only a few requests a second for minutes after a few 503s.
    retries={"mode": "standard", "total_max_attempts": 10},
)
_ATTEMPTS: Final = 3
"""How often a body is read that ends too early, and a lock that changes at the same time."""
_CONDITION_FAILED: Final = frozenset(
    # The third is the response to If-Match for an object that is gone.
    {"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "ConditionalCheckFailedException"}
)
_NO_STATES: Final = (".tflock", "/")
"""The ends of the keys of lock objects and folders."""
_CONTENDED: Final = (
    "other clients acquired and released the lock of this state at the same time; run the command again."
)
_MD5: Final = re.compile(r"[0-9a-f]{32}")


def open_s3(settings: source.Settings, *, session: boto3.Session | None = None) -> "S3Source":
    """Return the source at `s3://BUCKET` or `s3://BUCKET/PREFIX`, with the AWS settings of the environment.

    The prefix is a folder or a whole key: `s3://b/p` has the keys `p` and `p/...`, and not `p2`.
    """
    [address] = settings.addresses
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    if not address.startswith("s3://") or not bucket:
        raise CommandError(
            f"{address} is not the address of a bucket: write s3://BUCKET or s3://BUCKET/PREFIX."
        )
    options = settings.options
    with as_command_errors():
        # boto3 itself does not read AWS_REGION.
        region = options.get("region") or os.environ.get("AWS_REGION")
        session = session or boto3.Session(region_name=region)
        s3 = session.client("s3", config=_CONFIG)
        locks: list[_LockObjects | _LockItems] = [_LockObjects(s3, bucket)]
        if table := options.get("dynamodb_table"):
            locks.append(_LockItems(session.client("dynamodb", config=_CONFIG), table, bucket))
    return S3Source(s3, bucket, prefix.strip("/"), layout.folder_of(options), locks)


def _holds(send: Callable[..., object], **request: Any) -> bool:
    """Send a request with a condition. Return False if the condition failed, or a concurrent request won."""
    try:
        send(**request)
    except ClientError as error:
        if code_of(error) not in _CONDITION_FAILED:
            raise
        return False
    return True


def _get(s3: "S3Client", bucket: str, key: str) -> tuple[bytes, str] | None:
    """Return the bytes and the ETag of an object; None if it does not exist."""
    for _ in range(_ATTEMPTS):
        try:
            found = s3.get_object(Bucket=bucket, Key=key)
            return found["Body"].read(), found["ETag"]
        except ClientError as error:
            if code_of(error) == "NoSuchKey":
                return None
            raise
        except (HTTPClientError, IncompleteReadError, FlexibleChecksumError):
            continue  # the SDK does not retry once it has the headers
    raise UnavailableError("its content did not arrive completely; run the command again.")


@dataclass(frozen=True, slots=True)
class _LockObjects:
    """The locks of clients with `use_lockfile`: the object `<key>.tflock` for the state at `<key>`."""

    s3: "S3Client"
    bucket: str

    def put(self, state: str, info: LockInfo) -> bool:
        return _holds(
            self.s3.put_object,
            Bucket=self.bucket,
            Key=f"{state}.tflock",
            Body=info.to_json(),
            ContentType="application/json",
            IfNoneMatch="*",
        )

    def holder(self, state: str) -> bytes | None:
        found = _get(self.s3, self.bucket, f"{state}.tflock")
        return found[0] if found else None

    def remove(self, state: str, info: LockInfo) -> None:
        key = f"{state}.tflock"
        for _ in range(_ATTEMPTS):
            found = _get(self.s3, self.bucket, key)
            if found is None or _parse(found[0]).id != info.id:
                return
            if _holds(self.s3.delete_object, Bucket=self.bucket, Key=key, IfMatch=found[1]):
                return
        raise UnavailableError(_CONTENDED)


@dataclass(frozen=True, slots=True)
class _LockItems:
    """The locks of clients with `dynamodb_table`: an item whose key is `<bucket>/<key>`."""

    dynamodb: Any  # boto3-stubs is installed without DynamoDB
    table: str
    bucket: str

    def put(self, state: str, info: LockInfo) -> bool:
        return _holds(
            self.dynamodb.put_item,
            TableName=self.table,
            Item={**self._key(state), "Info": {"S": info.to_json().decode()}},
            ConditionExpression="attribute_not_exists(LockID)",
        )

    def holder(self, state: str) -> bytes | None:
        found = self.dynamodb.get_item(TableName=self.table, Key=self._key(state), ConsistentRead=True)
        return found["Item"].get("Info", {}).get("S", "").encode() if "Item" in found else None

    def remove(self, state: str, info: LockInfo) -> None:
        _holds(  # a failed condition: the item is gone, or another's
            self.dynamodb.delete_item,
            TableName=self.table,
            Key=self._key(state),
            ConditionExpression="Info = :info",
            ExpressionAttributeValues={":info": {"S": info.to_json().decode()}},
        )

    def check_digest(self, state: str, body: bytes) -> None:
        """Raise `CommandError` if clients would refuse the state because of the digest of its last write.

        Clients accept a state without a digest, and a digest that is not an MD5, and so does this.
        """
        key = {"LockID": {"S": f"{self.bucket}/{state}-md5"}}
        item = self.dynamodb.get_item(TableName=self.table, Key=key, ConsistentRead=True).get("Item", {})
        digest = item.get("Digest", {}).get("S", "").lower()
        actual = hashlib.md5(body, usedforsecurity=False).hexdigest() if body else ""
        if _MD5.fullmatch(digest) and digest != actual:
            content = f"the MD5 {actual}" if body else "no content"
            raise CommandError(
                f"its digest in the table {self.table} is {digest}, but the object has {content}, so "
                "`backend "
                '"s3"` refuses the state. A write is in progress or was interrupted. Run the command again '
                "later. If the error remains, restore the right version of the object, or set the digest in "
                f"the item {self.bucket}/{state}-md5 to the MD5 of the object."
            )

    def _key(self, state: str) -> dict[str, dict[str, str]]:
        return {"LockID": {"S": f"{self.bucket}/{state}"}}


@dataclass(frozen=True, slots=True)
class S3Source:
    """A bucket with states at `<key>` and, of workspaces, at `<workspaces>/<workspace>/<key>`.

    Without `workspaces` the latter is `<workspace>/<key>`.

    The ID of a state is its whole key. With a table, a lock is the object and then the item, as for clients
    that use both.
    """

    s3: "S3Client"
    bucket: str
    prefix: str
    workspaces: str
    locks: "Sequence[_LockObjects | _LockItems]"

    @property
    def address(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def states(self) -> Iterator[OldState]:
        """Yield the states. The workspaces of a configuration have a name and a tag in common.

        Lock objects and folders are left out. Empty objects are listed. An object is certain to be a state
        if its key ends with `.tfstate`, or is the key of the address.
        """
        if self.locks:
            with self._as_lines(self.address):
                self.locks[-1].holder(self.prefix)  # a wrong table is found before anything is locked
        listed = self._listed()
        found = {
            key: self._place(key, place) for key, place in layout.places(listed, self.workspaces).items()
        }
        workspaces: dict[str, set[str]] = defaultdict(set)
        for key, place in found.items():
            if place is not None and not self._left_out(key):
                workspaces[place.key].add(place.workspace)
        apps = self._apps([key for key, of_key in workspaces.items() if of_key != {DEFAULT}])
        for key, place in sorted(found.items()):
            if place is None:
                continue
            of_key = workspaces[place.key]
            app = apps.get(place.key)
            # No other workspace of the configuration has this name.
            workspace = first_free(MAIN, of_key) if place.workspace == DEFAULT else place.workspace
            yield OldState(
                key,
                f"{app}/{workspace}" if app else layout.configuration(self._below(place.key)),
                {app: ""} if app else {},
                place.workspace if app else "",
                is_certain=key.endswith(".tfstate") or self._is_typed(key),
                left_out=self._left_out(key),
            )

    def _listed(self) -> list[str]:
        """Return the keys below the prefix, in any workspace, and maybe others; without locks and folders."""
        # Without a prefix, and without a folder for workspaces, the list of the bucket has them all.
        prefixes = (self.prefix, f"{self.workspaces}/") if self.prefix and self.workspaces else ("",)
        found = set()
        with self._as_lines(self.address):
            pages = self.s3.get_paginator("list_objects_v2")
            for prefix in prefixes:
                for page in pages.paginate(Bucket=self.bucket, Prefix=prefix):
                    found |= {listed["Key"] for listed in page.get("Contents", [])}
        return sorted(key for key in found if not key.endswith(_NO_STATES))

    def _place(self, key: str, place: Place) -> Place | None:
        """Return the place of a state; None if it is not below the prefix, in any workspace."""
        if layout.below(place.key, self.prefix) is not None:
            return place
        return None if layout.below(key, self.prefix) is None else Place(key, DEFAULT)

    def _below(self, key: str) -> str:
        """Return a key without the prefix."""
        found = layout.below(key, self.prefix)
        return key if found is None else found

    def _apps(self, keys: Collection[str]) -> dict[str, str]:
        """Return a name for each configuration with workspaces. It is also a tag, so no two have the same.

        It has one segment: `cloud {}` then finds the workspaces of a configuration under their own names.
        """
        apps: dict[str, str] = {}
        for key in sorted(keys):
            wanted = layout.tag(layout.configuration(self._below(key)))
            apps[key] = first_free(wanted, apps.values())
        return apps

    def covers(self, state: str) -> bool:
        at = layout.in_workspaces(self.workspaces).fullmatch(state)
        paths = (layout.below(key, self.prefix) for key in (state, at[2] if at else state))
        return not state.endswith(_NO_STATES) and any(path is not None for path in paths)

    def _left_out(self, key: str) -> str:
        return "" if self._is_typed(key) else layout.left_out(key)

    def _is_typed(self, key: str) -> bool:
        """Return whether the address names this key, in any workspace."""
        return bool(layout.of_configuration(self.workspaces, self.prefix).fullmatch(key))

    def read(self, state: str) -> bytes | None:
        """Return the object, unless its clients would refuse it because of its digest in the table."""
        with self._as_lines(self._where(state)):
            found = _get(self.s3, self.bucket, state)
            body = found[0] if found else None
            for kind in self.locks:
                if isinstance(kind, _LockItems):
                    kind.check_digest(state, body or b"")
        return body

    def prepare_lock(self, state: str) -> str:  # noqa: ARG002 the interface has it
        return ""

    def lock(self, state: str, lock: OldLock) -> None:
        info = self._info(state, lock)
        try:
            for kind in self.locks:
                self._acquire(kind, state, info)
        except LockedThereError:
            self.unlock(state, lock)  # the other kind may be held, by this call or an earlier one
            raise

    def _acquire(self, kind: "_LockObjects | _LockItems", state: str, info: LockInfo) -> None:
        with self._as_lines(self._where(state)):
            for _ in range(_ATTEMPTS):
                if kind.put(state, info):
                    return
                found = kind.holder(state)
                if found is None:
                    continue  # it was released at the same time
                holder = _parse(found)
                if holder.id == info.id:
                    return
                raise LockedThereError(_held_by(holder))
            raise LockedThereError(_CONTENDED)

    def unlock(self, state: str, lock: OldLock) -> None:
        info = self._info(state, lock)
        with self._as_lines(self._where(state)):
            for kind in self.locks:
                kind.remove(state, info)

    def stopped_by_lock(self) -> tuple[str, str]:
        never = "clients that do not lock, or `force-unlock`"
        for kind in self.locks:
            if isinstance(kind, _LockItems):
                return f'clients with `use_lockfile` or with `dynamodb_table = "{kind.table}"`', never
        return "clients with `use_lockfile`", f"clients with only a `dynamodb_table`, {never}"

    can_refuse_writes = True

    def refuse_writes(self, refused: Collection[str], allowed: Collection[str]) -> None:
        """Change the statement `HoldfastImportClosed` of the bucket policy, which denies s3:PutObject.

        Other imports may have added objects to the statement, which stay.
        """
        bucket_arn = f"arn:{self.s3.meta.partition}:s3:::{self.bucket}"
        more, fewer = ({f"{bucket_arn}/{key}" for key in keys} for keys in (refused, allowed))
        with self._as_lines(f"s3://{self.bucket}"):
            old = refusal.policy(self.s3, self.bucket)
            new = CLOSED.changed(old, more, fewer)
            if new is not None and len(new) > LARGEST_POLICY:
                raise CommandError(
                    f"the bucket policy would have {len(new)} bytes, and S3 accepts at most "
                    f"{LARGEST_POLICY}. Close without --bucket-policy. To refuse writes nevertheless, deny "
                    f"s3:PutObject in the policy for a pattern such as {bucket_arn}/*.tfstate."
                )
            refusal.put(self.s3, self.bucket, old, new)

    def _info(self, state: str, lock: OldLock) -> LockInfo:
        return lock.info.at(f"{self.bucket}/{state}")

    def _where(self, state: str) -> str:
        return f"s3://{self.bucket}/{state}"

    @contextmanager
    def _as_lines(self, where: str) -> Iterator[None]:
        """Raise errors of AWS and its SDK as `CommandError` with one line that begins with `where`."""
        try:
            with as_command_errors():
                try:
                    yield
                except ClientError as error:
                    if (advice := _advice(error)) is None:
                        raise
                    raise CommandError(advice) from error
        except CommandError as error:
            raise type(error)(f"{where}: {error}") from error


def _parse(lock: bytes) -> LockInfo:
    return read_stored(lock, path="", created=datetime.min.replace(tzinfo=UTC))


def _held_by(holder: LockInfo) -> str:
    who, operation, text = (
        "" if said == "unknown" else plain(" ".join(said.split()))
        for said in (holder.who, holder.operation, holder.text)
    )
    since = plain(str(holder.for_client()["Created"]))
    known = (
        f"operation {operation}" if operation else "",
        "" if since.startswith("0001") else f"since {since}",
        f"lock ID {plain(holder.id)}",
        text.rstrip("."),
    )
    return (
        f"{who or 'an unknown client'} holds the state's lock ({'; '.join(filter(None, known))}). Wait, or, "
        "if that client has ended, release the lock with force-unlock in the source. Then run the command "
        "again."
    )


_ACTIONS: Final[Mapping[str, str]] = {
    "ListObjectsV2": "s3:ListBucket",
    **{operation: f"dynamodb:{operation}" for operation in ("PutItem", "GetItem", "DeleteItem")},
}
"""The operations whose action has another name than `s3:` and the operation."""
_OTHER_REGION: Final = "the bucket is in another region. Set --region to the region of the bucket."
_ADVICE: Final[Mapping[str, str]] = {
    "NoSuchBucket": "the bucket does not exist. Check the address.",
    "PermanentRedirect": _OTHER_REGION,
    "AuthorizationHeaderMalformed": _OTHER_REGION,
    "MethodNotAllowed": (
        "S3 allows this request only to identities of the bucket's own account. Use such an identity."
    ),
    "InvalidObjectState": "the object is archived. Restore it with `aws s3api restore-object`.",
    "InvalidRequest": (
        "S3 does not accept the request. If the object is encrypted with a key of your own "
        "(`sse_customer_key`), store the object without this key first."
    ),
    "ResourceNotFoundException": "the table does not exist. Check --dynamodb-table and --region.",
    "ValidationException": "DynamoDB does not accept the request. Check that the table's partition key is "
    "the string LockID.",
}


def _advice(error: ClientError) -> str | None:
    """Return what went wrong and what to do, as the rest of a line; None if the general advice fits."""
    code = code_of(error)
    if not code.startswith("AccessDenied"):
        return _ADVICE.get(code)
    text = " ".join(error.response["Error"].get("Message", "").split()).rstrip(".")
    of_key = re.search(r"kms:\w+", text)
    action = of_key[0] if of_key else _ACTIONS.get(error.operation_name, f"s3:{error.operation_name}")
    return f"AWS does not allow {action}: {text}. Use an identity that has the permission {action}."
