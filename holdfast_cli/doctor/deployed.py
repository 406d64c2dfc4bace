"""Compares the deployed resources of a team's stack with the stack's template."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import ClientError

from holdfast.template import DeployedTemplate
from holdfast_cli.bucket.aws_errors import code_of
from holdfast_cli.doctor.checks import judge
from holdfast_cli.doctor.findings import REVERT, Finding, Level, Outcome, note, ok
from holdfast_cli.doctor.policies import Policy, differences
from holdfast_cli.errors import CommandError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_T = TypeVar("_T")

_STAGING: Final = "StagingBucket"
"""The logical ID of the bucket for uploads of large states."""
_OFF: Final = "DisableExecuteApiEndpoint"


def compare(check: str, alike: str, differences: Iterable[str]) -> Iterator[Finding]:
    """Yield a problem for each difference, which is a sentence; or `alike` if nothing differs."""

    def outcomes() -> Iterator[Outcome]:
        differs = False
        for sentence in differences:
            differs = True
            yield Level.PROBLEM, sentence, REVERT
        if not differs:
            yield Level.OK, alike

    return judge(check, outcomes)


def policy_differences(subject: str, wanted: Policy, found: str) -> Iterator[str]:
    """Yield a sentence for each difference of a policy, which AWS returns as JSON."""
    for clause in differences(wanted, json.loads(found)):
        yield f"In the policy of {subject} {clause}."


# --- buckets --------------------------------------------------------------------------------------

_Where = Mapping[str, str]
"""The parameters of every call about a bucket."""
_Setting = tuple[str, str, object, Callable[[], object]]
"""A setting: the end of its check's name, its subject in texts, its value in the template, and its reader."""


def bucket(s3: "S3Client", name: str, template: DeployedTemplate) -> Iterator[Finding]:
    """Yield whether each setting of the state bucket, and its policy, is as in the template."""
    where = {"Bucket": name, "ExpectedBucketOwner": template.account}
    resources = template.resources("AWS::S3::Bucket")
    here = (
        properties for logical_id, properties in resources if template.physical_ids.get(logical_id) == name
    )
    wanted = _only(here, f"bucket {name}")
    yield from _compare_bucket(
        *("bucket", "the bucket", s3, where, template),
        ("versioning", "Versioning", "Enabled", lambda: s3.get_bucket_versioning(**where).get("Status")),
        ("object_lock", "Object Lock", _wanted_object_lock(wanted), lambda: _object_lock(s3, where)),
        *_of_every_bucket(s3, where, wanted),
    )


def staging_bucket(s3: "S3Client", template: DeployedTemplate) -> Iterator[Finding]:
    """Yield whether the staging bucket, to which `cloud` and `remote` upload, is as in the template."""
    wanted = dict(template.resources("AWS::S3::Bucket")).get(_STAGING)
    if wanted is None:
        yield note(
            "staging_bucket",
            "The stack was deployed by a release that had no bucket for the uploads of `cloud` and `remote`.",
            "Deploy the team's stack again with `npx cdk deploy Holdfast-<team>`.",
        )
        return
    where = {"Bucket": template.resolve({"Ref": _STAGING}), "ExpectedBucketOwner": template.account}
    s3.head_bucket(**where)
    yield ok("staging_bucket", f"The staging bucket {where['Bucket']} exists.")
    yield from _compare_bucket(
        *("staging_bucket", "the staging bucket", s3, where, template),
        *_of_every_bucket(s3, where, wanted),
        ("lifecycle", "The lifecycle", _wanted_lifecycle(wanted), lambda: _lifecycle(s3, where)),
    )


def _of_every_bucket(s3: "S3Client", where: _Where, wanted: Mapping[str, Any]) -> tuple[_Setting, ...]:
    return (
        ("encryption", "The encryption", _wanted_encryption(wanted), lambda: _encryption(s3, where)),
        (
            "public_access",
            "The public access block",
            wanted["PublicAccessBlockConfiguration"],
            lambda: s3.get_public_access_block(**where)["PublicAccessBlockConfiguration"],
        ),
    )


