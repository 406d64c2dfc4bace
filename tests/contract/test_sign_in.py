"""The authorizer and the session exchange, from event to response, on two S3 servers."""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from joserfc.jwk import RSAKey

from audit_trail.events import received
from gateway import authorizer_context
from holdfast.access import Caller, Grant, Role
from holdfast.errors import OutcomeUnknown, StorageRefused
from holdfast.identity import sessions, tokens, trust
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason, Denied
from holdfast.identity.oidc import fetch, keys, verify
from holdfast.identity.oidc.fetch import IssuerUnreachable
from holdfast.identity.sessions import Session
from holdfast.identity.tokens import Token
from holdfast.identity.trust import Records
from tests.contract.conftest import ACCOUNT, Answer, Bucket, Server, error, noted, started
from tests.support.events import Context, request, sign_in
from tests.support.id_tokens import ISSUER, RSA, SUBJECT, Published, claims, raw, record, signed
from tests.support.s3_fault_proxy import Fault
from tests.unit.test_audit_events import delivery

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET = "holdfast-sign-in"
FULLWIDTH = "".join(chr(ord(digit) + 0xFEE0) for digit in ACCOUNT)
ARN = f"arn:aws:sts::{ACCOUNT}:assumed-role/Deployer/ada@corp.com"
FOREIGN = RSAKey.generate_key(2048, {"kid": "one"})
PRINCIPAL = f"oidc:{ISSUER}#{SUBJECT}"

DENIED: Answer = {"isAuthorized": False}


@dataclass(frozen=True)
class Functions:
    """The functions as Lambda starts them. `server` is the S3 server that they use through the proxy."""

    server: Server
    handlers: Mapping[str, Any]

    def authorize(self, authorization: str, context: Context | None = None) -> Answer:
        answer: Answer = self.handlers["authorizer"](sign_in(authorization), context or Context())
        return answer

    def make_session(self, route: str, authorizer: object, *, method: str = "POST", **more: Any) -> Answer:
        """Return the response to a request for a session, with API Gateway's facts about the caller."""
        event = request(method, route, **more)
        event["requestContext"]["authorizer"] = authorizer
        answer: Answer = self.handlers["session_exchange"](event, Context())
        return answer

    def put(self, key: str, body: bytes) -> None:
        """Store an object, past the proxy."""
        self.server.direct.put_object(Bucket=BUCKET, Key=key, Body=body)

    def get(self, key: str) -> bytes:
        return self.server.direct.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def stored(self) -> list[str]:
        listed = self.server.direct.list_objects_v2(Bucket=BUCKET)
        return [found["Key"] for found in listed.get("Contents", [])]

    def trust(self, *records: trust.Trust) -> None:
        """Store these trust records and no other."""
        self.put(trust.KEY, Records(records).to_json())

    def s3(self, name: str) -> "S3Client":
        """The client of a function."""
        client: S3Client = self.handlers[name].__globals__["_function"].s3
        return client

    def sent(self, name: str, act: Callable[[], Answer]) -> tuple[Answer, list[str]]:
        """Return a response and the methods of the requests that a function sends to S3 for it."""
        with noted(self.s3(name), "host") as requests:
            answer = act()
        return answer, [method for method, _ in requests]


@pytest.fixture(scope="module", params=["ministack", "moto"])
def both(request: pytest.FixtureRequest) -> Iterator[Functions]:
    server: Server = request.getfixturevalue(request.param)
    with started(server, "authorizer", "session_exchange", HOLDFAST_BUCKET=BUCKET) as handlers:
        yield Functions(server, handlers)


@pytest.fixture
def functions(both: Functions) -> Iterator[Functions]:
    yield both
    Bucket(BUCKET, both.server).empty()


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Published:
    """The issuer's published documents, in a process that has never fetched them."""
    published = Published(RSA)
    monkeypatch.setattr(keys, "process_issuers", published.issuers)
    return published


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def bearer_form(header: str) -> str:
    """Return the same ID and secret in the form that clients of `cloud {}` send."""
    user, _, secret = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
    return f"Bearer {user}.{secret}"


def bearer(**changed: Any) -> str:
    return f"Bearer {signed(RSA, claims(**changed))}"


def stored_token(functions: Functions, **changed: Any) -> tuple[Token, str]:
    settings: dict[str, Any] = {
        "grants": [Grant(Role.WRITER, ("network/*",))],
        "description": "",
        "created_by": "test",
        "now": datetime.now(UTC),
        "expires": None,
    }
    token, secret = tokens.create(**{**settings, **changed})
    functions.put(token.key, token.to_json())
    return token, secret


