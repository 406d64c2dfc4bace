"""`holdfast doctor` names each deployed resource that is not as in the template of its stack."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from holdfast.template import DeployedTemplate
from holdfast_cli.doctor import deployed
from holdfast_cli.doctor.checks import attempt
from holdfast_cli.doctor.findings import Finding, Level
from holdfast_cli.doctor.policies import differences
from tests.unit.test_doctor_team import Client, refusal

READ = {
    "Sid": "Read",
    "Effect": "Allow",
    "Action": ["s3:GetObject", "s3:ListBucket"],
    "Resource": ["arn:aws:s3:::b/*", "arn:aws:s3:::b"],
}
DENY = {
    "Sid": "RefuseWithoutTls",
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:*",
    "Resource": "arn:aws:s3:::b",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


@pytest.mark.parametrize(
    ("wanted", "found", "clauses"),
    [
        ([READ, DENY], [DENY, READ], []),
        ([READ], [READ | {"Action": ["s3:ListBucket", "s3:GetObject"]}], []),
        ([DENY], [DENY | {"Action": ["s3:*"], "Resource": ["arn:aws:s3:::b"]}], []),
        ([DENY], [DENY | {"Principal": {"AWS": "*"}}], []),
        ([DENY], [DENY | {"Condition": {"Bool": {"aws:SecureTransport": [False]}}}], []),
        ([READ, DENY], [READ], ["the statement RefuseWithoutTls is missing"]),
        ([READ], [READ, DENY], ["the statement RefuseWithoutTls is not in the template"]),
        (
            [READ],
            [READ | {"Action": ["s3:GetObject", "s3:PutObject"]}],
            [
                "the statement Read lacks Action s3:ListBucket",
                "the statement Read also has Action s3:PutObject",
            ],
        ),
        (
            [DENY],
            [{key: value for key, value in DENY.items() if key != "Condition"}],
            ["the statement RefuseWithoutTls lacks Condition Bool aws:SecureTransport false"],
        ),
        (
            [READ],
            [READ | {"Effect": "Deny"}],
            ["the statement Read lacks Effect Allow", "the statement Read also has Effect Deny"],
        ),
        (
            [],
            [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
            ["the statement without a Sid (Action s3:*, Effect Allow, Resource *) is not in the template"],
        ),
    ],
)
def test_policies_are_compared_by_what_they_say(
    wanted: list[dict[str, Any]], found: list[dict[str, Any]], clauses: list[str]
) -> None:
    assert list(differences(policy(*wanted), policy(*found))) == clauses


def test_a_policy_may_have_one_statement_without_a_list_or_be_gone() -> None:
    assert list(differences(policy(READ), {"Statement": READ})) == []
    assert list(differences(policy(READ), {})) == ["the statement Read is missing"]


def template(value: Any) -> DeployedTemplate:
    resources = {
        "Key": {"Type": "AWS::KMS::Key"},
        "Log": {"Type": "AWS::Logs::LogGroup"},
        "StateBucket": {"Type": "AWS::S3::Bucket", "Properties": {"Value": value}},
    }
    ids = {"Key": "1234", "Log": "/holdfast/payments/backend", "StateBucket": "holdfast-payments"}
    return DeployedTemplate({"Resources": resources}, ids, "aws-cn", "cn-north-1", "123456789012")


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ({"Ref": "StateBucket"}, "holdfast-payments"),
        ({"Ref": "AWS::AccountId"}, "123456789012"),
        ({"Ref": "AWS::URLSuffix"}, "amazonaws.com.cn"),
        ({"Fn::GetAtt": ["Key", "Arn"]}, "arn:aws-cn:kms:cn-north-1:123456789012:key/1234"),
        (
            {"Fn::GetAtt": ["Log", "Arn"]},
            "arn:aws-cn:logs:cn-north-1:123456789012:log-group:/holdfast/payments/backend:*",
        ),
        (
            {"Fn::Join": ["", [{"Fn::GetAtt": ["StateBucket", "Arn"]}, "/states/*"]]},
            "arn:aws-cn:s3:::holdfast-payments/states/*",
        ),
        ([{"Bool": True}, 1, "text"], [{"Bool": True}, 1, "text"]),
    ],
)
def test_a_reference_is_resolved(value: Any, resolved: Any) -> None:
    assert dict(template(value).resources("AWS::S3::Bucket"))["StateBucket"] == {"Value": resolved}


# --- a stack, and AWS as the stack deployed it ------------------------------------------------------

PLACE = ("aws", "eu-central-1", "123456789012")
KEY = "arn:aws:kms:eu-central-1:123456789012:key/1234"
ONE_DAY = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}, "Status": "Enabled"}
SEALED = dict.fromkeys(("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls"), True)
BOUNDARY = "arn:aws:iam::123456789012:policy/holdfast-functions"
MANAGED = "arn:aws:iam::aws:policy/Managed"
RETAINED = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 3}}}
DOMAIN = "states.example.com"


def bucket(**properties: object) -> dict[str, Any]:
    encryption = {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}}
    everywhere = {
        "BucketEncryption": {"ServerSideEncryptionConfiguration": [{**encryption, "BucketKeyEnabled": True}]},
        "PublicAccessBlockConfiguration": SEALED,
    }
    return {"Type": "AWS::S3::Bucket", "Properties": everywhere | properties}


STACK: dict[str, Any] = {
    "StateBucket": bucket(ObjectLockEnabled=True, ObjectLockConfiguration=RETAINED),
    "StagingBucket": bucket(
        LifecycleConfiguration={"Rules": [ONE_DAY | {"Id": "uploads", "ExpirationInDays": 1}]}
    ),
    **{
        f"{name}Policy": {
            "Type": "AWS::S3::BucketPolicy",
            "Properties": {"Bucket": {"Ref": f"{name}Bucket"}, "PolicyDocument": policy(DENY)},
        }
        for name in ("State", "Staging")
    },
    "Backend": {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": policy(READ),
            "PermissionsBoundary": {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, BOUNDARY[7:]]]},
            "Policies": [{"PolicyName": "Own", "PolicyDocument": policy(READ)}],
            "ManagedPolicyArns": [MANAGED],
        },
    },
    "Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"DisableExecuteApiEndpoint": True}},
    "Domain": {"Type": "AWS::ApiGatewayV2::DomainName", "Properties": {"DomainName": DOMAIN}},
}
IDS = {"StateBucket": "states", "StagingBucket": "staging", "Backend": "backend", "Api": "a1b2"}


def encrypted(**changed: object) -> Mapping[str, Any]:
    by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY, **changed}
    rule = {"ApplyServerSideEncryptionByDefault": by_default, "BucketKeyEnabled": True}
    return {"ServerSideEncryptionConfiguration": {"Rules": [rule]}}


def role(trust: Any = READ, boundary: str | None = BOUNDARY) -> Mapping[str, Any]:
    bound = {"PermissionsBoundary": {"PermissionsBoundaryArn": boundary}} if boundary else {}
    return {"Role": {"AssumeRolePolicyDocument": policy(trust), **bound}}


def domain(status: str = "AVAILABLE") -> Mapping[str, Any]:
    target = {"DomainNameStatus": status, "ApiGatewayDomainName": "d-1.example.net"}
    return {"DomainNameConfigurations": [target]}


UPLOADS = {"ID": "uploads", "Expiration": {"Days": 1}, "Filter": {"Prefix": ""}} | ONE_DAY
OLD_FORM = {"ID": "uploads", "Expiration": {"Days": 1}, "Prefix": ""} | ONE_DAY
AWS: dict[str, Any] = {
    "head_bucket": {},
    "get_bucket_versioning": {"Status": "Enabled"},
    "get_object_lock_configuration": {"ObjectLockConfiguration": RETAINED},
    "get_bucket_encryption": encrypted(),
    "get_public_access_block": {"PublicAccessBlockConfiguration": SEALED},
    "get_bucket_lifecycle_configuration": {"Rules": [UPLOADS]},
    "get_bucket_policy": {"Policy": json.dumps(policy(DENY))},
    "get_role": role(),
    "list_role_policies": {"PolicyNames": ["Own"]},
    "get_role_policy": {"PolicyDocument": policy(READ)},
    "list_attached_role_policies": {"AttachedPolicies": [{"PolicyArn": MANAGED}]},
    "get_api": {"DisableExecuteApiEndpoint": True},
    "get_domain_name": domain(),
}
"""Method of a client -> the response if nothing was changed since the deployment."""


class Page:
    """A paginator of one page."""

    def __init__(self, read: Callable[..., Any]) -> None:
        self._read = read

    def paginate(self, **where: str) -> Iterator[Any]:
        yield self._read(**where)


def compared(stack: dict[str, Any] = STACK, ids: Mapping[str, str] = IDS, **changed: Any) -> list[Finding]:
    """Return the findings about a stack where some calls have another response, or are refused."""
    calls: dict[str, Callable[..., Any]] = {
        name: response if callable(response) else lambda response=response, **_: response
        for name, response in (AWS | changed).items()
    }
    aws = Client(get_paginator=lambda call: Page(calls[call]), **calls)
    template = DeployedTemplate({"Resources": stack}, ids, *PLACE)
    checks: Mapping[str, Callable[[], Iterator[Finding]]] = {
        "bucket": lambda: deployed.bucket(cast("Any", aws), "states", template),
        "staging_bucket": lambda: deployed.staging_bucket(cast("Any", aws), template),
        "roles": lambda: deployed.roles(aws, template),
        "domain": lambda: deployed.domain(aws, template),
    }
    return [finding for check, look in checks.items() for finding in attempt(check, look)]


def test_what_is_as_deployed_is_ok() -> None:
    assert [(one.check, one.level) for one in compared()] == [
        (check, Level.OK)
        for check in (
            *("bucket.versioning", "bucket.object_lock", "bucket.encryption", "bucket.public_access"),
            *("bucket.policy", "staging_bucket", "staging_bucket.encryption"),
            *("staging_bucket.public_access", "staging_bucket.lifecycle", "staging_bucket.policy"),
            *("roles", "domain.status", "domain.default_endpoint"),
        )
    ]


LIFECYCLE, LOCK = "get_bucket_lifecycle_configuration", "get_object_lock_configuration"
PUBLIC = {"PublicAccessBlockConfiguration": SEALED | {"BlockPublicPolicy": False}}
UNRETAINED = {"ObjectLockConfiguration": {"ObjectLockEnabled": "Enabled"}}
UNLOCKED = refusal("ObjectLockConfigurationNotFoundError", 404)
MORE = {"AttachedPolicies": [{"PolicyArn": MANAGED}, {"PolicyArn": "b"}]}
BOTH = "bucket.{0} staging_bucket.{0}"


@pytest.mark.parametrize(
    ("call", "response", "checks", "says"),
    [
        (
            "get_bucket_versioning",
            {"Status": "Suspended"},
            "bucket.versioning",
            "Suspended, but Enabled in the template",
        ),
        (LOCK, UNLOCKED, "bucket.object_lock", "Object Lock of the bucket is not set, but {"),
        (LOCK, UNRETAINED, "bucket.object_lock", "'DefaultRetention': None}, but {"),
        ("get_bucket_encryption", encrypted(SSEAlgorithm="AES256"), BOTH.format("encryption"), "'AES256'"),
        ("get_bucket_encryption", encrypted(KMSMasterKeyID="other"), BOTH.format("encryption"), "'other'"),
        ("get_public_access_block", PUBLIC, BOTH.format("public_access"), "'BlockPublicPolicy': False"),
        ("head_bucket", refusal("404", 404), "staging_bucket", "404"),
        (
            LIFECYCLE,
            refusal("NoSuchLifecycleConfiguration", 404),
            "staging_bucket.lifecycle",
            "is not set, but [",
        ),
        (LIFECYCLE, {"Rules": [OLD_FORM]}, "", ""),
        *(
            (LIFECYCLE, {"Rules": [OLD_FORM | change]}, "staging_bucket.lifecycle", "staging bucket is [")
            for change in (
                {"Expiration": {"Days": 30}},
                {"Status": "Disabled"},
                {"Prefix": "json/"},
                {"Filter": {"Prefix": "json/"}},
                {"Filter": {"Tag": {"Key": "a", "Value": "b"}}},
                {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
            )
        ),
        ("get_bucket_policy", refusal("NoSuchBucketPolicy", 404), BOTH.format("policy"), "is missing."),
        ("get_bucket_policy", refusal("NoSuchBucket", 404), BOTH.format("policy"), "Not checked"),
        ("get_bucket_policy", refusal("AccessDenied", 403), "", ""),
        ("get_role", role(trust=DENY), "roles", "role backend the trust policy differs: "),
        ("get_role", role(boundary=None), "roles", f"boundary is missing, but {BOUNDARY} in the template."),
        ("list_role_policies", {"PolicyNames": []}, "roles", "the policy Own is missing."),
        (
            "list_role_policies",
            {"PolicyNames": ["Own", "More"]},
            "roles",
            "the policy More is not in the template.",
        ),
        ("get_role_policy", {"PolicyDocument": policy(READ, DENY)}, "roles", "Tls is not in the template."),
        ("list_attached_role_policies", {"AttachedPolicies": []}, "roles", f"policy {MANAGED} is missing."),
        (
            "list_attached_role_policies",
            MORE,
            "roles",
            "the managed policy b is attached, but it is not in the template.",
        ),
        (
            "get_domain_name",
            domain("PENDING"),
            "domain.status",
            f"The domain {DOMAIN} has the status PENDING.",
        ),
        (
            "get_api",
            {"DisableExecuteApiEndpoint": False},
            "domain.default_endpoint",
            "enabled, but it is disabled in",
        ),
    ],
)
def test_what_was_changed_after_the_deployment_is_the_only_problem(
    call: str, response: Any, checks: str, says: str
) -> None:
    found = [one for one in compared(**{call: response}) if one.level is Level.PROBLEM]

    assert {one.check for one in found} == set(checks.split())
    assert all(says in one.text and one.do for one in found)


def test_what_the_template_does_not_have_is_a_problem_too() -> None:
    boundless = STACK["Backend"]["Properties"] | {"PermissionsBoundary": None}
    unlocked = bucket()
    changed = STACK | {
        "Backend": {"Type": "AWS::IAM::Role", "Properties": boundless},
        "StateBucket": unlocked,
    }

    texts = {one.check: one.text for one in compared(changed) if one.level is Level.PROBLEM}

    assert texts.keys() == {"bucket.object_lock", "roles"}
    assert texts["bucket.object_lock"].endswith(", but not set in the template.")
    assert texts["roles"] == (
        f"In the role backend the permissions boundary is {BOUNDARY}, but none in the template."
    )


def test_a_stack_from_before_the_staging_bucket_is_told_so_and_without_a_domain_nothing_is_asked() -> None:
    before = {
        name: one for name, one in STACK.items() if name not in ("StagingBucket", "StagingPolicy", "Domain")
    }
    found = compared(before, get_api=refusal("500", 500), get_domain_name=refusal("500", 500))

    assert [one.check for one in found if one.level is Level.NOTE] == ["staging_bucket"]
    assert [one.check for one in found if one.check.startswith("domain")] == []


@pytest.mark.parametrize(
    ("missing", "check", "says"),
    [
        ("StateBucket", "bucket", "has no bucket states"),
        ("StatePolicy", "bucket.policy", "has no policy of the bucket states"),
    ],
)
def test_a_template_without_what_is_deployed_is_a_problem_that_says_what_is_missing(
    missing: str, check: str, says: str
) -> None:
    found = compared({name: one for name, one in STACK.items() if name != missing})

    assert [one.check for one in found if one.level is Level.PROBLEM] == [check]
    assert says in next(one.text for one in found if one.check == check)


def test_a_role_that_the_stack_does_not_have_is_a_problem_that_says_so() -> None:
    found = compared(ids={name: one for name, one in IDS.items() if name != "Backend"})

    assert [(one.check, one.text) for one in found if one.level is Level.PROBLEM] == [
        ("roles", "Not checked. The stack has no resource Backend.")
    ]


@pytest.mark.parametrize(
    "reference",
    [
        {"Fn::Sub": "${A}"},
        {"Fn::Select": [0, ["a"]]},
        {"Fn::GetAtt": ["Api", "Arn"]},
        {"Fn::GetAtt": ["Backend", "RoleId"]},
    ],
)
def test_a_reference_that_only_a_newer_command_knows_is_a_problem_that_says_so(
    reference: dict[str, object],
) -> None:
    tagged = STACK["Backend"]["Properties"] | {"Tags": [{"Value": reference}]}

    [found] = [
        one
        for one in compared(STACK | {"Backend": {"Type": "AWS::IAM::Role", "Properties": tagged}})
        if one.level is Level.PROBLEM
    ]

    assert found.check == "roles"
    assert "Use the release of `holdfast` that deployed the stack" in found.do
