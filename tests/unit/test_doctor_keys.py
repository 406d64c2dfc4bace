"""The findings of `holdfast doctor` about the KMS keys of a deployed stack."""

import json
from typing import Any

import pytest

from holdfast.template import DeployedTemplate
from holdfast_cli.doctor import kms_keys
from holdfast_cli.doctor.checks import judge
from holdfast_cli.doctor.findings import Level
from tests.unit.test_doctor_team import Client, refusal

ACCOUNT = "123456789012"
OWN, GIVEN, STRANGE = (
    f"arn:aws:kms:eu-central-1:{ACCOUNT}:key/{name}" for name in ("own", "given", "strange")
)
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
WHICH = f"--key-id {GIVEN} --region eu-central-1"


def allow(principal: Any, *actions: str) -> dict[str, Any]:
    return {"Sid": "Use", "Effect": "Allow", "Principal": principal, "Action": list(actions), "Resource": "*"}


USE = ("kms:Decrypt", "kms:GenerateDataKey")
POLICY = {"Statement": [allow({"AWS": ROOT}, *USE)]}
TEMPLATE = DeployedTemplate(
    {
        "Resources": {
            "StateKey": {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": POLICY}},
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "Policies": [
                        {
                            "PolicyDocument": {
                                "Statement": [
                                    {
                                        "Action": [*USE],
                                        "Resource": [{"Fn::GetAtt": ["StateKey", "Arn"]}, GIVEN],
                                    },
                                    {"Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"},
                                ]
                            }
                        }
                    ]
                },
            },
        }
    },
    {"StateKey": "own"},
    *("aws", "eu-central-1", ACCOUNT),
)


def fake_kms(policy: Any = POLICY, **changed: str) -> Any:
    metadata = {
        "KeyState": "Enabled",
        "KeySpec": "SYMMETRIC_DEFAULT",
        "KeyUsage": "ENCRYPT_DECRYPT",
        **changed,
    }
    return Client(
        describe_key=lambda **_: {"KeyMetadata": metadata},
        get_key_policy=lambda **_: {"Policy": json.dumps(policy)},
    )


@pytest.mark.parametrize(
    ("kms", "says"),
    [
        (fake_kms(KeyState="Disabled"), f"Run `aws kms enable-key {WHICH}`."),
        (
            fake_kms(KeyState="PendingDeletion"),
            f"Run `aws kms cancel-key-deletion {WHICH}`, then `aws kms enable-key {WHICH}`.",
        ),
        (fake_kms(KeyState="PendingImport"), "as the documentation of KMS says for this key state"),
        (fake_kms(KeySpec="RSA_2048"), "a symmetric KMS key with the key usage"),
        (fake_kms(KeyUsage="GENERATE_VERIFY_MAC"), "a symmetric KMS key with the key usage"),
        (
            fake_kms({"Statement": [allow({"AWS": ROOT}, "kms:Decrypt")]}),
            f"Allow {ROOT} to use kms:Decrypt and kms:GenerateDataKey",
        ),
        (
            fake_kms({"Statement": [allow({"AWS": f"{ROOT[:-4]}role/a"}, "kms:*")]}),
            f"Allow {ROOT} to use kms:Decrypt and kms:GenerateDataKey",
        ),
        (
            fake_kms({"Statement": {**allow("*", "kms:*"), "Effect": "Deny"}}),
            f"Allow {ROOT} to use kms:Decrypt and kms:GenerateDataKey",
        ),
        (
            Client(describe_key=refusal("NotFoundException", 400)),
            "If the key was deleted, docs/operate/recovery.md says",
        ),
    ],
)
def test_a_key_that_the_functions_cannot_use_is_a_problem_that_says_what_to_do(kms: Any, says: str) -> None:
    [finding] = judge("keys.usable", lambda: kms_keys.usable(kms, GIVEN, ACCOUNT))

    assert finding.level is Level.PROBLEM
    assert GIVEN in finding.text
    assert says in finding.do


@pytest.mark.parametrize(
    "principal", [{"AWS": ROOT}, {"AWS": [ACCOUNT, "arn:aws:iam::999999999999:root"]}, "*"]
)
@pytest.mark.parametrize("actions", [USE, ("kms:*",), ("kms:generate*", "kms:Decrypt")])
def test_a_key_whose_policy_leaves_its_use_to_iam_is_ok(principal: Any, actions: tuple[str, ...]) -> None:
    kms = fake_kms({"Statement": allow(principal, *actions)})
    [finding] = judge("keys.usable", lambda: kms_keys.usable(kms, GIVEN, ACCOUNT))

    assert finding.level is Level.OK


def test_a_key_that_says_nothing_to_the_operator_is_a_note() -> None:
    findings = list(kms_keys.check(Client(), TEMPLATE))

    assert [one.level for one in findings[:3]] == [Level.NOTE] * 3


def test_another_administrator_in_the_policy_of_the_key_is_named() -> None:
    more = {
        "Statement": [*POLICY["Statement"], {**allow({"AWS": f"{ROOT[:-4]}role/a"}, "kms:*"), "Sid": "More"}]
    }

    [difference] = [one for one in kms_keys.check(fake_kms(more), TEMPLATE) if one.level is Level.PROBLEM]
    assert difference.check == "keys.policy"
    assert "the statement More is not in the template" in difference.text


@pytest.mark.parametrize("stale", ["AROAEXAMPLEOFADELETEDROLE", "AIDAEXAMPLEOFADELETEDUSER"])
def test_the_unique_id_of_a_deleted_role_or_user_is_explained_with_what_to_do(stale: str) -> None:
    role = f"{ROOT[:-4]}role/security"
    template = DeployedTemplate(
        {
            "Resources": {
                "StateKey": {
                    "Type": "AWS::KMS::Key",
                    "Properties": {"KeyPolicy": {"Statement": allow({"AWS": role}, "kms:PutKeyPolicy")}},
                }
            }
        },
        {"StateKey": "own"},
        *("aws", "eu-central-1", ACCOUNT),
    )
    kms = fake_kms({"Statement": allow({"AWS": stale}, "kms:PutKeyPolicy")})
    missing, named = [one for one in kms_keys.check(kms, template) if one.check == "keys.policy"]

    assert f"lacks Principal AWS {role}" in missing.text
    assert f"{stale} is the unique ID of a role or user that was deleted." in named.text
    assert "A new one with the same name has another ID." in named.do
    assert "`aws kms put-key-policy`" in named.do
