"""Compares the settings and the policies of a team's buckets with the template of the team's stack."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import ClientError

from holdfast_cli.bucket import records, stack
from holdfast_cli.bucket.aws_errors import code_of
from holdfast_cli.doctor.checks import attempt, is_denied
from holdfast_cli.doctor.findings import REVERT, Finding, note, ok, problem
from holdfast_cli.doctor.policies import differences
from holdfast_cli.doctor.template import DeployedTemplate, UnresolvedError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_T = TypeVar("_T")

_STAGING: Final = "StagingBucket"
"""The logical ID of the bucket for uploads of large states."""


@dataclass(frozen=True, slots=True)
class _Bucket:
    """A bucket: the prefix of its checks' names, the bucket's name in texts, and every call's parameters."""

    check: str
    words: str
    where: Mapping[str, str]


def reached(client: "S3Client", found: stack.Stack) -> Iterator[Finding]:
    """Yield whether the bucket exists and belongs to the account of its stack."""
    try:
        client.head_bucket(Bucket=found.bucket, ExpectedBucketOwner=found.account)
    except ClientError as error:
        if not is_denied(error):
            raise
        yield problem(
            "bucket",
            records.refused(found),
            "Use an identity that may list the bucket; if S3 refuses that too, it is somebody else's bucket.",
        )
    else:
        yield ok("bucket", f"The bucket {found.bucket} is there, in the account {found.account}.")


def removes_probes(document: Mapping[str, Any]) -> bool:
    """Return whether a template has the lifecycle rule that removes the objects of probes."""
    return any(
        rule.get("Id") == "probes"
        for resource in document["Resources"].values()
        if resource["Type"] == "AWS::S3::Bucket"
        for rule in resource.get("Properties", {}).get("LifecycleConfiguration", {}).get("Rules", [])
    )


def check(client: "S3Client", bucket: str, template: DeployedTemplate) -> Iterator[Finding]:
    """Yield whether each setting of the bucket, and its policy, is as in the template."""
    one = _Bucket("bucket", "the bucket", {"Bucket": bucket, "ExpectedBucketOwner": template.account})
    wanted = _only(
        (
            properties
            for logical_id, properties in template.resources("AWS::S3::Bucket")
            if template.physical_ids.get(logical_id) == bucket
        ),
        f"bucket {bucket}",
    )
    where = one.where
    yield from _compare(
        one,
        ("versioning", "Versioning", "Enabled", lambda: client.get_bucket_versioning(**where).get("Status")),
        ("object_lock", "Object Lock", _wanted_object_lock(wanted), lambda: _object_lock(client, where)),
        *_of_every_bucket(client, where, wanted),
    )
    yield from attempt("bucket.policy", lambda: _policy(client, one, template))


def check_staging(client: "S3Client", template: DeployedTemplate) -> Iterator[Finding]:
    """Yield whether the staging bucket, to which `cloud` and `remote` upload, is as in the template."""
    wanted = dict(template.resources("AWS::S3::Bucket")).get(_STAGING)
    if wanted is None:
        yield note(
            "staging_bucket",
            "The stack was deployed before it had a bucket for the uploads of `cloud` and `remote`.",
            "Deploy it again with `npx cdk deploy`.",
        )
        return
    where = {"Bucket": template.resolve({"Ref": _STAGING}), "ExpectedBucketOwner": template.account}
    one = _Bucket("staging_bucket", "the staging bucket", where)
    client.head_bucket(**where)
    yield ok("staging_bucket", f"The staging bucket {where['Bucket']} is there.")
    yield from _compare(
        one,
        *_of_every_bucket(client, where, wanted),
        ("lifecycle", "The lifecycle", _wanted_lifecycle(wanted), lambda: _lifecycle(client, where)),
    )
    yield from attempt("staging_bucket.policy", lambda: _policy(client, one, template))


_Check = tuple[str, str, object, Callable[[], object]]
"""A check: the end of its name, its subject in texts, the value in the template, and how to read it."""


def _of_every_bucket(
    client: "S3Client", where: Mapping[str, str], wanted: Mapping[str, Any]
) -> tuple[_Check, ...]:
    return (
        ("encryption", "The encryption", _wanted_encryption(wanted), lambda: _encryption(client, where)),
        (
            "public_access",
            "The block of public access",
            wanted["PublicAccessBlockConfiguration"],
            lambda: client.get_public_access_block(**where)["PublicAccessBlockConfiguration"],
        ),
    )


