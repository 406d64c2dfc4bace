"""Removes the objects of a probe from the team's bucket, even if the probe fails or is interrupted."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from holdfast_cli.doctor.findings import Finding, Level, note, ok

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def cleaned(
    client: "S3Client",
    bucket: str,
    owner: str,
    prefix: str,
    probe: Callable[[], Iterable[Finding]],
    *,
    check: str,
) -> list[Finding]:
    """Run a probe, remove all versions of all keys below the probe's prefix, and return the findings.

    Findings are returned only after the removal, so that a closed output leaves no object behind. After a
    first Ctrl-C, everything is still removed. A second Ctrl-C stops this removal, too.

    The last finding, named `check`, says whether everything was removed. An exception of the probe, also a
    KeyboardInterrupt, gets a note that names the remaining objects.
    """
    try:
        return [*probe(), _remove(client, bucket, owner, prefix, check)]
    except BaseException as error:
        try:
            left = _remove(client, bucket, owner, prefix, check)
        except KeyboardInterrupt as again:
            again.add_note(_left({f"{prefix}*"}, "interrupted"))
            raise
        if left.level is not Level.OK:
            error.add_note(left.text)
        raise


def _remove(client: "S3Client", bucket: str, owner: str, prefix: str, check: str) -> Finding:
    reason = "still there"
    try:
        for key, version_id in _versions(client, bucket, owner, prefix):
            try:
                client.delete_object(Bucket=bucket, Key=key, VersionId=version_id, ExpectedBucketOwner=owner)
            except ClientError as error:  # the others may be removed all the same
                reason = _line(error)
        left = {key for key, _ in _versions(client, bucket, owner, prefix)}
    except (BotoCoreError, ClientError) as error:
        left = {f"{prefix}*"}
        reason = _line(error)
    if not left:
        return ok(check, f"Every version that this command wrote to {prefix}* is removed.")
    return note(
        check,
        _left(left, reason),
        (
            "You do not have to do anything, because a lifecycle rule of the bucket removes them within four "
            "days."
        ),
    )


def _left(keys: Iterable[str], reason: str) -> str:
    return f"Some versions of {', '.join(sorted(keys))} were not removed: {reason}."


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _versions(client: "S3Client", bucket: str, owner: str, prefix: str) -> list[tuple[str, str]]:
    """Return the key and the ID of every version and every delete marker below a prefix."""
    pages = client.get_paginator("list_object_versions").paginate(
        Bucket=bucket, Prefix=prefix, ExpectedBucketOwner=owner
    )
    return [
        (version["Key"], version["VersionId"])
        for page in pages
        for version in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    ]