def _compare_bucket(
    check: str, words: str, s3: "S3Client", where: _Where, template: DeployedTemplate, *settings: _Setting
) -> Iterator[Finding]:
    """Yield whether settings and policy of a bucket are as in the template. Texts call the bucket `words`."""

    def setting_differences(subject: str, wanted: object, read: Callable[[], object]) -> Iterator[str]:
        if (found := _unless_there_is_none(read)) != wanted:
            there, right = ("not set" if value is None else value for value in (found, wanted))
            yield f"{subject} is {there}, but {right} in the template."

    def policy() -> Iterator[str]:
        resources = template.resources("AWS::S3::BucketPolicy")
        documents = (one["PolicyDocument"] for _, one in resources if one["Bucket"] == where["Bucket"])
        wanted = _only(documents, f"policy of the bucket {where['Bucket']}")
        found = _unless_there_is_none(lambda: s3.get_bucket_policy(**where)["Policy"])
        yield from policy_differences(words, wanted, found or "{}")

    for name, setting, wanted, read in settings:
        subject = f"{setting} of {words}"
        differences = setting_differences(subject, wanted, read)
        yield from compare(f"{check}.{name}", f"{subject} is as in the template.", differences)
    yield from compare(f"{check}.policy", f"The policy of {words} is as in the template.", policy())


def default_retention(s3: "S3Client", name: str, owner: str) -> bool:
    """Return whether a bucket has a default retention, which S3 applies to every new object."""
    found = _unless_there_is_none(lambda: _object_lock(s3, {"Bucket": name, "ExpectedBucketOwner": owner}))
    return found is not None and found["DefaultRetention"] is not None


def _only(found: Iterator[_T], what: str) -> _T:
    for one in found:
        return one
    raise CommandError(f"The template has no {what}.")


def _unless_there_is_none(read: Callable[[], _T]) -> _T | None:
    try:
        return read()
    except ClientError as error:
        # S3's codes for a missing setting differ: NoSuchBucketPolicy, ObjectLockConfigurationNotFoundError.
        code = code_of(error)
        if code != "NoSuchBucket" and (code.startswith("NoSuch") or code.endswith("NotFoundError")):
            return None
        raise


def _wanted_object_lock(properties: Mapping[str, Any]) -> dict[str, Any] | None:
    if not properties.get("ObjectLockEnabled"):
        return None
    return _lock({**properties.get("ObjectLockConfiguration", {}), "ObjectLockEnabled": "Enabled"})


def _object_lock(s3: "S3Client", where: _Where) -> dict[str, Any]:
    return _lock(s3.get_object_lock_configuration(**where)["ObjectLockConfiguration"])


def _lock(found: Mapping[str, Any]) -> dict[str, Any]:
    retention = found.get("Rule", {}).get("DefaultRetention")
    return {"ObjectLockEnabled": found.get("ObjectLockEnabled"), "DefaultRetention": retention}


def _wanted_encryption(properties: Mapping[str, Any]) -> dict[str, Any]:
    rules = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    return _encryption_rule(rules, "ServerSideEncryptionByDefault")


def _encryption(s3: "S3Client", where: _Where) -> dict[str, Any]:
    rules = s3.get_bucket_encryption(**where)["ServerSideEncryptionConfiguration"]["Rules"]
    return _encryption_rule(rules, "ApplyServerSideEncryptionByDefault")


def _encryption_rule(rules: Any, by_default: str) -> dict[str, Any]:
    (rule,) = rules
    return {
        "SSEAlgorithm": rule[by_default]["SSEAlgorithm"],
        "KMSMasterKeyID": rule[by_default].get("KMSMasterKeyID"),
        "BucketKeyEnabled": bool(rule.get("BucketKeyEnabled")),
    }


def _wanted_lifecycle(properties: Mapping[str, Any]) -> list[dict[str, Any]]:
    rules = properties["LifecycleConfiguration"]["Rules"]
    return [
        _lifecycle_rule(rule, "Id", rule.get("ExpirationInDays"), rule.get("Prefix", "")) for rule in rules
    ]


def _lifecycle(s3: "S3Client", where: _Where) -> list[dict[str, Any]]:
    rules: list[Any] = s3.get_bucket_lifecycle_configuration(**where)["Rules"]
    found = []
    for rule in rules:
        narrower = dict(rule.get("Filter", {}))  # an old rule has no Filter, only a Prefix
        prefix = narrower.pop("Prefix", "") or rule.get("Prefix", "")
        found.append(_lifecycle_rule(rule, "ID", rule.get("Expiration", {}).get("Days"), narrower or prefix))
    return found