def stored_session(
    functions: Functions, granted_by: trust.Trust, *, now: datetime | None = None
) -> tuple[Session, str]:
    bearer = Authenticated(
        Caller(ARN, granted_by.grants),
        AuthMethod.AWS,
        trust=granted_by.name,
        trust_id=granted_by.id,
        subject=ARN,
    )
    session, secret = sessions.create(bearer, now=now or datetime.now(UTC), seconds=300)
    functions.put(session.key, session.to_json())
    return session, secret


def deployers(**changed: Any) -> trust.AwsTrust:
    settings: dict[str, Any] = {
        "aws_role": "Deployer",
        "grants": [Grant(Role.READER, ("dns",))],
        "description": "",
        "created_by": "test",
        "now": datetime.now(UTC),
    }
    return trust.new_aws("deployers", **{**settings, **changed})


# --- who is let in --------------------------------------------------------------------------------


def accepted(**context: str) -> Answer:
    """Return the response that accepts a caller, with the caller's context."""
    nothing = {"trust": "", "trust_id": "", "subject": "", "ends": "0", "expires": "0"}
    return {"isAuthorized": True, "context": {**nothing, **context}}


def test_a_token_is_authenticated_with_one_request(functions: Functions) -> None:
    token, secret = stored_token(functions)
    answer, sent = functions.sent("authorizer", lambda: functions.authorize(basic(token.id, secret)))
    assert sent == ["GET"]
    principal = f"token:{token.id}"
    assert answer == accepted(
        principal=principal, role="writer", scope='["network/*"]', source="token", access_log=principal
    )


def test_a_session_is_authenticated_with_two_requests(functions: Functions) -> None:
    granted_by = deployers()
    functions.trust(granted_by)
    session, secret = stored_session(functions, granted_by)
    answer, sent = functions.sent("authorizer", lambda: functions.authorize(basic(session.id, secret)))
    assert sent == ["GET", "GET"]
    assert answer == accepted(
        principal=ARN,
        role="reader",
        scope='["dns"]',
        source="session",
        subject=ARN,
        trust="deployers",
        trust_id=granted_by.id,
        access_log=ARN,
        expires=str(int(session.expires.timestamp())),
    )


def test_a_bearer_is_answered_and_logged_as_the_same_id_and_secret_in_basic(
    functions: Functions, log: list[str]
) -> None:
    granted_by = deployers()
    functions.trust(granted_by)
    token, token_secret = stored_token(functions)
    session, session_secret = stored_session(functions, granted_by)
    expired = _expired_token(functions)
    wrong = [basic(token.id, "confidential"), basic(session.id, token_secret), basic("z" * 20, "x"), expired]
    right = [basic(token.id, token_secret), basic(session.id, session_secret)]
    as_basic = [functions.authorize(header) for header in right + wrong]
    as_bearer = [functions.authorize(bearer_form(header)) for header in right + wrong]
    assert as_basic == as_bearer
    assert [answer["isAuthorized"] for answer in as_bearer] == [True] * 2 + [False] * 4
    lines = [json.loads(line) | {"timestamp": "", "request_id": ""} for line in log]
    assert lines[:6] == lines[6:]
    assert not any(
        secret in line for line in log for secret in (token_secret, session_secret, "confidential")
    )


@pytest.mark.parametrize("form", [bearer, lambda: basic("oidc", signed(RSA, claims()))])
def test_an_id_token_is_authenticated_with_one_request_and_asks_its_issuer_once(
    functions: Functions, issuer: Published, form: Callable[[], str]
) -> None:
    granted_by = record()
    functions.trust(granted_by)
    header = form()
    first, again = (functions.sent("authorizer", lambda: functions.authorize(header)) for _ in range(2))
    assert first == again
    answer, sent = first
    assert sent == ["GET"]
    ends, expires = (int(answer["context"][name]) for name in ("ends", "expires"))
    assert expires == ends - verify.LEEWAY
    assert 0 < ends - time.time() - verify.LEEWAY <= 300
    assert len(issuer.asked) == 2
    assert answer == accepted(
        principal=PRINCIPAL,
        role="writer",
        scope='["network/*"]',
        source="oidc",
        trust="network",
        trust_id=granted_by.id,
        subject=f"{ISSUER}#{SUBJECT}",
        ends=str(ends),
        expires=str(expires),
        access_log=f"oidc:{ISSUER}%23{SUBJECT}",
    )