def _compare(one: _Bucket, *checks: _Check) -> Iterator[Finding]:
    for check in checks:
        yield from attempt(f"{one.check}.{check[0]}", lambda: _setting(one, check))  # noqa: B023 called at once


def _only(found: Iterator[_T], what: str) -> _T:
    for one in found:
        return one
    raise UnresolvedError(f"The template has no {what}.")


def default_retention(client: "S3Client", bucket: str, owner: str) -> bool:
    """Return whether the bucket has a default retention, which S3 applies to every new object."""
    found = _object_lock(client, {"Bucket": bucket, "ExpectedBucketOwner": owner})
    return found is not None and found["DefaultRetention"] is not None


def _setting(one: _Bucket, check: _Check) -> Iterator[Finding]:
    name, subject, wanted, read = check
    found = _unless_there_is_none(read)
    if found == wanted:
        yield ok(f"{one.check}.{name}", f"{subject} of {one.words} is as in the template.")
    else:
        text = f"{subject} of {one.words} is {found}, in the template {wanted}."
        yield problem(f"{one.check}.{name}", text, REVERT)


def _wanted_object_lock(properties: Mapping[str, Any]) -> dict[str, Any] | None:
    if not properties.get("ObjectLockEnabled"):
        return None
    return _lock({**properties.get("ObjectLockConfiguration", {}), "ObjectLockEnabled": "Enabled"})


def _object_lock(client: "S3Client", where: Mapping[str, str]) -> dict[str, Any] | None:
    found = _unless_there_is_none(lambda: client.get_object_lock_configuration(**where))
    return None if found is None else _lock(found["ObjectLockConfiguration"])


def _lock(found: Mapping[str, Any]) -> dict[str, Any]:
    retention = found.get("Rule", {}).get("DefaultRetention")
    return {"ObjectLockEnabled": found.get("ObjectLockEnabled"), "DefaultRetention": retention}


def _wanted_encryption(properties: Mapping[str, Any]) -> dict[str, Any]:
    (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    return _rule(rule["ServerSideEncryptionByDefault"], rule)


def _encryption(client: "S3Client", where: Mapping[str, str]) -> dict[str, Any]:
    (rule,) = client.get_bucket_encryption(**where)["ServerSideEncryptionConfiguration"]["Rules"]
    return _rule(rule["ApplyServerSideEncryptionByDefault"], rule)


def _rule(by_default: Mapping[str, Any], rule: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "SSEAlgorithm": by_default["SSEAlgorithm"],
        "KMSMasterKeyID": by_default.get("KMSMasterKeyID"),
        "BucketKeyEnabled": bool(rule.get("BucketKeyEnabled")),
    }


def _wanted_lifecycle(properties: Mapping[str, Any]) -> list[dict[str, Any]]:
    rules = properties["LifecycleConfiguration"]["Rules"]
    return [
        _lifecycle_rule(rule, "Id", rule.get("ExpirationInDays"), rule.get("Prefix", "")) for rule in rules
    ]


def _lifecycle(client: "S3Client", where: Mapping[str, str]) -> list[dict[str, Any]]:
    rules: list[Any] = client.get_bucket_lifecycle_configuration(**where)["Rules"]
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


def _policy(client: "S3Client", one: _Bucket, template: DeployedTemplate) -> Iterator[Finding]:
    where = one.where
    wanted = _only(
        (
            properties["PolicyDocument"]
            for _, properties in template.resources("AWS::S3::BucketPolicy")
            if properties["Bucket"] == where["Bucket"]
        ),
        f"policy of the bucket {where['Bucket']}",
    )
    found = _unless_there_is_none(lambda: client.get_bucket_policy(**where)["Policy"])
    clauses = list(differences(wanted, json.loads(found) if found else {}))
    if not clauses:
        yield ok(f"{one.check}.policy", f"The policy of {one.words} is as in the template.")
    for clause in clauses:
        yield problem(f"{one.check}.policy", f"In the policy of {one.words} {clause}.", REVERT)


def _unless_there_is_none(read: Callable[[], _T]) -> _T | None:
    try:
        return read()
    except ClientError as error:
        # S3's codes for a missing setting differ: NoSuchBucketPolicy, ObjectLockConfigurationNotFoundError.
        code = code_of(error)
        if code != "NoSuchBucket" and (code.startswith("NoSuch") or code.endswith("NotFoundError")):
            return None
        raise
