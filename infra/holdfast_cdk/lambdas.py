"""The functions of a team, made from their declarations, and their audit trail."""

from collections.abc import Mapping
from typing import Any, Final, cast

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk.aws_logs_destinations import LambdaDestination
from constructs import Construct

from holdfast import __version__, audit, watching
from holdfast import team as names
from holdfast.audit import audit_log_group, function_log_group
from holdfast.policy import VARIABLES, Deployment
from holdfast_cdk.bundle import Bundle
from holdfast_cdk.config import Target
from holdfast_cdk.functions import (
    AUDIT_ARCHIVE,
    AUDIT_TRAIL,
    FUNCTIONS,
    METRICS,
    NOTIFIED_TOPIC,
    RETAIN_STATES,
    SIGN_ADDRESSES,
    STAGING_BUCKET,
    STATE_BUCKET,
    STATE_KEY,
    TRANSFERS,
    TRANSFERS_ROLE,
    FunctionSpec,
    Grant,
    RoleSpec,
)
from holdfast_cdk.key_policy import by_s3
from holdfast_cdk.state_store import Staging, StateStore, audit_archive, fix_logical_id
from holdfast_cdk.team_policy import policy_of, retention_of_each_write
from holdfast_cdk.team_settings import Team

SUBSCRIPTION: Final = "audit"
"""The name of the subscription filter in each audited log group."""

Bundles = Mapping[str, Bundle]
"""Function name -> its code."""


