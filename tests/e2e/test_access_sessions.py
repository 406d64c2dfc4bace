"""Sessions: made of an ID token or of AWS credentials, used, ended, and what is tried to get one."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlencode

import pytest

from holdfast.access import Role
from holdfast.identity import principals, sessions, tokens
from local_aws.server import ACCOUNT
from tests.support import access_commands, aws_caller, documents, oidc
from tests.support.access_records import (
    add_aws_trust,
    add_oidc_trust,
    alike,
    basic,
    exchange,
    new_token,
    remove_trust,
    session_of,
    session_record,
    with_header,
)
from tests.support.aws_caller import AwsCaller
from tests.support.http_client import Credentials
from tests.support.oidc import Issuer
from tests.support.team import Team

SUBJECT = "repo:acme/network:ref:refs/heads/main"


@pytest.fixture(scope="module")
def issuer(strict: Team) -> Iterator[Issuer]:
    """An issuer that the team trusts for the repository acme/network, to write below `ci/`."""
    with Issuer() as running:
        add_oidc_trust(strict, running, "ci/*", name="sessions-ci")
        yield running


@pytest.fixture(scope="module")
def admin(strict: Team) -> AwsCaller:
    """A session of an IAM role that the team trusts to do everything below `people/`."""
    caller = aws_caller.assume(strict, "admin", session="ada@example.com", path="/teams/platform/")
    add_aws_trust(strict, caller.role_name, "people/*", role=Role.MAINTAINER)
    return caller


def new_session(team: Team, issuer: Issuer) -> Credentials:
    """A session that nobody has used yet."""
    return session_of(exchange(team, oidc.bearer(issuer.token())))


def status(team: Team, credentials: Credentials, state: str = "ci/none") -> int:
    return team.client_with(credentials).read(state).status


# --- with an ID token -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [oidc.basic, oidc.bearer], ids=["user name oidc", "bearer"])
def test_an_id_token_is_exchanged_for_a_session_of_an_hour(
    strict: Team, issuer: Issuer, form: Callable[[str], str]
) -> None:
    before = datetime.now(UTC)
    answer = exchange(strict, form(issuer.token()))
    after = datetime.now(UTC)

    made = answer.json()
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    assert made.keys() == {"id", "secret", "principal", "role", "scope", "trust", "expires", "seconds"}
    assert {name: made[name] for name in ("role", "scope", "trust", "seconds")} == {
        "role": "writer",
        "scope": ["ci/*"],
        "trust": "sessions-ci",
        "seconds": 3600,
    }
    assert made["principal"] == principals.principal(f"oidc:{issuer.address}#{SUBJECT}")
    ends = datetime.fromisoformat(made["expires"]) - timedelta(hours=1)
    assert before - timedelta(seconds=1) <= ends <= after + timedelta(seconds=1)
    record = session_record(strict, made["id"])
    assert made["secret"] not in json.dumps(record)
    assert record["subject"] == f"{issuer.address}#{SUBJECT}"


def test_a_session_does_what_its_trust_record_says_and_nothing_else(
    strict: Team, issuer: Issuer, state: str
) -> None:
    client, info = strict.client_with(new_session(strict, issuer)), documents.lock_info()
    name = f"ci/{state}"

    assert client.lock(name, info).status == 200
    assert client.write(name, documents.state(), documents.lock_id(info)).status == 200
    assert client.unlock(name, info).status == 200
    assert client.delete(name).error == (403, "not_allowed")
    assert client.read(state).error == (403, "not_allowed")
    [version] = strict.versions(name)
    assert unquote(version.metadata["written-by"]) == principals.principal(f"oidc:{issuer.address}#{SUBJECT}")


def test_what_was_begun_with_the_id_token_is_finished_with_the_session(
    strict: Team, issuer: Issuer, state: str
) -> None:
    authorization, info = oidc.basic(issuer.token()), documents.lock_info()
    name = f"ci/{state}"
    assert with_header(strict, authorization, f"/locks/{name}", "PUT", body=info).status == 200

    client = strict.client_with(session_of(exchange(strict, authorization)))

    assert client.write(name, documents.state(), documents.lock_id(info)).status == 200
    assert client.unlock(name, info).status == 200
    assert strict.lock(name) is None


@pytest.mark.parametrize("seconds", [300, 3600, 43_200])
def test_a_session_lasts_as_long_as_was_asked_for(strict: Team, issuer: Issuer, seconds: int) -> None:
    answer = exchange(strict, oidc.bearer(issuer.token()), json.dumps({"seconds": seconds}).encode())

    assert (answer.status, answer.json()["seconds"]) == (200, seconds)
    ends = datetime.fromisoformat(answer.json()["expires"])
    assert abs((ends - datetime.now(UTC)).total_seconds() - seconds) < 10


@pytest.mark.parametrize(
    "body",
    [
        b'{"seconds": 299}',
        b'{"seconds": 43201}',
        b'{"seconds": -1}',
        b'{"seconds": 3600.5}',
        b'{"seconds": "3600"}',
        b'{"seconds": true}',
        b'{"seconds": null}',
        b'{"seconds": 1e3}',
        b'{"seconds": 3600, "role": "maintainer"}',
        b'{"scope": ["*"]}',
        b"[]",
        b"3600",
        b"{",
        b"\xff",
    ],
    ids=lambda body: body.decode("latin-1"),
)
def test_a_body_that_asks_for_something_else_is_400_and_makes_no_session(
    strict: Team, issuer: Issuer, body: bytes
) -> None:
    with strict.unchanged():
        answer = exchange(strict, oidc.bearer(issuer.token()), body)

    assert answer.error == (400, "invalid_body")


def test_a_session_is_exchanged_for_no_other(strict: Team, issuer: Issuer) -> None:
    session = new_session(strict, issuer)

    with strict.unchanged():
        assert exchange(strict, session.header).error == (403, "not_allowed")


def test_a_refused_id_token_gets_no_session(strict: Team, issuer: Issuer) -> None:
    with strict.unchanged():
        assert exchange(strict, oidc.bearer(issuer.token({"repository": "mallory/x"}))).status == 403


# --- wrong sessions ---------------------------------------------------------------------------------


def test_wrong_sessions_are_refused_as_unknown_tokens_are(strict: Team, issuer: Issuer) -> None:
    session, other = new_session(strict, issuer), new_session(strict, issuer)
    token, credentials = new_token(strict)
    unknown = alike(with_header(strict, basic("0" * 20, "x")))
    identifier = session.username.removeprefix("session-")
    wrong = {
        "another's secret": basic(session.username, other.password),
        "no secret": basic(session.username, ""),
        "a token's secret": basic(session.username, credentials.password),
        "its secret under a token's ID": basic(token.id, session.password),
        "its ID as a token's": basic(identifier, session.password),
        "a token's ID as a session's": basic(f"session-{token.id}", credentials.password),
        "an unknown ID": basic(f"session-{'0' * 20}", session.password),
        "its hash": basic(session.username, session_record(strict, session.username)["secret_sha256"]),
        "in capitals": basic(session.username.upper(), session.password),
        "as a bearer": f"Bearer {session.password}",
    }

    answers = {name: alike(with_header(strict, header)) for name, header in wrong.items()}

    assert {name: answer for name, answer in answers.items() if answer != unknown} == {}
    assert status(strict, session) == 204


def test_an_expired_session_is_refused(strict: Team, issuer: Issuer) -> None:
    session = new_session(strict, issuer)
    body = json.dumps(session_record(strict, session.username)).encode()
    ended = replace(sessions.Session.from_json(body), expires=datetime.now(UTC) - timedelta(seconds=1))
    strict.put(ended.key, ended.to_json())

    assert status(strict, session) == 403


@pytest.mark.parametrize("added_again", [False, True], ids=["removed", "re-created under its name"])
def test_a_session_ends_with_its_trust_record(strict: Team, added_again: bool) -> None:
    with Issuer() as issuer:
        trust = add_oidc_trust(strict, issuer, "ci/*")
        session = new_session(strict, issuer)
        remove_trust(strict, trust.name)
        if added_again:
            anew = add_oidc_trust(strict, issuer, "ci/*", name=trust.name)
            assert anew.id != trust.id

        assert status(strict, session) == 403
        if added_again:
            assert status(strict, new_session(strict, issuer)) == 204


def test_a_session_goes_on_with_what_an_update_of_its_trust_record_grants(strict: Team, state: str) -> None:
    with Issuer() as issuer:
        trust = add_oidc_trust(strict, issuer, "ci/*")
        id_token = {"HOLDFAST_ID_TOKEN": issuer.token()}
        session, unused = (
            access_commands.login(strict, "--oidc", environment=id_token),
            new_session(strict, issuer),
        )
        access_commands.holdfast(
            strict, "trust", "update", trust.name, "--role", "reader", "--scope", "ci/a/*"
        )

        # Nobody has used it yet, so API Gateway has nothing cached for it.
        client = strict.client_with(session)
        assert client.read(f"ci/a/{state}").status == 204
        assert client.lock(f"ci/a/{state}", documents.lock_info()).error == (403, "not_allowed")
        assert client.read(f"ci/b/{state}").error == (403, "not_allowed")
        remove_trust(strict, trust.name)
        assert status(strict, unused, f"ci/a/{state}") == 403


TAMPERED: dict[str, Callable[[dict[str, Any]], object]] = {
    "no JSON": str,
    "nothing": lambda _: {},
    "another trust record": lambda record: {**record, "trust": "another"},
    "another ID of its trust record": lambda record: {**record, "trust_id": "0" * 20},
    "no trust record": lambda record: {**record, "trust": "", "trust_id": ""},
    "a role and a scope of its own": lambda record: {
        **record,
        "role": "maintainer",
        "scope": ["*"],
        "trust_id": "",
    },
    "an endless expiry": lambda record: {**record, "expires": None},
    "an expiry without a zone": lambda record: {**record, "expires": "2099-01-01T00:00:00"},
    "another source": lambda record: {**record, "source": "token"},
    "another's ID": lambda record: {**record, "id": f"session-{'0' * 20}"},
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_tampered_session_lets_nobody_in(strict: Team, issuer: Issuer, how: str) -> None:
    session = new_session(strict, issuer)
    record = session_record(strict, session.username)
    strict.put(f"sessions/{session.username}.json", json.dumps(TAMPERED[how](record)).encode())

    assert with_header(strict, session.header).status in (403, 500)


def test_records_are_not_taken_for_those_of_another_kind(strict: Team, issuer: Issuer) -> None:
    session, (token, credentials) = new_session(strict, issuer), new_token(strict)
    record = session_record(strict, session.username)
    identifier = session.username.removeprefix("session-")
    strict.put(f"tokens/{identifier}.json", json.dumps(record).encode())
    strict.put(f"sessions/session-{token.id}.json", token.to_json())

    assert with_header(strict, basic(identifier, session.password)).status in (403, 500)
    assert with_header(strict, basic(f"session-{token.id}", credentials.password)).status in (403, 500)


def test_a_token_with_the_form_of_a_session_is_none(strict: Team) -> None:
    token, secret = tokens.create(
        Role.MAINTAINER, ["*"], description="", created_by="", now=datetime.now(UTC), expires=None
    )
    forged = replace(token, id=f"session-{token.id}")
    strict.put(f"tokens/{forged.id}.json", forged.to_json())

    assert with_header(strict, basic(forged.id, secret)).status == 403


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
    """Requests that carry a caller's ARN in every place but the one that the gateway fills in."""
    iam = {"userArn": arn, "accountId": account, "accessKey": "ASIA", "callerId": "A:ada", "userId": "A:ada"}
    context = {"requestContext": {"authorizer": {"iam": iam}, "accountId": account}}
    names = ("x-amz-user-arn", "x-amzn-iam-user-arn", "userarn", "requestcontext", "authorizer", "x-user-arn")
    return {
        "nothing": {},
        "a header": {"headers": {**dict.fromkeys(names, arn), "x-amzn-request-context": json.dumps(context)}},
        "the query": {
            "query": "?"
            + urlencode(
                {"userArn": arn, "requestContext.authorizer.iam.userArn": arn, "authorizer[iam]": arn}
            )
        },
        "the body": {"body": json.dumps({"seconds": 3600, **context}).encode()},
        "the body alone": {"body": json.dumps(iam).encode()},
        "everything": {
            "headers": dict.fromkeys(names, json.dumps(context)),
            "query": f"?{urlencode({'userArn': arn})}",
            "body": json.dumps(context).encode(),
        },
    }


def test_without_a_verified_caller_there_is_no_session_whatever_the_request_carries(
    strict: Team, admin: AwsCaller, issuer: Issuer
) -> None:
    """The gateway of the local AWS lets other schemes than Signature Version 4 through, without a caller."""
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


def test_the_signed_route_answers_nothing_but_post(strict: Team, admin: AwsCaller) -> None:
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        answer = admin.ask_for_session(strict, method=method)
        assert answer.error == (405, "method_not_allowed")
        assert answer.headers["allow"] == "POST"
