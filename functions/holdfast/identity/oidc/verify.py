"""ID tokens of OIDC issuers: is it genuine, for us, valid now, and what does a trust record give for it?

It loads the JWT library, which takes longer than all else that signs somebody in: import it only when an ID
token has come.
"""

import socket
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from queue import Empty, SimpleQueue
from threading import Thread, Timer
from typing import Any, Final, Literal, TypeGuard
from urllib.parse import urlsplit

import jwt as pyjwt

from holdfast import __version__, json_object
from holdfast.identity.principals import principal
from holdfast.identity.trust import OidcTrust, Records, audiences, is_web_address

LEEWAY: Final = 30
"""Seconds by which the issuer's clock and ours may differ."""

KEPT: Final = 3600
"""Seconds for which an issuer's keys are used without a look at whether there are others."""
KEPT_WITHOUT_ISSUER: Final = 24 * 3600
"""Seconds for which they are used while the issuer cannot be reached."""
REFRESH_PAUSE: Final = 10
"""Seconds between two looks for a key ID that is not known."""
FAILURE_KEPT: Final = 5
"""Seconds for which an issuer that was not reached is not asked again."""
BUDGET: Final = 5.0
"""Seconds that it may take to get an issuer's keys."""
MAX_BYTES: Final = 256 * 1024
"""Of each of its two documents."""

_CONNECT_TIMEOUT = 2.0
_READ_TIMEOUT = 3.0

_MAX_SUBJECT = 1000

