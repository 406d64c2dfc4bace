"""Principals: the short, stable names of callers, as locks and state versions note them."""

import hashlib

from holdfast.s3 import object_metadata


def principal(identity: str) -> str:
    """The principal that stands for somebody who is named elsewhere: `arn:…` or `oidc:<issuer>#<subject>`.

    It is the identity itself. One that S3's metadata would cut is no name any more by which a lock could be
    told to be one's own: then its digest, and as much of its end as fits.

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
