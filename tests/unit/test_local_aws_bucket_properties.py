"""What a template asks of a bucket reaches a real S3 API, and a difference between the two is seen."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from local_aws.bucket_properties import UnsupportedTemplateError, apply, differences
from local_aws.clients import s3_client
from local_aws.server import LocalAws
from tests.support.free_port import free_port

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# As CDK synthesizes it, with everything that a bucket of ours may have.
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Key": {"Type": "AWS::KMS::Key"},
        "Logs": {"Type": "AWS::S3::Bucket"},
        "States": {
            "Type": "AWS::S3::Bucket",
            "Properties": {
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
                "LifecycleConfiguration": {
                    "Rules": [
                        {
                            "Id": "locks",
                            "Status": "Enabled",
                            "Prefix": "states/",
                            "TagFilters": [{"Key": "holdfast", "Value": "lock"}],
                            "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
                        },
                        {
                            "Id": "history",
                            "Status": "Enabled",
                            "Prefix": "states/",
                            "ObjectSizeGreaterThan": "1000",
                            "NoncurrentVersionExpiration": {
                                "NewerNoncurrentVersions": 50,
                                "NoncurrentDays": 90,
                            },
                            "NoncurrentVersionTransitions": [
                                {"StorageClass": "GLACIER", "TransitionInDays": 30}
                            ],
                        },
                        {
                            "Id": "uploads",
                            "Status": "Enabled",
                            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
                        },
                        {
                            "Id": "markers",
                            "Status": "Enabled",
                            "Prefix": "sessions/",
                            "ExpiredObjectDeleteMarker": True,
                        },
                        {
                            "Id": "sessions",
                            "Status": "Enabled",
                            "TagFilters": [{"Key": "holdfast", "Value": "session"}],
                            "ExpirationInDays": 2,
                            "Transitions": [{"StorageClass": "STANDARD_IA", "TransitionInDays": 1}],
                        },
                    ]
                },
                "LoggingConfiguration": {"DestinationBucketName": {"Ref": "Logs"}, "LogFilePrefix": "s3/"},
                "ObjectLockEnabled": True,
                "ObjectLockConfiguration": {
                    "ObjectLockEnabled": "Enabled",
                    "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 7}},
                },
                "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
                "PublicAccessBlockConfiguration": {
                    "BlockPublicAcls": True,
                    "BlockPublicPolicy": True,
                    "IgnorePublicAcls": True,
                    "RestrictPublicBuckets": True,
                },
                "Tags": [{"Key": "holdfast:team", "Value": "platform"}],
                "VersioningConfiguration": {"Status": "Enabled"},
            },
        },
    }
}
PROPERTIES = TEMPLATE["Resources"]["States"]["Properties"]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator["S3Client"]:
    """An S3 of our own."""
    with LocalAws(free_port(), tmp_path_factory.mktemp("aws")) as aws:
        yield s3_client(aws)


@pytest.fixture
def physical_ids(s3: "S3Client") -> dict[str, str]:
    """The stack's resources, its buckets bare, as CloudFormation leaves them."""
    test = uuid4().hex
    ids = {"Key": "1234-5678", "Logs": f"logs-{test}", "States": f"states-{test}"}
    for bucket in (ids["Logs"], ids["States"]):
        s3.create_bucket(Bucket=bucket)
    return ids


def with_property(name: str, value: object) -> dict[str, Any]:
    template = deepcopy(TEMPLATE)
    template["Resources"]["States"]["Properties"][name] = value
    return template


def without_property(name: str) -> dict[str, Any]:
    template = deepcopy(TEMPLATE)
    del template["Resources"]["States"]["Properties"][name]
    return template