@pytest.mark.usefixtures("issuer")
@pytest.mark.parametrize("length", [0, 1, 500])
def test_a_subject_forges_no_field_of_the_gateways_access_log(functions: Functions, length: int) -> None:
    functions.trust(record())
    subject = "a" * length + 'repo:acme/network:ref:refs/heads/x","ip":"192.0.2.1","status":"200\\'
    context = functions.authorize(bearer(sub=subject))["context"]
    line = f'{{"ip": "198.51.100.7", "principal": "{context["access_log"]}"}}'  # as the gateway fills it in
    assert json.loads(line)["ip"] == "198.51.100.7"
    assert unquote(json.loads(line)["principal"]) == context["principal"]


# --- who is not -----------------------------------------------------------------------------------


def _other_secret(functions: Functions) -> str:
    token, _ = stored_token(functions)
    _, other = stored_token(functions)
    return basic(token.id, other)


def _expired_token(functions: Functions) -> str:
    now = datetime.now(UTC) - timedelta(days=2)
    token, secret = stored_token(functions, now=now, expires=now + timedelta(days=1))
    return basic(token.id, secret)


def _revoked_token(functions: Functions) -> str:
    token, secret = stored_token(functions)
    ended = tokens.revoke(token, revoked_by="test", now=datetime.now(UTC))
    functions.put(token.key, ended.to_json())
    return basic(token.id, secret)


def _session(functions: Functions, *, kept: bool = True, wrong: str = "", **more: Any) -> str:
    granted_by = deployers()
    functions.trust(granted_by if kept else deployers())
    session, secret = stored_session(functions, granted_by, **more)
    return basic(session.id, secret + wrong)


def _session_without_records(functions: Functions) -> str:
    session, secret = stored_session(functions, deployers())
    return basic(session.id, secret)


def _jwt(functions: Functions, jwt: str) -> str:
    functions.trust(record())
    return f"Bearer {jwt}"


def _id_token(functions: Functions, **changed: Any) -> str:
    return _jwt(functions, signed(RSA, claims(**changed)))


def _token_with_long_scope(functions: Functions) -> str:
    token, secret = stored_token(functions)
    long = (Grant(Role.READER, ("x" * 200,) * 21),)
    functions.put(token.key, replace(token, grants=long).to_json())
    return basic(token.id, secret)


def _token_from_somewhere(functions: Functions) -> str:
    token, secret = stored_token(functions, networks=["127.0.0.0/8"])
    return basic(token.id, secret)


def _record_of_tomorrow(functions: Functions) -> str:
    functions.trust(record())
    stored = json.loads(functions.get(trust.KEY))
    stored["records"][0]["role"] = "king"
    functions.put(trust.KEY, json.dumps({**stored, "schema": 7}).encode())
    return bearer()


ATTEMPTS: dict[str, tuple[Callable[[Functions], str], str, int]] = {
    "the secret of another token": (_other_secret, "unknown_or_wrong", 1),
    "an unknown token": (lambda _: basic("z" * 20, "holdfast_x"), "unknown_or_wrong", 1),
    "an expired token": (_expired_token, "expired", 1),
    "a revoked token": (_revoked_token, "revoked", 1),
    "a wrong secret of a session": (lambda each: _session(each, wrong="x"), "unknown_or_wrong", 2),
    "an unknown session": (lambda _: basic("session-" + "z" * 20, "x"), "unknown_or_wrong", 2),
    "a wrong secret as a bearer": (lambda each: bearer_form(_other_secret(each)), "unknown_or_wrong", 1),
    "an expired session": (
        *(lambda each: _session(each, now=datetime.now(UTC) - timedelta(hours=1)), "expired", 2),
    ),
    "a session whose trust record is new": (lambda each: _session(each, kept=False), "trust_removed", 2),
    "a session without any trust record": (_session_without_records, "trust_removed", 2),
    "an ID token without any trust record": (lambda _: bearer(), "unknown_issuer", 1),
    "an ID token of another repository": (lambda each: _id_token(each, repository="x"), "not_trusted", 1),
    "an ID token for somebody else": (lambda each: _id_token(each, aud="x"), "wrong_audience", 1),
    "an expired ID token": (lambda each: _id_token(each, exp=1), "expired", 1),
    "an ID token that is not yet valid": (lambda each: _id_token(each, nbf=2**33), "not_yet_valid", 1),
    "an unsigned ID token": (lambda each: _jwt(each, raw({"alg": "none"}, claims())), "wrong_algorithm", 1),
    "an ID token under nobody's key": (
        lambda each: _jwt(each, signed(RSA, claims(), kid="x")),
        "unknown_key",
        1,
    ),
    "an ID token under another key": (
        lambda each: _jwt(each, signed(FOREIGN, claims())),
        "wrong_signature",
        1,
    ),
    "a token whose context would be too large": (_token_with_long_scope, "too_large", 1),
    "a token with networks in a team without": (_token_from_somewhere, "wrong_network", 1),
    "an ID token whose trust record is newer than the function": (
        *(_record_of_tomorrow, "trust_unreadable", 1),
    ),
    "no JWT": (lambda _: "Bearer x", "malformed", 0),
    "a key of the bucket": (lambda _: basic("../trust/records", "x"), "malformed", 0),
    "a user of another form": (lambda _: basic("x", "y"), "malformed", 0),
}
"""Invalid credentials, the reason in the log, and the requests to S3."""


