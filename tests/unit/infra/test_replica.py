"""The replica of a state bucket: its stack, and what the team's stack has for it."""

from dataclasses import replace
from typing import Any

import pytest

from holdfast import team as names
from infra.config import AWS, History, Replica, TeamConfig
from tests.support.iam_policy import ACCOUNT, REGION, Request, bucket_policy, evaluate, resolved
from tests.unit.infra.conftest import Synthesize, Synthesized

THERE = "eu-west-1"
TEAM = TeamConfig(
    name="copied", account=ACCOUNT, region=REGION, replica=Replica(region=THERE), history=History(days=30)
)
ROLE = f"arn:aws:iam::{ACCOUNT}:role/Holdfast-copied-{REGION}-replication"
HERE_BUCKET, THERE_BUCKET = (names.bucket_name("copied", ACCOUNT, region) for region in (REGION, THERE))


@pytest.fixture(scope="module")
def made(synthesize: Synthesize) -> dict[str, Synthesized]:
    """A team with a key, and one without, each with its replica; and what the first has once it has moved."""
    moved = replace(TEAM, name="moved", region=THERE, replica=None)
    return synthesize([TEAM, replace(TEAM, name="plain", key="s3"), moved], AWS)


def bucket(stack: Synthesized) -> dict[str, Any]:
    found: dict[str, Any] = stack.resolve(stack.template["Resources"]["StateBucket"]["Properties"])
    return found


def test_the_replica_is_what_a_stack_of_the_team_in_that_region_imports(
    made: dict[str, Synthesized],
) -> None:
    replica, moved = made["HoldfastReplica-copied"], made["Holdfast-moved"]
    assert (replica.environment, replica.tags) == (f"aws://{ACCOUNT}/{THERE}", {})
    assert "Outputs" not in replica.template
    of_both = [bucket(stack) for stack in (replica, moved)]
    assert of_both[0].pop("BucketName") == THERE_BUCKET
    assert of_both[1].pop("BucketName") == THERE_BUCKET.replace("copied", "moved")
    for one in of_both:
        one.pop("LoggingConfiguration", None)
        one.pop("Tags", None)
    assert of_both[0] == of_both[1]
    for name in ("StateBucket", "StateKey"):
        ours, theirs = (stack.template["Resources"][name] for stack in (replica, moved))
        assert (ours["Type"], ours["DeletionPolicy"]) == (theirs["Type"], theirs["DeletionPolicy"])


def test_everything_is_copied_with_the_deletions(made: dict[str, Synthesized]) -> None:
    role = ROLE.replace("arn:aws", "arn:<AWS::Partition>")
    target: dict[str, Any] = {"Bucket": f"arn:<AWS::Partition>:s3:::{THERE_BUCKET}"}
    alias = f"arn:<AWS::Partition>:kms:{THERE}:{ACCOUNT}:alias/holdfast-copied-replica"
    rule = {
        "Id": "everything",
        "Priority": 0,
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "DeleteMarkerReplication": {"Status": "Enabled"},
    }
    with_key = rule | {
        "SourceSelectionCriteria": {"SseKmsEncryptedObjects": {"Status": "Enabled"}},
        "Destination": target | {"EncryptionConfiguration": {"ReplicaKmsKeyID": alias}},
    }
    assert bucket(made["Holdfast-copied"])["ReplicationConfiguration"] == {"Role": role, "Rules": [with_key]}
    [plain] = bucket(made["Holdfast-plain"])["ReplicationConfiguration"]["Rules"]
    assert plain == rule | {"Destination": {"Bucket": target["Bucket"].replace("copied", "plain")}}
    named = made["HoldfastReplica-copied"].only("AWS::KMS::Alias")["Properties"]["AliasName"]
    assert alias.endswith(f":{named}")
    assert not made["HoldfastReplica-plain"].resources("AWS::KMS::Key")
    assert "Replication" not in str(made["Holdfast-moved"].template)


@pytest.mark.parametrize("action", ["s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"])
def test_nobody_but_s3_writes_to_a_replica(made: dict[str, Synthesized], action: str) -> None:
    policy = bucket_policy(made["HoldfastReplica-copied"].template)
    secure = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3"}

    def effect(principal: str) -> str:
        context = {**secure, "aws:PrincipalArn": principal}
        return evaluate(policy, Request(action, f"arn:aws:s3:::{THERE_BUCKET}/states/a", principal, context))

    assert (effect(f"arn:aws:iam::{ACCOUNT}:root"), effect(ROLE)) == ("deny", "nothing")


@pytest.mark.parametrize(
    ("action", "resource", "effect"),
    [
        ("s3:GetObjectVersionForReplication", f"arn:aws:s3:::{HERE_BUCKET}/states/a.tfstate", "allow"),
        ("s3:GetObjectRetention", f"arn:aws:s3:::{HERE_BUCKET}/states/a.tfstate", "allow"),
        ("s3:ReplicateDelete", f"arn:aws:s3:::{THERE_BUCKET}/states/a.tfstate", "allow"),
        ("s3:ReplicateObject", f"arn:aws:s3:::{HERE_BUCKET}/states/a.tfstate", "nothing"),
        ("s3:ReplicateObject", "arn:aws:s3:::holdfast-other-1/states/a.tfstate", "nothing"),
        ("s3:GetObjectVersionForReplication", f"arn:aws:s3:::{THERE_BUCKET}/states/a.tfstate", "nothing"),
        ("s3:PutObject", f"arn:aws:s3:::{THERE_BUCKET}/states/a.tfstate", "nothing"),
    ],
)
def test_the_role_copies_from_one_bucket_to_the_other_of_the_same_account(
    made: dict[str, Synthesized], action: str, resource: str, effect: str
) -> None:
    stack = made["HoldfastReplica-copied"]
    [inline] = stack.only("AWS::IAM::Role")["Properties"]["Policies"]
    statements = resolved(stack.template, inline["PolicyDocument"]["Statement"])

    def may(account: str) -> str:
        return evaluate(statements, Request(action, resource, context={"s3:ResourceAccount": account}))

    assert (may(ACCOUNT), may("999999999999")) == (effect, "nothing")


def test_each_key_is_for_s3_of_its_region_and_the_bucket_there(made: dict[str, Synthesized]) -> None:
    replica, team = made["HoldfastReplica-copied"], made["Holdfast-copied"]
    [inline] = replica.only("AWS::IAM::Role")["Properties"]["Policies"]
    encrypts = resolved(replica.template, inline["PolicyDocument"]["Statement"])
    key = team.template["Resources"]["StateKey"]["Properties"]["KeyPolicy"]["Statement"]
    decrypts = [one for one in resolved(team.template, key) if one.get("Sid") == "Replication"]
    [key_of_replica] = {one["Resource"] for one in encrypts if one["Sid"] == "Encrypt"}
    assert decrypts[0]["Principal"] == {"AWS": ROLE}

    for statements, action, resource, region, name in (
        (encrypts, "kms:Encrypt", key_of_replica, THERE, THERE_BUCKET),
        (decrypts, "kms:Decrypt", "any", REGION, HERE_BUCKET),
    ):
        for service, encrypted, effect in (
            (f"s3.{region}.amazonaws.com", f"arn:aws:s3:::{name}", "allow"),
            (f"s3.{region}.amazonaws.com", f"arn:aws:s3:::{name}-other", "nothing"),
            ("s3.us-east-1.amazonaws.com", f"arn:aws:s3:::{name}", "nothing"),
        ):
            context = {"kms:ViaService": service, "kms:EncryptionContext:aws:s3:arn": encrypted}
            assert evaluate(statements, Request(action, resource, ROLE, context)) == effect
