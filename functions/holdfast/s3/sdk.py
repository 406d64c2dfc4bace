"""The SDK's client of S3, with timeouts and without retries, which are those of `holdfast.s3.retry`."""

import re
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import botocore.session
from botocore.config import Config
from botocore.utils import parse_timestamp

from holdfast import __version__
from holdfast.s3 import tls
from holdfast.s3.budget import CONNECT_TIMEOUT, READ_TIMEOUT

if TYPE_CHECKING:
    import boto3
    from botocore.awsrequest import AWSPreparedRequest
    from mypy_boto3_s3 import S3Client

EXPECT_THRESHOLD: Final = 2 * 1024 * 1024
"""Body size from which a write waits for S3's consent before it sends the body (`Expect: 100-continue`).

It is the default of AWS's newer SDKs:
https://docs.aws.amazon.com/sdk-for-kotlin/api/latest/s3/aws.sdk.kotlin.services.s3/-s3-client/-config/-builder/continue-header-threshold-bytes.html
"""

_LISTED_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", re.ASCII)
"""The form of a time in S3's responses to list requests."""


def connect(
    session: "boto3.Session | None" = None,
    *,
    endpoint_url: str | None = None,
    read_timeout: float = READ_TIMEOUT,
) -> "S3Client":
    """Create an S3 client that leaves retries to `Store`. A process should create it once.

    Credentials and region come from the session, by default from the environment. The first request opens the
    first connection.
    """
    config = Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=read_timeout,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent=f"holdfast/{__version__}",  # botocore would compute its own for every request
    )
    # Without a session boto3 is not needed: importing it would lengthen a cold start by a fifth.
    create: Any = session.client if session else sdk_session().create_client
    client: S3Client = create("s3", config=config, endpoint_url=endpoint_url)
    client.meta.events.register("before-send.s3.PutObject", _send_at_once)
    tls.read_authorities_once(client)
    return client


def sdk_session() -> botocore.session.Session:
    """Return a new session of the SDK, with its own credentials.

    The sessions of a process share the SDK's description of S3, because loading it takes longer than all
    other work for a new client.
    """
    session = botocore.session.get_session()
    session.register_component("data_loader", _description_of_s3())
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_timestamp)
    return session


@cache
def _description_of_s3() -> Any:
    return botocore.session.get_session().get_component("data_loader")


def _timestamp(value: Any) -> datetime:
    """Parse a time faster than the SDK, which spends two thirds of its work for 1,000 keys on their times."""
    if isinstance(value, str) and _LISTED_TIME.fullmatch(value):
        return datetime.fromisoformat(value)
    parsed: datetime = parse_timestamp(value)
    return parsed


def _send_at_once(request: "AWSPreparedRequest", **_: Any) -> None:
    """Send a small body together with its headers; botocore would wait one round trip before the body."""
    headers = request.headers
    if "Expect" in headers and int(headers.get("Content-Length", EXPECT_THRESHOLD)) < EXPECT_THRESHOLD:
        del headers["Expect"]
