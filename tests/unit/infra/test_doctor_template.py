"""`holdfast doctor` understands the templates that are synthesized."""

import pytest

from holdfast.template import DeployedTemplate
from holdfast_cli.doctor import team
from tests.unit.infra.conftest import Synthesized


@pytest.fixture(params=["default", "settled"])
def synthesized(request: pytest.FixtureRequest) -> Synthesized:
    found: Synthesized = request.getfixturevalue(request.param)
    return found


def test_every_reference_of_roles_and_buckets_is_resolved(synthesized: Synthesized) -> None:
    ids = {logical_id: logical_id for logical_id in synthesized.template["Resources"]}
    template = DeployedTemplate(synthesized.template, ids, "aws", "eu-central-1", "123456789012")

    for resource_type in ("AWS::IAM::Role", "AWS::S3::Bucket", "AWS::S3::BucketPolicy"):
        assert list(template.resources(resource_type))


def test_the_rule_that_removes_probes_is_seen(synthesized: Synthesized) -> None:
    assert team.removes_probes(synthesized.template)


def test_every_permission_of_a_role_is_in_the_role_itself(synthesized: Synthesized) -> None:
    types = {resource["Type"] for resource in synthesized.template["Resources"].values()}

    assert types.isdisjoint({"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"})
