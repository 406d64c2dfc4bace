"""Fences the old side of a replica, compares both sides, and removes the stale locks from the replica.

S3 copies versions and delete markers to a replica, but never the removal of a version, by which a lock is
released. So a state is locked there by its last holder, beside all locks before.

Each version of a lock is judged by itself, by what no client can write (`is_copy`): S3's replication status,
or the version's ID in the listing of the old side. A client chooses every field of its lock info. The order
in which S3 lists the versions of a replica is not documented, so it decides nothing.

While the replica's stack is there, the old side is only fenced and compared: S3 goes on copying until the
stack's role is deleted. Such a run writes nothing but the fence. Only a run that found the fence in place can
end well: S3 may take seconds to apply a policy, and a client may write meanwhile.

To remove these locks is as safe as to break a lock:

- The old bucket is fenced first: it refuses writes and deletions. A client that holds a lock there and uses
  the old API gets an error for its write, and what it wrote before is compared afterwards. S3 may take
  seconds to apply a policy, and to copy what was written last: the command can be run again, and then
  compares again.
- A client that uses the new API with the ID of a removed lock is refused, because each write compares the
  lock. It can acquire a lock of its own, as everybody can.
- Exactly the version that was read is removed. A lock that was acquired in the new place is another
  version, and no copy, so that every run leaves it, also below a copy that arrives late.
- The copies below the current version go first. In any other order, if the command is killed, an older lock,
  or a freeze that was lifted, would reappear.
- A current freeze stays. A freeze below goes only if the listing of the old side lacks it: it was lifted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import ClientError

from holdfast import timestamp
from holdfast.names import LOCKS, STATES, StateName
from holdfast.s3.budget import Budget
from holdfast.s3.objects import ObjectVersion, is_unique
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store
from holdfast.state import held
from holdfast.state.held import CommandLock, HeldLock
from holdfast_cli.bucket import refusal
from holdfast_cli.bucket.aws_errors import as_command_errors, code_of
from holdfast_cli.bucket.records import PATIENCE
from holdfast_cli.bucket.refusal import Refusal
from holdfast_cli.bucket.stack import CLIENT_CONFIG
from holdfast_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable

    import boto3
    from mypy_boto3_s3 import S3Client

    from holdfast_cli.terminal.output import Progress

FENCE: Final = Refusal("HoldfastRecovered", ("s3:PutObject", "s3:DeleteObject"))
"""The statement that fences the old bucket. Locks can still be released there."""
LATELY: Final = timedelta(hours=1)
"""Before the newest object of the replica: tokens and trust records that changed since are to be checked."""

_AT_ONCE: Final = 8
"""Locks that are read or removed in parallel; the SDK keeps ten connections."""
_REPLICA: Final = "REPLICA"
NOT_COPIED: Final = ("sessions/", "probes/", "watch/")
"""The prefixes that a replica lacks. Sessions and probes pass within days. No operator may read the
credentials of the probe of `watch`, and `holdfast watch enable` makes new ones."""

_T = TypeVar("_T")
_R = TypeVar("_R")


class NoReplicaError(CommandError):
    """The old bucket can be read, and its replica is another bucket."""


@dataclass(frozen=True, slots=True)
class Side:
    """A bucket, and a client of its region."""

    s3: "S3Client"
    bucket: str
    account: str

    def store(self) -> Store:
        """Return a store for one object; its requests fail after `PATIENCE` seconds."""
        return Store(self.s3, self.bucket, self.account, Budget.seconds(PATIENCE))

    @property
    def where(self) -> dict[str, Any]:
        return {"Bucket": self.bucket, "ExpectedBucketOwner": self.account}


@dataclass(frozen=True, slots=True)
class Listing:
    """All versions of a bucket.

    Attributes:
        current: the current entry of each key, as S3 lists it; a delete marker has no `Size`.
        versions: the IDs of each key's versions without delete markers, newest first.
        ids: the key and the ID of every entry.
    """

    current: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    versions: dict[str, list[str]] = field(default_factory=dict)
    ids: set[tuple[str, str]] = field(default_factory=set)

    @property
    def newest(self) -> datetime | None:
        return max((entry["LastModified"] for entry in self.current.values()), default=None)

    def changed_lately(self) -> list[str]:
        """Return the keys of tokens and trust records that changed shortly before the newest entry."""
        newest = self.newest
        return [
            key
            for key, entry in sorted(self.current.items())
            if newest and key.startswith(("tokens/", "trust/")) and entry["LastModified"] >= newest - LATELY
        ]


@dataclass(frozen=True, slots=True)
class Late:
    """An object whose newest version is not current in the replica.

    Attributes:
        state: empty for a record.
        below: the ID of the newest version if it was copied, and an older one is current; otherwise empty.
    """

    key: str
    state: str
    there: str
    here: str
    below: str = ""

    def to_json(self) -> dict[str, object]:
        return {"key": self.key, "state": self.state or None, "there": self.there, "here": self.here}


@dataclass(frozen=True, slots=True)
class ReplicaLock:
    """A current lock in the replica. `is_stale`: it was acquired on the old side, and is no freeze."""

    name: StateName
    lock: HeldLock
    is_stale: bool

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name.value,
            "id": self.lock.info.id,
            "held_by": self.lock.holder,
            "who": self.lock.info.who or None,
            "since": self.lock.version.last_modified.isoformat(),
            "freeze": self.lock.freeze is not None,
            "removed": self.is_stale,
        }


def side(session: "boto3.Session", bucket: str, account: str, region: str | None = None) -> Side:
    """Return a bucket of a region, by default of the session's."""
    if region is None:
        return Side(connect(session), bucket, account)
    return Side(session.client("s3", region_name=region, config=CLIENT_CONFIG), bucket, account)


