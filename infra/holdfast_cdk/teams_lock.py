"""teams.lock: records those settings of a team whose change would make its states unreadable or absent.

teams.lock is beside the teams file, in the same form; both are committed. A bucket's name is made of team,
account and region, so a renamed or moved team is a new stack with a new, empty bucket: the next `terraform
apply` would create everything a second time. The functions cannot read objects under a KMS key that they
may not use. And S3 may use a bucket's new key before the functions may: it is deployed among `previous_keys`
first. It also records the `networks` that were checked against the address of who deploys, so that the same
list is not checked again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

from holdfast import __version__
from holdfast.networks import covers
from holdfast_cdk.config import ConfigError, read_teams
from holdfast_cdk.settings import as_toml
from holdfast_cdk.team_settings import LOCAL_ACCOUNT, Team

_HEADER = """\
# The place, keys and networks of each team's stack. `cdk` writes this file; commit it together with the
# teams file. With it, `cdk` refuses to deploy a renamed or moved team, which would get a new stack without
# its states. docs/operate/settings.md of Holdfast names the only cases in which to remove an entry.
"""
_RESTORE = "restore the file from version control, or use the release of Holdfast that wrote it"
_REMEMBERED = ("account", "region", "key", "previous_keys", "networks")

LOOPBACK = "127.0.0.1"
ELSEWHERE = "elsewhere"
"""The word that takes the place of an address for who deploys from outside the networks."""


class TeamsLock:
    """The lock file beside a teams file, with the same name and the ending `.lock`."""

    def __init__(self, teams_file: Path) -> None:
        self.path = teams_file.with_suffix(".lock")
        if self.path == teams_file:
            raise ConfigError(
                f"{teams_file}: the ending .lock is for the lock file; write -c teams=<name>.toml"
            )
        self._known = _read(self.path)

    def check(self, teams: Sequence[Team]) -> None:
        """Raise `ConfigError` if a team was removed, renamed or moved, or if it swaps or drops its key.

        Nothing is written.
        """
        named = {team.name: team for team in teams}
        new = [team for team in teams if team.name not in {old.name for old in self._known}]
        for old in self._known:
            if problem := _moved(old, named[old.name]) if old.name in named else _gone(old, new):
                raise ConfigError(
                    f"{self.path}: team '{old.name}' is recorded {problem}, remove [teams.{old.name}] from "
                    f"{self.path}"
                )

    def check_networks(self, teams: Iterable[Team], address: object) -> None:
        """Raise `ConfigError` if new or changed networks would lock out who deploys.

        Args:
            teams: those that are deployed.
            address: the value of `-c address`; None without it.
        """
        checked = {team.name: team.networks for team in self._known}
        for team in teams:
            if team.networks and team.networks != checked.get(team.name) and address != ELSEWHERE:
                _check_address(team, address)

    def record(self, teams: Sequence[Team], deployed: Collection[str]) -> bool:
        """Write the teams' recorded settings; return whether the file changed.

        Args:
            deployed: the names of the teams that are deployed; the others keep their recorded keys and
                networks.
        """
        now = _recorded(teams, self._known, deployed)
        if now == self._known:
            return False
        try:
            _write(self.path, _content(now))
        except OSError as error:
            raise ConfigError(f"{self.path}: the file cannot be written: {error.strerror}") from None
        self._known = now
        return True


def placed(teams: Iterable[Team], environment: Mapping[str, str]) -> tuple[Team, ...]:
    """Return the teams with the account and region of their deployment.

    A team without these settings is deployed to the account and region of the credentials, which `cdk` passes
    to its app. If there are no credentials, or those of the local AWS, the teams are returned unchanged.
    """
    account = environment.get("CDK_DEFAULT_ACCOUNT") or None
    if account in (None, LOCAL_ACCOUNT):
        return tuple(teams)
    region = environment.get("CDK_DEFAULT_REGION") or None
    return tuple(
        replace(team, account=team.account or account, region=team.region or region) for team in teams
    )


def _moved(old: Team, now: Team) -> str | None:
    """Return what a team would lose, and what to write instead; None if no recorded setting changed."""
    for setting in ("account", "region"):
        before, after = getattr(old, setting), getattr(now, setting)
        if before and after and before != after:
            return (
                f"in the {setting} {before}. It would now go to {after}, which would get a new stack without "
                f"the states. In the teams file, write {setting} = {as_toml(before)} in [teams.{old.name}], "
                f"and use credentials for the {setting} {before}. If the team has no stack there"
            )
    if now.key not in ("s3", old.key, *old.kms_keys):
        before = as_toml([*old.previous_keys, now.key])
        return (
            f"with key = {as_toml(old.key)}, and its functions may not use {as_toml(now.key)} yet. First "
            f"deploy key = {as_toml(old.key)} with previous_keys = {before}. If the team has no stack"
        )
    if lost := [key for key in old.kms_keys if key not in now.kms_keys]:
        return (
            f"with the key {as_toml(lost[0])}. Without this key, its functions could not read the objects "
            f"that the key encrypts. In the teams file, write previous_keys = "
            f"{as_toml([*now.previous_keys, *lost])}. If no version of any object needs that key"
        )
    return None


def check_loopback(teams: Iterable[Team]) -> None:
    """Raise `ConfigError` if networks would refuse everybody: to the local AWS every client is 127.0.0.1."""
    for team in teams:
        if team.networks and not covers(team.networks, LOOPBACK):
            raise ConfigError(
                f"team '{team.name}': networks = {as_toml(team.networks)} lacks {LOOPBACK}, the address of "
                'every client of the local AWS; add "127.0.0.0/8"'
            )


def _check_address(team: Team, address: object) -> None:
    """Raise `ConfigError` unless an address is in a team's networks."""
    or_else = f"or -c address={ELSEWHERE} if you yourself need no access"
    if address is None:
        raise ConfigError(
            f"team '{team.name}': networks = {as_toml(team.networks)} is not deployed yet and may lock you "
            f"out. Repeat the `cdk` command with -c address=<your public address>, {or_else}. The option "
            "only checks that the list includes the address, which `curl https://checkip.amazonaws.com` "
            "prints"
        )
    try:
        IPv4Address(str(address))
    except ValueError:
        raise ConfigError(
            f"-c address={address} is not an IPv4 address, but all requests come from IPv4 addresses. Write "
            f"your public IPv4 address, such as 203.0.113.5, {or_else}"
        ) from None
    if not covers(team.networks, str(address)):
        raise ConfigError(
            f"team '{team.name}': networks = {as_toml(team.networks)} does not include {address} and would "
            f"lock you out. Add {address}/32 to the list, or use -c address={ELSEWHERE} if you yourself need "
            "no access"
        )


