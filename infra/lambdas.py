"""The functions, each with the role that allows what it does and nothing else, and their audit trail."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from aws_cdk import Acknowledgment, Aws, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_logs_destinations import LambdaDestination
from constructs import Construct

from holdfast import __version__, audit
from holdfast.audit import audit_log_group, function_log_group
from holdfast.s3 import retention as object_lock
from infra import keys
from infra.bundle import Bundle
from infra.config import Target, TeamConfig
from infra.staging import Staging
from infra.state_store import StateStore, fix_logical_id

_MODES: Final[dict[Literal["governance", "compliance"], Literal["GOVERNANCE", "COMPLIANCE"]]] = {
    "governance": "GOVERNANCE",
    "compliance": "COMPLIANCE",
}
"""A retention mode as teams.toml spells it, to how S3 spells it."""


@dataclass(frozen=True, slots=True)
class Bundles:
    """The code of the functions."""

    backend: Bundle
    cloud: Bundle
    management: Bundle
    authorizer: Bundle
    sessions: Bundle
    health: Bundle
    audit_trail: Bundle


class Functions(Construct):
    """The functions of one team.

    Attributes:
        backend: the alias that handles Terraform's requests.
        cloud: the alias that handles those of `cloud {}` and `backend "remote"`.
        management: the alias that handles those of operators: lists, histories, restores, freezes.
        authorizer: the alias that verifies credentials.
        sessions: the alias that creates sessions.
        health: the alias that tells, without credentials, the version of the backend and where `cloud` is.
        audit: the log group of the audit trail.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        team: TeamConfig,
        target: Target,
        store: StateStore,
        staging: Staging,
        bundles: Bundles,
    ) -> None:
        super().__init__(scope, construct_id)
        bucket, key = store.bucket, store.key
        states, locks = bucket.arn_for_objects(keys.STATES), bucket.arn_for_objects(keys.LOCKS)
        probes = bucket.arn_for_objects(keys.PROBES)
        tokens, sessions = bucket.arn_for_objects(keys.TOKENS), bucket.arn_for_objects(keys.SESSIONS)
        trust = bucket.arn_for_objects(keys.TRUST)
        workspaces = bucket.arn_for_objects(keys.WORKSPACES)
        uploads = staging.bucket.arn_for_objects(keys.UPLOADS)
        uploaded_json = staging.bucket.arn_for_objects(keys.UPLOADED_JSON)
        # Without s3:ListBucket S3 responds with 403 for a key that does not exist, as if that were a fault.
        missing_keys_are_404 = _allow("MissingKeysAre404", ["s3:ListBucket"], [bucket.bucket_arn])
        encrypt_and_decrypt = self._key_through_s3(
            "EncryptAndDecrypt", ["kms:GenerateDataKey", "kms:Decrypt"], key
        )
        retention = retention_of_each_write(team)
        declared = team.new_states == "declared"

        backend, backend_log = self._function(
            "Backend",
            team,
            bundles.backend,
            memory_mb=team.memory.backend,
            timeout=Duration.seconds(25),  # below the gateway's 30 s, so that every response is ours
            environment={
                "HOLDFAST_BUCKET": bucket.bucket_name,
                "HOLDFAST_ACCOUNT": Stack.of(self).account,
                "HOLDFAST_REQUIRE_LOCK": "true" if team.require_lock else "false",
                "HOLDFAST_NEW_STATES": team.new_states,
                **({"HOLDFAST_RETENTION": retention} if retention else {}),
            },
            statements=[
                _allow(
                    "StatesAndLocks",
                    ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
                    [states, locks, probes],
                ),
                # A release removes the very version of the lock, so that locking leaves nothing behind.
                _allow("RemoveLocks", ["s3:DeleteObjectVersion"], [locks, probes]),
                _allow("TagLocks", ["s3:PutObjectTagging"], [locks, probes]),
                *([_allow("RetainStates", ["s3:PutObjectRetention"], [states])] if retention else []),
                *([_allow("DeclaredNames", ["s3:GetObject"], [workspaces])] if declared else []),
                missing_keys_are_404,
                *encrypt_and_decrypt,
            ],
            acknowledged=[
                _pattern(pattern, "All states of the team: the token's scope says who may use which.")
                for pattern in (
                    *(keys.STATES, keys.LOCKS, keys.PROBES),
                    *([keys.WORKSPACES] if declared else []),
                )
            ],
        )
        self.backend = self._live(backend)
        if bucket.policy:
            # New code, which may ask for another retention, gets requests only once the bucket allows it.
            self.backend.node.add_dependency(bucket.policy)
        cloud, cloud_log = self._function(
            "Cloud",
            team,
            bundles.cloud,
            memory_mb=team.memory.cloud,
            timeout=Duration.seconds(25),
            environment={
                "HOLDFAST_BUCKET": bucket.bucket_name,
                "HOLDFAST_ACCOUNT": Stack.of(self).account,
                "HOLDFAST_STAGING_BUCKET": staging.bucket.bucket_name,
                "HOLDFAST_MAX_STATE_MB": str(team.max_state_mb),
                "HOLDFAST_NEW_STATES": team.new_states,
                **({"HOLDFAST_RETENTION": retention} if retention else {}),
                **({"HOLDFAST_PRESIGN_ENDPOINT": target.presign_endpoint} if target.presign_endpoint else {}),
                **({"HOLDFAST_API_ADDRESS": target.api_address} if target.api_address else {}),
            },
            statements=[
                _allow(
                    "StatesAndLocks", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], [states, locks]
                ),
                # A large state is downloaded by a presigned address of one version, which this role signs.
                _allow("ReadVersions", ["s3:GetObjectVersion"], [states]),
                _allow("RemoveLocks", ["s3:DeleteObjectVersion"], [locks]),
                _allow("TagLocks", ["s3:PutObjectTagging"], [locks]),
                *([_allow("RetainStates", ["s3:PutObjectRetention"], [states])] if retention else []),
                _allow("Workspaces", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], [workspaces]),
                _allow("ReadUploads", ["s3:GetObject"], [uploads]),
                # Clients upload by presigned addresses, which this role signs.
                _allow("Upload", ["s3:PutObject", "s3:DeleteObject"], [uploads, uploaded_json]),
                _allow(
                    "MissingKeysAre404", ["s3:ListBucket"], [bucket.bucket_arn, staging.bucket.bucket_arn]
                ),
                # Whether a workspace was deleted moments ago stands in its versions.
                _allow("ListVersions", ["s3:ListBucketVersions"], [bucket.bucket_arn]),
                *encrypt_and_decrypt,
            ],
            acknowledged=[
                *(
                    _pattern(pattern, "All states of the team: the token's scope says who may use which.")
                    for pattern in (keys.STATES, keys.LOCKS, keys.WORKSPACES)
                ),
                *(
                    _pattern(pattern, "Each upload has a new random key.", "StagingBucket")
                    for pattern in (keys.UPLOADS, keys.UPLOADED_JSON)
                ),
            ],
        )
        self.cloud = self._live(cloud)
        if bucket.policy:
            self.cloud.node.add_dependency(bucket.policy)
        self.audit = audit_log(self, "Audit", audit_log_group(team.name), days=team.audit_retention)
        management, management_log = self._function(
            "Management",
            team,
            bundles.management,
            memory_mb=team.memory.management,
            timeout=Duration.seconds(29),
            environment={
                "HOLDFAST_BUCKET": bucket.bucket_name,
                "HOLDFAST_ACCOUNT": Stack.of(self).account,
                "HOLDFAST_MAX_STATE_MB": str(team.max_state_mb),
                "HOLDFAST_AUDIT_GROUP": self.audit.log_group_name,
                "HOLDFAST_NEW_STATES": team.new_states,
                **({"HOLDFAST_RETENTION": retention} if retention else {}),
                **({"HOLDFAST_PRESIGN_ENDPOINT": target.presign_endpoint} if target.presign_endpoint else {}),
            },
            statements=[
                _allow(
                    "StatesAndLocks", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], [states, locks]
                ),
                # Earlier versions are read, and the role signs the presigned address of a large one.
                _allow("ReadVersions", ["s3:GetObjectVersion"], [states]),
                _allow("RemoveLocks", ["s3:DeleteObjectVersion"], [locks]),
                _allow("TagLocks", ["s3:PutObjectTagging"], [locks]),
                *([_allow("RetainStates", ["s3:PutObjectRetention"], [states])] if retention else []),
                _allow("DeclareNames", ["s3:GetObject", "s3:PutObject"], [workspaces]),
                _allow(
                    "ListStatesAndVersions", ["s3:ListBucket", "s3:ListBucketVersions"], [bucket.bucket_arn]
                ),
                _allow("ReadAuditTrail", ["logs:FilterLogEvents"], [self.audit.log_group_arn]),
                *encrypt_and_decrypt,
            ],
            acknowledged=[
                _pattern(pattern, "All states of the team: the token's scope says who may use which.")
                for pattern in (keys.STATES, keys.LOCKS, keys.WORKSPACES)
            ],
        )
        self.management = self._live(management)
        if bucket.policy:
            self.management.node.add_dependency(bucket.policy)
        authorizer, authorizer_log = self._function(
            "Authorizer",
            team,
            bundles.authorizer,
            memory_mb=team.memory.authorizer,
            timeout=Duration.seconds(10),
            environment={"HOLDFAST_BUCKET": bucket.bucket_name, "HOLDFAST_ACCOUNT": Stack.of(self).account},
            statements=[
                _allow("ReadRecords", ["s3:GetObject"], [tokens, sessions, trust]),
                missing_keys_are_404,
                *self._key_through_s3("Decrypt", ["kms:Decrypt"], key),
            ],
            acknowledged=[
                _pattern(keys.TOKENS, "Which token it is stands in the request."),
                _pattern(keys.SESSIONS, "Which session it is stands in the request."),
            ],
        )
        self.authorizer = self._live(authorizer)
        sessions_function, sessions_log = self._function(
            "Sessions",
            team,
            bundles.sessions,
            memory_mb=team.memory.authorizer,  # as much to do: a record is read, another is written
            timeout=Duration.seconds(25),
            environment={
                "HOLDFAST_BUCKET": bucket.bucket_name,
                "HOLDFAST_ACCOUNT": Stack.of(self).account,
            },
            statements=[
                _allow("ReadTrust", ["s3:GetObject"], [trust]),
                _allow("MakeSessions", ["s3:PutObject"], [sessions]),
                missing_keys_are_404,
                *encrypt_and_decrypt,
            ],
            acknowledged=[_pattern(keys.SESSIONS, "Each session has a new random ID.")],
        )
        self.sessions = self._live(sessions_function)
        health, _ = self._function(
            "Health",
            team,
            bundles.health,
            memory_mb=128,  # the least that Lambda has
            timeout=Duration.seconds(5),
            environment={"HOLDFAST_VERSION": version(bundles.backend)},
            statements=[],
            acknowledged=[],
            snap_start=False,  # billed for as long as it is kept, and little is loaded here
        )
        self.health = self._live(health)
        # It tells a version once requests get that one.
        self.health.node.add_dependency(self.backend)
        self._audit_trail(
            team,
            bundles.audit_trail,
            {
                "Backend": backend_log,
                "Cloud": cloud_log,
                "Management": management_log,
                "Authorizer": authorizer_log,
                "Sessions": sessions_log,
            },
        )

    def _audit_trail(self, team: TeamConfig, bundle: Bundle, audited: Mapping[str, logs.LogGroup]) -> None:
        """Make the function that fills the audit trail from the functions' logs."""
        trail = self.audit
        copying, _ = self._function(
            "AuditTrail",
            team,
            bundle,
            memory_mb=256,
            timeout=Duration.seconds(60),  # nobody waits for it
            environment={"HOLDFAST_AUDIT_GROUP": trail.log_group_name},
            statements=[
                _allow("AuditTrail", ["logs:CreateLogStream", "logs:PutLogEvents"], [trail.log_group_arn])
            ],
            acknowledged=[],
            snap_start=False,
        )
        for name, log in audited.items():
            # Written by hand, because the destination's own leaves the account out.
            copying.add_permission(
                f"{name}Log",
                principal=iam.ServicePrincipal("logs.amazonaws.com"),
                source_arn=log.log_group_arn,
                source_account=Stack.of(self).account,
            )
            marked_lines = logs.SubscriptionFilter(
                self,
                f"{name}Audit",
                log_group=log,
                destination=LambdaDestination(copying, add_permissions=False),
                # In quotes: a term without them is letters, digits and underscores alone.
                filter_pattern=logs.FilterPattern.literal(f'"{audit.MARK}"'),
                filter_name="audit",
            )
            # CloudWatch tries the function when the filter is made.
            marked_lines.node.add_dependency(copying.node.find_child(f"{name}Log"))

    def _function(
        self,
        name: str,
        team: TeamConfig,
        bundle: Bundle,
        *,
        memory_mb: int,
        timeout: Duration,
        environment: Mapping[str, str],
        statements: Sequence[iam.PolicyStatement],
        acknowledged: Sequence[Acknowledgment],
        snap_start: bool = True,
    ) -> tuple[lambda_.Function, logs.LogGroup]:
        # The name of the log group is stored in audit events, and kept log groups are found by it.
        log_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        log_group = audit_log(
            self, f"{name}Log", function_log_group(team.name, log_name), days=team.log_retention
        )
        log_streams = _allow(
            "OwnLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group.log_group_arn]
        )
        role = iam.Role(
            self,
            f"{name}Role",
            description=f"Holdfast {log_name} of team {team.name}",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"permissions": iam.PolicyDocument(statements=[*statements, log_streams])},
        )
        Validations.of(role).acknowledge(*acknowledged)
        from_snapshot = team.snap_start and snap_start
        function = lambda_.Function(
            self,
            name,
            description=f"Holdfast {log_name} of team {team.name}",
            code=lambda_.Code.from_asset(str(bundle.path), asset_hash=bundle.digest),
            handler=f"{bundle.function}.handler.handle",
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=memory_mb,
            timeout=timeout,
            environment={
                "HOLDFAST_VERSION": version(bundle),
                "POWERTOOLS_SERVICE_NAME": "holdfast",
                "POWERTOOLS_LOG_LEVEL": "INFO",
                **environment,
            },
            # The statements above are all there are: constructs that would add to them cannot.
            role=role.without_policy_updates(),
            log_group=log_group,
            # A cold start restores a snapshot instead of importing the code; published versions only.
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if from_snapshot else None,
        )
        if from_snapshot:
            Validations.of(function).acknowledge(
                Acknowledgment(
                    id="@aws-cdk/aws-lambda:snapStartRequirePublish", reason="The alias publishes a version."
                ),
                Acknowledgment(
                    id="CloudFormation-Validate::E2530",
                    reason="Its list of regions is older than Lambda's own.",
                ),
            )
        return function, log_group

    def _key_through_s3(
        self, sid: str, actions: Sequence[str], key: kms.IKey | None
    ) -> list[iam.PolicyStatement]:
        """Allow the use of the key in requests that S3 of this region makes for the function."""
        if key is None:
            return []
        s3_here = f"s3.{Stack.of(self).region}"
        # AWS KMS documents the first value. The second is S3's name in China and in isolated partitions,
        # and no document says which of the two KMS fills in there. Elsewhere both are the same.
        services = [f"{s3_here}.amazonaws.com", f"{s3_here}.{Aws.URL_SUFFIX}"]
        return [_allow(sid, actions, [key.key_arn], {"StringEquals": {"kms:ViaService": services}})]

    def _live(self, function: lambda_.Function) -> lambda_.Alias:
        """Make the alias that callers use: a snapshot is made of the version that it publishes."""
        return lambda_.Alias(
            self, f"{function.node.id}Live", alias_name="live", version=function.current_version
        )


