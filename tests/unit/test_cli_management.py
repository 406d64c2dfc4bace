"""How commands find the management API, sign in to it, and tell what it refuses."""

import gzip
import json
import zlib
from argparse import Namespace
from base64 import b64encode
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import pytest

from holdfast_cli.api import http, management, sign_in
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.main import main
from tests.support.api_stub import ApiStub, Reply
from tests.support.free_port import free_port
from tests.support.management import (
    CREDENTIALS,
    ID,
    NAME,
    SECRET,
    answer,
    environment,
    failure,
    held,
    lock,
    of_lock,
    output,
    page,
    refusal,
    run,
    state,
)

A, B = "https://a.example.com", "https://b.example.com"
BASIC: Final = f"Basic {b64encode(f'{ID}:{SECRET}'.encode()).decode()}"
BEARER: Final = f"{ID}.{SECRET}"
ID_TOKEN: Final = f"{b64encode(b'{}').decode().rstrip('=')}.{b64encode(b'{}').decode().rstrip('=')}.c2ln"
OF_HCP: Final = f"{14 * 'x'}.atlasv1.{67 * 'y'}"
"""A token in the form of HCP Terraform's."""
OF_A: Final = {"TF_TOKEN_a_example_com": BEARER}
NO_PROFILES: Final = {"HOLDFAST_CONFIG_FILE": "/dev/null"}
WHO: Final = {
    "principal": f"token:{ID}",
    "role": "reader",
    "scope": ["network/*"],
    "method": "token",
    "trust": None,
    "expires": None,
}


def signed_in(environment: dict[str, str], **typed: str) -> management.Api:
    asked = Namespace(**{"address": None, "profile": None} | typed)
    return sign_in.sign_in(asked, NO_PROFILES | environment)


# --- which API, and as whom ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "environment", "address"),
    [
        ({"address": A}, {"HOLDFAST_ADDRESS": B}, A),
        ({}, {"HOLDFAST_ADDRESS": A, "TF_HTTP_ADDRESS": f"{B}/states/network/prod"}, A),
        ({}, {"TF_HTTP_ADDRESS": f"{A}/states/network/prod"}, A),
        ({}, {"TF_HTTP_ADDRESS": f"{A}/below/states/states/x"}, f"{A}/below"),
        # The address of another program does not count.
        ({}, {"TF_HTTP_ADDRESS": "https://gitlab.example.com/api/v4/terraform/x", **OF_A}, A),
        ({}, OF_A, A),
        ({}, {"TF_TOKEN_eu__central_example_com": BEARER}, "https://eu-central.example.com"),
        ({}, {**OF_A, "TF_TOKEN_app_terraform_io": "of another service"}, A),
        ({}, {**OF_A, "TF_TOKEN_app_terraform_io": OF_HCP}, A),
        ({}, {"TF_TOKEN_a_example_com": ID_TOKEN, "TF_TOKEN_app_terraform_io": OF_HCP}, A),
        ({}, {**OF_A, "TF_TOKEN_holdfast_local": BEARER}, A),
        ({"address": "http://127.0.0.1:8080"}, {}, "http://127.0.0.1:8080"),
        ({"address": "http://localhost"}, {}, "http://localhost"),
    ],
)
def test_the_address_is_the_one_that_is_named_or_the_one_that_terraform_has(
    typed: dict[str, str], environment: dict[str, str], address: str
) -> None:
    assert signed_in(CREDENTIALS | environment, **typed).address == address


