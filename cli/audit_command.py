"""`holdfast audit`: who did what, from the team's audit log."""

import argparse
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cli import arguments, output
from cli.errors import UsageError

if TYPE_CHECKING:
    from cli.arguments import Commands

_SINCE = timedelta(days=30)
# Name of the option's value to the event's field.
_FIELDS = ("state", "event", "principal", "version_id", "lock_id")
# The terminal cuts what is last.
_DETAILS = (
    *("error", "reason", "serial_before", "serial", "version_id", "lock_id", "held_by", "operation"),
    *("source_ip", "token", "session", "trust", "role"),
)


def add(commands: "Commands") -> None:
    """Add the command."""
    audit = arguments.command(
        commands,
        "audit",
        _run,
        short="show who did what",
        description="""\
Show what the team's audit log has on sign-ins, locks, reads, writes, deletes and
refusals, oldest first. Needs AWS credentials that may filter the events of that
log group; for the local AWS: set -a; . .local/aws.env; set +a.""",
        epilog="""\
examples:
  holdfast audit --state network/prod --since 7d
  holdfast audit --principal token:k2v9x0q7m3c1d8f5a6b4 --since 90d
  holdfast audit --version-id 01d6982f-9fff-469a-92e6-8e752d47eade
  holdfast audit --event sign_in.refused --since 2026-11-01 --until 2026-12-01 --json
""",
    )
    audit.add_argument("--state", type=arguments.state, metavar="STATE", help="only what was done to it")
    audit.add_argument("--event", type=_value, metavar="EVENT", help="only this, as state.written")
    audit.add_argument(
        "--principal",
        type=_value,
        metavar="WHO",
        help="only by them: a principal as token:<id>, or a subject in full",
    )
    audit.add_argument("--version-id", type=_value, metavar="ID", help="only about this version of a state")
    audit.add_argument("--lock-id", type=_value, metavar="ID", help="only about this lock")
    audit.add_argument(
        "--since",
        type=arguments.past,
        metavar="WHEN",
        help="from then on: 30d or 12h ago, or a date (UTC) as 2026-11-01; default: 30d",
    )
    audit.add_argument("--until", type=arguments.past, metavar="WHEN", help="before then; default: now")
    arguments.add_team(audit)
    arguments.add_json(audit, "one JSON object per line")


def _value(value: str) -> str:
    if not arguments.unicode_text(value):
        raise argparse.ArgumentTypeError("it is empty, and no event has that")
    return value


def _run(asked: argparse.Namespace) -> None:
    now = datetime.now(UTC)
    since = asked.since or now - _SINCE
    until = asked.until or now + timedelta(minutes=1)  # clocks differ
    if since >= until:
        raise UsageError("--since must be before --until.")

    from cli import audit, stack  # the SDK is loaded only by what talks to AWS

    session = stack.sign_in()
    team = asked.team or stack.find(session, None).team
    wanted = {name: str(value) for name in _FIELDS if (value := getattr(asked, name)) is not None}
    events = audit.read(session, team, audit.Search(wanted, since, until), output.Progress())
    if asked.json:
        if events:
            output.write("\n".join(json.dumps(event) for event in events))
    elif events:
        output.write(_table(events))
    else:
        output.write(
            f"The audit log of the team {team} has no such event since {output.moment(since)}; --since looks "
            "further back."
        )


def _table(events: list[dict[str, Any]]) -> str:
    rows = [
        [_time(event), _text(event, "event"), _who(event), _text(event, "state"), _details(event)]
        for event in events
    ]
    headings = ("TIME", "EVENT", "PRINCIPAL", "STATE", "DETAILS")
    return output.table(headings, rows, cut=("DETAILS", "PRINCIPAL", "STATE"))


def _time(event: dict[str, Any]) -> str:
    try:
        time = datetime.fromisoformat(_text(event, "time"))
    except ValueError:
        return _text(event, "time")
    return output.word(time) if time.tzinfo else _text(event, "time")


def _who(event: dict[str, Any]) -> str:
    """Whose doing it is; of who was refused before that was decided, what they are known by."""
    return _text(event, "principal") or _text(event, "subject")


def _text(event: dict[str, Any], name: str) -> str:
    value = event.get(name)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _details(event: dict[str, Any]) -> str:
    return " ".join(f"{name}={text}" for name in _DETAILS if (text := _text(event, name)))
