"""Alarms and a domain of a deployed team. Alarms on expressions are compared in the template alone."""

import json

from holdfast import watching
from local_aws.server import LocalAws
from tests.e2e.test_doctor import doctor
from tests.support.deployed import client
from tests.support.subscribed_queue import SubscribedQueue, subscribed
from tests.support.team import Team


def test_a_lock_that_is_held_for_too_long_reaches_the_topic(aws: LocalAws, teams: dict[str, Team]) -> None:
    cloudwatch = client(aws, "cloudwatch")
    name = f"Holdfast-{teams['watched'].name}-oldest-lock"
    [alarm] = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    topic = alarm["AlarmActions"][0]
    assert client(aws, "sns").create_topic(Name=topic.rpartition(":")[2])["TopicArn"] == topic

    def told(queue: SubscribedQueue, seconds: int) -> list[str]:
        datum = {"MetricName": watching.Metric.OLDEST_LOCK, "Value": seconds}
        cloudwatch.put_metric_data(Namespace=watching.NAMESPACE, MetricData=[datum])
        return [json.loads(one["Message"])["NewStateValue"] for one in queue.receive(seconds=1)]

    assert alarm["Dimensions"] == [{"Name": watching.DIMENSION, "Value": "watched"}]
    with subscribed(aws, topic, "operations") as queue:
        assert told(queue, 1700) != ["ALARM"]
        assert told(queue, 1900) == ["ALARM"]


def test_the_domain_leads_to_the_api_whose_own_address_is_off(aws: LocalAws, teams: dict[str, Team]) -> None:
    team, gateway = teams["watched"], client(aws, "apigatewayv2")
    [mapping] = gateway.get_api_mappings(DomainName="states.example.com")["Items"]
    api = mapping["ApiId"]
    assert f"/{api}/" in team.direct_address

    def found() -> dict[str, str]:
        return {one["check"]: one["level"] for one in doctor(team) if one["check"].startswith("domain.")}

    assert found() == {"domain.status": "ok", "domain.default_endpoint": "ok"}
    gateway.update_api(ApiId=api, DisableExecuteApiEndpoint=False)
    try:
        assert found() == {"domain.status": "ok", "domain.default_endpoint": "problem"}
    finally:
        gateway.update_api(ApiId=api, DisableExecuteApiEndpoint=True)
