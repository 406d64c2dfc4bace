"""`holdfast completion`: what a real bash completes, and that the other shells get everything too."""

import argparse
import json
import os
import re
import socket
import stat
from pathlib import Path
from typing import Final

import pytest

from holdfast.access import Role
from holdfast.identity.credentials import new_id
from holdfast_cli.commands.table import parser
from holdfast_cli.config import known_names
from holdfast_cli.main import main
from tests.support.api_stub import ApiStub, Reply
from tests.support.bash_completion import completions
from tests.support.cli_account import HOLDFAST, Aws
from tests.support.management import ID, SECRET, answer, environment, refusal

CREATE: Final = ("token", "create", "--role", "writer", "--scope", "network/*")


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def test_bash_completes_commands_options_choices_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "id-token.txt").touch()
    cases = {
        "holdfast to": "token",
        "holdfast token r": "rotate revoke",
        "holdfast token create --role ''": " ".join(Role),
        "holdfast token create --role w": "writer",
        "holdfast token create --role writer --sc": "--scope",
        "holdfast backend-config network/prod --o": "--outputs",
        "holdfast login --oidc --id-token-file i": "id-token.txt",
        "holdfast login --oi": "--oidc",
        "holdfast completion ''": "bash zsh fish",
    }

    found = completions("bash", script("bash", capsys), list(cases), tmp_path)

    assert dict(zip(cases, found, strict=True)) == cases


NAMES: Final = ["app", "network/eu/prod", "network/prod"]
PROFILES: Final = '[profiles.staging]\nteam = "payments"\n[profiles.prod]\naddress = "{}"\n'


@pytest.fixture
def user(stub: ApiStub, tmp_path: Path) -> dict[str, str]:
    """Return the variables of somebody who has signed in to a stub, and has profiles."""
    config = tmp_path / "config.toml"
    config.write_text(PROFILES.format("https://prod.example"))
    path = f"{Path(HOLDFAST).parent}:{os.environ['PATH']}"
    return environment(stub, HOME=str(tmp_path), HOLDFAST_CONFIG_FILE=str(config), PATH=path)


def names(*listed: str, next_: str | None = None) -> Reply:
    return answer({"names": listed, "next": next_})


