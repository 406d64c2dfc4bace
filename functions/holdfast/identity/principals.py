"""Principals: the short, stable names of callers, as locks and state versions store them."""

import hashlib

from holdfast.s3 import object_metadata


def principal(identity: str) -> str:
    """Return the principal of an identity that others assign: `arn:…` or `oidc:<issuer>#<subject>`.

    It is the identity itself if S3's metadata keeps that whole. A cut one could stand for several callers,
    and one could release another's lock. So a longer one becomes its digest, with as much of its end as has
    room.

    >>> principal("arn:aws:sts::123456789012:assumed-role/Deployer/ada")
    'arn:aws:sts::123456789012:assumed-role/Deployer/ada'
    """
    if object_metadata.fits(identity):
        return identity
    kind = identity.partition(":")[0]
    digest = hashlib.sha256(identity.encode()).hexdigest()[:32]
    # A character takes at most 12 bytes, percent-encoded.
    ends = (f"{kind}-sha256:{digest}:{identity[-length:]}" for length in range(40, 0, -1))
    return next(end for end in ends if object_metadata.fits(end))