@pytest.mark.parametrize(("credentials", "reason", "requests"), ATTEMPTS.values(), ids=ATTEMPTS)
@pytest.mark.usefixtures("issuer")
def test_every_denial_looks_the_same_and_its_reason_is_in_the_log(
    functions: Functions,
    log: list[str],
    credentials: Callable[[Functions], str],
    reason: str,
    requests: int,
) -> None:
    header = credentials(functions)
    sent = functions.sent("authorizer", lambda: functions.authorize(header))
    assert sent == (DENIED, ["GET"] * requests)
    line = counted(log, reason, "authorizer")
    assert (line["level"], line["s3_requests"]) == ("WARNING", requests)


def counted(log: list[str], reason: str, function: str) -> dict[str, Any]:
    """Return the last line of a log, which must be a refused sign-in, audited if its reason is to be."""
    line: dict[str, Any] = json.loads(log[-1])
    assert (line["message"], line["reason"]) == ("sign_in.refused", reason)
    events = received(delivery(log[-1], group=f"/holdfast/platform/{function}"))
    audited = [json.loads(event.message) for event in events]
    assert [(event["event"], event["reason"], event["function"]) for event in audited] == (
        [] if reason == "malformed" else [("sign_in.refused", reason, function)]
    )
    return line


def test_nothing_decides_but_the_key_of_the_gateways_cache(functions: Functions) -> None:
    token, secret = stored_token(functions)
    good, bad = basic(token.id, secret), basic(token.id, "wrong")
    for cached, beside in ((bad, good), (good, bad)):
        event = sign_in(cached)
        event["headers"] = {"authorization": beside, "Authorization": beside, "x-api-key": beside}
        event["cookies"] = [f"authorization={beside}"]
        event["queryStringParameters"] = {"authorization": beside}
        somebody = Authenticated(Caller("token:x", (Grant(Role.MAINTAINER, ("*",)),)), AuthMethod.TOKEN)
        event["requestContext"]["authorizer"] = {"lambda": authorizer_context.encode(somebody)}
        answer = functions.handlers["authorizer"](event, Context())
        assert answer == functions.authorize(cached)
        assert answer["isAuthorized"] is (cached == good)


# --- faults ---------------------------------------------------------------------------------------


def _any_token(functions: Functions) -> str:
    token, secret = stored_token(functions)
    return basic(token.id, secret)


@pytest.mark.parametrize(
    ("header", "below", "fault", "raised", "logged"),
    [
        (_any_token, "tokens/", Fault.DENIED, StorageRefused, "StorageRefused"),
        (_session, "sessions/", Fault.DENIED, StorageRefused, "StorageRefused"),
        (_session, trust.KEY, Fault.DENIED, StorageRefused, "StorageRefused"),
        (_id_token, trust.KEY, Fault.DENIED, StorageRefused, "StorageRefused"),
        (_any_token, "tokens/", Fault.SLOW_DOWN, OutcomeUnknown, "Undecided"),
    ],
)
@pytest.mark.usefixtures("issuer")
def test_a_fault_of_s3_is_raised_and_logged_by_the_name_that_scripts_read_and_is_not_a_denial(
    functions: Functions,
    log: list[str],
    header: Callable[[Functions], str],
    below: str,
    fault: Fault,
    raised: type[Exception],
    logged: str,
) -> None:
    sent = header(functions)
    (key,) = (key for key in functions.stored() if key.startswith(below))
    functions.server.proxy.fail("GET", key, fault, times=1 if fault is Fault.DENIED else 99)
    with pytest.raises(raised):
        functions.authorize(sent, Context(milliseconds=9_500))
    functions.server.proxy.end_rules()
    line = json.loads(log[-1])
    assert (line["message"], line["level"], line["error"]) == ("sign_in.failed", "ERROR", logged)
    assert functions.authorize(sent)["isAuthorized"]


