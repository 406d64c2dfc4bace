"""The bucket that a large state is uploaded to before it is written."""

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.bucket_policy import deny_old_tls
from infra.state_store import fix_logical_id


class Staging(Construct):
    """The staging bucket of one team.

    Clients put states here by presigned addresses. The commit of an upload writes the state and deletes
    what was uploaded; the lifecycle rule deletes what nobody committed.

    Args:
        scope: the team's stack.
        construct_id: of the construct within the stack.
        key: encrypts every object, as in the state bucket; None for a team that leaves the keys to S3.

    Attributes:
        bucket: named by CloudFormation: a name like the state bucket's would be longer than S3 takes.
    """

    def __init__(self, scope: Construct, construct_id: str, key: kms.IKey | None) -> None:
        super().__init__(scope, construct_id)
        one_day = Duration.days(1)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
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
        for statement in deny_old_tls(self.bucket):
            self.bucket.add_to_resource_policy(statement)
        fix_logical_id(self.bucket, "StagingBucket")
