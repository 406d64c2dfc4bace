"""State names and the S3 keys that belong to them."""

import re
from dataclasses import dataclass
from typing import Final

from holdfast.errors import InvalidName

MAX_LENGTH = 200
MAX_SEGMENTS = 8

RESERVED: Final = "holdfast-doctor"
"""The first segment of every probe's name, and of no other state's."""

RECORDS: Final = "workspaces/"
"""The folder of the records."""

_PROBE_FOLDER: Final = f"{RESERVED}/"
_PROBE_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class StateName:
    """A valid state name; made by `parse`.

    A probe is a state that `holdfast doctor` makes to try a deployment, and removes. Its objects are below
    `probes/` and end with nothing that the bucket policy protects, so that all of their versions can go.
    """

    value: str

    @property
    def is_probe(self) -> bool:
        return self.value.startswith(_PROBE_FOLDER)

    @property
    def state_key(self) -> str:
        if self.is_probe:
            return f"probes/{self.value.removeprefix(_PROBE_FOLDER)}"
        return f"states/{self.value}.tfstate"

    @property
    def lock_key(self) -> str:
        """Return the key of the lock; `backend "s3"` with `use_lockfile` uses the same."""
        return f"{self.state_key}.tflock"

    @property
    def record_key(self) -> str:
        """Return the key of the record by which the name is declared, and a workspace exists."""
        return f"{RECORDS}{self.value}.json"

    def __str__(self) -> str:
        return self.value


def parse(raw: str) -> StateName:
    """Parse a state name as it is in the path, already decoded.

    The message of `InvalidName` says which rule the name breaks, or that it is reserved.

    >>> parse("network/prod").state_key
    'states/network/prod.tfstate'
    """
    segments = split(raw)
    if segments[0] == RESERVED and not (len(segments) == 2 and _PROBE_ID.fullmatch(segments[1])):
        raise InvalidName(
            f"State names whose first segment is '{RESERVED}' are reserved for 'holdfast doctor'; "
            "use another name."
        )
    return StateName(raw)


def split(raw: str) -> list[str]:
    """Split a state name, or a pattern without its wildcards, into its segments; reserved ones, too."""
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
    return segments
