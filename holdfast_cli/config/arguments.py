"""Options that several commands share."""

import argparse
from typing import Final

from holdfast.access import Role
from holdfast.state import operator
from holdfast_cli.config import rules
from holdfast_cli.terminal.declaration import Option, either, option, several


def _allows(role: Role) -> str:
    match role:
        case Role.OUTPUTS:
            return "read the outputs of states, at /outputs/"
        case Role.READER:
            return "read states"
        case Role.WRITER:
            return "read, lock and write states"
        case Role.MAINTAINER:
            return "also force-unlock and delete"


ROLES_HELP: Final = "".join(["roles:\n", *(f"  {role:<12} {_allows(role)}\n" for role in Role)])
"""The roles, each with what it allows, for the help."""


_TEAM: Final = option(
    "--team",
    type=rules.team,
    metavar="TEAM",
    help="whose stack; default: HOLDFAST_TEAM, else the profile's, else the only deployed one",
)
PROFILE: Final = option(
    "--profile",
    type=rules.profile,
    metavar="NAME",
    help="a profile of `holdfast configure`; default: HOLDFAST_PROFILE, or else `default`. A typed "
    "profile has precedence over variables",
)
REGION: Final = option(
    "--region",
    type=rules.region,
    metavar="REGION",
    help="of AWS; default: AWS_REGION, else the profile's, else the one of the AWS profile",
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
            help="the API's base URL; default: HOLDFAST_ADDRESS, or else the profile's",
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
        help="the API's base URL; default: HOLDFAST_ADDRESS, else the profile's, else that of "
        "TF_HTTP_ADDRESS or of the only TF_TOKEN_… of Holdfast",
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
    help="only states whose names begin so, as network/, or match, as '*/prod'",
)
"""An optional prefix of states' names, or a pattern."""
REASON: Final = option(
    "--reason",
    required=True,
    type=rules.reason,
    metavar="TEXT",
    help=f"why, in one line of at most {operator.MAX_REASON} characters; others are shown it",
)


def as_json(what: str = "one JSON object") -> Option:
    """Return the option --json."""
    return option("--json", action="store_true", help=f"print {what}")


def role_and_scope(*, replace: bool = False) -> Option:
    """Return the options --role and --scope; both are required unless `replace` is true."""

    def explain(parser: "argparse._ActionsContainer") -> None:
        assert isinstance(parser, argparse.ArgumentParser)  # noqa: S101 no group has an epilog
        parser.epilog = f"{ROLES_HELP}\n{parser.epilog}"

    patterns = "to which states: 'a/*' is everything below a, '*' alone is every state; may be repeated"
    return several(
        explain,
        option("--role", required=not replace, choices=[role.value for role in Role], help="what it may do"),
        option(
            "--scope",
            required=not replace,
            action="append",
            type=rules.scope,
            metavar="PATTERN",
            help=f"{patterns}; replaces the scope: name all of its patterns" if replace else patterns,
        ),
    )


def description(*, default: str | None = "") -> Option:
    """Return the option --description."""
    return option(
        "--description",
        default=default,
        type=rules.unicode_text,
        metavar="TEXT",
        help="a note on what it is for",
    )
