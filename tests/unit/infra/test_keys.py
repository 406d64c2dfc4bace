"""The KMS keys of a team: a change of key in two deployments, and who may administer the stack's own key."""

import json
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any, Final

import pytest

from infra.config import AWS, TeamConfig
from infra.functions import ROLES
from tests.support.iam_policy import ACCOUNT, REGION, Request, Statement, bucket_policy, evaluate, resolved
from tests.support.pages import page, text
from tests.unit.infra.conftest import EVERY_SETTING, Synthesize, Synthesized
from tests.unit.infra.test_bucket_policy import TLS, encrypted
from tests.unit.infra.test_stacks import differing_paths

KEYS: Final = f"arn:aws:kms:{REGION}:{ACCOUNT}:key"
A, B = (f"{KEYS}/{digit * 8}-0000-4000-8000-000000000000" for digit in "ab")
OWN, FOREIGN = f"{KEYS}/statekey", f"{KEYS}/another"
CHANGES: Final = {
    "own to A": [("kms", ()), ("kms", (A,)), (A, ("kms",))],
    "A to B": [(A, ()), (A, (B,)), (B, (A,))],
    "A to own": [(A, ()), (A, ("kms",)), ("kms", (A,))],
    "s3 to A": [("s3", ()), ("s3", (A,)), (A, ())],
    "s3 to own": [("s3", ()), ("s3", ("kms",)), ("kms", ())],
    "A to s3": [(A, ()), ("s3", (A,))],
}
"""The deployments of each change, one after another: `key` and `previous_keys`."""
each_change = pytest.mark.parametrize("change", CHANGES)


@pytest.fixture(scope="module")
def deployments(synthesize: Synthesize) -> dict[str, list[Synthesized]]:
    def stack(key: str, previous: tuple[str, ...]) -> Synthesized:
        team = TeamConfig(name="ops", key=key, previous_keys=previous, watch=True)  # it has every role
        return synthesize([team], AWS)["Holdfast-ops"]

    made = {step: stack(*step) for steps in CHANGES.values() for step in steps}
    return {name: [made[step] for step in steps] for name, steps in CHANGES.items()}


def default_key(stack: Synthesized, bucket: str) -> str | None:
    properties = stack.template["Resources"][bucket]["Properties"]
    (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    by_default = resolved(stack.template, rule["ServerSideEncryptionByDefault"])
    assert by_default["SSEAlgorithm"] == ("aws:kms" if "KMSMasterKeyID" in by_default else "AES256")
    found: str | None = by_default.get("KMSMasterKeyID")
    return found


def refused(before: Synthesized, after: Synthesized) -> Iterator[str]:
    """Yield what a client would be refused while a deployment is applied, resource by resource.

    Each refusal depends on one bucket and one policy, so every pair of them, each as before or as after, is
    every order in which CloudFormation may update them.
    """
    sides = (before, after)
    for bucket, (of_bucket, of_role), spec in product(
        ("StateBucket", "StagingBucket"), product(sides, sides), ROLES
    ):
        (inline,) = of_role.role(spec.name)["Policies"]
        statements = resolved(of_role.template, inline["PolicyDocument"]["Statement"])
        arn = resolved(of_role.template, {"Fn::GetAtt": [bucket, "Arn"]})
        context: Any = {
            "kms:ViaService": f"s3.{REGION}.amazonaws.com",
            "kms:EncryptionContext:aws:s3:arn": arn,
        }
        writes, reads = (
            any(
                statement.get("Action") and one in statement["Action"] and arn in str(statement["Resource"])
                for statement in statements
            )
            for one in ("s3:PutObject", "s3:GetObject")
        )
        # Whatever was written until now is under one of the two defaults.
        needed = {("kms:GenerateDataKey", default_key(of_bucket, bucket))} if writes else set()
        if reads:
            needed |= {("kms:Decrypt", default_key(one, bucket)) for one in (before, of_bucket)}
        for action, key in needed:
            if key and evaluate(statements, Request(action, key, context=context)) != "allow":
                yield f"{spec.name}: {action} with {key} in {bucket}"


@each_change
def test_a_writer_and_a_reader_are_refused_nothing_during_the_deployments(
    deployments: dict[str, list[Synthesized]], change: str
) -> None:
    for before, after in pairwise(deployments[change]):
        assert list(refused(before, after)) == []


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "A to s3"])
def test_in_one_deployment_a_writer_would_be_refused(
    deployments: dict[str, list[Synthesized]], change: str
) -> None:
    first, *_, last = deployments[change]
    assert any("backend: kms:GenerateDataKey" in one for one in refused(first, last))