def test_a_profile_names_the_address_whatever_names_a_team(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[profiles.default]\naddress = "{B}"\n')
    terraforms = {"TF_HTTP_ADDRESS": f"{A}/states/x", "HOLDFAST_CONFIG_FILE": str(file)}

    assert signed_in(CREDENTIALS | terraforms).address == B
    assert signed_in(CREDENTIALS | terraforms | {"HOLDFAST_TEAM": "other"}).address == B
    assert signed_in(CREDENTIALS | terraforms | {"HOLDFAST_TEAM": "other"}, profile="default").address == B


@pytest.mark.parametrize(
    ("environment", "authorization", "source"),
    [
        (CREDENTIALS, BASIC, "TF_HTTP_USERNAME and TF_HTTP_PASSWORD"),
        (CREDENTIALS | {"TF_TOKEN_a_example_com": "other.token"}, BASIC, "TF_HTTP_USERNAME"),
        (OF_A, f"Bearer {BEARER}", "TF_TOKEN_a_example_com"),
        ({"TF_TOKEN_A_EXAMPLE_COM": BEARER}, f"Bearer {BEARER}", "TF_TOKEN_A_EXAMPLE_COM"),
        ({"TF_HTTP_USERNAME": ID, **OF_A}, f"Bearer {BEARER}", "TF_TOKEN_a_example_com"),
    ],
    ids=["basic", "basic and a token of the host", "token", "token in upper case", "user name and a token"],
)
def test_credentials_are_terraforms(environment: dict[str, str], authorization: str, source: str) -> None:
    api = signed_in(environment, address=A)

    assert api.authorization == authorization
    assert source in api.source
    assert SECRET not in repr(api)


def test_an_address_with_a_port_has_the_token_of_its_stand_in() -> None:
    local = "http://127.0.0.1:8080"

    assert signed_in({"TF_TOKEN_holdfast_local": BEARER}, address=local).authorization == f"Bearer {BEARER}"


@pytest.mark.parametrize(
    ("typed", "environment", "said"),
    [
        ({}, CREDENTIALS | {"HOLDFAST_TEAM": "payments"}, ("HOLDFAST_TEAM is not enough", "holdfast login")),
        ({}, {**OF_A, "TF_TOKEN_b_example_com": BEARER}, ("a.example.com, b.example.com", "--address")),
        ({"address": A}, {}, (f"holdfast login --address {A}", "TF_HTTP_USERNAME", "TF_TOKEN_a_example_com")),
        ({"address": A}, {"TF_TOKEN_b_example_com": BEARER}, ("TF_TOKEN_a_example_com",)),
        ({"address": A}, {"TF_HTTP_USERNAME": ID}, ("TF_HTTP_PASSWORD is not set",)),
        ({"address": "http://192.0.2.1"}, CREDENTIALS, ("https:// only",)),
        ({}, CREDENTIALS | {"TF_HTTP_ADDRESS": "ftp://x/states/y"}, ("TF_HTTP_ADDRESS",)),
        ({}, {"TF_TOKEN_a..b": BEARER}, ("not a valid URL",)),
    ],
)
def test_what_is_missing_is_said_with_all_ways_to_give_it(
    typed: dict[str, str], environment: dict[str, str], said: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError) as raised:
        signed_in(environment, **typed)

    assert [part for part in said if part not in str(raised.value)] == []
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "typed", [["state", "list"], ["lock", "list"], ["activity"], ["whoami"], ["import", "plan", "s3://b"]]
)
def test_a_first_run_without_any_address_says_what_to_type_in_order(typed: list[str]) -> None:
    done = run(None, *typed, AWS_REGION="eu-central-1")

    head, *steps = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert head == "holdfast: The API's address is not known. Type these commands in this order:"
    assert [step.split("  ")[1] for step in steps] == [
        "1. holdfast configure",
        '2. eval "$(holdfast login)"',
        "3. holdfast doctor",
        "or, on this machine after `make up`:",
    ]
    assert steps[-1].endswith("  . .local/terraform.env")
    assert max(map(len, steps)) < 80


@pytest.mark.parametrize("typed", [["doctor"], ["login"], ["console"], ["token", "list"]])
def test_a_first_run_of_a_command_that_asks_aws_has_the_same_steps(tmp_path: Path, typed: list[str]) -> None:
    nothing = dict.fromkeys(("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID"))
    nothing |= dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), f"{tmp_path / 'none'}")
    nothing |= {"AWS_EC2_METADATA_DISABLED": "true"}

    done = run(None, *typed, **nothing)

    head, *steps = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert head.startswith("holdfast: Neither the API's address nor an AWS region is known. Type these ")
    assert steps[:-1] == run(None, "whoami").stderr.splitlines()[1:-1]
    assert steps[-1].endswith("  set -a; . .local/aws.env; set +a")

    with_region = run(None, *typed, **{**nothing, "AWS_REGION": "eu-central-1"})
    assert "Type these commands" not in with_region.stderr


