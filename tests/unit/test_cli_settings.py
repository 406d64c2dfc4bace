"""Address, team and region of a command: options, then the environment, then a profile of the user's file."""

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from unittest import mock

import pytest

from holdfast.identity.credentials import new_secret
from holdfast_cli.config import profiles, settings
from holdfast_cli.config.profiles import Settings
from holdfast_cli.errors import UsageError
from holdfast_cli.main import main
from tests.unit.test_commands import COMMANDS

FILE: Final = """\
[profiles.default]
address = "https://default.example.com/"
team = "default-team"
region = "eu-west-1"

[profiles.staging]
address = "https://staging.example.com"
team = "staging-team"

[profiles.of-a-team]
team = "payments"
region = "eu-west-3"
"""
A, B, DEFAULT, STAGING = (f"https://{name}.example.com" for name in ("a", "b", "default", "staging"))
TEAM, THEIRS, REGION = "default-team", "staging-team", "eu-west-1"
AT_A, TEAM_X = {"HOLDFAST_ADDRESS": A}, {"HOLDFAST_TEAM": "x"}
EAST, WEST = {"AWS_REGION": "us-east-1"}, {"AWS_DEFAULT_REGION": "us-west-1"}
OF_STAGING, OF_A_TEAM = {"HOLDFAST_PROFILE": "staging"}, {"HOLDFAST_PROFILE": "of-a-team"}
TO_A, NOT_THE_TEAM = f"HOLDFAST_ADDRESS ({A})", " is used, not the team of the profile"
SECRET: Final = new_secret()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    return path


def asked(**typed: str) -> Namespace:
    """The options of a command that uses every setting."""
    return Namespace(**dict.fromkeys(("profile", "address", "team", "region")) | typed)


def of_stack(**typed: str) -> Namespace:
    """The options of a command that needs the stack."""
    return Namespace(**dict.fromkeys(("profile", "team", "region")) | typed)


def of_api(**typed: str) -> Namespace:
    """The options of a command that asks the API without AWS credentials."""
    return Namespace(**dict.fromkeys(("profile", "address")) | typed)


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        # Without more the profile `default` is used.
        (asked(), {}, Settings(DEFAULT, TEAM, REGION)),
        (of_stack(), {}, Settings(None, TEAM, REGION)),
        # The option names a profile, or else the variable. Profiles are not mixed.
        (asked(profile="staging"), {}, Settings(STAGING, THEIRS, None)),
        (asked(), {"HOLDFAST_PROFILE": "staging"}, Settings(STAGING, THEIRS, None)),
        (asked(profile="of-a-team"), OF_STAGING, Settings(None, "payments", "eu-west-3")),
        (asked(), {"HOLDFAST_PROFILE": ""}, Settings(DEFAULT, TEAM, REGION)),
        # Each setting comes from the first level that has it.
        (asked(address=A), {"HOLDFAST_ADDRESS": B}, Settings(A, TEAM, REGION)),
        (asked(), {"HOLDFAST_ADDRESS": B}, Settings(B, TEAM, REGION)),
        (asked(), {"HOLDFAST_ADDRESS": ""}, Settings(DEFAULT, TEAM, REGION)),
        (asked(region="us-east-1"), {"AWS_REGION": "us-east-2"}, Settings(DEFAULT, TEAM, "us-east-1")),
        (asked(), {**WEST, "AWS_REGION": "us-east-2"}, Settings(DEFAULT, TEAM, "us-east-2")),
        (asked(), WEST, Settings(DEFAULT, TEAM, "us-west-1")),
        # A profile that is typed is an option.
        (asked(profile="staging"), AT_A | TEAM_X | EAST, Settings(STAGING, THEIRS, "us-east-1")),
        (asked(profile="of-a-team"), {"HOLDFAST_ADDRESS": A}, Settings(None, "payments", "eu-west-3")),
        (asked(profile="staging", address=B), {"HOLDFAST_ADDRESS": A}, Settings(B, THEIRS, None)),
        # A command that finds no stack has an address, also where a team is named.
        (of_api(), {"HOLDFAST_TEAM": "x"}, Settings(DEFAULT, None, None)),
        (of_api(profile="staging"), {"HOLDFAST_TEAM": "x"}, Settings(STAGING, None, None)),
        (of_api(profile="of-a-team"), {"HOLDFAST_ADDRESS": A}, Settings(A, None, None)),
        (of_api(), {"HOLDFAST_TEAM": "x", "HOLDFAST_ADDRESS": A}, Settings(A, None, None)),
        # A team that is named with precedence has an address of its own.
        (asked(team="x"), {"HOLDFAST_ADDRESS": B}, Settings(None, "x", REGION)),
        (asked(), {"HOLDFAST_TEAM": "x"}, Settings(None, "x", REGION)),
        (asked(), {"HOLDFAST_TEAM": "x", "HOLDFAST_ADDRESS": B}, Settings(B, "x", REGION)),
        (asked(address=A), {"HOLDFAST_TEAM": "x"}, Settings(A, "x", REGION)),
        # A value that does not count is not checked.
        (of_stack(team="x"), {"HOLDFAST_TEAM": "X", "HOLDFAST_ADDRESS": "?"}, Settings(None, "x", REGION)),
    ],
)
def test_options_go_before_variables_and_these_before_the_profile(
    file: Path, options: Namespace, environment: dict[str, str], expected: Settings
) -> None:
    assert settings.resolve(options, environment | {"HOLDFAST_CONFIG_FILE": str(file)}) == expected


