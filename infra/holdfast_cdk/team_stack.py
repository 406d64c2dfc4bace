"""The stack of one team. It shares nothing with another team's stack."""

from dataclasses import asdict, replace
from typing import Final

from aws_cdk import CfnOutput, Environment, Stack, Stage, Validations
from aws_cdk import aws_sns as sns
from constructs import Construct

from holdfast import team as names
from holdfast import watching
from holdfast_cdk import bundle
from holdfast_cdk.alarms import Alarms
from holdfast_cdk.api import Api
from holdfast_cdk.config import AWS, Target, above_quota, checked
from holdfast_cdk.feature_flags import fix_feature_flags
from holdfast_cdk.keep_warm import KeepWarm
from holdfast_cdk.lambdas import Bundles, Functions
from holdfast_cdk.notifications import RefusedSignIns, notify_audit_function
from holdfast_cdk.replica import ReplicaStack, replicate
from holdfast_cdk.settings import as_toml
from holdfast_cdk.state_store import Staging, StateStore
from holdfast_cdk.team_policy import retention_of_each_write
from holdfast_cdk.team_settings import History, Team
from holdfast_cdk.watch import Watch

IMPORT: Final = "import"
"""The name of the context value with which `cdk import` imports the bucket of a removed team: an imported
resource may refer to imported resources alone, and the bucket's notifications refer to a function."""


class TeamStack(Stack):
    """The stack of a team: its state store, functions and API.

    Attributes:
        api_address: the base URL of the API, as text.
        bucket: the bucket with the states.
        topic: the topic of the setting `notify`; None without it.
        replica: the stack of the replica, in the region of the setting `replica`; None without it.
    """

    def __init__(
        self, scope: Construct, team: Team, *, target: Target = AWS, bundles: Bundles | None = None
    ) -> None:
        """Create the stack `Holdfast-<team>` in an app or in a stage, and the stack of the team's replica.

        Args:
            team: its settings; one without account or region gets those of the stage.
            bundles: the code of the functions; by default, it is bundled in the folder `.holdfast`.

        Raises:
            ConfigError: a setting is invalid; the message names it and says what to write.
            BundleError: the functions cannot be bundled; the message says why.
        """
        team = target.place(checked(_in_stage(team, scope)))
        super().__init__(
            scope,
            names.stack_name(team.name),
            # Also in a stage: the command finds a team's stack by this name.
            stack_name=names.stack_name(team.name),
            description=f"Holdfast: Terraform state backend of team {team.name}",
            env=Environment(account=team.account, region=team.region),
            tags={**team.tags, names.TAG: team.name},
            termination_protection=target.termination_protection,
        )
        fix_feature_flags(self)
        if bundles is None:
            bundles = bundle.bundles(target.name, bytecode=has_bytecode(self))
        store = StateStore(self, "StateStore", team)
        staging = Staging(self, "Staging", store.key, team)
        functions = Functions(self, "Functions", team, target, store, staging, bundles)
        api = Api(self, "Api", team, target, functions)
        self.api_address, self.bucket = api.address, store.bucket
        self.topic = sns.Topic.from_topic_arn(self, "Topic", team.notify.topic) if team.notify else None
        self.replica = ReplicaStack(scope, team, team.replica, target) if team.replica else None
        if team.replica and self.replica:
            replicate(store, team, team.replica)
            self.add_stack_dependency(self.replica)
        if team.keep_warm:
            KeepWarm(self, "KeepWarm", functions)
        if team.watch:
            Watch(self, "Watch", functions, store.bucket, api.address)
            old = team.alarms.oldest_lock_seconds if team.alarms else int(watching.OLD.total_seconds())
            CfnOutput(
                self,
                names.WATCHED,
                value=str(old),
                description="Age in seconds at which a lock counts as old",
            )
        if not imports(self):
            notify_audit_function(team, store, functions)
        if team.notify:
            RefusedSignIns(self, "Notifications", team, team.notify.topic, functions)
        if team.alarms:
            Alarms(self, "Alarms", team, team.alarms.topic, target, functions, api)

        CfnOutput(self, names.API_ADDRESS, value=api.address, description="The base URL of the API")
        bucket_name = store.bucket.bucket_name
        CfnOutput(self, names.BUCKET_NAME, value=bucket_name, description="The S3 bucket with the states")
        if retention := retention_of_each_write(team):
            CfnOutput(
                self,
                names.STATE_RETENTION,
                value=str(retention),
                description="Retention mode and days of each new state version",
            )
        if api.domain:
            for name, value, description in (
                ("DomainTarget", api.domain.regional_domain_name, "Target of the domain's DNS record"),
                (
                    "DomainTargetZone",
                    api.domain.regional_hosted_zone_id,
                    "Hosted zone ID of the domain's target, for an alias record",
                ),
            ):
                CfnOutput(self, name, value=value, description=description)
        if functions.archive:
            bucket = functions.archive.bucket_name
            holds = "The S3 bucket that archives the audit trail"
            CfnOutput(self, "AuditArchiveName", value=bucket, description=holds)
        if team.networks:
            CfnOutput(self, names.NETWORKS, value=",".join(team.networks), description="Accepted sources")

        if what := what_stays_for_ever(team):
            Validations.of(self).add_warning("holdfast:history", what)
        if what := above_quota(team):
            Validations.of(self).add_warning("holdfast:throttling", what)


def _in_stage(team: Team, scope: Construct) -> Team:
    """Return the team with the account and the region of the stage around it, unless it has its own."""
    stage = scope if isinstance(scope, Stage) else Stage.of(scope)  # of a stage it returns the one around it
    if stage is None:
        return team
    return replace(team, account=team.account or stage.account, region=team.region or stage.region)


def has_bytecode(scope: Construct) -> bool:
    """Return whether the functions are compiled: they are, without `-c without_bytecode=true`."""
    return scope.node.try_get_context("without_bytecode") not in (True, "true")


def imports(scope: Construct) -> bool:
    """Return whether the stacks are for `cdk import` (`-c import=true`)."""
    return scope.node.try_get_context(IMPORT) in (True, "true")


def what_stays_for_ever(team: Team) -> str | None:
    """Return a warning if versions accumulate for ever with a team's settings, else None.

    Delete markers have no tags. So only `history` removes a delete marker beside other versions of its key.
    """
    if team.history is not None:
        return None
    leaves = []
    if team.native_clients:
        leaves.append(
            'each unlock by a client of backend "s3" leaves an old version and a delete marker of the lock'
        )
    if team.retention and team.retention.bucket_default:
        leaves.append(
            "because of the bucket's default retention, each unlock leaves a delete marker of the lock"
        )
    if not leaves:
        return None
    history = History(days=max(365, team.retention.days if team.retention else 0))
    return (
        f"team '{team.name}': {', and '.join(leaves)}. S3 keeps them for ever. To let S3 remove them, write "
        f"history = {as_toml(asdict(history))}"
    )
