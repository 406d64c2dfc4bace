"""Credentials -> principal, role and scope, for the API's authorizer (payload format 2.0, simple responses).

A refusal is an answer, and the gateway remembers it; a fault of S3 or of an issuer is raised, and the gateway
answers 500 and remembers nothing.

The gateway remembers an answer for 60 s, by the header alone. So what ends meanwhile, a token, a session, an
ID token or the trust record behind it, may go on for at most 60 s.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from aws_lambda_powertools import Logger

from holdfast import audit
from holdfast.access import Caller
from holdfast.identity import credentials, sessions, tokens, trust
from holdfast.identity.credentials import IdToken, SessionCredentials, TokenCredentials
from holdfast.identity.sessions import Session
from holdfast.identity.tokens import Token
from holdfast.identity.trust import Records
from holdfast.s3 import object_metadata
from holdfast.s3.store import Store, connect, deadline

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

_BUCKET: Final = os.environ["HOLDFAST_BUCKET"]

_log = Logger()
_s3 = connect()


@dataclass(frozen=True, slots=True)
class Accepted:
    """Somebody is let in.

    Attributes:
        caller: who it is.
        source: what kind of credentials it was.
        trust: the name of the trust record that gave role and scope; empty for a token.
        trust_id: the ID of that record.
        subject: who it is in full; empty for a token.
        ends: when an ID token does, in seconds since 1970: the gateway may remember it for longer.
    """

    caller: Caller
    source: Literal["token", "session", "oidc"]
    trust: str = ""
    trust_id: str = ""
    subject: str = ""
    ends: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """Nobody is let in.

    Attributes:
        reason: for the log; the client does not learn it.
    """

    reason: str


@dataclass(slots=True)
class SignIn:
    """One attempt, and what the log says of it beside what came of it."""

    store: Store
    seconds_left: Callable[[], float]
    logged: dict[str, Any] = field(default_factory=dict)

    def with_token(self, sent: TokenCredentials) -> Accepted | Refused:
        """One request to S3."""
        self.logged["token"] = sent.token_id
        found = self.store.read(tokens.token_key(sent.token_id))
        token = Token.from_json(found.body) if found else None
        now = datetime.now(UTC)
        caller = tokens.verify(sent, token, now=now)
        if caller is None:
            return Refused(tokens.why_refused(sent, token, now=now))
        return Accepted(caller, "token")

    def with_session(self, sent: SessionCredentials) -> Accepted | Refused:
        """Two requests to S3, whether there is such a session or not."""
        self.logged["session"] = sent.session_id
        found = self.store.read(sessions.session_key(sent.session_id))
        session = Session.from_json(found.body) if found else None
        records = self._records()
        now = datetime.now(UTC)
        caller = sessions.verify(sent, session, records, now=now)
        if session is None or caller is None:
            return Refused(sessions.why_refused(sent, session, now=now))
        return Accepted(caller, "session", session.trust, session.trust_id, session.subject)

    def with_id_token(self, sent: IdToken) -> Accepted | Refused:
        """One request to S3, and two to the issuer if its keys are not at hand."""
        from holdfast.identity.oidc import verify as oidc

        records = self._records()
        # What is left when S3 took long: whoever is stopped forgets all keys, and says nothing in the log.
        seconds = min(oidc.BUDGET, self.seconds_left() - 1)
        match oidc.verify(sent.jwt, records, oidc.process_issuers, seconds):
            case oidc.Refused(reason):
                return Refused(reason)
            case verified:
                record = verified.trust
                caller = Caller(verified.principal, record.role, record.scope)
                return Accepted(caller, "oidc", record.name, record.id, verified.subject, verified.ends)

    def _records(self) -> Records:
        found = self.store.read(trust.KEY)
        return trust.parse(found.body) if found else Records()


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Decide who sent a request.

    Args:
        event: a REQUEST authorizer's event, payload format 2.0.
        context: the invocation's.

    Raises:
        HoldfastError: S3 did not answer, or refuses the function.
        IssuerUnreachable: the issuer of an ID token did not say with which keys it signs.
        ValueError: the record that decides is damaged.
    """
    # The identity source is what the gateway remembers the answer by, so it is all that may decide it.
    (authorization,) = event["identitySource"]
    store = Store(_s3, _BUCKET, deadline=deadline(context.get_remaining_time_in_millis()))
    attempt = SignIn(store, lambda: context.get_remaining_time_in_millis() / 1000)
    outcome: Accepted | Refused
    try:
        match credentials.parse(authorization):
            case TokenCredentials() as sent:
                outcome = attempt.with_token(sent)
            case SessionCredentials() as sent:
                outcome = attempt.with_session(sent)
            case IdToken() as sent:
                outcome = attempt.with_id_token(sent)
            case None:
                outcome = Refused("malformed")
    except Exception as error:
        # What it says of itself stands in the error that Lambda logs.
        _log.error("sign_in.failed", extra={**_logged(event, attempt), "error": type(error).__name__})
        raise
    match outcome:
        case Refused(reason):
            _log.warning("sign_in.refused", extra={**_logged(event, attempt), "reason": reason})
            return {"isAuthorized": False}
        case Accepted(caller, source, trust_name, trust_id, subject, ends):
            who = {
                "principal": caller.principal,
                "role": caller.role.value,
                "source": source,
                "trust": trust_name,
            }
            _log.info("sign_in.accepted", extra={**_logged(event, attempt), **who, "subject": subject})
            more = {
                "scope": json.dumps(caller.scope),
                "trust_id": trust_id,
                "subject": subject,
                "ends": str(ends),
                # The gateway puts it into its access log as it is, and a subject may hold quotes.
                "access_log": object_metadata.encode(caller.principal),
            }
            return {"isAuthorized": True, "context": {**who, **more}}


def _logged(event: dict[str, Any], attempt: SignIn) -> dict[str, Any]:
    context = event["requestContext"]
    return {
        audit.MARK_FIELD: audit.MARK,
        **attempt.logged,
        "source_ip": context["http"].get("sourceIp"),
        "request_id": context["requestId"],
        "s3_requests": len(attempt.store.requests),
    }
