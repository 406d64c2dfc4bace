"""What the synthesized bucket, key and access log promise."""

from typing import Any

import pytest

from infra.config import AWS, Retention, TeamConfig
from tests.unit.infra.conftest import Synthesize, Synthesized


def bucket_of(stack: Synthesized, name: str = "StateBucket") -> dict[str, Any]:
    """The properties of a bucket."""
    properties: dict[str, Any] = stack.resolve(stack.resources("AWS::S3::Bucket")[name]["Properties"])
    return properties


def with_settings(synthesize: Synthesize, **settings: Any) -> Synthesized:
    """The stack of a team with these settings."""
    (stack,) = synthesize([TeamConfig(name="ops", **settings)], AWS).values()
    return stack


def test_a_bucket_without_settings_is_encrypted_versioned_locked_logged_and_private(
    default: Synthesized,
) -> None:
    bucket = bucket_of(default)
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"] == {
        "SSEAlgorithm": "aws:kms",
        "KMSMasterKeyID": "<StateKey.Arn>",
    }
    assert (bucket["ObjectLockEnabled"], bucket["VersioningConfiguration"]) == (True, {"Status": "Enabled"})
    assert bucket["LoggingConfiguration"] == {"DestinationBucketName": "<AccessLogsBucket>"}
    assert all(bucket["PublicAccessBlockConfiguration"].values())


def test_the_bucket_is_named_after_team_account_and_region(
    stack: Synthesized, team: str, settled: Synthesized, on_this_machine: Synthesized
) -> None:
    assert bucket_of(stack)["BucketName"] == f"holdfast-{team}-<AWS::AccountId>-<AWS::Region>"
    assert bucket_of(settled)["BucketName"] == "holdfast-ops-123456789012-eu-central-1"
    assert bucket_of(on_this_machine)["BucketName"] == "holdfast-ops-000000000000-us-east-1"


def test_the_longest_team_name_makes_a_bucket_name_that_s3_takes(synthesize: Synthesize) -> None:
    team = TeamConfig(name="a" * 25, account="123456789012", region="ap-southeast-1")
    (stack,) = synthesize([team], AWS).values()
    assert len(bucket_of(stack)["BucketName"]) <= 63


# --- retention and lifecycle ----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["governance", "compliance"])
def test_the_bucket_retains_by_itself_only_where_the_team_asks_it_to(
    synthesize: Synthesize, mode: Any
) -> None:
    on_the_write = with_settings(synthesize, retention=Retention(mode=mode, days=30))
    by_itself = with_settings(synthesize, retention=Retention(mode=mode, days=36500, bucket_default=True))
    assert bucket_of(on_the_write)["ObjectLockEnabled"] is True
    assert "ObjectLockConfiguration" not in bucket_of(on_the_write)
    assert bucket_of(by_itself)["ObjectLockEnabled"] is True
    assert bucket_of(by_itself)["ObjectLockConfiguration"] == {
        "ObjectLockEnabled": "Enabled",
        "Rule": {"DefaultRetention": {"Mode": mode.upper(), "Days": 36500}},
    }


def test_no_rule_ever_removes_a_current_object_but_a_session_or_a_probe(
    stack: Synthesized, settled: Synthesized
) -> None:
    for bucket in (bucket_of(stack), bucket_of(settled)):
        for rule in bucket["LifecycleConfiguration"]["Rules"]:
            removes = {"ExpirationInDays", "ExpirationDate", "Transitions"} & rule.keys()
            assert not removes or rule["Prefix"] in ("sessions/", "probes/")


# --- what outlives the stack ----------------------------------------------------------------------

UNLESS_THE_FIRST_DEPLOYMENT_FAILS = ("RetainExceptOnCreate", "Retain")
KEPT_LOG = ("AWS::Logs::LogGroup", *UNLESS_THE_FIRST_DEPLOYMENT_FAILS)
KEPT_LOGS = dict.fromkeys(
    (
        *("BackendLog", "CloudLog", "ManagementLog", "AuthorizerLog", "SessionsLog", "HealthLog"),
        *("AuditTrailLog", "Audit", "AccessLog"),
    ),
    KEPT_LOG,
)


def kept(stack: Synthesized) -> dict[str, tuple[str, str, str]]:
    """What stays when the stack goes."""
    return {
        name: (resource["Type"], resource["DeletionPolicy"], resource["UpdateReplacePolicy"])
        for name, resource in stack.template["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }


def test_buckets_key_and_logs_outlive_the_stack_under_names_that_do_not_change(stack: Synthesized) -> None:
    assert kept(stack) == {
        "StateKey": ("AWS::KMS::Key", "Retain", "Retain"),
        "StateBucket": ("AWS::S3::Bucket", *UNLESS_THE_FIRST_DEPLOYMENT_FAILS),
        "AccessLogsBucket": ("AWS::S3::Bucket", *UNLESS_THE_FIRST_DEPLOYMENT_FAILS),
        **KEPT_LOGS,
    }
