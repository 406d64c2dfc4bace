"""Verify ID tokens of OIDC issuers: signature, audience, validity, and a matching trust record.

This module loads the JWT library, which takes longer than everything else in an authentication. Import it
only to verify an ID token.
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, Final

import jwt as pyjwt

from holdfast import json_object, timestamp
from holdfast.access import Caller
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason, Denied
from holdfast.identity.oidc.fetch import BUDGET
from holdfast.identity.oidc.keys import PUBLIC_MEMBERS, Issuers, Jwk
from holdfast.identity.principals import principal
from holdfast.identity.trust import OidcTrust, Records, Unreadable, audiences

LEEWAY: Final = 30
"""Seconds by which the issuer's clock and ours may differ."""

_MAX_SUBJECT = 1000

# Only asymmetric algorithms (no shared secret), each with its key type and curve.
_KEY_KINDS: Final[Mapping[str, tuple[str, str | None]]] = {
    **{f"{scheme}{bits}": ("RSA", None) for scheme in ("RS", "PS") for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}


def verify(jwt: str, records: Records, issuers: Issuers, seconds: float = BUDGET) -> Authenticated | Denied:
    """Decide whether an ID token authenticates its bearer (OpenID Connect Core section 3.1.3.7, RFC 8725).

    An issuer's keys are only fetched if a trust record matches the token's unverified claims. The address of
    the keys never comes from the token.
    """
    try:
        header, claims = (_part(part) for part in jwt.split(".")[:2])
    except ValueError:
        return Denied(DenialReason.MALFORMED)
    if reason := _denial_reason(claims, records):
        return Denied(reason)
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or not isinstance(key_id, str | None):
        return Denied(DenialReason.MALFORMED)
    # Extensions in `crit` must be understood (RFC 7515 section 4.1.11); no extension is supported here.
    if algorithm not in _KEY_KINDS or "crit" in header:
        return Denied(DenialReason.WRONG_ALGORITHM)
    published = issuers.keys(claims["iss"], key_id, seconds)
    matching = [jwk for jwk in published if _matches(jwk, algorithm, key_id)]
    if len(matching) != 1:
        return Denied(DenialReason.UNKNOWN_KEY)
    return _verified(jwt, claims["iss"], algorithm, matching[0], records)


def _denial_reason(claims: Mapping[str, Any], records: Records) -> DenialReason | None:
    """Return why a token is denied for its claims, even with a valid signature; None if they are accepted."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    trusted = records.oidc(issuer) if isinstance(issuer, str) else ()
    if not trusted:
        return DenialReason.UNKNOWN_ISSUER
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT or not subject.isprintable():
        return DenialReason.MALFORMED
    if {record.audience for record in trusted}.isdisjoint(audiences(claims)):
        return DenialReason.WRONG_AUDIENCE
    match records.for_claims(claims):
        case OidcTrust():
            return None
        case Unreadable():
            return DenialReason.TRUST_UNREADABLE
        case None:
            return DenialReason.NOT_TRUSTED


def _verified(jwt: str, issuer: str, algorithm: str, jwk: Jwk, records: Records) -> Authenticated | Denied:
    try:
        key = pyjwt.PyJWK({name: jwk[name] for name in PUBLIC_MEMBERS if name in jwk}, algorithm)
        claims = pyjwt.decode(
            jwt,
            key,
            algorithms=[algorithm],
            audience=[record.audience for record in records.oidc(issuer) if record.audience],
            issuer=issuer,
            leeway=LEEWAY,
            options={"require": ["iss", "sub", "aud", "exp"], "enforce_minimum_key_length": True},
        )
    except pyjwt.ExpiredSignatureError:
        return Denied(DenialReason.EXPIRED)
    except pyjwt.ImmatureSignatureError:
        return Denied(DenialReason.NOT_YET_VALID)
    except pyjwt.InvalidSignatureError:
        return Denied(DenialReason.WRONG_SIGNATURE)
    except (pyjwt.InvalidKeyError, pyjwt.PyJWKError):
        return Denied(DenialReason.UNKNOWN_KEY)
    except pyjwt.PyJWTError:
        return Denied(DenialReason.MALFORMED)
    record = records.for_claims(claims)
    if not isinstance(record, OidcTrust):  # `_denial_reason` said why, for the same claims
        return Denied(DenialReason.NOT_TRUSTED)
    expires = int(claims["exp"])
    if not 0 <= expires < timestamp.END:
        return Denied(DenialReason.MALFORMED)
    subject = f"{claims['iss']}#{claims['sub']}"
    return Authenticated(
        Caller(principal(f"oidc:{subject}"), record.grants, record.owner),
        AuthMethod.OIDC,
        trust=record.name,
        trust_id=record.id,
        subject=subject,
        ends=expires + LEEWAY,
        expires=expires,
        networks=record.networks,
    )


def _part(encoded: str) -> dict[str, Any]:
    """Parse a part of a token, without verification.

    Raise `ValueError` for a repeated member, because parsers may read different values for it.
    """
    return json_object.parse_unique(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))


def _matches(jwk: Jwk, algorithm: str, key_id: str | None) -> bool:
    """Return whether a key is for signatures of an algorithm, and has the ID `key_id` unless that is None."""
    kind, curve = _KEY_KINDS[algorithm]
    return (
        jwk.get("kty") == kind
        and (curve is None or jwk.get("crv") == curve)
        and jwk.get("alg", algorithm) == algorithm
        and jwk.get("use", "sig") == "sig"
        and "verify" in jwk.get("key_ops", ["verify"])
        and (key_id is None or jwk.get("kid") == key_id)
    )
