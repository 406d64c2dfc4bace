"""CloudTrail's record of who reads and writes tokens and trust, for the teams that ask for it.

The records are changed with AWS credentials and not through the API, so that no function of ours sees it. An
account has five trails in a region, and no more on request: its teams share one, in a stack of its own.
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
from infra.state_store import bucket_name, private_bucket


class TokenTrailStack(Stack):
    """The trail of the teams of one account and region, and the bucket that CloudTrail writes it to.

    Args:
        teams: those whose records it covers, all with the same account and region; at least one.
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
            # Not the tag of a team's stack, which the command finds teams by.
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
        # As the trail's API has them, which is how a person adds them to a trail that is not ours.
        trail.add_property_override("AdvancedEventSelectors", [record_selector(teams)])
        # CloudTrail tries the bucket when the trail is made.
        trail.node.add_dependency(cast("s3.BucketPolicy", bucket.policy))
        CfnOutput(self, "TrailBucket", value=bucket.bucket_name, description="Holds what CloudTrail records")


def token_trails(scope: Construct, teams: Sequence[TeamConfig], target: Target) -> dict[str, TokenTrailStack]:
    """Make a trail for each account and region that has teams with `token_trail = true`.

    Returns:
        The stack of its trail for the name of each such team; nothing where the target has no CloudTrail.
    """
    sharing: dict[tuple[str | None, str | None], list[TeamConfig]] = {}
    for team in map(target.place, teams):
        if team.token_trail is True and target.cloudtrail:
            sharing.setdefault((team.account, team.region), []).append(team)
    trails = {}
    for (account, region), together in sharing.items():
        construct_id = NAME if len(sharing) == 1 else f"{NAME}-{account}-{region}"
        stack = TokenTrailStack(scope, construct_id, together, target)
        trails.update(dict.fromkeys([team.name for team in together], stack))
    return trails


def record_selector(teams: Sequence[TeamConfig]) -> dict[str, Any]:
    """Return the advanced event selector for the teams' records, read or written, as CloudTrail's API has it.

    Args:
        teams: each with its account and region, if they are known.
    """
    records = [
        f"arn:{Aws.PARTITION}:s3:::{bucket_name(team)}/{keys.folder(key)}"
        for team in teams
        for key in (keys.TOKENS, keys.TRUST)
    ]
    return {
        "Name": "Records of tokens and trust, read or written",
        # Without a field `readOnly` both are recorded.
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": ["AWS::S3::Object"]},
            {"Field": "resources.ARN", "StartsWith": records},
        ],
    }


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
