"""Lambda SnapStart: what a function loads before its snapshot is taken, and renews after it is restored.

Where SnapStart is off, nothing here happens.
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
"""Seconds after which no more requests start: a deployment waits for the snapshot."""


def prepare(
    client: "S3Client", bucket: str, owner: str, key: str, *, load: Callable[[], object] | None = None
) -> None:
    """Where Lambda takes a snapshot of this process, load into it what the first request will need.

    One object is read, so that the SDK loads all that a request needs and goes all the way to S3. S3's
    response, or the lack of one, does not matter: the function's first request meets the same fault and says
    so. No connection stays open, because every restored copy would have it.

    Args:
        client: the function's own.
        key: the function may read it; there need not be an object.
        load: loads what the function otherwise loads when it needs it.
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
    """Seed anew what was seeded before the snapshot: all restored copies would draw the same numbers.

    These are the generator of the module `random` and OpenSSL's, of which TLS makes its keys. OpenSSL's takes
    entropy of the system, too, whenever something is added.
    """
    random.seed()
    ssl.RAND_add(os.urandom(32), 32.0)
