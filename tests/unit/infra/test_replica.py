"""The replica of a state bucket: its stack, and what the team's stack has for it."""

import re
from dataclasses import replace
from typing import Any

import pytest

from holdfast import team as names
from holdfast_cdk import keys
from holdfast_cdk.config import AWS
from holdfast_cdk.functions import ROLES, STATE_BUCKET
from holdfast_cdk.team_settings import History, Replica, Team
from holdfast_cli.bucket import recovering
from tests.support.iam_policy import ACCOUNT, REGION, Request, bucket_policy, evaluate, resolved
from tests.support.pages import DOCS, text
from tests.unit.infra.conftest import Synthesize, Synthesized

THERE = "eu-west-1"
TEAM = Team(
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
    properties: dict[str, Any] = stack.resolve(stack.template["Resources"]["StateBucket"]["Properties"])
    return properties


def test_the_replica_is_what_a_stack_of_the_team_in_that_region_imports(
    made: dict[str, Synthesized],
) -> None:
    replica, moved = made["HoldfastReplica-copied"], made["Holdfast-moved"]
    assert (replica.environment, replica.tags) == (f"aws://{ACCOUNT}/{THERE}", {})
    assert "Outputs" not in replica.template
    of_both = [bucket(stack) for stack in (replica, moved)]
    assert of_both[0].pop("BucketName") == THERE_BUCKET
    assert of_both[1].pop("BucketName") == THERE_BUCKET.replace("copied", "moved")
    for properties in of_both:
        properties.pop("LoggingConfiguration", None)
        properties.pop("NotificationConfiguration", None)  # an import leaves it out
        properties.pop("Tags", None)
    assert of_both[0] == of_both[1]
    for name in ("StateBucket", "StateKey"):
        ours, theirs = (stack.template["Resources"][name] for stack in (replica, moved))
        assert (ours["Type"], ours["DeletionPolicy"]) == (theirs["Type"], theirs["DeletionPolicy"])


COPIED = ["states", "tokens", "trust", "workspaces", "freezes"]


def test_what_a_recovery_needs_is_copied_with_the_deletions(made: dict[str, Synthesized]) -> None:
    role = ROLE.replace("arn:aws", "arn:<AWS::Partition>")
    target: dict[str, Any] = {"Bucket": f"arn:<AWS::Partition>:s3:::{THERE_BUCKET}"}
    alias = f"arn:<AWS::Partition>:kms:{THERE}:{ACCOUNT}:alias/holdfast-copied-replica"
    rules = [
        {
            "Id": folder,
            "Priority": priority,
            "Status": "Enabled",
            "Filter": {"Prefix": f"{folder}/"},
            "DeleteMarkerReplication": {"Status": "Enabled"},
        }
        for priority, folder in enumerate(COPIED)
    ]
    with_key = {
        "SourceSelectionCriteria": {"SseKmsEncryptedObjects": {"Status": "Enabled"}},
        "Destination": target | {"EncryptionConfiguration": {"ReplicaKmsKeyID": alias}},
    }
    assert bucket(made["Holdfast-copied"])["ReplicationConfiguration"] == {
        "Role": role,
        "Rules": [rule | with_key for rule in rules],
    }
    without = {"Destination": {"Bucket": target["Bucket"].replace("copied", "plain")}}
    plain = bucket(made["Holdfast-plain"])["ReplicationConfiguration"]["Rules"]
    assert plain == [rule | without for rule in rules]
    named = made["HoldfastReplica-copied"].only("AWS::KMS::Alias")["Properties"]["AliasName"]
    assert alias.endswith(f":{named}")
    assert not made["HoldfastReplica-plain"].resources("AWS::KMS::Key")
    assert "Replication" not in str(made["Holdfast-moved"].template)


def test_each_folder_of_the_state_bucket_is_copied_or_a_recovery_leaves_it_out() -> None:
    patterns = [
        place.keys
        for spec in ROLES
        for grant in spec.grants
        for place in grant.on
        if place.resource == STATE_BUCKET.resource and place.keys
    ]
    assert {keys.folder(pattern) for pattern in patterns} == {
        *(f"{folder}/" for folder in COPIED),
        *recovering.NOT_COPIED,
    }


@pytest.mark.parametrize(
    "action",
    [
        *("s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"),
        *("s3:PutObjectTagging", "s3:PutObjectVersionTagging", "s3:UpdateObjectEncryption"),
        *("s3:PutObjectRetention", "s3:BypassGovernanceRetention"),
    ],
)
def test_nobody_but_s3_writes_to_a_replica(made: dict[str, Synthesized], action: str) -> None:
    policy = bucket_policy(made["HoldfastReplica-copied"].template)
    secure = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3"}

    def effect(principal: str) -> str:
        context = {**secure, "aws:PrincipalArn": principal}
        return evaluate(policy, Request(action, f"arn:aws:s3:::{THERE_BUCKET}/states/a", principal, context))

    assert (effect(f"arn:aws:iam::{ACCOUNT}:root"), effect(ROLE)) == ("deny", "nothing")


def refused(stack: Synthesized) -> set[str]:
    """Return the actions that the policy of a state bucket denies for a state."""
    actions: set[str] = set()
    for statement in bucket_policy(stack.template):
        if statement["Effect"] == "Deny" and statement["Action"] != "s3:*":
            actions |= (
                {statement["Action"]} if isinstance(statement["Action"], str) else {*statement["Action"]}
            )
    return actions


def test_a_replica_refuses_what_the_state_bucket_refuses(made: dict[str, Synthesized]) -> None:
    of_readers = {"s3:GetObject", "s3:GetObjectVersion"}  # of the probe's credentials, which are not copied
    assert refused(made["Holdfast-copied"]) - of_readers <= refused(made["HoldfastReplica-copied"])


def test_each_statement_that_a_document_names_is_in_a_policy(
    made: dict[str, Synthesized], settled: Synthesized
) -> None:
    named = set(re.findall(r"\bRefuse[A-Z]\w+", "".join(map(text, DOCS.rglob("*.md")))))
    stacks = [made["Holdfast-copied"], made["HoldfastReplica-copied"], settled]
    there = {statement["Sid"] for stack in stacks for statement in bucket_policy(stack.template)}

    assert named
    assert named - there == set()


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


def permissions(stack: Synthesized) -> list[Any]:
    """The resolved statements of the replication role's own policy."""
    [inline] = stack.only("AWS::IAM::Role")["Properties"]["Policies"]
    return list(resolved(stack.template, inline["PolicyDocument"]["Statement"]))


def by_s3(region: str, name: str, service: str | None = None) -> dict[str, Any]:
    """The context of a call to KMS that S3 makes for a bucket."""
    return {
        "kms:ViaService": service or f"s3.{region}.amazonaws.com",
        "kms:EncryptionContext:aws:s3:arn": f"arn:aws:s3:::{name}",
        "aws:PrincipalArn": ROLE,
    }


def test_the_key_of_the_replica_is_for_s3_there_and_the_bucket(made: dict[str, Synthesized]) -> None:
    statements = permissions(made["HoldfastReplica-copied"])
    [key] = {statement["Resource"] for statement in statements if statement["Sid"] == "Encrypt"}

    for region, name, effect in (
        (THERE, THERE_BUCKET, "allow"),
        (THERE, f"{THERE_BUCKET}-other", "nothing"),
        ("us-east-1", THERE_BUCKET, "nothing"),
    ):
        context = by_s3(region, name)
        assert evaluate(statements, Request("kms:Encrypt", key, ROLE, context)) == effect


OWN = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1a2b3c4d-1111-4222-8333-444455556666"
"""The ID is KMS's, so that the replica's stack cannot know it."""
BROUGHT = OWN.replace("1a2b3c4d", "5e6f7a8b")
FOREIGN = OWN.replace("1a2b3c4d", "9c0d1e2f").replace(ACCOUNT, "999999999999")
NEVER = {OWN.replace(ACCOUNT, "888888888888"), OWN.replace(REGION, THERE)}
EACH_KEYS = [
    ("kms", (), {OWN}),
    (BROUGHT, (), {BROUGHT}),
    (FOREIGN, (BROUGHT,), {FOREIGN, BROUGHT}),
    (FOREIGN, ("kms",), {FOREIGN, OWN}),
    ("kms", (BROUGHT, FOREIGN), {OWN, BROUGHT, FOREIGN}),
    ("s3", ("kms",), {OWN}),
    ("s3", (FOREIGN,), {FOREIGN}),
    ("s3", (), set()),
]
"""`key`, `previous_keys`, and the keys under which an object of the bucket may be."""


@pytest.mark.parametrize(
    ("key", "previous", "under", "administrators"),
    [
        *((*keys, ()) for keys in EACH_KEYS),
        *((*keys, (f"arn:aws:iam::{ACCOUNT}:role/security",)) for keys in EACH_KEYS if OWN in keys[2]),
    ],
)
def test_the_role_decrypts_by_its_own_policy_under_every_key_of_the_bucket(
    synthesize: Synthesize,
    key: str,
    previous: tuple[str, ...],
    under: set[str],
    administrators: tuple[str, ...],
) -> None:
    team = replace(TEAM, key=key, previous_keys=previous, key_administrators=administrators)
    stacks = synthesize([team], AWS)
    statements = permissions(stacks["HoldfastReplica-copied"])

    def may(key: str, *context: str) -> bool:
        return evaluate(statements, Request("kms:Decrypt", key, ROLE, by_s3(*context))) == "allow"

    for arn in under:
        assert may(arn, REGION, HERE_BUCKET)
        assert may(arn, REGION, f"{HERE_BUCKET}/states/a.tfstate")
        assert not may(arn, REGION, f"{HERE_BUCKET}-other")
        assert not may(arn, THERE, HERE_BUCKET)
        assert not may(arn, REGION, HERE_BUCKET, "lambda.amazonaws.com")
    for arn in NEVER | {FOREIGN} - under | (set() if OWN in under else {OWN, BROUGHT} - under):
        assert not may(arn, REGION, HERE_BUCKET)
    for made in stacks["Holdfast-copied"].resources("AWS::KMS::Key").values():
        policy = resolved(stacks["Holdfast-copied"].template, made["Properties"]["KeyPolicy"]["Statement"])
        assert ROLE not in str(policy)
        assert evaluate(policy, Request("kms:Decrypt", OWN, ROLE, by_s3(REGION, HERE_BUCKET))) == "allow"
