"""The findings of `holdfast doctor` about a deployed stack."""

import json
from collections.abc import Callable
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast_cli.api import http
from holdfast_cli.api.response import Response
from holdfast_cli.bucket import stack
from holdfast_cli.doctor import clock, deployed, s3_probe, team
from holdfast_cli.doctor.checks import attempt
from holdfast_cli.doctor.findings import Finding, Level, ok
from holdfast_cli.doctor.policies import differences
from holdfast_cli.doctor.template import DeployedTemplate
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


def test_a_policy_may_have_one_statement_without_a_list_or_be_gone() -> None:
    assert list(differences(policy(READ), {"Statement": READ})) == []
    assert list(differences(policy(READ), {})) == ["the statement Read is missing"]


SECOND_1000 = "Thu, 01 Jan 1970 00:16:40 GMT"


def template(value: Any) -> DeployedTemplate:
    resources = {
        "Key": {"Type": "AWS::KMS::Key"},
        "Log": {"Type": "AWS::Logs::LogGroup"},
        "StateBucket": {"Type": "AWS::S3::Bucket", "Properties": {"Value": value}},
    }
    ids = {"Key": "1234", "Log": "/holdfast/payments/backend", "StateBucket": "holdfast-payments"}
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
    ("date", "sent", "received", "off"),
    [
        (SECOND_1000, 1000.0, 1000.5, 0.0),
        (SECOND_1000, 1000.9, 1001.5, 0.0),  # the header has whole seconds
        (SECOND_1000, 900.0, 1100.0, 0.0),  # a slow response
        (SECOND_1000, 1101.0, 1102.0, 100.0),
        (SECOND_1000, 800.0, 900.0, -100.0),
        ("", 0.0, 1.0, None),
        ("yesterday", 0.0, 1.0, None),
    ],
)
def test_only_the_difference_that_must_be_counts(
    date: str, sent: float, received: float, off: float | None
) -> None:
    assert clock.seconds_off(date, sent, received) == off


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
        headers = {"date": SECOND_1000}
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


# --- what AWS refuses -------------------------------------------------------------------------------


def refusal(code: str, status: int) -> Callable[..., Any]:
    """Return a call that AWS refuses."""

    def call(**_: object) -> Any:
        response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise ClientError(response, "Call")

    return call


class Client:
    """A client of AWS that may make the given calls alone."""

    def __init__(self, **calls: Callable[..., Any]) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._calls.get(name, refusal("AccessDenied", 403))


@pytest.mark.parametrize(
    ("code", "status", "level"),
    [
        ("AccessDenied", 403, Level.NOTE),
        ("UnknownOperation", 404, Level.NOTE),
        ("InvalidAction", 400, Level.NOTE),
        ("InternalFailure", 501, Level.NOTE),
        ("NoSuchBucket", 404, Level.PROBLEM),
        ("NoSuchEntity", 404, Level.PROBLEM),
        ("TrailNotFoundException", 404, Level.PROBLEM),
        ("404", 404, Level.PROBLEM),
        ("InternalError", 500, Level.PROBLEM),
    ],
)
def test_what_is_missing_is_a_problem_but_for_a_call(code: str, status: int, level: Level) -> None:
    [found] = attempt("part", refusal(code, status))

    assert (found.check, found.level) == ("part", level)


FOUND = stack.Stack("payments", "https://api.example.com", "holdfast-payments", "123456789012")


@pytest.mark.parametrize(
    ("calls", "level", "says"),
    [
        ({"head_bucket": dict}, Level.OK, "is there"),
        ({"head_bucket": refusal("403", 403)}, Level.PROBLEM, "or is not in the account 123456789012"),
        ({"head_bucket": refusal("404", 404)}, Level.PROBLEM, ""),
    ],
)
def test_a_bucket_that_s3_does_not_let_us_at_is_a_problem(
    calls: dict[str, Callable[..., Any]], level: Level, says: str
) -> None:
    [found] = attempt("bucket", lambda: team.bucket_is_there(cast("Any", Client(**calls)), FOUND))

    assert (found.check, found.level) == ("bucket", level)
    assert says in found.text


