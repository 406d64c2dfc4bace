"""The findings of `holdfast doctor` about the KMS keys of a deployed stack, and the key of each object."""

import json
from typing import Any, cast

import pytest

from holdfast import watching
from holdfast.template import DeployedTemplate
from holdfast_cli.doctor import kms_keys
from holdfast_cli.doctor.checks import judge
from holdfast_cli.doctor.findings import Finding, Level
from tests.unit.test_doctor_team import Client, refusal

ACCOUNT = "123456789012"
OWN, GIVEN, STRANGE = (
    f"arn:aws:kms:eu-central-1:{ACCOUNT}:key/{name}" for name in ("own", "given", "strange")
)
ROOT = f"arn:aws:iam::{ACCOUNT}:root"


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


class Listing:
    """The one page of a list of objects."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        return [{"Contents": [{"Key": name} for name in self._names]}]


def found(objects: dict[str, Any], kms: Any = None) -> list[Finding]:
    """Look at a bucket with these objects: name -> its key, or what HeadObject raises."""

    def head(*, Key: str, **_: object) -> Any:  # noqa: N803 the SDK's name
        if callable(objects[Key]):
            objects[Key]()
        return {"SSEKMSKeyId": objects[Key]} if objects[Key] else {}

    s3 = Client(head_object=head, get_paginator=lambda _: Listing(*objects))
    return list(kms_keys.check(kms or fake_kms(), cast("Any", s3), "b", TEMPLATE))


def problems(findings: list[Finding]) -> dict[str, str]:
    return {one.check: f"{one.text} {one.do}" for one in findings if one.level is Level.PROBLEM}


def test_objects_are_counted_under_each_key_that_the_functions_may_use() -> None:
    findings = found(
        {"states/a": OWN, "states/b": OWN, "tokens/c": None, "gone": refusal("404", 404), "probes/d": STRANGE}
        | {watching.secret_key("e"): refusal("403", 403)}
    )

    assert problems(findings) == {}
    [said] = [one.text for one in findings if one.check == "keys.objects"]
    assert (
        said
        == f"The functions may read every current object: 1 under keys of S3, 0 under {GIVEN}, 2 under {OWN}."
    )


def test_a_state_under_another_key_is_named_with_the_key_to_write() -> None:
    said = problems(found({"states/a": OWN, **{f"states/b{number}": STRANGE for number in range(7)}}))

    assert said == {
        "keys.objects": f"The functions may not use the key {STRANGE} of states/b0, states/b1, states/b2, "
        f'states/b3, states/b4 and 2 more. Add "{STRANGE}" to previous_keys, and deploy.'
    }


def test_objects_that_the_operator_may_not_look_at_are_a_note_that_hides_no_other_object() -> None:
    denied = {f"states/a{number}": refusal("403", 403) for number in range(6)}
    strange, hidden = [one for one in found({**denied, "states/b": STRANGE}) if one.check == "keys.objects"]
    _, others = [one for one in found({**denied, "states/b": OWN}) if one.check == "keys.objects"]

    assert (strange.level, hidden.level) == (Level.PROBLEM, Level.NOTE)
    assert "states/b" in strange.text
    assert hidden.text == (
        "Could not look at states/a0, states/a1, states/a2, states/a3, states/a4 and 1 more: AWS denies it."
    )
    assert others.text.startswith("The functions may read every other current object: ")


@pytest.mark.parametrize(
    ("kms", "says"),
    [
        (fake_kms(KeyState="Disabled"), f"Run `aws kms enable-key --key-id {GIVEN}`."),
        (fake_kms(KeyState="PendingDeletion"), f"Run `aws kms cancel-key-deletion --key-id {GIVEN}`, then"),
        (fake_kms(KeySpec="RSA_2048"), "Write the ARN of a symmetric key"),
        (fake_kms(KeyUsage="GENERATE_VERIFY_MAC"), "Write the ARN of a symmetric key"),
        (fake_kms({"Statement": [allow({"AWS": ROOT}, "kms:Decrypt")]}), f"Allow both to {ROOT}"),
        (fake_kms({"Statement": [allow({"AWS": f"{ROOT[:-4]}role/a"}, "kms:*")]}), f"Allow both to {ROOT}"),
        (fake_kms({"Statement": {**allow("*", "kms:*"), "Effect": "Deny"}}), f"Allow both to {ROOT}"),
        (Client(describe_key=refusal("NotFoundException", 400)), "Write the ARN of a key that exists"),
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
    findings = found({}, Client())

    assert [one.level for one in findings[:3]] == [Level.NOTE] * 3


def test_another_administrator_in_the_policy_of_the_key_is_named() -> None:
    more = {
        "Statement": [*POLICY["Statement"], {**allow({"AWS": f"{ROOT[:-4]}role/a"}, "kms:*"), "Sid": "More"}]
    }

    assert "the statement More is additional" in problems(found({}, fake_kms(more)))["keys.policy"]


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
    missing, named = [
        one
        for one in kms_keys.check(kms, cast("Any", Client(get_paginator=lambda _: Listing())), "b", template)
        if one.check == "keys.policy"
    ]

    assert f"lacks Principal AWS {role}" in missing.text
    assert f"{stale} is the unique ID of a role or user that was deleted." in named.text
    assert "A new role or user of the same name has another ID." in named.do
    assert "`aws kms put-key-policy`" in named.do
