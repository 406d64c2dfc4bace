"""The two functions, each with the role that allows what it does and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from holdfast import __version__
from infra.bundle import Bundle
from infra.config import TeamConfig
from infra.state_store import StateStore, fix_logical_id


@dataclass(frozen=True, slots=True)
class Bundles:
    """The code of the functions."""

    backend: Bundle
    authorizer: Bundle


class Functions(Construct):
    """The functions of one team.

    Attributes:
        backend: the alias that answers Terraform.
        authorizer: the alias that verifies access tokens.
    """

    def __init__(
        self, scope: Construct, construct_id: str, team: TeamConfig, store: StateStore, bundles: Bundles
    ) -> None:
        super().__init__(scope, construct_id)
        bucket, key = store.bucket, store.key
        states = bucket.arn_for_objects("states/*.tfstate")
        locks = bucket.arn_for_objects("states/*.tfstate.tflock")
        # Without s3:ListBucket S3 answers 403 for a key that does not exist: "no state yet" were a fault.
        missing_keys_are_404 = _allow("MissingKeysAre404", ["s3:ListBucket"], [bucket.bucket_arn])
        retention = retention_of_each_write(team)

        self.backend = self._function(
            "Backend",
            team,
            bundles.backend,
            memory_mb=team.memory.backend,
            timeout=Duration.seconds(25),  # below the gateway's 30 s, so that an answer is always ours
            environment={
                "HOLDFAST_BUCKET": bucket.bucket_name,
                "HOLDFAST_REQUIRE_LOCK": "true" if team.require_lock else "false",
                **({"HOLDFAST_RETENTION": retention} if retention else {}),
            },
            statements=[
                _allow(
                    "StatesAndLocks", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], [states, locks]
                ),
                # A release removes the very version of the lock, so that locking leaves nothing behind.
                _allow("RemoveLocks", ["s3:DeleteObjectVersion"], [locks]),
                _allow("TagLocks", ["s3:PutObjectTagging"], [locks]),
                *([_allow("RetainStates", ["s3:PutObjectRetention"], [states])] if retention else []),
                missing_keys_are_404,
                *(
                    [_allow("EncryptAndDecrypt", ["kms:GenerateDataKey", "kms:Decrypt"], [key.key_arn])]
                    if key
                    else []
                ),
            ],
            acknowledged=[
                _pattern(
                    f"states/*.{kind}", "All states of the team: the token's scope says who may use which."
                )
                for kind in ("tfstate", "tfstate.tflock")
            ],
        )
        if bucket.policy:
            # New code, which may ask for another retention, answers only once the bucket lets it through.
            self.backend.node.add_dependency(bucket.policy)
        self.authorizer = self._function(
            "Authorizer",
            team,
            bundles.authorizer,
            memory_mb=team.memory.authorizer,
            timeout=Duration.seconds(10),
            environment={"HOLDFAST_BUCKET": bucket.bucket_name},
            statements=[
                _allow("ReadTokens", ["s3:GetObject"], [bucket.arn_for_objects("tokens/*.json")]),
                missing_keys_are_404,
                *([_allow("Decrypt", ["kms:Decrypt"], [key.key_arn])] if key else []),
            ],
            acknowledged=[_pattern("tokens/*.json", "Which token it is stands in the request.")],
        )

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
    ) -> lambda_.Alias:
        folder = name.lower()
        log_group = audit_log(self, f"{name}Log", f"/holdfast/{team.name}/{folder}", days=team.log_retention)
        log_streams = _allow(
            "OwnLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group.log_group_arn]
        )
        role = iam.Role(
            self,
            f"{name}Role",
            description=f"Holdfast {folder} of team {team.name}",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"permissions": iam.PolicyDocument(statements=[*statements, log_streams])},
        )
        Validations.of(role).acknowledge(*acknowledged)
        function = lambda_.Function(
            self,
            name,
            description=f"Holdfast {folder} of team {team.name}",
            code=lambda_.Code.from_asset(str(bundle.path), asset_hash=bundle.digest),
            handler=f"{folder}.handler.handle",
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=memory_mb,
            timeout=timeout,
            environment={
                **environment,
                "HOLDFAST_VERSION": f"{__version__}+{bundle.digest[:12]}",
                "POWERTOOLS_SERVICE_NAME": "holdfast",
                "POWERTOOLS_LOG_LEVEL": "INFO",
            },
            # The statements above are all there are: constructs that would add to them cannot.
            role=role.without_policy_updates(),
            log_group=log_group,
            # Started from a snapshot instead of imported anew; only published versions are.
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if team.snap_start else None,
        )
        if team.snap_start:
            Validations.of(function).acknowledge(
                Acknowledgment(
                    id="@aws-cdk/aws-lambda:snapStartRequirePublish", reason="The alias publishes a version."
                ),
                Acknowledgment(
                    id="CloudFormation-Validate::E2530",
                    reason="Its list of regions is older than Lambda's own.",
                ),
            )
        return lambda_.Alias(self, f"{name}Live", alias_name="live", version=function.current_version)


def retention_of_each_write(team: TeamConfig) -> str | None:
    """What every write of a state asks S3 for, as in `governance 30` (days).

    None where the team has no retention, or where the bucket adds it by itself.
    """
    if team.retention is None or team.retention.bucket_default:
        return None
    return f"{team.retention.mode} {team.retention.days}"


def audit_log(scope: Construct, logical_id: str, name: str, *, days: int) -> logs.LogGroup:
    """A log group that outlives the stack: it says who did what.

    Args:
        scope: where it belongs.
        logical_id: its name in the template. It does not change: a kept log group is taken into a new stack
            under it.
        name: of the log group.
        days: for which a line is kept.
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


def _pattern(keys: str, reason: str) -> Acknowledgment:
    """Say why a role is for all keys that a pattern matches."""
    rule = f"AwsSolutions::AwsSolutions-IAM5[Resource::<StateBucket.Arn>/{keys}]"
    return Acknowledgment(id=rule, reason=reason)


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid=sid, actions=actions, resources=resources)
