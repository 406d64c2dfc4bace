"""The policy of a team: the part of its settings that the functions get to know."""

from dataclasses import fields
from datetime import timedelta
from typing import Any, Final, Literal

from holdfast.access import OwnLocks
from holdfast.policy import Policy
from holdfast.s3 import retention as object_lock
from holdfast_cdk.team_settings import Team

_MODES: Final[dict[Literal["governance", "compliance"], Literal["GOVERNANCE", "COMPLIANCE"]]] = {
    "governance": "GOVERNANCE",
    "compliance": "COMPLIANCE",
}
"""A retention mode in teams.toml -> its name in S3."""


def policy_of(team: Team) -> Policy:
    """Return the policy of a team. A field with the name and the type of a setting has its value."""
    types = {setting.name: setting.type for setting in fields(Team)}
    same: dict[str, Any] = {
        each.name: getattr(team, each.name) for each in fields(Policy) if types.get(each.name) == each.type
    }
    return Policy(
        **same,
        declared_only=team.new_states == "declared",
        own_locks=OwnLocks(team.own_locks or "none"),
        largest_state=team.max_state_mb * 1_000_000,
        retention=retention_of_each_write(team),
        has_networks=bool(team.networks),
        numbered=team.audit_archive is not None,
        notified=team.notify.events if team.notify else (),
        old_lock=timedelta(seconds=team.alarms.oldest_lock_seconds) if team.alarms else None,
    )


def retention_of_each_write(team: Team) -> object_lock.Retention | None:
    """Return the retention that every write of a state requests.

    Returns:
        None if the team has no retention, or if the bucket's default sets it.
    """
    if team.retention is None or team.retention.bucket_default:
        return None
    return object_lock.Retention(_MODES[team.retention.mode], team.retention.days)
