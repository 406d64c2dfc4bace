"""Statements of a bucket policy by which the command lets a bucket refuse writes. Other statements stay."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from holdfast import json_object
from holdfast_cli.bucket.aws_errors import code_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LARGEST_POLICY: Final = 20 * 1024
"""The largest bucket policy that S3 accepts, in bytes."""

_NO_POLICY: Final = b'{"Version":"2012-10-17","Statement":[]}'


@dataclass(frozen=True, slots=True)
class Refusal:
    """The statement with the ID `sid`, which denies `actions` to everybody."""

    sid: str
    actions: tuple[str, ...]

    def changed(self, policy: bytes, more: Collection[str], fewer: Collection[str] = ()) -> bytes | None:
        """Return a bucket policy that denies the actions on `more` objects, and no longer on `fewer`.

        None if no statement is left. The other statements stay byte for byte.
        """
        statement = json_object.members(policy)["Statement"]
        written = statement.written(policy)
        old = list(json_object.elements(written)) if written.startswith(b"[") else [written]
        ours = [json_object.parse(each) for each in old]
        ours = [each for each in ours if each.get("Sid") == self.sid]
        denied = {one for each in ours for one in _texts(each.get("Resource"))}
        resources = sorted((denied - set(fewer)) | set(more))
        if set(resources) == denied:
            return policy
        new = [each for each in old if json_object.parse(each).get("Sid") != self.sid]
        if resources:
            refusal = {
                "Sid": self.sid,
                "Effect": "Deny",
                "Principal": "*",
                "Action": self.actions[0] if len(self.actions) == 1 else list(self.actions),
                "Resource": resources,
            }
            new.append(json.dumps(refusal, ensure_ascii=False, separators=(",", ":")).encode())
        return (
            policy[: statement.start] + b"[" + b",".join(new) + b"]" + policy[statement.end :]
            if new
            else None
        )


def policy(s3: "S3Client", bucket: str) -> bytes:
    """Return a bucket's policy; one without statements if the bucket has none."""
    try:
        return s3.get_bucket_policy(Bucket=bucket)["Policy"].encode()
    except ClientError as error:
        if code_of(error) != "NoSuchBucketPolicy":
            raise
        return _NO_POLICY


def put(s3: "S3Client", bucket: str, old: bytes, new: bytes | None) -> None:
    """Replace a bucket's policy, if it changes; None removes it."""
    if new is None:
        s3.delete_bucket_policy(Bucket=bucket)
    elif new != old:
        s3.put_bucket_policy(Bucket=bucket, Policy=new.decode())


def _texts(value: Any) -> Sequence[str]:
    """Return the elements of a list; S3 returns a list of one text as this text."""
    return [value] if isinstance(value, str) else [str(each) for each in value or ()]
