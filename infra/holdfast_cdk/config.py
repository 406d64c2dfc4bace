"""Read and check what is deployed, and where: teams.toml, and the target in the CDK context."""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from holdfast import __version__, networks
from holdfast import team as names
from holdfast_cdk.alarm_settings import TOPIC
from holdfast_cdk.domain_settings import CERTIFICATE
from holdfast_cdk.regions import default_quota, partitions
from holdfast_cdk.settings import SettingError, as_toml, read_settings, settings_of
from holdfast_cdk.team_settings import ADMINISTRATOR, GONE, KMS_KEY, LOCAL_ACCOUNT, Team

_MEMORY_OF_A_FUNCTION: Final = 128
_MEMORY_OF_A_STATE: Final = 4
"""A commit or a restore needs these megabytes plus this many times its state's size; see `limits.md`."""


class ConfigError(Exception):
    """A setting is invalid. The message is one line with the setting, its team, and what is allowed."""


# --- teams.toml -----------------------------------------------------------------------------------


def load_teams(path: Path) -> tuple[Team, ...]:
    """Return the teams of a teams file, in the file's order; raise `ConfigError` if the file has no team."""
    teams = read_teams(path)
    if not teams:
        raise ConfigError(f"{path}: the file names no team; write a table [teams.<name>] for each team")
    with in_file(path):
        check_places(teams)
        for team in teams:
            _check_networks(team)
    return teams


