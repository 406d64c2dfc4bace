"""The schedule of the function `watch`, and what only this function may read."""

from typing import Final

from aws_cdk import aws_events as events
from aws_cdk import aws_s3 as s3
from constructs import Construct

from holdfast.policy import VARIABLES
from holdfast_cdk.bucket_policy import deny_to_others
from holdfast_cdk.keep_warm import let_invoke
from holdfast_cdk.lambdas import Functions

# At a fixed minute, so that each hour has exactly one look. One look of the day sends every finding.
SCHEDULE: Final = "cron(30 * * * ? *)"


class Watch(Construct):
    """A rule of EventBridge, as `KeepWarm` has one."""

    def __init__(
        self, scope: Construct, construct_id: str, functions: Functions, bucket: s3.IBucket, api_address: str
    ) -> None:
        super().__init__(scope, construct_id)
        functions.made["watch"].add_environment(VARIABLES["probed_api"], api_address)
        function = functions.live["watch"]
        rule = events.CfnRule(
            self,
            "Rule",
            description="Checks a team of Holdfast every hour",
            schedule_expression=SCHEDULE,
            targets=[events.CfnRule.TargetProperty(id="Watch", arn=function.function_arn)],
        )
        let_invoke(self, "Permission", rule, function)
        bucket.add_to_resource_policy(deny_to_others(bucket, functions.roles["watch"].role_arn))
