"""Stacks that the teams of an account and region share."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from aws_cdk import Stack

from infra.config import TeamConfig

_Shared = TypeVar("_Shared", bound=Stack)


def shared_stacks(
    name: str, teams: Sequence[TeamConfig], make: Callable[[str, Sequence[TeamConfig]], _Shared]
) -> dict[str, _Shared]:
    """Create a stack for each account and region of some teams.

    Args:
        name: the stack's name, the same everywhere.
        make: creates the stack from its construct ID and its teams.

    Returns:
        Team's name -> the stack.
    """
    sharing: dict[tuple[str | None, str | None], list[TeamConfig]] = {}
    for team in teams:
        sharing.setdefault((team.account, team.region), []).append(team)
    stacks = {}
    for (account, region), together in sharing.items():
        construct_id = name if len(sharing) == 1 else f"{name}-{account}-{region}"
        stack = make(construct_id, together)
        stacks.update(dict.fromkeys([team.name for team in together], stack))
    return stacks
