"""The initialization of the functions before their first request, each in its own process."""

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import names
from holdfast.access import Caller, Grant, Role
from holdfast.cloud.ids import WorkspaceId
from holdfast.identity import trust
from holdfast.identity.trust import Records
from local_aws import loopback
from tests.support import documents
from tests.support.certificates import create_certificates
from tests.support.environment import SETTINGS
from tests.support.events import cloud_request, manage_request, request, sign_in
from tests.support.id_tokens import RSA, claims, record, signed

ROOT: Final = Path(__file__).parents[2]
ACCOUNT: Final = "123456789012"
FUNCTIONS: Final = (
    *("terraform_http", "cloud", "management", "authorizer", "session_exchange"),
    "audit_trail",
)
BEHIND_S3: Final = FUNCTIONS[:-1]


def initialize(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Initialise a function as Lambda does: in a new process, with its settings in the environment."""
    return subprocess.run(
        [sys.executable, "-m", "tests.support.initialization", *arguments],
        env={
            "PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}",
            "HOME": "/nonexistent",
            **SETTINGS,
            "POWERTOOLS_LOG_LEVEL": "CRITICAL",
            "AWS_EC2_METADATA_DISABLED": "true",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def told(*arguments: str, **environment: str) -> dict[str, Any]:
    ended = initialize(*arguments, **environment)
    assert ended.returncode == 0, ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return document


@dataclass
class Aws:
    """S3 and an OIDC issuer.

    `s3` is the address of both, with TLS. `objects` are the responses of both, by path; everything else is
    missing. `requests` are the paths of the requests to S3.
    """

    s3: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Aws]:
    account = Aws()

    class Handler(loopback.Handler):
        def respond(self) -> None:
            path = self.path.partition("?")[0]
            if self.headers["Authorization"]:
                account.requests.append(path)
            body = account.objects.get(path)
            of_s3 = {"ETag": '"etag"', "Last-Modified": self.date_time_string()}
            if body is None:
                self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>", of_s3)
            else:
                self.answer(200, body, of_s3)

    certificates = create_certificates(tmp_path / "certificates")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.cert, certificates.key)
    with loopback.serving(Handler, tls=tls) as secure:
        account.s3 = secure
        account.settings = {
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_ENDPOINT_URL_S3": account.s3,
            "AWS_CA_BUNDLE": str(certificates.ca),
            "SSL_CERT_FILE": str(certificates.ca),
        }
        yield account


def event(function: str, aws: Aws) -> str:
    """Return an event that makes the function read from S3, which then holds the states that are read."""
    for name in ("a", "a/b"):
        aws.objects[f"/bucket/states/{name}.tfstate"] = documents.state(1)
    if function == "terraform_http":
        caller = Caller("token:x", (Grant(Role.READER, ("*",)),))
        return json.dumps(request("GET", "/states/{name+}", "a", caller=caller))
    if function == "cloud":
        workspace = WorkspaceId.mint(names.parse("a/b"))
        caller = Caller("token:x", (Grant(Role.READER, ("*",)),))
        path = f"workspaces/{workspace}/current-state-version"
        return json.dumps(cloud_request("GET", path, caller=caller))
    if function == "management":
        caller = Caller("token:x", (Grant(Role.READER, ("*",)),))
        return json.dumps(manage_request("GET", "locks/a", caller=caller))
    if function == "authorizer":
        publish(aws)
        return json.dumps(sign_in(f"Bearer {signed(RSA, claims(iss=aws.s3))}"))
    signed_request = request("POST", "/sessions/aws")
    arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/Deployer/ada"
    signed_request["requestContext"]["authorizer"] = {"iam": {"userArn": arn}}
    return json.dumps(signed_request)


def publish(aws: Aws) -> None:
    """Have S3 hold a trust record for an issuer, and the issuer publish its keys."""
    aws.objects[f"/bucket/{trust.KEY}"] = Records((record(issuer=aws.s3),)).to_json()
    discovery = {"issuer": aws.s3, "jwks_uri": f"{aws.s3}/keys"}
    aws.objects["/.well-known/openid-configuration"] = json.dumps(discovery).encode()
    aws.objects["/keys"] = json.dumps({"keys": [RSA.as_dict(private=False)]}).encode()


EXPECTED: Final[Mapping[str, tuple[str, int]]] = {
    "terraform_http": ("/bucket/states/a.tfstate", 200),
    "cloud": ("/bucket/states/a/b.tfstate", 200),
    "management": ("/bucket/states/a.tfstate.tflock", 200),
    "authorizer": (f"/bucket/{trust.KEY}", 200),
    "session_exchange": (f"/bucket/{trust.KEY}", 403),
}
"""The object that the event reads, and the status of the response, which the authorizer's has not."""


def status(response: Mapping[str, Any]) -> int:
    """Return the status of a response; 200 where an authorizer lets somebody in."""
    return int(response.get("statusCode") or (200 if response["isAuthorized"] else 403))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_people_wait_for_loads_nothing_slow(function: str) -> None:
    expected = {
        "management": ["aws_lambda_powertools"],  # operators wait for it
        "audit_trail": ["aws_lambda_powertools", "boto3", "s3transfer", "multiprocessing"],  # nobody does
    }
    assert told("load", function) == {"loaded": expected.get(function, [])}


@pytest.mark.parametrize("function", BEHIND_S3)
def test_nothing_is_loaded_or_requested_ahead_of_the_first_request(aws: Aws, function: str) -> None:
    served = told("serve", function, event(function, aws), **aws.settings)

    key, expected = EXPECTED[function]
    assert status(served["response"]) == expected
    assert aws.requests == [key]
    assert served["jwt_loaded"] is False
