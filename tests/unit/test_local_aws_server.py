"""A local AWS starts, stops, is found again and leaves nothing behind, however it or its starter ends."""

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local_aws.clients import s3_client
from local_aws.failure import LocalAwsError
from local_aws.server import ROOT, LocalAws, find_running, for_local_commands
from tests.support.certificates import create_certificates
from tests.support.deployed import client, zipped
from tests.support.free_port import free_port
from tests.support.waiting import lives, wait_until

FUNCTION = "import os\n\ndef handle(event, context):\n    return {'pid': os.getpid(), **os.environ}\n"


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[LocalAws]:
    local_aws = LocalAws(free_port(), tmp_path / "aws")
    local_aws.start()
    try:
        yield local_aws
    finally:
        local_aws.kill()


def ask(
    aws: LocalAws, path: str, headers: dict[str, str], method: str = "GET"
) -> tuple[int, str, dict[str, str]]:
    """Status, body and headers of a plain HTTP request."""
    if aws.tls:
        context = ssl.create_default_context(cafile=str(aws.tls.ca))
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            "127.0.0.1", aws.port, timeout=10, context=context
        )
    else:
        connection = http.client.HTTPConnection("127.0.0.1", aws.port, timeout=10)
    with closing(connection):
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}


def run_function(aws: LocalAws) -> dict[str, Any]:
    """Deploy a function and call it: its own process and environment."""
    functions = client(aws, "lambda")
    functions.create_function(
        FunctionName="environment",
        Runtime="python3.13",
        Handler="index.handle",
        Role="arn:aws:iam::000000000000:role/any",
        Code={"ZipFile": zipped("index.py", FUNCTION)},
    )
    told: dict[str, Any] = json.loads(functions.invoke(FunctionName="environment")["Payload"].read())
    return told


def test_it_answers_on_the_loopback_address_only(aws: LocalAws) -> None:
    with socket.create_connection(("127.0.0.1", aws.port), timeout=5):
        pass
    # The whole of 127.0.0.0/8 is this machine, so a server on every address would answer here too.
    with socket.socket() as elsewhere:
        elsewhere.settimeout(5)
        assert elsewhere.connect_ex(("127.0.0.2", aws.port)) != 0


CONSOLE = "/_aws/execute-api/abc123/$default/console"
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
"""The headers that a browser sends after a click on another page's link."""


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Origin": "http://example.com"}, "web pages"),
        ({"Origin": "http://127.0.0.1"}, "web pages"),
        ({"Origin": "https://127.0.0.1:{port}"}, "web pages"),
        ({"Origin": "http://localhost:{port}"}, "web pages"),
        (
            {"Origin": "http://example.com", "Host": "example.com"},
            "only the host names 127.0.0.1 and localhost",
        ),
        ({"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"}, "web pages"),
        ({"Origin": "null"}, "web pages"),
        (LINK, "web pages"),
        ({"Sec-Fetch-Site": "cross-site"}, "web pages"),
        ({"Sec-Fetch-Site": "same-site"}, "web pages"),
        ({"Host": "rebound.example.com"}, "only the host names 127.0.0.1 and localhost"),
        ({"Host": "127.0.0.1.example.com"}, "only the host names 127.0.0.1 and localhost"),
        ({"Host": "localhost:80@example.com"}, "only the host names 127.0.0.1 and localhost"),
        ({"Host": "states.localhost"}, "only the host names 127.0.0.1 and localhost"),
        ({"Host": ""}, "only the host names 127.0.0.1 and localhost"),
    ],
)
def test_a_web_page_is_refused_in_one_line_and_changes_nothing(
    aws: LocalAws, headers: dict[str, str], why: str
) -> None:
    s3_client(aws).create_bucket(Bucket="states")
    s3_client(aws).put_object(Bucket="states", Key="a", Body=b"secret")

    sent = {name: value.replace("{port}", str(aws.port)) for name, value in headers.items()}
    for method in ("GET", "DELETE", "OPTIONS"):
        status, body, answered = ask(aws, "/states/a", sent, method)
        assert status == http.HTTPStatus.FORBIDDEN
        assert re.fullmatch(rf"Refused: [^\n]*{re.escape(why)}[^\n]*\.\n", body)
        assert not [name for name in answered if name.startswith("access-control-")]
    assert s3_client(aws).get_object(Bucket="states", Key="a")["Body"].read() == b"secret"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_the_local_aws_itself_may_send_every_verb(aws: LocalAws, host: str) -> None:
    own = f"{host}:{aws.port}"
    sent = {"Host": own, "Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"}

    assert ask(aws, "/states", sent, "PUT")[0] == http.HTTPStatus.OK
    assert ask(aws, "/states/a", sent, "DELETE")[0] == http.HTTPStatus.NO_CONTENT


