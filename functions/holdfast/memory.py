"""The memory of a warm process: the current versions of states, and the locks that it acquired.

A cached version saves a write one request to S3. It may only be used for a PutObject with its ETag as the
condition. No write is acknowledged or refused, and no read is served, from the cache. If the PutObject takes
effect, the cached version was current all the time, because no other version ever has its ETag. So the
PutObject is the same request that a write sends after it has read the current version. If the PutObject
fails, the write reads the current version.

For a write of this process, the cached time is S3's `Date`, which can be later than `Last-Modified`. That is
harmless: the write read its lock again afterwards, so every later holder's lock is younger than that time.

A cached lock saves a release the wait for one of its two requests: it reads the lock, and at the same time
removes the version that the process created. The lock that was read decides the response. The removal is
harmless whatever lock is held: no other object ever has that version ID, and only the document and the
principal that created it can have it removed.
"""

import hashlib
from dataclasses import dataclass
from typing import Final, TypeVar

from holdfast.names import StateName
from holdfast.s3.objects import ObjectVersion, is_unique

LIMIT: Final = 256
"""The most states in each of the two caches; with 2 KB of metadata each they take half a megabyte."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _AcquiredLock:
    version_id: str
    digest: bytes
    principal: str


class Memory:
    """A process's cache of versions of states, without their content, and of acquired locks."""

    def __init__(self) -> None:
        self._known: dict[StateName, ObjectVersion] = {}
        self._acquired: dict[StateName, _AcquiredLock] = {}

    def learn(self, name: StateName, version: ObjectVersion | None) -> None:
        """Replace the cached version of a state by the version that is current now; None for a missing state.

        A version is not cached if its ETag or its ID may belong to another version too, or if the object is
        empty. A version of another program is cached, and a write ignores it.
        """
        self._known.pop(name, None)
        if (
            version is None
            or not version.has_own_etag
            or not is_unique(version.version_id)
            or not version.size
        ):
            return
        _add(self._known, name, version)

    def take(self, name: StateName) -> ObjectVersion | None:
        """Remove the cached version of a state, and return it; None if no version is cached."""
        return self._known.pop(name, None)

    def learn_lock(self, name: StateName, document: bytes, principal: str, version_id: str) -> None:
        """Replace the cached lock of a state by the lock that a client has just acquired.

        It is not cached if its version ID may belong to another version too.

        Args:
            document: the lock info, as it is stored.
        """
        self._acquired.pop(name, None)
        if is_unique(version_id):
            _add(self._acquired, name, _AcquiredLock(version_id, _digest(document), principal))

    def take_lock(self, name: StateName, document: bytes, principal: str) -> str | None:
        """Remove the cached lock that a principal acquired with this document, and return its version ID.

        Returns:
            None, and the cache stays, if no lock is cached, or another lock.
        """
        lock = self._acquired.get(name)
        if lock is None or lock.digest != _digest(document) or lock.principal != principal:
            return None
        del self._acquired[name]
        return lock.version_id


def _add(cached: dict[StateName, _T], name: StateName, value: _T) -> None:
    cached[name] = value
    if len(cached) > LIMIT:
        del cached[next(iter(cached))]  # the oldest entry


def _digest(document: bytes) -> bytes:
    return hashlib.sha256(document).digest()
