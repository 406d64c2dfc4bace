"""Parses the values of options, variables and profiles; raises `ArgumentTypeError` for an invalid value."""

import argparse
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from holdfast import names, networks
from holdfast import team as teams
from holdfast.access import Grant, Role, check_pattern, matches
from holdfast.errors import HoldfastError, InvalidName, InvalidRequest
from holdfast.state import operator
from holdfast_cli.config import backend_config
from holdfast_cli.errors import UsageError
from holdfast_cli.terminal import output
from holdfast_cli.terminal.secrets import looks_secret

_DURATION = re.compile(r"([0-9]{1,10})([dhms])", re.ASCII)
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?",
    re.ASCII | re.IGNORECASE,
)
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}", re.ASCII)
_COUNT = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(B|KB|MB|GB)", re.ASCII | re.IGNORECASE)
_BYTES = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3}
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_LONGEST = timedelta(days=36500)

_PROFILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_REGION = re.compile(r"[a-z]+(-[a-z]+)+-[0-9]{1,2}", re.ASCII)
_TAGS = re.compile(r"[A-Za-z0-9_:-]+(,[A-Za-z0-9_:-]+)*", re.ASCII)
HOLDS_NONE: Final = (
    "looks like a secret, which is not allowed here. Remove it, and rotate the secret if others may have "
    "read it"
)
"""The end of the message about a value that looks like a secret. The value is never shown."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A filter for lists of states: the name begins with `prefix` and matches `pattern`, if not None."""

    prefix: str
    pattern: str | None = None

    def covers(self, name: str) -> bool:
        """Return whether `pattern` matches a name that has the prefix."""
        return self.pattern is None or covers(self.pattern, name)


@dataclass(frozen=True, slots=True)
class When:
    """A time that an option names: a duration from now, a time, or None for never.

    The server's clock says what now is, so it is known only after the server has responded.
    """

    typed: str
    at: timedelta | datetime | None

    def before(self, now: Callable[[], datetime]) -> datetime:
        """Return the time, a duration before now. `now` is called only for a duration."""
        assert self.at is not None  # noqa: S101 of `when`, which does not parse never
        return now() - self.at if isinstance(self.at, timedelta) else self.at

    def after(self, now: datetime) -> datetime | None:
        """Return the time in whole seconds, a duration after `now`; `UsageError` if it has passed already."""
        if self.at is None:
            return None
        at = (now + self.at if isinstance(self.at, timedelta) else self.at).replace(microsecond=0)
        if at <= now:
            raise UsageError(f"{self.typed!r} means {output.moment(at, now)}, which has passed already.")
        return at


def _refuse_secret(value: str) -> None:
    if looks_secret(value):
        raise argparse.ArgumentTypeError(f"the value {HOLDS_NONE}")


def _refuse_double_star(value: str) -> None:
    if "**" in value:
        raise argparse.ArgumentTypeError(
            f"{value!r} has '**'; write 'name/*' for everything below a name, or '*' for every state"
        )


def _check_form(form: re.Pattern[str], value: str, rule: str) -> re.Match[str]:
    """Match a whole value, and return the match; if there is no match, the error is the value and `rule`."""
    if (parts := form.fullmatch(value)) is None:
        raise argparse.ArgumentTypeError(f"{value!r} {rule}")
    return parts


def profile(value: str) -> str:
    """Check a profile's name, and return it."""
    _refuse_secret(value)
    _check_form(
        _PROFILE,
        value,
        "is not a valid profile name: use 1 to 64 letters, digits, '-' and '_', with a letter or digit first",
    )
    return value


def region(value: str) -> str:
    """Check the form of an AWS region, and return it."""
    _refuse_secret(value)
    _check_form(
        _REGION,
        value,
        "is not a valid AWS region: write words and a number, joined by '-', such as eu-central-1",
    )
    return value


def team(value: str) -> str:
    """Check a team's name, and return it."""
    _refuse_secret(value)
    if not teams.is_name(value):
        raise argparse.ArgumentTypeError(f"{value!r} is not a valid team name: {teams.NAME_RULE}")
    return value


def network(value: str) -> str:
    """Check a network in CIDR notation, and return it."""
    try:
        return networks.check([value])[0]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def grant(value: str) -> Grant:
    """Parse a role and one pattern, such as `writer:app/*`."""
    role, colon, pattern = value.partition(":")
    if not colon or role not in list(Role):
        raise argparse.ArgumentTypeError(
            f"{value!r} is not a valid grant: write ROLE:PATTERN, as in 'writer:app/*'; the roles are "
            f"{', '.join(Role)}"
        )
    return Grant(Role(role), (scope(pattern, f"--grant {role}:"),))


def scope(value: str, option: str = "--scope ") -> str:
    """Check a scope pattern, and return it. `option` is what the user types before it."""
    _refuse_double_star(value)
    try:
        # No name has one of these characters, so they can only be separators.
        several = [check_pattern(pattern) for pattern in re.split("[,; ]", value) if pattern]
        if len(several) > 1:
            repeated = " ".join(f"{option}{shlex.quote(pattern)}" for pattern in several)
            raise argparse.ArgumentTypeError(
                f"{value!r} is not one scope pattern: repeat {option.partition(' ')[0]}, as in {repeated}"
            )
        return check_pattern(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def state(value: str) -> names.StateName:
    """Parse a state's name."""
    try:
        return names.parse(value)
    except InvalidName as error:
        raise argparse.ArgumentTypeError(error.message) from error


def state_or_pattern(value: str) -> str:
    """Check a state's name or a pattern, and return it; a '*' is appended to a final '/'."""
    pattern = f"{value}*" if value.endswith("/") else value
    _refuse_double_star(pattern)
    try:
        return check_pattern(pattern) if "*" in pattern else names.parse(value).value
    except InvalidName as error:
        raise argparse.ArgumentTypeError(error.message) from error
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).replace("scope pattern", "pattern")) from error