def test_without_a_file_there_are_options_and_variables(tmp_path: Path) -> None:
    for environment in ({"HOLDFAST_CONFIG_FILE": str(tmp_path / "none")}, {"HOME": str(tmp_path)}, {}):
        assert settings.resolve(asked(team="x"), environment) == Settings(None, "x", None)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.config/holdfast/config.toml"),
        ({"HOME": "/home/ada", "XDG_CONFIG_HOME": "/etc/xdg"}, "/etc/xdg/holdfast/config.toml"),
        ({"HOME": "/home/ada", "XDG_CONFIG_HOME": "here"}, "/home/ada/.config/holdfast/config.toml"),
        ({"HOME": "/home/ada", "HOLDFAST_CONFIG_FILE": "mine.toml"}, "mine.toml"),
        ({"HOME": "/home/ada", "HOLDFAST_CONFIG_FILE": "~/mine.toml"}, "/home/ada/mine.toml"),
        ({}, None),
    ],
)
def test_the_file_is_below_the_users_configuration(environment: dict[str, str], expected: str | None) -> None:
    assert profiles.path(environment) == (Path(expected) if expected else None)


@pytest.mark.parametrize(
    ("options", "environment", "line"),
    [
        (asked(), OF_STAGING | AT_A, f"{TO_A} is used, not the address of the profile staging."),
        (asked(), OF_A_TEAM | AT_A | EAST, f"{TO_A}{NOT_THE_TEAM} of-a-team."),
        (
            asked(),
            OF_A_TEAM | TEAM_X | EAST,
            f"HOLDFAST_TEAM (x){NOT_THE_TEAM} of-a-team; "
            "AWS_REGION (us-east-1) is used, not the region of the profile of-a-team.",
        ),
        (of_stack(), OF_STAGING | TEAM_X | AT_A, f"HOLDFAST_TEAM (x){NOT_THE_TEAM} staging."),
        # A variable that hides an address is named, also where no profile is named.
        (asked(), TEAM_X, "HOLDFAST_TEAM (x) is used, not the address of the profile default."),
        # A profile that is typed has no address, and the command finds no stack.
        (of_api(profile="of-a-team"), AT_A, f"{TO_A}{NOT_THE_TEAM} of-a-team."),
        (
            of_api(),
            {"HOLDFAST_TEAM": "x"},
            "HOLDFAST_TEAM is not used, because this command finds the API only by its address. The command "
            f"uses {DEFAULT} (profile default), which may be another team's. To use the team "
            "of HOLDFAST_TEAM, name the address of its API with --address.",
        ),
        (of_api(), {"HOLDFAST_TEAM": "default-team"}, None),
        (of_api(), {"HOLDFAST_TEAM": "x", "HOLDFAST_ADDRESS": A}, None),
        # A team of a profile has less precedence than HOLDFAST_ADDRESS, and a stack has its own address.
        (
            of_stack(),
            {"HOLDFAST_ADDRESS": A},
            f"HOLDFAST_ADDRESS ({A}) is not used: this command is for the stack of the team default-team "
            "(profile default).",
        ),
        (of_stack(), {"HOLDFAST_ADDRESS": A, "HOLDFAST_TEAM": "x"}, None),
        (of_stack(team="x"), {"HOLDFAST_ADDRESS": A}, None),
        (of_stack(), {"HOLDFAST_ADDRESS": "https://a:hunter2@b.c"}, None),
        (of_stack(), {"HOLDFAST_ADDRESS": DEFAULT}, None),
        # The same value, a setting that the profile lacks, typed options, and the default profile.
        (asked(), {"HOLDFAST_PROFILE": "staging", "HOLDFAST_ADDRESS": STAGING}, None),
        (asked(), {"HOLDFAST_PROFILE": "default", "AWS_REGION": "us-east-1"}, None),  # it has no region
        (of_stack(), {"HOLDFAST_PROFILE": "staging", "HOLDFAST_TEAM": "staging-team"}, None),
        (asked(profile="staging"), {"HOLDFAST_ADDRESS": A, "HOLDFAST_TEAM": "x"}, None),
        (asked(profile="staging", address=B), {"HOLDFAST_ADDRESS": A}, None),
        (asked(profile="staging", team="x"), {"HOLDFAST_TEAM": "y"}, None),
        (asked(), {"HOLDFAST_ADDRESS": A, "AWS_REGION": "us-east-1"}, None),
    ],
)
def test_a_variable_that_is_used_instead_of_a_profile_or_not_used_is_named(
    file: Path,
    capsys: pytest.CaptureFixture[str],
    options: Namespace,
    environment: dict[str, str],
    line: str | None,
) -> None:
    settings.resolve(options, environment | {"HOLDFAST_CONFIG_FILE": str(file)})

    assert capsys.readouterr() == ("", f"holdfast: {line}\n" if line else "")


