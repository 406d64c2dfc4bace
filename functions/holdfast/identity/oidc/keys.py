"""The public keys of OIDC issuers: fetched when they are needed, and cached."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from holdfast import json_object
from holdfast.identity.oidc.fetch import BUDGET, IssuerUnreachable, get
from holdfast.identity.time_limit import done_by
from holdfast.identity.trust import is_web_address

CACHED: Final = 3600
"""Seconds for which an issuer's keys are cached."""
CACHED_WITHOUT_ISSUER: Final = 24 * 3600
"""Seconds for which cached keys are used while the issuer cannot be reached."""
REFRESH_PAUSE: Final = 10
"""Seconds between two requests for an unknown key ID."""
FAILURE_CACHED: Final = 5
"""Seconds for which no request is sent to an issuer that could not be reached."""

PUBLIC_MEMBERS: Final = ("kty", "crv", "n", "e", "x", "y")
"""The members of a key (RFC 7517) that are used; members of a private key are ignored."""

Jwk = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Keys:
    jwks: Sequence[Jwk]
    fetched: float

    def knows(self, key_id: str | None) -> bool:
        return key_id is None or any(jwk.get("kid") == key_id for jwk in self.jwks)


class Issuers:
    """The public keys of issuers, cached as long as the process lives.

    Args:
        clock: returns seconds since a fixed time; it must advance while the process is frozen.
        fetch: returns the bytes of the document at an address, or raises `IssuerUnreachable`.
    """

    def __init__(
        self, clock: Callable[[], float] = time.time, fetch: "Callable[[str], bytes] | None" = None
    ) -> None:
        self._clock = clock
        self._fetch = fetch or get
        self._keys: dict[str, _Keys] = {}
        self._tried: dict[str, float] = {}
        self._failures: dict[str, tuple[float, IssuerUnreachable]] = {}

    def keys(self, issuer: str, key_id: str | None, seconds: float = BUDGET) -> Sequence[Jwk]:
        """Return the keys of an issuer (RFC 7517); refresh them if no key has the ID `key_id`.

        Args:
            issuer: the address of the issuer, as in a token's `iss`.
            key_id: the key ID of the token; None if the token has none.

        Raises:
            IssuerUnreachable: the key is not in the cache, and the issuer could not be reached.
        """
        known = self._keys.get(issuer)
        if known and self._within(known.fetched, CACHED):
            if known.knows(key_id):
                return known.jwks
            if self._within(self._tried[issuer], REFRESH_PAUSE) and issuer not in self._failures:
                return known.jwks
        try:
            known = self._refreshed(issuer, seconds)
        except IssuerUnreachable:
            if not (known and known.knows(key_id) and self._within(known.fetched, CACHED_WITHOUT_ISSUER)):
                raise
        return known.jwks

    def _within(self, since: float, seconds: float) -> bool:
        return 0 <= self._clock() - since < seconds

    def _refreshed(self, issuer: str, seconds: float) -> _Keys:
        if failure := self._failures.get(issuer):
            when, error = failure
            if self._within(when, FAILURE_CACHED):
                raise IssuerUnreachable(str(error))
        began = self._tried[issuer] = self._clock()
        try:
            late = IssuerUnreachable(f"{issuer} did not respond within {seconds:.0f} s")
            ends = time.monotonic() + seconds
            jwks = done_by(ends, lambda: _published_keys(issuer, self._fetch), late=late)
        except IssuerUnreachable as error:
            # Lambda stops the process between invocations, also while this waits.
            self._failures[issuer] = (min(self._clock(), began + seconds), error)
            raise
        self._failures.pop(issuer, None)
        self._keys[issuer] = _Keys(jwks, self._clock())
        return self._keys[issuer]


def _published_keys(issuer: str, fetch: Callable[[str], bytes]) -> Sequence[Jwk]:
    """Return the keys that an issuer publishes (OpenID Connect Discovery sections 4 and 4.3)."""
    address = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
    configuration = _document(address, fetch)
    if configuration.get("issuer") != issuer:
        raise IssuerUnreachable(f"the document at {address} names another issuer")
    jwks_uri = configuration.get("jwks_uri")
    if not isinstance(jwks_uri, str) or not _may_be_fetched(jwks_uri, issuer):
        raise IssuerUnreachable(f"the document at {address} has no https:// address in its member 'jwks_uri'")
    keys = _document(jwks_uri, fetch).get("keys")
    if not isinstance(keys, list):
        raise IssuerUnreachable(f"the document at {jwks_uri} has no keys")
    return tuple(key for key in keys if _is_well_formed(key))


def _may_be_fetched(jwks_uri: str, issuer: str) -> bool:
    # A remote issuer must not direct requests to this machine.
    return is_web_address(jwks_uri) and (jwks_uri.startswith("https:") or issuer.startswith("http:"))


def _is_well_formed(key: object) -> TypeGuard[dict[str, Any]]:
    return (
        isinstance(key, dict)
        and all(isinstance(key.get(name, ""), str) for name in ("kid", "alg", "use", *PUBLIC_MEMBERS))
        and isinstance(key.get("key_ops", []), list)
    )


def _document(address: str, fetch: Callable[[str], bytes]) -> dict[str, Any]:
    try:
        return json_object.parse_unique(fetch(address))
    except ValueError as error:
        raise IssuerUnreachable(f"the document at {address} {error}") from None


process_issuers: Final = Issuers()
"""The keys that a process keeps for all its requests."""
