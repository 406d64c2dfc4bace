"""The synthesized buckets and the key: their names, lifecycle rules, and whether they outlive the stack."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast_cdk.config import AWS
from holdfast_cdk.lambdas import Bundles
from holdfast_cdk.team_settings import Team
from holdfast_cdk.team_stack import IMPORT, TeamStack
from tests.support.every_setting import EVERY_SETTING
from tests.support.iam_policy import resolved
from tests.support.pages import page, text
from tests.unit.infra.conftest import Synthesize, Synthesized, new_app


def bucket_of(stack: Synthesized, name: str = "StateBucket") -> dict[str, Any]:
    properties: dict[str, Any] = stack.resolve(stack.resources("AWS::S3::Bucket")[name]["Properties"])
    return properties


def test_the_bucket_is_named_after_the_account_and_the_region_that_a_team_names(
    settled: Synthesized, on_this_machine: Synthesized
) -> None:
    assert bucket_of(settled)["BucketName"] == "holdfast-ops-123456789012-eu-central-1"
    assert bucket_of(on_this_machine)["BucketName"] == "holdfast-ops-000000000000-us-east-1"


def test_the_longest_team_name_makes_a_bucket_name_that_s3_takes(synthesize: Synthesize) -> None:
    team = Team(name="a" * 25, account="123456789012", region="ap-southeast-1")
    (stack,) = synthesize([team], AWS).values()
    assert len(bucket_of(stack)["BucketName"]) <= 63


# --- retention and lifecycle ----------------------------------------------------------------------


def test_no_rule_ever_removes_a_current_object_but_a_session_or_a_probe(
    stack: Synthesized, settled: Synthesized
) -> None:
    for bucket in (bucket_of(stack), bucket_of(settled)):
        for rule in bucket["LifecycleConfiguration"]["Rules"]:
            removes = {"ExpirationInDays", "ExpirationDate", "Transitions"} & rule.keys()
            assert not removes or rule["Prefix"] in ("sessions/", "probes/")


# --- what outlives the stack ----------------------------------------------------------------------

UNLESS_THE_FIRST_DEPLOYMENT_FAILS = ("RetainExceptOnCreate", "Retain")
KEPT_LOG = ("AWS::Logs::LogGroup", *UNLESS_THE_FIRST_DEPLOYMENT_FAILS)
KEPT_LOGS = dict.fromkeys(
    (
        *("BackendLog", "CloudLog", "ManagementLog", "AuthorizerLog", "SessionsLog", "HealthLog"),
        *("ConsoleLog", "AuditTrailLog", "Audit", "AccessLog"),
    ),
    KEPT_LOG,
)


def kept(stack: Synthesized) -> dict[str, tuple[str, str, str]]:
    """Return type and policies of each resource that stays when the stack goes."""
    return {
        name: (resource["Type"], resource["DeletionPolicy"], resource["UpdateReplacePolicy"])
        for name, resource in stack.template["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }


def test_buckets_key_and_logs_outlive_the_stack_under_names_that_do_not_change(stack: Synthesized) -> None:
    assert kept(stack) == {
        "StateKey": ("AWS::KMS::Key", "Retain", "Retain"),
        "StateBucket": ("AWS::S3::Bucket", *UNLESS_THE_FIRST_DEPLOYMENT_FAILS),
        "AccessLogsBucket": ("AWS::S3::Bucket", *UNLESS_THE_FIRST_DEPLOYMENT_FAILS),
        **KEPT_LOGS,
    }


def test_the_file_for_an_import_has_each_of_them_by_its_name(stacks: dict[str, Synthesized]) -> None:
    stack = stacks["Holdfast-payments"]
    mapped = json.loads(text(page("kept-resources.json")))

    assert mapped.keys() == kept(stack).keys()
    for logical_id, [(name, value)] in ((each, tuple(names.items())) for each, names in mapped.items()):
        given = stack.template["Resources"][logical_id]["Properties"].get(name, value)
        assert resolved(stack.template, given) == value


def references(value: Any) -> Iterator[str]:
    """The resources to which a part of a template refers."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case dict():
            for part in value.values():
                yield from references(part)
        case list():
            for part in value:
                yield from references(part)
        case _:
            pass


@pytest.mark.parametrize("team", [Team(name="ops"), EVERY_SETTING], ids=["default", "every setting"])
def test_what_cdk_import_brings_back_refers_to_nothing_else(
    bundles: Bundles, tmp_path: Path, team: Team
) -> None:
    """CloudFormation refuses a template that refers to resources that are not in it yet."""
    [command] = re.findall(r"`npx cdk import .* -c (\w+)=true .*`", text(page("removing.md")))
    assert command == IMPORT
    app = new_app(tmp_path)
    app.node.set_context(IMPORT, "true")
    TeamStack(app, team, bundles=bundles)
    resources = app.synth().get_stack_by_name("Holdfast-ops").template["Resources"]
    imported = {
        name: resource
        for name, resource in resources.items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }

    needed = {
        name
        for resource in imported.values()
        for name in (*references(resource), *resource.get("DependsOn", ()))
    }

    assert "StateBucket" in imported
    assert {name for name in needed if not name.startswith("AWS::")} <= imported.keys()
