"""Options that several commands share."""

import argparse
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.access import Grant, Role, check_grants, purpose
from holdfast.state import operator
from holdfast_cli.config import rules
from holdfast_cli.errors import UsageError
from holdfast_cli.terminal.declaration import Option, either, option, renamed, several

if TYPE_CHECKING:
    from holdfast.identity.trust import Change

ROLES_HELP: Final = "".join(["roles:\n", *(f"  {role:<12} {purpose(role)}\n" for role in Role)])
"""The roles, each with what it allows, for the help."""


AGO: Final = (
    "a duration before now, such as 30d or 12h; a local time, such as 2026-11-01 or 2026-11-01T14:00; or a "
    "UTC time, with a final Z"
)
"""How to write a time in the past, for the help."""
FROM_NOW: Final = (
    "a duration from now, such as 90d or 2h; a local time, such as 2099-01-31 or 2099-01-31T14:00; or a UTC "
    "time, with a final Z"
)
"""How to write a time in the future, for the help."""

_TEAM: Final = option(
    "--team",
    type=rules.team,
    metavar="TEAM",
    help="the team whose stack is used; default: HOLDFAST_TEAM, else the profile's team, else the only "
    "deployed team",
)
PROFILE: Final = option(
    "--profile",
    type=rules.profile,
    metavar="NAME",
    help="a profile of `holdfast configure`; default: HOLDFAST_PROFILE, or else `default`. The "
    "settings of a profile that you name here have precedence over variables",
)
REGION: Final = option(
    "--region",
    type=rules.region,
    metavar="REGION",
    help="the AWS region; default: AWS_REGION or AWS_DEFAULT_REGION, else the profile's region, else the "
    "region of the AWS profile",
)
TEAM: Final = several(_TEAM, PROFILE, REGION)
"""Options that name a team, a profile and a region."""
ADDRESS_OR_TEAM: Final = several(
    either(
        _TEAM,
        option(
            "--address",
            type=rules.address,
            metavar="URL",
            help="the API's base URL; default: HOLDFAST_ADDRESS, or else the address of the profile or of "
            "the team's stack",
        ),
    ),
    PROFILE,
    REGION,
)
"""Options that name an API by its address or its team, a profile and a region."""
API: Final = several(
    option(
        "--address",
        type=rules.address,
        metavar="URL",
        help=(
            "the API's base URL; default: HOLDFAST_ADDRESS, else the profile's address, else the address in "
            "TF_HTTP_ADDRESS, else the host of the only TF_TOKEN_… variable with a token of Holdfast"
        ),
    ),
    PROFILE,
)
"""Options for a command that uses an API without AWS credentials: address and profile."""
STATE: Final = option(
    "state", type=rules.state, metavar="STATE", help="the state's name, such as network/prod"
)
PREFIX: Final = option(
    "states",
    nargs="?",
    type=rules.beginning,
    default=rules.Beginning(""),
    metavar="PREFIX|PATTERN",
    help="show only states whose names begin with PREFIX, such as network/, or match PATTERN, such as "
    "'*/prod'",
)
"""An optional prefix of states' names, or a pattern."""
REASON: Final = option(
    "--reason",
    required=True,
    type=rules.reason,
    metavar="TEXT",
    help=f"the reason, in one line of at most {operator.MAX_REASON} characters; other users see it",
)
NOTED_REASON: Final = option(
    "--reason",
    type=rules.reason,
    metavar="TEXT",
    help=f"the reason for the audit trail, in one line of at most {operator.MAX_REASON} characters",
)
"""An optional reason of a change that nobody else is shown with the state."""


LONG: Final = option(
    "--long",
    action="store_true",
    help="on a terminal, also print IDs, exact times and whole lines, as the command does in a pipe",
)
"""An option for a list that is brief on a terminal."""


def needs(access: str) -> str:
    """Return the sentence of the help on the AWS credentials that a command needs; it begins a line."""
    return f"""\
Needs AWS credentials that may {access} the
team's bucket. For the local AWS, run `set -a; . .local/aws.env; set +a`."""


def as_json(what: str = "one JSON object") -> Option:
    """Return the option --json."""
    return option("--json", action="store_true", help=f"print {what}")


def session_seconds(value: str) -> int:
    """Parse how long a session lasts, and return seconds."""
    from holdfast.identity.sessions import MAX_SECONDS, MIN_SECONDS

    seconds = int(rules.duration(value).total_seconds())
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{value!r} is not a duration from {_lifetimes()}")
    return seconds


def _lifetimes(longest: int | None = None) -> str:
    from holdfast.identity.sessions import MAX_SECONDS, MIN_SECONDS

    return " to ".join(rules.shown(timedelta(seconds=each)) for each in (MIN_SECONDS, longest or MAX_SECONDS))


