"""The buckets of a team: for its states, for their access log and for uploads; and the key of the first.

All but the one for uploads outlive the stack.
"""

from typing import Any, cast

from aws_cdk import Acknowledgment, Aws, CfnResource, Duration, RemovalPolicy, Validations
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from holdfast import team as names
from infra import keys
from infra.bucket_policy import deny_old_tls, deny_statements
from infra.config import History, Retention, TeamConfig


class StateStore(Construct):
    """The state store of one team.

    What can only be chosen when the bucket is made is chosen here, for good: its name and Object Lock.
    Object Lock is enabled even without retention, so that a team may ask for it later.

    Attributes:
        bucket: named after team, account and region. A name of its own is a safeguard: a stack that is
            re-created beside a kept bucket fails, where it would otherwise start with an empty history and
            let Terraform create everything a second time.
    """

    def __init__(self, scope: Construct, construct_id: str, team: TeamConfig) -> None:
        super().__init__(scope, construct_id)
        self.key = self._key(team) if team.key == "kms" else None
        logs_bucket = self._access_logs_bucket(team)
        # The logical ID never changes: a new stack imports a kept resource under it (`deploying.md`), and
        # a resource whose name changes is a new resource.
        self.bucket = private_bucket(
            self,
            "Bucket",
            "StateBucket",
            key=self.key,
            bucket_name=bucket_name(team),
            versioned=True,
            object_lock_enabled=True,
            object_lock_default_retention=_default_retention(team.retention),
            lifecycle_rules=_lifecycle(team.history),
            server_access_logs_bucket=logs_bucket,
            server_access_logs_prefix=(team.access_logs.prefix or None) if team.access_logs else None,
            # Kept, unless it is the stack's first deployment that fails: the next try then needs the name.
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        if team.access_logs is not None:
            Validations.of(self.bucket).acknowledge(
                Acknowledgment(
                    id="@aws-cdk/aws-s3:accessLogsPolicyNotAdded",
                    reason="The team's bucket has its own policy; settings.md says what it must allow.",
                )
            )
        for statement in deny_statements(self.bucket, self.key, team):
            self.bucket.add_to_resource_policy(statement)

    def _key(self, team: TeamConfig) -> kms.Key:
        description = f"Holdfast: encrypts the states of team {team.name}"
        # Without the key the whole history is lost.
        kept = RemovalPolicy.RETAIN
        key = kms.Key(self, "Key", description=description, enable_key_rotation=True, removal_policy=kept)
        fix_logical_id(key, "StateKey")
        return key

    def _access_logs_bucket(self, team: TeamConfig) -> s3.IBucket:
        """Return the team's bucket for access logs, or make one."""
        if team.access_logs is not None:
            return s3.Bucket.from_bucket_name(self, "TeamsAccessLogs", team.access_logs.bucket)
        # S3 delivers logs neither to a bucket with Object Lock nor to one with a key of KMS's own. The name
        # is CloudFormation's: one like the state bucket's would be longer than S3 takes.
        return private_bucket(
            self,
            "AccessLogs",
            "AccessLogsBucket",
            lifecycle_rules=[s3.LifecycleRule(id="logs", expiration=Duration.days(team.log_retention))],
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )


class Staging(Construct):
    """The staging bucket of one team, which a large state is uploaded to before it is written.

    Clients put states here by presigned addresses. The commit of an upload writes the state and deletes
    what was uploaded; the lifecycle rule deletes what nobody committed.

    Attributes:
        bucket: named by CloudFormation: a name like the state bucket's would be longer than S3 takes.
    """

    def __init__(self, scope: Construct, construct_id: str, key: kms.IKey | None) -> None:
        super().__init__(scope, construct_id)
        one_day = Duration.days(1)
        self.bucket = private_bucket(
            self,
            "Bucket",
            "StagingBucket",
            key=key,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="uploads", expiration=one_day, abort_incomplete_multipart_upload_after=one_day
                )
            ],
            # Not kept, unlike the stack's other buckets: no state is here alone. S3 deletes no bucket with
            # objects, so an upload that nobody committed stops the deletion of the stack.
            removal_policy=RemovalPolicy.DESTROY,
        )
        Validations.of(self.bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason="The audit trail has every upload and its commit, and nothing stays beyond a day.",
            )
        )


def bucket_name(team: TeamConfig) -> str:
    """Return the name of a team's state bucket."""
    return names.bucket_name(team.name, team.account or Aws.ACCOUNT_ID, team.region or Aws.REGION)


def _default_retention(retention: Retention | None) -> s3.ObjectLockRetention | None:
    if retention is None or not retention.bucket_default:
        return None
    days = Duration.days(retention.days)
    if retention.mode == "governance":
        return s3.ObjectLockRetention.governance(days)
    return s3.ObjectLockRetention.compliance(days)


def _lifecycle(history: History | None) -> list[s3.LifecycleRule]:
    one_day = Duration.days(1)
    rules = [
        # What a release leaves where it cannot remove the lock's own version.
        s3.LifecycleRule(id="locks", tag_filters={"holdfast": "lock"}, noncurrent_version_expiration=one_day),
        # A rule of its own: S3 takes it neither with a tag nor with an expiry.
        s3.LifecycleRule(id="markers-with-nothing-beneath", expired_object_delete_marker=True),
        s3.LifecycleRule(id="unfinished-uploads", abort_incomplete_multipart_upload_after=one_day),
        # The longest session is half a day: what goes has ended, and who had it stands in the audit trail.
        # Probes are what a doctor leaves that was stopped in the middle: gone within four days, as S3 counts.
        *(
            s3.LifecycleRule(
                id=name,
                prefix=keys.folder(key),
                expiration=one_day,
                noncurrent_version_expiration=one_day,
            )
            for name, key in (("sessions", keys.SESSIONS), ("probes", keys.PROBES))
        ),
        # Tags that a workspace had, and workspaces that were deleted, can be looked up for this long.
        s3.LifecycleRule(
            id="workspaces",
            prefix=keys.folder(keys.WORKSPACES),
            noncurrent_version_expiration=Duration.days(30),
        ),
    ]
    if history is not None:
        rules.append(
            # Also reaches what no rule for a tag does: locks of other programs, and delete markers.
            s3.LifecycleRule(
                id="history",
                prefix=keys.folder(keys.STATES),
                noncurrent_version_expiration=Duration.days(history.days),
                noncurrent_versions_to_retain=history.keep_versions,
            )
        )
    return rules


def private_bucket(
    scope: Construct, construct_id: str, logical_id: str, *, key: kms.IKey | None = None, **settings: Any
) -> s3.Bucket:
    """Make an encrypted bucket that is reached over TLS only and that nothing makes public.

    Args:
        settings: the other properties of `s3.Bucket`.
    """
    bucket = s3.Bucket(
        scope,
        construct_id,
        encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        encryption_key=key,
        bucket_key_enabled=True if key else None,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        **settings,
    )
    for statement in deny_old_tls(bucket):
        bucket.add_to_resource_policy(statement)
    fix_logical_id(bucket, logical_id)
    return bucket


def fix_logical_id(construct: Construct, logical_id: str) -> None:
    """Give a construct's resource a name in the template that does not depend on its place in the tree."""
    cast("CfnResource", construct.node.default_child).override_logical_id(logical_id)
