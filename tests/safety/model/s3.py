"""A model of S3: a versioned bucket, and a staging bucket without versions for uploads.

The model computes S3's answer to a request, and the buckets afterwards.

A bucket is a value and a request changes nothing in place, so that a search can go on from one bucket in
many ways. Every request takes effect at once and as a whole, as S3's strong consistency and its
conditional writes promise. `tests/safety/conformance.py` compares the model with two S3 servers.

The semantics are those of the S3 user guide, "Conditional requests", "Using S3 Versioning" and "Deleting
object versions".
"""

from collections.abc import Iterator
from hashlib import md5
from typing import Final, NamedTuple

LOST: Final = 0
"""In place of a status: no answer came."""


class Entry(NamedTuple):
    """A version of a key, or a delete marker, whose `body` is None.

    `version` counts the versions and delete markers that the key ever had. `modified` is in seconds of S3's
    clock, `metadata` in pairs.
    """

    version: int
    body: bytes | None
    etag: str
    modified: int
    metadata: tuple[tuple[str, str], ...]

    @property
    def version_id(self) -> str:
        """The version ID; empty in a bucket without versions."""
        return f"v{self.version}" if self.version else ""

    @property
    def has_own_etag(self) -> bool:
        """Return whether no other version has its ETag: the ETag is not the digest of the bytes alone."""
        return "-" in self.etag


class Key(NamedTuple):
    """A key with its history.

    `taken` counts the versions and delete markers that the key ever had. `entries` are those that exist,
    oldest first.
    """

    name: str
    taken: int
    entries: tuple[Entry, ...]


class Request(NamedTuple):
    """A request, with everything that the model looks at.

    `operation` is the SDK's name. `key` is the prefix for a listing. `if_match` is the ETag that has
    to be current; with `if_none_match` no object may be current. `metadata` is in pairs. `first_byte`: a
    GetObject of the first byte only. `staged`: the request goes to the staging bucket.
    """

    operation: str
    key: str
    version_id: str | None = None
    if_match: str | None = None
    if_none_match: bool = False
    body: bytes = b""
    metadata: tuple[tuple[str, str], ...] = ()
    first_byte: bool = False
    staged: bool = False

    @property
    def conditional(self) -> bool:
        """Return whether S3 may refuse the request as a conflict with another request."""
        return self.if_none_match or self.if_match is not None


class Answer(NamedTuple):
    """S3's response.

    `status` is the HTTP status, or `LOST`. `entry` is the version that was read or written. `history` has the
    keys that begin with a listing's prefix. `date` is in seconds of S3's clock.
    """

    status: int
    code: str = ""
    entry: Entry | None = None
    history: tuple[Key, ...] = ()
    date: int = 0


class Effect(NamedTuple):
    """The change that a request made.

    `added` is current now. `removed` is permanently gone. `before` was current; None for nothing or a delete
    marker.
    """

    key: str
    added: Entry | None
    removed: Entry | None
    before: Entry | None


class Bucket(NamedTuple):
    """The bucket, and the keys that are `staged` in the staging bucket, which has no versions.

    `keys` are in the order of their names. `digests`: an ETag is a digest of the bytes, as with keys that S3
    manages; otherwise each version has its own ETag, as with KMS. `versioned`: the bucket keeps every version
    of a key.
    """

    keys: tuple[Key, ...] = ()
    digests: bool = False
    versioned: bool = True
    staged: tuple[Key, ...] = ()

    def key(self, name: str) -> Key:
        """Return a key with its history, which is empty if the key was never used."""
        return next((key for key in self.keys if key.name == name), Key(name, 0, ()))

    def current(self, name: str) -> Entry | None:
        """Return the version that a GetObject finds; None for nothing or a delete marker."""
        entries = self.key(name).entries
        return entries[-1] if entries and entries[-1].body is not None else None

    def earlier(self, name: str) -> Iterator["Bucket"]:
        """Yield the bucket as it was after each change of a key, the first change first."""
        key = self.key(name)
        for taken in range(1, len(key.entries) + 1):
            yield self._with(key._replace(entries=key.entries[:taken]))

    def _with(self, changed: Key) -> "Bucket":
        others = [key for key in self.keys if key.name != changed.name]
        return self._replace(keys=tuple(sorted([*others, changed])))

    def _etag(self, body: bytes, version: int) -> str:
        digest = md5(body, usedforsecurity=False).hexdigest()
        return f'"{digest}"' if self.digests else f'"{digest}-{version}"'


