"""Resolves the API, team and AWS region of a command from its options, the environment and a profile."""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from holdfast_cli.config import profiles, rules
from holdfast_cli.config.profiles import Settings
from holdfast_cli.errors import UsageError
from holdfast_cli.terminal import output

_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "profile": ("HOLDFAST_PROFILE",),
    "address": ("HOLDFAST_ADDRESS",),
    "team": ("HOLDFAST_TEAM",),
    # The AWS CLI reads AWS_REGION first; boto3 does not read it.
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
_PROFILE: Final = "profile "
"""The beginning of `Found.source` if the value comes from a profile."""
_RULES: Final = {"profile": rules.profile, **profiles.RULES}


@dataclass(frozen=True, slots=True)
class Found:
    """A setting's valid value, and the option, variable or profile that it comes from, for messages."""

    value: str
    source: str


_Level = Callable[[str], Found | None]


def resolve(
    args: argparse.Namespace, environment: Mapping[str, str] = os.environ, *, default: bool = True
) -> Settings:
    """Return the settings of a command.

    Precedence: first options, then a typed --profile, then variables, then a profile that was not typed. If
    the profile was named, a line on standard error names the variables that override its values; if not, only
    a team that overrides its address. Another line names a variable that the command cannot use.

    Args:
        args: has those of `--address`, `--team` and `--region` that the command takes. A command without
            `--team` cannot find a stack, so a team does not override an address.
        default: whether the address and team of the profile `default` are used if no profile is named.
    """
    profile, values = _profile(args, environment)
    if not (default or profile.source):
        values = {setting: value for setting, value in values.items() if setting == "region"}
    found = _find(args, environment, profile, values)
    if used := _used_instead(found, values, api=hasattr(args, "address"), named=bool(profile.source)):
        output.tell(f"holdfast: {'; '.join(f'{what} of the profile {profile.value}' for what in used)}.")
    if not hasattr(args, "address") and (address := _left_out(found["team"], values, environment)):
        output.tell(f"holdfast: {address}")
    if not hasattr(args, "team") and (team := _team_left_out(found["address"], values, environment)):
        output.tell(f"holdfast: {team}")
    chosen = {name: None if value is None else value.value for name, value in found.items()}
    return Settings(**chosen, aws_profile=getattr(args, "aws_profile", None))


def sources(
    args: argparse.Namespace, environment: Mapping[str, str] = os.environ
) -> Mapping[str, Found | None]:
    """Return profile, address, team and region as `resolve` finds them, each with its source."""
    profile, values = _profile(args, environment)
    return {"profile": profile, **_find(args, environment, profile, values)}


def apis(environment: Mapping[str, str]) -> Iterator[tuple[str | None, str]]:
    """Yield the address in the environment, with None, and the address of each profile, with its name.

    The API of a team without an address is left out: finding it takes a request.
    """
    if address := _of_variable("address", environment):
        yield None, address.value
    for name, values in profiles.read(profiles.path(environment)).items():
        if "address" in values:
            yield name, values["address"]


def profile_name(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Found:
    """Return the name of the profile, which may not exist; its source is empty for the unnamed default."""
    if args.profile is not None:
        return Found(args.profile, "--profile")
    return _of_variable("profile", environment) or Found(profiles.DEFAULT, "")


def _profile(args: argparse.Namespace, environment: Mapping[str, str]) -> tuple[Found, Mapping[str, str]]:
    """Return the profile's name and its settings."""
    profile, file = profile_name(args, environment), profiles.path(environment)
    found = profiles.read(file)
    if not profile.source:
        return profile, found.get(profile.value, {})
    try:
        return profile, profiles.named(profile.value, found, file)
    except UsageError as error:
        raise UsageError(f"{profile.source}: {error}") from error


def _find(
    args: argparse.Namespace, environment: Mapping[str, str], profile: Found, values: Mapping[str, str]
) -> dict[str, Found | None]:
    def typed(setting: str) -> Found | None:
        value = getattr(args, setting, None)
        return None if value is None else Found(value, f"--{setting}")

    def of_profile(setting: str) -> Found | None:
        return Found(values[setting], f"{_PROFILE}{profile.value}") if setting in values else None

    def of_environment(setting: str) -> Found | None:
        return _of_variable(setting, environment)

    # In order of precedence.
    is_typed = args.profile is not None
    levels: tuple[_Level, ...] = (
        (typed, of_profile, of_environment) if is_typed else (typed, of_environment, of_profile)
    )
    found: dict[str, Found | None] = dict.fromkeys(profiles.RULES)
    for setting in found:
        if not hasattr(args, setting):
            continue
        for level in levels:
            found[setting] = level(setting)
            # A team with precedence overrides the address: the address is an output of the team's stack.
            if found[setting] or (setting == "address" and hasattr(args, "team") and level("team")):
                break
    return found


def _of_variable(setting: str, environment: Mapping[str, str]) -> Found | None:
    for name in _VARIABLES[setting]:
        if value := environment.get(name):
            try:
                return Found(_RULES[setting](value), name)
            except argparse.ArgumentTypeError as error:
                raise UsageError(f"{name}: {error}") from error
    return None


def _used_instead(
    found: Mapping[str, Found | None], values: Mapping[str, str], *, api: bool, named: bool
) -> list[str]:
    """Return phrases for a message, one for each variable that overrides a value of the profile.

    If the profile was not named, only a HOLDFAST_TEAM that overrides the profile's address is reported.
    """
    used = []
    # Either the address names the API or the team does.
    names = "address" if api and found["address"] else "team"
    compared = [(names, "address" if api and "address" in values else "team")]
    if names == "team":
        compared.append(("region", "region"))  # only finding a stack needs a region
    for setting, other in compared:
        value = found[setting]
        if (
            value is not None
            and value.source in _VARIABLES[setting]
            and other in values
            and (setting, value.value) != (other, values[other])
            and (named or (setting, other) == ("team", "address"))
        ):
            used.append(f"{value.source} ({value.value}) is used, not the {other}")
    return used


def _left_out(team: Found | None, values: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """Return a warning if a profile's team is used instead of HOLDFAST_ADDRESS, else None."""
    if team is None or not team.source.startswith(_PROFILE):
        return None
    with suppress(UsageError):  # an unused value need not be valid; it may be a secret
        address = _of_variable("address", environment)
        if address and address.value != values.get("address"):
            return (
                f"{address.source} ({address.value}) is not used: this command is for the stack of the team "
                f"{team.value} ({team.source})."
            )
    return None


def _team_left_out(
    address: Found | None, values: Mapping[str, str], environment: Mapping[str, str]
) -> str | None:
    """Return a warning if a profile's address is used instead of HOLDFAST_TEAM, else None."""
    team = environment.get("HOLDFAST_TEAM")
    if not team or address is None or not address.source.startswith(_PROFILE) or team == values.get("team"):
        return None
    return (
        "HOLDFAST_TEAM is not used, because this command finds the API only by its address. The command "
        f"uses {address.value} ({address.source}), which may be another team's. To use the team "
        "of HOLDFAST_TEAM, name the address of its API with --address."
    )
