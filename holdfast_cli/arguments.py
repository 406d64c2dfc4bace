"""What several commands take: how options are read, and what is wrong usage."""

import argparse
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from holdfast import names
from holdfast.access import Role, check_pattern
from holdfast.errors import InvalidName
from holdfast.identity.credentials import is_token_id
from holdfast_cli import backend_config

if TYPE_CHECKING:
    from collections.abc import Callable

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 the type has no other name

_TEAM = re.compile(r"[a-z][a-z0-9-]{0,24}", re.ASCII)
_DURATION = re.compile(r"([0-9]{1,10})([dhms])", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_LONGEST = timedelta(days=36500)

ROLES_HELP = """\
roles:
  outputs      read a state reduced to its outputs
  reader       read states
  writer       read, lock and write states
  maintainer   also force-unlock and delete
"""


@dataclass(frozen=True, slots=True)
class Expiry:
    """An end that somebody asked for; None for never."""

    at: datetime | None


def command(
    commands: "Commands",
    name: str,
    run: "Callable[[argparse.Namespace], None]",
    *,
    short: str,
    description: str,
    epilog: str,
) -> argparse.ArgumentParser:
    """Add a command.

    Args:
        commands: where to.
        name: what is typed.
        run: does it.
        short: what the list of commands says.
        description: of its own help.
        epilog: ends its own help, with examples.
    """
    parser = _parser(commands, name, short, description, epilog)
    parser.set_defaults(run=run)
    return parser


def group(commands: "Commands", name: str, *, short: str, description: str, epilog: str) -> "Commands":
    """Add a command that has commands of its own."""
    parser = _parser(commands, name, short, description, epilog)
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def _parser(
    commands: "Commands", name: str, short: str, description: str, epilog: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=short,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


# --- options -------------------------------------------------------------------------------------


def add_team(parser: "argparse._ActionsContainer") -> None:
    """Let a command take a team."""
    parser.add_argument(
        "--team",
        type=team,
        default=os.environ.get("HOLDFAST_TEAM") or None,
        metavar="TEAM",
        help="whose stack; default: HOLDFAST_TEAM, or else the only one that is deployed",
    )


def add_json(parser: argparse.ArgumentParser, what: str = "one JSON object") -> None:
    """Let a command print JSON."""
    parser.add_argument("--json", action="store_true", help=f"print {what}")


def add_role_and_scope(parser: argparse.ArgumentParser) -> None:
    """Let a command take what somebody may do, and to which states."""
    parser.add_argument("--role", required=True, choices=[role.value for role in Role], help="what it may do")
    parser.add_argument(
        "--scope",
        required=True,
        action="append",
        type=scope,
        metavar="PATTERN",
        help="to which states: 'a/*' is everything below a, '*' alone is every state; may be repeated",
    )


def add_description(parser: argparse.ArgumentParser) -> None:
    """Let a command take a note."""
    parser.add_argument(
        "--description", default="", type=unicode_text, metavar="TEXT", help="a note on what it is for"
    )


# --- their values: what is wrong is an `argparse.ArgumentTypeError` ------------------------------


def team(value: str) -> str:
    """A team's name."""
    if not _TEAM.fullmatch(value):
        raise argparse.ArgumentTypeError(
            f"{value!r} is no team name: lower-case letters, digits and '-', 25 at most, a letter first"
        )
    return value


def scope(value: str) -> str:
    """A scope pattern."""
    if "**" in value:
        raise argparse.ArgumentTypeError(
            f"{value!r} has '**'; everything below a name is 'name/*', every state '*'"
        )
    try:
        return check_pattern(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def state(value: str) -> names.StateName:
    """A state's name."""
    try:
        return names.parse(value)
    except InvalidName as error:
        raise argparse.ArgumentTypeError(error.message) from error


def address(value: str) -> str:
    """The base URL of an API, without a slash at the end."""
    try:
        return backend_config.check_address(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def token_id(value: str) -> str:
    """A token's ID."""
    if not is_token_id(value):
        # It may be the secret, which nobody shall find in a log.
        raise argparse.ArgumentTypeError("that is no token ID: 20 lower-case letters and digits")
    return value


def unicode_text(value: str) -> str:
    """A text; bytes of the command line that are none cannot stand in JSON."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError("the text is no valid UTF-8") from error
    return value


def duration(value: str) -> timedelta:
    """A time span such as `90d`, `12h`, `30m` or `0s`."""
    parts = _DURATION.fullmatch(value)
    if parts is None:
        raise argparse.ArgumentTypeError(
            f"{value!r} is no duration: a whole number with d, h, m or s, as in 12h"
        )
    try:
        span = timedelta(**{_UNITS[parts[2]]: int(parts[1])})
    except OverflowError:
        span = timedelta.max
    if span > _LONGEST:
        raise argparse.ArgumentTypeError(f"{value!r} is more than {_LONGEST.days}d")
    return span


def expiry(value: str) -> Expiry:
    """An end: a duration from now on, a date or `never`."""
    if value == "never":
        return Expiry(None)
    now = datetime.now(UTC)
    if _DATE.fullmatch(value):
        at = _date(value)
    elif _DURATION.fullmatch(value):
        at = now + duration(value)
    else:
        raise argparse.ArgumentTypeError(
            f"{value!r} is no expiry: a duration as 90d or 12h, a date as 2027-01-31, or never"
        )
    if at <= now:
        raise argparse.ArgumentTypeError(f"{value!r} has passed already")
    return Expiry(at)


def past(value: str) -> datetime:
    """A time in the past: a duration ago, or a date."""
    if _DATE.fullmatch(value):
        return _date(value)
    if _DURATION.fullmatch(value):
        return datetime.now(UTC) - duration(value)
    raise argparse.ArgumentTypeError(
        f"{value!r} is no time: a duration ago as 30d or 12h, or a date as 2027-01-31"
    )


def _date(value: str) -> datetime:
    try:
        return datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"there is no day {value}") from error