@pytest.mark.parametrize("change", ["own to A", "A to B", "A to own"])
def test_the_second_deployment_changes_the_default_of_the_buckets_alone(
    deployments: dict[str, list[Synthesized]], change: str
) -> None:
    _, first, second = deployments[change]
    assert {path.split("/")[2] for path in differing_paths(first.template, second.template)} == {
        "StateBucket",
        "StagingBucket",
    }


@each_change
def test_a_client_may_name_the_keys_of_the_team_and_no_other(
    deployments: dict[str, list[Synthesized]], change: str
) -> None:
    for (key, previous), stack in zip(CHANGES[change], deployments[change], strict=True):
        policy = bucket_policy(stack.template)

        def may(algorithm: str, named: str | None = None, policy: list[Any] = policy) -> bool:
            where = f"arn:aws:s3:::holdfast-ops-{ACCOUNT}-{REGION}/states/a.tfstate"
            context = {**TLS, **encrypted(algorithm, named)}
            return evaluate(policy, Request("s3:PutObject", where, context=context)) == "nothing"

        usable = {OWN if one == "kms" else one for one in (key, *previous)} - {"s3"}
        assert {one for one in (OWN, A, B, FOREIGN, None) if may("aws:kms", one)} == usable
        assert may("AES256") is (key == "s3")
        assert not may("aws:kms:dsse", A)


# --- the administrators of the stack's own key -------------------------------------------------------

SECURITY, OTHER, DEPLOYING = (
    f"arn:aws:iam::{ACCOUNT}:role/{name}"
    for name in ("security", "administrator", f"cdk-hnb659fds-cfn-exec-role-{ACCOUNT}-{REGION}")
)
USE: Final = {"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:GetKeyPolicy"}
END: Final = {"kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:RevokeGrant", "kms:CancelKeyDeletion"}


@pytest.fixture(scope="module")
def key_policy(settled: Synthesized) -> list[Statement]:
    policy = settled.only("AWS::KMS::Key")["Properties"]["KeyPolicy"]
    return list(resolved(settled.template, policy["Statement"]))


@pytest.mark.parametrize(
    ("principal", "allowed"),
    [
        (SECURITY, USE | END | {"kms:PutKeyPolicy"}),
        (DEPLOYING, USE | {"kms:PutKeyPolicy"}),
        (OTHER, USE),  # if IAM allows it, too
        ("arn:aws:iam::999999999999:role/security", set()),
    ],
)
def test_iam_decides_who_uses_the_key_and_only_the_named_administer_it(
    key_policy: list[Statement], principal: str, allowed: set[str]
) -> None:
    actions = USE | END | {"kms:PutKeyPolicy", "kms:CreateGrant"}
    assert EVERY_SETTING.key_administrators == (SECURITY,)
    assert {
        one for one in actions if evaluate(key_policy, Request(one, OWN, principal)) == "allow"
    } == allowed


def test_the_deploying_role_may_do_with_the_key_what_a_deployment_does(key_policy: list[Statement]) -> None:
    document = json.loads(text(page("deployment-policy.json")))
    needed = {action for one in document["Statement"] if one["Sid"] == "Keys" for action in one["Action"]}

    assert needed
    assert {one for one in needed if evaluate(key_policy, Request(one, OWN, DEPLOYING)) == "allow"} == needed