def test_bash_completes_names_and_asks_for_them_once_a_minute(
    stub: ApiStub, tmp_path: Path, user: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {
        "holdfast state show net": "network/eu/prod network/prod",
        "holdfast state history --limit 3 a": "app",
        "holdfast state list network/e": "network/eu/prod",
        "holdfast console n": "network/eu/prod network/prod",
        "holdfast lock break ''": " ".join(NAMES),
        "holdfast state diff --profile ''": "prod staging",
        "holdfast configure remove st": "staging",
    }
    stub.reply(names(*NAMES[:2], next_="more"), names(NAMES[2]))

    found = completions("bash", script("bash", capsys), list(cases), tmp_path, user)

    assert dict(zip(cases, found, strict=True)) == cases
    paths = ["/manage/v1/names?pattern=%2A", "/manage/v1/names?pattern=%2A&cursor=more"]
    assert [asked.path for asked in stub.asked] == paths
    kept = tmp_path / ".cache" / "holdfast" / "names.json"
    assert (stat.S_IMODE(kept.stat().st_mode), stat.S_IMODE(kept.parent.stat().st_mode)) == (0o600, 0o700)
    assert SECRET not in kept.read_text()
    assert ID not in kept.read_text()


def test_names_are_those_of_the_api_and_the_caller_that_the_line_means(
    stub: ApiStub, tmp_path: Path, user: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    load, line = script("bash", capsys), "holdfast state show ''"
    stub.reply(names("one"), names("two"))
    other = {"TF_HTTP_USERNAME": new_id()}

    found = [
        *completions("bash", load, [line], tmp_path, user),
        *completions("bash", load, [line], tmp_path, user | other),
        *completions("bash", load, [line], tmp_path, user),
        *completions("bash", load, ["holdfast state show --address https://api.invalid ''"], tmp_path, user),
    ]

    assert found == ["one", "two", "one", ""]


def test_names_are_asked_for_again_after_a_minute(
    stub: ApiStub, tmp_path: Path, user: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    load, line = script("bash", capsys), "holdfast state show ''"
    stub.reply(names("one"), names("two"))
    kept = tmp_path / ".cache" / "holdfast" / "names.json"
    found = completions("bash", load, [line], tmp_path, user)
    document = json.loads(kept.read_text())
    for each in document.values():
        each["since"] -= known_names.SECONDS
    kept.write_text(json.dumps(document))

    assert [*found, *completions("bash", load, [line], tmp_path, user)] == ["one", "two"]
    assert [each["names"] for each in json.loads(kept.read_text()).values()] == [["two"]]


@pytest.mark.parametrize(
    ("replies", "changed", "asked"),
    [
        ([refusal(403, "not_allowed", "No.")], {}, 1),
        ([Reply(200, b"<html>")], {}, 1),
        ([names("$(touch${IFS}broken)", "a;b", "a b", "*", "-x", "\x1b[31m")], {}, 1),
        ([], {"TF_HTTP_PASSWORD": ""}, 0),
        ([], {"HOLDFAST_ADDRESS": "nowhere"}, 0),
        ([], {"HOLDFAST_CONFIG_FILE": "/dev/tty"}, 0),
    ],
    ids=["a refusal", "another server", "odd names", "no password", "no address", "no profiles"],
)
def test_what_goes_wrong_completes_nothing_prints_nothing_and_is_not_tried_again_at_once(
    stub: ApiStub,
    tmp_path: Path,
    user: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    replies: list[Reply],
    changed: dict[str, str],
    asked: int,
) -> None:
    stub.reply(*replies)
    before = {*tmp_path.iterdir()}

    # The helper asserts that nothing is printed on standard error.
    found = completions(
        "bash", script("bash", capsys), ["holdfast state show ''"] * 2, tmp_path, user | changed
    )

    assert found == ["", ""]
    assert len([one for one in stub.asked if one.path.startswith("/manage/v1/names")]) == asked
    assert {*tmp_path.iterdir()} - before <= {tmp_path / ".cache"}


def test_a_server_that_does_not_answer_is_waited_for_once_in_a_minute(
    tmp_path: Path, user: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        lines = ["holdfast state show ''"] * 2
        found = completions(
            "bash", script("bash", capsys), lines, tmp_path, user | {"HOLDFAST_ADDRESS": address}
        )
        assert found == ["", ""]
        silent.setblocking(False)
        with silent.accept()[0], pytest.raises(BlockingIOError):
            silent.accept()


def test_tokens_and_trust_records_complete_with_aws_credentials(
    aws: Aws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [json.loads(aws.output(*CREATE, "--json"))["id"] for _ in range(2)]
    aws.output("trust", "create", "developers", *CREATE[2:], "--aws-role", "Developer")
    path = f"{Path(HOLDFAST).parent}:{os.environ['PATH']}"
    user = {**aws.environment, "HOME": str(tmp_path), "PATH": path}
    cases = {
        "holdfast token show ''": " ".join(sorted(made)),
        f"holdfast token revoke {made[0][:8]}": made[0],
        "holdfast trust update dev": "developers",
        "holdfast trust remove ''": "developers",
    }

    found = completions("bash", script("bash", capsys), list(cases), tmp_path, user)

    assert dict(zip(cases, found, strict=True)) == cases


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_every_command_option_and_choice(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = [
        word
        for action in parser().actions()
        if action.help != argparse.SUPPRESS
        for word in (*action.option_strings, *(action.choices or ()))
    ]

    # A script for fish writes the dashes of an option in another way.
    printed = {word.strip("-") for word in re.findall(r"[\w-]+", script(shell, capsys))}
    assert {"undelete", "--scope", "writer"} <= set(known)
    assert {word.strip("-") for word in known} <= printed
