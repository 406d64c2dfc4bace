"""`holdfast credentials-helper`: the hosts that it answers for, its session, and what it keeps."""

import json
import os
import ssl
import stat
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from holdfast.identity import credentials
from holdfast_cli.api import http, own_sessions, sessions
from holdfast_cli.config.profiles import Settings
from local_aws.server import Certificates
from tests.support import api_stub, forked_command
from tests.support.api_stub import ApiStub, Reply, made, refused, session
from tests.support.cli_account import HOLDFAST
from tests.unit.test_cli_login import jwt

HALF: Final = 21_600
"""Seconds of half a session of 12 hours."""

Ask = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def api(certificates: Certificates) -> Iterator[ApiStub]:
    """The API of the profile `ours`, at the host name localhost."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.cert, certificates.key)
    with api_stub.running(tls) as running:
        running.address = running.address.replace("127.0.0.1", "localhost")
        running.reply(*(made(session(seconds=2 * HALF)) for _ in range(9)))
        yield running


@pytest.fixture
def ask(api: ApiStub, certificates: Certificates, tmp_path: Path) -> Ask:
    """Runs the helper with profiles, an AWS profile and its own home."""
    (tmp_path / "profiles").write_text(
        f'[profiles.ours]\naddress = "{api.address.replace("localhost", "LocalHost")}"\n'
        '[profiles.other]\naddress = "https://kelvin.example"\n[profiles.team]\nteam = "platform"\n'
        '[profiles.path]\naddress = "https://path.example/states-of-all"\n'
    )
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(
        "".join(f"[profile {name}]\nregion = eu-west-1\n" for name in ("one", "two"))
    )
    keys = "aws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = example\n"
    (tmp_path / ".aws" / "credentials").write_text(f"[one]\n{keys}[two]\n{keys}")

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "HOLDFAST_CONFIG_FILE": str(tmp_path / "profiles"),
            "AWS_CA_BUNDLE": str(certificates.ca),
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_PROFILE": "one",
        }
        return forked_command.run(["credentials-helper", *arguments], own | environment, timeout=60)

    return run


@pytest.fixture
def token(ask: Ask, api: ApiStub) -> Callable[..., str]:
    """Asks for the token of the configured host."""

    def get(*options: str, **environment: str) -> str:
        done = ask(*options, "get", urlsplit(api.address).netloc, **environment)
        assert (done.returncode, done.stderr) == (0, "")
        return str(json.loads(done.stdout)["token"])

    return get


def kept(tmp_path: Path) -> list[Path]:
    return list((tmp_path / ".cache" / "holdfast" / "sessions").glob("*/*"))


def test_the_host_of_a_profile_gets_a_session_long_enough_for_an_apply(
    ask: Ask, api: ApiStub, token: Callable[..., str]
) -> None:
    first = session(seconds=2 * HALF)
    api.reply(made(first), Reply(500))

    assert token() == f"{first['id']}.{first['secret']}"
    assert ask("get", urlsplit(api.address).netloc.upper()).stdout == f'{{"token": "{token()}"}}\n'

    asked, *checks = api.asked
    assert (asked.method, asked.path) == ("POST", "/sessions/aws")
    assert json.loads(asked.body) == {"seconds": 43_200}
    assert {(check.method, check.path) for check in checks} == {("GET", "/manage/v1/whoami")}


@pytest.mark.parametrize(
    "host",
    [
        "{}.example.com",
        "example-{}",
        "api.{}",
        "{}.",
        "localhost",
        "localhost:443",
        "127.0.0.1:{port}",
        "{}/",
        "https://{}",
        "u@{}",
        " {}",
        "{}\n",
        "\u212aelvin.example",  # the sign for kelvin, whose lower case is the letter k
        "xn--elvin-zp4b.example",
        "kelvin.example.",
        "kelvin.example:8443",
        "example",
        "path.example",
        "holdfast.local",
        "registry.terraform.io",
        "",
    ],
)
def test_any_other_host_gets_nothing_and_nothing_is_sent(
    ask: Ask, api: ApiStub, tmp_path: Path, host: str
) -> None:
    ours = urlsplit(api.address)

    done = ask(
        *("get", host.format(ours.netloc, port=ours.port)),
        HTTPS_PROXY=api.address,
        HOLDFAST_PROFILE="gone",
        HOLDFAST_TEAM="platform",
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n", "")
    assert api.asked == []
    assert kept(tmp_path) == []


def test_the_address_of_the_environment_is_configured_too(ask: Ask, api: ApiStub) -> None:
    nothing = {"HOLDFAST_CONFIG_FILE": os.devnull, "AWS_REGION": "eu-west-1"}
    host = urlsplit(api.address).netloc

    assert ask("get", host, **nothing).stdout == "{}\n"
    assert "token" in ask("get", host, **nothing, HOLDFAST_ADDRESS=api.address).stdout


# --- what is kept ---------------------------------------------------------------------------------


def test_a_session_is_kept_for_its_user_alone_and_not_used_if_others_could_read_it(
    api: ApiStub, token: Callable[..., str], tmp_path: Path
) -> None:
    first = token()

    [file] = kept(tmp_path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]
    file.chmod(0o640)
    (file.parent / "expired.json").touch(0o600)
    os.utime(file.parent / "expired.json", (0, 0))
    assert token() != first
    assert [asked.method for asked in api.asked] == ["POST", "POST"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert kept(tmp_path) == [file]


def test_a_session_that_another_user_has_written_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(http, "try_once", lambda *_: 200)
    monkeypatch.setattr(
        own_sessions, "create", lambda *_: sessions.parse(json.dumps(session(seconds=HALF)).encode())
    )
    args = Namespace(oidc=False, duration=None, aws_profile=None)

    def used() -> str:
        return own_sessions.reuse(args, Settings(None, None, None), "https://states.example.com").id

    first = used()
    assert used() == first
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert used() != first


@pytest.mark.parametrize(
    ("age", "is_used"), [(0, True), (HALF - 60, True), (HALF + 60, False), (3 * HALF, False), (-60, False)]
)
def test_a_session_is_renewed_when_half_of_it_has_passed_by_this_machines_clock(
    token: Callable[..., str], tmp_path: Path, age: int, is_used: bool
) -> None:
    first = token()
    [file] = kept(tmp_path)
    document = json.loads(file.read_text())
    # The clock of the API does not matter: this machine's may be wrong.
    document |= {"kept_since": int(time.time()) - age, "expires": "2001-01-01T00:00:00+00:00"}
    file.write_text(json.dumps(document))

    assert (token() == first) is is_used


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"kept_since": "x"}', '{"kept_since": 1}'])
def test_a_file_that_holds_no_session_is_replaced(
    token: Callable[..., str], tmp_path: Path, content: str
) -> None:
    first = token()
    [file] = kept(tmp_path)
    file.write_text(content)

    second = token()

    assert token() == second != first


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [
        ({}, True),
        ({"AWS_PROFILE": "two"}, False),
        ({"AWS_ACCESS_KEY_ID": "AKIDOTHER", "AWS_SECRET_ACCESS_KEY": "x"}, False),
        ({"AWS_SESSION_TOKEN": "rotated"}, True),
    ],
)
def test_a_session_is_used_again_by_the_same_caller_alone(
    token: Callable[..., str], changed: dict[str, str], is_same: bool
) -> None:
    assert (token() == token(**changed)) is is_same


def test_a_changed_aws_profile_signs_in_anew_and_its_option_goes_before_the_environment(
    token: Callable[..., str], tmp_path: Path
) -> None:
    first = token("--aws-profile", "two")
    assert token("--aws-profile=two", AWS_PROFILE="gone") != token("--aws-profile=two") == first
    assert token("--aws-profile=one") != first
    assert token("--aws-profile=two", "--duration=1h") != first
    config = tmp_path / ".aws" / "config"
    config.write_text(config.read_text().replace("eu-west-1", "eu-west-2"))

    second = token("--aws-profile=two")
    assert second != first
    signed_in = tmp_path / ".aws" / "sso" / "cache" / "0123.json"
    signed_in.parent.mkdir(parents=True)
    signed_in.write_text("{}")
    assert token("--aws-profile=two") != second


@pytest.mark.parametrize("of_github", [True, False])
def test_a_session_of_a_ci_job_is_not_kept_for_the_next_job_of_the_runner(
    api: ApiStub, token: Callable[..., str], tmp_path: Path, of_github: bool
) -> None:
    asks = {"ACTIONS_ID_TOKEN_REQUEST_URL": f"{api.address}/id-token", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x"}
    sessions = [made(session(seconds=2 * HALF)) for _ in range(2)]
    if of_github:
        api.reply(
            *(
                reply
                for each in sessions
                for reply in (Reply(200, json.dumps({"value": jwt()}).encode()), each)
            )
        )
    else:
        api.reply(*sessions)
    environment = asks if of_github else {"HOLDFAST_ID_TOKEN": jwt()}

    assert token("--oidc", **environment) != token("--oidc", **environment)
    assert kept(tmp_path) == []
    paths = [asked.path.partition("?")[0] for asked in api.asked]
    assert paths == (["/id-token", "/sessions"] if of_github else ["/sessions"]) * 2


def test_processes_that_ask_at_once_sign_in_once(api: ApiStub, token: Callable[..., str]) -> None:
    with ThreadPoolExecutor(6) as together:
        got = list(together.map(lambda _: token(), range(6)))

    assert len(set(got)) == 1
    assert [asked.method for asked in api.asked].count("POST") == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_session_that_the_api_refuses_is_replaced_and_without_an_answer_it_is_kept(
    api: ApiStub, token: Callable[..., str], status: int
) -> None:
    first, second = token(), session(seconds=2 * HALF)

    api.reply(Reply(status, b"{}"), made(second))
    assert token() == f"{second['id']}.{second['secret']}"
    assert api.asked[1].headers["authorization"] == credentials.basic(*first.split("."))

    for answer in (Reply(lost=True), Reply(429), Reply(503), Reply(302, headers={"Location": "/sessions"})):
        api.reply(answer)
        assert token() == f"{second['id']}.{second['secret']}"
    assert len(api.asked) == 7


@pytest.mark.parametrize("environment", [{"XDG_CACHE_HOME": "/dev/null"}, {"HOME": ""}])
def test_where_nothing_can_be_kept_each_process_signs_in(
    token: Callable[..., str], tmp_path: Path, environment: dict[str, str]
) -> None:
    files = {
        variable: str(tmp_path / ".aws" / name)
        for variable, name in (("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials"))
    }

    assert token(**files, **environment) != token(**files, **environment)


# --- other verbs, and failures --------------------------------------------------------------------


def test_a_forgotten_session_is_replaced_and_nothing_is_stored(
    ask: Ask, api: ApiStub, token: Callable[..., str], tmp_path: Path
) -> None:
    first, host = token(), urlsplit(api.address).netloc
    for verb, other in (("forget", "other.example"), ("forget", f"{host}.example")):
        assert ask(verb, other).returncode == 0
    assert token() == first

    done = ask("forget", host)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert kept(tmp_path) == []
    assert token() != first

    of_the_other = " or export TF_TOKEN_app_terraform_io."
    # No variable can name a port.
    for each, variable in (("app.terraform.io", of_the_other), (host, "into the CLI configuration.")):
        done = ask("store", each)
        assert (done.returncode, done.stdout) == (1, "")
        [line] = done.stderr.splitlines()
        assert "Nothing was stored" in line
        assert line.endswith(variable)


@pytest.mark.parametrize(
    ("reply", "environment", "code", "says"),
    [
        (refused(403, "not_allowed", "No trust record names the role."), {}, 1, "No trust record names"),
        (Reply(503), {}, 1, "503"),
        (Reply(200, b"{}"), {}, 1, "is not a Holdfast session"),
        (Reply(200), {"AWS_PROFILE": "gone"}, 2, "gone"),
    ],
)
def test_a_failure_is_one_line_which_terraform_shows(
    ask: Ask, api: ApiStub, reply: Reply, environment: dict[str, str], code: int, says: str
) -> None:
    api.reply(reply)

    done = ask("get", urlsplit(api.address).netloc, **environment)

    assert (done.returncode, done.stdout) == (code, "")
    [line] = done.stderr.splitlines()
    assert says in line


@pytest.mark.parametrize("name", ["HOLDFAST_CONFIG_FILE", "HOLDFAST_ADDRESS"])
def test_a_configuration_that_cannot_be_read_stops_no_command_for_a_host_of_others(
    ask: Ask, api: ApiStub, name: str
) -> None:
    for host in ("registry.terraform.io", urlsplit(api.address).netloc):
        done = ask("get", host, **{name: "/dev"})
        assert (done.returncode, done.stdout) == (0, "{}\n")
        [line] = done.stderr.splitlines()
        assert line.startswith("holdfast: ")
    assert (ask("forget", "a.example", **{name: "/dev"}).returncode, api.asked) == (2, [])


def test_sessions_of_an_address_that_is_no_host_are_forgotten(
    ask: Ask, api: ApiStub, certificates: Certificates, tmp_path: Path
) -> None:
    address = f"{api.address}/of-all"
    keys = {"AWS_PROFILE": "one", "AWS_CA_BUNDLE": str(certificates.ca)}
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **keys}
    for typed in (address, f"{address}/", "holdfast.local"):
        done = forked_command.run(["run", "--address", address, "--", "true"], environment, timeout=60)
        assert (done.returncode, len(kept(tmp_path))) == (0, 1)
        assert ask("forget", typed, HOLDFAST_ADDRESS=address).returncode == 0
        assert kept(tmp_path) == []


def test_a_person_sees_on_the_terminal_what_terraform_hides(api: ApiStub, tmp_path: Path) -> None:
    file, host = tmp_path / "stderr", urlsplit(api.address).netloc
    on_terminal = "import pty, sys; pty.spawn(['sh', '-c', sys.argv[1]])"

    shown = subprocess.check_output(
        [sys.executable, "-c", on_terminal, f"{HOLDFAST} credentials-helper --oidc get {host} 2> {file}"],
        env={"PYTHONPATH": os.pathsep.join(sys.path[:2]), "HOLDFAST_ADDRESS": api.address},
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=60,
    )

    assert shown.startswith("holdfast: There is no ID token. Name a file")
    assert file.read_text().strip() == shown.strip()