def carry_out(bucket: Bucket, request: Request, now: int) -> tuple[Bucket, Answer, Effect | None]:
    """Carry out a request at a time in seconds of S3's clock."""
    if request.staged:
        staging = Bucket(bucket.staged, bucket.digests, versioned=False)
        staging, answer, effect = carry_out(staging, request._replace(staged=False), now)
        return bucket._replace(staged=staging.keys), answer, effect
    match request.operation:
        case "GetObject":
            return bucket, _get(bucket, request, now), None
        case "PutObject":
            return _put(bucket, request, now)
        case "DeleteObject":
            return _delete(bucket, request, now)
        case "ListObjectVersions":
            history = tuple(key for key in bucket.keys if key.name.startswith(request.key) and key.entries)
            return bucket, Answer(200, history=history), None
        case "ListObjectsV2":
            keys = (key for key in bucket.keys if key.name.startswith(request.key))
            return bucket, Answer(200, history=tuple(key for key in keys if bucket.current(key.name))), None
        case other:
            raise ValueError(f"the model has no {other}")


def _get(bucket: Bucket, request: Request, now: int) -> Answer:
    if request.version_id is None:
        current = bucket.current(request.key)
        if current is None:
            return Answer(404, "NoSuchKey")
        if request.first_byte and not current.body:
            return Answer(416, "InvalidRange")
        return Answer(206 if request.first_byte else 200, "", current, (), now)
    for entry in bucket.key(request.key).entries:
        if entry.version_id == request.version_id:
            return Answer(405, "MethodNotAllowed") if entry.body is None else Answer(200, "", entry, (), now)
    return Answer(404, "NoSuchVersion")


def _put(bucket: Bucket, request: Request, now: int) -> tuple[Bucket, Answer, Effect | None]:
    key, before = bucket.key(request.key), bucket.current(request.key)
    if refused := _condition_fails(request, before):
        return bucket, refused, None
    version = key.taken + 1 if bucket.versioned else 0
    entry = Entry(version, request.body, bucket._etag(request.body, version), now, request.metadata)  # noqa: SLF001 one component
    kept = key.entries if bucket.versioned else ()
    changed = bucket._with(Key(key.name, version, (*kept, entry)))  # noqa: SLF001 one component
    return changed, Answer(200, "", entry, (), now), Effect(key.name, entry, None, before)


def _delete(bucket: Bucket, request: Request, now: int) -> tuple[Bucket, Answer, Effect | None]:
    key, before = bucket.key(request.key), bucket.current(request.key)
    done = Answer(204)
    if request.version_id is not None:
        gone = next((entry for entry in key.entries if entry.version_id == request.version_id), None)
        if gone is None:
            return bucket, done, None
        rest = tuple(entry for entry in key.entries if entry is not gone)
        changed = bucket._with(key._replace(entries=rest))  # noqa: SLF001 one component
        return changed, done, Effect(key.name, None, gone, before)
    if refused := _condition_fails(request, before):
        return bucket, refused, None
    if not bucket.versioned:
        others = tuple(other for other in bucket.keys if other != key)
        return bucket._replace(keys=others), done, Effect(key.name, None, before, before) if before else None
    version = key.taken + 1
    marker = Entry(version, None, "", now, ())
    changed = bucket._with(Key(key.name, version, (*key.entries, marker)))  # noqa: SLF001 one component
    return changed, done, Effect(key.name, marker, None, before)


def _condition_fails(request: Request, current: Entry | None) -> Answer | None:
    if request.if_none_match and current is not None:
        return Answer(412, "PreconditionFailed")
    if request.if_match is not None:
        if current is None:
            return Answer(404, "NoSuchKey")
        if current.etag != request.if_match:
            return Answer(412, "PreconditionFailed")
    return None
