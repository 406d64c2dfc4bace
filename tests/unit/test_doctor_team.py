"""What `holdfast doctor` decides about a deployed stack."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast_cli import stack
from holdfast_cli.doctor import clock, team
from holdfast_cli.doctor.findings import Level
from holdfast_cli.doctor.policies import differences
from holdfast_cli.doctor.template import DeployedTemplate, UnresolvedError
from holdfast_cli.errors import CommandError

READ = {
    "Sid": "Read",
    "Effect": "Allow",
    "Action": ["s3:GetObject", "s3:ListBucket"],
    "Resource": ["arn:aws:s3:::b/*", "arn:aws:s3:::b"],
}
DENY = {
    "Sid": "RefuseWithoutTls",
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:*",
    "Resource": "arn:aws:s3:::b",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


@pytest.mark.parametrize(
    ("wanted", "found", "clauses"),
    [
        ([READ, DENY], [DENY, READ], []),
        ([READ], [READ | {"Action": ["s3:ListBucket", "s3:GetObject"]}], []),
        ([DENY], [DENY | {"Action": ["s3:*"], "Resource": ["arn:aws:s3:::b"]}], []),
        ([DENY], [DENY | {"Principal": {"AWS": "*"}}], []),
        ([DENY], [DENY | {"Condition": {"Bool": {"aws:SecureTransport": [False]}}}], []),
        ([READ, DENY], [READ], ["the statement RefuseWithoutTls is missing"]),
        ([READ], [READ, DENY], ["the statement RefuseWithoutTls is additional"]),
        (
            [READ],
            [READ | {"Action": ["s3:GetObject", "s3:PutObject"]}],
            [
                "the statement Read lacks Action s3:ListBucket",
                "the statement Read has in addition Action s3:PutObject",
            ],
        ),
        (
            [DENY],
            [{key: value for key, value in DENY.items() if key != "Condition"}],
            ["the statement RefuseWithoutTls lacks Condition Bool aws:SecureTransport false"],
        ),
        (
            [READ],
            [READ | {"Effect": "Deny"}],
            ["the statement Read lacks Effect Allow", "the statement Read has in addition Effect Deny"],
        ),
        (
            [],
            [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
            ["the statement without a Sid (Action s3:*, Effect Allow, Resource *) is additional"],
        ),
    ],
)
def test_policies_are_compared_by_what_they_say(
    wanted: list[dict[str, Any]], found: list[dict[str, Any]], clauses: list[str]
) -> None:
    assert list(differences(policy(*wanted), policy(*found))) == clauses


def test_a_policy_with_one_statement_may_have_it_without_a_list() -> None:
    assert list(differences(policy(READ), {"Statement": READ})) == []


def test_a_policy_that_is_gone_lacks_every_statement() -> None:
    assert list(differences(policy(READ), {})) == ["the statement Read is missing"]


def template(value: Any) -> DeployedTemplate:
    resources = {
        "Key": {"Type": "AWS::KMS::Key"},
        "Log": {"Type": "AWS::Logs::LogGroup"},
        "StateBucket": {"Type": "AWS::S3::Bucket", "Properties": {"Value": value}},
        "Api": {"Type": "AWS::ApiGatewayV2::Api"},
        "Gone": {"Type": "AWS::S3::Bucket"},
    }
    ids = {
        "Key": "1234",
        "Log": "/holdfast/payments/backend",
        "StateBucket": "holdfast-payments",
        "Api": "a1",
    }
    return DeployedTemplate({"Resources": resources}, ids, "aws-cn", "cn-north-1", "123456789012")


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ({"Ref": "StateBucket"}, "holdfast-payments"),
        ({"Ref": "AWS::AccountId"}, "123456789012"),
        ({"Ref": "AWS::URLSuffix"}, "amazonaws.com.cn"),
        ({"Fn::GetAtt": ["Key", "Arn"]}, "arn:aws-cn:kms:cn-north-1:123456789012:key/1234"),
        (
            {"Fn::GetAtt": ["Log", "Arn"]},
            "arn:aws-cn:logs:cn-north-1:123456789012:log-group:/holdfast/payments/backend:*",
        ),
        (
            {"Fn::Join": ["", [{"Fn::GetAtt": ["StateBucket", "Arn"]}, "/states/*"]]},
            "arn:aws-cn:s3:::holdfast-payments/states/*",
        ),
        ([{"Bool": True}, 1, "text"], [{"Bool": True}, 1, "text"]),
    ],
)
def test_a_reference_is_resolved(value: Any, resolved: Any) -> None:
    assert dict(template(value).resources("AWS::S3::Bucket"))["StateBucket"] == {"Value": resolved}


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Select": [0, ["a"]]},
        {"Fn::GetAtt": ["Api", "Arn"]},
        {"Fn::GetAtt": ["StateBucket", "DomainName"]},
        {"Ref": "Gone"},
    ],
)
def test_a_reference_that_is_not_known_is_never_passed_over(value: Any) -> None:
    with pytest.raises(UnresolvedError):
        template(value).resolve({"deep": [value]})


@pytest.mark.parametrize(
    ("sent", "received", "off"),
    [
        (1000.0, 1000.5, 0.0),
        (1000.9, 1001.5, 0.0),  # the header has whole seconds
        (900.0, 1100.0, 0.0),  # a slow response
        (1101.0, 1102.0, 100.0),
        (800.0, 900.0, -100.0),
    ],
)
def test_only_the_difference_that_must_be_counts(sent: float, received: float, off: float) -> None:
    assert clock.seconds_off("Thu, 01 Jan 1970 00:16:40 GMT", sent, received) == off


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_a_date_that_is_none_tells_nothing(date: str) -> None:
    assert clock.seconds_off(date, 0.0, 1.0) is None


@pytest.mark.parametrize(("off", "found"), [(60.0, False), (-60.0, False), (61.0, True), (-61.0, True)])
def test_clocks_may_differ_by_a_minute(off: float, found: bool) -> None:
    assert bool(list(clock.deviation(off, "S3"))) is found


@pytest.mark.parametrize(
    ("status", "level"),
    [
        ("CREATE_COMPLETE", Level.OK),
        ("UPDATE_COMPLETE", Level.OK),
        ("IMPORT_COMPLETE", Level.OK),
        ("UPDATE_IN_PROGRESS", Level.NOTE),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", Level.NOTE),
        ("UPDATE_ROLLBACK_COMPLETE", Level.PROBLEM),
        ("UPDATE_ROLLBACK_FAILED", Level.PROBLEM),
        ("ROLLBACK_COMPLETE", Level.PROBLEM),
    ],
)
def test_a_stack_whose_last_deployment_failed_is_a_problem(status: str, level: Level) -> None:
    described: Any = {"StackName": "Holdfast-payments", "StackStatus": status}

    found = list(team.stack_findings(described))

    assert [finding.level for finding in found] == [level, Level.NOTE]
    assert found[1].check == "stack.termination_protection"


def test_a_refused_signature_shows_a_clock_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(*_: object) -> stack.Stack:
        headers = {"date": "Thu, 01 Jan 1970 00:16:40 GMT"}
        response: Any = {
            "Error": {"Code": "SignatureDoesNotMatch"},
            "ResponseMetadata": {"HTTPStatusCode": 403, "HTTPHeaders": headers},
        }
        raise CommandError("refused") from ClientError(response, "DescribeStacks")

    monkeypatch.setattr(stack, "find", find)
    findings = team.check(boto3.Session(), "payments")

    assert next(findings).check == "stack.clock"
    with pytest.raises(CommandError, match="refused"):
        next(findings)
