"""teams.toml and the CDK context: what is taken, and the one line that says what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.config import AWS, ConfigError, TeamConfig, load_teams, local, read_target

ROOT = Path(__file__).resolve().parents[3]


def write(folder: Path, text: str) -> Path:
    """Write a teams file."""
    path = folder / "teams.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_file_has_two_example_teams_with_safe_defaults() -> None:
    assert load_teams(ROOT / "teams.toml") == (
        TeamConfig(name="platform", account=None, region=None, require_lock=True),
        TeamConfig(name="payments", account=None, region=None, require_lock=True),
    )


def test_every_setting_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[teams.a-1]\naccount = "012345678901"\nregion = "eu-central-1"\nrequire_lock = false\n[teams.b]\n',
    )
    assert load_teams(path) == (
        TeamConfig(name="a-1", account="012345678901", region="eu-central-1", require_lock=False),
        TeamConfig(name="b"),
    )


ACCOUNT = 'write the 12 digits of an AWS account in quotes, as in "123456789012"'
NAME = "the name must be 1 to 25 lower-case letters, digits and '-', with a letter first"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no team; write a table [teams.<name>] for each"),
        ("[teams]", "names no team; write a table [teams.<name>] for each"),
        ("teams = 1", "names no team; write a table [teams.<name>] for each"),
        (
            "[team.a]",
            "unknown entry 'team'; everything stands in tables [teams.<name>]",
        ),
        (
            "[teams.a]\n[defaults]",
            "unknown entry 'defaults'; everything stands in tables [teams.<name>]",
        ),
        ("[teams]\na = 1", "team 'a': must be a table [teams.a]"),
        ("[teams.Payments]", f"team 'Payments': {NAME}"),
        ("[teams.1a]", f"team '1a': {NAME}"),
        ("[teams.a_b]", f"team 'a_b': {NAME}"),
        ("[teams.'a.b']", f"team 'a.b': {NAME}"),
        ("[teams.'ä']", f"team 'ä': {NAME}"),
        (f"[teams.{'a' * 26}]", f"team '{'a' * 26}': {NAME}"),
        (
            "[teams.a]\nrequire_locks = true",
            "team 'a': unknown setting 'require_locks'; allowed are account, region, require_lock",
        ),
        (
            '[teams.a]\nname = "b"',
            "team 'a': unknown setting 'name'; allowed are account, region, require_lock",
        ),
        (
            '[teams.a]\nrequire_lock = "false"',
            "team 'a': require_lock = 'false' is not allowed; write true or false, without quotes",
        ),
        (
            "[teams.a]\nrequire_lock = 0",
            "team 'a': require_lock = 0 is not allowed; write true or false, without quotes",
        ),
        (
            "[teams.a]\naccount = 123456789012",
            f"team 'a': account = 123456789012 is not allowed; {ACCOUNT}",
        ),
        ('[teams.a]\naccount = "12345"', f"team 'a': account = '12345' is not allowed; {ACCOUNT}"),
        ('[teams.a]\naccount = ""', f"team 'a': account = '' is not allowed; {ACCOUNT}"),
        (
            '[teams.a]\nregion = "eu-centrl-1"',
            "team 'a': region = 'eu-centrl-1' is not allowed; write an AWS region in quotes, "
            'as in "eu-central-1"',
        ),
        (
            "[teams.a]\nregion = 1",
            "team 'a': region = 1 is not allowed; write an AWS region in quotes, as in \"eu-central-1\"",
        ),
        (
            '[teams.a]\n[teams.b]\nregion = "US-WEST-2"',
            "team 'b': region = 'US-WEST-2' is not allowed; write an AWS region in quotes, "
            'as in "eu-central-1"',
        ),
    ],
)
def test_a_wrong_file_is_named_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load_teams(path)
    assert str(error.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[teams.a]\n[teams.a]\n", "is not TOML: "),  # two teams with the same name
        (b"[teams.a", "is not TOML: "),
        (b"[teams.\xff]", "is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_toml_is_named_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "teams.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        load_teams(path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load_teams(tmp_path / "teams.toml")
    assert str(error.value) == f"{tmp_path / 'teams.toml'}: cannot be read: No such file or directory"


def test_the_target_is_aws_unless_the_context_says_otherwise() -> None:
    endpoint = "http://127.0.0.1:4566"
    nothing: dict[str, str] = {}
    assert read_target(nothing.get) == read_target({"target": "aws"}.get) == AWS
    assert read_target({"target": "local", "local_endpoint": endpoint}.get) == local(endpoint)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"target": "azure"}, "-c target=azure is unknown; allowed are aws (the default) and local"),
        ({"target": "local"}, "-c target=local needs -c local_endpoint=<address>, "),
        ({"target": "local", "local_endpoint": "127.0.0.1:1"}, "-c target=local needs -c local_endpoint="),
        ({"target": "local", "local_endpoint": "http://a/"}, "-c target=local needs -c local_endpoint="),
        ({"local_endpoint": "http://a"}, "-c local_endpoint is for -c target=local; "),
    ],
)
def test_a_wrong_context_is_named_in_one_line(context: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_target(context.get)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_team_keeps_its_place_on_aws_and_loses_it_on_the_local_one() -> None:
    team = TeamConfig(name="a", account="123456789012", region="eu-west-1", require_lock=False)
    assert AWS.place(team) == team
    assert local("http://127.0.0.1:4566").place(team) == TeamConfig(
        name="a", account="000000000000", region="us-east-1", require_lock=False
    )


def test_the_app_ends_with_that_line_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path, '[teams.a]\nregion = "nowhere"')
    app = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=os.environ | {"CDK_CONTEXT_JSON": json.dumps({"teams": str(path)}), "CDK_OUTDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert app.returncode == 1
    assert app.stdout == ""
    assert app.stderr == (
        f"holdfast: {path}: team 'a': region = 'nowhere' is not allowed; write an AWS region in quotes, "
        'as in "eu-central-1"\n'
    )
