"""Session exchange: who gets a session for an ID token or for AWS credentials.

This module verifies neither: the authorizer verified the ID token, and API Gateway the AWS credentials.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from holdfast.access import Caller
from holdfast.errors import NotAllowed, NotSigned, OutcomeUnknown
from holdfast.identity import sessions
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.identity.principals import principal
from holdfast.identity.sessions import Session
from holdfast.identity.trust import Records
from holdfast.s3.store import IfAbsent, PreconditionFailed, Store

# The role's name has no path here; the last part is the name of the role's session.
_ROLE_SESSION: Final = re.compile(
    r"arn:[a-z-]+:sts::(?P<account>[0-9]{12}):assumed-role/(?P<role>[A-Za-z0-9_+=,.@-]+)/[A-Za-z0-9_+=,.@-]+",
    re.ASCII,
)


def for_id_token(bearer: Authenticated, *, now: datetime) -> Authenticated:
    """Return who gets the session: the bearer of an ID token, and nobody else.

    Args:
        bearer: the caller that the authorizer authenticated.

    Raises:
        NotAllowed: they authenticated in another way, or their ID token has ended.
    """
    match bearer.method:
        case AuthMethod.OIDC:
            # API Gateway caches the authorizer's response for longer than the token may be valid.
            if now.timestamp() >= bearer.ends:
                raise NotAllowed("The ID token has expired; send a new one.")
            return bearer
        case AuthMethod.TOKEN | AuthMethod.SESSION | AuthMethod.AWS as method:
            raise NotAllowed(
                f"{bearer.caller.principal} authenticated with a {method}; only an ID token becomes "
                "a session."
            )


def for_aws_role(arn: str | None, account: str, read_records: Callable[[], Records]) -> Authenticated:
    """Return who gets the session: the caller, if a trust record names their IAM role of the team's account.

    API Gateway lets only callers through that AWS verified. A gateway that is configured otherwise, or is not
    AWS's, may let through a request that AWS never saw: the ARN is the only proof.

    Args:
        arn: the caller's, as AWS verified it; None if it verified nobody.
        account: the team's AWS account.
        read_records: called only for a role of the account.

    Raises:
        NotSigned: AWS verified nobody.
        NotAllowed: the caller has no role of the account, or no trust record names it.
    """
    if arn is None:
        raise NotSigned("The request is not signed with AWS credentials that AWS knows.")
    role_session = _ROLE_SESSION.fullmatch(arn)
    if role_session is None or role_session["account"] != account:
        raise NotAllowed(
            f"{arn} is not a session of an IAM role in the account {account}; assume such a role first."
        )
    record = read_records().for_aws_role(role_session["role"])
    if record is None:
        raise NotAllowed(
            f"No trust record names the IAM role {role_session['role']}; add one with `holdfast trust add`."
        )
    return Authenticated(
        Caller(principal(arn), record.role, record.scope),
        AuthMethod.AWS,
        trust=record.name,
        trust_id=record.id,
        subject=arn,
    )


def create(store: Store, bearer: Authenticated, *, now: datetime, seconds: int) -> tuple[Session, str]:
    """Create and store a session for a caller that `for_id_token` or `for_aws_role` returned.

    `OutcomeUnknown` may also mean that the record was stored.
    """
    session, secret = sessions.create(bearer, now=now, seconds=seconds)
    # The function may not read sessions: it cannot tell its own lost attempt from somebody else's record.
    if isinstance(store.write(session.key, session.to_json(), IfAbsent(), metadata={}), PreconditionFailed):
        raise OutcomeUnknown("S3 did not say whether the session was stored. A retry is safe.")
    return session, secret
