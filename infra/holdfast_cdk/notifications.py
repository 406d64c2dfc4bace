"""Notify of what no function logs by itself: changed records, failed copies, and many refused sign-ins."""

from typing import Final, cast

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from holdfast import watching
from holdfast.audit import Event
from holdfast.names import STATES
from holdfast_cdk import keys
from holdfast_cdk.lambdas import Functions
from holdfast_cdk.replica import reports_failed_copies
from holdfast_cdk.state_store import StateStore, bucket_name
from holdfast_cdk.team_settings import Team

REFUSED: Final = 10
"""Refused sign-ins of a minute, of all sources together, at which the alarm rings."""
_QUIET_MINUTES: Final = 5
"""Minutes without so many, after which the alarm may ring again."""


def notify_audit_function(team: Team, store: StateStore, functions: Functions) -> None:
    """Have the bucket notify the audit function of what only the bucket knows.

    People change tokens and trust records with AWS credentials and without the API. With a replica and its
    topic, S3 also says which state it could not copy. It says the same of each lock that is released before
    it is copied: the suffix leaves locks out.
    """
    stack, audit_trail = Stack.of(store), functions.made["audit_trail"]
    audit_trail.add_permission(
        "ChangedRecords",
        principal=iam.ServicePrincipal("s3.amazonaws.com"),
        # By its name: the bucket itself comes after the permission.
        source_arn=stack.format_arn(service="s3", region="", account="", resource=bucket_name(team)),
        source_account=stack.account,
    )
    bucket = cast("s3.CfnBucket", store.bucket.node.default_child)
    # S3 tests whether it may call the function.
    bucket.node.add_dependency(audit_trail.node.find_child("ChangedRecords"))
    # By hand: the construct's own way is a function that may change the notifications of every bucket.
    told = [
        (f"s3:{kind}:*", {"prefix": keys.folder(key)})
        for key in (keys.TOKENS, keys.TRUST)
        for kind in ("ObjectCreated", "ObjectRemoved")
    ]
    if reports_failed_copies(team):
        told.append(
            ("s3:Replication:OperationFailedReplication", {"prefix": STATES.prefix, "suffix": STATES.suffix})
        )
    bucket.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
        lambda_configurations=[
            s3.CfnBucket.LambdaConfigurationProperty(
                event=event,
                function=audit_trail.function_arn,
                filter=s3.CfnBucket.NotificationFilterProperty(
                    s3_key=s3.CfnBucket.S3KeyFilterProperty(
                        rules=[
                            s3.CfnBucket.FilterRuleProperty(name=name, value=value)
                            for name, value in where.items()
                        ]
                    )
                ),
            )
            for event, where in told
        ]
    )


class RefusedSignIns(Construct):
    """The alarm on refused sign-ins, which notifies the topic of `notify`."""

    def __init__(
        self, scope: Construct, construct_id: str, team: Team, topic: str, functions: Functions
    ) -> None:
        super().__init__(scope, construct_id)
        # A dimension could only be a field of the event, and events do not name their team.
        metric = f"RefusedSignIns-{team.name}"
        logs.CfnMetricFilter(
            self,
            "RefusedSignIns",
            log_group_name=functions.audit.log_group_name,
            filter_pattern=f'{{ $.event = "{Event.SIGN_IN_REFUSED}" }}',
            metric_transformations=[
                logs.CfnMetricFilter.MetricTransformationProperty(
                    metric_namespace=watching.NAMESPACE, metric_name=metric, metric_value="1"
                )
            ],
        )
        cloudwatch.CfnAlarm(
            self,
            "ManyRefusedSignIns",
            alarm_description=f"Team {team.name}: at least {REFUSED} sign-ins were refused within a minute. "
            f"holdfast audit --team {team.name} --event {Event.SIGN_IN_REFUSED} shows them.",
            namespace=watching.NAMESPACE,
            metric_name=metric,
            statistic="Sum",
            period=60,
            # One minute is enough to ring, and the alarm ends after five quiet ones: at most one message in
            # five minutes.
            evaluation_periods=_QUIET_MINUTES,
            datapoints_to_alarm=1,
            threshold=REFUSED,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
            alarm_actions=[topic],
        )
