"""The replica of a team's state bucket in another region, with its key, and the role by which S3 fills it.

They have a stack of their own, which is deployed before the team's. The stacks refer to each other's
resources by fixed names. The replica's name and logical IDs are those that the team's own stack would have in
that region, so that a stack there can import bucket and key.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from aws_cdk import Acknowledgment, Aws, Environment, RemovalPolicy, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from holdfast import team as names
from holdfast.audit import Event
from holdfast_cdk import keys
from holdfast_cdk.config import Target
from holdfast_cdk.feature_flags import fix_feature_flags
from holdfast_cdk.key_policy import by_s3
from holdfast_cdk.state_store import StateStore, bucket_name, lifecycle, private_bucket, state_key
from holdfast_cdk.team_settings import Replica, Team

_EVERY_OBJECT = "S3 copies every object of these folders."
_COPIED = (keys.STATES, keys.TOKENS, keys.TRUST, keys.WORKSPACES, keys.FREEZES)
"""The keys that a recovery needs. Sessions and the doctor's probes pass, and the credentials of the probe of
`watch` are for one function alone."""


class ReplicaStack(Stack):
    """The replica of one team's state bucket."""

    def __init__(self, scope: Construct, team: Team, replica: Replica, target: Target) -> None:
        source = target.place(team)
        team = replace(source, region=replica.region)
        super().__init__(
            scope,
            names.replica_stack_name(team.name),
            stack_name=names.replica_stack_name(team.name),
            description=f"Holdfast: replica of the states of team {team.name}",
            env=Environment(account=team.account, region=team.region),
            # Without the tag `holdfast:team`, by which the command finds a team's stack.
            tags=dict(team.tags),
            termination_protection=target.termination_protection,
        )
        fix_feature_flags(self)
        key = state_key(self, team) if team.kms_keys else None
        bucket = private_bucket(
            self,
            "Bucket",
            "StateBucket",
            key=key,
            bucket_name=bucket_name(team),
            versioned=True,
            object_lock_enabled=True,
            # Without a default retention: a copy has the retention of its original.
            lifecycle_rules=lifecycle(team.history),
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        Validations.of(bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason="Only S3 replication writes to this bucket. The team's stack turns on its access log.",
            )
        )
        for statement in _refuse_to_others(bucket, _role_arn(source)):
            bucket.add_to_resource_policy(statement)
        if key:
            kms.Alias(self, "Alias", alias_name=_alias(team), target_key=key)
        role = iam.Role(
            self,
            "Role",
            role_name=names.replication_role(source.name, str(source.region)),
            description=f"Holdfast replication of team {team.name}",
            assumed_by=iam.ServicePrincipal("s3.amazonaws.com"),
            inline_policies={"permissions": iam.PolicyDocument(statements=_permissions(source, team, key))},
        )
        for name in (bucket_name(source), bucket_name(team)):
            rule = f"AwsSolutions::AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{name}/*]"
            Validations.of(role).acknowledge(Acknowledgment(id=rule, reason=_EVERY_OBJECT))
        if "kms" in source.kms_keys:
            own = _own_keys(source).replace(Aws.PARTITION, "<AWS::Partition>")
            why = (
                "A condition allows the use of the keys only through S3 and for the bucket. This stack does "
                "not know the ID of the bucket's key."
            )
            rule = f"AwsSolutions::AwsSolutions-IAM5[Resource::{own}]"
            Validations.of(role).acknowledge(Acknowledgment(id=rule, reason=why))


def reports_failed_copies(team: Team) -> bool:
    """Return whether a team's topic is notified of each state that S3 could not copy to the replica."""
    return bool(team.replica and team.notify and Event.REPLICA_FAILED in team.notify.events)


def replicate(store: StateStore, team: Team, replica: Replica) -> None:
    """Let S3 copy each new version, with its metadata, tags and retention, and each delete marker.

    Without the delete markers a deleted state would come back. S3 never copies the removal of a version, so
    that a released lock stays in the replica: `holdfast recover` removes it.
    """
    there = replace(team, region=replica.region)

    def destination(key: str) -> s3.CfnBucket.ReplicationDestinationProperty:
        # Only with these metrics, which cost money, S3 notifies of failed copies. What fails for states fails
        # for the other folders.
        measured = key == keys.STATES and reports_failed_copies(team)
        return s3.CfnBucket.ReplicationDestinationProperty(
            bucket=_bucket_arn(there),
            encryption_configuration=s3.CfnBucket.EncryptionConfigurationProperty(
                replica_kms_key_id=f"arn:{Aws.PARTITION}:kms:{there.region}:{there.account}:{_alias(there)}"
            )
            if store.keys
            else None,
            metrics=s3.CfnBucket.MetricsProperty(status="Enabled") if measured else None,
        )

    rules = [
        s3.CfnBucket.ReplicationRuleProperty(
            id=keys.folder(key).removesuffix("/"),
            priority=priority,
            status="Enabled",
            filter=s3.CfnBucket.ReplicationRuleFilterProperty(prefix=keys.folder(key)),
            delete_marker_replication=s3.CfnBucket.DeleteMarkerReplicationProperty(status="Enabled"),
            source_selection_criteria=s3.CfnBucket.SourceSelectionCriteriaProperty(
                sse_kms_encrypted_objects=s3.CfnBucket.SseKmsEncryptedObjectsProperty(status="Enabled")
            )
            if store.keys
            else None,
            destination=destination(key),
        )
        for priority, key in enumerate(_COPIED)
    ]
    bucket = cast("s3.CfnBucket", store.bucket.node.default_child)
    bucket.replication_configuration = s3.CfnBucket.ReplicationConfigurationProperty(
        role=_role_arn(team), rules=rules
    )