def test_a_damaged_record_is_raised_and_is_not_a_denial(functions: Functions, log: list[str]) -> None:
    token, secret = stored_token(functions)
    functions.put(token.key, b"{}")
    with pytest.raises(ValueError, match="not a valid token record"):
        functions.authorize(basic(token.id, secret))
    assert json.loads(log[-1])["message"] == "sign_in.failed"


def test_a_token_has_all_its_grants_unless_they_are_too_large_which_is_a_denial_with_its_reason(
    functions: Functions, log: list[str]
) -> None:
    grants = (Grant(Role.WRITER, ("apps/*",)), Grant(Role.OUTPUTS, ("network/*",)))
    token, secret = stored_token(functions)
    functions.put(token.key, replace(token, grants=grants).to_json())
    accepted = functions.authorize(basic(token.id, secret))
    caller = authorizer_context.decode(accepted["context"])
    assert caller is not None
    assert caller.caller.grants == grants
    long = (*grants, Grant(Role.READER, ("x" * 200,) * 20))
    functions.put(token.key, replace(token, grants=long).to_json())
    assert functions.authorize(basic(token.id, secret)) == DENIED
    [first, last] = [json.loads(line) for line in log]
    assert (first["message"], first["role"]) == ("sign_in.accepted", "writer, outputs")
    assert (last["message"], last["reason"]) == ("sign_in.refused", "too_large")


@pytest.mark.usefixtures("issuer")
def test_one_trust_record_of_tomorrow_denies_its_own_callers_and_nobody_else(
    functions: Functions, log: list[str]
) -> None:
    strict = {"repository": "acme/network", "ref": "refs/heads/next"}
    tomorrow, developers = record("tomorrow", claims=strict), deployers()
    functions.trust(record(), tomorrow, developers)
    session, secret = stored_session(functions, tomorrow)
    other, other_secret = stored_session(functions, developers)
    stored = json.loads(functions.get(trust.KEY))
    stored["records"][1] = {**stored["records"][1], "role": "king"}
    functions.put(trust.KEY, json.dumps({**stored, "schema": 7}).encode())

    assert functions.authorize(bearer(ref="refs/heads/next")) == DENIED
    assert functions.authorize(basic(session.id, secret)) == DENIED
    lines = [json.loads(line) for line in log]
    assert [(line["message"], line["reason"]) for line in lines] == [
        ("sign_in.refused", "trust_unreadable")
    ] * 2
    assert functions.authorize(bearer(ref="refs/heads/main"))["isAuthorized"]
    assert functions.authorize(basic(other.id, other_secret))["isAuthorized"]
    answered(functions.make_session("/sessions/aws", aws(ARN)))


def test_an_issuer_that_is_not_reached_is_raised_and_harms_nobody_else(
    functions: Functions, issuer: Published, log: list[str]
) -> None:
    granted_by = record()
    functions.trust(granted_by)
    session, session_secret = stored_session(functions, granted_by)
    token, token_secret = stored_token(functions)
    issuer.documents.clear()
    with pytest.raises(IssuerUnreachable):
        functions.authorize(bearer())
    line = json.loads(log[-1])
    assert (line["message"], line["level"], line["error"]) == ("sign_in.failed", "ERROR", "IssuerUnreachable")
    for user, secret in ((token.id, token_secret), (session.id, session_secret)):
        assert functions.authorize(basic(user, secret))["isAuthorized"]
    issuer.publish(RSA)
    issuer.now += 5
    assert functions.authorize(bearer())["isAuthorized"]


# --- sessions for ID tokens -----------------------------------------------------------------------


def verified(functions: Functions, header: str) -> dict[str, Any]:
    """Return the context that API Gateway passes on after an authentication."""
    return {"lambda": functions.authorize(header)["context"]}


def answered(answer: Answer) -> dict[str, Any]:
    assert answer["statusCode"] == 200, answer
    assert answer["headers"]["Cache-Control"] == "no-store"
    document: dict[str, Any] = json.loads(answer["body"])
    return document


