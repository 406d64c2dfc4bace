"""`from holdfast_cdk import Team, TeamStack`: the stack in an app of somebody else."""

import inspect
import json
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast_cdk
from holdfast_cdk import Memory, Notify, Replica, Retention, Team, TeamStack

# isort: split
import aws_cdk
from aws_cdk import App, Aws, DefaultStackSynthesizer, Environment, Stage, Tags
from aws_cdk import aws_iam as iam
from aws_cdk.cx_api import CloudFormationStackArtifact

from holdfast_cdk.config import ConfigError, load_teams
from holdfast_cdk.lambdas import Bundles
from holdfast_cdk.settings import Table, settings_of
from tests.support.every_setting import EVERY_SETTING
from tests.unit.infra.conftest import ROOT, Synthesized

TOPIC = "arn:aws:sns:eu-central-1:123456789012:holdfast"
TEAMS = [*load_teams(ROOT / "teams.toml"), EVERY_SETTING]


def plain_app(folder: Path) -> App:
    """An app without any feature flag."""
    return App(outdir=str(folder), analytics_reporting=False)


def stack_of(app: App, name: str) -> CloudFormationStackArtifact:
    return app.synth().get_stack_by_name(name)


@pytest.mark.parametrize("team", TEAMS, ids=lambda team: team.name)
def test_an_app_without_feature_flags_makes_the_same_stack(
    team: Team, tmp_path: Path, bundles: Bundles, stacks: dict[str, Synthesized], settled: Synthesized
) -> None:
    app = plain_app(tmp_path)
    TeamStack(app, team, bundles=bundles)

    expected = {**stacks, settled.stack_name: settled}[f"Holdfast-{team.name}"]
    made = stack_of(app, expected.stack_name)
    assert (made.template, dict(made.tags)) == (expected.template, expected.tags)


def test_the_flags_of_an_app_that_cdk_init_makes_change_nothing(
    tmp_path: Path, bundles: Bundles, every_setting_stacks: dict[str, Synthesized]
) -> None:
    [library] = Path(aws_cdk.__file__).parent.glob("_jsii/aws-cdk-lib@*.jsii.tgz")
    with tarfile.open(library) as packed:
        recommended = packed.extractfile("package/recommended-feature-flags.json")
        assert recommended
        flags = json.load(recommended)
    assert len(flags) > 50
    app = App(outdir=str(tmp_path), analytics_reporting=False, context=flags)
    TeamStack(app, EVERY_SETTING, bundles=bundles)

    made = {stack.stack_name: stack.template for stack in app.synth().stacks}
    names = ("Holdfast-ops", "HoldfastReplica-ops")
    assert made == {name: every_setting_stacks[name].template for name in names}


def test_a_stage_changes_neither_the_stacks_nor_their_names(
    tmp_path: Path, bundles: Bundles, every_setting_stacks: dict[str, Synthesized]
) -> None:
    app = plain_app(tmp_path)
    stage = Stage(app, "Production", env=Environment(account="123456789012", region="eu-central-1"))
    TeamStack(stage, replace(EVERY_SETTING, account=None, region=None), bundles=bundles)

    made = app.synth().get_nested_assembly(stage.artifact_id).stacks
    assert sorted(stack.stack_name for stack in made) == ["Holdfast-ops", "HoldfastReplica-ops"]
    for stack in made:
        expected = every_setting_stacks[stack.stack_name]
        assert stack.template == expected.template
        assert (dict(stack.tags), stack.environment.name) == (expected.tags, expected.environment)


def test_a_team_has_its_own_place_before_that_of_its_stage(tmp_path: Path, bundles: Bundles) -> None:
    stage = Stage(
        plain_app(tmp_path), "Production", env=Environment(account="123456789012", region="us-east-1")
    )
    stack = TeamStack(stage, Team(name="payments", region="eu-central-1"), bundles=bundles)

    assert (stack.account, stack.region) == ("123456789012", "eu-central-1")


def test_a_stack_without_a_region_is_for_that_of_the_credentials(tmp_path: Path, bundles: Bundles) -> None:
    app = plain_app(tmp_path)
    stage = Stage(app, "Production", env=Environment(account="123456789012"))
    TeamStack(stage, Team(name="payments"), bundles=bundles)

    [stack] = app.synth().get_nested_assembly(stage.artifact_id).stacks
    assert stack.environment.name == "aws://123456789012/unknown-region"


def test_what_another_stack_needs_is_an_attribute(tmp_path: Path, bundles: Bundles) -> None:
    app = plain_app(tmp_path)
    stack = TeamStack(app, Team(name="payments"), bundles=bundles)
    notified = TeamStack(app, Team(name="ops", notify=Notify(topic=TOPIC)), bundles=bundles)

    outputs = stack_of(app, "Holdfast-payments").template["Outputs"]
    assert stack.resolve(stack.api_address) == outputs["ApiAddress"]["Value"]
    assert stack.resolve(stack.bucket.bucket_name) == outputs["BucketName"]["Value"]
    assert (stack.topic, stack.replica) == (None, None)
    assert notified.topic is not None
    assert notified.topic.topic_arn == TOPIC


