"""The properties of a bucket in a template reach a real S3 API."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from holdfast.template import DeployedTemplate
from local_aws import bucket_properties
from local_aws.bucket_properties import UnsupportedTemplateError
from local_aws.clients import s3_client
from local_aws.server import ACCOUNT, REGION, LocalAws
from tests.support.free_port import free_port

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def rule(name: str, **more: Any) -> dict[str, Any]:
    return {"Id": name, "Status": "Enabled", **more}


def apply(template: dict[str, Any], physical_ids: dict[str, str], s3: "S3Client") -> None:
    bucket_properties.apply(DeployedTemplate(template, physical_ids, "aws", REGION, ACCOUNT), s3)


def retention(days: int) -> dict[str, Any]:
    return {
        "ObjectLockEnabled": "Enabled",
        "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": days}},
    }


RULES = [
    rule(
        "locks",
        TagFilters=[{"Key": "holdfast", "Value": "lock"}],
        NoncurrentVersionExpiration={"NoncurrentDays": 1},
    ),
    rule("uploads", AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1}),
    rule("markers", Prefix="sessions/", ExpiredObjectDeleteMarker=True),
    rule(
        "history",
        Prefix="states/",
        NoncurrentVersionExpiration={"NewerNoncurrentVersions": 50, "NoncurrentDays": 90},
    ),
]
# A bucket as CDK synthesizes it, with every property of our buckets.
STATES: dict[str, Any] = {
    "BucketName": {"Fn::Join": ["-", ["states", {"Ref": "AWS::AccountId"}]]},
    "BucketEncryption": {
        "ServerSideEncryptionConfiguration": [
            {
                "BucketKeyEnabled": True,
                "ServerSideEncryptionByDefault": {
                    "KMSMasterKeyID": {"Fn::GetAtt": ["Key", "Arn"]},
                    "SSEAlgorithm": "aws:kms",
                },
            }
        ]
    },
    "LifecycleConfiguration": {"Rules": RULES},
    "LoggingConfiguration": {"DestinationBucketName": {"Ref": "Logs"}, "LogFilePrefix": "s3/"},
    "ObjectLockEnabled": True,
    "ObjectLockConfiguration": retention(7),
    "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
    "PublicAccessBlockConfiguration": {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": True,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": True,
    },
    "Tags": [{"Key": "holdfast:team", "Value": "platform"}],
    "VersioningConfiguration": {"Status": "Enabled"},
}
LOGS: dict[str, Any] = {
    "BucketEncryption": {
        "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    },
    "LifecycleConfiguration": {"Rules": [rule("old", ExpirationInDays=90)]},
}


def template(**changed: Any) -> dict[str, Any]:
    """The stack's template, with changed properties of the state bucket; None leaves a property out."""
    states = {name: value for name, value in {**STATES, **changed}.items() if value is not None}
    return {
        "Resources": {
            "Key": {"Type": "AWS::KMS::Key"},
            "Logs": {"Type": "AWS::S3::Bucket", "Properties": LOGS},
            "States": {"Type": "AWS::S3::Bucket", "Properties": states},
        }
    }


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator["S3Client"]:
    """An S3 of our own."""
    with LocalAws(free_port(), tmp_path_factory.mktemp("aws")) as aws:
        yield s3_client(aws)


def bare(s3: "S3Client") -> dict[str, str]:
    """The stack's resources, its buckets as CloudFormation leaves them: only versioning is set."""
    test = uuid4().hex
    ids = {"Key": "1234-5678", "Logs": f"logs-{test}", "States": f"states-{test}"}
    for bucket in (ids["Logs"], ids["States"]):
        s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=ids["States"], VersioningConfiguration=STATES["VersioningConfiguration"])
    return ids


@pytest.fixture
def physical_ids(s3: "S3Client") -> dict[str, str]:
    """A stack's resources."""
    return bare(s3)


def properties(s3: "S3Client", physical_ids: dict[str, str]) -> dict[str, object]:
    """Every property of the state bucket in S3 that CloudFormation leaves out."""
    found: dict[str, object] = {}
    for name in (
        *("bucket_encryption", "bucket_ownership_controls", "bucket_lifecycle_configuration"),
        *("bucket_logging", "bucket_tagging", "object_lock_configuration"),
    ):
        try:
            answer = getattr(s3, f"get_{name}")(Bucket=physical_ids["States"])
        except ClientError:  # the bucket does not have it
            answer = {}
        said = {key: value for key, value in answer.items() if key != "ResponseMetadata"}
        found[name] = json.loads(json.dumps(said).replace(physical_ids["Logs"], "logs"))
    return found


