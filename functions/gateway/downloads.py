"""Content that clients get: in the response, or by a redirect to S3 where that is too small."""

import os
from functools import cache
from typing import Final

from gateway import payload
from gateway.payload import Payload
from holdfast.errors import TooLarge
from holdfast.names import StateName
from holdfast.s3.presigned import Presigned, Signer

_SECONDS: Final = 60
"""How long a client may take from a redirect to S3."""


@cache
def signer() -> Signer:
    """Return the presigner, created on first use: most requests need none."""
    return Signer(endpoint_url=os.environ.get("HOLDFAST_PRESIGN_ENDPOINT"))


def presigned(bucket: str) -> Presigned:
    """Return the presigner of one bucket."""
    return Presigned(signer().client(), bucket)


def encoded(body: bytes, *, accepts_gzip: bool) -> Payload | None:
    """Return a body as a response carries it; None if it is too large, so that the client gets it from S3."""
    try:
        return payload.encode(body, accepts_gzip=accepts_gzip)
    except TooLarge:
        return None


def redirect(bucket: str, name: StateName, version_id: str) -> Payload:
    """Return the body of a redirect to a version of a state in S3.

    S3 has another host name, so Go's client drops `Authorization`. No route of `backend "http"` redirects: it
    would read S3's own 404 as "no state yet", and plan to create everything.
    """
    address = presigned(bucket).get(name.state_key, version_id, _SECONDS)
    return Payload("", is_base64=False, headers={"Location": address})