@pytest.mark.parametrize(("left", "seconds"), [(10.0, fetch.BUDGET), (4.0, 2.8)])
def test_an_issuer_gets_no_more_time_than_the_function_has_left(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, left: float, seconds: float
) -> None:
    given: list[float] = []

    def denied(_jwt: str, _records: Records, _issuers: keys.Issuers, for_issuer: float) -> Denied:
        given.append(for_issuer)
        return Denied(DenialReason.EXPIRED)

    monkeypatch.setattr(verify, "verify", denied)
    functions.authorize(bearer(), Context(round(left * 1000)))
    assert given == [pytest.approx(seconds, abs=0.5)]


@pytest.mark.usefixtures("issuer")
def test_an_id_token_becomes_a_session_with_one_request_more(functions: Functions) -> None:
    functions.trust(record())
    caller = verified(functions, bearer())
    answer, sent = functions.sent("session_exchange", lambda: functions.make_session("/sessions", caller))
    assert sent == ["PUT"]
    made = answered(answer)
    expires = datetime.fromisoformat(made.pop("expires"))
    assert timedelta(minutes=59) < expires - datetime.now(UTC) <= timedelta(hours=1)
    session_id, secret = made.pop("id"), made.pop("secret")
    assert made == {
        "principal": PRINCIPAL,
        "role": "writer",
        "scope": ["network/*"],
        "grants": [{"role": "writer", "scope": ["network/*"]}],
        "trust": "network",
        "seconds": 3600,
    }
    assert secret.encode() not in functions.get(f"sessions/{session_id}.json")
    signed_in = functions.authorize(basic(session_id, secret))["context"]
    assert (signed_in["principal"], signed_in["source"], signed_in["subject"]) == (
        PRINCIPAL,
        "session",
        f"{ISSUER}#{SUBJECT}",
    )


@pytest.mark.usefixtures("issuer")
def test_a_session_is_made_for_an_id_token_and_for_nothing_else(functions: Functions) -> None:
    granted_by = record()
    functions.trust(granted_by)
    session, session_secret = stored_session(functions, granted_by)
    token, secret = stored_token(functions, grants=[Grant(Role.MAINTAINER, ("*",))])
    before = functions.stored()
    for header, source in (
        (basic(token.id, secret), "token"),
        (basic(session.id, session_secret), "session"),
    ):
        answer = functions.make_session("/sessions", verified(functions, header))
        assert error(answer) == (403, "not_allowed")
        assert f"authenticated with a {source};" in answer["body"]
    whole = verified(functions, bearer())["lambda"]
    nobodies: list[object] = [None, {}, {"lambda": None}, {"lambda": {}}, {"iam": {"userArn": ARN}}]
    for nobody in nobodies:
        assert error(functions.make_session("/sessions", nobody)) == (401, "not_authenticated")
    lost: dict[str, Any] = {"headers": {"content-length": "100"}}
    for more in ({"body": '{"seconds": 43201}'}, {"body": '{"role": "maintainer"}'}, lost):
        refused = functions.make_session("/sessions", {"lambda": whole}, **more)
        assert error(refused) == (400, "invalid_body")
    ended = {"lambda": {**whole, "ends": str(int(datetime.now(UTC).timestamp()))}}
    assert error(functions.make_session("/sessions", ended)) == (403, "not_allowed")
    assert functions.stored() == before


# --- sessions for AWS credentials -----------------------------------------------------------------


def aws(arn: object) -> dict[str, Any]:
    return {"iam": {"userArn": arn, "accountId": ACCOUNT}}


def aws_of(account: str, role: str) -> dict[str, Any]:
    return aws(f"arn:aws:sts::{account}:assumed-role/{role}/ada")


ENDED = Authenticated(
    Caller(PRINCIPAL, (Grant(Role.WRITER, ("*",)),)),
    AuthMethod.OIDC,
    trust="network",
    trust_id="t" * 20,
    ends=1,
)
EXCHANGES = {
    "without a signature": ("/sessions/aws", {}, "not_signed", "not_signed"),
    "by another account": ("/sessions/aws", aws_of("1" * 12, "Deployer"), "not_allowed", "not_trusted"),
    "by a role without a record": ("/sessions/aws", aws_of(ACCOUNT, "x"), "not_allowed", "not_trusted"),
    "by an ID token that has expired since": (
        *("/sessions", {"lambda": authorizer_context.encode(ENDED)}, "not_allowed", "expired"),
    ),
}
"""Refused requests for a session: the route, API Gateway's facts, the response's code, and the reason."""


