"""Principals: the short, stable names of callers, as locks and state versions store them."""

import hashlib

from holdfast.s3 import object_metadata


def principal(identity: str) -> str:
    """Return the principal of an external identity: `arn:…` or `oidc:<issuer>#<subject>`.

    It is the identity itself if that fits into S3's metadata. A truncated identity could be the same for two
    callers, who could then release each other's locks. So the principal of a longer identity is its SHA-256
    digest, followed by as many of the identity's last characters as fit.

    >>> principal("arn:aws:sts::123456789012:assumed-role/Deployer/ada")
    'arn:aws:sts::123456789012:assumed-role/Deployer/ada'
    """
    if object_metadata.fits(identity):
        return identity
    kind = identity.partition(":")[0]
    digest = hashlib.sha256(identity.encode()).hexdigest()[:32]
    # A percent-encoded character has at most 12 bytes.
    ends = (f"{kind}-sha256:{digest}:{identity[-length:]}" for length in range(40, 0, -1))
    return next(end for end in ends if object_metadata.fits(end))
