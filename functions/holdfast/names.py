"""State names and the S3 keys that belong to them."""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from holdfast.errors import InvalidName

MAX_LENGTH = 200
MAX_SEGMENTS = 8

RESERVED: Final = "holdfast-doctor"
"""The first segment of the names of probes. No other state may have it."""

FROZEN_PATTERNS: Final = "freezes/patterns.json"
"""The key of the record of frozen patterns."""

_PROBE_FOLDER: Final = f"{RESERVED}/"
_PROBE_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one kind of object, of which each state has one."""

    prefix: str
    suffix: str

    def of(self, name: str) -> str:
        return f"{self.prefix}{name}{self.suffix}"

    def name(self, key: str) -> "StateName | None":
        """Return the name of the state to which an object belongs; None for any other key, and for a probe.

        >>> LOCKS.name("states/network/prod.tfstate.tflock"), STATES.name("states/.hidden.tfstate")
        (StateName(value='network/prod'), None)
        """
        if not (key.startswith(self.prefix) and key.endswith(self.suffix)):
            return None
        with suppress(InvalidName):
            name = parse(key[len(self.prefix) : -len(self.suffix)])
            return None if name.is_probe else name
        return None


STATES: Final = Keys("states/", ".tfstate")
LOCKS: Final = Keys("states/", ".tfstate.tflock")
RECORDS: Final = Keys("workspaces/", ".json")


@dataclass(frozen=True, slots=True)
class StateName:
    """A valid state name; created by `parse`.

    A probe is a state that `holdfast doctor` creates to check a deployment, and then removes. Its keys begin
    with `probes/` and have no suffix that the bucket policy protects, so that all versions can be deleted.

    Attributes:
        lock_key: the key of the lock object; `backend "s3"` with `use_lockfile` uses the same key.
        record_key: the key of the record that declares the name, and makes a workspace exist.
    """

    value: str
    is_probe: bool = field(init=False, compare=False, repr=False)
    state_key: str = field(init=False, compare=False, repr=False)
    lock_key: str = field(init=False, compare=False, repr=False)
    record_key: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        is_probe = self.value.startswith(_PROBE_FOLDER)
        probe = f"probes/{self.value.removeprefix(_PROBE_FOLDER)}"
        state_key = probe if is_probe else STATES.of(self.value)
        object.__setattr__(self, "is_probe", is_probe)
        object.__setattr__(self, "state_key", state_key)
        object.__setattr__(self, "lock_key", f"{probe}.tflock" if is_probe else LOCKS.of(self.value))
        object.__setattr__(self, "record_key", RECORDS.of(self.value))

    def __str__(self) -> str:
        return self.value


def parse(raw: str) -> StateName:
    """Parse a decoded state name.

    Raise `InvalidName` if it breaks a rule or is reserved; the message names the rule.

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


def parse_no_probe(raw: str) -> StateName:
    """Parse the name of a state on which operators work; raise `InvalidName` for a probe, too."""
    name = parse(raw)
    if name.is_probe:  # the management function's IAM role has no access to probes
        raise InvalidName(
            "State names that begin with 'holdfast-doctor/' are reserved for 'holdfast doctor'. Operators "
            "cannot read or change these states."
        )
    return name


def split(raw: str) -> list[str]:
    """Split a state name into its segments; raise `InvalidName` for an invalid, but not a reserved name."""
    if rule := broken_rule(raw):
        raise InvalidName(f"The state name is not valid: {rule}. Write a name such as 'network/prod'.")
    return raw.split("/")


def broken_rule(raw: str) -> str:
    """Return the rule that a text breaks as a state name; empty for a valid or a reserved name.

    >>> broken_rule("network//prod")
    'segment 2 is empty'
    """
    if len(raw) > MAX_LENGTH:
        return f"it has {len(raw)} characters, and at most {MAX_LENGTH} are allowed"
    segments = raw.split("/")
    if len(segments) > MAX_SEGMENTS:
        return f"it has {len(segments)} segments between slashes, and at most {MAX_SEGMENTS} are allowed"
    for position, segment in enumerate(segments, start=1):
        if not segment:
            return f"segment {position} is empty"
        if not _SEGMENT.fullmatch(segment):
            return (
                f"segment {position} must start with a letter or a digit, and have only letters, digits, "
                "'.', '_' and '-' (ASCII)"
            )
    return ""
