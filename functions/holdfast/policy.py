"""The variables of the functions: what a team decided, and where its things are.

A field is a variable. Only `from_environment` reads these variables, and only `environment` writes them, so
that the two agree. A function is deployed with the variables of the fields that its sources read.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Never, Self

from holdfast.access import OwnLocks

if TYPE_CHECKING:
    from holdfast.s3.retention import Retention

_MB: Final = 1_000_000
_FLAG: Final = {"false": False, "true": True}


def _variable(
    name: str, read: Callable[[str], Any] = str, write: Callable[[Any], str] = str, default: Any = MISSING
) -> Any:
    """Return a field with its variable, which is missing if the field has its default.

    It is no default of the class, so that the deployment names every field.
    """
    return field(metadata={"name": name, "read": read, "write": write, "default": default})


def _word(name: str, values: Mapping[str, bool], default: Any = MISSING) -> Any:
    """Return a field of which each value is a word."""

    def read(word: str) -> bool:
        if word not in values:
            raise ValueError(f"{word!r} is neither {' nor '.join(map(repr, values))}")
        return values[word]

    words = {value: word for word, value in values.items()}
    return _variable(name, read, words.__getitem__, default)


def _read_retention(text: str) -> "Retention":
    from holdfast.s3 import retention

    return retention.parse(text)


def _read_networks(text: str) -> tuple[str, ...]:
    from holdfast import networks

    return networks.check(text.split(","))


class _Fields:
    """Fields that are variables. In a function it has some of them only, so it has no `==` and no `repr`."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @classmethod
    def from_environment(cls, *names: str) -> Self:
        """Read fields from the environment. Another field of the result raises `KeyError`.

        Raises:
            KeyError: a variable is missing, or a field does not exist.
            ValueError: a variable is invalid.
        """
        made = object.__new__(cls)
        for name in names:
            object.__setattr__(made, name, _read(**cls.__dataclass_fields__[name].metadata))
        return made

    def environment(self) -> dict[str, str]:
        """Return the variables and their values, without those of fields that have their defaults."""
        values = ((each.metadata, getattr(self, each.name)) for each in fields(self))
        return {of["name"]: of["write"](value) for of, value in values if value != of["default"]}

    if not TYPE_CHECKING:  # mypy would take any name for a field

        def __getattr__(self, name: str) -> Never:
            if name not in self.__dataclass_fields__:
                raise AttributeError(name)
            raise KeyError(
                f"the function did not read the variable {VARIABLES[name]}, so it has no field '{name}'"
            )


def _read(name: str, read: Callable[[str], Any], default: Any, **_: object) -> Any:
    if name not in os.environ and default is not MISSING:
        return default
    try:
        return read(os.environ[name])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Policy(_Fields):
    """The decisions of a team, from its settings.

    Attributes:
        require_lock: whether a write needs the state's lock.
        declared_only: whether names must be declared.
        own_locks: which own locks a writer may remove.
        largest_state: the size in bytes of the largest accepted state.
        retention: the retention with which states are written; None means the bucket's default.
        networks: the networks from which requests are accepted; empty for every address.
        has_networks: whether there are networks, for a function that does not need them.
        numbered: whether audited lines are numbered, which the archive needs.
        notified: the audit events that the topic is notified of.
        old_lock: the age from which a lock is a finding; None means `watching.OLD`.
    """

    require_lock: bool = _word("HOLDFAST_REQUIRE_LOCK", _FLAG)
    declared_only: bool = _word("HOLDFAST_NEW_STATES", {"any": False, "declared": True})
    own_locks: OwnLocks = _variable("HOLDFAST_OWN_LOCKS", OwnLocks)
    largest_state: int = _variable(
        "HOLDFAST_MAX_STATE_MB", lambda megabytes: int(megabytes) * _MB, lambda size: str(size // _MB)
    )
    retention: "Retention | None" = _variable("HOLDFAST_RETENTION", _read_retention, default=None)
    networks: tuple[str, ...] = _variable("HOLDFAST_NETWORKS", _read_networks, ",".join, default=())
    has_networks: bool = _word("HOLDFAST_HAS_NETWORKS", _FLAG, default=False)
    numbered: bool = _word("HOLDFAST_NUMBERED", _FLAG, default=False)
    notified: tuple[str, ...] = _variable(
        "HOLDFAST_NOTIFY_EVENTS", lambda events: tuple(events.split()), " ".join, default=()
    )
    old_lock: timedelta | None = _variable(
        "HOLDFAST_OLD_LOCK",
        lambda seconds: timedelta(seconds=float(seconds)),
        lambda age: f"{age.total_seconds():.0f}",
        default=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Deployment(_Fields):
    """The places of what a team has.

    Attributes:
        team: the team's name.
        bucket: the name of the state bucket.
        account: the ID of the AWS account that must own the buckets.
        staging_bucket: the name of the staging bucket.
        transfers_role: the ARN of the role that signs addresses.
        presign_endpoint: the beginning of presigned addresses; None for S3's own endpoint.
        api_address: the API's base URL, with `{api}` for its ID and `{domain}` for its host name; None if the
            API has its own host name.
        probed_api: the API's base URL for the probe.
        audit_group: the log group of the audit trail.
        audit_archive: the name of the archive's bucket; None if there is no archive.
        audit_archive_owner: the ID of the AWS account that must own the archive.
        notify_topic: the ARN of the topic for notifications; None if nobody is notified.
    """

    team: str = _variable("HOLDFAST_TEAM")
    bucket: str = _variable("HOLDFAST_BUCKET")
    account: str = _variable("HOLDFAST_ACCOUNT")
    staging_bucket: str = _variable("HOLDFAST_STAGING_BUCKET")
    transfers_role: str = _variable("HOLDFAST_TRANSFERS_ROLE")
    presign_endpoint: str | None = _variable("HOLDFAST_PRESIGN_ENDPOINT", default=None)
    api_address: str | None = _variable("HOLDFAST_API_ADDRESS", default=None)
    probed_api: str = _variable("HOLDFAST_PROBED_API")
    audit_group: str = _variable("HOLDFAST_AUDIT_GROUP")
    audit_archive: str | None = _variable("HOLDFAST_AUDIT_ARCHIVE", default=None)
    audit_archive_owner: str | None = _variable("HOLDFAST_AUDIT_ARCHIVE_OWNER", default=None)
    notify_topic: str | None = _variable("HOLDFAST_NOTIFY_TOPIC", default=None)


VARIABLES: Final[Mapping[str, str]] = {
    each.name: each.metadata["name"] for of in (Policy, Deployment) for each in fields(of)
}
"""The name of each field -> the name of its variable."""
