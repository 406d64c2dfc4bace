"""The settings `notify` and `audit_archive`: what they accept, and what they add to the template."""

import json
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from audit_trail.events import archived, received
from holdfast.audit import NOTIFIED, Event
from holdfast_cdk.config import AWS, ConfigError, check_places, load_teams
from holdfast_cdk.keys import ARCHIVED, LOST
from holdfast_cdk.notify_settings import AuditArchive, Notify
from holdfast_cdk.team_settings import Replica, Team
from tests.support.aws_permissions import allowed
from tests.unit.infra.conftest import Synthesize, Synthesized
from tests.unit.test_audit_events import WRITTEN, delivery

TOPIC = "arn:aws:sns:eu-central-1:123456789012:holdfast"


def wrong(folder: Path, notify: str) -> str:
    path = folder / "teams.toml"
    path.write_text(f"[teams.a]\nnotify = {notify}\n")
    with pytest.raises(ConfigError) as error:
        load_teams(path)
    return str(error.value).removeprefix(f"{path}: team 'a': ")


@pytest.mark.parametrize(
    "topic",
    [
        f"{TOPIC}.fifo",
        f"{TOPIC}\n",
        "arn:aws:sns:eu-central-1:12345:holdfast",
        "arn:aws:sqs:eu-central-1:123456789012:holdfast",
        "holdfast",
    ],
)
def test_only_the_arn_of_a_standard_topic_is_accepted(tmp_path: Path, topic: str) -> None:
    line = wrong(tmp_path, f"{{ topic = {topic!r} }}".replace("'", '"'))
    assert line.endswith(f'is not allowed; write the ARN of a standard topic, as in "{TOPIC}"')


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ('["state.wirtten"]', 'notify.events[0] = "state.wirtten" is not allowed; write "state.written"'),
        ("[]", f'notify.events = [] is not allowed; write a list of 1 to {len(Event) - 2} entries, as in ["'),
        *(
            (f'["{event}"]', f'notify.events[0] = "{event}" is not allowed; write ')
            for event in (Event.SIGN_IN_REFUSED, Event.SIGN_IN_FAILED)
        ),
    ],
)
def test_an_event_that_cannot_be_chosen_is_refused(tmp_path: Path, events: str, message: str) -> None:
    assert wrong(tmp_path, f'{{ topic = "{TOPIC}", events = {events} }}').startswith(message)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"account": "999999999999"}, "account 123456789012, but the team is in the account 999999999999"),
        ({"region": "eu-west-1"}, "region eu-central-1, but the team is in the region eu-west-1"),
        (
            {"region": "eu-central-1", "partition": "aws-cn"},
            "partition aws-cn, but the team is in the partition aws",
        ),
        ({"region": "nowhere-1"}, "region eu-central-1, but the team is in the region nowhere-1"),
    ],
)
def test_a_topic_of_another_place_is_refused(place: dict[str, Any], message: str) -> None:
    team = Team(name="a", notify=Notify(topic=TOPIC))
    check_places(
        [
            replace(team, account=account, region=region)
            for account in (None, "123456789012")
            for region in (None, "eu-central-1")
        ]
    )
    topic = TOPIC.replace("arn:aws:", f"arn:{place.pop('partition', 'aws')}:")
    with pytest.raises(ConfigError, match=f"^team 'a': notify.topic has an ARN of the {message}; write"):
        check_places([replace(team, notify=Notify(topic=topic), **place)])


@pytest.fixture(scope="module")
def notified(synthesize: Synthesize) -> Synthesized:
    """A team with the two settings and no other."""
    team = Team(name="ops", notify=Notify(topic=TOPIC), audit_archive=AuditArchive(days=30))
    return synthesize([team], AWS)["Holdfast-ops"]


def test_a_team_without_the_settings_has_nothing_of_them(default: Synthesized) -> None:
    text = str(default.template)
    for word in ("NOTIFY", "Archive", "AWS::CloudWatch", "MetricFilter", "sns", "NUMBERED"):
        assert word not in text


def test_the_function_gets_the_topic_and_the_events(notified: Synthesized) -> None:
    _, function = notified.function("audit_trail.handler.handle")
    environment = function["Environment"]["Variables"]
    assert environment["HOLDFAST_NOTIFY_TOPIC"] == TOPIC
    assert environment["HOLDFAST_NOTIFY_EVENTS"].split() == list(NOTIFIED)


def test_every_teams_bucket_tells_of_tokens_and_trust_records_and_may_invoke_the_function(
    default: Synthesized, notified: Synthesized, settled: Synthesized
) -> None:
    for stack in (default, notified, settled):
        assert_told_of_changed_records(stack)


FAILED = ("s3:Replication:OperationFailedReplication", {"prefix": "states/", "suffix": ".tfstate"})


def test_failed_copies_of_states_are_told_where_a_topic_wants_them_and_measured_for_that(
    synthesize: Synthesize,
) -> None:
    """S3 notifies of a failed copy only if the rule of the object has metrics."""
    copied = Team(
        name="a", account="123456789012", region="eu-central-1", replica=Replica(region="eu-west-1")
    )
    quiet = Notify(topic=TOPIC, events=("state.deleted",))
    stacks = synthesize(
        [
            replace(copied, notify=Notify(topic=TOPIC)),
            replace(copied, name="b", notify=quiet),
            replace(copied, name="c"),
            replace(copied, name="d", notify=Notify(topic=TOPIC), replica=None),
        ],
        AWS,
    )

    def measured(team: str) -> list[str]:
        bucket = stacks[f"Holdfast-{team}"].template["Resources"]["StateBucket"]["Properties"]
        rules = bucket.get("ReplicationConfiguration", {"Rules": []})["Rules"]
        metrics = {rule["Id"]: rule["Destination"].get("Metrics") for rule in rules}
        assert set(map(str, metrics.values())) <= {"None", "{'Status': 'Enabled'}"}
        return [name for name, enabled in metrics.items() if enabled]

    assert {team: (measured(team), FAILED in told(stacks[f"Holdfast-{team}"])) for team in "abcd"} == {
        "a": (["states"], True),
        "b": ([], False),
        "c": ([], False),
        "d": ([], False),
    }