def covers(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a name; False if the name is not valid for a state."""
    try:
        return matches(pattern, names.parse(name))
    except HoldfastError:  # an object that another program stored
        return False


def beginning(value: str) -> Beginning:
    """Parse a prefix of states' names, or a pattern of states' names."""
    _refuse_secret(value)
    if "*" in value:
        return Beginning(value.partition("*")[0], state_or_pattern(value))
    _check_form(
        _PREFIX,
        value,
        "is not the beginning of any state's name: write at most 200 letters, digits, '.', '_', '-' and '/', "
        "with a letter or digit first",
    )
    return Beginning(value)


def reason(value: str) -> str:
    """Check a reason, and return it. Other users see it with the change."""
    _refuse_secret(value)
    try:
        return operator.check_reason(value)
    except InvalidRequest as error:
        raise argparse.ArgumentTypeError(error.message) from error


def freeze_id(value: str) -> str:
    """Check a freeze's ID, and return it; it may be in brackets, as lists of locks show it."""
    try:
        return operator.check_id(value[1:-1] if value[:1] + value[-1:] == "[]" else value)
    except InvalidRequest:
        raise argparse.ArgumentTypeError(
            f"{value[:60]!r} is not the ID of a freeze, which has 32 digits from 0-9 and a-f"
        ) from None


def owner(value: str) -> str:
    """Check the owner of a token or a trust record, and return it. Others see it with locks and versions."""
    from holdfast.identity import records

    _refuse_secret(value)
    try:
        return records.owner(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{value!r} cannot be shown to others: {error}") from error


def count(value: str) -> int:
    """Parse a count, which is at least 1."""
    _check_form(_COUNT, value, "is not a valid count: write a whole number, at least 1")
    return int(value)


def size(value: str) -> int:
    """Parse a number of bytes such as `4MB` or `1.5GB`; units are powers of 1000, as in `max_state_mb`."""
    parts = _check_form(_SIZE, value, "is not a valid size: write a number with B, KB, MB or GB, as in 4MB")
    return int(float(parts[1]) * _BYTES[parts[2].upper()])


def tags(value: str) -> list[str]:
    """Parse a list of tags that are separated by commas."""
    _check_form(
        _TAGS,
        value,
        "is not a valid list of tags: use letters, digits, '-', '_' and ':', with ',' between tags",
    )
    return value.split(",")


def address(value: str) -> str:
    """Check an API's base URL, and return it without a slash at the end."""
    _refuse_secret(value)
    try:
        return backend_config.check_address(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def token_id(value: str) -> str:
    """Check a token's ID, and return it."""
    from holdfast.identity.credentials import is_token_id

    if not is_token_id(value):
        # The value may be the secret, which must not get into a log.
        raise argparse.ArgumentTypeError(
            "the value is not a valid token ID, which has 20 lower-case letters and digits"
        )
    return value


def trust_name(value: str) -> str:
    """Return the name of a trust record; that it exists is known later."""
    return value


def unicode_text(value: str) -> str:
    """Check that a text is valid Unicode, and return it; other bytes cannot be written as JSON."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError("the text is not valid UTF-8") from error
    return value


def duration(value: str) -> timedelta:
    """Parse a duration such as `90d`, `12h`, `30m` or `0s`."""
    parts = _check_form(
        _DURATION, value, "is not a valid duration: write a whole number with d, h, m or s, as in 12h"
    )
    try:
        span = timedelta(**{_UNITS[parts[2]]: int(parts[1])})
    except OverflowError:
        span = timedelta.max
    if span > _LONGEST:
        raise argparse.ArgumentTypeError(f"{value!r} is longer than {_LONGEST.days}d")
    return span


def shown(span: timedelta) -> str:
    """Return a duration in the form that `duration` parses.

    >>> shown(timedelta(days=90)), shown(timedelta(days=1)), shown(timedelta(minutes=5))
    ('90d', '24h', '5m')
    """
    for unit, name in _UNITS.items():
        one = timedelta(**{name: 1})
        fewest = 2 if unit == "d" else 1  # one day is written as 24h
        if span >= fewest * one and not span % one:
            return f"{span // one}{unit}"
    return f"{int(span.total_seconds())}s"


def expiry(value: str) -> When:
    """Parse when something ends: as `when`, or `never`."""
    return When(value, None) if value == "never" else when(value)


def when(value: str) -> When:
    """Parse a duration from now, as `12h`, or a time, as `local_time`."""
    if _DURATION.fullmatch(value):
        return When(value, duration(value))
    return When(value, local_time(value, also="a duration such as 12h, "))


def local_time(value: str, *, also: str = "") -> datetime:
    """Parse a time; a time without an offset is local. `ArgumentTypeError` if the value is not valid.

    Args:
        also: what else the user may write, for the error.
    """
    if is_time(value):
        with suppress(ValueError, OverflowError, OSError):
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
    raise argparse.ArgumentTypeError(
        f"{value!r} is not a valid time: write {also}a date such as 2026-11-20, or a time such as "
        "2026-11-20T14:00, which is local, or 2026-11-20T14:00Z"
    )


def is_time(value: str) -> bool:
    """Return whether a value has the form of a time."""
    return _TIME.fullmatch(value) is not None