def test_a_bucket_has_every_property_of_its_template_afterwards(
    s3: "S3Client", physical_ids: dict[str, str]
) -> None:
    bucket = physical_ids["States"]
    apply(TEMPLATE, physical_ids, s3)

    assert differences(TEMPLATE, physical_ids, s3) == []
    [encryption] = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert encryption == {
        "ApplyServerSideEncryptionByDefault": {
            "SSEAlgorithm": "aws:kms",
            "KMSMasterKeyID": "arn:aws:kms:us-east-1:000000000000:key/1234-5678",
        },
        "BucketKeyEnabled": True,
    }
    assert s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"] == {
        "ObjectLockEnabled": "Enabled",
        "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 7}},
    }
    assert s3.get_bucket_logging(Bucket=bucket)["LoggingEnabled"] == {
        "TargetBucket": physical_ids["Logs"],
        "TargetPrefix": "s3/",
    }
    rules = {rule["ID"]: rule for rule in s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]}
    assert rules["locks"]["Filter"]["And"]["Tags"] == [{"Key": "holdfast", "Value": "lock"}]
    assert rules["history"]["Filter"]["And"]["ObjectSizeGreaterThan"] == 1000
    assert rules["history"]["NoncurrentVersionTransitions"] == [
        {"StorageClass": "GLACIER", "NoncurrentDays": 30}
    ]
    assert rules["uploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert rules["markers"]["Expiration"] == {"ExpiredObjectDeleteMarker": True}
    assert rules["sessions"]["Transitions"] == [{"StorageClass": "STANDARD_IA", "Days": 1}]


def test_applying_twice_changes_nothing(s3: "S3Client", physical_ids: dict[str, str]) -> None:
    apply(TEMPLATE, physical_ids, s3)
    apply(TEMPLATE, physical_ids, s3)
    assert differences(TEMPLATE, physical_ids, s3) == []


def test_every_property_that_a_bare_bucket_lacks_is_named(
    s3: "S3Client", physical_ids: dict[str, str]
) -> None:
    named = {difference.split()[1] for difference in differences(TEMPLATE, physical_ids, s3)}
    # A new bucket has the template's ownership already: it is S3's default.
    assert named == PROPERTIES.keys() - {"BucketName", "ObjectLockEnabled", "OwnershipControls"}


@pytest.mark.parametrize(
    ("name", "break_it"),
    [
        (
            "BucketEncryption",
            lambda s3, bucket: s3.delete_bucket_encryption(Bucket=bucket),
        ),
        (
            "VersioningConfiguration",
            lambda s3, bucket: s3.put_bucket_versioning(
                Bucket=bucket, VersioningConfiguration={"Status": "Suspended"}
            ),
        ),
        (
            "ObjectLockConfiguration",
            lambda s3, bucket: s3.put_object_lock_configuration(
                Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"}
            ),
        ),
        (
            "OwnershipControls",
            lambda s3, bucket: s3.put_bucket_ownership_controls(
                Bucket=bucket, OwnershipControls={"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
            ),
        ),
        (
            "PublicAccessBlockConfiguration",
            lambda s3, bucket: s3.delete_public_access_block(Bucket=bucket),
        ),
        ("LifecycleConfiguration", lambda s3, bucket: s3.delete_bucket_lifecycle(Bucket=bucket)),
        (
            "LoggingConfiguration",
            lambda s3, bucket: s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={}),
        ),
        ("Tags", lambda s3, bucket: s3.delete_bucket_tagging(Bucket=bucket)),
    ],
)
def test_a_property_that_changed_behind_the_templates_back_is_named(
    s3: "S3Client",
    physical_ids: dict[str, str],
    name: str,
    break_it: Callable[["S3Client", str], object],
) -> None:
    apply(TEMPLATE, physical_ids, s3)
    break_it(s3, physical_ids["States"])

    [difference] = differences(TEMPLATE, physical_ids, s3)
    assert difference.startswith(f"{physical_ids['States']}: {name} is ")


@pytest.mark.parametrize("name", ["LifecycleConfiguration", "LoggingConfiguration", "Tags"])
def test_a_property_that_the_template_lost_is_taken_from_the_bucket(
    s3: "S3Client", physical_ids: dict[str, str], name: str
) -> None:
    apply(TEMPLATE, physical_ids, s3)
    template = without_property(name)
    assert [difference.split()[1] for difference in differences(template, physical_ids, s3)] == [name]

    apply(template, physical_ids, s3)
    assert differences(template, physical_ids, s3) == []


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("AccelerateConfiguration", {"AccelerationStatus": "Enabled"}, "AccelerateConfiguration"),
        (
            "LifecycleConfiguration",
            {"Rules": [{"Id": "new", "Status": "Enabled", "ExpireOnSundays": True}]},
            "ExpireOnSundays",
        ),
        ("Tags", [{"Key": "a", "Value": {"Fn::ImportValue": "b"}}], "Fn::ImportValue"),
    ],
)
def test_what_is_not_known_is_an_error_and_changes_nothing(
    s3: "S3Client", physical_ids: dict[str, str], name: str, value: object, told: str
) -> None:
    before = differences(TEMPLATE, physical_ids, s3)

    with pytest.raises(UnsupportedTemplateError, match=told):
        apply(with_property(name, value), physical_ids, s3)
    assert differences(TEMPLATE, physical_ids, s3) == before


def test_object_lock_without_a_default_retention_is_enabled(
    s3: "S3Client", physical_ids: dict[str, str]
) -> None:
    template = without_property("ObjectLockConfiguration")
    apply(template, physical_ids, s3)

    lock = s3.get_object_lock_configuration(Bucket=physical_ids["States"])["ObjectLockConfiguration"]
    assert lock == {"ObjectLockEnabled": "Enabled"}
    assert differences(template, physical_ids, s3) == []


# --- a stack with two buckets, as a team's with every setting is ---------------------------------

