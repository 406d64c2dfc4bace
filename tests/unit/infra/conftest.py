"""Stacks synthesized once for all tests, with a stub for the functions' code."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import holdfast_cdk  # noqa: F401 before aws_cdk, because it sets how aws_cdk starts

# isort: split
from aws_cdk import App

from holdfast_cdk.bundle import Bundle
from holdfast_cdk.config import AWS, Target, load_teams, local
from holdfast_cdk.functions import FUNCTIONS
from holdfast_cdk.lambdas import Bundles
from holdfast_cdk.sources import fields_read, sources_of
from holdfast_cdk.team_settings import Team
from holdfast_cdk.team_stack import TeamStack
from tests.support.every_setting import EVERY_SETTING, IN_ANOTHER_REGION

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Synthesized:
    """A stack as it would be deployed.

    CloudFormation gives `tags` to everything in it. `environment` is account and region. The CDK command
    prints `warnings`.
    """

    stack_name: str
    template: dict[str, Any]
    tags: dict[str, str]
    termination_protection: bool
    environment: str
    warnings: list[str]

    def resources(self, resource_type: str) -> dict[str, dict[str, Any]]:
        """The resources of one type by logical ID."""
        return {
            name: resource
            for name, resource in self.template["Resources"].items()
            if resource["Type"] == resource_type
        }

    def only(self, resource_type: str) -> dict[str, Any]:
        (resource,) = self.resources(resource_type).values()
        return resource

    def function(self, handler: str) -> tuple[str, dict[str, Any]]:
        """The logical ID and the properties of the function with this handler."""
        ((name, function),) = (
            (name, function["Properties"])
            for name, function in self.resources("AWS::Lambda::Function").items()
            if function["Properties"]["Handler"] == handler
        )
        return name, function

    def role(self, name: str) -> dict[str, Any]:
        """The properties of a role of `ROLES`."""
        (role,) = (
            role["Properties"]
            for role in self.resources("AWS::IAM::Role").values()
            if role["Properties"].get("Description", "").startswith(f"Holdfast {name} of team ")
        )
        properties: dict[str, Any] = role
        return properties

    def role_arn(self, name: str) -> str:
        """The ARN of a role that has a name of its own."""
        account = self.environment.split("/")[2]
        return (
            f"arn:<AWS::Partition>:iam::{'<AWS::AccountId>' if 'unknown' in account else account}:role/"
            f"{self.resolve(self.role(name)['RoleName'])}"
        )

    def resolve(self, value: Any) -> Any:
        """Replace references by words that are easy to compare, such as `<StateBucket.Arn>`."""
        match value:
            case {"Ref": str(name)}:
                return f"<{name}>"
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return f"<{name}.{attribute}>"
            case {"Fn::Join": [str(separator), list(parts)]}:
                return separator.join(self.resolve(part) for part in parts)
            case dict():
                return {key: self.resolve(item) for key, item in value.items()}
            case list():
                return [self.resolve(item) for item in value]
            case _:
                return value


Synthesize = Callable[[Sequence[Team], Target], dict[str, Synthesized]]


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Bundles:
    """A stub for the functions' code."""
    code = tmp_path_factory.mktemp("code")
    (code / "handler.py").touch()
    return {
        spec.name: Bundle(
            spec.folder, code, digit * 64, fields_read(sources_of(ROOT / "functions", spec.folder))
        )
        for spec, digit in zip(FUNCTIONS, "bf9ace8d7", strict=True)
    }


def new_app(outdir: Path) -> App:
    """An app with the settings of cdk.json."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    return App(context=context, outdir=str(outdir), analytics_reporting=False)


@pytest.fixture(scope="session")
def synthesize(tmp_path_factory: pytest.TempPathFactory, bundles: Bundles) -> Synthesize:
    """Make the stacks of some teams, with the settings of cdk.json."""

    def synthesize(teams: Sequence[Team], target: Target) -> dict[str, Synthesized]:
        app = new_app(tmp_path_factory.mktemp("cdk.out"))
        for team in teams:
            TeamStack(app, team, target=target, bundles=bundles)
        assembly = app.synth()
        manifest = json.loads((Path(assembly.directory) / "manifest.json").read_text())
        assert not manifest.get("missing"), "the app looks something up"
        return {
            stack.id: Synthesized(
                stack_name=stack.stack_name,
                template=stack.template,
                tags=dict(stack.tags),
                termination_protection=bool(stack.termination_protection),
                environment=stack.environment.name,
                warnings=_warnings(Path(assembly.directory) / f"{stack.id}.metadata.json"),
            )
            for stack in assembly.stacks
        }

    return synthesize


def _warnings(metadata: Path) -> list[str]:
    entries = [entry for of_one in json.loads(metadata.read_text()).values() for entry in of_one]
    return [entry["data"] for entry in entries if entry["type"] == "aws:cdk:warning"]


@pytest.fixture(scope="session")
def stacks(synthesize: Synthesize) -> dict[str, Synthesized]:
    """The two example teams, as `cdk synth` makes them."""
    return synthesize(load_teams(ROOT / "teams.toml"), AWS)


@pytest.fixture(scope="session", params=["platform", "payments"])
def team(request: pytest.FixtureRequest) -> str:
    """Each example team's name."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def stack(stacks: dict[str, Synthesized], team: str) -> Synthesized:
    """Each example team's stack."""
    return stacks[f"Holdfast-{team}"]


@pytest.fixture(scope="session")
def default(synthesize: Synthesize) -> Synthesized:
    """A team without any setting."""
    return synthesize([Team(name="plain")], AWS)["Holdfast-plain"]


@pytest.fixture(scope="session")
def settled(synthesize: Synthesize) -> Synthesized:
    """A team with every setting."""
    return synthesize([EVERY_SETTING], AWS)["Holdfast-ops"]


@pytest.fixture(scope="session")
def on_this_machine(synthesize: Synthesize) -> Synthesized:
    """The same team on the local AWS."""
    return synthesize([EVERY_SETTING], local("https://127.0.0.1:4566"))["Holdfast-ops"]


@pytest.fixture(scope="session")
def every_setting_stacks(synthesize: Synthesize) -> dict[str, Synthesized]:
    """The stacks of a team with every setting, and of such a team in another region."""
    return synthesize([EVERY_SETTING, IN_ANOTHER_REGION], AWS)
