"""CloudTrail's record of reads and writes of tokens and trust, for the teams that enable it.

The records change with AWS credentials, not through the API, so no function can log the changes. An account
may have five trails in a region, and AWS does not raise this quota: its teams share a trail in its own stack.
"""

from collections.abc import Sequence
from typing import Any, cast

from aws_cdk import (
    Acknowledgment,
    ArnFormat,
    Aws,
    CfnOutput,
    Duration,
    Environment,
    RemovalPolicy,
    Stack,
    Validations,
)
from aws_cdk import aws_cloudtrail as cloudtrail
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from holdfast.team import SHARED_TRAIL as NAME
from infra import keys
from infra.config import Target, TeamConfig
from infra.shared_stacks import shared_stacks
from infra.state_store import bucket_name, private_bucket


class TokenTrailStack(Stack):
    """The trail of the teams of one account and region, and its bucket.

    Args:
        teams: the teams whose records it covers, at least one, all with the same account and region.
    """

    def __init__(
        self, scope: Construct, construct_id: str, teams: Sequence[TeamConfig], target: Target
    ) -> None:
        account, region = teams[0].account, teams[0].region
        super().__init__(
            scope,
            construct_id,
            stack_name=NAME,
            description="Holdfast: CloudTrail's record of who reads and writes tokens and trust",
            env=Environment(account=account, region=region),
            # This stack has no tag `holdfast:team`, by which the command finds a team's stack.
            tags=dict(sorted(set.intersection(*(set(team.tags.items()) for team in teams)))),
            termination_protection=target.termination_protection,
        )
        bucket = private_bucket(
            self,
            "Bucket",
            "TokenTrailBucket",
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="trail", expiration=Duration.days(max(team.audit_retention for team in teams))
                )
            ],
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        Validations.of(bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-S1",
                reason="CloudTrail alone writes to it, and its digests show what was changed afterwards.",
            )
        )
        trail_arn = self.format_arn(
            service="cloudtrail",
            resource="trail",
            resource_name=NAME,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        for statement in _delivery(bucket, trail_arn, self.account):
            bucket.add_to_resource_policy(statement)
        trail = cloudtrail.CfnTrail(
            self,
            "Trail",
            trail_name=NAME,
            is_logging=True,
            s3_bucket_name=bucket.bucket_name,
            enable_log_file_validation=True,
            is_multi_region_trail=False,
            include_global_service_events=False,
        )
        # In the form of the trail's API, in which people add them to a trail of their own.
        trail.add_property_override("AdvancedEventSelectors", [record_selector(teams)])
        # CloudTrail tests whether it may write to the bucket when the trail is created.
        trail.node.add_dependency(cast("s3.BucketPolicy", bucket.policy))
        CfnOutput(self, "TrailBucket", value=bucket.bucket_name, description="Holds what CloudTrail records")


def token_trails(scope: Construct, teams: Sequence[TeamConfig], target: Target) -> dict[str, TokenTrailStack]:
    """Create a trail for each account and region that has teams with `token_trail = true`.

    Returns:
        Team's name -> the stack of its trail, for these teams; empty if the target has no CloudTrail.
    """
    covered = [team for team in map(target.place, teams) if team.token_trail is True and target.cloudtrail]
    return shared_stacks(
        NAME, covered, lambda construct_id, together: TokenTrailStack(scope, construct_id, together, target)
    )


def record_selector(teams: Sequence[TeamConfig]) -> dict[str, Any]:
    """Return CloudTrail's advanced event selector for reads and writes of the teams' records.

    Args:
        teams: the teams, with account and region if they are known.
    """
    records = [
        f"arn:{Aws.PARTITION}:s3:::{bucket_name(team)}/{keys.folder(key)}"
        for team in teams
        for key in (keys.TOKENS, keys.TRUST)
    ]
    return {
        "Name": "Records of tokens and trust, read or written",
        # Without a field `readOnly` reads and writes are recorded.
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": ["AWS::S3::Object"]},
            {"Field": "resources.ARN", "StartsWith": records},
        ],
    }


def _delivery(bucket: s3.IBucket, trail_arn: str, account: str) -> list[iam.PolicyStatement]:
    """Return statements that let CloudTrail deliver only this trail (guide: "Amazon S3 bucket policy")."""
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
