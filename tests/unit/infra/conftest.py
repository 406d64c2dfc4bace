"""Stacks synthesized once for all tests, with a stub for the functions' code."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import infra  # noqa: F401 before aws_cdk, because it says how that is to start

# isort: split
from aws_cdk import App

from infra.bundle import Bundle
from infra.config import Target, TeamConfig
from infra.lambdas import Bundles
from infra.team_stack import TeamStack

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Synthesized:
    """A stack as it would be deployed."""

    template: dict[str, Any]
    tags: dict[str, str]
    termination_protection: bool
    environment: str

    def resources(self, resource_type: str) -> dict[str, dict[str, Any]]:
        """The resources of one type by logical ID."""
        return {
            name: resource
            for name, resource in self.template["Resources"].items()
            if resource["Type"] == resource_type
        }

    def only(self, resource_type: str) -> dict[str, Any]:
        """The one resource of a type."""
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
        return value


Synthesize = Callable[[Sequence[TeamConfig], Target], dict[str, Synthesized]]


@pytest.fixture(scope="session")
def synthesize(tmp_path_factory: pytest.TempPathFactory) -> Synthesize:
    """Make the stacks of some teams, with the settings of cdk.json."""
    code = tmp_path_factory.mktemp("code")
    (code / "handler.py").touch()
    bundles = Bundles(backend=Bundle(code, "b" * 64), authorizer=Bundle(code, "a" * 64))

    def synthesize(teams: Sequence[TeamConfig], target: Target) -> dict[str, Synthesized]:
        app = App(
            context=json.loads((ROOT / "cdk.json").read_text())["context"],
            outdir=str(tmp_path_factory.mktemp("cdk.out")),
            analytics_reporting=False,
        )
        for team in teams:
            TeamStack(app, team, target, bundles)
        assembly = app.synth()
        manifest = json.loads((Path(assembly.directory) / "manifest.json").read_text())
        assert not manifest.get("missing"), "the app looks something up"
        return {
            stack.stack_name: Synthesized(
                template=stack.template,
                tags=dict(stack.tags),
                termination_protection=bool(stack.termination_protection),
                environment=stack.environment.name,
            )
            for stack in assembly.stacks
        }

    return synthesize