def told(stack: Synthesized) -> list[tuple[str, dict[str, str]]]:
    """Return the events of S3 of which the bucket notifies the audit function, each with its filter."""
    name, _ = stack.function("audit_trail.handler.handle")
    bucket = stack.resolve(stack.template["Resources"]["StateBucket"]["Properties"])
    rules = bucket["NotificationConfiguration"]["LambdaConfigurations"]
    assert {rule["Function"] for rule in rules} == {f"<{name}.Arn>"}
    return [
        (rule["Event"], {one["Name"]: one["Value"] for one in rule["Filter"]["S3Key"]["Rules"]})
        for rule in rules
    ]


def assert_told_of_changed_records(stack: Synthesized) -> None:
    bucket = stack.template["Resources"]["StateBucket"]
    properties = stack.resolve(bucket["Properties"])
    (permission,) = (
        logical_id
        for logical_id, resource in stack.resources("AWS::Lambda::Permission").items()
        if resource["Properties"]["Principal"] == "s3.amazonaws.com"
    )

    assert [each for each in told(stack) if each != FAILED] == [
        (f"s3:{kind}:*", {"prefix": folder})
        for folder in ("tokens/", "trust/")
        for kind in ("ObjectCreated", "ObjectRemoved")
    ]
    assert permission in bucket["DependsOn"]
    allowed = stack.resolve(stack.template["Resources"][permission]["Properties"])
    account = stack.environment.removeprefix("aws://").partition("/")[0].replace("unknown-account", "")
    assert allowed["SourceAccount"] == (account or "<AWS::AccountId>")
    assert allowed["SourceArn"] == f"arn:<AWS::Partition>:s3:::{properties['BucketName']}"


def test_ten_refused_sign_ins_in_a_minute_ring_at_most_once_in_five_minutes(notified: Synthesized) -> None:
    """The local AWS makes no metric of a filter, so the pattern is compared with an event here."""
    (filter_,) = (
        resource["Properties"] for resource in notified.resources("AWS::Logs::MetricFilter").values()
    )
    (alarm,) = (resource["Properties"] for resource in notified.resources("AWS::CloudWatch::Alarm").values())
    (transformation,) = filter_["MetricTransformations"]

    assert filter_["LogGroupName"] == {"Ref": "Audit"}
    (event,) = received(delivery(json.dumps({**WRITTEN, "message": "sign_in.refused"})))
    assert filter_["FilterPattern"] == f'{{ $.event = "{json.loads(event.message)["event"]}" }}'
    assert transformation == {
        "MetricNamespace": alarm["Namespace"],
        "MetricName": alarm["MetricName"],
        "MetricValue": "1",
    }
    assert (alarm["Statistic"], alarm["Threshold"], alarm["Period"]) == ("Sum", 10, 60)
    # Once it rings it stays for five minutes, and only a change to ALARM is a message.
    assert (alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]) == (5, 1)
    assert alarm["TreatMissingData"] == "notBreaching"
    assert (alarm["AlarmActions"], "OKActions" in alarm) == ([TOPIC], False)


def test_lambda_stores_in_the_archive_what_the_audit_function_failed_on(
    default: Synthesized, notified: Synthesized
) -> None:
    name, _ = notified.function("audit_trail.handler.handle")
    lost = notified.resolve(notified.only("AWS::Lambda::EventInvokeConfig")["Properties"])

    assert lost == {
        "FunctionName": f"<{name}>",
        "Qualifier": "$LATEST",
        "DestinationConfig": {"OnFailure": {"Destination": "<AuditArchive.Arn>"}},
    }
    # Deliveries that succeed are not among them, and Lambda's own attempts and hours stay.
    own = notified.role("audit_trail")["Policies"][0]["PolicyDocument"]["Statement"]
    needed = {
        ("s3:PutObject", f"<AuditArchive.Arn>/{LOST}"),
        ("s3:ListBucket", "<AuditArchive.Arn>"),
    }
    assert needed < {*allowed(notified.resolve(own))}
    assert not default.resources("AWS::Lambda::EventInvokeConfig")


def test_the_archive_keeps_each_event_for_its_days_and_outlives_the_stack(notified: Synthesized) -> None:
    bucket = notified.template["Resources"]["AuditArchive"]
    properties = bucket["Properties"]

    assert properties["ObjectLockConfiguration"]["Rule"]["DefaultRetention"] == {
        "Days": 30,
        "Mode": "COMPLIANCE",
    }
    assert properties["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"] == 30
    assert bucket["DeletionPolicy"] == "RetainExceptOnCreate"
    assert notified.template["Outputs"]["AuditArchiveName"]["Value"] == {"Ref": "AuditArchive"}


def test_the_function_may_write_what_it_archives() -> None:
    key, _ = archived(received(delivery(json.dumps(dict(WRITTEN)))))
    assert fnmatch(key, ARCHIVED)
