"""Settings that several functions take from their environment."""

import os

from holdfast.s3 import retention


def write_retention() -> retention.Retention | None:
    """Return what every write of a state asks S3 Object Lock for; None leaves that to the bucket.

    Raises:
        ValueError: `HOLDFAST_RETENTION` is no retention.
    """
    value = os.environ.get("HOLDFAST_RETENTION")
    try:
        return None if value is None else retention.parse(value)
    except ValueError as error:
        raise ValueError(f"HOLDFAST_RETENTION: {error}") from None
