"""Alarms and a domain of a deployed team. Alarms on expressions are compared in the template alone."""

import json
from typing import Any

from holdfast import watching
from local_aws.server import LocalAws
from tests.e2e.test_doctor import doctor
from tests.support.deployed import client
from tests.support.team import Team


def subscribed_queue(aws: LocalAws, topic: str) -> tuple[Any, str]:
    """Return a client and the address of a new queue that gets every message of a topic."""
    sns, sqs = client(aws, "sns"), client(aws, "sqs")
    name = topic.rpartition(":")[2]
    assert sns.create_topic(Name=name)["TopicArn"] == topic
    queue = sqs.create_queue(QueueName=f"{name}-read")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return sqs, queue


def test_a_lock_that_is_held_for_too_long_reaches_the_topic(aws: LocalAws, teams: dict[str, Team]) -> None:
    cloudwatch = client(aws, "cloudwatch")
    name = f"Holdfast-{teams['watched'].name}-oldest-lock"
    [alarm] = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    sqs, queue = subscribed_queue(aws, alarm["AlarmActions"][0])

    def told(seconds: int) -> list[str]:
        datum = {"MetricName": watching.OLDEST_LOCK, "Value": seconds}
        cloudwatch.put_metric_data(Namespace=watching.NAMESPACE, MetricData=[datum])
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        return [
            json.loads(json.loads(message["Body"])["Message"])["NewStateValue"]
            for message in found.get("Messages", [])
        ]

    assert alarm["Dimensions"] == [{"Name": watching.DIMENSION, "Value": "watched"}]
    assert told(1700) != ["ALARM"]
    assert told(1900) == ["ALARM"]


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