# Only signatures that nobody can make who can check them, each with the kind of key that makes it.
_KEY_KINDS: Final[Mapping[str, tuple[str, str | None]]] = {
    **{f"{scheme}{bits}": ("RSA", None) for scheme in ("RS", "PS") for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
_PUBLIC_MEMBERS: Final = ("kty", "crv", "n", "e", "x", "y")

Reason = Literal[
    "malformed",
    "unknown_issuer",
    "wrong_audience",
    "not_trusted",
    "wrong_algorithm",
    "unknown_key",
    "wrong_signature",
    "expired",
    "not_yet_valid",
]


class IssuerUnreachable(Exception):  # noqa: N818 named by what happened, as the domain's errors are
    """An issuer's keys could not be had, so that nothing can be said about a token of it."""


@dataclass(frozen=True, slots=True)
class VerifiedIdToken:
    """A genuine token that a trust record fits.

    Attributes:
        trust: that record.
        subject: `<issuer>#<subject>`.
        principal: whom that stands for.
        ends: when it is not valid any more here, in seconds since 1970.
    """

    trust: OidcTrust
    subject: str
    principal: str
    ends: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A token that lets nobody in.

    Attributes:
        reason: for the log; the bearer does not learn it.
    """

    reason: Reason


@dataclass(frozen=True, slots=True)
class _Keys:
    jwks: Sequence[Mapping[str, Any]]
    fetched: float

    def know(self, key_id: str | None) -> bool:
        return key_id is None or any(jwk.get("kid") == key_id for jwk in self.jwks)


class Issuers:
    """The public keys of issuers, fetched when they are needed and kept as long as the process lives.

    Args:
        clock: seconds since some time; it must go on while the process is frozen.
        fetch: the document at an address, as its bytes; raises `IssuerUnreachable`.
    """

    def __init__(
        self, clock: Callable[[], float] = time.time, fetch: "Callable[[str], bytes] | None" = None
    ) -> None:
        self._clock = clock
        self._fetch = fetch or _get
        self._keys: dict[str, _Keys] = {}
        self._tried: dict[str, float] = {}
        self._failures: dict[str, tuple[float, IssuerUnreachable]] = {}

    def keys(self, issuer: str, key_id: str | None, seconds: float = BUDGET) -> Sequence[Mapping[str, Any]]:
        """The keys of an issuer (RFC 7517), with that key ID among them if the issuer has it.

        Args:
            issuer: whose.
            key_id: that a token names; None if it names none.
            seconds: that it may take to ask the issuer.

        Raises:
            IssuerUnreachable: there are none at hand, or not that one, and the issuer could not be asked.
        """
        known = self._keys.get(issuer)
        if known and self._within(known.fetched, KEPT):
            if known.know(key_id):
                return known.jwks
            if self._within(self._tried[issuer], REFRESH_PAUSE) and issuer not in self._failures:
                return known.jwks
        try:
            known = self._refreshed(issuer, seconds)
        except IssuerUnreachable:
            if not (known and known.know(key_id) and self._within(known.fetched, KEPT_WITHOUT_ISSUER)):
                raise
        return known.jwks

    def _within(self, since: float, seconds: float) -> bool:
        return 0 <= self._clock() - since < seconds

    def _refreshed(self, issuer: str, seconds: float) -> _Keys:
        if failure := self._failures.get(issuer):
            when, error = failure
            if self._within(when, FAILURE_KEPT):
                raise IssuerUnreachable(str(error))
        self._tried[issuer] = self._clock()
        try:
            jwks = _loaded_within(seconds, issuer, lambda: _published_keys(issuer, self._fetch))
        except IssuerUnreachable as error:
            self._failures[issuer] = (self._clock(), error)
            raise
        self._failures.pop(issuer, None)
        self._keys[issuer] = _Keys(jwks, self._clock())
        return self._keys[issuer]


def verify(
    jwt: str, records: Records, issuers: Issuers, seconds: float = BUDGET
) -> VerifiedIdToken | Refused:
    """Decide what an ID token (OpenID Connect Core section 3.1.3.7, RFC 8725) gives its bearer.

    No issuer is asked for its keys before a trust record fits what the token says of itself, and where they
    are is never taken from the token.

    Args:
        jwt: the token.
        records: the team's trust records.
        issuers: their keys.
        seconds: that it may take to ask the issuer for its keys.

    Raises:
        IssuerUnreachable: its issuer's keys could not be had.
    """
    try:
        header, claims = (_part(part) for part in jwt.split(".")[:2])
    except ValueError:
        return Refused("malformed")
    if reason := _why_not(claims, records):
        return Refused(reason)
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or not isinstance(key_id, str | None):
        return Refused("malformed")
    # What `crit` names must be understood (RFC 7515 section 4.1.11), and here nothing is.
    if algorithm not in _KEY_KINDS or "crit" in header:
        return Refused("wrong_algorithm")
    published = issuers.keys(claims["iss"], key_id, seconds)
    fitting = [jwk for jwk in published if _fits(jwk, algorithm, key_id)]
    if len(fitting) != 1:
        return Refused("unknown_key")
    return _verified(jwt, claims["iss"], algorithm, fitting[0], records)


def _why_not(claims: Mapping[str, Any], records: Records) -> Reason | None:
    """Why a token that says this of itself lets nobody in, even if it is genuine."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    trusted = records.oidc(issuer) if isinstance(issuer, str) else ()
    if not trusted:
        return "unknown_issuer"
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT or not subject.isprintable():
        return "malformed"
    if {record.audience for record in trusted}.isdisjoint(audiences(claims)):
        return "wrong_audience"
    return None if records.for_claims(claims) else "not_trusted"


def _verified(
    jwt: str, issuer: str, algorithm: str, jwk: Mapping[str, Any], records: Records
) -> VerifiedIdToken | Refused:
    try:
        key = pyjwt.PyJWK({name: jwk[name] for name in _PUBLIC_MEMBERS if name in jwk}, algorithm)
        claims = pyjwt.decode(
            jwt,
            key,
            algorithms=[algorithm],
            audience=[record.audience for record in records.oidc(issuer)],
            issuer=issuer,
            leeway=LEEWAY,
            options={"require": ["iss", "sub", "aud", "exp"], "enforce_minimum_key_length": True},
        )
    except pyjwt.ExpiredSignatureError:
        return Refused("expired")
    except pyjwt.ImmatureSignatureError:
        return Refused("not_yet_valid")
    except pyjwt.InvalidSignatureError:
        return Refused("wrong_signature")
    except (pyjwt.InvalidKeyError, pyjwt.PyJWKError):
        return Refused("unknown_key")
    except pyjwt.PyJWTError:
        return Refused("malformed")
    trust = records.for_claims(claims)
    if trust is None:
        return Refused("not_trusted")
    subject = f"{claims['iss']}#{claims['sub']}"
    return VerifiedIdToken(trust, subject, principal(f"oidc:{subject}"), int(claims["exp"]) + LEEWAY)


def _part(encoded: str) -> dict[str, Any]:
    """A part of a token, of which nothing is verified.

    Raises:
        ValueError: it is no JSON object, or has a member twice: which of them counts is anybody's guess.
    """
    return json_object.parse_unique(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))


def _fits(jwk: Mapping[str, Any], algorithm: str, key_id: str | None) -> bool:
    """Whether a key makes such signatures, and is the one that a token names, if it names one."""
    kind, curve = _KEY_KINDS[algorithm]
    return (
        jwk.get("kty") == kind
        and (curve is None or jwk.get("crv") == curve)
        and jwk.get("alg", algorithm) == algorithm
        and jwk.get("use", "sig") == "sig"
        and "verify" in jwk.get("key_ops", ["verify"])
        and (key_id is None or jwk.get("kid") == key_id)
    )


# --- where the keys come from ---------------------------------------------------------------------


def _published_keys(issuer: str, fetch: Callable[[str], bytes]) -> Sequence[Mapping[str, Any]]:
    """What an issuer publishes (OpenID Connect Discovery sections 4 and 4.3)."""
    address = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
    configuration = _document(address, fetch)
    if configuration.get("issuer") != issuer:
        raise IssuerUnreachable(f"{address} is of another issuer")
    jwks_uri = configuration.get("jwks_uri")
    if not isinstance(jwks_uri, str) or not _may_be_fetched(jwks_uri, issuer):
        raise IssuerUnreachable(f"{address} has no https:// address as 'jwks_uri'")
    keys = _document(jwks_uri, fetch).get("keys")
    if not isinstance(keys, list):
        raise IssuerUnreachable(f"{jwks_uri} has no keys")
    return tuple(key for key in keys if _is_well_formed(key))


def _may_be_fetched(jwks_uri: str, issuer: str) -> bool:
    # An issuer out there does not send us to this machine.
    return is_web_address(jwks_uri) and (jwks_uri.startswith("https:") or issuer.startswith("http:"))


def _is_well_formed(key: object) -> TypeGuard[dict[str, Any]]:
    return (
        isinstance(key, dict)
        and all(isinstance(key.get(name, ""), str) for name in ("kid", "alg", "use", *_PUBLIC_MEMBERS))
        and isinstance(key.get("key_ops", []), list)
    )


def _document(address: str, fetch: Callable[[str], bytes]) -> dict[str, Any]:
    try:
        return json_object.parse_unique(fetch(address))
    except ValueError as error:
        raise IssuerUnreachable(f"the document at {address} {error}") from None


def _get(address: str) -> bytes:
    """Fetch a document; redirects are not followed."""
    parts = urlsplit(address)
    connection_to = HTTPConnection if parts.scheme == "http" else HTTPSConnection
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {"Accept": "application/json", "User-Agent": f"holdfast/{__version__}"}
    try:
        with closing(connection_to(parts.hostname or "", parts.port, timeout=_CONNECT_TIMEOUT)) as connection:
            connection.connect()
            connection.sock.settimeout(_READ_TIMEOUT)
            with _ended_after(BUDGET, connection.sock):
                connection.request("GET", path, headers=headers)
                with connection.getresponse() as answer:
                    if answer.status != 200:
                        raise IssuerUnreachable(f"{address} answered {answer.status}")
                    body = answer.read(MAX_BYTES + 1)
    except (OSError, HTTPException) as error:
        raise IssuerUnreachable(f"{address} did not answer: {type(error).__name__}") from error
    if len(body) > MAX_BYTES:
        raise IssuerUnreachable(f"the document at {address} has more than {MAX_BYTES} bytes")
    return body


@contextmanager
def _ended_after(seconds: float, connected: socket.socket) -> Iterator[None]:
    """End a connection when the time is up: its own time-outs let an answer trickle for ever."""

    def end() -> None:
        with suppress(OSError):  # it has ended meanwhile
            # Not TLS's own, which would take the session away from under whoever reads.
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


_Jwks = Sequence[Mapping[str, Any]]


def _loaded_within(seconds: float, issuer: str, load: Callable[[], _Jwks]) -> _Jwks:
    """Do it in a thread, left to itself when the time is up: nothing ends the search for an address."""
    outcome: SimpleQueue[_Jwks | IssuerUnreachable] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put(load())
        except IssuerUnreachable as error:
            outcome.put(error)

    Thread(target=run, daemon=True).start()
    try:
        found = outcome.get(timeout=max(seconds, 0))
    except Empty:
        raise IssuerUnreachable(f"{issuer} did not answer within {seconds:.0f} s") from None
    if isinstance(found, IssuerUnreachable):
        raise found
    return found


process_issuers: Final = Issuers()
"""Those that a process keeps for all its requests."""