def fence(old: Side, new: Side) -> bool:
    """Let the old bucket refuse writes and deletions.

    Returns:
        Whether it did so before.

    Raises:
        NoReplicaError: the new bucket is not its replica.
        CommandError: it cannot be fenced; it may be gone.
    """
    with as_command_errors():
        try:
            rules = old.s3.get_bucket_replication(**old.where)["ReplicationConfiguration"]["Rules"]
        except ClientError as error:
            if code_of(error) != "ReplicationConfigurationNotFoundError":
                raise
            rules = []
        if not any(rule["Destination"]["Bucket"].endswith(f":{new.bucket}") for rule in rules):
            raise NoReplicaError(
                f"The bucket {old.bucket} exists, but {new.bucket} is not its replica. Nothing was changed. "
                "Check --team, --region and --from."
            )
        before = refusal.policy(old.s3, old.bucket)
        everything = f"arn:{old.s3.meta.partition}:s3:::{old.bucket}/*"
        after = FENCE.changed(before, [everything])
        refusal.put(old.s3, old.bucket, before, after)
        return after == before


def listing(side: Side, progress: "Progress") -> Listing:
    """List all versions of a bucket, but not their content."""
    listed = Listing()
    with as_command_errors(), progress:
        for page in side.s3.get_paginator("list_object_versions").paginate(**side.where):
            for version in page.get("Versions", []):
                listed.versions.setdefault(version["Key"], []).append(version["VersionId"])
            entries: list[Mapping[str, Any]] = [*page.get("Versions", [])]
            entries += page.get("DeleteMarkers", [])
            for entry in entries:
                listed.ids.add((entry["Key"], entry["VersionId"]))
                if entry["IsLatest"]:
                    listed.current[entry["Key"]] = entry
            progress.show(f"{len(listed.ids)} versions so far in {side.bucket}")
    return listed


def late(old: Side, new: Side, there: Listing, here: Listing) -> list[Late]:
    """Return the objects of the old side whose newest version has not reached the replica, or is not current.

    A copy has the version ID of its original. Unless the copy is current, the metadata of both is compared. A
    version that was written in the new place may be above the copy, if it follows the copy.
    """
    not_current = []
    for key, entry in sorted(there.current.items()):
        own = here.current.get(key)
        if key.endswith(LOCKS.suffix) or key.startswith(NOT_COPIED):
            continue
        below, state = "", _state_of(key)
        is_written_here = own is not None and _id_of(key, own) not in there.ids
        if _id_of(key, entry) in here.ids:
            if own is None or own["VersionId"] == entry["VersionId"]:
                continue
            if is_written_here and not (state and "Size" in own and "Size" in entry):
                continue  # a record, or a deletion, after the copy
            below = entry["VersionId"]
        if own is not None and (own.get("ETag"), own.get("Size")) == (entry.get("ETag"), entry.get("Size")):
            continue
        if own is None and "Size" not in entry:
            continue  # deleted there, and never here
        compared = [_revision(old, key, entry), _revision(new, key, own)] if state else [{}, {}]
        may_follow = is_written_here or not below
        if state and compared[0] and may_follow and _is_at_least(compared[1], compared[0]):
            continue
        not_current.append(Late(key, state, _words(compared[0], entry), _words(compared[1], own), below))
    return not_current


def _id_of(key: str, entry: Mapping[str, Any]) -> tuple[str, str]:
    return key, entry["VersionId"]


