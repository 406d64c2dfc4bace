"""The trail of a team that asks for CloudTrail's events of its tokens and trust.

It is looked at in the template and nowhere else: the local AWS's CloudFormation makes no trail.
"""

import pytest

from tests.support.iam_policy import ACCOUNT, REGION, Request, bucket_policy, evaluate
from tests.unit.infra.conftest import Synthesized

TRAIL_ARN = f"arn:aws:cloudtrail:{REGION}:{ACCOUNT}:trail/holdfast-ops"


def test_a_team_that_does_not_ask_for_it_has_none(default: Synthesized) -> None:
    assert not default.resources("AWS::CloudTrail::Trail")
    assert "cloudtrail" not in str(default.template).lower()


def test_the_trail_has_reads_and_writes_of_tokens_and_trust_and_nothing_else(settled: Synthesized) -> None:
    trail = settled.resolve(settled.only("AWS::CloudTrail::Trail")["Properties"])

    (selected,) = trail.pop("AdvancedEventSelectors")

    assert trail == {
        "TrailName": "holdfast-ops",
        "S3BucketName": "<TokenTrailBucket>",
        "IsLogging": True,
        "EnableLogFileValidation": True,
        "IsMultiRegionTrail": False,
        "IncludeGlobalServiceEvents": False,
    }
    # Without a selector of `readOnly` both are noted.
    assert selected["FieldSelectors"] == [
        {"Field": "eventCategory", "Equals": ["Data"]},
        {"Field": "resources.type", "Equals": ["AWS::S3::Object"]},
        {
            "Field": "resources.ARN",
            "StartsWith": ["<StateBucket.Arn>/tokens/", "<StateBucket.Arn>/trust/"],
        },
    ]


def test_the_trails_bucket_is_private_and_emptied_when_the_audit_trail_is(settled: Synthesized) -> None:
    bucket = settled.resolve(settled.resources("AWS::S3::Bucket")["TokenTrailBucket"]["Properties"])
    assert bucket == {
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [
                {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
            ]
        },
        "LifecycleConfiguration": {"Rules": [{"Id": "trail", "Status": "Enabled", "ExpirationInDays": 731}]},
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
        "PublicAccessBlockConfiguration": {
            "BlockPublicAcls": True,
            "BlockPublicPolicy": True,
            "IgnorePublicAcls": True,
            "RestrictPublicBuckets": True,
        },
    }


@pytest.mark.parametrize(
    ("changed", "decision"),
    [
        ({}, "allow"),
        ({"principal": "logging.s3.amazonaws.com"}, "nothing"),
        ({"aws:SourceArn": f"{TRAIL_ARN}-2"}, "nothing"),
        ({"s3:x-amz-acl": "private"}, "nothing"),
        ({"aws:SecureTransport": "false"}, "deny"),
        ({"s3:TlsVersion": "1.1"}, "deny"),
    ],
    ids=str,
)
def test_cloudtrail_writes_to_it_for_this_trail_over_tls_only(
    settled: Synthesized, changed: dict[str, str], decision: str
) -> None:
    policy = bucket_policy(settled.template, "TokenTrailBucket")
    context: dict[str, str | list[str]] = {
        "aws:SecureTransport": "true",
        "s3:TlsVersion": "1.3",
        "aws:SourceArn": TRAIL_ARN,
        "s3:x-amz-acl": "bucket-owner-full-control",
        **changed,
    }
    principal = str(context.pop("principal", "cloudtrail.amazonaws.com"))
    key = f"arn:aws:s3:::tokentrailbucket/AWSLogs/{ACCOUNT}/CloudTrail/x.json.gz"

    assert evaluate(policy, Request("s3:PutObject", key, principal, context)) == decision
    assert len(policy) == 4


def test_the_bucket_lets_cloudtrail_in_before_the_trail_is_made(settled: Synthesized) -> None:
    (policy,) = (
        name
        for name, one in settled.resources("AWS::S3::BucketPolicy").items()
        if one["Properties"]["Bucket"] == {"Ref": "TokenTrailBucket"}
    )
    assert settled.only("AWS::CloudTrail::Trail")["DependsOn"] == [policy]