@pytest.mark.parametrize(("route", "authorizer", "code", "reason"), EXCHANGES.values(), ids=EXCHANGES)
def test_a_refused_exchange_is_counted_with_the_other_refused_sign_ins(
    functions: Functions, log: list[str], route: str, authorizer: object, code: str, reason: str
) -> None:
    assert error(functions.make_session(route, authorizer)) == (403, code)
    line = counted(log, reason, "sessions")
    assert (line["level"], line["error"], line["status"]) == ("WARNING", code, 403)


def test_every_reason_of_a_denial_is_tried() -> None:
    tried = [reason for _, reason, _ in ATTEMPTS.values()] + [reason for *_, reason in EXCHANGES.values()]
    assert set(tried) == set(DenialReason)


def test_aws_credentials_become_a_session_with_two_requests(functions: Functions, log: list[str]) -> None:
    functions.trust(record(), deployers())
    answer, sent = functions.sent(
        "session_exchange", lambda: functions.make_session("/sessions/aws", aws(ARN))
    )
    assert sent == ["GET", "PUT"]
    made = answered(answer)
    assert (made["principal"], made["role"], made["scope"], made["trust"]) == (
        ARN,
        "reader",
        ["dns"],
        "deployers",
    )
    signed_in = functions.authorize(basic(made["id"], made["secret"]))["context"]
    assert (signed_in["principal"], signed_in["subject"], signed_in["role"]) == (ARN, ARN, "reader")
    line = json.loads(log[0])
    assert (line["message"], line["trail"], line["status"]) == ("session.created", "holdfast.audit", 200)
    assert (line["session"], line["principal"], line["subject"]) == (made["id"], ARN, ARN)
    assert (line["source"], line["role"], line["trust"]) == ("aws", "reader", "deployers")
    assert (line["source_ip"], line["s3_requests"]) == ("127.0.0.1", 2)
    assert made["secret"] not in "".join(log)


def test_every_request_to_s3_names_the_account_of_the_deployment(functions: Functions) -> None:
    functions.trust(deployers())
    with (
        noted(functions.s3("authorizer"), "x-amz-expected-bucket-owner") as by_one,
        noted(functions.s3("session_exchange"), "x-amz-expected-bucket-owner") as by_other,
    ):
        made = answered(functions.make_session("/sessions/aws", aws(ARN)))
        assert functions.authorize(basic(made["id"], made["secret"]))["isAuthorized"]
    assert [owner for _, owner in (*by_one, *by_other)] == [ACCOUNT] * 4


@pytest.mark.parametrize(
    "authorizer",
    [
        *(None, {}, {"iam": None}, {"iam": {}}, {"iam": []}, {"iam": ARN}, {"userArn": ARN}),
        *(aws(arn) for arn in (None, "", 7, [ARN], {"userArn": ARN})),
        {"lambda": {"userArn": ARN, "principal": ARN, "source": "oidc"}},
        {"jwt": {"claims": {"userArn": ARN}}},
    ],
)
def test_without_a_caller_whom_aws_has_verified_there_is_no_session_whatever_else_comes(
    functions: Functions, authorizer: object
) -> None:
    functions.trust(deployers())
    smuggled = {
        "authorization": "AWS4-HMAC-SHA256 Credential=x",
        "x-amz-user-arn": ARN,
        "userarn": ARN,
        "x-amzn-requestcontext": json.dumps({"authorizer": aws(ARN)}),
    }
    body = json.dumps({"seconds": 3600, "userArn": ARN})
    for more in ({}, {"headers": smuggled}, {"body": body}, {"lock_id": ARN}):
        answer = functions.make_session("/sessions/aws", authorizer, **more)
        assert error(answer) == (403, "not_signed")
    assert functions.stored() == [trust.KEY]


@pytest.mark.parametrize(
    "arn",
    [
        *(f"arn:aws:iam::{ACCOUNT}:{who}" for who in ("root", "user/Deployer", f"user/{ARN}")),
        *(f"arn:aws:sts::{ACCOUNT}:assumed-role/{who}" for who in ("Deployer", "Deployer/", "/ada")),
        *(f"arn:aws:sts::{account}:assumed-role/Deployer/ada" for account in (f"{ACCOUNT}0", FULLWIDTH)),
        *(f"arn:aws:sts::{ACCOUNT}:assumed-role/x/Deployer/ada", f" {ARN}", f"{ARN} ", f"x{ARN}"),
    ],
)
def test_who_has_no_role_of_the_account_gets_no_session_and_no_request_is_made(
    functions: Functions, log: list[str], arn: str
) -> None:
    functions.trust(deployers())
    answer, sent = functions.sent(
        "session_exchange", lambda: functions.make_session("/sessions/aws", aws(arn))
    )
    assert sent == []
    assert error(answer) == (403, "not_allowed")
    line = json.loads(log[-1])
    assert (line["message"], line["subject"], line["level"]) == ("sign_in.refused", arn, "WARNING")


