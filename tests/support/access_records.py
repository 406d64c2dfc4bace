"""Tokens and trust records of a team, written to its bucket directly: also those that no command creates."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

from holdfast.access import Grant, Role
from holdfast.identity import tokens, trust
from holdfast.identity.tokens import Token
from holdfast.identity.trust import AwsTrust, OidcTrust
from tests.support.aws_caller import AwsCaller, assume, trust_records
from tests.support.http_client import Client, Credentials, Response
from tests.support.id_tokens import AUDIENCE
from tests.support.oidc import NETWORK, Issuer
from tests.support.team import Team

CACHE: Final = 60.0
"""Seconds for which API Gateway caches a response of the authorizer."""

_NAMES = count(1)


def new_token(
    team: Team,
    role: Role = Role.WRITER,
    *scope: str,
    grants: Sequence[Grant] = (),
    expires: datetime | None = None,
) -> tuple[Token, Credentials]:
    """Store a token that nobody has used, so that API Gateway has nothing cached for it."""
    token, secret = tokens.create(
        grants or [Grant(role, scope or ("*",))],
        description="",
        created_by="a test",
        now=datetime.now(UTC),
        expires=expires,
        owner="Béa",
    )
    team.put(token.key, token.to_json())
    return token, Credentials(token.id, secret)


def add_oidc_trust(
    team: Team, issuer: Issuer, *scope: str, claims: Mapping[str, str] = NETWORK, name: str | None = None
) -> OidcTrust:
    """Add a trust record for writers with tokens of an issuer."""
    record = trust.new_oidc(
        name or f"ci-{next(_NAMES)}",
        issuer=issuer.address,
        audience=AUDIENCE,
        claims=claims,
        **_of_a_test(Role.WRITER, scope),
    )
    team.put(trust.KEY, trust_records(team).added(record).to_json())
    return record


def add_aws_trust(team: Team, aws_role: str, *scope: str, role: Role = Role.WRITER) -> None:
    """Add a trust record, of the same name, for an IAM role of the account, unless it has one."""
    records = trust_records(team)
    if records.for_aws_role(aws_role) is None:
        record = trust.new_aws(aws_role, aws_role=aws_role, **_of_a_test(role, scope))
        team.put(trust.KEY, records.added(record).to_json())


def trusted(team: Team, aws_role: str) -> AwsTrust:
    """Return the trust record for an IAM role, which must have one."""
    record = trust_records(team).for_aws_role(aws_role)
    assert isinstance(record, AwsTrust)
    return record


def trust_role(team: Team, name: str) -> AwsCaller:
    """Return a caller with an IAM role that a team trusts as maintainer of every state."""
    caller = assume(team, name)
    add_aws_trust(team, caller.role_name, role=Role.MAINTAINER)
    return caller


def remove_trust(team: Team, name: str) -> None:
    team.put(trust.KEY, trust_records(team).without(name).to_json())


def _of_a_test(role: Role, scope: Sequence[str]) -> dict[str, Any]:
    return {
        "grants": [Grant(role, tuple(scope) or ("*",))],
        "description": "",
        "created_by": "a test",
        "now": datetime.now(UTC),
    }


# --- requests with any `Authorization` -----------------------------------------------------------


def with_header(
    team: Team, authorization: str, path: str = "/states/access/none", method: str = "GET", **more: Any
) -> Response:
    """Send a request with this `Authorization`; for the default state, a caller who may read it gets 204."""
    return Client(team.gateway.address, team.tls, None).request(
        method, path, headers={"Authorization": authorization, **more.pop("headers", {})}, **more
    )


def alike(answer: Response) -> tuple[int, dict[str, str], bytes]:
    """Return the parts of a response that two clients could tell apart: all but its time and request ID."""
    changing = {"date", "x-amzn-remapped-date", "apigw-requestid", "x-amzn-requestid", "x-amz-request-id"}
    headers = {name: value for name, value in answer.headers.items() if name not in changing}
    return answer.status, headers, answer.body


def exchange(team: Team, authorization: str, body: bytes | None = None) -> Response:
    return with_header(team, authorization, "/sessions", "POST", body=body)


def session_of(answer: Response) -> Credentials:
    assert answer.status == 200, answer
    made = answer.json()
    return Credentials(made["id"], made["secret"])


def session_record(team: Team, session_id: str) -> dict[str, Any]:
    body = team.s3.get_object(Bucket=team.bucket, Key=f"sessions/{session_id}.json")["Body"].read()
    found: dict[str, Any] = json.loads(body)
    return found
