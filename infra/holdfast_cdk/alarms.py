"""The alarms of a team, at most eight: what they watch, and when they ring.

CloudWatch bills each metric of an alarm. So no alarm has the errors and throttles of a function behind the
API, which are 5xx of the API. And an alarm has the throttles of the audit function, not `DeliveryThrottling`
of each log group: every group delivers to this function.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from holdfast import audit, watching
from holdfast import team as names
from holdfast_cdk.api import ROUTES, Api
from holdfast_cdk.config import Target
from holdfast_cdk.functions import FUNCTIONS
from holdfast_cdk.lambdas import SUBSCRIPTION, Functions
from holdfast_cdk.team_settings import Team

_MINUTES: Final = 60
_HOUR: Final = 60 * _MINUTES


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of CloudWatch."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]

    def of_cdk(self, statistic: str, seconds: int) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=self.namespace,
            metric_name=self.name,
            dimensions_map=self.dimensions,
            statistic=statistic,
            period=Duration.seconds(seconds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSpec:
    """An alarm. It rings if the statistic, or the sum of several metrics, is above `above` in a period.

    Attributes:
        name: follows the stack's name in the alarm's.
        says: the alarm's description, which is in its message.
        missing: CloudWatch's treatment of a period without data.
    """

    name: str
    says: str
    metrics: tuple[Metric, ...]
    above: int
    seconds: int
    statistic: str = "Sum"
    missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING


def alarm_name(team: str, alarm: str) -> str:
    return f"{names.stack_name(team)}-{alarm}"


def alarms_of(team: Team, api_id: str, named: Mapping[str, str]) -> tuple[AlarmSpec, ...]:
    """Return the alarms of a team that has the setting.

    Args:
        named: the function's name -> the name that Lambda gives it, for each function of the team.
    """
    if team.alarms is None:
        return ()
    behind_the_api = {"authorizer", *(route.function for route in ROUTES)}
    others = [name for name in named if name not in behind_the_api and name != "audit_trail"]
    alarms = [
        AlarmSpec(
            name="api",
            says="The API responded to at least 3 requests with 5xx within 15 minutes.",
            metrics=(Metric("AWS/ApiGateway", "5xx", {"ApiId": api_id}),),
            above=2,
            seconds=15 * _MINUTES,
        ),
        AlarmSpec(
            name="slow",
            says=(
                "In an hour with at least 1,000 requests, the slowest 1 % of the requests to the backend "
                f"took more than {team.alarms.slow} ms each."
            ),
            metrics=(Metric("AWS/Lambda", "Duration", {"FunctionName": named["backend"]}),),
            above=team.alarms.slow,
            seconds=_HOUR,
            statistic="p99",
        ),
        AlarmSpec(
            name="audit",
            says="Events may have reached the audit trail late, or not at all.",
            metrics=(
                *_failures(named["audit_trail"]),
                *(_delivery_errors(team, spec.name) for spec in FUNCTIONS if spec.audited),
            ),
            above=0,
            seconds=5 * _MINUTES,
        ),
    ]
    if others:
        alarms.append(
            AlarmSpec(
                name="functions",
                says="A function that does not serve the API failed or was throttled.",
                metrics=tuple(metric for name in others for metric in _failures(named[name])),
                above=0,
                seconds=_HOUR,
            )
        )
    if team.watch:
        alarms += _of_watch(team, team.alarms.oldest_lock, team.alarms.oldest_lock_seconds)
    return tuple(alarms)


def _of_watch(team: Team, oldest_lock: str, seconds: int) -> list[AlarmSpec]:
    """Return the alarms on what the watch function writes each hour."""
    return [
        AlarmSpec(
            name="oldest-lock",
            says=f"A lock has been held for more than {oldest_lock}.",
            metrics=(_watched(team, watching.Metric.OLDEST_LOCK),),
            above=seconds,
            seconds=_HOUR,
            statistic="Maximum",
            # Without data nobody knows whether the lock was released.
            missing=cloudwatch.TreatMissingData.IGNORE,
        ),
        AlarmSpec(
            name="attention",
            says="The watch function found a problem that an operator should solve, or wrote no metrics for "
            "two hours.",
            metrics=(_watched(team, watching.Metric.ATTENTION),),
            above=0,
            # Two hours have data even if one run of each hour is a minute late.
            seconds=2 * _HOUR,
            statistic="Maximum",
            missing=cloudwatch.TreatMissingData.BREACHING,
        ),
        AlarmSpec(
            name="probe",
            says="The hourly test of the API by the watch function failed.",
            metrics=(_watched(team, watching.Metric.PROBE_FAILED),),
            above=0,
            seconds=_HOUR,
            statistic="Maximum",
            # A probe that was not enabled writes nothing. If the function is dead, "attention" rings.
        ),
    ]


def _delivery_errors(team: Team, function: str) -> Metric:
    """Return the metric of failed deliveries from a function's log to the audit function."""
    group = audit.function_log_group(team.name, function)
    dimensions = {"LogGroupName": group, "DestinationType": "Lambda", "FilterName": SUBSCRIPTION}
    return Metric("AWS/Logs", "DeliveryErrors", dimensions)


def _failures(function: str) -> tuple[Metric, ...]:
    return tuple(Metric("AWS/Lambda", name, {"FunctionName": function}) for name in ("Errors", "Throttles"))


def _watched(team: Team, metric: watching.Metric) -> Metric:
    return Metric(watching.NAMESPACE, metric.value, {watching.DIMENSION: team.name})


class Alarms(Construct):
    """The alarms of a team; each tells the topic when it rings and when that is over."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        team: Team,
        topic: str,
        target: Target,
        functions: Functions,
        api: Api,
    ) -> None:
        super().__init__(scope, construct_id)
        publish = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", topic))
        named = {name: function.function_name for name, function in functions.made.items()}
        for spec in alarms_of(team, api.api_id, named):
            if len(spec.metrics) > 1 and not target.expressions:
                continue
            percentile = spec.statistic.startswith("p")
            alarm = cloudwatch.Alarm(
                self,
                spec.name.title().replace("-", ""),
                alarm_name=alarm_name(team.name, spec.name),
                alarm_description=f"{spec.says} What to do: docs/operate/watching.md",
                metric=_together(spec),
                threshold=spec.above,
                evaluation_periods=1,
                comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
                treat_missing_data=spec.missing,
                # With few requests p99 is the slowest one.
                evaluate_low_sample_count_percentile="ignore" if percentile else None,
            )
            alarm.add_alarm_action(publish)
            alarm.add_ok_action(publish)


def _together(spec: AlarmSpec) -> cloudwatch.IMetric:
    """Return the metric of an alarm, or the sum of several; a metric without data counts as 0."""
    metrics = [metric.of_cdk(spec.statistic, spec.seconds) for metric in spec.metrics]
    if len(metrics) == 1:
        return metrics[0]
    using: dict[str, cloudwatch.IMetric] = {f"m{number}": metric for number, metric in enumerate(metrics)}
    return cloudwatch.MathExpression(
        expression=f"SUM([{', '.join(f'FILL({name}, 0)' for name in using)}])",
        using_metrics=using,
        period=Duration.seconds(spec.seconds),
    )
