"""The dashboard that the teams of an account and region share, in a stack of its own.

It refers to alarms and log groups by their names. A reference to a team's stack would be an export, without
which that stack could not change its alarms.
"""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration, Environment, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from holdfast import audit
from holdfast.team import SHARED_DASHBOARD as NAME
from infra.alarms import Metric, alarm_name, alarms_of, delivery
from infra.config import Target, TeamConfig
from infra.functions import FUNCTIONS
from infra.shared_stacks import shared_stacks

_WIDTH: Final = 8  # of 24
_PERIOD: Final = 300


class DashboardStack(Stack):
    """The dashboard of teams with alarms, at least one, all with the same account and region."""

    def __init__(
        self, scope: Construct, construct_id: str, teams: Sequence[TeamConfig], target: Target
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=NAME,
            description="Holdfast: the dashboard of the teams with alarms",
            env=Environment(account=teams[0].account, region=teams[0].region),
            # This stack has no tag `holdfast:team`, by which the command finds a team's stack.
            tags=dict(sorted(set.intersection(*(set(team.tags.items()) for team in teams)))),
            termination_protection=target.termination_protection,
        )
        dashboard = cloudwatch.Dashboard(
            self,
            "Dashboard",
            # An account has one dashboard of a name, whatever its region.
            dashboard_name=f"Holdfast-{self.region}",
            start="-P7D",
        )
        for team in teams:
            dashboard.add_widgets(cloudwatch.TextWidget(markdown=f"## {team.name}", width=24, height=1))
            dashboard.add_widgets(*self._graphs(team, target))

    def _graphs(self, team: TeamConfig, target: Target) -> list[cloudwatch.IWidget]:
        requests = Metric(
            "AWS/Logs", "IncomingLogEvents", {"LogGroupName": audit.access_log_group(team.name)}
        )
        throttled = [delivery(team, spec.name, "DeliveryThrottling") for spec in FUNCTIONS if spec.audited]
        graphs: list[cloudwatch.IWidget] = [
            _graph("Requests, by the lines of the access log", [requests]),
            _graph("Throttled deliveries to the audit trail", throttled),
        ]
        named = {spec.name: spec.name for spec in FUNCTIONS if team.has(spec)}
        for spec in alarms_of(team, "", named):
            if len(spec.metrics) == 1 or target.expressions:
                name = alarm_name(team.name, spec.name)
                alarm = cloudwatch.Alarm.from_alarm_name(self, name, name)
                graphs.append(cloudwatch.AlarmWidget(alarm=alarm, title=spec.name, width=_WIDTH))
        return graphs


def _graph(title: str, metrics: Sequence[Metric]) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=[metric.of_cdk("Sum", _PERIOD) for metric in metrics],
        period=Duration.seconds(_PERIOD),
        width=_WIDTH,
    )


def dashboards(scope: Construct, teams: Sequence[TeamConfig], target: Target) -> dict[str, DashboardStack]:
    """Create a dashboard for each account and region that has teams with `alarms`.

    Returns:
        Team's name -> the stack of its dashboard, for these teams.
    """
    shown = [team for team in map(target.place, teams) if team.alarms]
    return shared_stacks(
        NAME, shown, lambda construct_id, together: DashboardStack(scope, construct_id, together, target)
    )
