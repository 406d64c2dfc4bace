"""examples/cdk: a company's own CDK app, which has the stack that teams.toml makes for the same settings."""

import json
import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

import holdfast_cdk  # noqa: F401 before aws_cdk, because it sets how aws_cdk starts

# isort: split
from aws_cdk import Stage, Validations
from aws_cdk.cx_api import CloudAssembly
from cdk_nag import AwsSolutionsChecks

from holdfast_cdk import bundle
from holdfast_cdk.config import AWS, load_teams
from holdfast_cdk.lambdas import Bundles
from tests.unit.infra.conftest import ROOT, Synthesize
from tests.unit.infra.test_checks import CFN_LINT

EXAMPLE = ROOT / "examples" / "cdk"
AS_A_FILE = """
[teams.platform]
account = "123456789012"
region = "eu-central-1"
retention = { mode = "governance", days = 30 }
notify = { topic = "arn:aws:sns:eu-central-1:123456789012:holdfast" }
tags = { cost-center = "42" }
"""
"""The teams file with the example's settings."""


@pytest.fixture(scope="module")
def assembly(bundles: Bundles) -> CloudAssembly:
    """The stacks of the example's stage, which cdk-nag has judged too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundle, "bundles", lambda *_, **__: bundles)
        patch.setenv("CDK_VALIDATION", "false")
        app = runpy.run_path(str(EXAMPLE / "app.py"))["app"]
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    [stage] = [child for child in app.node.children if isinstance(child, Stage)]
    made: CloudAssembly = app.synth(force=True).get_nested_assembly(stage.artifact_id)
    return made


def template(assembly: CloudAssembly, name: str) -> dict[str, Any]:
    [found] = [stack.template for stack in assembly.stacks if stack.stack_name == name]
    made: dict[str, Any] = found
    return made


def test_it_sets_no_feature_flag() -> None:
    assert json.loads((EXAMPLE / "cdk.json").read_text()) == {"app": "python app.py"}


def test_its_team_has_the_template_that_a_teams_file_with_its_settings_has(
    assembly: CloudAssembly, synthesize: Synthesize, tmp_path: Path
) -> None:
    path = tmp_path / "teams.toml"
    path.write_text(AS_A_FILE)
    expected = synthesize(load_teams(path), AWS)["Holdfast-platform"]

    made = template(assembly, "Holdfast-platform")
    exports = [name for name in made["Outputs"] if name not in expected.template["Outputs"]]
    assert all(re.fullmatch("ExportsOutput(FnGetAttApi|RefStateBucket).*", name) for name in exports)
    assert len(exports) == 2
    for name in exports:
        del made["Outputs"][name]
    assert made == expected.template
    [stack] = [stack for stack in assembly.stacks if stack.stack_name == "Holdfast-platform"]
    assert dict(stack.tags) == expected.tags
    assert stack.environment.name == expected.environment


def test_the_other_stack_has_the_outputs(assembly: CloudAssembly) -> None:
    [name] = {stack.stack_name for stack in assembly.stacks} - {"Holdfast-platform"}
    resources = template(assembly, name)["Resources"].values()

    imported = {
        each["Properties"]["Name"]: each["Properties"]["Value"]["Fn::ImportValue"]
        for each in resources
        if each["Type"] == "AWS::SSM::Parameter"
    }
    assert "ApiEndpoint" in imported["/terraform/address"]
    assert "StateBucket" in imported["/terraform/bucket"]
    [mail] = [each for each in resources if each["Type"] == "AWS::SNS::Subscription"]
    assert mail["Properties"]["TopicArn"] == "arn:aws:sns:eu-central-1:123456789012:holdfast"


def test_cfn_lint_finds_nothing_in_its_stacks(assembly: CloudAssembly) -> None:
    templates = sorted(Path(assembly.directory).glob("*.template.json"))
    assert len(templates) == 2
    ended = subprocess.run([*CFN_LINT, "--", *templates], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
