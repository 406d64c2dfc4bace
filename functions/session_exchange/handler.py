"""Sessions for who has proved in another way who it is: with an ID token, or with AWS credentials."""

import json
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from gateway.payload import Payload
from gateway.requests import Request
from gateway.responses import Answer, Routes, respond
from holdfast.access import Role
from holdfast.errors import NotAllowed, NotAuthenticated, NotSigned, OutcomeUnknown
from holdfast.identity import sessions, trust
from holdfast.identity.principals import principal
from holdfast.identity.records import written
from holdfast.identity.sessions import Session
from holdfast.s3.store import IfAbsent, PreconditionFailed, Store, connect, deadline

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

_BUCKET: Final = os.environ["HOLDFAST_BUCKET"]
_ACCOUNT: Final = os.environ["HOLDFAST_ACCOUNT"]

# Of a role's session: the role's name without its path, and the name of the session.
_ROLE_SESSION: Final = re.compile(
    rf"arn:[a-z-]+:sts::{re.escape(_ACCOUNT)}:assumed-role/([A-Za-z0-9_+=,.@-]+)/[A-Za-z0-9_+=,.@-]+",
    re.ASCII,
)

# Text that has no UTF-8 form must not cost the line.
_log = Logger(json_serializer=partial(json.dumps, default=str))
_s3 = connect()


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Answer one request for a session.

    Args:
        event: an API Gateway HTTP API event, payload format 2.0.
        context: the invocation's.
    """
    store = Store(_s3, _BUCKET, deadline=deadline(context.get_remaining_time_in_millis()))
    return respond(Request(event, store), _ROUTES, _log)


def _for_id_token(request: Request) -> Answer:
    """A session for whom the token authorizer has verified by an ID token, and for nobody else."""
    verified = request.verified
    try:
        name, subject, trust_name, trust_id, source = (
            str(verified[field]) for field in ("principal", "subject", "trust", "trust_id", "source")
        )
        role, scope, ends = Role(verified["role"]), json.loads(verified["scope"]), int(verified["ends"])
    except (KeyError, ValueError):
        raise NotAuthenticated("The request carries no verified caller; send an ID token.") from None
    if source != "oidc":
        raise NotAllowed(f"{name} signed in with a {source}; a session is made for an ID token alone.")
    now = datetime.now(UTC)
    # The gateway remembers whose it is for longer than it is valid.
    if now.timestamp() >= ends:
        raise NotAllowed("The ID token has ended; sign in with a new one.")
    session, secret = sessions.create(
        principal=name,
        subject=subject,
        trust=trust_name,
        trust_id=trust_id,
        source="oidc",
        now=now,
        seconds=sessions.seconds(request.body()),
    )
    return _stored(request.store, session, secret, role, scope)


def _for_aws_role(request: Request) -> Answer:
    """A session for an IAM role of the team's account that a trust record names.

    The gateway lets nobody here whom it has not verified. Where it is not set up so, or is not AWS's, it may
    let through a request that AWS never saw: what it says of the caller is the only proof.
    """
    arn = request.signer
    if arn is None:
        raise NotSigned("The request is not signed with AWS credentials; use `holdfast login`.")
    role_session = _ROLE_SESSION.fullmatch(arn)
    if role_session is None:
        raise NotAllowed(
            f"{arn} is no session of an IAM role in the account {_ACCOUNT}; sign in with such a role."
        )
    found = request.store.read(trust.KEY)
    records = trust.parse(found.body) if found else trust.Records()
    record = records.for_aws_role(role_session[1])
    if record is None:
        raise NotAllowed(
            f"No trust record names the IAM role {role_session[1]}; add one with `holdfast trust add`."
        )
    session, secret = sessions.create(
        principal=principal(arn),
        subject=arn,
        trust=record.name,
        trust_id=record.id,
        source="aws",
        now=datetime.now(UTC),
        seconds=sessions.seconds(request.body()),
    )
    return _stored(request.store, session, secret, record.role, record.scope)


def _stored(store: Store, session: Session, secret: str, role: Role, scope: Sequence[str]) -> Answer:
    # The function may not read sessions: it cannot tell its own lost attempt from somebody else's record.
    if isinstance(store.write(session.key, session.to_json(), IfAbsent(), metadata={}), PreconditionFailed):
        raise OutcomeUnknown("S3 did not say whether the session was stored. Repeating the request is safe.")
    document = {
        "id": session.id,
        "secret": secret,
        "principal": session.principal,
        "role": role,
        "scope": scope,
        "trust": session.trust,
        "expires": written(session.expires),
        "seconds": int((session.expires - session.created).total_seconds()),
    }
    return Answer(
        "session.created",
        200,
        Payload(json.dumps(document), is_base64=False),
        {
            "session": session.id,
            "principal": session.principal,
            "subject": session.subject,
            "source": session.source,
            "role": role,
            "trust": session.trust,
        },
    )


_ROUTES: Final[Routes[Request]] = {
    "/sessions": {"POST": _for_id_token},
    "/sessions/aws": {"POST": _for_aws_role},
}
