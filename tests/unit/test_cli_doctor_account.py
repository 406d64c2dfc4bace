"""`holdfast doctor --account`: accounts with a deliberate fault, and the doctor's findings."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from botocore import xform_name

from holdfast.team import LAMBDA_PYTHON
from holdfast_cli.bucket import stack as stack_of_teams
from holdfast_cli.config.profiles import Settings
from holdfast_cli.doctor import account
from holdfast_cli.doctor.findings import Finding, Level
from tests.support.cli_account import Aws

ACCOUNT = "123456789012"
REGION = "eu-central-1"
BUCKET = f"holdfast-payments-{ACCOUNT}-{REGION}"

TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:holdfast"

Answer = Mapping[str, Any] | tuple[str, int]
"""The response of AWS, or code and status of its error."""

RIGHT: Mapping[str, Answer] = {
    "sts.get_caller_identity": {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/ada"},
    "ssm.get_parameter": {"Parameter": {"Value": "30"}},
    "lambda.get_account_settings": {
        "AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 900}
    },
    "apigateway.get_account": {"throttleSettings": {"rateLimit": 10000.0, "burstLimit": 5000}},
    "s3.head_bucket": ("404", 404),
    "cloudformation.describe_stacks": ("ValidationError", 400),
}


@cache
def client(service: str) -> Any:
    return cast("Any", boto3).client(
        service, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test"
    )


class Session:
    """A session whose services have one answer to each call."""

    def __init__(self, answers: Mapping[str, Answer], region: str | None, stubs: ExitStack) -> None:
        self.region_name = region
        self._answers = answers
        self._stubs = stubs

    def client(self, service: str, *, region_name: str, config: object) -> Any:  # noqa: ARG002
        assert config is not None  # with time-outs
        stubbed = client(service)

        def respond(model: Any, **_: object) -> tuple[SimpleNamespace, dict[str, Any]]:
            answer = self._answers[f"{service}.{xform_name(model.name)}"]
            if isinstance(answer, tuple):
                code, status = answer
                error = {"Code": code, "Message": "made up"}
                metadata = {"HTTPStatusCode": status}
                return SimpleNamespace(status_code=status), {"Error": error, "ResponseMetadata": metadata}
            return SimpleNamespace(status_code=200), dict(answer)

        event = f"before-call.{service}"
        stubbed.meta.events.register(event, respond)
        self._stubs.callback(stubbed.meta.events.unregister, event, respond)
        return stubbed


@pytest.fixture
def found(tmp_path: Path) -> Any:
    def find(
        settings: str = "", *, team: str | None = None, region: str | None = REGION, **answers: Answer
    ) -> list[Finding]:
        """Return the findings for the team payments with some settings, where AWS has some other answers."""
        (tmp_path / "teams.toml").write_text(f"[teams.payments]\n{settings}\n")
        changed = {name.replace("__", "."): answer for name, answer in answers.items()}
        with ExitStack() as stubs:
            session = cast("boto3.Session", Session({**changed, **RIGHT, **changed}, region, stubs))
            return list(account.check(lambda: session, tmp_path, team))

    return find


def problems(findings: list[Finding]) -> list[str]:
    return [finding.check for finding in findings if finding.level is Level.PROBLEM]


def said(findings: list[Finding], check: str) -> str:
    return " ".join(f"{finding.text} {finding.do}" for finding in findings if finding.check == check)


def level(findings: list[Finding], check: str) -> Level:
    [found] = [finding.level for finding in findings if finding.check == check]
    return found


def test_an_account_that_has_what_a_team_needs_has_no_problem(found: Any) -> None:
    findings = found()

    assert problems(findings) == []
    assert {finding.check for finding in findings} == {
        *("teams", "python", "credentials", "account", "region", "bootstrap", "lambda.concurrency"),
        *("lambda.memory", "api.throttling", "former_stacks", "bucket.name"),
    }
    assert f"{BUCKET} is free" in said(findings, "bucket.name")


def stack(status: str, **outputs: str) -> Answer:
    listed = [{"OutputKey": name, "OutputValue": value} for name, value in outputs.items()]
    made = datetime(2027, 1, 1, tzinfo=UTC)
    return {"Stacks": [{"StackName": "x", "CreationTime": made, "StackStatus": status, "Outputs": listed}]}


LIMITS: Answer = {"AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}}
RESERVED: Answer = {"AccountLimit": {"ConcurrentExecutions": 100, "UnreservedConcurrentExecutions": 40}}
ALL_RESERVED: Answer = {"AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 40}}
SMALL: Answer = {"throttleSettings": {"rateLimit": 2500.0, "burstLimit": 1250}}

ROLE = f"arn:aws:iam::{ACCOUNT}:role/ops/security"
OTHER_PATH = ROLE.replace("/ops", "")
USER = f"arn:aws:iam::{ACCOUNT}:user/ann"
MADE = datetime(2027, 1, 1, tzinfo=UTC)
THERE = {"CreateDate": MADE, "Path": "/"}


def role(arn: str) -> dict[str, Answer]:
    return {"iam__get_role": {"Role": {**THERE, "RoleName": "security", "RoleId": "A" * 16, "Arn": arn}}}


def user(arn: str) -> dict[str, Answer]:
    return {"iam__get_user": {"User": {**THERE, "UserName": "ann", "UserId": "A" * 16, "Arn": arn}}}


KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1a2b3c4d-1111-4222-8333-444455556666"


def kms(state: str = "Enabled", account: str = ACCOUNT, template: str = "") -> dict[str, Answer]:
    use = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "kms:*"}
    metadata = {"KeySpec": "SYMMETRIC_DEFAULT", "KeyUsage": "ENCRYPT_DECRYPT", "KeyState": state}
    return {
        "kms__describe_key": {"KeyMetadata": {"KeyId": KEY, **metadata}},
        "kms__get_key_policy": {"Policy": json.dumps({"Statement": [use]})},
        "cloudformation__get_template": {"TemplateBody": template} if template else ("ValidationError", 400),
    }


MISSING: Answer = ("ParameterNotFound", 400)
OLD: Answer = {"Parameter": {"Value": "5"}}
ROLLED_BACK = {"s3__head_bucket": {}, "cloudformation__describe_stacks": stack("ROLLBACK_COMPLETE")}
IN_A_STACK = {
    "s3__head_bucket": {},
    "cloudformation__describe_stacks": stack("UPDATE_COMPLETE", BucketName=BUCKET),
}


def throttling(rate: int, burst: int) -> str:
    return f"throttling = {{ rate = {rate}, burst = {burst} }}"


def topic(*statements: Mapping[str, str]) -> dict[str, Answer]:
    policy = json.dumps({"Statement": statements[0] if len(statements) == 1 else statements})
    return {"sns__get_topic_attributes": {"Attributes": {"Policy": policy}}}


OK, NOTE, PROBLEM = Level
OWN, GIVEN = f'key = "{KEY}"', f'previous_keys = ["{KEY}"]'
BY_ROLE, BY_USER, BY_GROUP = (
    f'key_administrators = ["{arn}"]' for arn in (ROLE, USER, USER.replace(":user/", ":group/"))
)
NOTIFY, ALARMS = (f'{setting} = {{ topic = "{TOPIC}" }}' for setting in ("notify", "alarms"))
SMALL_QUOTA: dict[str, Answer] = {"apigateway__get_account": SMALL}
NO_ROLE: dict[str, Answer] = {"iam__get_role": ("NoSuchEntity", 404)}
NO_USER: dict[str, Answer] = {"iam__get_user": ("NoSuchEntity", 404)}
NO_TOPIC: dict[str, Answer] = {"sns__get_topic_attributes": ("NotFound", 404)}
DENIED: dict[str, Answer] = {"s3__head_bucket": ("403", 403)}


@pytest.mark.parametrize(
    ("settings", "answers", "check", "is_level", "says"),
    [
        ('account = "999999999999"', {}, "account", PROBLEM, "Sign in to 999999999999"),
        ('region = "eu-west-1"', {}, "region", NOTE, "AWS_REGION=eu-west-1"),
        ("", {"lambda__get_account_settings": LIMITS}, "lambda.concurrency", PROBLEM, "L-B99A9384"),
        (
            "",
            {"lambda__get_account_settings": RESERVED},
            "lambda.concurrency",
            PROBLEM,
            "(unreserved: 40)",
        ),
        (
            "",
            {"lambda__get_account_settings": ALL_RESERVED},
            "lambda.concurrency",
            PROBLEM,
            "Lower the reserved concurrency of other functions",
        ),
        ("memory = { backend = 4096 }", {}, "lambda.memory", NOTE, "4096 MB"),
        ("", {"ssm__get_parameter": MISSING}, "bootstrap", PROBLEM, "npx cdk bootstrap"),
        ("", {"ssm__get_parameter": OLD}, "bootstrap", PROBLEM, "version 5"),
        (throttling(5000, 200), SMALL_QUOTA, "api.throttling", PROBLEM, "= 2500, burst = 200"),
        (throttling(50, 2000), SMALL_QUOTA, "api.throttling", PROBLEM, "= 50, burst = 1250"),
        (OWN, kms(), "keys.usable", OK, ""),
        (OWN, kms("Disabled"), "keys.usable", PROBLEM, "aws kms enable-key"),
        (GIVEN, kms(account="999999999999"), "keys.usable", PROBLEM, f"Allow arn:aws:iam::{ACCOUNT}:root to"),
        (OWN, kms(template=json.dumps({"Resource": KEY})), "keys.deployed", OK, ""),
        (
            OWN,
            kms(template="{}"),
            "keys.deployed",
            PROBLEM,
            f'First add "{KEY}" to previous_keys, and deploy the stack with its current key.',
        ),
        (BY_ROLE, role(ROLE), "keys.administrators", OK, ""),
        (BY_USER, user(USER), "keys.administrators", OK, ""),
        (BY_ROLE, NO_ROLE, "keys.administrators", PROBLEM, "Create the role, or"),
        (BY_USER, NO_USER, "keys.administrators", PROBLEM, f"names the user {USER}, which does not exist"),
        (BY_GROUP, {}, "keys.administrators", PROBLEM, "which is not the ARN of a role or user"),
        (BY_ROLE, role(OTHER_PATH), "keys.administrators", PROBLEM, f"write {OTHER_PATH}."),
        (ALARMS, topic({"Effect": "Allow"}, {"Effect": "Allow"}), "topics.usable", OK, "alarms.topic: "),
        (NOTIFY, topic({"Effect": "Deny", "Sid": "OnlyOthers"}), "topics.usable", NOTE, "OnlyOthers"),
        (NOTIFY, NO_TOPIC, "topics.usable", PROBLEM, "topic --name holdfast"),
        ("", IN_A_STACK, "bucket.name", OK, ""),
        (
            "",
            {"s3__head_bucket": {}},
            "bucket.name",
            PROBLEM,
            " already exists, but there is no stack ",
        ),
        ("", ROLLED_BACK, "bucket.name", PROBLEM, "(ROLLBACK_COMPLETE) do not name this bucket"),
        ("", DENIED, "bucket.name", PROBLEM, "belongs to another account"),
    ],
)
def test_a_fault_is_found_with_what_to_do_and_what_is_right_is_ok(
    found: Any, settings: str, answers: dict[str, Answer], check: str, is_level: Level, says: str
) -> None:
    findings = found(settings, **answers)

    assert problems(findings) == [check] * (is_level is Level.PROBLEM)
    assert level(findings, check) is is_level
    assert says in said(findings, check)


CALLS = {
    "ssm__get_parameter": "bootstrap",
    "lambda__get_account_settings": "lambda.concurrency",
    "apigateway__get_account": "api.throttling",
    "cloudformation__describe_stacks": "former_stacks",
}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (("AccessDeniedException", 403), Level.NOTE),
        (("UnknownOperation", 404), Level.NOTE),
        (("InternalFailure", 500), Level.PROBLEM),
    ],
)
def test_a_check_that_cannot_be_made_stops_no_other(found: Any, answer: Answer, kind: Level) -> None:
    findings = found(**dict.fromkeys(CALLS, answer))

    assert {level(findings, check) for check in CALLS.values()} == {kind}
    assert all("Not checked" in said(findings, check) for check in CALLS.values())
    assert level(findings, "bucket.name") is Level.OK


def test_without_credentials_nothing_else_of_aws_is_asked(found: Any) -> None:
    findings = found(sts__get_caller_identity=("InvalidClientTokenId", 403))

    assert problems(findings) == ["credentials"]
    assert [finding.check for finding in findings] == ["teams", "python", "credentials"]


def test_a_team_without_any_region_is_a_problem(found: Any) -> None:
    findings = found(region=None)

    assert problems(findings) == ["region"]
    assert [finding.check for finding in findings][-1] == "region"


def test_another_qualifier_is_read_from_the_cdk_context_where_the_file_of_the_app_wins(
    found: Any, tmp_path: Path
) -> None:
    (tmp_path / "cdk.json").write_text('{"context": {}}')
    (tmp_path / "cdk.context.json").write_text('{"@aws-cdk/core:bootstrapQualifier": "acme"}')
    of_the_context = found(ssm__get_parameter=MISSING)
    (tmp_path / "cdk.json").write_text('{"context": {"@aws-cdk/core:bootstrapQualifier": "app"}}')
    of_the_app = found(ssm__get_parameter=MISSING)

    command = "--qualifier acme --toolkit-stack-name CDKToolkit-acme"
    assert command in said(of_the_context, "bootstrap")
    assert command.replace("acme", "app") in said(of_the_app, "bootstrap")


def test_a_profile_that_is_not_there_stops_only_what_talks_to_aws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")

    settings = Settings(address=None, team=None, region=None)
    findings = list(account.check(lambda: stack_of_teams.sign_in(settings), tmp_path, None))

    assert [finding.check for finding in findings] == ["teams", "python", "credentials"]
    assert problems(findings) == ["credentials"]
    assert "nobody" in said(findings, "credentials")


def test_a_team_that_is_not_in_the_file_is_a_problem(found: Any) -> None:
    assert "no team paymets" in said(found(team="paymets"), "teams")


def test_a_file_that_is_no_list_of_teams_is_a_problem(found: Any) -> None:
    assert problems(found("[teams")) == ["teams"]


def test_a_python_that_does_not_run_compiles_nothing(
    found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    compilers = [said(found(), "python")]
    for program in ("exit 127", "echo cpython-314 candidate", "echo pypy314 final", "echo cpython-314 final"):
        folder = tmp_path / program
        folder.mkdir()
        python = folder / f"python{LAMBDA_PYTHON}"
        python.write_text(f"#!/bin/sh\n{program}\n")
        python.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        compilers.append(said(found(), "python"))

    assert ["npm's pyodide compiles" in one for one in compilers] == [True] * 4 + [False]


# --- the command ----------------------------------------------------------------------------------


def test_the_command_prints_what_it_finds_without_a_file_of_teams(
    aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    done = aws.run("doctor", "--account", "--team", "payments")
    aws.enforce(authorization=True)
    try:
        unknown = aws.run("doctor", "--account")
    finally:
        aws.enforce(authorization=False)

    assert "note     teams: There is no teams.toml" in done.stdout
    assert "problem  bootstrap: " in done.stdout
    assert f"bucket.name: The name {BUCKET} is free." in done.stdout
    assert (done.returncode, unknown.returncode, unknown.stdout.count("problem  ")) == (1, 1, 1)
    assert "problem  credentials: Not checked. AWS does not accept these credentials" in unknown.stdout


def test_stacks_of_earlier_releases_are_notes_with_what_removes_them(
    aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "the-bucket"}}
    template = {"Resources": {"B": bucket}, "Outputs": {"TrailBucket": {"Value": {"Ref": "B"}}}}
    topic = {"Resources": {"T": {"Type": "AWS::SNS::Topic"}}}
    for name, content, protected in (
        ("HoldfastTokenTrail", template, True),
        ("HoldfastDashboard", topic, False),
    ):
        aws.client("cloudformation").create_stack(
            StackName=name, TemplateBody=json.dumps(content), EnableTerminationProtection=protected
        )

    done = aws.run("doctor", "--account", "--team", "payments")

    trail, dashboard = (line for line in done.stdout.splitlines() if "former_stacks" in line)
    of_the_trail, of_the_dashboard = (
        f"note     former_stacks: The stack {name} of an earlier release is still deployed in eu-central-1. "
        "This release does not use it, but AWS bills it. Once every team in eu-central-1 is upgraded, remove "
        "the stack with `"
        for name in ("HoldfastTokenTrail", "HoldfastDashboard")
    )
    which = "--stack-name HoldfastTokenTrail --region eu-central-1"
    unprotect = "aws cloudformation update-termination-protection --no-enable-termination-protection"
    delete = "aws cloudformation delete-stack"
    assert trail == (
        f"{of_the_trail}{unprotect} {which} && {delete} {which}`. "
        "The bucket the-bucket is kept, with its logs."
    )
    assert dashboard == (f"{of_the_dashboard}{delete} --stack-name HoldfastDashboard --region eu-central-1`.")
