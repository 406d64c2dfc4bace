"""Sessions for AWS credentials, whose signature the gateway verifies, and refused to attackers."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast.access import Role
from holdfast.identity import principals
from local_aws.server import ACCOUNT
from tests.support import aws_caller, oidc
from tests.support.access_records import (
    add_aws_trust,
    exchange,
    new_token,
    session_of,
    session_record,
)
from tests.support.aws_caller import AwsCaller
from tests.support.http_client import Credentials
from tests.support.oidc import Issuer
from tests.support.sign_ins import basic
from tests.support.team import Team

SUBJECT = "repo:acme/network:ref:refs/heads/main"


@pytest.fixture(scope="module")
def admin(strict: Team) -> AwsCaller:
    """A session of an IAM role that the team trusts as maintainer of `people/*`."""
    caller = aws_caller.assume(strict, "admin", session="ada@example.com", path="/teams/platform/")
    add_aws_trust(strict, caller.role_name, "people/*", role=Role.MAINTAINER)
    return caller


def new_session(team: Team, issuer: Issuer) -> Credentials:
    """A session that nobody has used yet."""
    return session_of(exchange(team, oidc.bearer(issuer.token())))


def status(team: Team, credentials: Credentials, state: str = "ci/none") -> int:
    return team.client_with(credentials).read(state).status


# --- with AWS credentials ---------------------------------------------------------------------------


def test_a_session_of_a_trusted_role_gets_one_of_holdfast(strict: Team, admin: AwsCaller) -> None:
    answer = admin.ask_for_session(strict)

    assert answer.status == 200, answer
    made = answer.json()
    assert (made["role"], made["scope"], made["seconds"]) == ("maintainer", ["people/*"], 3600)
    assert made["principal"] == principals.principal(admin.arn)
    session = session_of(answer)
    assert status(strict, session, "people/none") == 204
    assert status(strict, session, "ci/none") == 403
    record = session_record(strict, session.username)
    assert (record["subject"], record["source"]) == (admin.arn, "aws")
    assert admin.ask_for_session(strict, b'{"seconds": 600}').json()["seconds"] == 600


def test_who_is_no_session_of_a_trusted_role_is_refused(strict: Team, admin: AwsCaller) -> None:
    callers = {
        "root": aws_caller.root(strict),
        "a user with the role's name": aws_caller.user(strict, "admin"),
        "a role whose name begins alike": aws_caller.assume(strict, "admin-of-others"),
        "a role whose session is called like it": aws_caller.assume(strict, "other", session=admin.role_name),
    }

    with strict.unchanged():
        answers = {name: each.ask_for_session(strict) for name, each in callers.items()}

    assert {name: answer.error for name, answer in answers.items()} == dict.fromkeys(
        callers, (403, "not_allowed")
    )
    assert all("role" in answer.json()["message"] for answer in answers.values())


def smuggled(arn: str, account: str = ACCOUNT) -> dict[str, dict[str, Any]]:
    """Return requests with a caller's ARN in every place except where the gateway puts it."""
    iam = {"userArn": arn, "accountId": account, "accessKey": "ASIA", "callerId": "A:ada", "userId": "A:ada"}
    context = {"requestContext": {"authorizer": {"iam": iam}, "accountId": account}}
    names = ("x-amz-user-arn", "x-amzn-iam-user-arn", "userarn", "requestcontext", "authorizer", "x-user-arn")
    headers = {**dict.fromkeys(names, arn), "x-amzn-request-context": json.dumps(context)}
    query = urlencode({"userArn": arn, "requestContext.authorizer.iam.userArn": arn, "authorizer[iam]": arn})
    return {
        "headers and query": {"headers": headers, "query": f"?{query}"},
        "the body": {"body": json.dumps({"seconds": 3600, **context}).encode()},
    }


def test_without_a_verified_caller_there_is_no_session_whatever_the_request_carries(
    strict: Team, admin: AwsCaller, issuer: Issuer
) -> None:
    """The local AWS's gateway passes other schemes than Signature Version 4, without a caller."""
    _, token = new_token(strict, Role.MAINTAINER)
    signature = (
        "Credential=AKIAUNKNOWN/20261120/us-east-1/execute-api/aws4_request, SignedHeaders=host, Signature=0"
    )
    schemes = {
        "a token": token.header,
        "an ID token": oidc.bearer(issuer.token()),
        "a session": new_session(strict, issuer).header,
        "the ARN": admin.arn,
        "the ARN as a bearer": f"Bearer {admin.arn}",
        "the ARN as Basic": basic(admin.arn, "x"),
        "a signature with an unknown key": f"AWS4-HMAC-SHA256 {signature}",
        "a signature of nothing": "AWS4-HMAC-SHA256",
        "garbage": "garbage",
    }

    with strict.unchanged():
        for scheme, authorization in schemes.items():
            for place, carried in smuggled(admin.arn).items():
                headers = {**carried.get("headers", {}), "Authorization": authorization}
                answer = aws_caller.ask_unsigned(strict, **{**carried, "headers": headers})
                assert answer.status == 403, (scheme, place)
                if "signature" not in scheme:  # which the local AWS refuses by itself, as AWS does
                    assert answer.error == (403, "not_signed"), (scheme, place)
        for place, carried in smuggled(admin.arn).items():
            assert aws_caller.ask_unsigned(strict, **carried).status == 403, place


def test_a_signed_request_is_for_whom_it_was_signed_whatever_else_it_carries(
    strict: Team, admin: AwsCaller
) -> None:
    nobody = aws_caller.assume(strict, "nobody", session="mallory")

    with strict.unchanged():
        for place, carried in smuggled(admin.arn).items():
            answer = nobody.ask_for_session(strict, **carried)
            assert answer.status in (400, 403), place
    for place, carried in smuggled(nobody.arn).items():
        answer = admin.ask_for_session(strict, **carried)
        assert answer.status in (200, 400), place
        if answer.status == 200:
            assert answer.json()["principal"] == principals.principal(admin.arn)
