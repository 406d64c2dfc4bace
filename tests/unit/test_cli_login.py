"""`holdfast login`, against a server on this machine that acts as the team's API."""

import base64
import hashlib
import hmac
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock
from urllib.parse import quote, urlsplit

import boto3
import pytest
from botocore.httpsession import DEFAULT_CA_BUNDLE, get_cert_path
from urllib3 import PoolManager

import holdfast
from holdfast_cli.api import http, sessions
from holdfast_cli.api.response import Response
from local_aws.server import Certificates
from tests.support import api_stub, forked_command
from tests.support.api_stub import ApiStub, Asked, Reply, made, refused, session
from tests.support.cli_account import HOLDFAST, REGION, Aws, unread
from tests.support.free_port import free_port

SECRET_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
AWS = {
    "AWS_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_SESSION_TOKEN": "the/session+token==",
}
GITHUB_TOKEN = "github-runner-token"


def jwt(**claims: object) -> str:
    """Something with the form of an ID token."""
    document = {"iss": "https://issuer.example.com", "aud": "holdfast", "sub": "repo:acme/network"} | claims
    parts = [b'{"alg":"RS256"}', json.dumps(document).encode(), b"signature"]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


@pytest.fixture
def stub(stub: ApiStub) -> ApiStub:
    stub.reply(made(session()))
    return stub


