"""cfn-lint and cdk-nag find nothing in any stack, and find a deliberate fault."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import holdfast_cdk  # noqa: F401 before aws_cdk, because it sets how aws_cdk starts

# isort: split
from aws_cdk import App, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

from holdfast_cdk.config import load_teams
from holdfast_cdk.lambdas import Bundles
from holdfast_cdk.team_stack import TeamStack
from tests.support.every_setting import EVERY_SETTING
from tests.unit.infra.conftest import ROOT, new_app

Fault = Callable[[Stack], object]

STACKS: Final = {"Holdfast-platform", "Holdfast-payments", "Holdfast-ops", "HoldfastReplica-ops"}


def checked_app(outdir: Path, bundles: Bundles) -> tuple[App, list[TeamStack]]:
    """The example teams and one with every setting, under AwsSolutions."""
    app = new_app(outdir)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    teams = [*load_teams(ROOT / "teams.toml"), EVERY_SETTING]
    return app, [TeamStack(app, team, bundles=bundles) for team in teams]


def violations(outdir: Path) -> set[tuple[str, str]]:
    """The findings of the checks at synthesis: rule, and path of the construct."""
    report = json.loads((outdir / "validation-report.json").read_text())
    return {
        (violation["ruleName"], construct["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    }


def acknowledgments(metadata: Path) -> Iterator[tuple[str, str]]:
    """The rules that a stack acknowledges, and the reasons."""
    for entries in json.loads(metadata.read_text()).values():
        for entry in entries:
            if entry["type"] == Validations.ACKNOWLEDGED_RULES_METADATA_KEY:
                yield from entry["data"].items()


@pytest.fixture(scope="module")
def synthesized(tmp_path_factory: pytest.TempPathFactory, bundles: Bundles) -> Path:
    """The folder of the stacks. It exists only if cdk-nag and CDK's own rules find nothing."""
    outdir = tmp_path_factory.mktemp("checked")
    app, _ = checked_app(outdir, bundles)
    app.synth()
    return outdir


def test_cdk_nag_finds_nothing_in_any_stack(synthesized: Path) -> None:
    assert {path.name.split(".")[0] for path in synthesized.glob("*.template.json")} == STACKS
    assert violations(synthesized) == set()


def open_bucket(stack: Stack) -> None:
    """A bucket without TLS and without an access log."""
    s3.Bucket(stack, "Fault")


def role_for_everything(stack: Stack) -> None:
    """A role that may do everything."""
    role = iam.Role(stack, "Fault", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    role.add_to_policy(iam.PolicyStatement(actions=["s3:*"], resources=["*"]))


@pytest.mark.parametrize(
    ("fault", "rules"),
    [
        (open_bucket, {"AwsSolutions-S1", "AwsSolutions-S10"}),
        (role_for_everything, {"AwsSolutions-IAM5[Action::s3:*]", "AwsSolutions-IAM5[Resource::*]"}),
    ],
)
def test_cdk_nag_finds_a_fault_in_a_stack_of_ours(
    tmp_path: Path, bundles: Bundles, fault: Fault, rules: set[str]
) -> None:
    app, (stack, *_) = checked_app(tmp_path, bundles)
    fault(stack)
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    found = violations(tmp_path)
    assert {rule for rule, _ in found} == rules
    assert all(path.startswith("Holdfast-platform/Fault") for _, path in found)


def test_nothing_is_acknowledged_that_is_not_found_and_nothing_without_a_reason(synthesized: Path) -> None:
    acknowledged = {
        (stack, rule, reason)
        for stack in STACKS
        for rule, reason in acknowledgments(synthesized / f"{stack}.metadata.json")
    }
    report = json.loads((synthesized / "validation-report.json").read_text())
    suppressed = {
        (found["acknowledgedAt"].partition("/")[0], found["acknowledgedId"], found["reason"])
        for plugin in report["pluginReports"]
        for found in plugin["suppressedViolations"]
    }
    assert all(reason.endswith(".") for _, _, reason in acknowledged)
    # The report leaves out the findings of other parts of CDK.
    assert {entry for entry in acknowledged if entry[1].startswith("AwsSolutions::")} == suppressed


# --- cfn-lint -------------------------------------------------------------------------------------

# W3005: CDK writes DependsOn where a reference implies it already.
CFN_LINT_COMMAND: Final = Path(sys.executable).with_name("cfn-lint")
CFN_LINT: Final = (
    *(CFN_LINT_COMMAND, "--ignore-checks", "W3005", "--regions", "eu-central-1"),
    *("--format", "parseable"),
)


def test_cfn_lint_finds_a_fault_and_nothing_in_any_stack(synthesized: Path, tmp_path: Path) -> None:
    templates = sorted(synthesized.glob("*.template.json"))
    assert len(templates) == len(STACKS)
    template: dict[str, Any] = json.loads((synthesized / "Holdfast-platform.template.json").read_text())
    template["Resources"]["StateBucket"]["Properties"]["Encryption"] = True
    faulty = tmp_path / "faulty.template.json"
    faulty.write_text(json.dumps(template))
    ended = subprocess.run([*CFN_LINT, "--", *templates, faulty], capture_output=True, text=True, check=False)
    (found,) = ended.stdout.splitlines()
    assert found.startswith(f"{faulty}:")
    assert "'Encryption' was unexpected" in found
    assert (ended.returncode, ended.stderr) == (2, "")
