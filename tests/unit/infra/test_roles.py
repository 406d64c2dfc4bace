"""The conditions of the roles' statements, and who may assume the role for transfers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast_cdk.config import AWS, load_teams
from holdfast_cdk.functions import FUNCTIONS, ROLES, SIGN_ADDRESSES, RoleSpec
from tests.support.aws_permissions import allowed
from tests.support.iam_policy import ACCOUNT, REGION, Request, Statement, bucket_policy, evaluate, resolved
from tests.unit.infra.conftest import ROOT, Synthesize, Synthesized

each_role = pytest.mark.parametrize("spec", ROLES, ids=lambda spec: str(spec.name))


@pytest.fixture(scope="module")
def stacks(synthesize: Synthesize) -> dict[str, Synthesized]:
    """The two example teams, with every function."""
    return synthesize([replace(team, watch=True) for team in load_teams(ROOT / "teams.toml")], AWS)


@pytest.fixture(scope="module")
def stack(stacks: dict[str, Synthesized], team: str) -> Synthesized:
    return stacks[f"Holdfast-{team}"]


def statements(stack: Synthesized, spec: RoleSpec) -> list[Statement]:
    [policy] = stack.role(spec.name)["Policies"]
    return list(resolved(stack.template, policy["PolicyDocument"]["Statement"]))


def permissions(stack: Synthesized, spec: RoleSpec, service: str) -> Iterator[tuple[str, str]]:
    """Yield the actions of a service with the resources for which the role has them."""
    return ((one, on) for one, on in allowed(statements(stack, spec)) if one.startswith(f"{service}:"))


@each_role
def test_a_bucket_of_another_account_is_out_of_reach(stack: Synthesized, spec: RoleSpec) -> None:
    for action, resource in permissions(stack, spec, "s3"):
        for account, effect in ((ACCOUNT, "allow"), ("999999999999", "nothing")):
            request = Request(action, resource, context={"s3:ResourceAccount": account})
            assert evaluate(statements(stack, spec), request) == effect, request


@each_role
def test_the_key_is_for_objects_of_the_buckets_that_the_role_uses(
    stacks: dict[str, Synthesized], spec: RoleSpec
) -> None:
    stack = stacks["Holdfast-payments"]  # it has a key of its own
    buckets = {on.partition("/")[0] for _, on in permissions(stack, spec, "s3") if "/" in on}
    assert bool(buckets) == bool(list(permissions(stack, spec, "kms")))

    def may(action: str, encrypts: str) -> bool:
        context: dict[str, Any] = {
            "kms:ViaService": f"s3.{REGION}.amazonaws.com",
            "kms:EncryptionContext:aws:s3:arn": encrypts,
        }
        (key,) = {on for _, on in permissions(stack, spec, "kms")}
        return evaluate(statements(stack, spec), Request(action, key, context=context)) == "allow"

    reads = {"kms:Decrypt": ("s3:GetObject", "s3:GetObjectVersion"), "kms:GenerateDataKey": ("s3:PutObject",)}
    for bucket in buckets:
        for action, by in reads.items():
            uses = any(
                one in by and on.startswith(f"{bucket}/") for one, on in permissions(stack, spec, "s3")
            )
            # S3 names the bucket, which has a bucket key; without one S3 would name the object.
            assert may(action, bucket) is may(action, f"{bucket}/states/a.tfstate") is uses, (action, bucket)
            assert not may(action, f"{bucket}-of-another-team"), bucket


def test_only_functions_that_sign_addresses_may_assume_the_role_for_transfers(stack: Synthesized) -> None:
    trust = resolved(stack.template, stack.role("transfers")["AssumeRolePolicyDocument"]["Statement"])
    names = {
        name: role["Properties"]["Description"].split()[1]
        for name, role in stack.resources("AWS::IAM::Role").items()
    }

    may = {
        function
        for logical_id, function in names.items()
        for arn in [f"arn:aws:iam::{ACCOUNT}:role/{logical_id.lower()}"]
        if evaluate(trust, Request("sts:AssumeRole", "*", arn, {"aws:PrincipalArn": arn})) == "allow"
    }

    assert may == {spec.name for spec in FUNCTIONS if SIGN_ADDRESSES in spec.grants} != set()
    assert [one["Principal"] for one in trust] == [{"AWS": f"arn:aws:iam::{ACCOUNT}:root"}]


@pytest.mark.parametrize(("age", "effect"), [("900000", "nothing"), ("900001", "deny")])
def test_an_old_signature_is_refused_at_the_staging_bucket(stack: Synthesized, age: str, effect: str) -> None:
    policy = bucket_policy(stack.template, "StagingBucket")
    context = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.2", "s3:signatureAge": age}
    upload = Request("s3:PutObject", "arn:aws:s3:::stagingbucket/uploads/a", "anybody", context)
    assert evaluate(policy, upload) == effect
