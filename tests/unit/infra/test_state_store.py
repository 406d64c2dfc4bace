"""What the synthesized bucket, key and access log promise."""

from typing import Any

import pytest

from infra.config import AWS, History, Retention, TeamConfig
from tests.unit.infra.conftest import Synthesize, Synthesized

PRIVATE = {
    "BlockPublicAcls": True,
    "BlockPublicPolicy": True,
    "IgnorePublicAcls": True,
    "RestrictPublicBuckets": True,
}
OF_THE_OWNER = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}


def bucket_of(stack: Synthesized, name: str = "StateBucket") -> dict[str, Any]:
    """The properties of a bucket."""
    properties: dict[str, Any] = stack.resolve(stack.resources("AWS::S3::Bucket")[name]["Properties"])
    return properties


def with_settings(synthesize: Synthesize, **settings: Any) -> Synthesized:
    """The stack of a team with these settings."""
    (stack,) = synthesize([TeamConfig(name="ops", **settings)], AWS).values()
    return stack


def encryption(algorithm: dict[str, str], **rest: bool) -> dict[str, Any]:
    return {"ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": algorithm, **rest}]}


def test_a_bucket_without_settings_is_encrypted_versioned_locked_logged_and_private(
    default: Synthesized,
) -> None:
    bucket = bucket_of(default)
    del bucket["BucketName"], bucket["LifecycleConfiguration"]
    assert bucket == {
        "ObjectLockEnabled": True,
        "VersioningConfiguration": {"Status": "Enabled"},
        "BucketEncryption": encryption(
            {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "<StateKey.Arn>"}, BucketKeyEnabled=True
        ),
        "LoggingConfiguration": {"DestinationBucketName": "<AccessLogsBucket>"},
        "OwnershipControls": OF_THE_OWNER,
        "PublicAccessBlockConfiguration": PRIVATE,
    }


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


# --- the key --------------------------------------------------------------------------------------


def test_the_key_rotates(default: Synthesized) -> None:
    assert default.only("AWS::KMS::Key")["Properties"]["EnableKeyRotation"] is True


def test_a_team_may_leave_the_keys_to_s3(settled: Synthesized) -> None:
    assert bucket_of(settled)["BucketEncryption"] == encryption({"SSEAlgorithm": "AES256"})
    assert not settled.resources("AWS::KMS::Key")
    assert "kms:" not in str(settled.template).replace("aws:kms:", "")


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


ALWAYS_REMOVED = [
    {
        "Id": "locks",
        "Status": "Enabled",
        "TagFilters": [{"Key": "holdfast", "Value": "lock"}],
        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
    },
    {"Id": "markers-with-nothing-beneath", "Status": "Enabled", "ExpiredObjectDeleteMarker": True},
    {
        "Id": "unfinished-uploads",
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
    },
    {
        "Id": "sessions",
        "Status": "Enabled",
        "Prefix": "sessions/",
        "ExpirationInDays": 1,
        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
    },
    {
        "Id": "probes",
        "Status": "Enabled",
        "Prefix": "probes/",
        "ExpirationInDays": 1,
        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
    },
    {
        "Id": "workspaces",
        "Status": "Enabled",
        "Prefix": "workspaces/",
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
    },
]


def test_without_history_every_version_of_a_state_stays(default: Synthesized) -> None:
    assert bucket_of(default)["LifecycleConfiguration"]["Rules"] == ALWAYS_REMOVED


def test_history_removes_old_versions_and_keeps_the_newest_whatever_their_age(synthesize: Synthesize) -> None:
    stack = with_settings(synthesize, history=History(days=365, keep_versions=100))
    assert bucket_of(stack)["LifecycleConfiguration"]["Rules"] == [
        *ALWAYS_REMOVED,
        {
            "Id": "history",
            "Status": "Enabled",
            "Prefix": "states/",
            "NoncurrentVersionExpiration": {"NoncurrentDays": 365, "NewerNoncurrentVersions": 100},
        },
    ]


def test_no_rule_ever_removes_a_current_object_but_a_session_or_a_probe(
    stack: Synthesized, settled: Synthesized
) -> None:
    for bucket in (bucket_of(stack), bucket_of(settled)):
        for rule in bucket["LifecycleConfiguration"]["Rules"]:
            removes = {"ExpirationInDays", "ExpirationDate", "Transitions"} & rule.keys()
            assert not removes or rule["Prefix"] in ("sessions/", "probes/")


# --- the staging bucket ---------------------------------------------------------------------------


def test_the_staging_bucket_is_private_and_as_encrypted_and_keeps_nothing_beyond_a_day(
    default: Synthesized, settled: Synthesized
) -> None:
    assert bucket_of(default, "StagingBucket") == {
        "BucketEncryption": bucket_of(default)["BucketEncryption"],
        "LifecycleConfiguration": {
            "Rules": [
                {
                    "Id": "uploads",
                    "Status": "Enabled",
                    "ExpirationInDays": 1,
                    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
                }
            ]
        },
        "OwnershipControls": OF_THE_OWNER,
        "PublicAccessBlockConfiguration": PRIVATE,
    }
    assert bucket_of(settled, "StagingBucket")["BucketEncryption"] == encryption({"SSEAlgorithm": "AES256"})


# --- the access log -------------------------------------------------------------------------------


def test_the_bucket_for_access_logs_is_one_that_s3_delivers_to(default: Synthesized) -> None:
    # Neither Object Lock nor a key of KMS's own: S3 would deliver nothing.
    assert bucket_of(default, "AccessLogsBucket") == {
        "BucketEncryption": encryption({"SSEAlgorithm": "AES256"}),
        "LifecycleConfiguration": {"Rules": [{"Id": "logs", "Status": "Enabled", "ExpirationInDays": 90}]},
        "OwnershipControls": OF_THE_OWNER,
        "PublicAccessBlockConfiguration": PRIVATE,
    }


def test_access_logs_are_kept_as_long_as_the_other_logs(synthesize: Synthesize) -> None:
    stack = with_settings(synthesize, log_retention=30)
    (rule,) = bucket_of(stack, "AccessLogsBucket")["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == 30


def test_a_team_may_have_its_access_logs_in_a_bucket_of_its_own(settled: Synthesized) -> None:
    assert set(settled.resources("AWS::S3::Bucket")) == {"StateBucket", "StagingBucket"}
    assert bucket_of(settled)["LoggingConfiguration"] == {
        "DestinationBucketName": "acme-s3-logs",
        "LogFilePrefix": "holdfast/",
    }


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


def test_without_key_and_access_log_of_its_own_the_rest_outlives_the_stack(settled: Synthesized) -> None:
    assert kept(settled) == {
        "StateBucket": ("AWS::S3::Bucket", *UNLESS_THE_FIRST_DEPLOYMENT_FAILS),
        **KEPT_LOGS,
    }
