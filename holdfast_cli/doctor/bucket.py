"""Compares the settings and the policy of a team's bucket with the template of its stack."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from holdfast_cli import records, stack
from holdfast_cli.aws_errors import code_of
from holdfast_cli.doctor.checks import attempt, is_denied
from holdfast_cli.doctor.findings import Finding, ok, problem
from holdfast_cli.doctor.policies import differences
from holdfast_cli.doctor.template import DeployedTemplate, UnresolvedError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_T = TypeVar("_T")


def reached(client: "S3Client", found: stack.Stack) -> Iterator[Finding]:
    """Yield whether the bucket is there, in the account of its stack.

    Args:
        client: with the operator's credentials.
        found: the team's stack.

    Raises:
        ClientError: an error other than that S3 refuses the request.
    """
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
    """Return whether the template of a stack has the lifecycle rule that removes what a probe left."""
    return any(
        rule.get("Id") == "probes"
        for resource in document["Resources"].values()
        if resource["Type"] == "AWS::S3::Bucket"
        for rule in resource.get("Properties", {}).get("LifecycleConfiguration", {}).get("Rules", [])
    )


def check(client: "S3Client", bucket: str, template: DeployedTemplate, do: str) -> Iterator[Finding]:
    """Yield what differs, and what does not.

    Args:
        client: with the operator's credentials.
        bucket: the team's bucket.
        template: of the team's stack.
        do: what brings a setting back that was changed past CloudFormation.

    Raises:
        UnresolvedError: the template lacks the bucket, or has a reference that is not known.
    """
    where = {"Bucket": bucket, "ExpectedBucketOwner": template.account}
    wanted = _only(
        (
            properties
            for logical_id, properties in template.resources("AWS::S3::Bucket")
            if template.physical_ids.get(logical_id) == bucket
        ),
        f"bucket {bucket}",
    )
    checks: tuple[tuple[str, str, object, Callable[[], object]], ...] = (
        ("versioning", "Versioning", "Enabled", lambda: client.get_bucket_versioning(**where).get("Status")),
        ("object_lock", "Object Lock", _wanted_object_lock(wanted), lambda: _object_lock(client, where)),
        ("encryption", "The encryption", _wanted_encryption(wanted), lambda: _encryption(client, where)),
        (
            "public_access",
            "The block of public access",
            wanted["PublicAccessBlockConfiguration"],
            lambda: client.get_public_access_block(**where)["PublicAccessBlockConfiguration"],
        ),
    )
    for name, subject, value, read in checks:
        yield from attempt(f"bucket.{name}", lambda: _setting(f"bucket.{name}", subject, value, read, do))  # noqa: B023
    yield from attempt("bucket.policy", lambda: _policy(client, where, template, do))


def _only(found: Iterator[_T], what: str) -> _T:
    for one in found:
        return one
    raise UnresolvedError(f"The template has no {what}.")


def default_retention(client: "S3Client", bucket: str, owner: str) -> bool:
    """Return whether the bucket puts every new object under retention.

    Raises:
        ClientError: AWS denies the call, or another error.
    """
    found = _object_lock(client, {"Bucket": bucket, "ExpectedBucketOwner": owner})
    return found is not None and found["DefaultRetention"] is not None


def _setting(
    check: str, subject: str, wanted: object, read: Callable[[], object], do: str
) -> Iterator[Finding]:
    found = _unless_there_is_none(read)
    if found == wanted:
        yield ok(check, f"{subject} of the bucket is as in the template.")
    else:
        yield problem(check, f"{subject} of the bucket is {found}, in the template {wanted}.", do)


def _wanted_object_lock(properties: Mapping[str, Any]) -> dict[str, Any] | None:
    if not properties.get("ObjectLockEnabled"):
        return None
    rule = properties.get("ObjectLockConfiguration", {}).get("Rule", {})
    return {"ObjectLockEnabled": "Enabled", "DefaultRetention": rule.get("DefaultRetention")}


def _object_lock(client: "S3Client", where: Mapping[str, str]) -> dict[str, Any] | None:
    def read() -> Mapping[str, Any]:
        return client.get_object_lock_configuration(**where)["ObjectLockConfiguration"]

    found = _unless_there_is_none(read)
    if found is None:
        return None
    rule = found.get("Rule", {})
    return {
        "ObjectLockEnabled": found.get("ObjectLockEnabled"),
        "DefaultRetention": rule.get("DefaultRetention"),
    }


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


def _policy(
    client: "S3Client", where: Mapping[str, str], template: DeployedTemplate, do: str
) -> Iterator[Finding]:
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
        yield ok("bucket.policy", "The policy of the bucket is as in the template.")
    for clause in clauses:
        yield problem("bucket.policy", f"In the policy of the bucket {clause}.", do)


def _unless_there_is_none(read: Callable[[], _T]) -> _T | None:
    try:
        return read()
    except ClientError as error:
        # S3 has a code for each, such as NoSuchBucketPolicy and ObjectLockConfigurationNotFoundError.
        code = code_of(error)
        if code != "NoSuchBucket" and (code.startswith("NoSuch") or code.endswith("NotFoundError")):
            return None
        raise
