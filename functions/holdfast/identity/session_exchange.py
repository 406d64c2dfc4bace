"""Session exchange: decide who gets a session for an ID token or for AWS credentials.

This module does not verify credentials: the authorizer verified the ID token, API Gateway the AWS signature.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from holdfast.access import Caller
from holdfast.errors import NotAllowed, NotSigned, OutcomeUnknown
from holdfast.identity import sessions
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason
from holdfast.identity.principals import principal
from holdfast.identity.sessions import Session
from holdfast.identity.trust import Records, Unreadable
from holdfast.networks import Origin
from holdfast.s3.objects import IfAbsent, PreconditionFailed
from holdfast.s3.store import Store

# This ARN contains the role's name without its path; the last part is the name of the role session.
_ROLE_SESSION: Final = re.compile(
    r"arn:[a-z-]+:sts::(?P<account>[0-9]{12}):assumed-role/(?P<role>[A-Za-z0-9_+=,.@-]+)/[A-Za-z0-9_+=,.@-]+",
    re.ASCII,
)


def for_id_token(bearer: Authenticated, *, now: datetime) -> Authenticated:
    """Return the caller who gets the session: the bearer of an ID token.

    Args:
        bearer: the caller that the authorizer authenticated.

    Raises:
        NotAllowed: the caller authenticated in another way, or the ID token has expired.
    """
    match bearer.method:
        case AuthMethod.OIDC:
            # API Gateway caches the authorizer's response for longer than the token may be valid.
            if now.timestamp() >= bearer.ends:
                raise NotAllowed("The ID token has expired; send a new one.", denial=DenialReason.EXPIRED)
            return bearer
        case AuthMethod.TOKEN | AuthMethod.SESSION | AuthMethod.AWS as method:
            raise NotAllowed(
                f"You cannot get a session with these credentials ({method}). Authenticate with an ID token."
            )


def for_aws_role(
    arn: str | None, account: str, read_records: Callable[[], Records], origin: Origin
) -> Authenticated:
    """Return the caller who gets the session, if a trust record names their IAM role in the team's account.

    API Gateway only passes requests whose signature AWS verified. A misconfigured or foreign gateway could
    pass a request without a signature. So only the ARN proves the caller.

    Args:
        arn: the caller's ARN, as AWS verified it; None if the request was not signed.
        account: the ID of the team's AWS account.
        read_records: reads the trust records; called only for a role of the account.
        origin: where the request comes from.

    Raises:
        NotSigned: the request has no verified signature.
        NotAllowed: the caller is not a role session of the account, no readable trust record names the
            role, or the address is not in the networks of the team or of the record.
    """
    if arn is None:
        raise NotSigned(
            "The request has no signature of AWS credentials that AWS could verify.",
            denial=DenialReason.NOT_SIGNED,
        )
    if not origin.is_of_team:
        raise NotAllowed(
            (
                f"The address {origin.address} is not in the networks of the team's setting 'networks'. Send "
                "the request from one of these networks, or ask an operator to add the address."
            ),
            denial=DenialReason.WRONG_NETWORK,
        )
    role_session = _ROLE_SESSION.fullmatch(arn)
    if role_session is None or role_session["account"] != account:
        raise NotAllowed(
            f"{arn} is not a session of an IAM role in the account {account}; assume such a role first.",
            denial=DenialReason.NOT_TRUSTED,
        )
    record = read_records().for_aws_role(role_session["role"])
    if record is None:
        raise NotAllowed(
            f"No trust record names the IAM role {role_session['role']}. Ask an operator to create one with "
            "`holdfast trust create`.",
            denial=DenialReason.NOT_TRUSTED,
        )
    if isinstance(record, Unreadable):
        raise NotAllowed(
            f"The deployed functions cannot read the trust record '{record.name}' of the IAM role "
            f"{role_session['role']}. If a newer `holdfast` wrote the record, deploy the stack again. "
            "Otherwise, the record is damaged, and `holdfast trust list` says what to do.",
            denial=DenialReason.TRUST_UNREADABLE,
        )
    if not origin.is_of_record(record.networks):
        raise NotAllowed(
            f"The trust record '{record.name}' does not accept requests from the address {origin.address}. "
            "Send the request from one of the networks that `holdfast trust list` shows for this record, or "
            "ask an operator to add the address.",
            denial=DenialReason.WRONG_NETWORK,
        )
    return Authenticated(
        Caller(principal(arn), record.grants, record.owner),
        AuthMethod.AWS,
        trust=record.name,
        trust_id=record.id,
        subject=arn,
        networks=record.networks,
    )


def create(store: Store, bearer: Authenticated, *, now: datetime, seconds: int) -> tuple[Session, str]:
    """Create and store a session for a caller that `for_id_token` or `for_aws_role` returned.

    After `OutcomeUnknown` the record may or may not be stored.
    """
    session, secret = sessions.create(bearer, now=now, seconds=seconds)
    # The function may not read sessions, so it cannot tell its own lost attempt from somebody else's record.
    if isinstance(store.write(session.key, session.to_json(), IfAbsent(), metadata={}), PreconditionFailed):
        raise OutcomeUnknown("S3 did not say whether the session was stored. A retry is safe.")
    return session, secret
