"""The findings of `holdfast doctor` about a deployed stack."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast_cli.api import http
from holdfast_cli.api.response import Response
from holdfast_cli.bucket import stack
from holdfast_cli.doctor import clock, s3_probe, team
from holdfast_cli.doctor.checks import attempt, judge
from holdfast_cli.doctor.findings import Finding, Level, ok
from holdfast_cli.errors import CommandError

SECOND_1000 = "Thu, 01 Jan 1970 00:16:40 GMT"


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
    ("status", "level", "do"),
    [
        ("CREATE_COMPLETE", Level.OK, ""),
        ("UPDATE_COMPLETE", Level.OK, ""),
        ("IMPORT_COMPLETE", Level.OK, ""),
        ("UPDATE_IN_PROGRESS", Level.NOTE, "when CloudFormation has ended this operation"),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", Level.NOTE, "when CloudFormation has ended this operation"),
        ("UPDATE_ROLLBACK_COMPLETE", Level.PROBLEM, "`npx cdk deploy Holdfast-payments`"),
        (
            "UPDATE_ROLLBACK_FAILED",
            Level.PROBLEM,
            "`aws cloudformation continue-update-rollback --stack-name Holdfast-payments --region eu-west-1`",
        ),
        ("ROLLBACK_COMPLETE", Level.PROBLEM, "`npx cdk deploy Holdfast-payments`"),
        ("DELETE_FAILED", Level.PROBLEM, "delete the stack as docs/operate/removing.md says"),
    ],
)
def test_a_stack_whose_last_deployment_failed_is_a_problem(status: str, level: Level, do: str) -> None:
    described: Any = {
        "StackName": "Holdfast-payments",
        "StackStatus": status,
        "StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/Holdfast-payments/1",
    }

    found = list(team.stack_findings(described))

    assert [finding.level for finding in found] == [level, Level.NOTE]
    assert do in found[0].do
    assert found[1].check == "stack.termination_protection"
    assert "--stack-name Holdfast-payments --region eu-west-1`" in found[1].do


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
        ({"head_bucket": dict}, Level.OK, "exists in the account"),
        (
            {"head_bucket": refusal("403", 403)},
            Level.PROBLEM,
            "perhaps because the bucket is no longer in the account 123456789012",
        ),
        ({"head_bucket": refusal("404", 404)}, Level.PROBLEM, ""),
    ],
)
def test_a_bucket_that_s3_does_not_let_us_at_is_a_problem(
    calls: dict[str, Callable[..., Any]], level: Level, says: str
) -> None:
    [found] = judge("bucket", lambda: team.bucket_is_there(cast("Any", Client(**calls)), FOUND))

    assert (found.check, found.level) == ("bucket", level)
    assert says in found.text


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


API = "https://abc123.execute-api.eu-central-1.amazonaws.com"


@pytest.mark.parametrize(
    ("variables", "named", "level", "said"),
    [
        ({}, None, Level.NOTE, ["Neither a profile nor a variable", "`holdfast configure --address URL`"]),
        ({"HOLDFAST_ADDRESS": API}, None, Level.OK, [f"{API} (HOLDFAST_ADDRESS)"]),
        ({"TF_HTTP_ADDRESS": f"{API}/states/a"}, None, Level.OK, [f"{API} (Terraform's variables)"]),
        ({"HOLDFAST_PROFILE": "acme"}, None, Level.OK, [f"{API} (profile acme)"]),
        ({"HOLDFAST_TEAM": "payments"}, None, None, []),
        ({}, "payments", None, []),
    ],
)
def test_it_says_which_api_commands_use_or_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variables: dict[str, str],
    named: str | None,
    level: Level | None,
    said: list[str],
) -> None:
    file = tmp_path / "holdfast" / "config.toml"
    file.parent.mkdir()
    file.write_text(f'[profiles.acme]\naddress = "{API}"\n' if "HOLDFAST_PROFILE" in variables else "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("HOLDFAST_", "TF_"))]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    found = list(team.setup(argparse.Namespace(profile=None, team=named, region=None)))

    assert [one.level for one in found] == ([level] if level else [])
    text = " ".join(f"{one.text} {one.do}" for one in found)
    assert [part for part in said if part not in text] == []