@pytest.mark.parametrize(
    ("path", "changed", "is_open"),
    [
        *((f"{CONSOLE}{path}", {}, True) for path in ("", "/", "/index.html", "/sign-in.html")),
        (f"{CONSOLE.replace('$', '%24')}/", {}, True),
        (f"{CONSOLE}/", {"Sec-Fetch-Site": "same-site"}, True),
        (f"{CONSOLE}/", {"Sec-Fetch-Dest": "iframe"}, False),
        (f"{CONSOLE}/", {"Sec-Fetch-Mode": "no-cors"}, False),
        (f"{CONSOLE}/", {"Host": "example.com"}, False),
        (f"{CONSOLE}/", {"Origin": "null"}, False),
        (f"{CONSOLE}/../states/a", {}, False),
        (f"{CONSOLE}/..%2Fstates%2Fa", {}, False),
        ("/_aws/execute-api/abc123/$default/states/a", {}, False),
        ("/console/", {}, False),
    ],
)
def test_another_pages_link_opens_the_console_and_nothing_else(
    aws: LocalAws, path: str, changed: dict[str, str], is_open: bool
) -> None:
    # There is no such API: who passes the gate learns that.
    assert (ask(aws, path, LINK | changed)[0] == http.HTTPStatus.FORBIDDEN) is not is_open
    for method in ("POST", "DELETE", "OPTIONS"):
        assert ask(aws, path, LINK | changed, method)[0] == http.HTTPStatus.FORBIDDEN


def test_a_page_in_a_bucket_gets_an_origin_of_its_own(aws: LocalAws) -> None:
    s3_client(aws).create_bucket(Bucket="states")
    s3_client(aws).put_object(
        Bucket="states", Key="page.html", Body=b"<script></script>", ContentType="text/html"
    )

    _, _, headers = ask(aws, "/states/page.html", {})
    assert headers["content-security-policy"] == "sandbox"


def test_programs_of_this_machine_are_let_in_by_either_name(aws: LocalAws) -> None:
    s3_client(aws).create_bucket(Bucket="states")
    s3_client(aws).put_object(Bucket="states", Key="a", Body=b"secret")
    for host in ("127.0.0.1", f"127.0.0.1:{aws.port}", "localhost", f"LocalHost:{aws.port}"):
        assert ask(aws, "/states/a", {"Host": host})[:2] == (200, "secret")
    assert ask(aws, "/states/a", {"Sec-Fetch-Site": "none"})[0] == http.HTTPStatus.OK


def test_of_the_emulators_own_controls_only_the_health_is_open(aws: LocalAws) -> None:
    s3_client(aws).create_bucket(Bucket="states")
    for method, path in (
        ("POST", "/_ministack/reset"),
        ("POST", "/%5Fministack/reset"),
        ("POST", "/_ministack/config"),
        ("GET", "/_ministack/ready"),
    ):
        status, body, _ = ask(aws, path, {}, method)
        assert (status, body) == (
            403,
            "Refused: below /_ministack/, only /_ministack/health may be requested.\n",
        )
    assert ask(aws, "/_ministack/health", {})[0] == http.HTTPStatus.OK
    assert [bucket["Name"] for bucket in s3_client(aws).list_buckets()["Buckets"]] == ["states"]


def test_a_pid_file_that_a_crash_left_points_to_nobody(tmp_path: Path) -> None:
    innocent = os.getpid()
    (tmp_path / "server.pid").write_text(json.dumps({"pid": innocent, "port": 4566}))

    assert find_running(tmp_path) is None
    LocalAws(4566, tmp_path).stop()  # would end this test
    LocalAws(4566, tmp_path).kill()


