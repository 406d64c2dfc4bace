"""The stack of one team. It shares nothing with another team's stack."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from aws_cdk import CfnOutput, Environment, Stack, Validations
from constructs import Construct

from holdfast import team as names
from holdfast import watching
from holdfast_cdk.alarms import Alarms
from holdfast_cdk.api import Api
from holdfast_cdk.config import Target, above_quota
from holdfast_cdk.keep_warm import KeepWarm
from holdfast_cdk.lambdas import Bundles, Functions
from holdfast_cdk.notifications import RefusedSignIns, notify_audit_function
from holdfast_cdk.replica import ReplicaStack, replicate
from holdfast_cdk.settings import as_toml
from holdfast_cdk.state_store import Staging, StateStore
from holdfast_cdk.team_policy import retention_of_each_write
from holdfast_cdk.team_settings import History, TeamConfig
from holdfast_cdk.watch import Watch

IMPORT: Final = "import"
"""The name of the context value with which `cdk import` imports the bucket of a removed team: an imported
resource may refer to imported resources alone, and the bucket's notifications refer to a function."""


class TeamStack(Stack):
    """The stack of a team: its state store, functions and API."""

    def __init__(self, scope: Construct, team: TeamConfig, target: Target, bundles: Bundles) -> None:
        team = target.place(team)
        super().__init__(
            scope,
            names.stack_name(team.name),
            description=f"Holdfast: Terraform state backend of team {team.name}",
            env=Environment(account=team.account, region=team.region),
            tags={**team.tags, names.TAG: team.name},
            termination_protection=target.termination_protection,
        )
        store = StateStore(self, "StateStore", team)
        staging = Staging(self, "Staging", store.key, team)
        functions = Functions(self, "Functions", team, target, store, staging, bundles)
        api = Api(self, "Api", team, target, functions)
        if team.replica:
            replicate(store, team, team.replica)
        if team.keep_warm:
            KeepWarm(self, "KeepWarm", functions)
        if team.watch:
            Watch(self, "Watch", functions, store.bucket, api.address)
            old = team.alarms.oldest_lock_seconds if team.alarms else int(watching.OLD.total_seconds())
            CfnOutput(self, names.WATCHED, value=str(old), description="Seconds from which a lock is old")
        if not imports(self):
            notify_audit_function(team, store, functions)
        if team.notify:
            RefusedSignIns(self, "Notifications", team, team.notify.topic, functions)
        if team.alarms:
            Alarms(self, "Alarms", team, team.alarms.topic, target, functions, api)

        CfnOutput(self, names.API_ADDRESS, value=api.address, description="Base URL of the API")
        CfnOutput(self, names.BUCKET_NAME, value=store.bucket.bucket_name, description="Holds the states")
        if retention := retention_of_each_write(team):
            CfnOutput(
                self, names.STATE_RETENTION, value=str(retention), description="Mode and days of each write"
            )
        if api.domain:
            for name, value, description in (
                ("DomainTarget", api.domain.regional_domain_name, "Target of the domain's DNS record"),
                (
                    "DomainTargetZone",
                    api.domain.regional_hosted_zone_id,
                    "Hosted zone of an alias record's target",
                ),
            ):
                CfnOutput(self, name, value=value, description=description)
        if functions.archive:
            bucket = functions.archive.bucket_name
            CfnOutput(self, "AuditArchiveName", value=bucket, description="Keeps the audit trail")
        if team.networks:
            CfnOutput(self, names.NETWORKS, value=",".join(team.networks), description="Accepted sources")

        if what := what_stays_for_ever(team):
            Validations.of(self).add_warning("holdfast:history", what)
        if what := above_quota(team):
            Validations.of(self).add_warning("holdfast:throttling", what)


def team_stacks(
    scope: Construct, teams: Sequence[TeamConfig], target: Target, bundles: Bundles
) -> list[TeamStack]:
    """Create the stack of each team and of its replica.

    Returns:
        The teams' stacks. A team's stack depends on its replica, so that both are deployed.
    """
    stacks = []
    for team in teams:
        stack = TeamStack(scope, team, target, bundles)
        if team.replica:
            stack.add_stack_dependency(ReplicaStack(scope, team, team.replica, target))
        stacks.append(stack)
    return stacks


def imports(scope: Construct) -> bool:
    """Return whether the stacks are for `cdk import` (`-c import=true`)."""
    return scope.node.try_get_context(IMPORT) in (True, "true")


def what_stays_for_ever(team: TeamConfig) -> str | None:
    """Return a warning if versions accumulate for ever with a team's settings, else None.

    Delete markers have no tags. So only `history` removes a delete marker beside other versions of its key.
    """
    if team.history is not None:
        return None
    leaves = []
    if team.native_clients:
        leaves.append("each unlock of a native client leaves an old version and a delete marker of its lock")
    if team.retention and team.retention.bucket_default:
        leaves.append("under a retention of the bucket's own each unlock leaves a delete marker of the lock")
    if not leaves:
        return None
    history = History(days=max(365, team.retention.days if team.retention else 0))
    return (
        f"team '{team.name}': {', and '.join(leaves)}, and they stay for ever; "
        f"write history = {as_toml(asdict(history))} to have S3 remove them"
    )