def _permissions(source: Team, replica: Team, key: kms.IKey | None) -> Sequence[iam.PolicyStatement]:
    """Return what S3 needs to copy objects with Object Lock and tags.

    See https://docs.aws.amazon.com/AmazonS3/latest/userguide/setting-repl-config-perm-overview.html and, for
    retention, https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock-managing.html
    """
    # The name of a deleted bucket is free for other accounts.
    ours = {"StringEquals": {"s3:ResourceAccount": source.account}}
    here, there = _bucket_arn(source), _bucket_arn(replica)
    statements = [
        iam.PolicyStatement(
            sid="Source",
            actions=["s3:GetReplicationConfiguration", "s3:ListBucket"],
            resources=[here],
            conditions=ours,
        ),
        iam.PolicyStatement(
            sid="Read",
            actions=[
                "s3:GetObjectVersionForReplication",
                "s3:GetObjectVersionAcl",
                "s3:GetObjectVersionTagging",
                "s3:GetObjectRetention",
                "s3:GetObjectLegalHold",
            ],
            resources=[f"{here}/*"],
            conditions=ours,
        ),
        iam.PolicyStatement(
            sid="Copy",
            actions=["s3:ReplicateObject", "s3:ReplicateDelete", "s3:ReplicateTags"],
            resources=[f"{there}/*"],
            conditions=ours,
        ),
    ]
    if key:
        encrypt = ["kms:Encrypt", "kms:GenerateDataKey"]
        statements.append(
            iam.PolicyStatement(
                sid="Encrypt",
                actions=encrypt,
                resources=[key.key_arn],
                conditions=by_s3(str(replica.region), there),
            )
        )
    if source.kms_keys:
        # The ID of the stack's own key is not known here: the role is older. It has no statement in the key's
        # policy, because KMS stores the unique ID of a role there, which a new role does not have.
        keys = [_own_keys(source) if name == "kms" else name for name in source.kms_keys]
        statements.append(
            iam.PolicyStatement(
                sid="Decrypt",
                actions=["kms:Decrypt"],
                resources=keys,
                conditions=by_s3(str(source.region), here),
            )
        )
    return statements


def _own_keys(team: Team) -> str:
    return f"arn:{Aws.PARTITION}:kms:{team.region}:{team.account}:key/*"


def _refuse_to_others(bucket: s3.IBucket, role_arn: str) -> Sequence[iam.PolicyStatement]:
    """Return statements that let S3 alone write to the replica and change what is there.

    A tag would let the lifecycle rule of locks remove a version, and another encryption could lose it.
    """
    return [
        iam.PolicyStatement(
            sid=sid,
            effect=iam.Effect.DENY,
            principals=[iam.StarPrincipal()],
            actions=[f"s3:{action}" for action in actions],
            resources=[bucket.arn_for_objects("*")],
            conditions={"StringNotEquals": {"aws:PrincipalArn": role_arn}},
        )
        for sid, actions in {
            "RefuseWritesButReplication": ("PutObject", "DeleteObject", "DeleteObjectVersion"),
            "RefuseToTag": ("PutObjectTagging", "PutObjectVersionTagging"),
            "RefuseToChangeEncryption": ("UpdateObjectEncryption",),
            "RefuseRetention": ("PutObjectRetention",),
            "RefuseToBypassGovernance": ("BypassGovernanceRetention",),
        }.items()
    ]


def _bucket_arn(team: Team) -> str:
    return f"arn:{Aws.PARTITION}:s3:::{bucket_name(team)}"


def _role_arn(source: Team) -> str:
    role = names.replication_role(source.name, str(source.region))
    return f"arn:{Aws.PARTITION}:iam::{source.account}:role/{role}"


def _alias(team: Team) -> str:
    """Return the name by which the team's stack knows the key of the other region."""
    return f"alias/holdfast-{team.name}-replica"