@contextmanager
def in_file(path: Path) -> Iterator[None]:
    """Put the path of a teams file before the message of each `ConfigError`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _check_networks(team: Team) -> None:
    """Check what networks must be now: `teams.lock` may have the networks of an earlier release."""
    try:
        if team.networks:
            networks.check_new(team.networks)
    except ValueError as error:
        raise ConfigError(f"team '{team.name}': networks: {error}") from None


def read_teams(path: Path) -> tuple[Team, ...]:
    """Read a teams file, which may be empty, without the checks of `check_places`."""
    document = _read_toml(path)
    for key in document:
        if key != "teams":
            raise ConfigError(
                f"{path}: Holdfast {__version__} has no setting '{key}' outside the tables [teams.<name>]; "
                "write the settings in these tables"
            )
    teams = document.get("teams", {})
    if not isinstance(teams, dict):
        raise ConfigError(f"{path}: the file names no team; write a table [teams.<name>] for each team")
    with in_file(path):
        return tuple(_team(name, settings) for name, settings in teams.items())


def checked(team: Team) -> Team:
    """Check a team that a program made, as `load_teams` checks one of a file, and return it."""
    again = _team(team.name, _as_values(team))
    check_places([again])
    _check_networks(again)
    return again


def _as_values(table: Any) -> dict[str, object]:
    """Return those settings of a table that are not the default, as they would be read from a file."""
    values: dict[str, object] = {}
    for name, (_, field) in settings_of(type(table)).items():
        value = getattr(table, name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if value == default:
            continue
        match value:
            case tuple():
                values[name] = list(value)
            case _ if is_dataclass(value):
                values[name] = _as_values(value)
            case _:
                values[name] = value
    return values


def team_named(name: str, teams: Iterable[Team], path: Path) -> Team:
    """Return the team with a name; if it does not exist, raise `ConfigError` with the names of all teams."""
    known = {team.name: team for team in teams}
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        meant = f" Did you mean {close[0]}?" if close else ""
        raise ConfigError(f"{path}: there is no team '{name}'.{meant} Teams in the file: {', '.join(known)}")
    return known[name]


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        content = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: the file does not exist; run the command in the folder that has it"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: the file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the file is not UTF-8 text") from None
    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path}: the file is not valid TOML: {error}; write text in quotes, and write each setting only "
            "once"
        ) from None
    except (ValueError, RecursionError):
        raise ConfigError(
            f"{path}: the file has a number that is too long, or tables that are nested too deeply; write "
            "shorter numbers and fewer levels"
        ) from None


def _team(name: str, settings: object) -> Team:
    if not names.is_name(name):
        raise ConfigError(f"team {name!r}: the name must be {names.NAME_RULE}")
    if not isinstance(settings, dict):
        raise ConfigError(
            f"[teams] contains {name!r}, which is not a table; write the settings of each team into a table "
            "of its own, such as [teams.payments]"
        )
    for key in settings:
        if key in GONE:
            raise ConfigError(f"team '{name}': the setting {key} was removed: {GONE[key]}")
    try:
        team = read_settings(Team, settings, more={"name": name})
    except SettingError as error:
        raise ConfigError(f"team '{name}': {error}") from None
    if team.retention and team.history and team.history.days < team.retention.days:
        raise ConfigError(
            f"team '{name}': history.days = {team.history.days} is below retention.days = "
            f"{team.retention.days}, but S3 cannot remove a version before its retention ends; write "
            f"history.days = {team.retention.days} or more"
        )
    needed = _MEMORY_OF_A_FUNCTION + _MEMORY_OF_A_STATE * team.max_state_mb
    for function, megabytes in (("cloud", team.memory.cloud), ("management", team.memory.management)):
        if megabytes < needed:
            raise ConfigError(
                f"team '{name}': memory.{function} = {megabytes} is too little for states of "
                f"max_state_mb = {team.max_state_mb}; write memory.{function} = {needed} or more"
            )
    if team.key in team.previous_keys:
        raise ConfigError(
            f"team '{name}': previous_keys has {as_toml(team.key)}, which is also the value of key; remove "
            "it from previous_keys"
        )
    if team.key_administrators and "kms" not in team.kms_keys:
        raise ConfigError(
            f"team '{name}': key_administrators needs the stack's own KMS key, which the team does "
            'not use; remove key_administrators, or write key = "kms"'
        )
    if team.replica:
        _check_replica(team, team.replica.region)
    return team


def _check_replica(team: Team, region: str) -> None:
    if not (team.account and team.region):
        raise ConfigError(
            f"team '{team.name}': the setting 'replica' needs the settings 'account' and 'region'; write both"
        )
    if region == team.region:
        raise ConfigError(
            f"team '{team.name}': replica.region = \"{region}\" is the team's own region, so the replica "
            "would be lost together with the bucket; write another region"
        )
    partition, own = partitions()[region], partitions()[team.region]
    if partition != own:
        raise ConfigError(
            f"team '{team.name}': replica.region = \"{region}\" is in the AWS partition {partition}, and S3 "
            f"does not copy from {team.region} to another partition; write a region of the partition {own}"
        )


def check_places(teams: Iterable[Team]) -> None:
    """Check settings that depend on the account and the region of a team, if they are known.

    A team without account or region in the file may have those of the credentials in use. `ConfigError` if
    what a setting names is elsewhere, if teams have the same account in two partitions, or if teams have the
    same domain.
    """
    teams = tuple(teams)
    _check_shared(teams)
    partition_of: dict[str, tuple[str, Team]] = {}
    for team in teams:
        _check_arns(team)
        _check_keys(team)
        # The credentials may be for a region that the installed botocore does not know.
        partition = partitions().get(team.region or "")
        if partition is None:
            continue
        if team.account:
            known, other = partition_of.setdefault(team.account, (partition, team))
            if known != partition:
                raise ConfigError(
                    f"The teams {other.name} and {team.name} have the same account, {team.account}, and the "
                    f"regions {other.region} and {team.region}, which are in different AWS partitions. An "
                    "account belongs to one partition: correct the account of one team."
                )


def _check_arns(team: Team) -> None:
    """Check that what a team's ARNs name is in the team's account, region and partition."""
    partition = partitions().get(team.region or "")
    named = {
        "notify.topic": team.notify and TOPIC.fullmatch(team.notify.topic),
        "alarms.topic": team.alarms and TOPIC.fullmatch(team.alarms.topic),
        "domain.certificate": team.domain and CERTIFICATE.fullmatch(team.domain.certificate),
    }
    for name, match in named.items():
        for part, own in (("region", team.region), ("account", team.account), ("partition", partition)):
            if match and own and match[part] != own:
                raise ConfigError(
                    f"team '{team.name}': {name} has an ARN of the {part} {match[part]}, but the team is in "
                    f"the {part} {own}; write an ARN of the {part} {own}"
                )


def _check_shared(teams: tuple[Team, ...]) -> None:
    """Check that no two teams have the same domain."""
    of_domain: dict[str, Team] = {}
    for team in teams:
        if team.domain and (other := of_domain.setdefault(team.domain.name, team)) is not team:
            raise ConfigError(
                f"the teams '{other.name}' and '{team.name}' have the same domain.name, {team.domain.name}, "
                "and a domain leads to only one API; write another domain.name for one of the teams"
            )


def _check_keys(team: Team) -> None:
    """Check that a team's keys and their administrators are where S3 and KMS can use them."""
    partition = partitions().get(team.region or "")
    for key in team.kms_keys:
        if (match := KMS_KEY.fullmatch(key)) is None or team.region is None:
            continue
        if match["region"] != team.region or match["partition"] != (partition or match["partition"]):
            raise ConfigError(
                f"team '{team.name}': the KMS key {key} is not in {team.region}, and S3 uses only keys of "
                f"the bucket's own region; write the ARN of a key in {team.region}"
            )
    for administrator in team.key_administrators:
        match = ADMINISTRATOR.fullmatch(administrator)
        assert match is not None  # noqa: S101 checked when it was read
        for part, own in (("account", team.account), ("partition", partition)):
            if own and match[part] != own:
                raise ConfigError(
                    f"team '{team.name}': key_administrators has {administrator}, which is in the {part} "
                    f"{match[part]}, but the key is in the {part} {own}; write a role or a user of the "
                    f"{part} {own}"
                )


