"""Authenticate the caller by the credentials of a request.

API Gateway caches the outcome, also a denial, for 60 seconds. A fault of S3 or of an issuer is raised, and
not cached. The cache's key is the `Authorization` header alone, or also the source address in a stack with
`networks`. So credentials may be accepted for up to 60 seconds after they have expired or been revoked, or
their trust record has been removed.
"""

import time
from datetime import UTC, datetime

from holdfast.errors import OutcomeUnknown
from holdfast.identity import sessions, tokens, trust
from holdfast.identity.authentication import Authenticated, DenialReason, Denied
from holdfast.identity.credentials import Credentials, IdToken, SessionCredentials, TokenCredentials
from holdfast.identity.sessions import Session
from holdfast.identity.time_limit import done_by
from holdfast.identity.tokens import Token
from holdfast.networks import Origin
from holdfast.s3.store import Store

_TO_RAISE = 0.2
"""Seconds that are left when an issuer has not responded, so that this is what is raised."""


def sign_in(
    credentials: Credentials | None, store: Store, origin: Origin, ends: float
) -> Authenticated | Denied:
    """Authenticate the caller by credentials, which are None if the header has no known form.

    A request from outside the team's networks is denied whatever its credentials are. The networks of a
    record count after its secret has matched, so that a denial tells a stranger nothing about the record.

    Args:
        origin: where the request comes from.
        ends: the time of `time.monotonic` by which there is an outcome or an error.

    Raises:
        IssuerUnreachable: the keys of an ID token's issuer could not be fetched.
        OutcomeUnknown: S3 did not respond in time.
    """
    if credentials is not None and not origin.is_of_team:
        return Denied(DenialReason.WRONG_NETWORK)
    outcome = done_by(ends, lambda: _authenticate(credentials, store, ends), late=_late())
    if isinstance(outcome, Authenticated) and not origin.is_of_record(outcome.networks):
        return Denied(DenialReason.WRONG_NETWORK)
    return outcome


def _late() -> OutcomeUnknown:
    return OutcomeUnknown("The authentication took too long. A retry is safe.")


def _authenticate(credentials: Credentials | None, store: Store, ends: float) -> Authenticated | Denied:
    match credentials:
        case TokenCredentials():
            return _with_token(credentials, store)
        case SessionCredentials():
            return _with_session(credentials, store)
        case IdToken():
            return _with_id_token(credentials, store, ends)
        case None:
            return Denied(DenialReason.MALFORMED)


def _with_token(credentials: TokenCredentials, store: Store) -> Authenticated | Denied:
    """Authenticate by a token, with one request to S3."""
    stored = store.read(tokens.token_key(credentials.token_id))
    token = Token.from_json(stored.body) if stored else None
    return tokens.authenticate(credentials, token, now=datetime.now(UTC))


def _with_session(credentials: SessionCredentials, store: Store) -> Authenticated | Denied:
    """Authenticate by a session, with two requests to S3 at once.

    It sends both whether or not the session exists, to hide whether it does.
    """
    from concurrent.futures import ThreadPoolExecutor  # tokens do not need it

    with ThreadPoolExecutor(1) as beside:
        trusted = beside.submit(trust.read, store)
        stored = store.read(sessions.session_key(credentials.session_id))
        session = Session.from_json(stored.body) if stored else None
        return sessions.authenticate(credentials, session, trusted.result(), now=datetime.now(UTC))


def _with_id_token(credentials: IdToken, store: Store, ends: float) -> Authenticated | Denied:
    """Authenticate by an ID token: one request to S3, and two to the issuer if its keys are not cached."""
    # Imported here: they load the JWT library, which other sign-ins do not need at their cold start.
    from holdfast.identity.oidc import fetch, keys, verify

    records = trust.read(store)
    # S3 may have taken long, or Lambda has stopped the process meanwhile, long after its response.
    seconds = min(fetch.BUDGET, ends - time.monotonic() - _TO_RAISE)
    if seconds <= 0:
        raise _late()  # an issuer that was asked now would seem to be unreachable
    return verify.verify(credentials.jwt, records, keys.process_issuers, seconds)
