"""CloudTrail's log of who read and wrote the records of tokens and trust, for a team that asks for it."""

from typing import cast

from aws_cdk import Acknowledgment, ArnFormat, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_cloudtrail as cloudtrail
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra import keys
from infra.bucket_policy import deny_old_tls
from infra.config import TeamConfig
from infra.state_store import fix_logical_id


class TokenTrail(Construct):
    """A trail with nothing but the data events of some objects, and the bucket that CloudTrail writes it to.

    The records are changed with AWS credentials and not through the API, so that no function of ours sees it.

    Args:
        scope: the stack.
        construct_id: of this.
        team: whose it is.
        records: the bucket that has the records.
    """

    def __init__(self, scope: Construct, construct_id: str, team: TeamConfig, records: s3.IBucket) -> None:
        super().__init__(scope, construct_id)
        name = f"holdfast-{team.name}"
        bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[s3.LifecycleRule(id="trail", expiration=Duration.days(team.audit_retention))],
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        fix_logical_id(bucket, "TokenTrailBucket")
        Validations.of(bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason="CloudTrail alone writes to it, and its digests show what was changed afterwards.",
            )
        )
        trail_arn = Stack.of(self).format_arn(
            service="cloudtrail",
            resource="trail",
            resource_name=name,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        for statement in (*deny_old_tls(bucket), *_delivery(bucket, trail_arn, Stack.of(self).account)):
            bucket.add_to_resource_policy(statement)
        trail = cloudtrail.CfnTrail(
            self,
            "Trail",
            trail_name=name,
            is_logging=True,
            s3_bucket_name=bucket.bucket_name,
            enable_log_file_validation=True,
            is_multi_region_trail=False,
            include_global_service_events=False,
            advanced_event_selectors=[_selected(records)],
        )
        # CloudTrail tries the bucket when the trail is made.
        trail.node.add_dependency(cast("s3.BucketPolicy", bucket.policy))


def _selected(records: s3.IBucket) -> cloudtrail.CfnTrail.AdvancedEventSelectorProperty:
    field = cloudtrail.CfnTrail.AdvancedFieldSelectorProperty
    return cloudtrail.CfnTrail.AdvancedEventSelectorProperty(
        name="Records of tokens and trust, read or written",
        field_selectors=[
            field(field="eventCategory", equal_to=["Data"]),
            field(field="resources.type", equal_to=["AWS::S3::Object"]),
            field(
                field="resources.ARN",
                starts_with=[records.arn_for_objects(keys.folder(key)) for key in (keys.TOKENS, keys.TRUST)],
            ),
        ],
    )


def _delivery(bucket: s3.IBucket, trail_arn: str, account: str) -> list[iam.PolicyStatement]:
    """Allow CloudTrail to deliver this trail and no other (its guide, "Amazon S3 bucket policy")."""
    cloudtrail_itself = iam.ServicePrincipal("cloudtrail.amazonaws.com")
    this_trail = {"aws:SourceArn": trail_arn}
    return [
        iam.PolicyStatement(
            sid="CloudTrailLooksAtTheBucket",
            principals=[cloudtrail_itself],
            actions=["s3:GetBucketAcl"],
            resources=[bucket.bucket_arn],
            conditions={"StringEquals": this_trail},
        ),
        iam.PolicyStatement(
            sid="CloudTrailWrites",
            principals=[cloudtrail_itself],
            actions=["s3:PutObject"],
            resources=[bucket.arn_for_objects(f"AWSLogs/{account}/*")],
            conditions={"StringEquals": {**this_trail, "s3:x-amz-acl": "bucket-owner-full-control"}},
        ),
    ]