def _gone(old: Team, new: Sequence[Team]) -> str:
    renamed = [team for team in new if team.account == old.account]
    renamed = renamed or [team for team in new if team.account is None]
    became = "is no longer in the teams file"
    if renamed:
        names = " or ".join(f"'{team.name}'" for team in renamed)
        became = f"seems to be renamed to {names}, which would get a new stack without the states"
    return (
        f"and {became}. In the teams file, restore [teams.{old.name}]. If its stack was removed "
        "(docs/operate/removing.md) or never deployed"
    )


def _recorded(teams: Iterable[Team], known: Iterable[Team], deployed: Collection[str]) -> tuple[Team, ...]:
    """Return the file's records, sorted by name: a record for each team whose account is known."""
    before = {team.name: team for team in known}
    recorded = []
    for team in sorted(teams, key=lambda team: team.name):
        old = before.get(team.name, Team(name=team.name))
        account, region = team.account or old.account, team.region or old.region
        if account:
            keys_of = team if team.name in deployed or team.name not in before else old
            networks = team.networks if team.name in deployed else old.networks
            recorded.append(
                Team(
                    name=team.name,
                    account=account,
                    region=region,
                    key=keys_of.key,
                    previous_keys=keys_of.previous_keys,
                    networks=networks,
                )
            )
    return tuple(recorded)


def _content(teams: Iterable[Team]) -> str:
    content = [_HEADER]
    for team in teams:
        values = {setting: getattr(team, setting) for setting in _REMEMBERED}
        lines = [f"{setting} = {as_toml(value)}\n" for setting, value in values.items() if value]
        content.append(f"\n[teams.{team.name}]\n{''.join(lines)}")
    return "".join(content)


def _read(path: Path) -> tuple[Team, ...]:
    if not path.exists():
        return ()
    try:
        teams = read_teams(path)
    except ConfigError as error:
        raise ConfigError(f"{error}; {_RESTORE}") from None
    known = _recorded(teams, (), {team.name for team in teams})
    if {team.name: team for team in known} != {team.name: team for team in teams}:
        raise ConfigError(
            f"{path}: the file is not in the form that Holdfast {__version__} writes; {_RESTORE}"
        )
    return known


def _write(path: Path, content: str) -> None:
    """Replace the file atomically: a reader gets the old content or the new one."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_text(content, encoding="utf-8", newline="\n")
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise
