"""teams.lock: a team that has a stack is not renamed, moved or robbed of its key."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import __version__
from holdfast_cdk.config import ConfigError
from holdfast_cdk.team_settings import Retention, Team
from holdfast_cdk.teams_lock import TeamsLock, placed

PAYMENTS = Team(name="payments", account="123456789012", region="eu-central-1")
BILLING = replace(PAYMENTS, name="billing")
ELSEWHERE = Team(name="elsewhere", account="999999999999", region="eu-central-1")
ANYWHERE = Team(name="anywhere")

ARN, OTHER_ARN = (
    f"arn:aws:kms:eu-central-1:123456789012:key/{digit * 8}-0000-4000-8000-000000000000" for digit in "ab"
)
EMPTY_STORE = "which would get a new stack without the states"


def lock_in(folder: Path) -> TeamsLock:
    """The lock file beside a teams file, as the next command reads it."""
    return TeamsLock(folder / "teams.toml")


def go(folder: Path, *teams: Team) -> bool:
    """Check and record the teams, as a command does."""
    lock = lock_in(folder)
    lock.check(teams)
    return lock.record(teams, [team.name for team in teams])


def stopped(folder: Path, *teams: Team) -> str:
    """The error line of a command, after the file's name. The command does not change the file."""
    path = folder / "teams.lock"
    before = path.read_bytes()
    with pytest.raises(ConfigError) as error:
        go(folder, *teams)
    line = str(error.value)
    assert path.read_bytes() == before
    assert line.isprintable()  # one line
    assert line.startswith(f"{path}: ")
    return line.removeprefix(f"{path}: ")


def or_let_it_go(folder: Path) -> str:
    """The end of a line about a team that is gone."""
    return (
        "In the teams file, restore [teams.payments]. If its stack was removed (docs/operate/removing.md) or "
        f"never deployed, remove [teams.payments] from {folder / 'teams.lock'}"
    )


def test_the_file_says_what_it_is_and_has_the_teams_by_name(tmp_path: Path) -> None:
    teams = (
        replace(PAYMENTS, retention=Retention(mode="governance", days=30)),
        Team(name="b", account="999999999999", key="s3"),
        ANYWHERE,
    )
    assert go(tmp_path, *teams)
    assert (tmp_path / "teams.lock").read_text() == (
        "# The place, keys and networks of each team's stack. `cdk` writes this file; commit it together "
        "with the\n"
        "# teams file. With it, `cdk` refuses to deploy a renamed or moved team, which would get a new stack "
        "without\n"
        "# its states. docs/operate/settings.md of Holdfast names the only cases in which to remove an "
        "entry.\n"
        "\n"
        "[teams.b]\n"
        'account = "999999999999"\n'
        'key = "s3"\n'
        "\n"
        "[teams.payments]\n"
        'account = "123456789012"\n'
        'region = "eu-central-1"\n'
        'key = "kms"\n'
    )
    assert [path.name for path in tmp_path.iterdir()] == ["teams.lock"]


def test_nothing_is_written_for_teams_that_do_not_say_where_they_are(tmp_path: Path) -> None:
    assert not go(tmp_path, ANYWHERE)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_written_only_when_it_changes(tmp_path: Path) -> None:
    assert go(tmp_path, PAYMENTS)
    path = tmp_path / "teams.lock"
    path.write_text(f"{path.read_text()}# a remark\n")
    assert not go(tmp_path, PAYMENTS, ANYWHERE)
    assert path.read_text().endswith("# a remark\n")
    assert go(tmp_path, BILLING, PAYMENTS)
    assert path.read_text().index("[teams.billing]") < path.read_text().index("[teams.payments]")


def test_a_checkout_that_cannot_be_written_is_enough_when_nothing_changes(tmp_path: Path) -> None:
    go(tmp_path, PAYMENTS)
    (tmp_path / "teams.lock.new").mkdir()  # no file can be written there
    assert not go(tmp_path, PAYMENTS)
    with pytest.raises(ConfigError) as error:
        go(tmp_path, PAYMENTS, BILLING)
    assert str(error.value) == f"{tmp_path / 'teams.lock'}: the file cannot be written: Is a directory"


def test_what_could_not_be_written_whole_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(tmp_path, PAYMENTS)
    before = (tmp_path / "teams.lock").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ConfigError, match="cannot be written: No space left on device"):
        go(tmp_path, PAYMENTS, BILLING)
    assert (tmp_path / "teams.lock").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["teams.lock"]


@pytest.mark.parametrize("now", [BILLING, Team(name="billing")])
def test_a_renamed_team_is_stopped_also_without_its_account(tmp_path: Path, now: Team) -> None:
    go(tmp_path, PAYMENTS, ELSEWHERE)
    assert stopped(tmp_path, now, ELSEWHERE) == (
        f"team 'payments' is recorded and seems to be renamed to 'billing', {EMPTY_STORE}. "
        f"{or_let_it_go(tmp_path)}"
    )


def test_each_name_that_a_team_can_have_got_is_named(tmp_path: Path) -> None:
    go(tmp_path, PAYMENTS)
    line = stopped(tmp_path, replace(PAYMENTS, name="cards"), BILLING, ANYWHERE, ELSEWHERE)
    assert "seems to be renamed to 'cards' or 'billing', " in line


def test_a_removed_team_is_stopped_until_its_entry_is_removed_too(tmp_path: Path) -> None:
    go(tmp_path, PAYMENTS, ELSEWHERE)
    assert stopped(tmp_path, ELSEWHERE) == (
        f"team 'payments' is recorded and is no longer in the teams file. {or_let_it_go(tmp_path)}"
    )
    path = tmp_path / "teams.lock"
    path.write_text(path.read_text().partition("[teams.payments]")[0])
    assert not go(tmp_path, ELSEWHERE)
    path.write_text("# none any more\n")
    assert not go(tmp_path, ANYWHERE)


def test_a_team_in_another_account_is_not_taken_for_the_renamed_one(tmp_path: Path) -> None:
    go(tmp_path, PAYMENTS)
    assert "is no longer in the teams file" in stopped(tmp_path, ELSEWHERE)


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (
            replace(PAYMENTS, account="999999999999"),
            "team 'payments' is recorded in the account 123456789012. It would now go to 999999999999, "
            f'{EMPTY_STORE}. In the teams file, write account = "123456789012" in [teams.payments], and use '
            "credentials for the account 123456789012",
        ),
        (
            replace(PAYMENTS, region="eu-west-1"),
            "team 'payments' is recorded in the region eu-central-1. It would now go to eu-west-1, "
            f'{EMPTY_STORE}. In the teams file, write region = "eu-central-1" in [teams.payments], and use '
            "credentials for the region eu-central-1",
        ),
        (
            replace(PAYMENTS, key="s3"),
            "team 'payments' is recorded with the key \"kms\". Without this key, its functions could not "
            'read the objects that the key encrypts. In the teams file, write previous_keys = ["kms"]. If no '
            "version of any object needs that key",
        ),
        (
            replace(PAYMENTS, key=ARN, previous_keys=("kms",)),
            f'team \'payments\' is recorded with key = "kms", and its functions may not use "{ARN}" yet. '
            f'First deploy key = "kms" with previous_keys = ["{ARN}"]. If the team has no stack',
        ),
    ],
)
def test_a_team_that_would_lose_its_states_is_stopped(tmp_path: Path, now: Team, message: str) -> None:
    go(tmp_path, PAYMENTS)
    otherwise = f"remove [teams.payments] from {tmp_path / 'teams.lock'}"
    unless = "" if now.key != "kms" else ". If the team has no stack there"
    assert stopped(tmp_path, now) == f"{message}{unless}, {otherwise}"


@pytest.mark.parametrize("first", ["kms", "s3", OTHER_ARN])
def test_a_key_changes_in_two_deployments_and_none_is_dropped(tmp_path: Path, first: str) -> None:
    def team(key: str, *previous: str) -> Team:
        return replace(PAYMENTS, key=key, previous_keys=previous)

    then = () if first == "s3" else (first,)
    go(tmp_path, team(first))
    assert f'may not use "{ARN}" yet' in stopped(tmp_path, team(ARN, *then))
    assert go(tmp_path, team(first, ARN))
    if then:
        assert f'write previous_keys = ["{first}"]' in stopped(tmp_path, team(ARN))
        assert f'write previous_keys = ["{ARN}"]' in stopped(tmp_path, team(first))
    assert go(tmp_path, team(ARN, *then))
    assert go(tmp_path, team(ARN, *then, "kms" if first == OTHER_ARN else OTHER_ARN))


def test_the_first_step_of_a_team_that_was_not_deployed_is_not_recorded(tmp_path: Path) -> None:
    def step(number: int) -> list[Team]:
        keys = {"key": ARN, "previous_keys": ("kms",)} if number == 2 else {"previous_keys": (ARN,) * number}
        return [replace(PAYMENTS, name=name, **keys) for name in "ab"]

    lock = lock_in(tmp_path)
    assert lock.record(step(0), [])  # a team without a record
    assert lock.record(step(1), ["a"])
    lock.check([step(2)[0], step(1)[1]])
    with pytest.raises(ConfigError, match=f"team 'b' is recorded with .* may not use \"{ARN}\" yet"):
        lock.check(step(2))
    assert lock.record(step(1), ["b"])
    lock.check(step(2))


def test_a_key_without_states_is_dropped_by_removing_the_entry(tmp_path: Path) -> None:
    go(tmp_path, replace(PAYMENTS, key=ARN, previous_keys=("kms",)))
    stopped(tmp_path, replace(PAYMENTS, key=ARN))
    (tmp_path / "teams.lock").write_text("")
    assert go(tmp_path, replace(PAYMENTS, key=ARN))


def test_a_region_can_be_settled_later(tmp_path: Path) -> None:
    go(tmp_path, replace(PAYMENTS, region=None))
    assert go(tmp_path, PAYMENTS)
    assert "would now go to eu-west-1" in stopped(tmp_path, replace(PAYMENTS, region="eu-west-1"))


def test_a_team_that_leaves_its_place_open_goes_where_the_credentials_lead() -> None:
    credentials = {"CDK_DEFAULT_ACCOUNT": "123456789012", "CDK_DEFAULT_REGION": "eu-central-1"}
    assert placed([replace(ANYWHERE, name="payments"), ELSEWHERE], credentials) == (PAYMENTS, ELSEWHERE)
    nowhere = {"CDK_DEFAULT_ACCOUNT": "", "CDK_DEFAULT_REGION": "us-east-1"}  # without credentials
    assert placed([ANYWHERE], nowhere) == placed([ANYWHERE], {}) == (ANYWHERE,)
    local_aws = {"CDK_DEFAULT_ACCOUNT": "000000000000", "CDK_DEFAULT_REGION": "us-east-1"}
    assert placed([ANYWHERE], local_aws) == (ANYWHERE,)


def test_a_team_is_not_deployed_elsewhere_by_the_wrong_credentials(tmp_path: Path) -> None:
    go(tmp_path, PAYMENTS)
    wrong = {"CDK_DEFAULT_ACCOUNT": "999999999999", "CDK_DEFAULT_REGION": "eu-central-1"}
    (now,) = placed([Team(name="payments")], wrong)
    assert "would now go to 999999999999" in stopped(tmp_path, now)


def test_a_command_without_credentials_forgets_nothing(tmp_path: Path) -> None:
    go(tmp_path, PAYMENTS)
    assert not go(tmp_path, Team(name="payments"))
    assert go(tmp_path, Team(name="payments"), ELSEWHERE)
    assert '[teams.payments]\naccount = "123456789012"\nregion' in (tmp_path / "teams.lock").read_text()


def test_everything_else_of_a_team_can_be_changed(tmp_path: Path) -> None:
    go(tmp_path, PAYMENTS)
    assert not go(tmp_path, replace(PAYMENTS, require_lock=False, tags={"a": "b"}))


def test_each_teams_file_has_a_memory_of_its_own(tmp_path: Path) -> None:
    go(tmp_path, PAYMENTS)
    production = TeamsLock(tmp_path / "teams.production.toml")
    production.check([BILLING])
    assert production.record([BILLING], ["billing"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["teams.lock", "teams.production.lock"]


def test_a_teams_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "teams.lock"
    with pytest.raises(ConfigError) as error:
        TeamsLock(path)
    assert str(error.value) == f"{path}: the ending .lock is for the lock file; write -c teams=<name>.toml"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<<<<<<< ours\n", "the file is not valid TOML: "),
        (b"\xff", "the file is not UTF-8 text"),
        (b"[team.a]", f"Holdfast {__version__} has no setting 'team' outside the tables"),
        (b"teams = 1", "the file names no team; "),
        (b"[teams.a]", f"the file is not in the form that Holdfast {__version__} writes"),
        (b'[teams.a]\naccount = "1"', "team 'a': account = \"1\" is not allowed; "),
        (
            b'[teams.a]\naccount = "123456789012"\nrequire_lock = false',
            f"the file is not in the form that Holdfast {__version__} writes",
        ),
        (b"[teams.a]\nlater = 1", f"team 'a': Holdfast {__version__} has no setting 'later'; "),
        pytest.param(None, "the file cannot be read: Is a directory", id="a folder"),
    ],
)
def test_a_damaged_file_stops_in_one_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "teams.lock"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        lock_in(tmp_path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert str(error.value).endswith(
        "; restore the file from version control, or use the release of Holdfast that wrote it"
    )
    assert "\n" not in str(error.value)
