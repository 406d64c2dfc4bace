"""The authorizer and the session exchange, from event to response."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from audit_trail.events import received
from gateway import authorizer_context
from holdfast.access import Caller, Grant, Role
from holdfast.errors import OutcomeUnknown, StorageRefused
from holdfast.identity import trust
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason, Denied
from holdfast.identity.oidc import fetch, keys, verify
from holdfast.identity.oidc.fetch import IssuerUnreachable
from holdfast.identity.sessions import Session
from holdfast.identity.tokens import Token
from holdfast.identity.trust import Records
from tests.contract.conftest import ACCOUNT, Answer, Bucket, Server, error, noted, started
from tests.support.events import Context, request, sign_in
from tests.support.id_tokens import ISSUER, RSA, SUBJECT, Published, aws_record, claims, record, signed
from tests.support.s3_fault_proxy import Fault
from tests.support.sign_ins import ATTEMPTS, SCOPE, Attempt, World, basic, bearer, malformed
from tests.unit.test_audit_events import delivery

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET = "holdfast-sign-in"
FULLWIDTH = "".join(chr(ord(digit) + 0xFEE0) for digit in ACCOUNT)
ARN = f"arn:aws:sts::{ACCOUNT}:assumed-role/Deployer/ada@corp.com"
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

    def world(self) -> World:
        return World(self.put, record(scope=[SCOPE]), deployers(scope=[SCOPE]), RSA)

    def s3(self, name: str) -> "S3Client":
        """The client of a function."""
        client: S3Client = self.handlers[name].__globals__["_function"].s3
        return client

    def sent(self, name: str, act: Callable[[], Answer]) -> tuple[Answer, list[str]]:
        """Return a response and the methods of the requests that a function sends to S3 for it."""
        with noted(self.s3(name), "host") as requests:
            answer = act()
        return answer, [method for method, _ in requests]


@pytest.fixture(scope="module")
def running(server: Server) -> Iterator[Functions]:
    with started(server, "authorizer", "session_exchange", HOLDFAST_BUCKET=BUCKET) as handlers:
        yield Functions(server, handlers)


@pytest.fixture
def functions(running: Functions) -> Iterator[Functions]:
    yield running
    Bucket(BUCKET, running.server).empty()


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Published:
    """The issuer's published documents, in a process that has never fetched them."""
    published = Published(RSA)
    monkeypatch.setattr(keys, "process_issuers", published.issuers)
    return published


def stored_token(functions: Functions, **changed: Any) -> tuple[Token, str]:
    return functions.world().token(**changed)


def stored_session(functions: Functions, granted_by: trust.Trust) -> tuple[Session, str]:
    return functions.world().session(granted_by)


def jwt_of(**changed: Any) -> str:
    return bearer(signed(RSA, claims(**changed)))


def deployers(**changed: Any) -> trust.AwsTrust:
    return aws_record(
        "deployers", **{"aws_role": "Deployer", "role": Role.READER, "scope": ["dns"], **changed}
    )


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
        principal=principal, role="writer", scope='["ci/*"]', source="token", access_log=principal
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


@pytest.mark.parametrize("form", [bearer, lambda jwt: basic("oidc", jwt)])
def test_an_id_token_is_authenticated_with_one_request_and_asks_its_issuer_once(
    functions: Functions, issuer: Published, form: Callable[[str], str]
) -> None:
    granted_by = record()
    functions.trust(granted_by)
    header = form(signed(RSA, claims()))
    first, again = (functions.sent("authorizer", lambda: functions.authorize(header)) for _ in range(2))
    assert first == again
    answer, sent = first
    assert sent == ["GET"]
    ends, expires = (int(answer["context"][name]) for name in ("ends", "expires"))
    assert expires == ends - verify.LEEWAY
    assert 0 < ends - time.time() - verify.LEEWAY <= 600
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
    context = functions.authorize(jwt_of(sub=subject))["context"]
    line = f'{{"ip": "198.51.100.7", "principal": "{context["access_log"]}"}}'  # as the gateway fills it in
    assert json.loads(line)["ip"] == "198.51.100.7"
    assert unquote(json.loads(line)["principal"]) == context["principal"]


# --- who is not -----------------------------------------------------------------------------------


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
@pytest.mark.usefixtures("issuer")
def test_every_denial_looks_the_same_and_its_reason_is_in_the_log(
    functions: Functions, log: list[str], attempt: Attempt
) -> None:
    world = functions.world()
    functions.trust(world.network, world.deployers)
    header = attempt.sent(world)
    answer, sent = functions.sent("authorizer", lambda: functions.authorize(header))
    assert sent == ["GET"] * attempt.requests
    if attempt.reason:
        assert answer == DENIED
        line = counted(log, attempt.reason, "authorizer")
        assert (line["level"], line["s3_requests"]) == ("WARNING", attempt.requests)
    else:
        assert answer["isAuthorized"]
        assert json.loads(log[-1])["message"] == "sign_in.accepted"
    secrets = [part for part in header.split(".")[1:] if part]  # of a bearer
    assert not any(secret in line for line in log for secret in secrets)