def test_each_bucket_has_every_property_of_its_part_of_the_template_afterwards(
    s3: "S3Client", physical_ids: dict[str, str]
) -> None:
    bucket, logs = physical_ids["States"], physical_ids["Logs"]
    apply(template(), physical_ids, s3)
    once = properties(s3, physical_ids)
    assert all(once.values())
    assert once["bucket_ownership_controls"] == {"OwnershipControls": STATES["OwnershipControls"]}
    apply(template(), physical_ids, s3)
    assert properties(s3, physical_ids) == once

    [encryption] = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert encryption == {
        "ApplyServerSideEncryptionByDefault": {
            "SSEAlgorithm": "aws:kms",
            "KMSMasterKeyID": "arn:aws:kms:us-east-1:000000000000:key/1234-5678",
        },
        "BucketKeyEnabled": True,
    }
    assert s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"] == retention(7)
    assert s3.get_bucket_logging(Bucket=bucket)["LoggingEnabled"] == {
        "TargetBucket": logs,
        "TargetPrefix": "s3/",
    }
    rules = {each["ID"]: each for each in s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]}
    assert rules["locks"]["Filter"] == {"Tag": {"Key": "holdfast", "Value": "lock"}}
    assert rules["locks"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
    assert rules["history"]["Filter"] == {"Prefix": "states/"}
    assert rules["history"]["NoncurrentVersionExpiration"] == {
        "NewerNoncurrentVersions": 50,
        "NoncurrentDays": 90,
    }
    assert rules["uploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert rules["markers"]["Expiration"] == {"ExpiredObjectDeleteMarker": True}

    [expiry] = s3.get_bucket_lifecycle_configuration(Bucket=logs)["Rules"]
    assert expiry["Expiration"] == {"Days": 90}
    assert "Status" not in s3.get_bucket_versioning(Bucket=logs)
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=logs)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LifecycleConfiguration", None),
        ("LifecycleConfiguration", {"Rules": RULES[:2]}),
        ("LoggingConfiguration", None),
        ("LoggingConfiguration", {"DestinationBucketName": "acme-s3-logs", "LogFilePrefix": "h/"}),
        ("ObjectLockConfiguration", None),
        ("ObjectLockConfiguration", retention(8)),
        ("Tags", None),
    ],
)
def test_a_property_that_the_template_changed_or_lost_reaches_a_deployed_bucket(
    s3: "S3Client", physical_ids: dict[str, str], name: str, value: Any
) -> None:
    apply(template(), physical_ids, s3)
    before = properties(s3, physical_ids)
    new = bare(s3)
    for ids in (physical_ids, new):
        apply(template(**{name: value}), ids, s3)
    assert properties(s3, physical_ids) == properties(s3, new) != before


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("AccelerateConfiguration", {"AccelerationStatus": "Enabled"}, "AccelerateConfiguration"),
        (
            "LifecycleConfiguration",
            {"Rules": [rule("two", Prefix="a/", TagFilters=[{"Key": "b", "Value": "c"}])]},
            "more than one condition",
        ),
        ("Tags", [{"Key": "a", "Value": {"Fn::ImportValue": "b"}}], "Fn::ImportValue"),
    ],
)
def test_what_is_not_known_is_an_error_and_changes_nothing(
    s3: "S3Client", physical_ids: dict[str, str], name: str, value: object, told: str
) -> None:
    before = properties(s3, physical_ids)

    with pytest.raises(UnsupportedTemplateError, match=told):
        apply(template(**{name: value}), physical_ids, s3)
    assert properties(s3, physical_ids) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LifecycleConfiguration", {"Rules": [rule("new", Unknown=True)]}),
        ("LoggingConfiguration", {"DestinationBucketName": "logs", "Unknown": True}),
        ("BucketEncryption", {"ServerSideEncryptionConfiguration": [{"Unknown": True}]}),
        ("ReplicationConfiguration", {"Role": "copy", "Rules": [rule("all", Unknown=True)]}),
    ],
)
def test_an_unknown_part_of_a_property_is_an_error(
    s3: "S3Client", physical_ids: dict[str, str], name: str, value: object
) -> None:
    with pytest.raises(ParamValidationError, match="Unknown"):
        apply(template(**{name: value}), physical_ids, s3)