def sign_in(default: int, longest: int | None = None) -> Option:
    """Return the options on whose credentials create a session, and how long it lasts.

    Args:
        default: seconds that it lasts without --duration.
        longest: seconds that it lasts at most, if the command allows less than the API.
    """
    return several(
        option("--oidc", action="store_true", help="sign in with an ID token, not with AWS credentials"),
        option("--id-token-file", type=Path, metavar="FILE", help="with --oidc: the file with the ID token"),
        option(
            "--audience",
            type=rules.unicode_text,
            metavar="TEXT",
            help="with --oidc in GitHub Actions: the audience of the ID token; default: the API's address",
        ),
        option(
            "--aws-profile",
            type=rules.unicode_text,
            metavar="NAME",
            help="the AWS profile that signs in; default: the AWS credentials of the environment",
        ),
        option(
            "--duration",
            type=session_seconds,
            metavar="DURATION",
            help=f"how long the session lasts, from {_lifetimes(longest)}; default: "
            f"{rules.shown(timedelta(seconds=default))}",
        ),
    )


def grants(*, replace: bool = False) -> Option:
    """Return the options --role, --scope and --grant; none is required if `replace` is true."""

    def explain(parser: "argparse._ActionsContainer") -> None:
        assert isinstance(parser, argparse.ArgumentParser)  # noqa: S101 no group has an epilog
        parser.epilog = f"{ROLES_HELP}\n{parser.epilog}"

    patterns = "the states: 'a/*' is everything below a, '*' is every state; may be repeated"
    return several(
        explain,
        either(
            option(
                "--role",
                choices=[role.value for role in Role],
                metavar="ROLE",
                help="the role to grant on the states that --scope names",
            ),
            option(
                "--grant",
                action="append",
                type=rules.grant,
                metavar="ROLE:PATTERN",
                help="a role and its states, such as writer:'a/*'; may be repeated, for several roles",
            ),
            required=not replace,
        ),
        option(
            "--scope",
            action="append",
            type=rules.scope,
            metavar="PATTERN",
            help=f"{patterns}; replaces the whole scope, so name every pattern" if replace else patterns,
        ),
    )


def granted(args: argparse.Namespace) -> tuple[Grant, ...]:
    """Return what --role and --scope, or --grant, say; raise `UsageError` if they do not fit together."""
    _check_scope(args)
    if args.role and not args.scope:
        raise UsageError("--role needs --scope. For example, --scope '*' covers every state.")
    try:
        return check_grants(args.grant or [Grant(Role(args.role), tuple(args.scope))])
    except ValueError as error:
        raise UsageError(f"The grants are not valid: {error}.") from error


def changed_grants(args: argparse.Namespace) -> "Change":
    """Return the change that --role, --scope and --grant ask for."""
    from holdfast.identity.trust import Change

    _check_scope(args)
    if args.grant:
        return Change(granted(args))
    return Change(role=None if args.role is None else Role(args.role), scope=args.scope)


def _check_scope(args: argparse.Namespace) -> None:
    if args.grant and args.scope:
        raise UsageError(
            f"--scope is only for --role. For more states, write `--grant {args.grant[0].role}:PATTERN`."
        )


ANYWHERE: Final = "anywhere"
"""The word of --from that removes a restriction."""


def networks(*, replace: bool = False) -> Option:
    """Return the option --from, which can remove a restriction if `replace` is true."""
    more = f"; replaces all networks; '{ANYWHERE}' removes the restriction" if replace else ""
    return option(
        "--from",
        dest="networks",
        action="append",
        type=_network_or_anywhere if replace else rules.network,
        metavar="CIDR",
        help=(
            "a network from which the API accepts the credentials, such as 203.0.113.0/24; needs the team's "
            f"setting `networks`; may be repeated{more}"
        ),
    )


def _network_or_anywhere(value: str) -> str:
    return value if value == ANYWHERE else rules.network(value)


def networks_of(args: argparse.Namespace) -> tuple[str, ...] | None:
    """Return the networks of --from, empty for anywhere; None if it is not given."""
    from holdfast.identity import records

    if args.networks is None:
        return None
    if args.networks == [ANYWHERE]:
        return ()
    try:
        return records.check_new_networks(args.networks)
    except ValueError as error:
        raise UsageError(f"The networks are not valid: {error}.") from error


def description(*, default: str | None = "") -> Option:
    """Return the option --description."""
    return option(
        "--description",
        default=default,
        type=rules.unicode_text,
        metavar="TEXT",
        help="a note on what the token or record is for",
    )


def owner(*, default: str | None = "") -> Option:
    """Return the option --owner."""
    of_owner = option(
        "--owner",
        default=default,
        type=rules.owner,
        metavar="WHO",
        help="who uses the token or record, such as bob@example.com; shown with locks and versions; Holdfast "
        "does not verify the owner",
    )
    return several(of_owner, renamed("--for", "--owner"))
