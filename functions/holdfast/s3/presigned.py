"""Presigned addresses: the bearer of an address may read or write one object for a limited time."""

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from holdfast.errors import OutcomeUnknown
from holdfast.s3.sdk import sdk_session

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


SESSION: Final = timedelta(minutes=60)
"""How long the credentials that sign addresses are valid. A role that another role assumes allows no more:
https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles.html#iam-term-role-chaining
"""
ENOUGH_LIFE: Final = timedelta(minutes=20)
"""How long credentials must still be valid when they sign an address. An address expires with its credentials
at the latest, and the longest-lived address is valid for 15 minutes.
"""

_STS: Final = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 2})
"""An attempt takes at most the 3 seconds that are left after the last request to S3 (`store.deadline`). The
second attempt follows a refusal, such as for too many requests, which comes at once.
"""


class Signer:
    """Sign addresses as a role that has only the permissions of the addresses.

    A process assumes the role for the first address, and again before the credentials expire. Without the
    role, an address would carry the function's own credentials: Amazon GuardDuty reports credentials of a
    function that are used outside of AWS, and their expiry is unknown.
    """

    def __init__(self, role: str, *, endpoint_url: str | None = None) -> None:
        self._role = role
        self._expiration = datetime.min.replace(tzinfo=UTC)
        session = sdk_session()
        session.set_credentials("none", "none", "none")
        # The client signs with this object, so it gets new credentials when the object does.
        self._credentials: Any = session.get_credentials()
        self._client = _client(session, endpoint_url)
        create: Any = sdk_session().create_client
        self._sts: Any = create("sts", config=_STS)

    def client(self) -> "S3Client":
        """Return a client that signs addresses now, with credentials valid for `ENOUGH_LIFE` or longer.

        Raises:
            OutcomeUnknown: AWS STS did not return credentials.
        """
        if self._expiration - datetime.now(UTC) < ENOUGH_LIFE:
            self._assume_role()
        return self._client

    def _assume_role(self) -> None:
        try:
            assumed = self._sts.assume_role(
                RoleArn=self._role,
                RoleSessionName=os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "holdfast"),
                DurationSeconds=int(SESSION.total_seconds()),
            )["Credentials"]
        except ClientError as error:
            raise _no_credentials(error.response["Error"]["Code"]) from error
        except BotoCoreError as error:
            raise _no_credentials(type(error).__name__) from error
        self._credentials.access_key = assumed["AccessKeyId"]
        self._credentials.secret_key = assumed["SecretAccessKey"]
        self._credentials.token = assumed["SessionToken"]
        self._expiration = assumed["Expiration"]


def _no_credentials(reason: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"AWS STS returned no credentials with which the function can sign an S3 address ({reason}). A "
        "retry is safe. If the error persists, check that the trust policy of the role for transfers names "
        "the function's role, and deploy again.",
        {"reason": reason},
    )


def _client(session: Any, endpoint_url: str | None) -> "S3Client":
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"})
    if endpoint_url is None:
        # Use the bucket's host name in its region: the global name of a new bucket redirects for hours, and
        # an address that is signed for one host name is not valid under another host name.
        config = config.merge(
            Config(s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"})
        )
    client: S3Client = session.create_client("s3", config=config, endpoint_url=endpoint_url)
    return client


class Presigned:
    """Sign addresses of objects in one bucket, without a request.

    An address grants access by itself, so it must never be logged. The client comes from a `Signer`.
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