def test_what_the_app_has_for_all_its_stacks_is_for_this_one_too(
    tmp_path: Path, bundles: Bundles, default: Synthesized
) -> None:
    app = App(
        outdir=str(tmp_path),
        analytics_reporting=False,
        default_stack_synthesizer=DefaultStackSynthesizer(qualifier="acme"),
    )
    stack = TeamStack(app, Team(name="plain"), bundles=bundles)
    boundary = "arn:aws:iam::123456789012:policy/boundary"
    iam.PermissionsBoundary.of(app).apply(
        iam.ManagedPolicy.from_managed_policy_arn(stack, "Boundary", boundary)
    )
    Tags.of(app).add("owner", "acme")

    made = stack_of(app, "Holdfast-plain")
    assert dict(made.tags) == {**default.tags, "owner": "acme"}
    assert len(made.template["Resources"]) == len(default.template["Resources"])
    roles = [each for each in made.template["Resources"].values() if each["Type"] == "AWS::IAM::Role"]
    assert {role["Properties"].get("PermissionsBoundary") for role in roles} == {boundary}
    text = json.dumps(made.template)
    assert "cdk-acme-" in text
    assert DefaultStackSynthesizer.DEFAULT_QUALIFIER not in text


def test_a_second_stack_of_a_team_is_refused_with_its_name(tmp_path: Path, bundles: Bundles) -> None:
    app = plain_app(tmp_path)
    TeamStack(app, Team(name="payments"), bundles=bundles)

    with pytest.raises(RuntimeError, match="already a Construct with name 'Holdfast-payments'"):
        TeamStack(app, Team(name="payments"), bundles=bundles)


@pytest.mark.parametrize(
    ("team", "settings"),
    [
        (Team(name="Payments"), ""),
        (Team(name="a", region="nowhere"), 'region = "nowhere"'),
        (Team(name="a", account=Aws.ACCOUNT_ID), f'account = "{Aws.ACCOUNT_ID}"'),
        (
            Team(name="a", retention=Retention(mode="governance", days=0)),
            'retention = { mode = "governance", days = 0 }',
        ),
        (Team(name="a", networks=("10.0.0.0/33",)), 'networks = ["10.0.0.0/33"]'),
        (Team(name="a", memory=Memory(cloud=512)), "memory = { cloud = 512 }"),
        (Team(name="a", replica=Replica(region="eu-west-1")), 'replica = { region = "eu-west-1" }'),
        (
            Team(name="a", region="eu-west-1", notify=Notify(topic=TOPIC)),
            f'region = "eu-west-1"\nnotify = {{ topic = "{TOPIC}" }}',
        ),
    ],
    # Not the settings: each process gives a token another number.
    ids=["name", "region", "token", "retention", "networks", "memory", "replica", "topic"],
)
def test_a_wrong_setting_is_refused_with_the_words_of_a_file_and_without_its_name(
    team: Team, settings: str, tmp_path: Path, bundles: Bundles
) -> None:
    path = tmp_path / "teams.toml"
    path.write_text(f"[teams.{team.name}]\n{settings}\n")
    with pytest.raises(ConfigError) as in_a_file:
        load_teams(path)
    with pytest.raises(ConfigError) as refused:
        TeamStack(plain_app(tmp_path), team, bundles=bundles)

    assert f"{path}: {refused.value}" == str(in_a_file.value)
    assert str(refused.value).startswith(f"team '{team.name}': ")
    assert "\n" not in str(refused.value)


def test_every_table_of_settings_can_be_imported_from_the_package() -> None:
    tables = {
        one.kind.members.__name__ for one, _ in settings_of(Team).values() if isinstance(one.kind, Table)
    }
    assert set(holdfast_cdk.__all__) == {"Team", "TeamStack", *tables}
    for name in holdfast_cdk.__all__:
        assert inspect.isclass(getattr(holdfast_cdk, name))
    assert not hasattr(holdfast_cdk, "Bundle")


@pytest.mark.parametrize("name", sorted({*holdfast_cdk.__all__} - {"TeamStack"}))
def test_help_shows_each_setting_of_a_table_with_its_default(name: str) -> None:
    table = getattr(holdfast_cdk, name)
    shown = dict(re.findall(r"^    ([a-z_]+): (.+)$", str(inspect.getdoc(table)), re.MULTILINE))

    assert [*shown] == [*settings_of(table)]
    assert all(re.search(r"\. (Required|Default: .+)\.$", sentence) for sentence in shown.values())
    assert "](" not in str(shown)


def test_help_says_the_default_and_the_unit() -> None:
    assert "    rate: Most routes accept this many requests a second. Default: 100." in str(
        inspect.getdoc(holdfast_cdk.Throttling)
    )
    assert "days: S3 protects each version for this many days after it was written. Required." in str(
        Retention.__doc__
    )