def version(bundle: Bundle) -> str:
    """Return the version of a function's code, such as `0.2.0+57ab9b1ad0f6`: the release, and the digest."""
    return f"{__version__}+{bundle.digest[:12]}"


def retention_of_each_write(team: TeamConfig) -> str | None:
    """Return the retention that every write of a state asks S3 for, as `holdfast.s3.retention` writes it.

    Returns:
        None if the team has no retention, or if the bucket adds it by itself.
    """
    if team.retention is None or team.retention.bucket_default:
        return None
    return str(object_lock.Retention(_MODES[team.retention.mode], team.retention.days))


def audit_log(scope: Construct, logical_id: str, name: str, *, days: int) -> logs.LogGroup:
    """Make a log group that outlives the stack, because it says who did what.

    Args:
        scope: where it belongs.
        logical_id: its name in the template. It does not change: a new stack imports a kept log group by it.
        name: of the log group.
        days: how long a line is kept.
    """
    log_group = logs.LogGroup(
        scope,
        logical_id,
        log_group_name=name,
        removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    )
    # The construct takes the number only by a name, such as THREE_MONTHS.
    cast("logs.CfnLogGroup", log_group.node.default_child).retention_in_days = days
    fix_logical_id(log_group, logical_id)
    return log_group


def _pattern(keys: str, reason: str, bucket: str = "StateBucket") -> Acknowledgment:
    """Acknowledge that a role is for all keys that a pattern matches, and say why."""
    rule = f"AwsSolutions::AwsSolutions-IAM5[Resource::<{bucket}.Arn>/{keys}]"
    return Acknowledgment(id=rule, reason=reason)


def _allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, object] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions)