def test_a_second_one_in_the_same_folder_is_refused(aws: LocalAws) -> None:
    with pytest.raises(LocalAwsError, match=r"already runs with the data in"):
        LocalAws(free_port(), aws.data_dir).start()
    assert aws.running


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    certificates = create_certificates(tmp_path / "tls")
    certificates.cert.write_text("no certificate")

    with pytest.raises(LocalAwsError, match=r"did not start(?s:.*)PEM"):
        LocalAws(free_port(), tmp_path / "aws", tls=certificates).start()
    assert find_running(tmp_path / "aws") is None


@pytest.mark.parametrize("end", [LocalAws.stop, LocalAws.kill])
def test_its_functions_end_with_it(aws: LocalAws, end: Callable[[LocalAws], None]) -> None:
    worker = run_function(aws)["pid"]
    assert lives(worker)

    end(aws)
    wait_until(lambda: not lives(worker), "its worker ends")


def test_its_functions_see_nothing_of_the_users_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ROLE_ARN", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret")
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    with LocalAws(free_port(), tmp_path / "aws") as aws:
        environment = run_function(aws)

    assert "AWS_ROLE_ARN" not in environment
    assert "secret" not in environment.values()
    assert Path(environment["HOME"]).is_relative_to(tmp_path)
    assert Path(environment["TMPDIR"]).is_relative_to(tmp_path)


def test_it_ends_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    port = free_port()
    program = f"""
import time
from pathlib import Path
from local_aws.server import LocalAws
LocalAws({port}, Path({str(tmp_path)!r})).start()
print("started", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"started\n"
        assert find_running(tmp_path) is not None
        starter.send_signal(signal.SIGKILL)
        starter.wait()

    wait_until(lambda: find_running(tmp_path) is None, "it ends")


def test_with_tls_it_is_trusted_by_whoever_trusts_its_authority_and_stops_beside_an_idle_client(
    tmp_path: Path,
) -> None:
    with LocalAws(free_port(), tmp_path / "aws", tls=create_certificates(tmp_path / "tls")) as aws:
        assert aws.endpoint.startswith("https://")
        assert aws.environment()["AWS_CA_BUNDLE"] == str(tmp_path / "tls" / "ca.pem")
        assert (tmp_path / "tls" / "server.key").stat().st_mode & 0o777 == 0o600
        assert ask(aws, "/", {"Origin": "https://example.com"})[0] == http.HTTPStatus.FORBIDDEN
        assert ask(aws, "/", {"Host": "example.com"})[0] == http.HTTPStatus.FORBIDDEN
        assert set(re.findall(r"Running on (\S+)", aws.log.read_text())) == {aws.endpoint}
        idle = s3_client(aws)  # keeps its connection
        assert idle.list_buckets()["Buckets"] == []
        started = time.monotonic()
        aws.stop()
    assert time.monotonic() - started < 15


def test_with_iam_a_stranger_is_refused_and_root_is_not(tmp_path: Path) -> None:
    with LocalAws(free_port(), tmp_path / "aws", iam=True) as aws:
        s3_client(aws).create_bucket(Bucket="states")
        assert ask(aws, "/states/a", {})[0] == http.HTTPStatus.FORBIDDEN


def test_a_client_uses_nothing_of_the_users_settings(
    aws: LocalAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("[profile production]\nregion = eu-central-1\nendpoint_url = http://127.0.0.1:9\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAPRODUCTION")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    s3 = s3_client(aws)
    assert s3.list_buckets()["Buckets"] == []
    assert s3.meta.region_name == "us-east-1"


def test_a_command_for_it_gets_nothing_of_the_users_settings_and_no_proxy() -> None:
    environment = {
        "AWS_PROFILE": "production",
        "HTTP_PROXY": "http://proxy",
        "NO_PROXY": "intranet",
        "A": "b",
    }
    assert for_local_commands(environment) == {
        "HTTP_PROXY": "http://proxy",
        "NO_PROXY": "intranet,127.0.0.1",
        "no_proxy": "127.0.0.1",
        "A": "b",
    }


def test_the_environment_points_every_kind_of_client_here_and_nowhere_else(tmp_path: Path) -> None:
    aws = LocalAws(4600, tmp_path)
    assert aws.environment() == {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:4600",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:4600",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_S3_FORCE_PATH_STYLE": "1",
    }
