"""AWS clients of a local AWS's root user. The user's own AWS settings are ignored."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local_aws.failure import LocalAwsError
from local_aws.server import REGION, LocalAws

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

_CONFIG = Config(
    connect_timeout=5,
    read_timeout=30,
    retries={"mode": "standard", "total_max_attempts": 3},
    s3={"addressing_style": "path"},
    proxies={},
)
# Where botocore finds the user's settings: name in a file, name in the environment, default, type.
_NO_USER = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


def _session(region: str = REGION) -> boto3.Session:
    session = botocore.session.Session(_NO_USER)
    session.set_credentials("test", "test")
    return boto3.Session(botocore_session=session, region_name=region)


def s3_client(aws: LocalAws, region: str = REGION) -> "S3Client":
    return _session(region).client("s3", endpoint_url=aws.endpoint, verify=_verify(aws), config=_CONFIG)


def cloudformation_client(aws: LocalAws, region: str = REGION) -> "CloudFormationClient":
    return _session(region).client(
        "cloudformation", endpoint_url=aws.endpoint, verify=_verify(aws), config=_CONFIG
    )


@contextmanager
def said_plainly(aws: LocalAws) -> Iterator[None]:
    """Raise the SDK's errors as `LocalAwsError` with one line for people."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise LocalAwsError(
            f"The local AWS did not do what the command requested: {error} See {aws.log}"
        ) from error


def _verify(aws: LocalAws) -> str | None:
    return str(aws.tls.ca) if aws.tls else None