def test_of_many_profiles_ten_are_named(file: Path) -> None:
    file.write_text("".join(f"[profiles.p{number}]\n" for number in range(10, 22)))

    with pytest.raises(UsageError, match=r"The file has p10, .*p19 and 2 more\."):
        settings.resolve(asked(profile="x"), {"HOLDFAST_CONFIG_FILE": str(file)})


def test_of_a_profile_that_nobody_named_doctor_uses_the_region_alone(file: Path) -> None:
    environment = {"HOLDFAST_CONFIG_FILE": str(file)}

    assert settings.resolve(asked(), environment, default=False) == Settings(None, None, "eu-west-1")
    assert settings.resolve(asked(profile="default"), environment, default=False).address == DEFAULT


PROFILES: Final = "default, of-a-team, staging"


def run(file: Path | str, *arguments: str, **environment: str) -> int:
    environment = {"PATH": os.environ["PATH"], "HOLDFAST_CONFIG_FILE": str(file)} | environment
    with mock.patch.dict(os.environ, environment, clear=True):
        try:
            return main(arguments)
        except SystemExit as end:
            return int(end.code or 0)


@pytest.mark.parametrize(
    ("arguments", "environment", "says"),
    [
        (["--profile", "stagin"], {}, ("did you mean staging?", PROFILES, "AWS_PROFILE")),
        ([], {"HOLDFAST_PROFILE": "none"}, ("HOLDFAST_PROFILE: There is no profile none", PROFILES)),
        ([], {"HOLDFAST_PROFILE": "a b"}, ("HOLDFAST_PROFILE", "not a valid profile name")),
        (["--profile", ""], {}, ("not a valid profile name",)),
        (["--region", "Frankfurt"], {}, ("not a valid AWS region",)),
        ([], {"AWS_REGION": "eu_central_1"}, ("AWS_REGION", "not a valid AWS region")),
        ([], {"HOLDFAST_ADDRESS": "abc.example.com/x"}, ("HOLDFAST_ADDRESS", "put https:// before it")),
        (["--address", "localhost:4566"], {}, ("no scheme: put http:// before it",)),
        (["--address", f"https://abc.example.com/{SECRET}"], {}, ("looks like a secret", "rotate")),
        (["--team", SECRET], {}, ("looks like a secret", "rotate")),
        ([], {"HOLDFAST_TEAM": SECRET}, ("HOLDFAST_TEAM", "looks like a secret")),
    ],
)
def test_a_wrong_setting_is_wrong_usage_and_no_secret_is_shown(
    file: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    environment: dict[str, str],
    says: tuple[str, ...],
) -> None:
    assert run(file, "backend-config", "network/prod", *arguments, **environment) == 2

    output, errors = capsys.readouterr()
    assert output == ""
    assert all(word in errors.splitlines()[-1] for word in says)
    assert SECRET not in errors
    assert "hunter2" not in errors


