"""Which API, team and AWS region a command is for: by its options, or else by the environment."""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from holdfast_cli import arguments
from holdfast_cli.errors import UsageError

_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "address": ("HOLDFAST_ADDRESS",),
    "team": ("HOLDFAST_TEAM",),
    # The AWS CLI looks at AWS_REGION first, boto3 does not know it.
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
_RULES: Final[Mapping[str, Callable[[str], str]]] = {
    "address": arguments.address,
    "team": arguments.team,
    "region": str,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a command is for.

    Attributes:
        address: the API's base URL, without a trailing slash; None where a team was named with precedence.
        team: the team; None for the only one that is deployed.
        region: of AWS; None leaves it to the AWS profile.
    """

    address: str | None
    team: str | None
    region: str | None


def resolve(asked: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Settings:
    """Find the settings of a command: options have precedence over environment variables.

    Args:
        asked: the command's options; it need not have each of `--address` and `--team`.
        environment: the variables.

    Raises:
        UsageError: a value that counts breaks the rule of its setting.
    """
    levels = list(_levels(asked, environment))
    address = None
    for level in levels:
        # A team that is named with precedence has an address of its own.
        if (address := level("address")) or level("team"):
            break
    return Settings(
        address,
        next(filter(None, (level("team") for level in levels)), None),
        next(filter(None, (level("region") for level in levels)), None),
    )


def _levels(
    asked: argparse.Namespace, environment: Mapping[str, str]
) -> Iterator[Callable[[str], str | None]]:
    """Yield where values come from, the one with precedence first."""
    yield lambda setting: getattr(asked, setting, None)
    yield lambda setting: _of_variable(setting, environment)


def _of_variable(setting: str, environment: Mapping[str, str]) -> str | None:
    for name in _VARIABLES[setting]:
        if value := environment.get(name):
            try:
                return _RULES[setting](value)
            except argparse.ArgumentTypeError as error:
                raise UsageError(f"{name}: {error}") from error
    return None