def test_whoever_signed_a_request_stands_in_the_log_also_if_it_was_no_good(
    functions: Functions, log: list[str]
) -> None:
    functions.trust(deployers())
    functions.make_session("/sessions/aws", aws(ARN), body='{"seconds": 1}')
    functions.make_session("/sessions/aws", aws(ARN), method="PUT")
    functions.put(trust.KEY, b"damaged")
    functions.make_session("/sessions/aws", aws(ARN))
    lines = [json.loads(line) for line in log]
    assert [(line["message"], line["status"], line["subject"]) for line in lines] == [
        ("request.refused", 400, ARN),
        ("request.refused", 405, ARN),
        ("request.failed", 500, ARN),
    ]


@pytest.mark.parametrize("fault", [Fault.NEVER_ARRIVES, Fault.SLOW_DOWN, Fault.SERVER_ERROR, Fault.CONFLICT])
def test_a_session_that_was_not_stored_is_stored_again(functions: Functions, fault: Fault) -> None:
    functions.trust(deployers())
    functions.server.proxy.fail("PUT", ".json", fault)
    made = answered(functions.make_session("/sessions/aws", aws(ARN)))
    assert functions.authorize(basic(made["id"], made["secret"]))["isAuthorized"]


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.HALF_THE_HEADERS, Fault.SERVER_ERROR_AFTERWARDS])
def test_a_session_that_may_have_been_stored_is_no_session_and_the_client_asks_again(
    functions: Functions, fault: Fault
) -> None:
    functions.trust(deployers())
    functions.server.proxy.fail("PUT", ".json", fault)
    answer = functions.make_session("/sessions/aws", aws(ARN))
    assert error(answer) == (503, "undecided")
    assert answer["headers"]["Retry-After"] == "1"
    assert "secret" not in answer["body"]
    made = answered(functions.make_session("/sessions/aws", aws(ARN)))
    assert functions.authorize(basic(made["id"], made["secret"]))["isAuthorized"]


def test_what_s3_refuses_is_a_fault_of_the_deployment(functions: Functions, log: list[str]) -> None:
    functions.trust(deployers())
    functions.server.proxy.fail("PUT", ".json", Fault.DENIED)
    assert error(functions.make_session("/sessions/aws", aws(ARN))) == (500, "storage_refused")
    assert "AccessDenied" in json.loads(log[-1])["reason"]
    functions.put(trust.KEY, b"{}")
    assert error(functions.make_session("/sessions/aws", aws(ARN))) == (500, "fault")


# --- the log --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("issuer")
def test_the_log_says_who_signed_in_and_from_where_and_holds_no_secret(
    functions: Functions, log: list[str]
) -> None:
    granted_by = record()
    functions.trust(granted_by)
    token, token_secret = stored_token(functions)
    session, session_secret = stored_session(functions, granted_by)
    jwt = signed(RSA, claims(sub="s" * 500, confidential="confidential"))
    for header in (basic(token.id, token_secret), basic(session.id, session_secret), f"Bearer {jwt}"):
        assert functions.authorize(header)["isAuthorized"]
    functions.authorize(basic(token.id, "confidential"))
    functions.authorize(basic("confidential", "confidential"))
    lines = [json.loads(line) for line in log]
    assert [line["message"] for line in lines] == ["sign_in.accepted"] * 3 + ["sign_in.refused"] * 2
    assert all(line["request_id"] for line in lines)
    by_token, by_session, by_id_token, wrong, malformed = lines
    assert (by_token["token"], by_token["source"], by_token["trust"]) == (token.id, "token", "")
    assert (by_session["session"], by_session["source"], by_session["principal"]) == (
        session.id,
        "session",
        ARN,
    )
    assert (by_session["subject"], by_session["trust"], by_session["role"]) == (ARN, "network", "writer")
    assert (by_id_token["source"], by_id_token["role"]) == ("oidc", "writer")
    assert by_id_token["subject"] == f"{ISSUER}#{'s' * 500}"  # in full, unlike the principal
    assert wrong["token"] == token.id
    assert "token" not in malformed
    everything = "".join(log)
    for secret in (token_secret, session_secret, jwt, jwt.split(".")[2], "confidential"):
        assert secret not in everything
