"""The schedule that keeps a process of some functions running, so that fewer commands wait for a start."""

import json
from typing import Final

from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from holdfast.team import WARM_UP
from holdfast_cdk.functions import FUNCTIONS
from holdfast_cdk.lambdas import Functions

MINUTES: Final = 5
"""Minutes between two warm-ups. AWS does not document for how long it keeps an idle process."""


class KeepWarm(Construct):
    """A rule of EventBridge. Unlike a schedule of EventBridge Scheduler it needs no role."""

    def __init__(self, scope: Construct, construct_id: str, functions: Functions) -> None:
        super().__init__(scope, construct_id)
        kept = [spec for spec in FUNCTIONS if spec.kept_warm]
        rule = events.CfnRule(
            self,
            "Rule",
            description="Keeps a process of the authorizer and of the backend running",
            schedule_expression=f"rate({MINUTES} minutes)",
            targets=[
                events.CfnRule.TargetProperty(
                    id=spec.construct_id,
                    # The alias that the API invokes: a process belongs to one version.
                    arn=functions.live[spec.name].function_arn,
                    input=json.dumps(WARM_UP),
                    # The next warm-up is soon.
                    retry_policy=events.CfnRule.RetryPolicyProperty(maximum_retry_attempts=0),
                )
                for spec in kept
            ],
        )
        for spec in kept:
            let_invoke(self, spec.construct_id, rule, functions.live[spec.name])


def let_invoke(scope: Construct, construct_id: str, rule: events.CfnRule, function: lambda_.Alias) -> None:
    """Let a rule invoke a function."""
    # Without `source_account`: the rule's ARN contains the account, and AWS's pages contradict each other on
    # whether a rule's invocation has it.
    lambda_.CfnPermission(
        scope,
        construct_id,
        action="lambda:InvokeFunction",
        function_name=function.function_arn,
        principal="events.amazonaws.com",
        source_arn=rule.attr_arn,
    )
