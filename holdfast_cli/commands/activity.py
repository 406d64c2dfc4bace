"""`holdfast activity`: shows audit events of the states in the caller's scope, without AWS credentials."""

import argparse
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from holdfast.api.form import Document
from holdfast.audit import Event
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.commands import audit
from holdfast_cli.config import arguments, rules
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, option

if TYPE_CHECKING:
    from holdfast_cli.api.management import Api
    from holdfast_cli.bucket.audit import Events, Search

_SINCE: Final = rules.when("7d")
_LIMIT: Final = 50
_PAUSE: Final = 5.0
"""Seconds between two searches for new events: the management API has a throttle of its own."""

COMMAND = Command()


@dataclass(frozen=True, slots=True)
class _Activity:
    """The events in the caller's scope. The API selects by state and time, this command by all else."""

    api: "Api"
    is_followed: bool
    has_readings: bool

    def now(self) -> datetime:
        return self.api.now()

    def read(self, search: "Search", progress: output.Progress | None = None) -> "Events":  # noqa: ARG002 the API shows its own
        return self._found(search, None)

    def newest(self, search: "Search", count: int, progress: output.Progress) -> "Events":  # noqa: ARG002
        return self._found(search, count) if count else {}

    def _found(self, search: "Search", count: int | None) -> "Events":
        from holdfast_cli.bucket import audit as trail

        query = {
            "state": search.fields.get("state"),
            "since": output.word(search.since),
            "until": output.word(search.until) if search.until else None,
        }
        found: Events = {}
        with closing(self.api.pages(Document, "activity", "events", **query)) as listed:  # newest first
            for event in (document.raw for document in listed):
                is_wanted = self.has_readings or not trail.is_reading(event)
                if is_wanted and trail.matches(event, search) and not self._is_own(event, search):
                    found.setdefault(str(event.get("id") or json.dumps(event)), event)
                if len(found) == count:
                    break
        return trail.ordered(found)

    def _is_own(self, event: Mapping[str, Any], search: "Search") -> bool:
        """Return whether an event may be of a search itself: each one would print the one before."""
        kind = event.get("event")
        return self.is_followed and kind == Event.ACTIVITY_READ and kind != search.fields.get("event")


@COMMAND.define(
    """\
Show the audit events of one state, or of the states in your scope, oldest first:
writes, locks, deletes and refused requests. With the scope '*', the command also shows
events that belong to no state, such as refused sign-ins and changes of tokens and trust
records. With --all, it also shows reads, accepted sign-ins and the test requests of
`holdfast doctor`. Needs the role auditor or maintainer, and no AWS credentials.
`holdfast audit` shows the whole audit trail, and needs AWS credentials.

With --follow, the command searches every 5 seconds. It shows each event once, even an
event that arrives up to 10 minutes late. Each search causes an event `activity.read`,
which the command shows only if --event names this event.""",
    """\
  holdfast activity
  holdfast activity network/prod --since 30d
  holdfast activity network/prod --all
  holdfast activity --writes --follow
  holdfast activity --event lock.force_unlocked --since 2026-11-01T14:00Z --until 2026-11-02
  holdfast activity --principal k2v9x0q7m3c1d8f5a6b4
  holdfast activity network/prod --limit 500 --json
""",
    audit.selection(
        _SINCE,
        _LIMIT,
        option(
            "--all", action="store_true", help="also show reads and the test requests of `holdfast doctor`"
        ),
    ),
    arguments.API,
    arguments.LONG,
    arguments.as_json("one JSON array; with --follow one JSON object per line"),
)
def _run(args: argparse.Namespace) -> None:
    activity = _Activity(sign_in(args), args.follow, args.all or args.event is not None)
    search = audit.searched(args, _SINCE, activity.now)
    if args.follow:
        audit.follow(
            activity, search, args, "Waiting for events in your scope. Press Ctrl-C to stop.", _PAUSE
        )
    limit = args.limit or _LIMIT
    shown = list(activity.newest(search, limit, output.Progress()).values())
    if args.json:
        output.write_json(shown)
    elif shown:
        output.write(audit.table(shown, activity.now(), args))
    else:
        more = "" if activity.has_readings or args.writes else ", and --all to see reads"
        output.write(
            output.wrapped(
                f"There is no matching event since {output.moment(search.since)}. Use --since to see earlier "
                f"events{more}."
            )
        )
    if len(shown) == limit:
        output.tell(
            f"holdfast: --limit is {limit}. Use a larger --limit to see older events, if there are any."
        )
