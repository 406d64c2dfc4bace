"""The initialization of the functions before their first request, each in its own process."""

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
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
from tests.support.free_port import free_port
from tests.support.id_tokens import RSA, claims, record, signed

ROOT: Final = Path(__file__).parents[2]
ACCOUNT: Final = "123456789012"
FUNCTIONS: Final = (
    *("terraform_http", "cloud", "management", "authorizer", "session_exchange"),
    "audit_trail",
)
BEHIND_S3: Final = FUNCTIONS[:-1]
SNAPSHOT: Final = {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"}
RUNTIME: Final = "after_restore = []\nregister_after_restore = after_restore.append\n"
"""`snapshot_restore_py` of Lambda's runtime, as far as a function uses it."""


def initialize(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Initialise a function as Lambda does: in a new process, with its settings in the environment."""
    return subprocess.run(
        [sys.executable, "-m", "tests.support.initialization", *arguments],
        env={
            "PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}:{environment.pop('runtime', '')}",
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


@pytest.fixture
def runtime(tmp_path: Path) -> str:
    """A folder with the module of Lambda's runtime."""
    (tmp_path / "snapshot_restore_py.py").write_text(RUNTIME)
    return str(tmp_path)


@dataclass
class Aws:
    """S3, the endpoint with the function's credentials, and an OIDC issuer.

    `s3` is the address of S3 and of the issuer, with TLS. `objects` are the responses of both, by path;
    everything else is missing. `requests` have path, access key and connection of each request to S3.
    `credentials` is how often the function has asked for them.
    """

    s3: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str, int]] = field(default_factory=list)
    credentials: int = 0

    def next_credentials(self) -> bytes:
        """Return credentials that are valid for twelve hours, and for a day more each time.

        The function meets the second ones a day later, by its own clock.
        """
        expires = datetime.now(UTC) + timedelta(days=self.credentials, hours=12)
        self.credentials += 1
        document = {
            "AccessKeyId": f"KEY{self.credentials}",
            "SecretAccessKey": "x",
            "Token": "x",
            "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return json.dumps(document).encode()


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Aws]:
    account = Aws()

    class Handler(loopback.Handler):
        def respond(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/credentials":
                self.answer(200, account.next_credentials())
                return
            if authorization := self.headers["Authorization"]:
                key = authorization.partition("Credential=")[2].partition("/")[0]
                account.requests.append((path, key, self.client_address[1]))
            body = account.objects.get(path)
            of_s3 = {"ETag": '"etag"', "Last-Modified": self.date_time_string()}
            if body is None:
                self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>", of_s3)
            else:
                self.answer(200, body, of_s3)

    certificates = create_certificates(tmp_path / "certificates")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.cert, certificates.key)
    with loopback.serving(Handler) as plain, loopback.serving(Handler, tls=tls) as secure:
        account.s3 = secure
        account.settings = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{plain}/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "x",
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


TLS: Final = ["ssl.SSLContext", "botocore/httpsession.py"]
PROCESSES: Final = ["os.urandom", "multiprocessing/process.py"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_people_wait_for_loads_nothing_slow_and_makes_nothing_random_that_is_used_later(
    function: str,
) -> None:
    # None is used later: `multiprocessing` makes a key between its processes, and no function starts one. The
    # module `random` seeds itself, and our pauses use `random.SystemRandom`. OpenSSL makes keys of session
    # tickets, which servers use; its generator is seeded from then on, and `s3/snapshot.py` seeds it anew.
    people_wait = {"drawn": [TLS], "seeded": ["random"], "loaded": []}
    operators_wait = people_wait | {"loaded": ["aws_lambda_powertools"]}
    nobody_waits = {
        "drawn": [PROCESSES, TLS],
        "seeded": ["random"],
        "loaded": ["aws_lambda_powertools", "boto3", "s3transfer", "multiprocessing"],
    }
    expected = {"management": operators_wait, "audit_trail": nobody_waits}
    assert told("draws", function) == expected.get(function, people_wait)


@pytest.mark.parametrize("function", BEHIND_S3)
def test_a_snapshot_has_all_that_the_first_request_needs_and_no_connection(
    aws: Aws, runtime: str, function: str
) -> None:
    served = told("serve", function, event(function, aws), runtime=runtime, **aws.settings, **SNAPSHOT)

    key, expected = EXPECTED[function]
    assert status(served["response"]) == expected
    assert served["loaded_later"] == []
    assert served["jwt_loaded"] is (function == "authorizer")
    before, after = aws.requests
    assert before[0] == ("/bucket/states/.tfstate" if "states/" in key else key)
    assert after[0] == key
    assert before[2] != after[2], "the connection of the snapshot was used after it"
    # The signer of addresses fetches its own credentials in between.
    renewed = "KEY3" if function in ("cloud", "management") else "KEY2"
    assert (before[1], after[1]) == ("KEY1", renewed), "credentials that had expired were not renewed"


@pytest.mark.parametrize("function", BEHIND_S3)
def test_copies_of_a_snapshot_draw_other_numbers(aws: Aws, runtime: str, function: str) -> None:
    served = told("serve", function, event(function, aws), runtime=runtime, **aws.settings, **SNAPSHOT)

    one, another = served["numbers"]
    assert one != another
    assert served["entropy"] == [32, 32]


@pytest.mark.parametrize("function", BEHIND_S3)
@pytest.mark.parametrize("kind", [None, "on-demand", "provisioned-concurrency"])
def test_without_a_snapshot_nothing_is_loaded_or_requested_ahead(
    aws: Aws, runtime: str, function: str, kind: str | None
) -> None:
    settings = aws.settings if kind is None else {**aws.settings, "AWS_LAMBDA_INITIALIZATION_TYPE": kind}
    served = told("serve", function, event(function, aws), runtime=runtime, **settings)

    key, expected = EXPECTED[function]
    assert status(served["response"]) == expected
    assert [(path, key) for path, key, _ in aws.requests] == [(key, "KEY1")]
    assert (served["jwt_loaded"], served["numbers"], served["entropy"]) == (False, [], [])


@pytest.mark.parametrize("fault", ["nobody listens", "no credentials"])
@pytest.mark.parametrize("function", BEHIND_S3)
def test_a_snapshot_is_taken_although_s3_cannot_be_asked(runtime: str, function: str, fault: str) -> None:
    settings = {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{free_port()}"}
    if fault == "nobody listens":
        settings |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}

    assert told("draws", function, runtime=runtime, **settings, **SNAPSHOT)["seeded"] == ["random"]


def test_a_runtime_that_cannot_renew_a_copy_takes_no_snapshot() -> None:
    ended = initialize("draws", "authorizer", **SNAPSHOT)

    assert ended.returncode != 0
    assert "No module named 'snapshot_restore_py'" in ended.stderr