class Functions(Construct):
    """The functions of one team.

    Attributes:
        archive: the bucket of the setting `audit_archive`.
        made: maps the name of each function to the function.
        live: maps the name of each function except `audit_trail` to the alias that callers invoke.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        team: Team,
        target: Target,
        store: StateStore,
        staging: Staging,
        bundles: Bundles,
    ) -> None:
        super().__init__(scope, construct_id)
        self._team = team
        self.audit = audit_log(self, "Audit", audit_log_group(team.name), days=team.audit_retention)
        self.archive = audit_archive(self, team.audit_archive) if team.audit_archive else None
        self._arns = {
            STATE_BUCKET.resource: store.bucket.bucket_arn,
            STAGING_BUCKET.resource: staging.bucket.bucket_arn,
            AUDIT_TRAIL.resource: self.audit.log_group_arn,
            AUDIT_ARCHIVE.resource: self.archive.bucket_arn if self.archive else "",
            NOTIFIED_TOPIC.resource: team.notify.topic if team.notify else "",
            # By its name: the role's own policy refers to the roles that may assume it.
            TRANSFERS_ROLE.resource: Stack.of(self).format_arn(
                service="iam", region="", resource="role", resource_name=_transfers_role(self, team)
            ),
            METRICS.resource: "*",  # a metric is no resource; the namespace is the condition
        }
        self._key_arns = store.key_arns
        self._holds = {
            "": True,
            "retention": retention_of_each_write(team) is not None,
            "declared": team.new_states == "declared",
            "kms": bool(store.key_arns),
            "notify": team.notify is not None,
            "audit_archive": self.archive is not None,
        }
        deployment = Deployment(
            team=team.name,
            bucket=store.bucket.bucket_name,
            account=Stack.of(self).account,
            staging_bucket=staging.bucket.bucket_name,
            transfers_role=self._arns[TRANSFERS_ROLE.resource],
            presign_endpoint=target.presign_endpoint,
            api_address=target.api_address,
            probed_api="",  # the API is made later, and `Watch` sets its address
            audit_group=self.audit.log_group_name,
            audit_archive=self.archive.bucket_name if self.archive else None,
            audit_archive_owner=Stack.of(self).account if self.archive else None,
            notify_topic=team.notify.topic if team.notify else None,
        )
        variables = {**policy_of(team).environment(), **deployment.environment()}
        self.live: dict[str, lambda_.Alias] = {}
        self.roles: dict[str, iam.Role] = {}
        self.made: dict[str, lambda_.Function] = {}
        logs_of: dict[str, logs.LogGroup] = {}
        for spec in FUNCTIONS:
            log_name = function_log_group(team.name, spec.name)
            if not (team.has(spec) or spec.log_stays):
                continue
            log_group = audit_log(
                self, f"{spec.construct_id}Log", log_name, days=team.log_retention, stays=spec.log_stays
            )
            if not team.has(spec):
                continue  # its log stays, so that the setting can change again
            own = {VARIABLES[field] for field in bundles[spec.name].fields}
            environment = {
                "HOLDFAST_VERSION": version(bundles[spec.version_of or spec.name]),
                "POWERTOOLS_SERVICE_NAME": "holdfast",
                "POWERTOOLS_LOG_LEVEL": "INFO",
                **{name: value for name, value in variables.items() if name in own},
            }
            function = self._function(spec, bundles[spec.name], environment, log_group)
            self.made[spec.name], logs_of[spec.name] = function, log_group
            if spec.name == "audit_trail":
                continue  # CloudWatch invokes this function without an alias
            alias = self.live[spec.name] = lambda_.Alias(
                self, f"{spec.construct_id}Live", alias_name="live", version=function.current_version
            )
            if RETAIN_STATES in spec.grants and store.bucket.policy:
                # New code may request another retention: the policy that allows it is deployed first.
                alias.node.add_dependency(store.bucket.policy)
            if spec.version_of:
                # This function reports a version only after that version gets requests.
                alias.node.add_dependency(self.live[spec.version_of])
        if self.archive:
            self._keep_lost_deliveries(self.made["audit_trail"], self.archive)
        transfers = self._transfers()
        for spec in FUNCTIONS:
            if SIGN_ADDRESSES in spec.grants:
                self.live[spec.name].node.add_dependency(transfers)
        for spec in FUNCTIONS:
            if spec.audited:
                self._subscribe(self.made["audit_trail"], logs_of[spec.name], spec.construct_id)

    def _subscribe(self, copying: lambda_.Function, log: logs.LogGroup, construct_id: str) -> None:
        """Subscribe the function that fills the audit trail to the marked lines of another function's log."""
        # Added by hand, because the destination's own permission leaves out the account.
        copying.add_permission(
            f"{construct_id}Log",
            principal=iam.ServicePrincipal("logs.amazonaws.com"),
            source_arn=log.log_group_arn,
            source_account=Stack.of(self).account,
        )
        marked_lines = logs.SubscriptionFilter(
            self,
            f"{construct_id}Audit",
            log_group=log,
            destination=LambdaDestination(copying, add_permissions=False),
            # In quotes: a term without quotes may have only letters, digits and underscores.
            filter_pattern=logs.FilterPattern.literal(f'"{audit.MARK}"'),
            filter_name=SUBSCRIPTION,
        )
        # CloudWatch tests whether it may call the function when the filter is created.
        marked_lines.node.add_dependency(copying.node.find_child(f"{construct_id}Log"))

    def _keep_lost_deliveries(self, copying: lambda_.Function, archive: s3.IBucket) -> None:
        """Have Lambda store each delivery that it gives up, after two more attempts or six hours.

        By hand, because the construct of the destination adds permissions to the role.
        """
        failed = lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=archive.bucket_arn)
        lambda_.CfnEventInvokeConfig(
            self,
            "LostDeliveries",
            function_name=copying.function_name,
            qualifier="$LATEST",  # CloudWatch and S3 invoke this function without an alias
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(on_failure=failed),
        )

    def _function(
        self, spec: FunctionSpec, bundle: Bundle, environment: Mapping[str, str], log_group: logs.LogGroup
    ) -> lambda_.Function:
        team, construct_id = self._team, spec.construct_id
        own_log = iam.PolicyStatement(
            sid="OwnLog",
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[log_group.log_group_arn],
        )
        lambda_service = iam.ServicePrincipal("lambda.amazonaws.com")
        role = self.roles[spec.name] = self._role(spec, lambda_service, own_log)
        function = lambda_.Function(
            self,
            construct_id,
            description=f"Holdfast {spec.name} of team {team.name}",
            code=lambda_.Code.from_asset(str(bundle.path), asset_hash=bundle.digest),
            handler=f"{spec.folder}.handler.handle",
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=team.memory.of(spec),
            timeout=Duration.seconds(spec.seconds),
            environment=environment,
            # The role has the statements above only: no construct can add others.
            role=role.without_policy_updates(),
            log_group=log_group,
        )
        if spec.audited:
            # Until release 0.5.0: an earlier setting gave these functions SnapStart, and Lambda may keep a
            # property that only disappears from the template.
            resource = cast("lambda_.CfnFunction", function.node.default_child)
            resource.snap_start = lambda_.CfnFunction.SnapStartProperty(apply_on="None")
        return function

    def _role(
        self, spec: RoleSpec, assumed_by: iam.IPrincipal, *statements: iam.PolicyStatement, name: str = ""
    ) -> iam.Role:
        grants = [grant for grant in spec.grants if self._holds[grant.when]]
        role = iam.Role(
            self,
            f"{spec.construct_id}Role",
            role_name=name or None,
            description=f"Holdfast {spec.name} of team {self._team.name}",
            assumed_by=assumed_by,
            inline_policies={
                "permissions": iam.PolicyDocument(statements=[*map(self._statement, grants), *statements])
            },
        )
        for place in dict.fromkeys(place for grant in grants for place in grant.on if place.reason):
            rule = f"AwsSolutions::AwsSolutions-IAM5[Resource::<{place.resource}.Arn>/{place.keys}]"
            Validations.of(role).acknowledge(Acknowledgment(id=rule, reason=place.reason))
        if any(METRICS in grant.on for grant in grants):
            rule = "AwsSolutions::AwsSolutions-IAM5[Resource::*]"
            why = "PutMetricData has no resource-level permissions; a condition names the namespace."
            Validations.of(role).acknowledge(Acknowledgment(id=rule, reason=why))
        return role

    def _transfers(self) -> iam.Role:
        """Create the role for transfers, which the functions with `SIGN_ADDRESSES` may assume.

        Its trust policy names them in a condition: IAM refuses a principal that it does not know yet, for
        moments after the principal was created.
        """
        signers = [self.roles[spec.name].role_arn for spec in FUNCTIONS if SIGN_ADDRESSES in spec.grants]
        account = iam.AccountPrincipal(Stack.of(self).account)
        return self._role(
            TRANSFERS,
            account.with_conditions({"ArnEquals": {"aws:PrincipalArn": signers}}),
            name=_transfers_role(self, self._team),
        )

    def _statement(self, grant: Grant) -> iam.PolicyStatement:
        arns = [
            f"{self._arns[place.resource]}/{place.keys}" if place.keys else self._arns[place.resource]
            for place in grant.on
            if place != STATE_KEY
        ]
        arns += self._key_arns if grant.of_bucket else ()
        conditions: dict[str, Any] | None = None
        if grant.of_bucket:
            conditions = by_s3(Stack.of(self).region, self._arns[grant.of_bucket.resource])
        elif grant.actions[0].startswith("s3:"):
            # The name of a deleted bucket is free for other accounts. The functions' own requests name the
            # owner that they expect, but an address that they sign does not.
            conditions = {"StringEquals": {"s3:ResourceAccount": Stack.of(self).account}}
        elif METRICS in grant.on:
            conditions = {"StringEquals": {"cloudwatch:namespace": watching.NAMESPACE}}
        return iam.PolicyStatement(
            sid=grant.sid, actions=[*grant.actions], resources=arns, conditions=conditions
        )


def _transfers_role(scope: Construct, team: Team) -> str:
    return names.transfers_role(team.name, team.region or Stack.of(scope).region)


def version(bundle: Bundle) -> str:
    """Return the version of a function's code: release and digest, such as `0.2.0+57ab9b1ad0f6`."""
    return f"{__version__}+{bundle.digest[:12]}"


def audit_log(
    scope: Construct, logical_id: str, name: str, *, days: int, stays: bool = True
) -> logs.LogGroup:
    """Create a log group that is kept when the stack is deleted, because it says who did what.

    Args:
        logical_id: must not change: a new stack imports a kept log group by it.
        days: the number of days for which a line is kept.
        stays: False for a log that says nothing about anybody.
    """
    log_group = logs.LogGroup(
        scope,
        logical_id,
        log_group_name=name,
        removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if stays else RemovalPolicy.DESTROY,
    )
    # The construct accepts only names such as THREE_MONTHS, not a number.
    cast("logs.CfnLogGroup", log_group.node.default_child).retention_in_days = days
    fix_logical_id(log_group, logical_id)
    return log_group