def _lifecycle_rule(rule: Mapping[str, Any], name: str, days: object, prefix: object) -> dict[str, Any]:
    return {
        "ID": rule.get(name),
        "Status": rule["Status"],
        "Days": days,
        "DaysOfUploads": rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation"),
        "Prefix": prefix,
    }


# --- roles ----------------------------------------------------------------------------------------


def roles(iam: Any, template: DeployedTemplate) -> Iterator[Finding]:
    """Yield a finding for each difference of the roles' permissions, or one finding if no role differs."""
    found = list(template.resources("AWS::IAM::Role"))
    differences_of_all = (
        f"In the role {name} {clause}."
        for logical_id, wanted in found
        for name in [template.resolve({"Ref": logical_id})]
        for clause in _role_differences(iam, name, wanted)
    )
    alike = f"The {len(found)} roles have the permissions of the template and no others."
    yield from compare("roles", alike, differences_of_all)


def _role_differences(iam: Any, name: str, wanted: Mapping[str, Any]) -> Iterator[str]:
    role = iam.get_role(RoleName=name)["Role"]
    for clause in differences(wanted["AssumeRolePolicyDocument"], role["AssumeRolePolicyDocument"]):
        yield f"the trust policy differs: {clause}"
    boundary = role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
    if boundary != (right := wanted.get("PermissionsBoundary")):
        yield f"the permissions boundary is {boundary or 'missing'}, but {right or 'none'} in the template"
    policies = {one["PolicyName"]: one["PolicyDocument"] for one in wanted.get("Policies", [])}
    deployed = {
        policy
        for page in iam.get_paginator("list_role_policies").paginate(RoleName=name)
        for policy in page["PolicyNames"]
    }
    yield from _names("policy", {*policies}, deployed, "is not in the template")
    for policy in sorted(deployed & policies.keys()):
        document = iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
        yield from differences(policies[policy], document)
    attached = {
        policy["PolicyArn"]
        for page in iam.get_paginator("list_attached_role_policies").paginate(RoleName=name)
        for policy in page["AttachedPolicies"]
    }
    managed = set(wanted.get("ManagedPolicyArns", []))
    yield from _names("managed policy", managed, attached, "is attached, but it is not in the template")


def _names(kind: str, wanted: set[str], found: set[str], additional: str) -> Iterator[str]:
    for name in sorted(wanted - found):
        yield f"the {kind} {name} is missing"
    for name in sorted(found - wanted):
        yield f"the {kind} {name} {additional}"


# --- the API's domain -----------------------------------------------------------------------------


def domains(template: DeployedTemplate) -> list[str]:
    """Return the domain of the deployed API, if it has one."""
    return [domain["DomainName"] for _, domain in template.resources("AWS::ApiGatewayV2::DomainName")]


def domain(gateway: Any, template: DeployedTemplate) -> Iterator[Finding]:
    """Yield whether the domain is ready, and whether the address that AWS gave the API is as deployed."""
    for name in domains(template):
        [configuration] = gateway.get_domain_name(DomainName=name)["DomainNameConfigurations"]
        yield Finding("domain.status", *_status(name, configuration))
        for logical_id, api in template.resources("AWS::ApiGatewayV2::Api"):
            deployed = gateway.get_api(ApiId=template.physical_ids[logical_id])
            is_off = bool(deployed.get(_OFF))
            yield Finding("domain.default_endpoint", *_default_endpoint(is_off, bool(api.get(_OFF))))


def _status(name: str, configuration: Mapping[str, Any]) -> Outcome:
    status = configuration.get("DomainNameStatus", "AVAILABLE")
    if status == "AVAILABLE":
        target = configuration["ApiGatewayDomainName"]
        return Level.OK, f"The domain {name} is ready. Its DNS record must lead to {target}."
    do = (
        "If the status is UPDATING, wait. Otherwise, look at the domain's certificate in ACM. Then run this "
        "command again."
    )
    return Level.PROBLEM, f"The domain {name} has the status {status}.", do


def _default_endpoint(is_off: bool, is_off_in_template: bool) -> Outcome:
    text = f"The address that AWS gave the API is {'disabled' if is_off else 'enabled'}"
    if is_off == is_off_in_template:
        return Level.OK, f"{text}, as in the template."
    do = f"Set the API's {_OFF} to {'true' if is_off_in_template else 'false'} in API Gateway."
    return (
        Level.PROBLEM,
        f"{text}, but it is {'disabled' if is_off_in_template else 'enabled'} in the template.",
        do,
    )