def test_what_holds_no_credentials_is_denied_without_a_request(functions: Functions, log: list[str]) -> None:
    for header in malformed(functions.world()):
        assert functions.sent("authorizer", lambda: functions.authorize(header)) == (DENIED, []), header  # noqa: B023 called at once
        assert "token" not in counted(log, "malformed", "authorizer")


@pytest.mark.usefixtures("issuer")
def test_without_a_trust_record_in_the_bucket_nobody_is_trusted(functions: Functions, log: list[str]) -> None:
    session, secret = stored_session(functions, deployers())
    for header, reason in ((basic(session.id, secret), "trust_removed"), (jwt_of(), "unknown_issuer")):
        assert functions.authorize(header) == DENIED
        counted(log, reason, "authorizer")


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


@pytest.mark.parametrize(
    ("header", "below", "fault", "raised", "logged"),
    [
        ("a token", "tokens/", Fault.DENIED, StorageRefused, "StorageRefused"),
        ("a session", "sessions/", Fault.DENIED, StorageRefused, "StorageRefused"),
        ("a session", trust.KEY, Fault.DENIED, StorageRefused, "StorageRefused"),
        ("an ID token", trust.KEY, Fault.DENIED, StorageRefused, "StorageRefused"),
        ("a token", "tokens/", Fault.SLOW_DOWN, OutcomeUnknown, "Undecided"),
    ],
)
@pytest.mark.usefixtures("issuer")
def test_a_fault_of_s3_is_raised_and_logged_by_the_name_that_scripts_read_and_is_not_a_denial(
    functions: Functions,
    log: list[str],
    header: str,
    below: str,
    fault: Fault,
    raised: type[Exception],
    logged: str,
) -> None:
    world = functions.world()
    functions.trust(world.network, world.deployers)
    sent = ATTEMPTS[header].sent(world)
    (key,) = (key for key in functions.stored() if key.startswith(below))
    functions.server.proxy.fail("GET", key, fault, times=1 if fault is Fault.DENIED else 99)
    with pytest.raises(raised):
        functions.authorize(sent, Context(milliseconds=9_500))
    functions.server.proxy.end_rules()
    line = json.loads(log[-1])
    assert (line["message"], line["level"], line["error"]) == ("sign_in.failed", "ERROR", logged)
    assert functions.authorize(sent)["isAuthorized"]


def test_a_token_has_all_its_grants(functions: Functions, log: list[str]) -> None:
    grants = (Grant(Role.WRITER, ("apps/*",)), Grant(Role.OUTPUTS, ("network/*",)))
    token, secret = stored_token(functions)
    functions.put(token.key, replace(token, grants=grants).to_json())
    accepted = functions.authorize(basic(token.id, secret))
    caller = authorizer_context.decode(accepted["context"])
    assert caller is not None
    assert caller.caller.grants == grants
    line = json.loads(log[-1])
    assert (line["message"], line["role"]) == ("sign_in.accepted", "writer, outputs")


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

    assert functions.authorize(jwt_of(ref="refs/heads/next")) == DENIED
    assert functions.authorize(basic(session.id, secret)) == DENIED
    lines = [json.loads(line) for line in log]
    assert [(line["message"], line["reason"]) for line in lines] == [
        ("sign_in.refused", "trust_unreadable")
    ] * 2
    assert functions.authorize(jwt_of(ref="refs/heads/main"))["isAuthorized"]
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
        functions.authorize(jwt_of())
    line = json.loads(log[-1])
    assert (line["message"], line["level"], line["error"]) == ("sign_in.failed", "ERROR", "IssuerUnreachable")
    for user, secret in ((token.id, token_secret), (session.id, session_secret)):
        assert functions.authorize(basic(user, secret))["isAuthorized"]
    issuer.publish(RSA)
    issuer.now += 5
    assert functions.authorize(jwt_of())["isAuthorized"]


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
    functions.authorize(jwt_of(), Context(round(left * 1000)))
    assert given == [pytest.approx(seconds, abs=0.5)]