def above_quota(team: Team) -> str | None:
    """Return a warning if a team's `throttling` is above its region's default quota, else None."""
    rate, burst = default_quota(team.region)
    if team.throttling.rate <= rate and team.throttling.burst <= burst:
        return None
    return (
        f"team '{team.name}': throttling = {as_toml(asdict(team.throttling))} is above the default quota in "
        f"{team.region}, which is {rate} requests a second and {burst} at once for all APIs of an account "
        "together. AWS throttles requests above the quota"
    )


# --- the target -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of a deployment, with the settings that depend on it.

    Attributes:
        name: also determines the interpreter for which the functions are bundled.
        account: replaces every team's account, and `region` every team's region; None replaces nothing.
        api_address: the address of an API, with `{api}` for its ID; None if each API has its own host name.
        presign_endpoint: the beginning of presigned S3 addresses; None for S3's own endpoint.
        expressions: whether it can create alarms on more than one metric.
    """

    name: Literal["aws", "local"]
    account: str | None = None
    region: str | None = None
    termination_protection: bool = True
    api_address: str | None = None
    presign_endpoint: str | None = None
    expressions: bool = True

    def place(self, team: Team) -> Team:
        return replace(team, account=self.account or team.account, region=self.region or team.region)


AWS = Target(name="aws")


def local(endpoint: str) -> Target:
    """Return the local AWS as a target. Every difference from a deployment to AWS is set here."""
    return Target(
        # The local AWS runs functions in its own Python, so bundles are built for that Python.
        name="local",
        # The local AWS has no other account.
        account=LOCAL_ACCOUNT,
        # The credentials, addresses and tools of the local AWS default to this region.
        region="us-east-1",
        # The local AWS can be removed with its folder and re-created.
        termination_protection=False,
        # Not all programs resolve a host name for each API, so an API has a path.
        api_address=f"{endpoint}/_aws/execute-api/{{api}}/$default",
        # The host name differs from the API's, so that clients send no credentials after a redirect.
        presign_endpoint=endpoint.replace("//127.0.0.1", "//localhost"),
        # The local AWS's CloudFormation refuses a stack with an alarm on an expression.
        expressions=False,
    )


def read_target(context: Callable[[str], object]) -> Target:
    """Return the target of the deployment; `context` returns a CDK context value (`cdk -c name=value`)."""
    name, endpoint = context("target"), context("local_endpoint")
    if name in (None, "aws"):
        if endpoint is not None:
            raise ConfigError(
                "-c local_endpoint is only for -c target=local; to deploy to AWS, remove -c local_endpoint"
            )
        return AWS
    if name != "local":
        raise ConfigError(f"-c target={name} is unknown; allowed are aws (the default) and local")
    if not isinstance(endpoint, str) or not re.fullmatch(r"https?://[^\s/?#]+", endpoint):
        raise ConfigError("-c target=local needs -c local_endpoint=<address>, as in http://127.0.0.1:4566")
    return local(endpoint)