def _revision(side: Side, key: str, entry: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the metadata of a state's current version; empty if it does not exist."""
    if entry is None or "Size" not in entry:
        return {}
    with as_command_errors():
        return side.s3.head_object(**side.where, Key=key, VersionId=entry["VersionId"])["Metadata"]


def _is_at_least(revision: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether a revision is another's, or a later one of the same lineage."""
    if revision.get("lineage") != other.get("lineage"):
        return False
    serials = [each.get("serial", "") for each in (revision, other)]
    if not all(serial.isdecimal() for serial in serials):
        return False
    mine, theirs = map(int, serials)
    return mine > theirs or (mine == theirs and revision.get("sha256") == other.get("sha256"))


def _words(revision: Mapping[str, str], entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return "missing"
    if "Size" not in entry:
        return "deleted"
    if serial := revision.get("serial"):
        return f"serial {serial}"
    return f"written {timestamp.write(entry['LastModified'])}"


def _state_of(key: str) -> str:
    if not (key.startswith(STATES.prefix) and key.endswith(STATES.suffix)):
        return ""
    return key.removeprefix(STATES.prefix).removesuffix(STATES.suffix)


def is_copy(key: str, version: ObjectVersion, there: Listing | None) -> bool:
    """Return whether a version in the replica is a copy of the old side's, by what no client can write.

    S3 gives each copy the status, and any other status to what it copies from here. Without a status, a copy
    has the ID of a version of the old side. `there` is None if the old side cannot be read.
    """
    if not is_unique(version.version_id):
        return False
    if version.replication_status:
        return version.replication_status == _REPLICA
    return there is not None and (key, version.version_id) in there.ids


def is_stale(key: str, version: ObjectVersion, there: Listing | None) -> bool:
    """Return whether the current version of a lock is a lock of the old side. Every freeze stays."""
    return is_copy(key, version, there) and "freeze" not in version.metadata


def is_removable_below(key: str, version: ObjectVersion, there: Listing | None) -> bool:
    """Return whether a version below the current one is a lock of the old side, or a freeze lifted there."""
    is_lifted = there is not None and (key, version.version_id) not in there.ids
    return is_copy(key, version, there) and (is_lifted or "freeze" not in version.metadata)


def locks_in(new: Side, here: Listing, there: Listing | None, progress: "Progress") -> list[ReplicaLock]:
    """Return the locks and freezes that are current in the replica."""

    def read(key: str) -> ReplicaLock | None:
        name = LOCKS.name(key)
        return _current_lock(new.store(), name, there) if name else None  # no API has a state of this name

    keys = [
        key for key, entry in sorted(here.current.items()) if key.endswith(LOCKS.suffix) and "Size" in entry
    ]
    return _by_name(_for_each(keys, read, "locks read", progress))


def _current_lock(store: Store, name: StateName, there: Listing | None) -> ReplicaLock | None:
    lock = held.read(store, name)
    return ReplicaLock(name, lock, is_stale(name.lock_key, lock.version, there)) if lock else None


def _by_name(locks: Iterable[ReplicaLock | None]) -> list[ReplicaLock]:
    return sorted((lock for lock in locks if lock), key=lambda lock: lock.name.value)


def remove(
    new: Side, here: Listing, there: Listing | None, locks: Sequence[ReplicaLock], progress: "Progress"
) -> list[ReplicaLock]:
    """Remove the stale locks, and below each lock and freeze the released ones. Return what stays."""
    remove_one = partial(_remove, new, here, there)
    return _by_name(_for_each(locks, remove_one, "locks removed", progress))


def _remove(new: Side, here: Listing, there: Listing | None, current: ReplicaLock) -> ReplicaLock | None:
    store, name = new.store(), current.name
    for version_id in reversed(here.versions[name.lock_key]):
        if version_id == current.lock.identity.version_id:
            continue
        store.budget.prolong(PATIENCE)
        version = store.read_version(name.lock_key, version_id)
        if version and is_removable_below(name.lock_key, version, there):
            # A version under retention stays: below a delete marker it is no lock.
            store.remove_version(name.lock_key, version_id)
    store.budget.prolong(PATIENCE)
    # Read again, because somebody can have broken the lock and acquired another since all locks were read.
    left = _current_lock(store, name, there) if current.is_stale else current
    while left and left.is_stale and isinstance(left.lock, CommandLock):
        held.remove(store, name, left.lock)
        left = _current_lock(store, name, there)
    return left


def _for_each(
    items: Sequence[_T], work: "Callable[[_T], _R]", what: str, progress: "Progress"
) -> Iterator[_R]:
    """Yield the results, `_AT_ONCE` at the same time. On an error or Ctrl-C no further item begins."""
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        futures = [pool.submit(work, item) for item in items]
        with progress:
            for number, done in enumerate(as_completed(futures), start=1):
                progress.count(number, len(items), what)
                yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)
