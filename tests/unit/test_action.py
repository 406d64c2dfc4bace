"""The GitHub Action: its steps, run with bash against stand-ins of GitHub and of the API."""

import ast
import base64
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Timer
from types import ModuleType

import pytest

from holdfast.identity.sessions import DEFAULT_SECONDS, MAX_SECONDS, MIN_SECONDS
from holdfast_cli.api import own_sessions, sessions
from tests.support import api_stub
from tests.support.action import ACTION, FOLDER, REQUEST_TOKEN, Job, github, masked, variables
from tests.support.api_stub import ApiStub, Reply, made, refused, session
from tests.support.oidc import Issuer

SCRIPT = (FOLDER / "sign_in.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


@pytest.fixture
def job(issuer: Issuer, tmp_path: Path) -> Iterator[Job]:
    """A job with the permission `id-token: write`."""
    with github(issuer) as environment:
        yield Job(tmp_path, environment)


@pytest.fixture
def api() -> Iterator[ApiStub]:
    with api_stub.running() as stub:
        stub.reply(made(session()))
        yield stub


@pytest.fixture
def script() -> ModuleType:
    """The script as a module; it is in no package."""
    spec = spec_from_file_location("sign_in", FOLDER / "sign_in.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def error(job: Job, **inputs: str) -> str:
    """Run the action, which must fail with one line beside its masks, and return the line."""
    done = job.run(**inputs)
    assert done.returncode == 1, done.stdout
    [line] = [line for line in done.stdout.splitlines() if not line.startswith("::add-mask::")]
    assert not job.exports.exists()
    assert REQUEST_TOKEN not in done.stdout
    return line.removeprefix("::error::")


def test_a_job_gets_the_variables_of_holdfast_login(job: Job, api: ApiStub) -> None:
    document = session()
    api.reply(made(document))

    done = job.run(address=api.address)

    assert done.returncode == 0, done.stdout
    expected = own_sessions.environment(sessions.parse(json.dumps(document).encode()), api.address)
    assert variables(job.exports.read_text()) == expected
    [asked] = api.asked
    id_token = asked.headers["authorization"].removeprefix("Bearer ")
    assert (asked.method, asked.path, asked.body) == ("POST", "/sessions", b"{}")
    assert masked(done.stdout) == [id_token, document["secret"]]
    assert done.stdout.splitlines()[2:] == [
        f"Signed in at {api.address} as {document['principal']}, until {document['expires']}."
    ]


@pytest.mark.parametrize(
    "address",
    [
        "https://abc123.execute-api.eu-central-1.amazonaws.com",
        "https://States.Example.com:443",
        "https://states.example.com:8443",
        "https://states.example.com/of/all",
        "http://127.0.0.1:4566",
    ],
)
def test_the_variables_are_those_of_holdfast_login_for_every_address(
    address: str, script: ModuleType
) -> None:
    document = session()

    made = script.exports(address, document)

    assert made == own_sessions.environment(sessions.parse(json.dumps(document).encode()), address)


def test_audience_and_duration_are_passed_on(job: Job, api: ApiStub) -> None:
    done = job.run(address=api.address, audience="a b&c", duration_seconds="7200")

    assert done.returncode == 0, done.stdout
    [asked] = api.asked
    assert json.loads(asked.body) == {"seconds": 7200}
    claims = asked.headers["authorization"].split(".")[1]
    assert b'"aud": "a b&c"' in base64.urlsafe_b64decode(f"{claims}==")


def test_a_secret_is_masked_before_it_is_exported(job: Job, api: ApiStub) -> None:
    document = session()
    api.reply(made(document))
    os.mkfifo(job.exports)  # the script waits in its `open` for who reads
    [(_, argv, environment)] = job.steps({"address": api.address})

    with subprocess.Popen(
        argv, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout
        hangs = Timer(20, os.killpg, (process.pid, signal.SIGKILL))  # bash, and the Python below it
        hangs.start()
        try:
            before = [process.stdout.readline() for _ in range(2)]
            assert before[1] == f"::add-mask::{document['secret']}\n"
            exported = variables(job.exports.read_text())
        finally:
            hangs.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert exported["TF_HTTP_PASSWORD"] == document["secret"]


def test_no_secret_is_an_argument_of_a_process_or_text_of_a_script() -> None:
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
    [run] = [step["run"] for step in ACTION["runs"]["steps"]]
    assert run == 'python3 -I "$GITHUB_ACTION_PATH/sign_in.py"'
    assert "subprocess" not in SCRIPT
    assert "os.system" not in SCRIPT


def test_the_action_says_the_limits_of_a_session() -> None:
    description = ACTION["inputs"]["duration-seconds"]["description"]
    assert re.findall("[0-9]+", description) == [str(MIN_SECONDS), str(MAX_SECONDS)]
    assert ("one hour" in description) == (DEFAULT_SECONDS == 3600)


def test_the_script_is_one_for_the_oldest_python_that_it_names() -> None:
    [version] = re.findall(r"Python 3\.(\d+)", SCRIPT)
    ast.parse(SCRIPT, feature_version=(3, int(version)))


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_job_without_the_permission_is_told_of_it(tmp_path: Path, api: ApiStub) -> None:
    line = error(Job(tmp_path, {}), address=api.address)

    assert "`permissions: id-token: write`" in line
    assert api.asked == []


def test_a_refusal_of_github_is_told_with_the_permission(job: Job, api: ApiStub) -> None:
    other = Job(job.folder, {**job.environment, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "another"})

    assert error(other, address=api.address).startswith(
        "GitHub responds with 401 and no ID token: give the job"
    )
    assert api.asked == []


def test_a_refused_exchange_is_told_in_the_words_of_the_server_with_what_the_token_says(
    job: Job, api: ApiStub, issuer: Issuer
) -> None:
    api.reply(refused(403, "not_allowed", "No trust record matches."))

    line = error(job, address=api.address)

    assert line.startswith("The API refuses the ID token: No trust record matches. It has expired, no ")
    told = f"issuer {issuer.address}, audience {api.address}, subject repo:acme/network:ref:refs/heads/main"
    assert line.endswith(f"Its claims are: {told}.")


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(404, b"<html>"), "responds with 404: check the address"),
        (Reply(302, headers={"Location": "http://127.0.0.1:1/"}), "responds with 302: check the address"),
        (refused(400, "invalid", "seconds must be 300 to 43200"), "responds with 400: seconds must be"),
        (Reply(200, b"<html>"), "has no session of Holdfast"),
        (made(session(secret="x\n::add-mask::")), "has no session of Holdfast"),
        (made(session(id="session-1\nPATH=/tmp")), "has no session of Holdfast"),
        (
            refused(400, "x", "one\n::set-output name=x::100%\r##[error]"),
            "one ::set-output name=x::100%25 ## [",
        ),
    ],
)
def test_any_other_response_is_one_line_without_a_command_for_the_runner(
    job: Job, api: ApiStub, reply: Reply, says: str
) -> None:
    api.reply(reply)

    assert says in error(job, address=api.address)


def test_a_429_is_no_failure(job: Job, api: ApiStub) -> None:
    api.reply(Reply(429, b'{"message":"Too Many Requests"}'), made(session()))

    assert job.run(address=api.address).returncode == 0
    assert len(api.asked) == 2


def test_an_api_that_does_not_respond_is_told(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "_PAUSES", ())
    with socket.socket() as silent:  # bound and not listening: nobody else takes the port
        silent.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(script.SignInError, match=f"^{host} does not respond: check the address and the"):
            script.send(f"http://{host}/sessions", "x", b"{}")


@pytest.mark.parametrize(
    "address", ["states.example.com", "http://states.example.com", "https://a b", "https://a@b"]
)
def test_no_token_is_sent_where_others_can_read_it(job: Job, address: str) -> None:
    assert "write it as in https://" in error(job, address=address)


def test_the_input_has_no_way_into_the_shell(job: Job) -> None:
    error(job, address="https://$(touch bent)`touch bent`'; touch bent; '\"")

    assert not (job.folder / "bent").exists()


def test_a_wrong_duration_is_told(job: Job, api: ApiStub) -> None:
    assert "write a whole number" in error(job, address=api.address, duration_seconds="2h")
