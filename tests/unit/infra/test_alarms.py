"""Alarms in the templates. The local AWS evaluates no expression and no missing data."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from holdfast import watching
from holdfast_cdk.alarms import alarms_of
from holdfast_cdk.api import ROUTES
from holdfast_cdk.config import AWS
from holdfast_cdk.functions import FUNCTIONS
from tests.support.cost_document import alarms_price
from tests.support.every_setting import EVERY_SETTING
from tests.support.pages import page, text
from tests.unit.infra.conftest import Synthesize, Synthesized

# Only `watch` has a function that is neither behind the API nor the audit function.
WITH_WATCH = {"functions", "oldest-lock", "attention", "probe"}
NAMES = {"api", "slow", "audit"} | WITH_WATCH
AUDITED = [spec.name for spec in FUNCTIONS if spec.audited]


def alarms(stack: Synthesized) -> dict[str, Mapping[str, Any]]:
    """The alarms by the end of their name."""
    found = stack.resolve(stack.resources("AWS::CloudWatch::Alarm"))
    properties = [alarm["Properties"] for alarm in found.values() if "AlarmName" in alarm["Properties"]]
    return {one["AlarmName"].removeprefix("Holdfast-ops-"): one for one in properties}


def members(alarm: Mapping[str, Any]) -> set[tuple[str, ...]]:
    """The metrics in an alarm on an expression: the name, and the values of its dimensions."""
    metrics = [one["MetricStat"]["Metric"] for one in alarm["Metrics"] if "MetricStat" in one]
    return {(metric["MetricName"], *(part["Value"] for part in metric["Dimensions"])) for metric in metrics}


def test_each_alarm_tells_the_topic_when_it_rings_and_when_that_is_over(settled: Synthesized) -> None:
    found = alarms(settled)
    topic = ["arn:aws:sns:eu-central-1:123456789012:operations"]

    assert found.keys() == NAMES
    assert {(*alarm["AlarmActions"], *alarm["OKActions"]) for alarm in found.values()} == {(*topic, *topic)}
    assert {alarm["ComparisonOperator"] for alarm in found.values()} == {"GreaterThanThreshold"}


def test_without_watch_there_is_no_alarm_on_what_only_it_writes(synthesize: Synthesize) -> None:
    stack = synthesize([replace(EVERY_SETTING, watch=False)], AWS)["Holdfast-ops"]

    assert alarms(stack).keys() == NAMES - WITH_WATCH


def test_p99_of_a_few_requests_is_left_out_because_it_is_the_slowest_of_them(settled: Synthesized) -> None:
    slow = alarms(settled)["slow"]

    assert (slow["ExtendedStatistic"], slow["EvaluateLowSampleCountPercentile"]) == ("p99", "ignore")
    assert slow["Threshold"] == 5000
    assert slow["Dimensions"] == [{"Name": "FunctionName", "Value": "<FunctionsBackend252E6138>"}]


def test_a_dead_watch_function_rings_once_and_a_probe_that_nobody_enabled_does_not(
    settled: Synthesized,
) -> None:
    found = alarms(settled)

    assert {name: found[name]["TreatMissingData"] for name in WITH_WATCH} == {
        "functions": "notBreaching",
        "oldest-lock": "ignore",
        "attention": "breaching",
        "probe": "notBreaching",
    }
    # A run each hour may come a minute late.
    assert found["attention"]["Period"] == 7200


def test_the_alarms_read_what_the_watch_function_writes(settled: Synthesized) -> None:
    found = alarms(settled)

    assert {name: found[name]["MetricName"] for name in ("oldest-lock", "attention", "probe")} == {
        "oldest-lock": watching.Metric.OLDEST_LOCK,
        "attention": watching.Metric.ATTENTION,
        "probe": watching.Metric.PROBE_FAILED,
    }
    assert found["oldest-lock"]["Threshold"] == 2 * 86400
    _, function = settled.function("watch.handler.handle")
    assert function["Environment"]["Variables"]["HOLDFAST_OLD_LOCK"] == str(2 * 86400)
    assert found["oldest-lock"]["Dimensions"] == [{"Name": watching.DIMENSION, "Value": "ops"}]


def test_the_audit_alarm_has_each_delivery_and_the_function_that_gets_them(settled: Synthesized) -> None:
    audit = alarms(settled)["audit"]
    function, _ = settled.function("audit_trail.handler.handle")
    filters = settled.resources("AWS::Logs::SubscriptionFilter").values()

    assert members(audit) == {
        *((name, f"<{function}>") for name in ("Errors", "Throttles")),
        *(("DeliveryErrors", "Lambda", "audit", f"/holdfast/ops/{name}") for name in AUDITED),
    }
    assert {one["Properties"]["FilterName"] for one in filters} == {"audit"}
    # A metric without data must not hide the others.
    [expression] = [one["Expression"] for one in audit["Metrics"] if "Expression" in one]
    assert expression == f"SUM([{', '.join(f'FILL(m{number}, 0)' for number in range(2 + len(AUDITED)))}])"


def test_each_function_is_behind_the_api_or_in_an_alarm() -> None:
    named = {spec.name: spec.name for spec in FUNCTIONS}
    behind = {"authorizer", *(route.function for route in ROUTES)}

    watched = {
        metric.dimensions["FunctionName"]
        for alarm in alarms_of(EVERY_SETTING, "", named)
        for metric in alarm.metrics
        if metric.name == "Throttles"
    }

    assert watched == named.keys() - behind


def test_alarms_cost_at_most_two_and_a_half_dollars_and_are_at_most_eight(settled: Synthesized) -> None:
    found = alarms(settled)
    metrics = sum(len(members(alarm)) if "Metrics" in alarm else 1 for alarm in found.values())

    assert alarms_price(EVERY_SETTING) == pytest.approx(0.10 * metrics + len(watching.Metric) * 0.30)
    assert alarms_price(EVERY_SETTING) <= 2.50
    assert alarms_price(replace(EVERY_SETTING, alarms=None)) == 0
    # With the alarm of `notify`.
    assert len(settled.resources("AWS::CloudWatch::Alarm")) <= 8


def test_the_local_aws_gets_the_alarms_on_one_metric(on_this_machine: Synthesized) -> None:
    assert alarms(on_this_machine).keys() == NAMES - {"audit", "functions"}


def test_the_document_has_each_alarm_with_its_price() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| .* \| ([0-9.]+) \|$", text(page("watching.md")), re.MULTILINE)
    named = {spec.name: spec.name for spec in FUNCTIONS}
    expected = alarms_of(EVERY_SETTING, "", named)

    assert [name for name, _ in rows] == [alarm.name for alarm in expected]
    assert [float(dollars) for _, dollars in rows] == [
        pytest.approx(sum(0.4 if one.namespace == watching.NAMESPACE else 0.1 for one in alarm.metrics))
        for alarm in expected
    ]
