"""The bucket that holds a team's states, and the key that encrypts them. Both outlive the stack."""

from typing import cast

from aws_cdk import Aws, CfnResource, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.config import TeamConfig


class StateStore(Construct):
    """The state store of one team.

    What can only be chosen when the bucket is made is chosen here, for good: its name and Object Lock
    (enabled, without a default retention).

    Attributes:
        key: encrypts every object of the bucket.
        bucket: named after team, account and region. A name of its own is a safeguard: a stack that is
            deployed anew beside a bucket that stayed fails, where it would otherwise start with an empty
            history and let Terraform create everything a second time.
    """

    def __init__(self, scope: Construct, construct_id: str, team: TeamConfig) -> None:
        super().__init__(scope, construct_id)
        self.key = kms.Key(
            self,
            "Key",
            description=f"Holdfast: encrypts the states of team {team.name}",
            enable_key_rotation=True,
            # Without the key the whole history is lost.
            removal_policy=RemovalPolicy.RETAIN,
        )
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=f"holdfast-{team.name}-{team.account or Aws.ACCOUNT_ID}-{team.region or Aws.REGION}",
            versioned=True,
            object_lock_enabled=True,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            # Kept, unless it is the stack's first deployment that fails: the next try then needs the name.
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        # Fixed, because a kept resource is taken into a new stack under this name (docs/deploying.md), and
        # because a resource whose name changes is a new resource.
        fix_logical_id(self.key, "StateKey")
        fix_logical_id(self.bucket, "StateBucket")


def fix_logical_id(construct: Construct, logical_id: str) -> None:
    """Give a construct's resource a name in the template that does not follow from where it stands."""
    cast("CfnResource", construct.node.default_child).override_logical_id(logical_id)
