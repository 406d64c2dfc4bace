"""Presigned addresses: the bearer of an address may read or write one object for a limited time."""

from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config
from botocore.credentials import RefreshableCredentials

from holdfast.s3.store import sdk_session

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from botocore.session import Session
    from mypy_boto3_s3 import S3Client


ENOUGH_LIFE: Final = 20 * 60
"""Seconds for which credentials should still be valid when they sign an address. The address expires with
its credentials at the latest, and the longest-lived address is valid for 15 minutes.
"""


class Signer:
    """Create S3 clients that sign addresses with credentials that stay valid for `ENOUGH_LIFE` if possible.

    The SDK renews credentials 15 minutes before they expire. That is too late if a slow client uses the
    address. Credentials from an endpoint, as with Lambda's SnapStart, have a known expiry. Credentials in
    the environment, as in Lambda without SnapStart, have no known expiry and cannot be renewed.
    """

    def __init__(self, *, endpoint_url: str | None = None) -> None:
        self._endpoint_url = endpoint_url
        session = sdk_session()
        self._credentials = session.get_credentials()
        self._client = _client(session, endpoint_url)

    def client(self) -> "S3Client":
        """Return a client that signs addresses now.

        Its credentials expire in less than `ENOUGH_LIFE` if the endpoint does not have newer credentials yet.
        """
        if _ends_soon(self._credentials):
            session = sdk_session()
            renewed = session.get_credentials()
            if not _ends_soon(renewed):  # otherwise a new client, which takes long to create, would not help
                self._credentials, self._client = renewed, _client(session, self._endpoint_url)
        return self._client


def _ends_soon(credentials: "Credentials | None") -> bool:
    return isinstance(credentials, RefreshableCredentials) and credentials.refresh_needed(ENOUGH_LIFE)


def _client(session: "Session", endpoint_url: str | None) -> "S3Client":
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"})
    if endpoint_url is None:
        # Use the bucket's host name in its region: the global name of a new bucket redirects for hours, and
        # an address that is signed for one host name is not valid under another host name.
        config = config.merge(
            Config(s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"})
        )
    create: Any = session.create_client
    client: S3Client = create("s3", config=config, endpoint_url=endpoint_url)
    return client


class Presigned:
    """Sign addresses of objects in one bucket, without a request.

    An address grants access by itself, so it must never be logged. It expires early if the credentials that
    signed it expire first. The client comes from a `Signer`.
    """

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, seconds: int) -> str:
        """Return an address at which an object with any content can be uploaded for this many seconds."""
        where = {"Bucket": self._bucket, "Key": key}
        return self._client.generate_presigned_url("put_object", where, ExpiresIn=seconds)

    def get(self, key: str, version_id: str, seconds: int) -> str:
        """Return an address from which a version of an object can be read for this many seconds."""
        where = {"Bucket": self._bucket, "Key": key, "VersionId": version_id}
        return self._client.generate_presigned_url("get_object", where, ExpiresIn=seconds)
