"""ID tokens and published documents of issuers, made with another JWT library than the product's."""

import base64
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from joserfc.jwk import Key as Key
from joserfc.jwk import RSAKey

from holdfast.access import Grant, Role
from holdfast.identity import trust
from holdfast.identity.oidc.fetch import IssuerUnreachable
from holdfast.identity.oidc.keys import Issuers
from local_aws import issuer as local_issuer
from local_aws.issuer import DISCOVERY as DISCOVERY
from local_aws.issuer import signed as signed

ISSUER = "https://token.actions.githubusercontent.com"
AUDIENCE = "holdfast"
SUBJECT = "repo:acme/network:ref:refs/heads/main"

RSA = RSAKey.generate_key(2048, {"kid": "one"})
FOREIGN = RSAKey.generate_key(2048, {"kid": "one"})
"""The key of somebody else, under the same key ID."""


def record(name: str = "network", **changed: Any) -> trust.OidcTrust:
    """Return a trust record that matches `claims`."""
    sent_by = {"issuer": ISSUER, "audience": AUDIENCE, "claims": {"repository": "acme/network"}}
    return trust.new_oidc(name, **_granted({**sent_by, **changed}))


def aws_record(name: str = "people", **changed: Any) -> trust.AwsTrust:
    """Return a trust record for an IAM role, with the same role and scope."""
    aws_role = "AWSReservedSSO_Developer_0123456789abcdef"
    return trust.new_aws(name, **_granted({"aws_role": aws_role, **changed}))


def _granted(changed: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a record; `role` and `scope` become one grant."""
    role, scope = changed.pop("role", Role.WRITER), changed.pop("scope", ["network/*"])
    return {
        "grants": [Grant(role, tuple(scope))],
        "description": "",
        "created_by": "x",
        "now": datetime.now(UTC),
        **changed,
    }


def claims(**changed: Any) -> dict[str, Any]:
    """Return the claims of a token. A claim of None is left out."""
    every = local_issuer.claims(ISSUER, {"sub": SUBJECT, "repository": "acme/network", **changed})
    return {name: value for name, value in every.items() if value is not None}


def raw(header: object, body: object, signature: bytes = b"x") -> str:
    """Return a token with any content."""
    return encoded(header, body, signature)


def encoded(*parts: object) -> str:
    """Encode the parts of a token. A part that is not bytes becomes JSON."""
    contents = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in parts]
    return ".".join(base64.urlsafe_b64encode(content).decode().rstrip("=") for content in contents)


def forged(header: object, body: object, sign: Callable[[bytes], bytes]) -> str:
    """Return a token with any content and any signature."""
    return f"{(unsigned := encoded(header, body))}.{encoded(sign(unsigned.encode()))}"


def hmac_over(secret: bytes, digest: str = "sha256") -> Callable[[bytes], bytes]:
    """Sign with HMAC, as an attacker who knows only the public key can."""
    return lambda unsigned: hmac.digest(secret, unsigned, digest)


class Published:
    """Published documents of issuers, without a network: `documents`, by address.

    `asked` has every address that was fetched. `issuers` fetch from here. `now` is their clock, in seconds.
    """

    def __init__(self, *keys: Key, issuer: str = ISSUER) -> None:
        self.documents: dict[str, Any] = {}
        self.asked: list[str] = []
        self.now = 1_000_000.0
        self.issuers = Issuers(clock=lambda: self.now, fetch=self._fetch)
        self.publish(*keys, issuer=issuer)

    def publish(self, *keys: Key, issuer: str = ISSUER) -> None:
        published = local_issuer.documents(issuer, keys)
        self.documents |= {f"{issuer}{path}": document for path, document in published.items()}

    def publish_jwks(self, jwks: object, *, issuer: str = ISSUER) -> None:
        """Replace an issuer's keys by any value."""
        self.publish(issuer=issuer)
        self.documents[f"{issuer}/keys"] = {"keys": jwks}

    def fetches(self) -> int:
        return sum(address.endswith("/keys") for address in self.asked)

    def _fetch(self, address: str) -> bytes:
        self.asked.append(address)
        document = self.documents.get(address)
        if document is None:
            raise IssuerUnreachable(f"{address} did not respond")
        return document if isinstance(document, bytes) else json.dumps(document).encode()
