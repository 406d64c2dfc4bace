"""The policy of the stack's KMS key for a team with `key_administrators`, and a condition of other policies.

KMS's default policy lets IAM decide about everything, so each administrator of the account may delete the
key.
"""

from collections.abc import Sequence
from typing import Any, Final

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam

_READ: Final = ("DescribeKey", "GetKeyPolicy", "GetKeyRotationStatus", "ListResourceTags")
_USE: Final = (
    *("Decrypt", "Encrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom"),
    "ReEncryptTo",
)
_DEPLOY: Final = (
    *("CreateAlias", "DeleteAlias", "UpdateAlias"),  # KMS wants them of the alias and of the key
    *("EnableKeyRotation", "PutKeyPolicy", "TagResource", "UntagResource", "UpdateKeyDescription"),
)
_ADMINISTER: Final = (
    *("CancelKeyDeletion", "DisableKey", "DisableKeyRotation", "EnableKey", "ListGrants", "ListKeyRotations"),
    *("RevokeGrant", "RotateKeyOnDemand", "ScheduleKeyDeletion"),
)


def key_policy(stack: Stack, administrators: Sequence[str]) -> iam.PolicyDocument:
    """Return the policy: IAM decides who uses the key, and only the administrators may disable or delete it.

    Conditions name roles and users, except in `KeepChangeable`. A principal that is a role or a user must
    exist, and KMS stores its unique ID: created again, it would have the same ARN and no permission.

    `KeepChangeable` is for KMS's lockout check, which refuses a policy unless it lets its caller change it
    again (https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html). AWS does not document
    whether the check evaluates conditions. If CloudFormation's role is created again, this statement is void
    and `Deploy` still allows the next change of the policy, which stores the new role's ID.
    """
    deploying = stack.format_arn(
        service="iam",
        region="",
        resource="role",
        resource_name=(
            f"cdk-{stack.synthesizer.bootstrap_qualifier}-cfn-exec-role-{stack.account}-{stack.region}"
        ),
    )
    account = iam.AccountPrincipal(stack.account)

    def only(*arns: str) -> iam.IPrincipal:
        # The key has the ARN of the role, with its path, for every session of the role.
        return account.with_conditions({"ArnEquals": {"aws:PrincipalArn": [*arns]}})

    return iam.PolicyDocument(
        statements=[
            _allow("UseAsIamSays", [*_USE, *_READ], account),
            _allow("KeepChangeable", ["PutKeyPolicy"], iam.ArnPrincipal(deploying)),
            _allow("Deploy", _DEPLOY, only(deploying)),
            _allow("Administer", [*_ADMINISTER, *_DEPLOY], only(*administrators)),
        ]
    )


def by_s3(region: str, bucket_arn: str) -> dict[str, Any]:
    """Return the condition that S3 of a region uses the key, in requests for a role and for a bucket."""
    # AWS KMS documents the first value. The second is S3's name in China and in isolated partitions, and AWS
    # does not document which of the two KMS uses there. Elsewhere both are the same.
    services = [f"s3.{region}.amazonaws.com", f"s3.{region}.{Aws.URL_SUFFIX}"]
    return {
        "StringEquals": {"kms:ViaService": services},
        # With a bucket key S3 names the bucket, otherwise the object.
        "StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, f"{bucket_arn}/*"]},
    }


def _allow(sid: str, actions: Sequence[str], principal: iam.IPrincipal) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        actions=[f"kms:{action}" for action in sorted(actions)],
        principals=[principal],
        resources=["*"],  # in a key's policy: this key
    )
