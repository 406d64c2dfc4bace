"""What a warm process remembers of the current versions of states. It saves a write one request to S3.

A remembered version may lead to a PutObject with its ETag as the condition, and to nothing else: nothing is
acknowledged, refused or answered from memory. If that PutObject takes effect, the remembered version was
current all the time since it was learned, because no other version ever has its ETag. So it is the very
request that a write would have sent after reading the current version. If it does not, the write reads as if
it had remembered nothing.

The time of an own write is S3's `Date`, perhaps later than `Last-Modified`. That is harmless: its lock was
read again after that, so every later holder's lock is younger.
"""

from typing import Final

from holdfast.names import StateName
from holdfast.s3.store import ObjectVersion, is_unique
from holdfast.state.current_state import CurrentState, noted

LIMIT: Final = 256
"""States that one process remembers; with 2 KB of metadata each that is half a megabyte."""


class Memory:
    """The versions that one process learned last, of at most `LIMIT` states, and nothing of their content."""

    def __init__(self) -> None:
        self._known: dict[StateName, CurrentState] = {}

    def learn(self, name: StateName, version: ObjectVersion | None) -> None:
        """Remember a version that was current just now, in place of what was remembered of that state.

        It is not remembered if its ETag or its ID may be another version's too, if it is empty, or if another
        program than Holdfast wrote it. None is not remembered either.
        """
        self._known.pop(name, None)
        if (
            version is None
            or not version.has_own_etag
            or not is_unique(version.version_id)
            or not version.size
        ):
            return
        current = noted(version)
        if current is None:
            return
        self._known[name] = current
        if len(self._known) > LIMIT:
            del self._known[next(iter(self._known))]  # the one that was learned first

    def take(self, name: StateName) -> CurrentState | None:
        """Return the remembered version of a state, and forget it; None if there is none."""
        return self._known.pop(name, None)
