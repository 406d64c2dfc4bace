"""Lambda SnapStart: load modules before the snapshot, and reseed random generators after it is restored.

Without SnapStart this module does nothing.
"""

import os
import random
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final

from holdfast.s3.store import Store

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_PATIENCE: Final = 2.0
"""Seconds after which `prepare` starts no more requests, because a deployment waits for the snapshot."""


def prepare(
    client: "S3Client", bucket: str, owner: str, key: str, *, load: Callable[[], object] | None = None
) -> None:
    """If Lambda takes a snapshot of this process, load everything that the first request will need.

    It reads one object, so that the SDK loads everything that a request to S3 needs. It ignores errors,
    because the first real request reports the same fault. It closes the connection, because all restored
    copies would share it.

    Args:
        client: the function's S3 client.
        key: the key of an object that the function may read; it need not exist.
        load: loads modules that the function otherwise imports on demand.
    """
    # https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") != "snap-start":
        return
    hooks = import_module("snapshot_restore_py")  # only Lambda's runtime has it
    hooks.register_after_restore(_reseed)
    if load:
        load()
    try:
        with suppress(Exception):
            Store(client, bucket, owner, deadline=time.monotonic() + _PATIENCE).read(key)
    finally:
        client.close()


def _reseed() -> None:
    """Reseed the random generators; otherwise all restored copies would draw the same numbers.

    The generators are Python's `random`, and OpenSSL's, from which TLS derives its keys. When this function
    adds entropy to OpenSSL's generator, OpenSSL also takes entropy from the system.
    """
    random.seed()
    ssl.RAND_add(os.urandom(32), 32.0)
