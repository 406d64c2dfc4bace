"""The KMS keys of a team: a change of key in two deployments, and who may administer the stack's own key."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, Final

import pytest

from holdfast_cdk.config import AWS
from holdfast_cdk.functions import ROLES
from holdfast_cdk.team_settings import Team
from tests.support.every_setting import EVERY_SETTING
from tests.support.iam_policy import ACCOUNT, REGION, Request, Statement, bucket_policy, evaluate, resolved
from tests.unit.infra.conftest import Synthesize, Synthesized
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
        team = Team(name="ops", key=key, previous_keys=previous, watch=True)  # it has every role
        return synthesize([team], AWS)["Holdfast-ops"]

    made = {step: stack(*step) for steps in CHANGES.values() for step in steps}
    return {name: [made[step] for step in steps] for name, steps in CHANGES.items()}


def default_key(stack: Synthesized, bucket: str) -> str | None:
    properties = stack.template["Resources"][bucket]["Properties"]
    (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    by_default = resolved(stack.template, rule["ServerSideEncryptionByDefault"])
    assert by_default["SSEAlgorithm"] == ("aws:kms" if "KMSMasterKeyID" in by_default else "AES256")
    key: str | None = by_default.get("KMSMasterKeyID")
    return key


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
                statement.get("Action")
                and action in statement["Action"]
                and arn in str(statement["Resource"])
                for statement in statements
            )
            for action in ("s3:PutObject", "s3:GetObject")
        )
        # Whatever was written until now is under one of the two defaults.
        needed = {("kms:GenerateDataKey", default_key(of_bucket, bucket))} if writes else set()
        if reads:
            needed |= {("kms:Decrypt", default_key(stack, bucket)) for stack in (before, of_bucket)}
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
    assert any("backend: kms:GenerateDataKey" in refusal for refusal in refused(first, last))


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

        usable = {OWN if each == "kms" else each for each in (key, *previous)} - {"s3"}
        assert {each for each in (OWN, A, B, FOREIGN, None) if may("aws:kms", each)} == usable
        assert may("AES256") is (key == "s3")
        assert not may("aws:kms:dsse", A)


# --- the administrators of the stack's own key -------------------------------------------------------

SECURITY, OTHER, DEPLOYING = (
    f"arn:aws:iam::{ACCOUNT}:role/{name}"
    for name in ("security", "administrator", f"cdk-hnb659fds-cfn-exec-role-{ACCOUNT}-{REGION}")
)
WITH_PATH: Final = f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/sso.amazonaws.com/Keys_1a2b"
USER: Final = f"arn:aws:iam::{ACCOUNT}:user/break-glass/ann"
USE: Final = {"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:GetKeyPolicy"}
END: Final = {"kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:RevokeGrant", "kms:CancelKeyDeletion"}
CHANGE: Final = {"kms:PutKeyPolicy", "kms:CreateAlias", "kms:UpdateAlias", "kms:DeleteAlias"}
STALE: Final = "AROAEXAMPLEOFADELETEDROLE"


@pytest.fixture(scope="module")
def administered(synthesize: Synthesize) -> Synthesized:
    administrators = (SECURITY, WITH_PATH, USER)
    return synthesize([replace(EVERY_SETTING, key_administrators=administrators)], AWS)["Holdfast-ops"]


@pytest.fixture(scope="module")
def key_policy(administered: Synthesized) -> list[Statement]:
    policy = administered.only("AWS::KMS::Key")["Properties"]["KeyPolicy"]
    return list(resolved(administered.template, policy["Statement"]))


def may(policy: list[Statement], action: str, principal: str) -> bool:
    """Return whether a key's policy allows an action, if IAM allows it too."""
    return evaluate(policy, Request(action, OWN, principal, {"aws:PrincipalArn": principal})) == "allow"


@pytest.mark.parametrize(
    ("principal", "allowed"),
    [
        *((administrator, USE | END | CHANGE) for administrator in (SECURITY, WITH_PATH, USER)),
        (DEPLOYING, USE | CHANGE),
        (OTHER, USE),
        (f"arn:aws:iam::{ACCOUNT}:root", USE),
        (f"arn:aws:iam::{ACCOUNT}:role/another/security", USE),
        (f"arn:aws:iam::{ACCOUNT}:user/security", USE),
        ("arn:aws:iam::999999999999:role/security", set()),
    ],
)
def test_iam_decides_who_uses_the_key_and_only_the_named_administer_it(
    key_policy: list[Statement], principal: str, allowed: set[str]
) -> None:
    actions = USE | END | CHANGE | {"kms:CreateGrant"}
    assert {action for action in actions if may(key_policy, action, principal)} == allowed


@pytest.mark.parametrize(
    ("principal", "allowed"), [(SECURITY, END | CHANGE), (USER, END | CHANGE), (DEPLOYING, CHANGE)]
)
def test_a_role_or_user_that_was_created_again_has_what_it_had(
    key_policy: list[Statement], principal: str, allowed: set[str]
) -> None:
    # KMS stores the unique ID of a principal, and shows it once the role or user is gone.
    stored = json.loads(
        json.dumps(key_policy).replace(json.dumps({"AWS": principal}), f'{{"AWS": "{STALE}"}}')
    )

    assert {action for action in END | CHANGE if may(stored, action, principal)} == allowed


def test_the_lockout_check_of_kms_need_not_evaluate_a_condition(key_policy: list[Statement]) -> None:
    plain = [statement for statement in key_policy if "Condition" not in statement]

    assert {action for action in USE | END | CHANGE if may(plain, action, DEPLOYING)} == USE | {
        "kms:PutKeyPolicy"
    }


def test_no_other_policy_of_a_resource_has_a_role_or_user_as_principal(synthesize: Synthesize) -> None:
    stacks = synthesize([EVERY_SETTING, Team(name="plain")], AWS).values()
    named = {
        (stack.stack_name, statement.get("Sid"))
        for stack in stacks
        for resource in stack.template["Resources"].values()
        for statement in statements_of(resource["Properties"])
        if isinstance(statement.get("Principal"), dict) and "AWS" in statement["Principal"]
        for principal in listed(resolved(stack.template, statement["Principal"]["AWS"]))
        if not re.fullmatch(rf"\*|arn:aws:iam::{ACCOUNT}:root", principal)
    }

    assert named == {("Holdfast-ops", "KeepChangeable"), ("HoldfastReplica-ops", "KeepChangeable")}


def statements_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield each statement of each policy in a resource's properties."""
    if isinstance(value, dict):
        if "Effect" in value:
            yield value
        value = list(value.values())
    for member in value if isinstance(value, list) else ():
        yield from statements_of(member)


def listed(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]