def test_a_team_without_an_address_has_the_same_steps() -> None:
    without, with_team = (run(None, "whoami", HOLDFAST_TEAM=team).stderr for team in (None, "payments"))

    head, *steps = with_team.splitlines()
    assert "HOLDFAST_TEAM is not enough" in head
    assert steps == without.splitlines()[1:]
    assert len(steps) == 4


def test_a_command_without_credentials_is_wrong_usage_and_asks_nobody(stub: ApiStub) -> None:
    line = failure(stub, "whoami", code=2, TF_HTTP_USERNAME=None)

    assert "There are no credentials for 127.0.0.1" in line
    assert stub.asked == []


@pytest.mark.parametrize(("expires", "said"), [(None, "never"), ("at dusk", "at dusk")])
def test_whoami_shows_as_whom_the_credentials_sign_in(stub: ApiStub, expires: str | None, said: str) -> None:
    who = WHO | {"expires": expires}
    stub.reply(answer(who))

    shown = dict(line.split(maxsplit=1) for line in output(stub, "whoami").splitlines())

    assert shown["principal"] == f"token:{ID}"
    assert (shown["role"], shown["scope"], shown["expires"]) == ("reader", "network/*", said)
    assert shown["address"] == stub.address
    [asked] = stub.asked
    assert (asked.method, asked.path) == ("GET", "/manage/v1/whoami")
    assert asked.headers["authorization"] == BASIC
    assert json.loads(output(stub, "whoami", "--json")) == {**who, "address": stub.address}


def test_whoami_names_the_team_and_its_account(stub: ApiStub) -> None:
    stub.reply(answer(WHO | {"team": "network", "account": "123456789012"}))

    assert "  team         network (AWS account 123456789012)\n" in output(stub, "whoami")


def test_whoami_shows_each_of_several_grants(stub: ApiStub) -> None:
    grants = [{"role": "writer", "scope": ["apps/*", "shared"]}, {"role": "outputs", "scope": ["network/*"]}]
    stub.reply(answer(WHO | {"role": None, "scope": None, "grants": grants}))

    text = output(stub, "whoami")

    assert "  role         writer, outputs\n" in text
    assert "  scope        writer:apps/*, writer:shared, outputs:network/*\n" in text


# --- what it refuses -----------------------------------------------------------------------------


NOT_ACCEPTED: Final = "does not accept the credentials in TF_HTTP_USERNAME and TF_HTTP_PASSWORD"
ELSEWHERE: Final = Reply(307, headers={"Location": f"http://127.0.0.1:{free_port()}"})
REFUSED: Final[Sequence[tuple[str, Reply, int, tuple[str, ...]]]] = [
    ("state list", Reply(401, b'{"message": "Unauthorized"}'), 2, (NOT_ACCEPTED, "holdfast login")),
    ("state list", Reply(403, b'{"message": "Forbidden"}'), 2, (NOT_ACCEPTED, "holdfast login")),
    ("lock show network/prod", Reply(403, b'{"message": "Forbidden"}'), 2, (NOT_ACCEPTED,)),
    ("state history network/prod", refusal(403, "not_allowed", "No."), 1, ("holdfast: No.",)),
    ("state get network/prod --version v", refusal(404, "no_such_version", "No."), 1, ("holdfast: No.",)),
    (
        "state list",
        refusal(503, "undecided", "S3 did not decide."),
        3,
        ("again later. S3 did not decide.",),
    ),
    ("state declare network/prod", Reply(401), 2, (NOT_ACCEPTED,)),
    (
        "state declare network/prod",
        refusal(500, "lock_left", "It is done."),
        3,
        ("still responds with 500 after several attempts. It is done.",),
    ),
    ("state declare network/prod", Reply(503), 3, ("responds with 503", "Run the command again later")),
    ("state declare network/prod", Reply(lost=True), 3, ("taken effect", f"`holdfast state show {NAME}`")),
    ("state list", ELSEWHERE, 1, ("does not follow redirects",)),
]
"""The command, the API's response, how often it is asked, and parts of the line."""


