"""A team's buckets for states, for access logs and for uploads, and the KMS key of the states.

All but the bucket for uploads are kept when the stack is deleted.
"""

from typing import Any, cast

from aws_cdk import Acknowledgment, Aws, CfnResource, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from holdfast import team as names
from holdfast_cdk import keys
from holdfast_cdk.bucket_policy import (
    deny_addresses_from_elsewhere,
    deny_old_signatures,
    deny_old_tls,
    deny_statements,
)
from holdfast_cdk.key_policy import key_policy
from holdfast_cdk.notify_settings import AuditArchive
from holdfast_cdk.team_settings import History, Retention, Team


class StateStore(Construct):
    """The state store of one team.

    A bucket's name and Object Lock can only be chosen when it is created. Object Lock is enabled even without
    retention, so that a team may enable retention later.

    Attributes:
        bucket: named after team, account and region. The fixed name is a safeguard: if a stack is created
            again beside a kept bucket, the deployment fails. With a new name the stack would start with an
            empty bucket, and Terraform would create everything a second time.
        key_arns: the KMS keys of the objects: the bucket's key, and those before and after it.
    """

    def __init__(self, scope: Construct, construct_id: str, team: Team) -> None:
        super().__init__(scope, construct_id)
        self.keys = {
            name: state_key(self, team)
            if name == "kms"
            else kms.Key.from_key_arn(self, name.rpartition("/")[2], name)
            for name in team.kms_keys
        }
        self.key = self.keys.get(team.key)
        self.key_arns = [key.key_arn for key in self.keys.values()]
        logs_bucket = self._access_logs_bucket(team)
        # The logical ID never changes: a new stack imports a kept resource by it (`removing.md`), and
        # CloudFormation replaces a resource whose logical ID changes.
        self.bucket = private_bucket(
            self,
            "Bucket",
            "StateBucket",
            key=self.key,
            bucket_name=bucket_name(team),
            versioned=True,
            object_lock_enabled=True,
            object_lock_default_retention=_default_retention(team.retention),
            lifecycle_rules=lifecycle(team.history),
            server_access_logs_bucket=logs_bucket,
            server_access_logs_prefix=(team.access_logs.prefix or None) if team.access_logs else None,
            # Kept, unless the stack's first deployment fails: the next deployment then needs the name.
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        if team.access_logs is not None:
            Validations.of(self.bucket).acknowledge(
                Acknowledgment(
                    id="@aws-cdk/aws-s3:accessLogsPolicyNotAdded",
                    reason="The bucket for the access logs belongs to the team, and so does its policy; "
                    "settings.md says what the policy must allow.",
                )
            )
        for statement in deny_statements(self.bucket, self.key_arns, team):
            self.bucket.add_to_resource_policy(statement)

    def _access_logs_bucket(self, team: Team) -> s3.IBucket:
        """Return the team's own bucket for access logs, or create one."""
        if team.access_logs is not None:
            return s3.Bucket.from_bucket_name(self, "TeamsAccessLogs", team.access_logs.bucket)
        # S3 delivers logs neither to a bucket with Object Lock nor to a bucket with a KMS key. The name is
        # CloudFormation's: a name like the state bucket's would be too long for S3.
        return private_bucket(
            self,
            "AccessLogs",
            "AccessLogsBucket",
            lifecycle_rules=[s3.LifecycleRule(id="logs", expiration=Duration.days(team.log_retention))],
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )


class Staging(Construct):
    """The staging bucket of one team, to which a large state is uploaded before it is committed.

    Clients upload with presigned addresses. The commit of an upload writes the state and deletes the upload;
    the lifecycle rule deletes uploads that were not committed.

    Attributes:
        bucket: named by CloudFormation: a name like the state bucket's would be too long for S3.
    """

    def __init__(self, scope: Construct, construct_id: str, key: kms.IKey | None, team: Team) -> None:
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
            # Not kept, unlike the stack's other buckets: it has no state's only copy. S3 deletes no bucket
            # with objects, so an upload that was not committed stops the deletion of the stack.
            removal_policy=RemovalPolicy.DESTROY,
        )
        for statement in (
            deny_old_signatures(self.bucket),
            *deny_addresses_from_elsewhere(self.bucket, team),
        ):
            self.bucket.add_to_resource_policy(statement)
        Validations.of(self.bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason="The audit trail has every upload and its commit. The objects expire after a day.",
            )
        )


