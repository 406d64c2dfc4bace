"""`holdfast activity`: who did what to the states of the caller's scope, without AWS credentials."""

import argparse
import json
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from holdfast_cli.commands import audit
from holdfast_cli.config import arguments
from holdfast_cli.terminal import output

if TYPE_CHECKING:
    from holdfast_cli.config.arguments import Commands

_SINCE: Final = timedelta(days=7)
_LIMIT: Final = 50


def add(commands: "Commands") -> None:
    """Add the command."""
    activity = arguments.command(
        commands,
        "activity",
        _run,
        short="show who did what to the states in your scope",
        description="""\
Show the events of the audit trail about one state, or about all in your scope,
oldest first. It takes the role maintainer and no AWS credentials; `holdfast audit`
shows the whole trail, and needs them.""",
        epilog="""\
examples:
  holdfast activity
  holdfast activity network/prod --since 30d
  holdfast activity network/prod --limit 500 --json
""",
    )
    activity.add_argument(
        "state",
        nargs="?",
        type=arguments.state,
        default=None,
        metavar="STATE",
        help="only of this state; default: of all in your scope",
    )
    activity.add_argument(
        "--since",
        type=arguments.past,
        metavar="WHEN",
        help=(
            f"from then on: 30d or 12h ago, or a date (UTC) as 2026-11-01; default: {arguments.shown(_SINCE)}"
        ),
    )
    activity.add_argument(
        "--limit",
        type=arguments.count,
        default=_LIMIT,
        metavar="COUNT",
        help=f"only the newest COUNT; default: {_LIMIT}",
    )
    arguments.add_api(activity)
    arguments.add_json(activity, "one JSON array")


def _run(asked: argparse.Namespace) -> None:
    from holdfast_cli.api import management

    since = asked.since or datetime.now(UTC) - _SINCE
    query = {"state": None if asked.state is None else asked.state.value, "since": output.word(since)}
    found = management.sign_in(asked).pages("activity", "events", progress="events", **query)
    shown = list(islice(found, asked.limit))  # the newest come first
    found.close()
    shown.sort(key=lambda event: management.text(event, "time"))
    if asked.json:
        output.write(json.dumps(shown, indent=2))
    elif shown:
        output.write(audit.table(shown))
    else:
        output.write(
            output.wrapped(
                f"There is no such event since {output.moment(since)}; --since looks further back."
            )
        )
    if len(shown) == asked.limit:
        output.tell(f"holdfast: These are the newest {asked.limit}; --limit shows more, if there are any.")
