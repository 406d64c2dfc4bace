"""State names and the S3 keys that belong to them."""

import re
from dataclasses import dataclass

from holdfast.errors import InvalidName

MAX_LENGTH = 200
MAX_SEGMENTS = 8

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class StateName:
    """A valid state name; made by `parse`."""

    value: str

    @property
    def state_key(self) -> str:
        """Return the key of the current state."""
        return f"states/{self.value}.tfstate"

    @property
    def lock_key(self) -> str:
        """Return the key of the lock; `backend "s3"` with `use_lockfile` uses the same."""
        return f"{self.state_key}.tflock"

    def __str__(self) -> str:
        return self.value


def parse(raw: str) -> StateName:
    """Parse a state name as it is in the path, already decoded.

    Raises:
        InvalidName: the name breaks a rule; the message says which.

    >>> parse("network/prod").state_key
    'states/network/prod.tfstate'
    """
    if len(raw) > MAX_LENGTH:
        raise InvalidName(f"The state name has {len(raw)} characters; at most {MAX_LENGTH} are allowed.")
    segments = raw.split("/")
    if len(segments) > MAX_SEGMENTS:
        raise InvalidName(
            f"The state name has {len(segments)} segments; at most {MAX_SEGMENTS}, joined by '/'."
        )
    for position, segment in enumerate(segments, start=1):
        if not segment:
            raise InvalidName(
                f"Segment {position} of the state name is empty; write it as in 'network/prod'."
            )
        if not _SEGMENT.fullmatch(segment):
            raise InvalidName(
                f"Segment {position} of the state name must start with a letter or a digit and hold only "
                "letters, digits, '.', '_' and '-' (ASCII)."
            )
    return StateName(raw)
