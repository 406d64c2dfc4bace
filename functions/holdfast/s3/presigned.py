"""Presigned addresses: their bearer may read or write one object for some time."""

from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config
from botocore.credentials import RefreshableCredentials

from holdfast.s3.store import sdk_session

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from botocore.session import Session
    from mypy_boto3_s3 import S3Client


ENOUGH_LIFE: Final = 20 * 60
"""Seconds that credentials should live on when they sign: an address ends with them, and the longest-lived is
valid for 15 minutes.
"""


class Signer:
    """Makes S3 clients that sign addresses, with credentials that live long enough where their end is known.

    The SDK by itself renews what ends within 15 minutes: too late for an address and a slow client.
    Credentials from an endpoint, as under Lambda's SnapStart, tell their end. Those in the environment, as in
    Lambda without it, do not, and nothing can renew them.
    """

    def __init__(self, *, endpoint_url: str | None = None) -> None:
        self._endpoint_url = endpoint_url
        session = sdk_session()
        self._credentials = session.get_credentials()
        self._client = _client(session, endpoint_url)

    def client(self) -> "S3Client":
        """Return a client for the addresses that are signed now.

        Its credentials can end sooner than wanted, if the endpoint has no others yet.
        """
        if _ends_soon(self._credentials):
            session = sdk_session()
            renewed = session.get_credentials()
            if not _ends_soon(renewed):  # otherwise nothing is won, and a client takes long to make
                self._credentials, self._client = renewed, _client(session, self._endpoint_url)
        return self._client


def _ends_soon(credentials: "Credentials | None") -> bool:
    return isinstance(credentials, RefreshableCredentials) and credentials.refresh_needed(ENOUGH_LIFE)


def _client(session: "Session", endpoint_url: str | None) -> "S3Client":
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"})
    if endpoint_url is None:
        # The bucket's own host name in its region: the global name of a new bucket redirects for hours, and
        # an address that is signed for one host is not valid at another.
        config = config.merge(
            Config(s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"})
        )
    create: Any = session.create_client
    client: S3Client = create("s3", config=config, endpoint_url=endpoint_url)
    return client


class Presigned:
    """Signs addresses of one bucket. No request is sent.

    An address holds all that it takes to use it, so it is never logged. It ends with the credentials that
    signed it, if those end first. The client is a `Signer`'s.
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
