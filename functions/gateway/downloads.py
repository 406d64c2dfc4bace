"""Send content to clients: in the response, or by a redirect to S3 if a response is too small for it."""

from functools import cache
from typing import Final

from gateway import payload
from gateway.payload import Payload
from holdfast.errors import TooLarge
from holdfast.names import StateName
from holdfast.policy import Deployment
from holdfast.s3.presigned import Presigned, Signer

_SECONDS: Final = 60
"""Seconds within which a client must follow a redirect to S3."""


@cache
def signer() -> Signer:
    """Return the signer, which is created on first use, because most requests do not need it."""
    deployment = Deployment.from_environment("transfers_role", "presign_endpoint")
    return Signer(deployment.transfers_role, endpoint_url=deployment.presign_endpoint)


def presigned(bucket: str) -> Presigned:
    """Return an object that signs addresses of one bucket."""
    return Presigned(signer().client(), bucket)


def encoded(body: bytes, *, accepts_gzip: bool) -> Payload | None:
    """Return a body encoded for a response; None if it is too large, so that a redirect is needed."""
    try:
        return payload.encode(body, accepts_gzip=accepts_gzip)
    except TooLarge:
        return None


def redirect(bucket: str, name: StateName, version_id: str) -> Payload:
    """Return the payload of a redirect to a version of a state in S3.

    S3 has another host name, so Go's client does not send it `Authorization`. Routes of `backend "http"` must
    not redirect: the client would read a 404 of S3 as "no state yet", and plan to create everything.
    """
    address = presigned(bucket).get(name.state_key, version_id, _SECONDS)
    return Payload("", is_base64=False, headers={"Location": address})
