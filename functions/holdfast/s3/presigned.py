"""Addresses that are signed in advance: their bearer may read or write one object for some time."""

from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def signer(*, endpoint_url: str | None = None) -> "S3Client":
    """Make an S3 client that signs addresses; keep it as long as the process lives.

    Args:
        endpoint_url: where the clients find S3; by default what the environment says, else AWS.
    """
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"})
    if endpoint_url is None:
        # The bucket's own host name in its region: the global name of a new bucket redirects for hours, and
        # an address that is signed for one host is not valid at another.
        config = config.merge(
            Config(s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"})
        )
    create: Any = botocore.session.get_session().create_client
    client: S3Client = create("s3", config=config, endpoint_url=endpoint_url)
    return client


class Presigned:
    """Signs addresses of one bucket. No request is sent.

    An address holds what it needs to be used, so it is never logged. It ends with the credentials that
    signed it, if those end first.

    Args:
        client: an S3 client made by `signer`.
        bucket: the bucket's name.
    """

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, seconds: int) -> str:
        """Return the address at which an object can be written, with any body."""
        where = {"Bucket": self._bucket, "Key": key}
        return self._client.generate_presigned_url("put_object", where, ExpiresIn=seconds)

    def get(self, key: str, version_id: str, seconds: int) -> str:
        """Return the address at which one version of an object can be read."""
        where = {"Bucket": self._bucket, "Key": key, "VersionId": version_id}
        return self._client.generate_presigned_url("get_object", where, ExpiresIn=seconds)