@pytest.mark.parametrize(("typed", "reply", "requests", "said"), REFUSED)
def test_what_the_api_refuses_or_does_not_answer_is_one_line_with_what_to_do(
    stub: ApiStub, typed: str, reply: Reply, requests: int, said: tuple[str, ...]
) -> None:
    stub.reply(reply)

    line = failure(stub, *typed.split())

    assert [part for part in said if part not in line] == []
    assert not said[0].startswith("holdfast: ") or line == said[0]
    assert ("taken effect" in line) is ("taken effect" in said)
    assert SECRET not in line
    assert len(stub.asked) == requests


def packed(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


@pytest.mark.parametrize(
    ("body", "encoding", "said"),
    [
        (b"x" * 1001, None, "more than 0 MB"),
        (packed(b"x" * 1001), "gzip", "more than 0 MB"),
        (packed(b"x" * 100_000_000), "gzip", "more than 0 MB"),
        (packed(b"x" * 100)[:-9], "gzip", "a compressed body that was cut off"),
        (b"x" * 100, "gzip", "not compressed as its header says"),
        (zlib.compress(b"x" * 100), "deflate", "an encoding that the command did not request"),
    ],
)
def test_a_body_is_neither_larger_than_any_state_nor_compressed_unasked(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch, body: bytes, encoding: str | None, said: str
) -> None:
    monkeypatch.setattr(http, "LARGEST", 1000)
    stub.reply(Reply(200, body, {"Content-Encoding": encoding} if encoding else {}))
    with pytest.raises(CommandError, match=said):
        http.send("GET", stub.address, headers={"Accept-Encoding": "gzip"})
    if encoding:
        with pytest.raises(CommandError, match="an encoding that the command did not request"):
            http.send("GET", stub.address, headers={})


@pytest.mark.parametrize("kept", [False, True])
def test_a_body_that_is_cut_off_is_asked_for_again(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    stub.reply(Reply(200, b"whole", cut=1), Reply(200, b"whole"))
    with http.kept_connections() if kept else nullcontext():
        assert http.send("GET", stub.address, headers={}).body == b"whole"
    assert len(stub.asked) == 2


@pytest.mark.parametrize("kept", [False, True])
def test_a_body_of_the_largest_size_is_read_whole(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setattr(http, "LARGEST", 1000)
    whole = b"x" * 1000
    stub.reply(Reply(200, whole), Reply(200, packed(whole), {"Content-Encoding": "gzip"}), Reply(204))
    with http.kept_connections() if kept else nullcontext():
        bodies = [http.send("GET", stub.address, headers={"Accept-Encoding": "gzip"}).body for _ in range(3)]
    assert bodies == [whole, whole, b""]


@pytest.mark.parametrize(
    "reply",
    [refusal(400, "unknown_route", "No."), Reply(404, b'{"message":"Not Found"}'), Reply(404, b"<html>")],
)
def test_a_stack_without_the_route_is_told_with_its_version(stub: ApiStub, reply: Reply) -> None:
    stub.reply(reply, answer({"status": "ok", "version": "0.1.0+abc"}))

    line = failure(stub, "lock", "list")

    assert "deploy the team's stack again" in line
    assert "The deployed version, 0.1.0+abc, is older than this command" in line
    assert stub.asked[-1].path == "/health"
    assert "authorization" not in stub.asked[-1].headers


NO_CURSORS: Final[Sequence[object]] = (7, 0, False, ["a"], {})


@pytest.mark.parametrize(
    "replies",
    [
        *([Reply(200, body)] for body in (b"", b"<html>", b"[]")),
        [answer({"states": 7})],
        [answer({"x": []})],
        *([answer({"states": [], "next": cursor})] for cursor in NO_CURSORS),
        [page("states", next_=cursor) for cursor in "aba"],  # which has no end
    ],
)
def test_a_response_of_something_else_is_one_line(stub: ApiStub, replies: list[Reply]) -> None:
    stub.reply(*replies)

    assert "did not respond as the management API does" in failure(stub, "state", "list")


def test_what_a_newer_stack_says_more_is_passed_over_and_its_words_are_shown(stub: ApiStub) -> None:
    newer = state(status="quarantined", colour="blue", lock=lock(kind="advisory", since=7))
    stub.reply(answer(newer))

    shown = output(stub, "state", "show", NAME)

    assert "quarantined" in shown
    assert "blue" not in shown


def test_a_locked_state_is_told_with_who_since_when_and_what_to_do(stub: ApiStub) -> None:
    stub.reply(
        refusal(423, "locked", "The state is locked by bob@desk, lock ID 4fe1c2a0.", held()),
        of_lock(lock(since="2026-11-20T12:00:00Z")),
    )

    line = failure(stub, "state", "declare", NAME)

    assert "locked by bob@desk" in line
    assert "The lock has been held for apply since 2026-11-20 12:00:00 UTC (" in line
    assert f"`holdfast lock break {NAME} 4fe1c2a0`" in line
    assert stub.asked[-1].path == f"/manage/v1/locks/{NAME}"


def test_what_a_lock_info_lacks_is_not_told(stub: ApiStub) -> None:
    info = held() | {"Operation": None, "Info": None}
    since = lock(since="2026-11-20T12:00:00Z")
    stub.reply(refusal(423, "locked", "The state is locked by bob@desk.", info), answer({"lock": since}))

    assert "The lock has been held since 2026-11-20 12:00:00 UTC (" in failure(stub, "state", "declare", NAME)


def test_what_a_holder_writes_into_its_lock_cannot_forge_the_line(stub: ApiStub) -> None:
    stub.reply(refusal(423, "locked", "locked by a\n\x1b[31mholdfast: done", held("$(rm -rf ~)")), Reply(500))

    line = failure(stub, "state", "declare", NAME)

    assert "a??[31mholdfast: done" in line
    assert "lock break network/prod '$(rm -rf ~)'" in line


@pytest.mark.parametrize(
    ("retry_after", "waited"),
    [
        (None, [0.5, 1.5, 3, 5]),
        ("0", [0.5, 1.5, 3, 5]),
        ("Wed, 21 Oct 2026 07:28:00 GMT", [0.5, 1.5, 3, 5]),
        ("9", [9, 9, 9, 9]),
        ("86400", [10, 10, 10, 10]),
    ],
)
def test_a_throttle_is_waited_for_as_long_as_it_says_and_told_after_some_retries(
    stub: ApiStub,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    retry_after: str | None,
    waited: list[float],
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("holdfast_cli.api.http.time.sleep", pauses.append)
    for name, value in environment(stub).items():
        monkeypatch.setenv(name, value)
    headers = {"Retry-After": retry_after} if retry_after else {}
    stub.reply(Reply(429, b'{"message":"Too Many Requests"}', headers))

    assert main(["state", "list"]) == 1
    assert "the management API receives too many requests" in capsys.readouterr().err
    assert len(stub.asked) == 5
    assert pauses == [pytest.approx(seconds, rel=0.5) for seconds in waited]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_connection_that_is_refused_is_told_without_the_class_of_a_library(scheme: str) -> None:
    line = failure(None, "state", "list", "--address", f"{scheme}://127.0.0.1:{free_port()}")

    assert "does not respond: Failed to establish" in line
    assert line.rstrip().endswith("Check the address and the network. Or start the local AWS with `make up`.")
    assert "Connection(" not in line


def test_a_port_without_tls_is_told_from_a_certificate_that_is_refused(stub: ApiStub) -> None:
    line = failure(None, "state", "list", "--address", stub.address.replace("http://", "https://"))

    assert line.startswith("holdfast: A TLS connection to 127.0.0.1:")
    assert line.rstrip().endswith("Check the address, and that the server responds to https://.")
    assert "ertificate" not in line
