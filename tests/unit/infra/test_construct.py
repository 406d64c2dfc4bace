"""`from holdfast_cdk import Team, TeamStack`: the stack in an app of somebody else."""

import inspect
from pathlib import Path

import pytest

import holdfast_cdk
from holdfast_cdk import Memory, Retention, Team, TeamStack

# isort: split
from aws_cdk import App, Stage
from aws_cdk.cx_api import CloudFormationStackArtifact

from holdfast_cdk.config import ConfigError, load_teams
from holdfast_cdk.lambdas import Bundles
from holdfast_cdk.settings import Table, settings_of
from tests.support.every_setting import EVERY_SETTING
from tests.unit.infra.conftest import ROOT, Synthesized

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


def test_a_stack_in_a_stage_has_the_name_by_which_the_command_finds_it(
    tmp_path: Path, bundles: Bundles
) -> None:
    app = plain_app(tmp_path)
    stage = Stage(app, "Production")
    TeamStack(stage, EVERY_SETTING, bundles=bundles)

    assembly = app.synth().get_nested_assembly(stage.artifact_id)
    assert sorted(stack.stack_name for stack in assembly.stacks) == ["Holdfast-ops", "HoldfastReplica-ops"]


def test_what_another_stack_needs_is_an_attribute(tmp_path: Path, bundles: Bundles) -> None:
    app = plain_app(tmp_path)
    stack = TeamStack(app, Team(name="payments"), bundles=bundles)

    outputs = stack_of(app, "Holdfast-payments").template["Outputs"]
    assert stack.resolve(stack.api_address) == outputs["ApiAddress"]["Value"]
    assert stack.resolve(stack.bucket.bucket_name) == outputs["BucketName"]["Value"]
    assert stack.replica is None


@pytest.mark.parametrize(
    ("team", "says"),
    [
        (Team(name="Payments"), "'Payments': write a name of"),
        (Team(name="a", region="nowhere"), 'region = "nowhere" is not allowed'),
        (Team(name="a", retention=Retention(mode="governance", days=0)), "retention.days = 0 is not allowed"),
        (Team(name="a", networks=("10.0.0.0/33",)), "networks"),
        (Team(name="a", memory=Memory(cloud=512)), "memory.cloud = 512 is too little"),
    ],
)
def test_a_setting_is_checked_as_in_a_file(team: Team, says: str, tmp_path: Path, bundles: Bundles) -> None:
    with pytest.raises(ConfigError) as refused:
        TeamStack(plain_app(tmp_path), team, bundles=bundles)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_table_of_settings_can_be_imported_from_the_package() -> None:
    tables = {
        one.kind.members.__name__ for one, _ in settings_of(Team).values() if isinstance(one.kind, Table)
    }
    assert set(holdfast_cdk.__all__) == {"Team", "TeamStack", *tables}
    for name in holdfast_cdk.__all__:
        assert inspect.isclass(getattr(holdfast_cdk, name))
    assert not hasattr(holdfast_cdk, "Bundle")