BROKEN: Final[Mapping[str, tuple[str, str]]] = {
    "no TOML": ('[profiles.a]\nteam = "x"\n[profiles.b\n', "line 3"),
    "no UTF-8": ("[profiles.a]\nteam = '\udcff'", "not UTF-8, at byte 22"),
    "no end of tables": ("a = " + "[" * 1500, "not valid TOML"),
    "too large": ("# more\n" * 10_000, "more than 64 KiB"),
    "too long a line": (f"profiles.{'a.' * 1024}team = 'x'", "a line of more than 2000"),
    "profiles is no table": ("profiles = 1", "profiles is not a table"),
    "a profile is no table": ("[profiles]\na = 1", "the profile 'a' is not a table"),
    "no profile": ('team = "x"', "below [profiles.default]"),
    "no name of a profile": ('[profiles]\nteam = "x"', "below [profiles.default]"),
    "an odd name": ('[profiles."a b"]', "not a valid profile name"),
    "a number": ("[profiles.a]\nteam = 1", "team of the profile a is not a string"),
    "an unknown table": ('[profile.a]\nteam = "x"', "did you mean profiles?"),
    "an unknown key": ('[profiles.a]\nadress = "x"', "mean address? Allowed keys: address, team, region"),
    "a key of a secret": (
        '[profiles.a]\npassword = "hunter2"',
        "'password', and a profile must not have a secret",
    ),
    "an ID": ('[profiles.a]\ntoken_id = "hunter2"', "'token_id', and a profile must not have a secret"),
    "a secret as a key": (f'[profiles.a]\n{SECRET} = "x"', "looks like a secret"),
    "a secret as a value": (f'[profiles.a]\nteam = "{SECRET}"', "the profile a: the value looks like"),
    "credentials": ('[profiles.a]\naddress = "https://a:hunter2@b.c"', "must not contain credentials"),
    "no scheme": ('[profiles.a]\naddress = "abc.example.com"', "put https:// before it"),
    "a wrong team": ('[profiles.a]\nteam = "A"', "team of the profile a: 'A' is not a valid team name"),
    "a wrong region": ('[profiles.a]\nregion = "x"', "region of the profile a: 'x' is not a valid AWS"),
}


@pytest.mark.parametrize(("content", "says"), BROKEN.values(), ids=BROKEN)
def test_a_wrong_file_is_one_line_and_stays_as_it_is(
    file: Path, capsys: pytest.CaptureFixture[str], content: str, says: str
) -> None:
    before = content.encode(errors="surrogateescape")
    file.write_bytes(before)

    for arguments in (
        ["backend-config", "network/prod", "--address", A],
        ["configure", "--team", "payments"],
        ["configure", "remove", "a"],
    ):
        assert run(file, *arguments) == 2
        output, errors = capsys.readouterr()
        assert (output, len(errors.splitlines())) == ("", 1)
        assert str(file) in errors
        assert says in errors
        assert SECRET not in errors
        assert "hunter2" not in errors
    assert file.read_bytes() == before


def test_a_file_that_cannot_be_read_is_one_line_and_help_does_not_need_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "configure", "list") == 2
    assert capsys.readouterr() == ("", f"holdfast: {tmp_path} cannot be read: Is a directory.\n")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # reading one waits for somebody who writes
    assert [run(file, "configure", "list") for file in (pipe, "/dev/full")] == [2, 2]
    assert capsys.readouterr().err == "".join(
        f"holdfast: {file} is not a regular file.\n" for file in (pipe, "/dev/full")
    )
    assert [run(tmp_path, *arguments) for arguments in (["--version"], ["login", "--help"])] == [0, 0]


def test_a_file_in_a_folder_that_the_user_may_not_enter_counts_as_none(file: Path) -> None:
    with (
        mock.patch.object(Path, "stat", side_effect=PermissionError(13, "Permission denied")),
        mock.patch.object(os.path, "lexists", return_value=False) as lexists,
    ):
        assert profiles.read(file) == {}
        lexists.return_value = True
        with pytest.raises(UsageError, match="Permission denied"):
            profiles.read(file)


def test_every_command_that_names_a_team_takes_profile_and_region() -> None:
    options = {command.prog: command.format_usage() for command in COMMANDS}
    of_team = {name: usage for name, usage in options.items() if "--team" in usage}

    assert len(of_team) > 10
    assert [
        name for name, usage in of_team.items() if "--profile" not in usage or "--region" not in usage
    ] == []
