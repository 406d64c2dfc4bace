"""The policy of the stack's KMS key for a team with `key_administrators`.

KMS's default policy lets IAM decide about everything, so each administrator of the account may delete the
key.
"""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

_READ: Final = ("DescribeKey", "GetKeyPolicy", "GetKeyRotationStatus", "ListResourceTags")
_USE: Final = (
    *("Decrypt", "Encrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom"),
    "ReEncryptTo",
)
_DEPLOY: Final = ("EnableKeyRotation", "PutKeyPolicy", "TagResource", "UntagResource", "UpdateKeyDescription")
_ADMINISTER: Final = (
    *("CancelKeyDeletion", "DisableKey", "DisableKeyRotation", "EnableKey", "ListGrants", "ListKeyRotations"),
    *("RevokeGrant", "RotateKeyOnDemand", "ScheduleKeyDeletion"),
)


def key_policy(stack: Stack, administrators: Sequence[str]) -> iam.PolicyDocument:
    """Return the policy: IAM decides who uses the key, and only the administrators may disable or delete it.

    CloudFormation's role is named because KMS refuses a policy that its caller could not change again.
    """
    deploying = stack.format_arn(
        service="iam",
        region="",
        resource="role",
        resource_name=(
            f"cdk-{stack.synthesizer.bootstrap_qualifier}-cfn-exec-role-{stack.account}-{stack.region}"
        ),
    )
    named = [iam.ArnPrincipal(arn) for arn in administrators]
    return iam.PolicyDocument(
        statements=[
            _allow("UseAsIamSays", [*_USE, *_READ], [iam.AccountPrincipal(stack.account)]),
            _allow("Deploy", [*_DEPLOY, *_READ], [iam.ArnPrincipal(deploying)]),
            _allow("Administer", [*_ADMINISTER, *_DEPLOY, *_READ], named),
        ]
    )


def _allow(sid: str, actions: Sequence[str], principals: Sequence[iam.IPrincipal]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        actions=[f"kms:{action}" for action in sorted(actions)],
        principals=[*principals],
        resources=["*"],  # in a key's policy: this key
    )
