"""The trail of CloudTrail for records of tokens and trust: shared by teams, or one that exists.

It is looked at in the template and nowhere else: the local AWS's CloudFormation makes no trail.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import team as names
from infra.config import AWS, ConfigError, TeamConfig, local
from infra.lambdas import Bundles
from infra.team_stack import team_stacks
from tests.support.iam_policy import ACCOUNT, REGION, Request, bucket_policy, evaluate
from tests.unit.infra.conftest import EVERY_SETTING, Synthesize, Synthesized, new_app

NAME = "HoldfastTokenTrail"
TRAIL_ARN = f"arn:aws:cloudtrail:{REGION}:{ACCOUNT}:trail/{NAME}"
PAYMENTS = TeamConfig(
    name="payments", account=ACCOUNT, region=REGION, token_trail=True, tags={"cost-center": "42", "a": "b"}
)
ELSEWHERE = replace(PAYMENTS, name="us", region="us-east-1")


def records_of(team: str, place: str = f"{ACCOUNT}-{REGION}") -> list[str]:
    """What a selector has for a team."""
    return [f"arn:<AWS::Partition>:s3:::holdfast-{team}-{place}/{folder}/" for folder in ("tokens", "trust")]


def selector(*teams: str) -> dict[str, object]:
    """The advanced event selector for the records of some teams; without `readOnly` it is for both."""
    return {
        "Name": "Records of tokens and trust, read or written",
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": ["AWS::S3::Object"]},
            {"Field": "resources.ARN", "StartsWith": [arn for team in teams for arn in records_of(team)]},
        ],
    }


@pytest.fixture(scope="module")
def shared(synthesize: Synthesize) -> Synthesized:
    """The trail of two teams that share it, beside others that do not."""
    teams = [
        *(EVERY_SETTING, PAYMENTS),
        replace(PAYMENTS, name="none", token_trail=False),
        replace(PAYMENTS, name="other", token_trail="acme-security"),
    ]
    return synthesize(teams, AWS)[NAME]


def depends_on(bundles: Bundles, folder: Path, teams: Sequence[TeamConfig]) -> dict[str, list[str]]:
    """On which stacks the stack of each team depends."""
    made = team_stacks(new_app(folder), teams, AWS, bundles)
    return {stack.stack_name: [one.node.id for one in stack.dependencies] for stack in made}


def test_a_team_that_does_not_ask_for_it_has_none(synthesize: Synthesize, default: Synthesized) -> None:
    assert set(synthesize([TeamConfig(name="plain")], AWS)) == {"Holdfast-plain"}
    assert "cloudtrail" not in str(default.template).lower()


def test_teams_of_an_account_and_region_share_one_trail_with_reads_and_writes_of_their_records(
    shared: Synthesized,
) -> None:
    assert shared.environment == f"aws://{ACCOUNT}/{REGION}"
    trail = shared.resolve(shared.only("AWS::CloudTrail::Trail")["Properties"])
    assert trail["AdvancedEventSelectors"] == [selector("ops", "payments")]
    # As long as the team with the longest audit trail.
    rules = shared.template["Resources"]["TokenTrailBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    assert [rule["ExpirationInDays"] for rule in rules] == [731]


def test_the_selector_names_the_buckets_that_the_teams_have(synthesize: Synthesize) -> None:
    stacks = synthesize([EVERY_SETTING, PAYMENTS], AWS)
    (selected,) = stacks[NAME].resolve(
        stacks[NAME].only("AWS::CloudTrail::Trail")["Properties"]["AdvancedEventSelectors"]
    )
    buckets = [
        stacks[name].template["Resources"]["StateBucket"]["Properties"]["BucketName"]
        for name in ("Holdfast-ops", "Holdfast-payments")
    ]
    of_buckets = selected["FieldSelectors"][2]["StartsWith"]
    assert [arn.split(":::")[1].split("/")[0] for arn in of_buckets] == [
        bucket for bucket in buckets for _ in range(2)
    ]


def test_its_stack_is_not_taken_for_a_teams_and_refuses_to_be_deleted(shared: Synthesized) -> None:
    assert not NAME.startswith(names.STACK_PREFIX)
    assert shared.tags == {"cost-center": "42"}, "what all its teams have, and not the tag of one team"
    assert shared.termination_protection


def test_each_account_and_region_has_a_stack_of_this_name(
    bundles: Bundles, tmp_path: Path, synthesize: Synthesize
) -> None:
    teams = [EVERY_SETTING, PAYMENTS, ELSEWHERE, TeamConfig(name="plain")]
    here, there = f"{NAME}-{ACCOUNT}-{REGION}", f"{NAME}-{ACCOUNT}-us-east-1"

    assert depends_on(bundles, tmp_path, teams) == {
        "Holdfast-ops": [here],
        "Holdfast-payments": [here],
        "Holdfast-us": [there],
        "Holdfast-plain": [],
    }
    stacks = synthesize(teams, AWS)
    assert {
        stacks[one].only("AWS::CloudTrail::Trail")["Properties"]["TrailName"] for one in (here, there)
    } == {NAME}
    assert {stacks[one].stack_name for one in (here, there)} == {NAME}


def test_a_teams_deployment_brings_its_trail(bundles: Bundles, tmp_path: Path) -> None:
    assert depends_on(bundles, tmp_path, [PAYMENTS]) == {"Holdfast-payments": [NAME]}


def test_for_a_trail_that_exists_nothing_is_made_and_the_selector_is_an_output(
    synthesize: Synthesize,
) -> None:
    stacks = synthesize([replace(PAYMENTS, token_trail="acme-security")], AWS)
    (stack,) = stacks.values()
    output = stack.template["Outputs"]["TokenTrailSelector"]
    assert json.loads(stack.resolve(output["Value"])) == selector("payments")
    assert output["Description"] == "Advanced event selector for the trail acme-security"
    assert not stack.resources("AWS::CloudTrail::Trail")


def test_without_account_and_region_the_selector_is_for_those_of_the_stack(synthesize: Synthesize) -> None:
    (stack,) = synthesize([TeamConfig(name="plain", token_trail="acme-security")], AWS).values()
    output = json.loads(stack.resolve(stack.template["Outputs"]["TokenTrailSelector"]["Value"]))
    assert output["FieldSelectors"][2]["StartsWith"] == records_of("plain", "<AWS::AccountId>-<AWS::Region>")


def test_one_trail_has_selectors_for_249_teams(bundles: Bundles, tmp_path: Path) -> None:
    teams = [replace(PAYMENTS, name=f"t{number}") for number in range(250)]

    with pytest.raises(ConfigError) as error:
        team_stacks(new_app(tmp_path), teams, AWS, bundles)

    assert str(error.value) == (
        f"250 teams of the account {ACCOUNT} in {REGION} have token_trail = true, and one trail has "
        "selectors for 249; write the name of another trail for some of them, as in "
        'token_trail = "acme-security"'
    )


def test_the_local_aws_has_no_trail(synthesize: Synthesize) -> None:
    assert set(synthesize([PAYMENTS], local("https://127.0.0.1:4566"))) == {"Holdfast-payments"}


@pytest.mark.parametrize(
    ("changed", "decision"),
    [
        ({}, "allow"),
        ({"principal": "logging.s3.amazonaws.com"}, "nothing"),
        ({"aws:SourceArn": f"{TRAIL_ARN}-2"}, "nothing"),
        ({"s3:x-amz-acl": "private"}, "nothing"),
        ({"aws:SecureTransport": "false"}, "deny"),
        ({"s3:TlsVersion": "1.1"}, "deny"),
    ],
    ids=str,
)
def test_cloudtrail_writes_to_it_for_this_trail_over_tls_only(
    shared: Synthesized, changed: dict[str, str], decision: str
) -> None:
    policy = bucket_policy(shared.template, "TokenTrailBucket")
    context: dict[str, str | list[str]] = {
        "aws:SecureTransport": "true",
        "s3:TlsVersion": "1.3",
        "aws:SourceArn": TRAIL_ARN,
        "s3:x-amz-acl": "bucket-owner-full-control",
        **changed,
    }
    principal = str(context.pop("principal", "cloudtrail.amazonaws.com"))
    key = f"arn:aws:s3:::tokentrailbucket/AWSLogs/{ACCOUNT}/CloudTrail/x.json.gz"

    assert evaluate(policy, Request("s3:PutObject", key, principal, context)) == decision
    assert len(policy) == 4


def test_the_bucket_lets_cloudtrail_in_before_the_trail_is_made(shared: Synthesized) -> None:
    (policy,) = shared.resources("AWS::S3::BucketPolicy")
    assert shared.only("AWS::CloudTrail::Trail")["DependsOn"] == [policy]