PLACE = ("aws", "eu-central-1", "123456789012")
ONE_DAY = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}, "Status": "Enabled"}
SEALED = dict.fromkeys(("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls"), True)
STAGING = {
    "Resources": {
        "StagingBucket": {
            "Type": "AWS::S3::Bucket",
            "Properties": {
                "BucketEncryption": {
                    "ServerSideEncryptionConfiguration": [
                        {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
                    ]
                },
                "PublicAccessBlockConfiguration": SEALED,
                "LifecycleConfiguration": {"Rules": [ONE_DAY | {"Id": "uploads", "ExpirationInDays": 1}]},
            },
        },
        "Policy": {
            "Type": "AWS::S3::BucketPolicy",
            "Properties": {"Bucket": {"Ref": "StagingBucket"}, "PolicyDocument": policy(DENY)},
        },
    }
}


def staging(**changed: object) -> list[Finding]:
    """Look at a staging bucket that differs from its template in these properties alone."""
    rules = [ONE_DAY | {"ID": "uploads", "Expiration": {"Days": 1}, "Filter": {"Prefix": ""}}]
    encryption = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    responses = {
        "head_bucket": {},
        "get_bucket_encryption": {"ServerSideEncryptionConfiguration": encryption},
        "get_public_access_block": {"PublicAccessBlockConfiguration": SEALED},
        "get_bucket_lifecycle_configuration": {"Rules": rules},
        "get_bucket_policy": {"Policy": json.dumps(policy(DENY))},
    } | changed
    calls = {
        name: response if callable(response) else lambda response=response, **_: response
        for name, response in responses.items()
    }
    template = DeployedTemplate(STAGING, {"StagingBucket": "b"}, *PLACE)
    found = attempt("staging_bucket", lambda: deployed.staging_bucket(cast("Any", Client(**calls)), template))
    return list(found)


LIFECYCLE, WRONG = "get_bucket_lifecycle_configuration", ["staging_bucket.lifecycle"]
OLD_FORM = {"ID": "uploads", "Expiration": {"Days": 1}, "Prefix": ""} | ONE_DAY


@pytest.mark.parametrize(
    ("call", "response", "problems"),
    [
        ("head_bucket", refusal("404", 404), ["staging_bucket"]),
        (
            "get_public_access_block",
            {"PublicAccessBlockConfiguration": SEALED | {"BlockPublicPolicy": False}},
            ["staging_bucket.public_access"],
        ),
        (LIFECYCLE, refusal("NoSuchLifecycleConfiguration", 404), WRONG),
        (LIFECYCLE, {"Rules": [OLD_FORM]}, []),
        *(
            (LIFECYCLE, {"Rules": [OLD_FORM | change]}, WRONG)
            for change in (
                {"Expiration": {"Days": 30}},
                {"Status": "Disabled"},
                {"Prefix": "json/"},
                {"Filter": {"Prefix": "json/"}},
                {"Filter": {"Tag": {"Key": "a", "Value": "b"}}},
                {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
            )
        ),
        ("get_bucket_policy", {"Policy": json.dumps(policy(READ))}, ["staging_bucket.policy"] * 2),
        ("get_bucket_policy", refusal("NoSuchBucketPolicy", 404), ["staging_bucket.policy"]),
        ("get_bucket_policy", refusal("AccessDenied", 403), []),
    ],
)
def test_what_is_not_as_in_the_template_of_a_staging_bucket_is_found(
    call: str, response: object, problems: list[str]
) -> None:
    found = [one for one in staging(**{call: response}) if one.level is Level.PROBLEM]

    assert [one.check for one in found] == problems
    assert all("staging bucket" in one.text or one.check == "staging_bucket" for one in found)


def test_a_stack_from_before_the_staging_bucket_is_told_so() -> None:
    before = DeployedTemplate({"Resources": {}}, {}, *PLACE)

    [found] = deployed.staging_bucket(cast("Any", Client()), before)

    assert (found.check, found.level) == ("staging_bucket", Level.NOTE)


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (lambda one: deployed.bucket(cast("Any", Client()), "another", one), "has no bucket another"),
        (lambda one: deployed.roles(Client(), one), "has no resource Gone"),
    ],
)
def test_a_template_without_what_is_deployed_is_a_problem_that_says_what_is_missing(
    check: Callable[[DeployedTemplate], Any], says: str
) -> None:
    document = {"Resources": {"Gone": {"Type": "AWS::IAM::Role", "Properties": {}}}}
    empty = DeployedTemplate(document, {}, *PLACE)

    [found] = attempt("part", lambda: check(empty))

    assert found.level is Level.PROBLEM
    assert says in found.text


