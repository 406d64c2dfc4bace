"""The two functions, each with the role that allows what it does and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from holdfast import __version__
from infra.bundle import Bundle
from infra.config import TeamConfig
from infra.state_store import StateStore, fix_logical_id

LOG_RETENTION = logs.RetentionDays.THREE_MONTHS


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

        self.backend = self._function(
            "Backend",
            team,
            bundles.backend,
            memory_mb=1769,  # one whole vCPU
            timeout=Duration.seconds(25),  # below the gateway's 30 s, so that an answer is always ours
            environment={
                "HOLDFAST_BUCKET": bucket.bucket_name,
                "HOLDFAST_REQUIRE_LOCK": "true" if team.require_lock else "false",
            },
            statements=[
                _allow(
                    "StatesAndLocks", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], [states, locks]
                ),
                _allow("TagLocks", ["s3:PutObjectTagging"], [locks]),
                missing_keys_are_404,
                _allow("EncryptAndDecrypt", ["kms:GenerateDataKey", "kms:Decrypt"], [key.key_arn]),
            ],
        )
        self.authorizer = self._function(
            "Authorizer",
            team,
            bundles.authorizer,
            memory_mb=512,
            timeout=Duration.seconds(10),
            environment={"HOLDFAST_BUCKET": bucket.bucket_name},
            statements=[
                _allow("ReadTokens", ["s3:GetObject"], [bucket.arn_for_objects("tokens/*.json")]),
                missing_keys_are_404,
                _allow("Decrypt", ["kms:Decrypt"], [key.key_arn]),
            ],
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
    ) -> lambda_.Alias:
        folder = name.lower()
        log_group = audit_log(self, f"{name}Log", f"/holdfast/{team.name}/{folder}")
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
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS,
        )
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


def audit_log(scope: Construct, logical_id: str, name: str) -> logs.LogGroup:
    """A log group that outlives the stack: it says who did what.

    Args:
        scope: where it belongs.
        logical_id: its name in the template. It does not change: a kept log group is taken into a new stack
            under it.
        name: of the log group.
    """
    log_group = logs.LogGroup(
        scope,
        logical_id,
        log_group_name=name,
        retention=LOG_RETENTION,
        removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    )
    fix_logical_id(log_group, logical_id)
    return log_group


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid=sid, actions=actions, resources=resources)
