"""Settings that several functions take from their environment."""

import os
from typing import Final

from holdfast.s3 import retention

_DECLARED_ONLY: Final = {"any": False, "declared": True}


def declared_only() -> bool:
    """Return whether a name is refused that has neither a state nor a record.

    Raises:
        ValueError: `HOLDFAST_NEW_STATES` is neither "any" nor "declared".
    """
    value = os.environ.get("HOLDFAST_NEW_STATES", "any")
    try:
        return _DECLARED_ONLY[value]
    except KeyError:
        raise ValueError(f"HOLDFAST_NEW_STATES: {value!r} is neither 'any' nor 'declared'") from None


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