STATES: dict[str, Any] = {
    "BucketEncryption": {
        "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    },
    "LifecycleConfiguration": {
        "Rules": [
            {
                "Id": "locks",
                "Status": "Enabled",
                "TagFilters": [{"Key": "holdfast", "Value": "lock"}],
                "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
            },
            {
                "Id": "rest",
                "Status": "Enabled",
                "ExpiredObjectDeleteMarker": True,
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
            },
            {
                "Id": "history",
                "Status": "Enabled",
                "Prefix": "states/",
                "NoncurrentVersionExpiration": {"NewerNoncurrentVersions": 100, "NoncurrentDays": 365},
            },
        ]
    },
    "LoggingConfiguration": {"DestinationBucketName": {"Ref": "AccessLogsBucket"}},
    "ObjectLockEnabled": True,
    "ObjectLockConfiguration": {
        "ObjectLockEnabled": "Enabled",
        "Rule": {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 30}},
    },
    "VersioningConfiguration": {"Status": "Enabled"},
}
ACCESS_LOGS: dict[str, Any] = {
    "BucketEncryption": {
        "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    },
    "LifecycleConfiguration": {
        "Rules": [
            {
                "Id": "old",
                "Status": "Enabled",
                "ExpirationInDays": 90,
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
            }
        ]
    },
    "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
}


def two_buckets(states: dict[str, Any]) -> dict[str, Any]:
    return {
        "Resources": {
            "StateBucket": {"Type": "AWS::S3::Bucket", "Properties": states},
            "AccessLogsBucket": {"Type": "AWS::S3::Bucket", "Properties": ACCESS_LOGS},
        }
    }


@pytest.fixture
def two(s3: "S3Client") -> dict[str, str]:
    """The two buckets, bare."""
    ids = {name: f"{name.lower()}-{uuid4().hex}" for name in ("StateBucket", "AccessLogsBucket")}
    for bucket in ids.values():
        s3.create_bucket(Bucket=bucket)
    return ids


def test_each_of_two_buckets_has_what_its_own_part_of_the_template_asks_for(
    s3: "S3Client", two: dict[str, str]
) -> None:
    template = two_buckets(STATES)
    apply(template, two, s3)
    assert differences(template, two, s3) == []

    states, logs = two["StateBucket"], two["AccessLogsBucket"]
    rules = {rule["ID"]: rule for rule in s3.get_bucket_lifecycle_configuration(Bucket=states)["Rules"]}
    assert rules["history"]["Filter"] == {"Prefix": "states/"}
    assert rules["history"]["NoncurrentVersionExpiration"] == {
        "NewerNoncurrentVersions": 100,
        "NoncurrentDays": 365,
    }
    assert rules["locks"]["Filter"] == {"Tag": {"Key": "holdfast", "Value": "lock"}}
    assert rules["rest"]["Expiration"] == {"ExpiredObjectDeleteMarker": True}
    assert rules["rest"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert s3.get_bucket_logging(Bucket=states)["LoggingEnabled"] == {
        "TargetBucket": logs,
        "TargetPrefix": "",
    }
    retention = s3.get_object_lock_configuration(Bucket=states)["ObjectLockConfiguration"]["Rule"]
    assert retention == {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 30}}

    [expiry] = s3.get_bucket_lifecycle_configuration(Bucket=logs)["Rules"]
    assert expiry["Expiration"] == {"Days": 90}
    assert "Status" not in s3.get_bucket_versioning(Bucket=logs)
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=logs)
    for bucket in (states, logs):
        [rule] = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
        assert rule["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}


def test_a_difference_names_which_of_the_buckets_it_is(s3: "S3Client", two: dict[str, str]) -> None:
    template = two_buckets(STATES)
    apply(template, two, s3)
    s3.delete_bucket_lifecycle(Bucket=two["AccessLogsBucket"])
    [difference] = differences(template, two, s3)
    assert difference.startswith(f"{two['AccessLogsBucket']}: LifecycleConfiguration is None")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"LifecycleConfiguration": {"Rules": STATES["LifecycleConfiguration"]["Rules"][:2]}}),
        pytest.param(
            {
                "ObjectLockConfiguration": {
                    "ObjectLockEnabled": "Enabled",
                    "Rule": {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 31}},
                }
            }
        ),
        pytest.param({"ObjectLockConfiguration": None}),
        pytest.param(
            {"LoggingConfiguration": {"DestinationBucketName": "acme-s3-logs", "LogFilePrefix": "h/"}}
        ),
    ],
    ids=[
        "no history any more",
        "a longer retention",
        "no bucket default any more",
        "logs to the team's bucket",
    ],
)
def test_a_setting_that_changes_a_deployed_bucket_reaches_it(
    s3: "S3Client", two: dict[str, str], changed: dict[str, Any]
) -> None:
    apply(two_buckets(STATES), two, s3)
    template = two_buckets({name: value for name, value in {**STATES, **changed}.items() if value})
    [difference] = differences(template, two, s3)
    assert difference.startswith(f"{two['StateBucket']}: {next(iter(changed))} is ")

    apply(template, two, s3)
    assert differences(template, two, s3) == []
