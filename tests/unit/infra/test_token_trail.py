"""The CloudTrail trail for records of tokens and trust: shared by teams, or a trail of the user's own.

The tests read the template alone: the local AWS's CloudFormation makes no trail.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from infra.config import AWS, TeamConfig, local
from infra.lambdas import Bundles
from infra.team_stack import team_stacks
from tests.support.iam_policy import ACCOUNT, REGION
from tests.unit.infra.conftest import EVERY_SETTING, Synthesize, Synthesized, new_app

NAME = "HoldfastTokenTrail"
TRAIL_ARN = f"arn:aws:cloudtrail:{REGION}:{ACCOUNT}:trail/{NAME}"
PAYMENTS = TeamConfig(
    name="payments", account=ACCOUNT, region=REGION, token_trail=True, tags={"cost-center": "42", "a": "b"}
)
ELSEWHERE = replace(PAYMENTS, name="us", region="us-east-1")


def records_of(team: str, place: str = f"{ACCOUNT}-{REGION}") -> list[str]:
    """The ARNs in a selector for a team."""
    return [f"arn:<AWS::Partition>:s3:::holdfast-{team}-{place}/{folder}/" for folder in ("tokens", "trust")]


def selector(*teams: str) -> dict[str, object]:
    """The advanced event selector for the records of some teams; without `readOnly` it selects reads too."""
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
    """The trail that two teams share, beside teams that do not."""
    teams = [
        *(EVERY_SETTING, PAYMENTS),
        replace(PAYMENTS, name="none", token_trail=False),
        replace(PAYMENTS, name="other", token_trail="acme-security"),
    ]
    return synthesize(teams, AWS)[NAME]


def depends_on(bundles: Bundles, folder: Path, teams: Sequence[TeamConfig]) -> dict[str, list[str]]:
    """The stacks on which each team's stack depends."""
    made = team_stacks(new_app(folder), teams, AWS, bundles)
    return {stack.stack_name: [one.node.id for one in stack.dependencies] for stack in made}


def test_teams_of_an_account_and_region_share_one_trail_with_reads_and_writes_of_their_records(
    shared: Synthesized,
) -> None:
    assert shared.environment == f"aws://{ACCOUNT}/{REGION}"
    trail = shared.resolve(shared.only("AWS::CloudTrail::Trail")["Properties"])
    assert trail["AdvancedEventSelectors"] == [selector("ops", "payments")]
    # The records stay as long as the longest audit trail of these teams.
    rules = shared.template["Resources"]["TokenTrailBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    assert [rule["ExpirationInDays"] for rule in rules] == [731]


def test_each_account_and_region_has_a_stack_of_this_name(
    bundles: Bundles, tmp_path: Path, synthesize: Synthesize
) -> None:
    teams = [EVERY_SETTING, PAYMENTS, ELSEWHERE, TeamConfig(name="plain")]
    here, there = f"{NAME}-{ACCOUNT}-{REGION}", f"{NAME}-{ACCOUNT}-us-east-1"

    assert depends_on(bundles, tmp_path, teams) == {
        "Holdfast-ops": [here, "HoldfastDashboard", "HoldfastReplica-ops"],
        "Holdfast-payments": [here],
        "Holdfast-us": [there],
        "Holdfast-plain": [],
    }
    stacks = synthesize(teams, AWS)
    assert {
        stacks[one].only("AWS::CloudTrail::Trail")["Properties"]["TrailName"] for one in (here, there)
    } == {NAME}
    assert {stacks[one].stack_name for one in (here, there)} == {NAME}


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


def test_the_local_aws_has_no_trail(synthesize: Synthesize) -> None:
    assert set(synthesize([PAYMENTS], local("https://127.0.0.1:4566"))) == {"Holdfast-payments"}