def state_key(scope: Construct, team: Team) -> kms.IKey:
    """Create a stack's own key for a team's states."""
    description = f"Holdfast: encrypts the states of team {team.name}"
    # Without the key the whole history is lost. The key also stays if the deployment that creates it is
    # rolled back, unlike the buckets: a team that had `key = "s3"` may have written states with it.
    kept = RemovalPolicy.RETAIN
    key = kms.Key(
        scope,
        "Key",
        description=description,
        enable_key_rotation=True,
        removal_policy=kept,
        policy=key_policy(Stack.of(scope), team.key_administrators) if team.key_administrators else None,
    )
    fix_logical_id(key, "StateKey")
    return key


def audit_archive(scope: Construct, settings: AuditArchive) -> s3.Bucket:
    """Create the bucket of the audit trail's archive, which stays when the stack is deleted.

    It has S3's own keys, because nobody can delete those. Its name is CloudFormation's, so a new stack
    creates another archive beside it.
    """
    one_day = Duration.days(1)
    bucket = private_bucket(
        scope,
        "AuditArchive",
        "AuditArchive",
        versioned=True,
        object_lock_enabled=True,
        # With governance, administrators could remove what they did.
        object_lock_default_retention=s3.ObjectLockRetention.compliance(Duration.days(settings.days)),
        lifecycle_rules=[
            s3.LifecycleRule(
                id="events",
                expiration=Duration.days(settings.days),
                noncurrent_version_expiration=one_day,
                abort_incomplete_multipart_upload_after=one_day,
            ),
            s3.LifecycleRule(id="markers-with-nothing-beneath", expired_object_delete_marker=True),
        ],
        removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    )
    Validations.of(bucket).acknowledge(
        Acknowledgment(
            id="AwsSolutions::AwsSolutions-S1",
            reason="Only the audit function writes to this bucket, and nobody can replace the objects that "
            "it wrote.",
        )
    )
    return bucket


def bucket_name(team: Team) -> str:
    """Return the name of a team's state bucket."""
    return names.bucket_name(team.name, team.account or Aws.ACCOUNT_ID, team.region or Aws.REGION)


def _default_retention(retention: Retention | None) -> s3.ObjectLockRetention | None:
    if retention is None or not retention.bucket_default:
        return None
    days = Duration.days(retention.days)
    if retention.mode == "governance":
        return s3.ObjectLockRetention.governance(days)
    return s3.ObjectLockRetention.compliance(days)


def lifecycle(history: History | None) -> list[s3.LifecycleRule]:
    """Return the lifecycle rules of a state bucket."""
    one_day = Duration.days(1)
    rules = [
        # For versions that remain if a release cannot remove the lock's own version.
        s3.LifecycleRule(id="locks", tag_filters={"holdfast": "lock"}, noncurrent_version_expiration=one_day),
        # A separate rule, because S3 accepts this setting neither with a tag nor with an expiry.
        s3.LifecycleRule(id="markers-with-nothing-beneath", expired_object_delete_marker=True),
        s3.LifecycleRule(id="unfinished-uploads", abort_incomplete_multipart_upload_after=one_day),
        # The longest session lasts half a day, so removed sessions have ended; the audit trail names callers.
        # An interrupted `holdfast doctor` leaves probes, which S3 removes within four days (it rounds up).
        *(
            s3.LifecycleRule(
                id=name,
                prefix=keys.folder(key),
                expiration=one_day,
                noncurrent_version_expiration=one_day,
            )
            for name, key in (("sessions", keys.SESSIONS), ("probes", keys.PROBES))
        ),
        # Old tags of a workspace, and deleted workspaces, can be looked up for this long.
        s3.LifecycleRule(
            id="workspaces",
            prefix=keys.folder(keys.WORKSPACES),
            noncurrent_version_expiration=Duration.days(30),
        ),
    ]
    if history is not None:
        rules.append(
            # This rule also removes versions without a tag: locks of other programs, and delete markers.
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
    """Create an encrypted, private bucket that refuses requests without TLS.

    Args:
        settings: further properties of `s3.Bucket`.
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
    """Set the logical ID of a construct's resource; otherwise the ID depends on the construct's place."""
    cast("CfnResource", construct.node.default_child).override_logical_id(logical_id)
