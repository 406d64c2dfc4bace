"""Looks into the table of `dynamodb_lock`: who uses it, and whether each digest is that of its state."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from holdfast import names
from holdfast_cli.bucket.aws_errors import code_of
from holdfast_cli.doctor.findings import Finding, note, ok, problem
from holdfast_cli.doctor.template import DeployedTemplate

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SETTING: Final = "HOLDFAST_DYNAMODB_LOCK"
_DIGEST: Final = "-md5"
_SHOWN: Final = 5


def table_of(template: DeployedTemplate) -> str | None:
    """Return the table that the deployed functions use; None if the team has none."""
    for resource in template.document["Resources"].values():
        environment = resource.get("Properties", {}).get("Environment", {})
        if resource["Type"] == "AWS::Lambda::Function" and _SETTING in environment.get("Variables", {}):
            return str(environment["Variables"][_SETTING])
    return None


def check(dynamodb: Any, s3: "S3Client", bucket: str, table: str) -> Iterator[Finding]:
    """Yield whether other clients use the table, and whether its digests are right."""
    before, _, after = names.StateName("*").state_key.partition("*")
    place = f"{bucket}/{before}"
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table,
        ConsistentRead=True,
        FilterExpression="begins_with(LockID, :place)",
        ExpressionAttributeValues={":place": {"S": place}},
    )
    items = [item for page in pages for item in page["Items"]]
    others = [item for item in items if not item.keys() & {"HoldfastVersion", "HoldfastWrite"}]

    def listed(keys: Iterable[str]) -> str:
        shown = sorted({key.removeprefix(place).removesuffix(after) for key in keys})
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        return f"{', '.join(shown[:_SHOWN])}{more}"

    if others:
        shown = listed(map(_key, others))
        yield ok("lock_table.used", f"Other clients used the table {table} last for: {shown}.")
    else:
        yield note(
            "lock_table.used",
            f"No other client has locked or written a state in the table {table} since Holdfast wrote it.",
            "If no configuration has `dynamodb_table` any more, remove the setting `dynamodb_lock`.",
        )
    digests = [item for item in items if _key(item) != item["LockID"]["S"] and "Digest" in item]
    wrong = {_key(item) for item in digests if not _is_right(dynamodb, s3, bucket, table, item)}
    if wrong:
        yield problem(
            "lock_table.digests",
            f"Clients with the table {table} cannot read these states, whose digest is that of another "
            f"version: {listed(wrong)}.",
            "For each, run `holdfast state restore` with its current version. If a state is deleted, delete "
            f"the item whose key ends with {_DIGEST}.",
        )
    else:
        yield ok("lock_table.digests", f"The table {table} has {len(digests)} digests, and all are right.")


def _key(item: Mapping[str, Any]) -> str:
    """Return `<bucket>/<key>` of the state of an item."""
    return str(item["LockID"]["S"]).removesuffix(_DIGEST)


def _is_right(dynamodb: Any, s3: "S3Client", bucket: str, table: str, item: Mapping[str, Any]) -> bool:
    """Return whether a digest is that of its state, or has changed while the state was read."""
    try:
        body = s3.get_object(Bucket=bucket, Key=_key(item).removeprefix(f"{bucket}/"))["Body"].read()
    except ClientError as error:
        if code_of(error) != "NoSuchKey":
            raise
        body = None
    if body is not None and item["Digest"]["S"] == hashlib.md5(body, usedforsecurity=False).hexdigest():
        return True
    again = dynamodb.get_item(TableName=table, Key={"LockID": item["LockID"]}, ConsistentRead=True)
    return bool(again.get("Item") != item)