@pytest.mark.parametrize(
    "reference",
    [
        {"Fn::Sub": "${A}"},
        {"Fn::Select": [0, ["a"]]},
        {"Fn::GetAtt": ["Topic", "Arn"]},
        {"Fn::GetAtt": ["Role", "RoleId"]},
    ],
)
def test_a_reference_that_only_a_newer_command_knows_is_a_problem_that_says_so(
    reference: dict[str, object],
) -> None:
    document = {
        "Resources": {
            "Topic": {"Type": "AWS::SNS::Topic"},
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"Tags": [{"Value": reference}]}},
        }
    }
    newer = DeployedTemplate(document, {"Role": "role"}, *PLACE)

    [found] = attempt("roles", lambda: deployed.roles(cast("Any", Client()), newer))

    assert found.level is Level.PROBLEM
    assert "use the command of the version that was deployed" in found.text


class Pages:
    """The pages of an empty list."""

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        return [{"PolicyNames": [], "AttachedPolicies": []}]


BOUNDARY = "arn:aws:iam::123456789012:policy/holdfast-functions"
JOINED = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, BOUNDARY.removeprefix("arn:aws")]]}


@pytest.mark.parametrize(
    ("wanted", "arn", "clause"),
    [
        (None, None, None),
        (JOINED, BOUNDARY, None),
        (JOINED, None, f"the permissions boundary is missing, in the template {BOUNDARY}"),
        (None, BOUNDARY, f"the permissions boundary is {BOUNDARY}, in the template none"),
    ],
)
def test_the_boundary_of_a_role_is_compared(wanted: Any, arn: str | None, clause: str | None) -> None:
    properties = {"AssumeRolePolicyDocument": policy(), **({"PermissionsBoundary": wanted} if wanted else {})}
    document = {"Resources": {"Backend": {"Type": "AWS::IAM::Role", "Properties": properties}}}
    one = DeployedTemplate(document, {"Backend": "backend"}, *PLACE)
    boundary = {"PermissionsBoundary": {"PermissionsBoundaryArn": arn}} if arn else {}
    role = {"Role": {"AssumeRolePolicyDocument": policy(), **boundary}}
    iam = Client(get_role=lambda **_: role, get_paginator=lambda _: Pages())

    [found] = deployed.roles(iam, one)

    if clause is None:
        assert found.level is Level.OK
    else:
        assert (found.level, found.text) == (Level.PROBLEM, f"In the role backend {clause}.")


def look(monkeypatch: pytest.MonkeyPatch, rule: str) -> list[Finding]:
    """Return the findings about a stack whose bucket has one lifecycle rule, where AWS denies the rest."""

    def refuse(*_: object, **__: object) -> Response:
        raise CommandError("nobody responds")

    bucket_of_the_team = {
        "Type": "AWS::S3::Bucket",
        "Properties": {"LifecycleConfiguration": {"Rules": [{"Id": rule}]}},
    }
    clients = {
        "cloudformation": Client(
            get_template=lambda **_: {"TemplateBody": {"Resources": {"StateBucket": bucket_of_the_team}}}
        ),
        "s3": Client(get_object_lock_configuration=lambda **_: {"ObjectLockConfiguration": {}}),
    }
    session = boto3.Session()
    monkeypatch.setattr(session, "client", lambda service, **_: clients[service])
    monkeypatch.setattr(stack, "find", lambda *_: FOUND)
    monkeypatch.setattr(http, "send", refuse)
    monkeypatch.setattr(team, "connect", lambda _: clients["s3"])
    monkeypatch.setattr(s3_probe, "check", lambda *_: [ok("s3", "Tried.")])
    return list(team.check(session, "payments"))


def test_s3_is_not_tried_where_nothing_removes_what_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    [found] = [one for one in look(monkeypatch, "locks") if one.check == "s3"]
    assert found.level is Level.NOTE
    assert "lifecycle rule" in found.text
    assert "npx cdk deploy Holdfast-payments" in found.do

    assert ok("s3", "Tried.") in look(monkeypatch, "probes")