@pytest.mark.usefixtures("issuer")
def test_an_id_token_becomes_a_session_with_one_request_more(functions: Functions) -> None:
    functions.trust(record())
    caller = verified(functions, jwt_of())
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
    functions.trust(record())
    before = functions.stored()
    for method in AuthMethod:
        if method is not AuthMethod.OIDC:
            other = authorizer_context.encode(replace(ENDED, method=method))
            answer = functions.make_session("/sessions", {"lambda": other})
            assert error(answer) == (403, "not_allowed")
            assert f"with these credentials ({method})" in answer["body"]
    whole = verified(functions, jwt_of())["lambda"]
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
    "without a signature": ("/sessions/aws", {}, "not_signed", "not_signed", "has no signature"),
    "by another account": (
        *("/sessions/aws", aws_of("1" * 12, "Deployer"), "not_allowed", "not_trusted"),
        "is not a session of an IAM role in the account",
    ),
    **{
        f"by the role {role}": (
            *("/sessions/aws", aws_of(ACCOUNT, role), "not_allowed", "not_trusted"),
            f"No trust record names the IAM role {role}",
        )
        for role in ("x", "deployer")
    },
    "by a role whose record is of tomorrow": (
        *("/sessions/aws", aws_of(ACCOUNT, "King"), "not_allowed", "trust_unreadable"),
        "cannot read the trust record 'king'",
    ),
    "by a role whose record has networks in a team without": (
        *("/sessions/aws", aws_of(ACCOUNT, "Near"), "not_allowed", "wrong_network"),
        "does not accept requests from the address 127.0.0.1",
    ),
    "by an ID token that has expired since": (
        *("/sessions", {"lambda": authorizer_context.encode(ENDED)}, "not_allowed", "expired"),
        "ID token has expired",
    ),
}
"""Refused requests: route, API Gateway's facts, the response's code, the reason, its message."""


@pytest.mark.parametrize(("route", "authorizer", "code", "reason", "says"), EXCHANGES.values(), ids=EXCHANGES)
def test_a_refused_exchange_is_counted_with_the_other_refused_sign_ins(
    functions: Functions, log: list[str], route: str, authorizer: object, code: str, reason: str, says: str
) -> None:
    near = aws_record("near", aws_role="Near", role=Role.READER, networks=("127.0.0.0/8",))
    records = Records((deployers(), near, aws_record("king", aws_role="King", role=Role.WRITER)))
    functions.put(trust.KEY, records.to_json().replace(b'"writer"', b'"king"'))
    answer = functions.make_session(route, authorizer)
    assert error(answer) == (403, code)
    assert says in answer["body"]
    line = counted(log, reason, "sessions")
    assert (line["level"], line["error"], line["status"]) == ("WARNING", code, 403)


def test_every_reason_of_a_denial_is_tried() -> None:
    tried = [attempt.reason for attempt in ATTEMPTS.values()] + [
        reason for *_, reason, _ in EXCHANGES.values()
    ]
    assert {*tried, ""} == {*DenialReason, ""}


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_aws_credentials_become_a_session_with_two_requests(
    functions: Functions, log: list[str], partition: str
) -> None:
    arn = ARN.replace("aws", partition, 1)
    functions.trust(record(), deployers())
    answer, sent = functions.sent(
        "session_exchange", lambda: functions.make_session("/sessions/aws", aws(arn))
    )
    assert sent == ["GET", "PUT"]
    made = answered(answer)
    assert (made["principal"], made["role"], made["scope"], made["trust"]) == (
        arn,
        "reader",
        ["dns"],
        "deployers",
    )
    signed_in = functions.authorize(basic(made["id"], made["secret"]))["context"]
    assert (signed_in["principal"], signed_in["subject"], signed_in["role"]) == (arn, arn, "reader")
    line = json.loads(log[0])
    assert (line["message"], line["trail"], line["status"]) == ("session.created", "holdfast.audit", 200)
    assert (line["session"], line["principal"], line["subject"]) == (made["id"], arn, arn)
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
        *(
            f"arn:aws:iam::{ACCOUNT}:{who}"
            for who in ("root", "user/Deployer", f"user/{ARN}", "role/Deployer")
        ),
        *("Deployer", f"arn:aws:sts::{ACCOUNT}:federated-user/Deployer", f"{ARN}/more", f"{ARN}\n"),
        *(f"arn:aws:sts::{ACCOUNT}:assumed-role/{who}" for who in ("Deployer", "Deployer/", "/ada")),
        *(
            f"arn:aws:sts::{account}:assumed-role/Deployer/ada"
            for account in (f"{ACCOUNT}0", ACCOUNT[:-1], "", FULLWIDTH)
        ),
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


@pytest.mark.two_servers
@pytest.mark.parametrize("fault", [Fault.NEVER_ARRIVES, Fault.SLOW_DOWN, Fault.SERVER_ERROR, Fault.CONFLICT])
def test_a_session_that_was_not_stored_is_stored_again(functions: Functions, fault: Fault) -> None:
    functions.trust(deployers())
    functions.server.proxy.fail("PUT", ".json", fault)
    made = answered(functions.make_session("/sessions/aws", aws(ARN)))
    assert functions.authorize(basic(made["id"], made["secret"]))["isAuthorized"]


@pytest.mark.two_servers
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
