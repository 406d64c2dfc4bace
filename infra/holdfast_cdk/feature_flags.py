"""The feature flags of the CDK on which the templates depend. Their values here hold in every app."""

from collections.abc import Mapping
from typing import Final

from aws_cdk import Stack

FEATURE_FLAGS: Final[Mapping[str, bool]] = {
    "@aws-cdk/aws-s3:createDefaultLoggingPolicy": True,
    "@aws-cdk/aws-s3:publicAccessBlockedByDefault": True,
    "@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy": True,
    "@aws-cdk/core:checkSecretUsage": True,
    # With this flag, versions of unchanged functions have other logical IDs. Lambda refuses such a version.
    "@aws-cdk/aws-lambda:recognizeLayerVersion": False,
    "@aws-cdk/aws-iam:minimizePolicies": False,
    "@aws-cdk/core:enablePartitionLiterals": False,
}


def fix_feature_flags(stack: Stack) -> None:
    """Give an empty stack these values, whatever its app has."""
    for flag, value in FEATURE_FLAGS.items():
        stack.node.set_context(flag, value)
