"""teams.toml and the CDK context as validated values: which teams, with which settings, deployed to where."""

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from botocore.loaders import create_loader


class ConfigError(Exception):
    """A setting is wrong. The message is one line: which, of which team, and what is allowed."""


# --- settings of a team ---------------------------------------------------------------------------


def _account(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{12}", value):
        raise ValueError('write the 12 digits of an AWS account in quotes, as in "123456789012"')
    return value


def _region(value: object) -> str:
    if not isinstance(value, str) or value not in _regions():
        close = difflib.get_close_matches(str(value), _regions(), n=1)
        raise ValueError(f'write an AWS region in quotes, as in "{close[0] if close else "eu-central-1"}"')
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("write true or false, without quotes")  # noqa: TRY004 the value is wrong, not a call
    return value


def _setting(read: Callable[[object], object], *, default: Any) -> Any:
    """A field of TeamConfig that stands in teams.toml; `read` checks its value or raises ValueError."""
    return field(default=default, metadata={"read": read})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long S3 Object Lock keeps every state version from being deleted.

    Attributes:
        mode: `governance` can be bypassed with a permission that nobody in the stack has, `compliance` never.
        days: from the write on, 1 to 36500.
        bucket_default: S3 puts it on every object of the bucket, locks and tokens too; otherwise each write
            of a state asks for it and nothing else has it.
    """

    mode: Literal["governance", "compliance"]
    days: int
    bucket_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """When old state versions go.

    Attributes:
        days: after which a version that is not the current one goes, at least 1.
        keep_versions: how many of them stay whatever their age, 1 to 100.
    """

    days: int
    keep_versions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """What the API takes: `rate` requests a second, `burst` at once; what is above gets 429."""

    rate: int = 100
    burst: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Megabytes of each function; 1769 are one whole vCPU."""

    backend: int = 1769
    authorizer: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLogs:
    """A bucket of the team's own for S3's server access logs, and what their names begin with."""

    bucket: str
    prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamConfig:
    """One team.

    Attributes:
        name: of the team; part of the names of its stack, its bucket and its log groups.
        account: the AWS account that its stack belongs to, or None for that of the credentials in use.
        region: the AWS region of its stack, or None for that of the credentials in use.
        require_lock: whether a write needs the state's lock.
        native_clients: whether `backend "s3"` writes to the bucket too, which it does without a condition.
        retention: of every state version, or None.
        history: when old state versions go; None for never.
        key: `kms` for a KMS key of the team's own, `s3` for keys that S3 manages.
        access_logs: where S3's server access logs go; None for a bucket of the stack's own.
        log_retention: days for which log groups and the stack's own access logs are kept.
        throttling: what the API takes.
        memory: of the functions.
        snap_start: whether functions start from a snapshot.
        tags: of everything in the stack.
    """

    name: str
    account: str | None = _setting(_account, default=None)
    region: str | None = _setting(_region, default=None)
    require_lock: bool = _setting(_flag, default=True)
    native_clients: bool = False
    retention: Retention | None = None
    history: History | None = None
    key: Literal["kms", "s3"] = "kms"
    access_logs: AccessLogs | None = None
    log_retention: int = 90
    throttling: Throttling = Throttling()
    memory: Memory = Memory()
    snap_start: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)


# The bucket's name, at most 63 characters, is made of it: `holdfast-<team>-<account>-<region>`.
_TEAM_NAME = re.compile(r"[a-z][a-z0-9-]{0,24}", re.ASCII)


def load_teams(path: Path) -> tuple[TeamConfig, ...]:
    """Read the teams file.

    Returns:
        The teams in the file's order, at least one.

    Raises:
        ConfigError: the file is missing, is not TOML, or has a wrong or unknown setting.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None
    for key in document:
        if key != "teams":
            raise ConfigError(f"{path}: unknown entry '{key}'; everything stands in tables [teams.<name>]")
    teams = document.get("teams")
    if not isinstance(teams, dict) or not teams:
        raise ConfigError(f"{path}: names no team; write a table [teams.<name>] for each")
    try:
        return tuple(_team(name, settings) for name, settings in teams.items())
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def _team(name: str, settings: object) -> TeamConfig:
    if not _TEAM_NAME.fullmatch(name):
        raise ValueError(
            f"team '{name}': the name must be 1 to 25 lower-case letters, digits and '-', with a letter first"
        )
    if not isinstance(settings, dict):
        raise ValueError(f"team '{name}': must be a table [teams.{name}]")  # noqa: TRY004 as in _flag
    readers = {f.name: f.metadata["read"] for f in fields(TeamConfig) if "read" in f.metadata}
    values: dict[str, Any] = {}
    for setting, value in settings.items():
        if setting not in readers:
            raise ValueError(f"team '{name}': unknown setting '{setting}'; allowed are {', '.join(readers)}")
        try:
            values[setting] = readers[setting](value)
        except ValueError as error:
            raise ValueError(f"team '{name}': {setting} = {value!r} is not allowed; {error}") from None
    return TeamConfig(name=name, **values)


@cache
def _regions() -> frozenset[str]:
    """The regions of all AWS partitions, as the installed botocore knows them."""
    endpoints: Mapping[str, Any] = create_loader().load_data("endpoints")
    return frozenset(region for partition in endpoints["partitions"] for region in partition["regions"])


# --- where to -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a deployment goes, as far as that changes what is deployed.

    Attributes:
        name: also decides for which interpreter the functions are bundled.
        account: overrides that of every team, or None.
        region: overrides that of every team, or None.
        termination_protection: whether the stacks refuse to be deleted.
        api_endpoint: APIs are paths below this address, or None where each has a host name of its own.
    """

    name: Literal["aws", "local"]
    account: str | None = None
    region: str | None = None
    termination_protection: bool = True
    api_endpoint: str | None = None

    def place(self, team: TeamConfig) -> TeamConfig:
        """The team with the account and region that it has on this target."""
        return replace(team, account=self.account or team.account, region=self.region or team.region)


AWS = Target(name="aws")


def local(endpoint: str) -> Target:
    """The local AWS. Everything in which a deployment there differs from one to AWS stands here."""
    return Target(
        # It runs functions in its own Python: bundles are built for that one, not for Lambda's.
        name="local",
        # It knows no other account.
        account="000000000000",
        # Its credentials, its addresses and the tools that wrap it default to this region.
        region="us-east-1",
        # It is thrown away and made anew at will, by removing its folder.
        termination_protection=False,
        # It has no host name for an API that all programs on all systems resolve, so an API is a path.
        api_endpoint=endpoint,
    )


def read_target(context: Callable[[str], object]) -> Target:
    """Decide where to deploy.

    Args:
        context: looks up a CDK context value (`cdk -c name=value`), None if there is none.

    Raises:
        ConfigError: the context asks for something unknown.
    """
    name, endpoint = context("target"), context("local_endpoint")
    if name in (None, "aws"):
        if endpoint is not None:
            raise ConfigError("-c local_endpoint is for -c target=local; leave it out to deploy to AWS")
        return AWS
    if name != "local":
        raise ConfigError(f"-c target={name} is unknown; allowed are aws (the default) and local")
    if not isinstance(endpoint, str) or not re.fullmatch(r"https?://[^\s/?#]+", endpoint):
        raise ConfigError("-c target=local needs -c local_endpoint=<address>, as in http://127.0.0.1:4566")
    return local(endpoint)
