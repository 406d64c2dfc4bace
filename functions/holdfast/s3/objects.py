"""The values of requests to S3: objects and their versions, lists, conditions and outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """The metadata of one version of an object, as S3 returns it.

    Attributes:
        etag: an opaque text; the next write sends it as its condition.
        version_id: empty in a bucket without versioning.
        metadata: user metadata, decoded.
        has_own_etag: whether no other version of the key ever has this ETag: true with a KMS key. Otherwise
            the ETag is a digest of the bytes, so equal bytes have equal ETags.
        replication_status: `REPLICA` for a copy that S3's replication made; `PENDING`, `COMPLETED` or
            `FAILED` for a version that S3 is to copy elsewhere; otherwise empty. It changes by itself.
    """

    etag: str
    version_id: str
    size: int
    last_modified: datetime
    metadata: Mapping[str, str]
    has_own_etag: bool
    replication_status: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Object:
    """An object with its body; `read_at` is the time of the response by S3's clock, in whole seconds."""

    version: ObjectVersion
    body: bytes
    read_at: datetime


@dataclass(frozen=True, slots=True)
class Larger:
    """An object that was not read, because it is larger than the limit."""

    size: int


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One entry in the history of a key: a version, or a delete marker, whose size is None."""

    id: str
    last_modified: datetime
    is_current: bool
    is_delete_marker: bool
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A current object in a list of keys."""

    key: str
    size: int
    last_modified: datetime


@dataclass(frozen=True, slots=True)
class KeysPage:
    """A page of keys, in order of their UTF-8 bytes.

    Attributes:
        last: the key after which the next page begins; None on the last page.
    """

    keys: Sequence[ListedKey]
    last: str | None


@dataclass(frozen=True, slots=True)
class VersionsPage:
    """A page of the versions and delete markers of several keys.

    Attributes:
        entries: in order of keys; for each key the current entry first, then newest first by time.
        last: the key and the version ID after which the next page begins; None on the last page.
    """

    entries: Sequence[tuple[str, HistoryEntry]]
    last: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class IfAbsent:
    """Write only if the key has no current object. A delete marker is not an object."""


@dataclass(frozen=True, slots=True)
class IfMatch:
    """Write or delete only if the current object has this ETag."""

    etag: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The write took effect.

    The version's time is the time of S3's response, which can be later than the time that a read returns.
    """

    version: ObjectVersion

    @property
    def etag(self) -> str:
        return self.version.etag

    @property
    def version_id(self) -> str:
        return self.version.version_id


@dataclass(frozen=True, slots=True)
class PreconditionFailed:
    """The condition did not hold: nothing was written or deleted, unless an earlier attempt took effect."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The object is gone."""


@dataclass(frozen=True, slots=True)
class Protected:
    """S3 refused to delete the version: it is under retention, or the caller lacks the permission.

    It still exists, unless an earlier attempt, whose response was lost, took effect.
    """


def is_unique(version_id: str) -> bool:
    """Return whether a version ID identifies a single object for ever.

    If the bucket's versioning is off or suspended, the version ID is empty or `null`.
    """
    return version_id not in ("", "null")
