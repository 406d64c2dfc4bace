"""`holdfast activity`: shows audit events of the states in the caller's scope, without AWS credentials."""

import argparse
import json
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from holdfast.api.form import Document
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.commands import audit
from holdfast_cli.config import arguments, rules
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, option

_SINCE: Final = timedelta(days=7)
_LIMIT: Final = 50

COMMAND = Command()


@COMMAND.define(
    """\
Show the events of the audit trail about one state, or about all in your scope,
oldest first. It takes the role auditor or maintainer, and no AWS credentials;
`holdfast audit` shows the whole trail, and needs them.""",
    """\
  holdfast activity
  holdfast activity network/prod --since 30d
  holdfast activity network/prod --limit 500 --json
""",
    option(
        "state",
        nargs="?",
        type=rules.state,
        default=None,
        metavar="STATE",
        help="only of this state; default: of all in your scope",
    ),
    option(
        "--since",
        type=rules.past,
        metavar="WHEN",
        help=(f"from then on: 30d or 12h ago, or a date (UTC) as 2026-11-01; default: {rules.shown(_SINCE)}"),
    ),
    option(
        "--limit",
        type=rules.count,
        default=_LIMIT,
        metavar="COUNT",
        help=f"only the newest COUNT; default: {_LIMIT}",
    ),
    arguments.API,
    arguments.as_json("one JSON array"),
)
def _run(asked: argparse.Namespace) -> None:
    since = asked.since or datetime.now(UTC) - _SINCE
    query = {"state": None if asked.state is None else asked.state.value, "since": output.word(since)}
    events = sign_in(asked).pages(Document, "activity", "events", **query)
    shown = [event.raw for event in islice(events, asked.limit)]  # newest first
    events.close()
    shown.sort(key=lambda event: str(event.get("time", "")))
    if asked.json:
        output.write(json.dumps(shown, indent=2))
    elif shown:
        output.write(audit.table(shown))
    else:
        output.write(
            output.wrapped(
                f"There is no matching event since {output.moment(since)}; --since looks further back."
            )
        )
    if len(shown) == asked.limit:
        output.tell(f"holdfast: These are the newest {asked.limit}; --limit shows more, if there are any.")
