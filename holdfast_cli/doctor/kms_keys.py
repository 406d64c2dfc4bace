"""Looks at the KMS keys of a team: whether they can be used, and who administers them."""

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from holdfast.template import DeployedTemplate
from holdfast_cli.doctor.checks import attempt, existing, judge
from holdfast_cli.doctor.deployed import compare, policy_differences
from holdfast_cli.doctor.findings import REVERT, Finding, Level, Outcome, problem

_NEEDED: Final = frozenset({"kms:Decrypt", "kms:GenerateDataKey"})
_UNIQUE_ID: Final = re.compile(r"\bA(?:RO|ID)A[A-Z0-9]{8,}\b")
"""The ID of a role or user, which KMS shows in place of an ARN once that role or user is deleted."""
_STALE: Final = (
    "The policy has the ID of a role or user that was deleted. A new one with the same name has another ID. "
    f"{REVERT} If CloudFormation may not change the policy, an administrator of the key must change it with "
    "`aws kms put-key-policy`, as docs/operate/keys.md says."
)


def of_functions(template: DeployedTemplate) -> list[str]:
    """Return the keys that the deployed functions may use."""
    return sorted(
        {
            arn
            for _, role in template.resources("AWS::IAM::Role")
            for policy in role["Policies"]
            for statement in policy["PolicyDocument"]["Statement"]
            if "kms:GenerateDataKey" in _listed(statement["Action"])
            for arn in _listed(statement["Resource"])
        }
    )


def check(kms: Any, template: DeployedTemplate) -> Iterator[Finding]:
    """Yield whether each key can be used, and has its policy."""
    for key in of_functions(template):
        yield from judge("keys.usable", partial(usable, kms, key, template.account))
    yield from attempt("keys.policy", lambda: _policies(kms, template))


def usable(kms: Any, key: str, account: str) -> Iterator[Outcome]:
    """Yield whether S3 can encrypt with a key, and whether IAM of the account can allow that."""
    described = existing(kms.describe_key, "NotFoundException", KeyId=key)
    if described is None:
        yield (
            Level.PROBLEM,
            f"There is no key {key}.",
            "If teams.toml has this ARN, check it. If the key was deleted, docs/operate/recovery.md says "
            "what to do.",
        )
        return
    found = described["KeyMetadata"]
    if (found["KeySpec"], found["KeyUsage"]) != ("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT"):
        yield (
            Level.PROBLEM,
            f"S3 cannot encrypt with the key {key}, which has the key spec {found['KeySpec']} and the key "
            f"usage {found['KeyUsage']}.",
            "In the setting `key`, write the ARN of a symmetric KMS key with the key usage ENCRYPT_DECRYPT. "
            "From `previous_keys`, remove this ARN.",
        )
        return
    if (state := found["KeyState"]) != "Enabled":
        which = f"--key-id {key} --region {key.split(':')[3]}"
        enable = f"`aws kms enable-key {which}`."
        match state:
            case "Disabled":
                do = f"Run {enable}"
            case "PendingDeletion":
                do = f"Run `aws kms cancel-key-deletion {which}`, then {enable}"
            case _:
                do = "Make the key usable again, as the documentation of KMS says for this key state."
        yield (
            Level.PROBLEM,
            f"The key {key} is {state}, so the objects that are encrypted with it cannot be read.",
            do,
        )
        return
    policy = json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
    if missing := _NEEDED - set(_allowed(policy, account)):
        root = f"arn:{key.split(':')[1]}:iam::{account}:root"
        yield (
            Level.PROBLEM,
            (
                f"The policy of the key {key} does not let IAM policies of the account {account} allow "
                f"{', '.join(sorted(missing))}."
            ),
            f"Allow {root} to use kms:Decrypt and kms:GenerateDataKey in the key's policy. "
            "docs/operate/keys.md shows the statement.",
        )
    else:
        yield Level.OK, f"The functions can use the key {key}."


def _allowed(policy: Mapping[str, Any], account: str) -> Iterator[str]:
    """Yield the needed actions that a key's policy leaves to IAM of an account, whatever the conditions."""
    for statement in _listed(policy["Statement"]):
        principal = statement.get("Principal", {})
        accounts = ["*"] if principal == "*" else _listed(principal.get("AWS", []))
        if statement["Effect"] != "Allow" or not any(
            one in ("*", account) or re.fullmatch(f"arn:[^:]+:iam::{account}:root", one) for one in accounts
        ):
            continue
        for action in _NEEDED:
            if any(fnmatchcase(action.lower(), one.lower()) for one in _listed(statement.get("Action", []))):
                yield action


def _policies(kms: Any, template: DeployedTemplate) -> Iterator[Finding]:
    """Yield whether the policy of the stack's key, with its administrators, is as in the template."""
    for logical_id, wanted in template.resources("AWS::KMS::Key"):
        key = template.resolve({"Ref": logical_id})
        found = kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"]
        alike = "The policy of the stack's key is as in the template."
        differences = policy_differences(f"the key {key}", wanted["KeyPolicy"], found)
        yield from map(_explained, compare("keys.policy", alike, differences))


def _explained(difference: Finding) -> Finding:
    stale = _UNIQUE_ID.search(difference.text)
    if not stale:
        return difference
    text = f"{difference.text} {stale[0]} is the unique ID of a role or user that was deleted."
    return problem(difference.check, text, _STALE)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
