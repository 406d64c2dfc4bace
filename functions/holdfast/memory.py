"""Cache the current versions of states in a warm process, so that a write sends one request less to S3.

A cached version may only be used for a PutObject with its ETag as the condition. No write is acknowledged or
refused, and no read is served, from the cache. If the PutObject takes effect, the cached version was current
all the time, because no other version ever has its ETag. So the PutObject is the same request that a write
sends after it has read the current version. If the PutObject fails, the write reads the current version.

For a write of this process, the cached time is S3's `Date`, which can be later than `Last-Modified`. That is
harmless: the write read its lock again afterwards, so every later holder's lock is younger than that time.
"""

from typing import Final

from holdfast.names import StateName
from holdfast.s3.objects import ObjectVersion, is_unique

LIMIT: Final = 256
"""The most states in the cache; with 2 KB of metadata each they take half a megabyte."""


class Memory:
    """A process's cache: the last known versions of at most `LIMIT` states, without their content."""

    def __init__(self) -> None:
        self._known: dict[StateName, ObjectVersion] = {}

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
        self._known[name] = version
        if len(self._known) > LIMIT:
            del self._known[next(iter(self._known))]  # the oldest entry

    def take(self, name: StateName) -> ObjectVersion | None:
        """Remove the cached version of a state, and return it; None if no version is cached."""
        return self._known.pop(name, None)