def login(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"}
    return forked_command.run(["login", *arguments], own | environment, timeout=60)


def shell(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script of a shell, in which $0 is the command, with AWS credentials."""
    variables = {"PATH": os.environ["PATH"], **AWS, **environment}
    line = ["sh", "-euc", script, str(HOLDFAST)]
    return subprocess.run(line, env=variables, capture_output=True, text=True, check=False, timeout=60)


def failure(*arguments: str, **environment: str) -> str:
    """Sign in, which must fail, and return its one line; a shell gets nothing to evaluate."""
    return failure_with(1, *arguments, **environment)


def failure_with(code: int, *arguments: str, **environment: str) -> str:
    """Sign in, which must fail with an exit code, and return its one line."""
    done = login(*arguments, **environment)
    assert (done.returncode, done.stdout) == (code, "")
    [line] = done.stderr.splitlines()
    return line


def with_aws(stub: ApiStub, *arguments: str) -> subprocess.CompletedProcess[str]:
    return login("--address", stub.address, *arguments, **AWS)


def exports(got: Mapping[str, object], address: str) -> str:
    return (
        f"export TF_HTTP_USERNAME={got['id']}\nexport TF_HTTP_PASSWORD={got['secret']}\n"
        f"export HOLDFAST_ADDRESS={address}\nexport TF_TOKEN_holdfast_local={got['id']}.{got['secret']}\n"
    )


# --- with AWS credentials ------------------------------------------------------------------------


def test_a_shell_that_evaluates_it_has_the_session_and_the_person_sees_who_they_are(stub: ApiStub) -> None:
    got = session()
    stub.reply(made(got))

    done = shell(
        'eval "$("$0" login)"; printf "%s\\n" $TF_HTTP_USERNAME $TF_HTTP_PASSWORD $TF_TOKEN_holdfast_local',
        HOLDFAST_ADDRESS=stub.address,
    )

    assert done.stdout.splitlines() == [got["id"], got["secret"], f"{got['id']}.{got['secret']}"]
    assert done.stderr == (
        f"Signed in at {stub.address} as arn:aws:sts::123456789012:assumed-role/Developer/ada: writer of "
        "app/*, shared, until 2099-11-21 16:44:05 UTC.\n"
    )


def test_json_is_one_object_with_what_the_api_said_and_its_address(stub: ApiStub) -> None:
    got = session()
    stub.reply(made(got | {"more": "of a later version"}))

    done = with_aws(stub, "--json")

    assert (done.returncode, done.stderr) == (0, "")
    cloud = {
        "hostname": "holdfast.local",
        "variable": "TF_TOKEN_holdfast_local",
        "token": f"{got['id']}.{got['secret']}",
    }
    grants = [{"role": got["role"], "scope": got["scope"]}]
    assert json.loads(done.stdout) == got | {"address": stub.address, "cloud": cloud, "grants": grants}


def test_a_session_with_several_grants_says_each(stub: ApiStub) -> None:
    grants = [{"role": "writer", "scope": ["app/*"]}, {"role": "outputs", "scope": ["network/*", "dns"]}]
    stub.reply(made(session(role=None, scope=None, grants=grants)))

    assert ": writer of app/*; outputs of network/*, dns, until" in with_aws(stub).stderr
    document = json.loads(with_aws(stub, "--json").stdout)
    assert (document["role"], document["scope"], document["grants"]) == (None, None, grants)


def assert_signed(asked: Asked, stub: ApiStub) -> None:
    """Compute what AWS does (https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html)."""
    authorization = asked.headers["authorization"]
    fields = dict(part.split("=", 1) for part in authorization.partition(" ")[2].split(", "))
    names = fields["SignedHeaders"].split(";")
    canonical = [
        asked.method,
        quote(asked.path, safe="/~"),
        "",
        *(f"{name}:{asked.headers[name]}" for name in names),
        "",
        fields["SignedHeaders"],
        hashlib.sha256(asked.body).hexdigest(),
    ]
    assert asked.headers["host"] == urlsplit(stub.address).netloc
    date = asked.headers["x-amz-date"]
    scope = f"{date[:8]}/{REGION}/execute-api/aws4_request"
    assert fields["Credential"] == f"AKIDEXAMPLE/{scope}"
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    key = f"AWS4{SECRET_KEY}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    wanted = hmac.new(key, f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}".encode(), "sha256")
    assert fields["Signature"] == wanted.hexdigest()


@pytest.mark.parametrize(
    ("below", "arguments"), [("", []), ("", ["--duration", "8h"]), ("/_aws/execute-api/abc/$default", [])]
)
def test_the_request_is_signed_for_the_api_and_holds_nothing_else(
    stub: ApiStub, below: str, arguments: list[str]
) -> None:
    login("--address", f"{stub.address}{below}/", *arguments, **AWS)

    [asked] = stub.asked
    assert (asked.method, asked.path) == ("POST", f"{below}/sessions/aws")
    assert asked.body == (b'{"seconds": 28800}' if arguments else b"")
    assert_signed(asked, stub)
    signed_at = datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - signed_at) < timedelta(minutes=1)
    assert asked.headers["x-amz-security-token"] == AWS["AWS_SESSION_TOKEN"]
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(
        asked.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    )
    assert asked.headers.keys() - {"content-type"} == {
        *("host", "x-amz-date", "x-amz-security-token", "authorization"),
        *("content-length", "user-agent", "accept-encoding"),
    }
    assert ("content-type" in asked.headers) == bool(arguments)


def test_the_region_of_an_address_goes_before_that_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    signed: list[str] = []

    def send(method: str, url: str, *, headers: Mapping[str, str], body: bytes, sign: http.Sign) -> Response:
        signed.append(sign(method, url, headers, body)["Authorization"])
        return Response(200, json.dumps(session()).encode())

    monkeypatch.setattr(http, "send", send)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    for address, of_shell in (
        ("https://abc123.execute-api.eu-west-3.amazonaws.com", "us-east-1"),
        ("https://abc123.execute-api.cn-north-1.amazonaws.com.cn", None),
        ("https://states.example.com", "us-east-1"),
        ("https://abc123.execute-api.eu-west-3.amazonaws.com.example.com", "us-east-1"),
        ("http://127.0.0.1:4566/_aws/execute-api/abc123/$default", "eu-west-3"),
        ("http://localhost:4566/_aws/execute-api/abc123/$default", None),  # the local AWS needs none
    ):
        shell = boto3.Session(aws_access_key_id="AKID", aws_secret_access_key="x", region_name=of_shell)
        sessions.for_aws(shell, address, None)

    regions = [line.split("/")[2] for line in signed]
    assert regions == ["eu-west-3", "cn-north-1", "us-east-1", "us-east-1", "eu-west-3", "us-east-1"]


def test_the_address_of_an_api_elsewhere_takes_a_region_and_tls() -> None:
    without_region = {name: value for name, value in AWS.items() if name != "AWS_REGION"}
    assert "AWS_REGION" in failure_with(2, "--address", "https://states.example.com", **without_region)

    for arguments in ([], ["--oidc"]):
        done = login("--address", "http://192.0.2.1", *arguments, **AWS, HOLDFAST_ID_TOKEN=jwt())
        assert (done.returncode, done.stdout) == (2, "")  # as of commands that ask the management API
        assert "https:// only" in done.stderr


OLDER = ("0.0.9+abc", "The deployed version, 0.0.9+abc, is older than this command")
NEWER = ("999.0.0+abc", "This command, {}, is older than the deployed version, 999.0.0+abc. Upgrade the")


@pytest.mark.parametrize(
    ("reply", "version", "told"),
    [
        (Reply(404, b'{"message":"Not Found"}'), *OLDER),
        (Reply(403, b'{"message":"Forbidden"}'), *NEWER),
        (refused(400, "unknown_route", "The path does not exist."), *NEWER),
        (made({"session": session()}), *NEWER),
        (refused(400, "invalid_body", "No."), holdfast.__version__, "No."),
        (refused(400, "invalid_body", "No."), "\x1b[2J", "No. The deployed functions have version ?[2J"),
    ],
)
def test_a_response_of_another_version_is_one_line_that_says_which_is_older(
    stub: ApiStub, reply: Reply, version: str, told: str
) -> None:
    stub.reply(reply, Reply(200, json.dumps({"status": "ok", "version": version}).encode()))

    line = failure("--address", stub.address, **AWS)

    assert told.format(holdfast.__version__) in line
    assert [(asked.method, asked.path) for asked in stub.asked[1:]] == [("GET", "/health")]
    assert not stub.asked[1].headers.keys() & {"authorization", "x-amz-security-token"}


@pytest.mark.parametrize(
    "passing",
    [Reply(500), Reply(503, b"{}"), Reply(429), Reply(lost=True), refused(503, "undecided", "again")],
)
def test_a_passing_fault_is_repeated_and_signed_anew(stub: ApiStub, passing: Reply) -> None:
    got = session()
    stub.reply(passing, passing, made(got))

    done = with_aws(stub)

    assert (done.returncode, done.stdout) == (0, exports(got, stub.address))
    assert len(stub.asked) == 3
    for asked in stub.asked:
        assert_signed(asked, stub)


def test_an_api_that_never_answers_is_one_line_that_names_it(stub: ApiStub) -> None:
    stub.reply(Reply(lost=True))
    nobody = f"http://127.0.0.1:{free_port()}"

    for address, said in (
        (stub.address, "The connection to {} ended before"),
        (nobody, "{} does not respond"),
    ):
        line = failure("--address", address, **AWS)
        assert said.format(urlsplit(address).netloc) in line


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(stub: ApiStub, status: int) -> None:
    with api_stub.running() as elsewhere:
        elsewhere.reply(made(session()))
        stub.reply(Reply(status, headers={"Location": f"{elsewhere.address}/sessions/aws"}))

        line = failure("--address", stub.address, **AWS)

        assert elsewhere.asked == []
    assert str(status) in line
    assert "does not follow redirects" in line


def test_control_characters_of_an_answer_do_not_reach_the_terminal(stub: ApiStub) -> None:
    stub.reply(made(session(principal="\x1b[2Jme\nyou")))

    done = with_aws(stub)

    assert done.stderr.startswith(f"Signed in at {stub.address} as ?[2Jme?you: writer")
    assert len(done.stdout.splitlines()) == 4


# --- how the API is found and reached ------------------------------------------------------------


def test_a_certificate_is_checked_against_the_bundle_of_the_environment(certificates: Certificates) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.cert, certificates.key)
    with api_stub.running(tls) as stub:
        stub.reply(made(session()))

        untrusted = failure("--address", stub.address, **AWS)
        missing = failure("--address", stub.address, **AWS, AWS_CA_BUNDLE="/nonexistent.pem")
        assert stub.asked == []
        trusted = login("--address", stub.address, **AWS, AWS_CA_BUNDLE=str(certificates.ca))

    assert "AWS_CA_BUNDLE" in untrusted
    assert "AWS_CA_BUNDLE" in missing
    assert (trusted.returncode, len(trusted.stdout.splitlines())) == (0, 4)


def test_a_certificate_is_else_checked_against_the_bundle_of_the_aws_sdk(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = mock.Mock(side_effect=PoolManager)
    monkeypatch.setattr("urllib3.PoolManager", pools)

    def bundle() -> str:
        stub.reply(made(session()))
        http.send("GET", stub.address, headers={})
        return str(pools.call_args.kwargs["ca_certs"])

    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    assert bundle() == get_cert_path(True)
    monkeypatch.setitem(sys.modules, "certifi", None)
    assert bundle() == DEFAULT_CA_BUNDLE
    monkeypatch.setenv("AWS_CA_BUNDLE", "/etc/ssl/own.pem")
    assert bundle() == "/etc/ssl/own.pem"


def test_a_proxy_of_the_environment_gets_the_request_with_its_credentials(stub: ApiStub) -> None:
    got = session()
    stub.reply(made(got))
    nobody = f"http://127.0.0.1:{free_port()}"
    proxy = stub.address.replace("http://", "http://ada:p%40ss@")

    done = login("--address", nobody, **AWS, HTTP_PROXY=proxy)

    assert (done.returncode, done.stdout) == (0, exports(got, nobody))
    [asked] = stub.asked
    assert asked.path == f"{nobody}/sessions/aws"
    assert asked.headers["host"] == urlsplit(nobody).netloc
    assert asked.headers["proxy-authorization"] == f"Basic {base64.b64encode(b'ada:p@ss').decode()}"


def test_a_proxy_is_left_out_for_the_hosts_of_no_proxy(stub: ApiStub) -> None:
    with api_stub.running() as proxy:
        proxy.reply(made(session()))
        for no_proxy in ("127.0.0.1", urlsplit(stub.address).netloc, "*"):
            environment = AWS | {"HTTP_PROXY": proxy.address, "NO_PROXY": no_proxy}
            assert login("--address", stub.address, **environment).returncode == 0

        assert proxy.asked == []
    assert len(stub.asked) == 3


def test_the_api_of_a_team_is_that_of_its_stack(stub: ApiStub, account: Aws) -> None:
    account.deploy("platform", ApiAddress=stub.address, BucketName={"Ref": "Bucket"})

    account.output("login", "--team", "platform", "--json", HOLDFAST_ADDRESS="https://api.example.com")

    assert len(stub.asked) == 1


@pytest.mark.parametrize("arguments", ["--duration 1", "--address http://127.0.0.1:1", "--nonsense"])
def test_a_failure_with_standard_error_closed_leaves_a_shell_nothing_to_evaluate(arguments: str) -> None:
    done = shell(f'"$0" login {arguments} 2>&-')

    assert done.stdout == ""
    assert done.returncode in (1, 2)


def test_a_sign_in_with_standard_error_closed_leaves_a_shell_the_exports(stub: ApiStub) -> None:
    got = session()
    stub.reply(made(got))

    done = shell(f'"$0" login --address "{stub.address}" 2>&-')

    assert (done.returncode, done.stdout) == (0, exports(got, stub.address))


def test_a_session_that_could_not_be_shown_is_said_to_be_lost_and_when_it_ends(stub: ApiStub) -> None:
    code, [line] = unread({"PATH": os.environ["PATH"]} | AWS, "login", "--address", stub.address)

    assert code == 1
    assert "its secret is lost; the session expires 2099-11-21 16:44:05 UTC" in line
    assert "holdfast_" not in line


# --- with an ID token ----------------------------------------------------------------------------


def test_an_id_token_of_the_environment_is_exchanged_without_any_aws_setting(stub: ApiStub) -> None:
    got, token = session(), jwt()
    stub.reply(made(got))

    done = login("--oidc", "--address", stub.address, "--duration", "2h", HOLDFAST_ID_TOKEN=f" {token}\n")

    assert (done.returncode, done.stdout) == (0, exports(got, stub.address))
    [asked] = stub.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/sessions", b'{"seconds": 7200}')
    assert asked.headers["authorization"] == f"Bearer {token}"
    assert asked.headers.keys() == {
        *("host", "authorization", "content-type", "content-length", "user-agent", "accept-encoding")
    }


def test_a_file_goes_before_the_environment(stub: ApiStub, tmp_path: Path) -> None:
    file = tmp_path / "id-token"
    file.write_text(f"{jwt(sub='of the file')}\n")

    arguments = ("--oidc", "--address", stub.address, "--id-token-file", str(file))
    login(*arguments, **AWS, HOLDFAST_ID_TOKEN=jwt())

    [asked] = stub.asked
    assert asked.headers["authorization"] == f"Bearer {jwt(sub='of the file')}"
    assert "x-amz-security-token" not in asked.headers


def github_actions(address: str) -> dict[str, str]:
    """Return the variables of a job that may have an ID token."""
    return {
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{address}/token?api-version=2.0",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": GITHUB_TOKEN,
    }


@pytest.mark.parametrize(("arguments", "audience"), [([], None), (["--audience", "a b&c"], "a%20b%26c")])
def test_in_github_actions_the_token_is_asked_of_github_for_the_api(
    stub: ApiStub, arguments: list[str], audience: str | None
) -> None:
    token = jwt()
    with api_stub.running() as github:
        github.reply(Reply(200, json.dumps({"count": 1, "value": token}).encode()))
        environment = github_actions(github.address)
        done = login("--oidc", "--address", stub.address, *arguments, **environment)

    assert done.returncode == 0
    [asked] = github.asked
    assert asked.method == "GET"
    assert asked.path == f"/token?api-version=2.0&audience={audience or quote(stub.address, safe='')}"
    assert asked.headers["authorization"] == f"Bearer {GITHUB_TOKEN}"
    assert stub.asked[0].headers["authorization"] == f"Bearer {token}"
    assert token not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(403, b"{}"), "id-token: write"),
        (Reply(200, b"<html>"), "does not have a valid ID token"),
        (Reply(200, b'{"value": 7}'), "does not have a valid ID token"),
        (Reply(200, b'{"value": "a.b"}'), "does not have a valid ID token"),
        (Reply(302, headers={"Location": "http://127.0.0.1:1/"}), "does not follow redirects"),
    ],
)
def test_what_github_answers_wrongly_is_one_line(stub: ApiStub, reply: Reply, reason: str) -> None:
    with api_stub.running() as github:
        github.reply(reply)
        line = failure("--oidc", "--address", stub.address, **github_actions(github.address))

    assert reason in line
    assert GITHUB_TOKEN not in line
    assert stub.asked == []


@pytest.mark.parametrize("content", [b"", b"two.parts", b"a.b.c\nd.e.f", b"\xff\xfe", b"x" * 20_000, None])
def test_a_file_without_an_id_token_is_one_line_that_names_it(
    stub: ApiStub, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "id-token"
    if content is not None:
        file.write_bytes(content)

    line = failure("--oidc", "--address", stub.address, "--id-token-file", str(file))

    assert str(file) in line
    assert stub.asked == []


# --- what keeps from signing in -------------------------------------------------------------------

GOOD = session()
FORBIDDEN = b'{"message":"Forbidden"}'
STEERING = (
    "No trust record names the IAM role \x1b[31mDeveloper\n. Ask an operator to create one with `holdfast "
    "trust create`."
)
SECRETS = (SECRET_KEY, "s3cret", str(GOOD["secret"]))
SAYS = "issuer https://issuer.example.com, audience other, ?[31m, subject repo:acme/network"


@dataclass(frozen=True)
class Failure:
    """A failure to sign in: the API's response, or variables of the shell, where None removes one.

    `requests` is how often the API is asked. `oidc` signs in with the ID token of the shell. `code` is the
    exit code.
    """

    says: tuple[str, ...]
    reply: Reply = field(default_factory=Reply)
    changed: Mapping[str, str | None] = field(default_factory=dict)
    requests: int = 1
    oidc: bool = False
    code: int = 1


def is_no_session(reply: Reply) -> Failure:
    return Failure(("Check the address",), reply, requests=2)


def without_a_request(says: str, **changed: str | None) -> Failure:
    return Failure((says,), changed=changed, requests=0)


def of_id_token(status: int, token: str, *says: str, requests: int = 1) -> Failure:
    reply = Reply(status, FORBIDDEN)
    return Failure(says, reply, {"HOLDFAST_ID_TOKEN": token}, requests=requests, oidc=True)


FAILURES = (
    Failure(
        ("names the IAM role ?[31mDeveloper?. Ask an operator to create one",),
        refused(403, "not_allowed", STEERING),
    ),
    *(
        Failure(("execute-api:Invoke", REGION), Reply(403, body), requests=2)
        for body in (FORBIDDEN, b"", b"<html>")
    ),
    Failure(("404", "deploy"), Reply(404, b'{"message":"Not Found"}'), requests=2),
    Failure(("AWS_ACCESS_KEY_ID", "`aws sso login`"), refused(403, "not_signed", "Use `holdfast login`.")),
    Failure(("503", "S3 did not say."), refused(503, "undecided", "S3 did not say."), requests=3),
    replace(without_a_request("No AWS credentials", **dict.fromkeys(AWS), AWS_DEFAULT_REGION=REGION), code=2),
    without_a_request("HTTP_PROXY", HTTP_PROXY="http://[::1"),
    without_a_request("does not respond", HTTP_PROXY="ftp://127.0.0.1"),
    without_a_request("HTTP_PROXY", HTTP_PROXY="http://a:s3cret@c:d"),
    *(
        without_a_request("an HTTP header cannot have line ends", AWS_SESSION_TOKEN=f"s3cret{end}")
        for end in ("\r", "\u2028")
    ),
    *(
        is_no_session(Reply(200, body))
        for body in (b"", b"<html>$(touch /tmp/no)</html>", b"[]", b"{}", json.dumps(GOOD).encode()[:40])
    ),
    Failure(("Check the address",), Reply(200, json.dumps(GOOD).encode(), cut=40), requests=3),
    is_no_session(Reply(204)),
    *(
        is_no_session(made(GOOD | changed))
        for changed in (
            *({"id": "session-$(touch no)"}, {"id": f"{GOOD['id']}\n"}, {"secret": "x'; touch no; '"}),
            *({"secret": f"{GOOD['secret'][:-1]}"}, {"secret": None}, {"scope": "app/*"}),
            *({"expires": "soon"}, {"expires": "2099-11-21T16:44:05"}, {"seconds": True}),
        )
    ),
    is_no_session(made({name: value for name, value in GOOD.items() if name != "principal"})),
    *(
        of_id_token(status, jwt(aud=["other", "\x1b[31m"]), SAYS, "holdfast trust list")
        for status in (401, 403)
    ),
    of_id_token(
        *(
            500,
            jwt(),
            "perhaps because the API cannot reach the ID token's issuer",
            "https://issuer.example.com",
        ),
        requests=3,
    ),
    *(of_id_token(403, token, "cannot be read") for token in ("a.b.c", "a.W10.c", "a.bbbbb.c")),
    Failure(
        ("ACTIONS_ID_TOKEN_REQUEST_URL is not an https:// address",),
        *(Reply(), github_actions("http://192.0.2.1"), 0, True),
    ),
    Failure(("--id-token-file", "HOLDFAST_ID_TOKEN", "id-token: write"), requests=0, oidc=True),
)


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.says[0])
def test_a_failure_is_one_line_that_says_why_and_shows_no_secret(stub: ApiStub, case: Failure) -> None:
    stub.reply(case.reply)
    environment = {name: value for name, value in {**AWS, **case.changed}.items() if value is not None}

    oidc = ["--oidc"] * case.oidc
    line = failure_with(case.code, "--address", stub.address, *oidc, **environment)

    assert [words for words in case.says if words not in line] == []
    assert not set(line) & {"\x1b", "\n"}
    token = environment.get("HOLDFAST_ID_TOKEN")
    assert not [secret for secret in (*SECRETS, *([token] if token else [])) if secret in line]
    assert "Use `holdfast login`" not in line
    assert len(stub.asked) == case.requests
