"""`holdfast audit`: shows events from the team's audit log."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from holdfast import timestamp
from holdfast.access import claimed, named
from holdfast.audit import EVENTS, WRITES, Event
from holdfast.identity.credentials import is_token_id
from holdfast_cli.api import trail_texts
from holdfast_cli.config import arguments, rules, settings
from holdfast_cli.errors import CommandError, UnavailableError, UsageError
from holdfast_cli.terminal import ages, output
from holdfast_cli.terminal.declaration import Command, Option, either, option, renamed, several
from holdfast_cli.terminal.flowing import flowing
from holdfast_cli.terminal.people import cut_inside, short_person

if TYPE_CHECKING:
    from holdfast_cli.bucket.audit import Search, Source

_SINCE: Final = rules.when("30d")
_PAUSE: Final = 2.0
"""Seconds between two searches for new events: CloudWatch Logs allows an account few requests a second."""
_EVENT_WIDTH: Final = max(map(len, EVENTS))
_WORDS_WIDTH: Final = max(map(len, trail_texts.EVENTS.values()))
_OPTIONS = ("state", "event", "principal", "version_id", "lock_id")
"""The fields of an event that an option of the same name selects by."""
DETAILS = (
    *("error", "reason", "serial_before", "serial", "version_id"),
    *("restored_from", "restored_serial", "lock_id", "held_by"),
    *("operation", "who", "freeze", "until", "source_ip", "token", "session", "trust", "role"),
)
"""The fields of an event that the last column of the table shows."""
NOT_DETAILS = frozenset(
    {
        *("principal", "owner", "subject", "state", "source", "marker_left", "status", "request_id"),
        *("stream", "number"),
    }
)
"""The fields that have their own column, and the fields that only --json shows."""

_SIGN_INS: Final = (Event.SIGN_IN_ACCEPTED, Event.SIGN_IN_REFUSED, Event.SIGN_IN_FAILED)
"""The events whose field `reason` is a code."""
_FREEZES: Final = (Event.STATE_FROZEN, Event.STATE_UNFROZEN)
_SAY_IT: Final = (Event.STATE_RESTORED, Event.STATE_UNDELETED)
"""The events whose words say the operation."""
_OF_ANOTHER: Final = (*_SAY_IT, Event.LOCK_FORCE_UNLOCKED)
"""The events whose operation is not shown: their words say it, or it is that of the removed lock."""
_USUAL: Final = ((Event.STATE_WRITTEN, "apply"),)
"""Events with the operation that they usually have, and that is not worth its room in a row."""
_HELD: Final = ("locked", "frozen")
"""The refusals that say how a lock is held."""

_CLIENTS: Final = (24, 20, 18, 16, 14, 12)
"""Lengths to which clients' names are cut, in characters."""

COMMAND = Command()


def _event(value: str) -> str:
    if value not in EVENTS:
        typed = value.lower()
        if code := next((each for each, words in trail_texts.EVENTS.items() if words == typed), None):
            raise argparse.ArgumentTypeError(f"{value!r} is not the code of an event; type {code}")
        raise argparse.ArgumentTypeError(
            f"{value!r} is not a valid event; this version knows {', '.join(EVENTS)}"
        )
    return value


def _principal(value: str) -> str:
    return f"token:{value}" if is_token_id(value) else _value(value)


def _value(value: str) -> str:
    if not rules.unicode_text(value):
        raise argparse.ArgumentTypeError("the value is empty; omit the option to see all events")
    return value


def selection(since: rules.When, limit: int | None = None, *more: Option) -> Option:
    """Return the argument and the options that select events.

    Args:
        since: the default of --since.
        limit: the default of --limit; None for no limit.
        more: options of one command that select by the kind of an event.
    """
    newest = "show only the newest COUNT of the selected events, oldest first"
    return several(
        option(
            "state",
            nargs="?",
            type=rules.state,
            default=None,
            metavar="STATE",
            help="show only events of this state",
        ),
        either(
            option(
                "--event",
                type=_event,
                metavar="EVENT",
                help=(
                    "show only events with this code, such as lock.force_unlocked for 'lock broken'; use "
                    "--long to see the codes"
                ),
            ),
            option(
                "--writes",
                action="store_true",
                help=(
                    f"show only events that changed a state: {', '.join(WRITES)}; without the test "
                    "requests of `holdfast doctor`"
                ),
            ),
            *more,
        ),
        option(
            "--principal",
            type=_principal,
            metavar="WHO",
            help=(
                "show only events of this caller: a token's ID, another principal, or the whole subject of "
                "an ID token"
            ),
        ),
        option("--version-id", type=_value, metavar="ID", help="show only events of this version of a state"),
        option("--lock-id", type=_value, metavar="ID", help="show only events of this lock"),
        option(
            "--since",
            type=rules.when,
            metavar="WHEN",
            help=f"the beginning of the period: {arguments.AGO}; default: {since.typed}",
        ),
        either(
            option(
                "--until",
                type=rules.when,
                metavar="WHEN",
                help="the end of the period, written as for --since; default: now",
            ),
            option(
                "--follow",
                action="store_true",
                help=(
                    "also show new events as they arrive, until Ctrl-C; without --since and --limit, show "
                    "only new events"
                ),
            ),
        ),
        option(
            "--limit",
            type=rules.count,
            metavar="COUNT",
            help=newest if limit is None else f"{newest}; default: {limit}",
        ),
    )


def searched(args: argparse.Namespace, default: rules.When, now: Callable[[], datetime]) -> "Search":
    """Return the search for the events that the options of `selection` select.

    Args:
        default: the default of --since.
        now: returns the time by the server's clock.

    Raises:
        UsageError: --since is not before --until.
    """
    from holdfast_cli.bucket import audit

    since = (args.since or default).before(now)
    until = args.until.before(now) if args.until else None
    if since >= (until or now() + timedelta(minutes=1)):  # clocks differ
        more = (
            ""
            if args.since and args.until
            else (f" By default, --since is {default.typed} ago and --until is now.")
        )
        raise UsageError(f"--since must be before --until.{more}")
    wanted = {name: str(value) for name in _OPTIONS if (value := getattr(args, name)) is not None}
    return audit.Search(wanted, since, until, WRITES if args.writes else None)


@COMMAND.define(
    """\
Show sign-ins, locks, reads, writes, deletes and denied requests from the team's audit
log, oldest first. For an unknown state or principal, the command shows no events.
Needs AWS credentials with logs:FilterLogEvents on the audit trail's log group. For the
local AWS, run `set -a; . .local/aws.env; set +a`.

Without AWS credentials, use `holdfast activity`, which shows the events of the states
in your scope.""",
    """\
  holdfast audit network/prod --since 7d
  holdfast audit --principal token:k2v9x0q7m3c1d8f5a6b4 --since 90d
  holdfast audit --version-id 01d6982f-9fff-469a-92e6-8e752d47eade
  holdfast audit --writes --limit 20
  holdfast audit --writes --follow --limit 10
  holdfast audit --gaps --since 7d
  holdfast audit --event sign_in.refused --since 2026-11-01 --until 2026-12-01 --json
""",
    selection(_SINCE),
    option(
        "--gaps",
        action="store_true",
        help=(
            "show only the sequence numbers of missing events, for a team with audit_archive; the exit code "
            "is 1 if events are missing"
        ),
    ),
    renamed("--state", "the argument STATE"),
    arguments.TEAM,
    arguments.LONG,
    arguments.as_json("one JSON object per line"),
)
def _run(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import audit, stack

    chosen = settings.resolve(args)
    session = stack.open_account(chosen)
    team = chosen.team or stack.find(session, None).team
    log = audit.of_team(session, team)
    search = searched(args, _SINCE, log.now)
    if args.gaps:
        _gaps(log, args, search)
        return
    if args.follow:
        follow(log, search, args, f"Waiting for events of the team {team}. Press Ctrl-C to stop.", _PAUSE)
    progress = output.Progress()
    found = log.newest(search, args.limit, progress) if args.limit else log.read(search, progress)
    events = list(found.values())
    if args.json:
        if events:
            output.write("\n".join(json.dumps(event) for event in events))
    elif events:
        output.write(table(events, log.now(), args))
    else:
        output.write(
            output.wrapped(
                f"The audit log of the team {team} has no matching event since "
                f"{output.moment(search.since)}. Use --since to see earlier events."
            )
        )


def _gaps(log: "Source", args: argparse.Namespace, search: "Search") -> None:
    """Print the numbers of missing events; raise `CommandError` if there are some."""
    from holdfast_cli.bucket import audit

    if search.fields or args.writes or args.limit or args.follow:
        raise UsageError(
            "--gaps checks all events of a period. You can combine it with --since and --until, but with no "
            "other option that selects events."
        )
    until = search.until or log.now() - audit.LATEST
    events = log.read(replace(search, until=until), output.Progress()).values()
    found = audit.gaps(events)
    if found and args.json:
        output.write("\n".join(json.dumps(gap._asdict()) for gap in found))
    elif found:
        rows = [
            [gap.function, gap.stream, f"{gap.first} to {gap.last}", gap.before, gap.after] for gap in found
        ]
        output.write(output.table(("FUNCTION", "STREAM", "MISSING", "AFTER", "BEFORE"), rows))
    elif not args.json:
        numbered = sum("number" in event for event in events)
        span = f"from {output.moment(search.since)} to {output.moment(until)}"
        output.write(
            output.wrapped(
                f"No event is missing between the numbered events {span}. Numbered events: {numbered}. This "
                "check cannot find events that are missing before the first or after the last number of a "
                "log stream."
            )
        )
    if found:
        missing = sum(gap.last - gap.first + 1 for gap in found)
        are = "1 event is" if missing == 1 else f"{missing} events are"
        raise CommandError(
            f"The sequence numbers show that {are} missing from the audit log. If the bucket of the archive "
            "has a failed delivery, send the delivery again, as docs/operate/audit.md says."
        )


def follow(
    source: "Source", search: "Search", args: argparse.Namespace, waiting: str, pause: float
) -> NoReturn:
    """Print new events as they arrive, until Ctrl-C. `pause` is the time between two searches in seconds."""
    from holdfast_cli.bucket import audit

    brief = output.is_brief(long=args.long)
    known = _Known()
    following = audit.Following(source, search)
    count = args.limit if args.limit or args.since else 0
    events = following.begin(count, output.Progress())
    if sys.stderr.isatty():
        output.tell(waiting)
    is_available = True
    while True:
        known.learn(events.values())
        if args.json:
            lines = [json.dumps(event) for event in events.values()]
        elif brief:
            lines = [_brief_line(each, known) for each in _folded(events.values())]
        else:
            lines = [_line(event) for event in events.values()]
        for line in lines:
            output.write(line)
        time.sleep(pause)
        try:
            events = following.new()
            is_available = True
        except UnavailableError as failure:
            events = {}
            if is_available:
                output.complain(f"The command continues to search for new events after an error: {failure}")
            is_available = False


def _line(event: Mapping[str, Any]) -> str:
    """Return an event as one line, not padded to columns. For a terminal, the line is wrapped at spaces."""
    return _joined(_cells(event), _EVENT_WIDTH)


def _brief_line(folded: "_Folded", known: "_Known") -> str:
    """Return events as `_line` does, with the exact time: it stays on the screen, where an age would not
    stay true."""
    return _joined([_time(folded.event, None), *_brief(folded, known)], _WORDS_WIDTH)


def _joined(cells: Iterable[str], width: int) -> str:
    time_, kind, *rest = (output.plain(text) or "-" for text in cells)
    line = "  ".join([time_, f"{kind:<{width}}", *rest])
    return output.wrapped(line, hanging=2)


def table(events: Sequence[Mapping[str, Any]], now: datetime, args: argparse.Namespace) -> str:
    """Return events of the audit trail as a table, with their ages; brief unless --long is given."""
    if output.is_brief(long=args.long):
        return _brief_table(events, now, has_states=args.state is None)
    rows = [_cells(event, now) for event in events]
    headings = ("TIME", "EVENT", "PRINCIPAL", "STATE", "DETAILS")
    return output.table(headings, rows)


def _brief_table(events: Sequence[Mapping[str, Any]], now: datetime, *, has_states: bool) -> str:
    """Return events as a table whose rows usually take one line.

    For that, clients' names are cut, but not more than needed, and never so that two look alike; details are
    cut at their ends.
    """
    known = _Known()
    known.learn(events)
    folded = _folded(events)
    headings = ("AGE", "EVENT", "WHO", "STATE", "DETAIL")
    columns = [number for number, name in enumerate(headings) if has_states or name != "STATE"]
    found: list[str] = []
    for longest in known.lengths():
        known.longest = longest
        rows = [(_age(each.event, now), *_brief(each, known)) for each in folded]
        picked = [[row[number] for number in columns] for row in (headings, *rows)]
        found.append(flowing(picked[0], picked[1:]))
        if found[-1].count("\n") == len(rows):
            break
    return min(found, key=lambda text: text.count("\n"))


class _Folded(NamedTuple):
    """An event, and in words how many states it is about; empty if it was not folded with others."""

    event: Mapping[str, Any]
    states: str


def _folded(events: Iterable[Mapping[str, Any]]) -> list[_Folded]:
    """Return events in their order, but those of the freeze of a pattern as one, and those of its end.

    Their event is that of the pattern. Without it they are not folded, because no event names all states.
    """
    listed = [(event, _freeze_of(event)) for event in events]
    names: dict[object, set[str]] = {}
    for event, freeze in listed:
        names.setdefault(freeze, set()).add(_text(event, "state"))
    of_patterns = {
        freeze for freeze, states in names.items() if freeze and any("*" in each for each in states)
    }
    found = []
    for event, freeze in listed:
        if freeze not in of_patterns:
            found.append(_Folded(event, ""))
        elif "*" in _text(event, "state") and freeze in names:  # a repeated freeze has more than one
            states = sum("*" not in name for name in names.pop(freeze))
            found.append(_Folded(event, f"{states} state{'' if states == 1 else 's'}" if states else ""))
    return found


def _freeze_of(event: Mapping[str, Any]) -> object:
    """Return what the events of one freeze have in common, or those of its end; None for another event."""
    kind, freeze = _text(event, "event"), _text(event, "freeze")
    return (kind, freeze, _text(event, "principal")) if kind in _FREEZES and freeze else None


class _Known:
    """Names of principals in some events that others lack.

    The owner in an event counts for all events of its principal. The name that a client says counts only for
    events of its principal with the same lock ID, because clients on several machines can share a token.

    Attributes:
        longest: to how many characters a client's name is cut; None if it is not cut.
    """

    def __init__(self) -> None:
        self.longest: int | None = None
        self._said: set[str] = set()
        self._of_locks: dict[tuple[str, str], str] = {}
        self._owners: dict[str, str] = {}
        self._trusts: dict[str, set[str]] = {}

    def learn(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add the names in events."""
        for event in events:
            principal, lock = _caller(event), _text(event, "lock_id")
            said = _text(event, "who")
            self._said.add(said)
            if lock and said and (of_lock := _text(event, "held_by") if _is_of_holder(event) else principal):
                self._of_locks[of_lock, lock] = said
            if owner := _text(event, "owner"):
                self._owners[principal] = owner
            if principal and (trust := _text(event, "trust")):
                self._trusts.setdefault(principal, set()).add(trust)

    def name(self, event: Mapping[str, Any]) -> str:
        """Return who caused an event, in a few words; empty if that is not known."""
        principal = _caller(event)
        owner = _text(event, "owner") or self._owners.get(principal, "")
        client = "" if _is_of_holder(event) else self._client(principal, event)
        return self._called(principal, owner, client, _text(event, "trust"))

    def holder(self, event: Mapping[str, Any]) -> str:
        """Return who held the lock or the freeze that an event is about; empty if the event does not say."""
        principal = _text(event, "held_by")
        trust, *others = self._trusts.get(principal) or [""]
        owner = self._owners.get(principal, "")
        return self._called(principal, owner, self._client(principal, event), "" if others else trust)

    def _client(self, principal: str, event: Mapping[str, Any]) -> str:
        """Return what the client says that acquired the lock of an event, with this principal."""
        return _text(event, "who") or self._of_locks.get((principal, _text(event, "lock_id")), "")

    def _called(self, principal: str, owner: str, client: str, trust: str) -> str:
        said = "" if client == principal else self._cut(client, self.longest)
        if trust and not (owner or said or principal.startswith("arn:")):
            return f"trust {trust}"
        return short_person(principal, owner, said) if principal else ""

    def lengths(self) -> Iterator[int | None]:
        """Yield values of `longest` that keep different names different, the longest first."""
        apart: list[int | None] = [
            most
            for most in _CLIENTS
            if len({self._cut(each, most) for each in self._said}) == len(self._said)
        ]
        yield from apart or [None]

    @staticmethod
    def _cut(client: str, most: int | None) -> str:
        return client if most is None else cut_inside(client, most)


def _caller(event: Mapping[str, Any]) -> str:
    return _text(event, "principal") or _text(event, "subject")


def _is_of_holder(event: Mapping[str, Any]) -> bool:
    """Return whether the lock in an event, and what a client says in it, is not of the event's caller."""
    return bool(event.get("held_by")) or event.get("event") == Event.LOCK_FORCE_UNLOCKED


def _brief(folded: _Folded, known: _Known) -> list[str]:
    """Return what happened in words, who did it, the state, and what else people ask for."""
    event = folded.event
    what = trail_texts.event(_text(event, "event"))
    return [what, known.name(event), _text(event, "state"), _told(folded, known)]


def _told(folded: _Folded, known: _Known) -> str:
    """Return an event's details in words and without IDs, with the reason at the end; empty without any."""
    event = folded.event
    kind = _text(event, "event")
    if kind in (Event.TOKEN_CHANGED, Event.TRUST_CHANGED):
        return _of_record(event)
    reason = _text(event, "reason")
    why = trail_texts.refusal(reason) if kind in _SIGN_INS else reason
    if why and kind in _SIGN_INS:
        return why
    facts = [_refused(event, known)] if _text(event, "error") else _facts(event, known)
    facts.append(folded.states)
    return ": ".join(filter(None, (", ".join(filter(None, facts)), why)))


def _refused(event: Mapping[str, Any], known: _Known) -> str:
    """Return why a request failed, with the name of who holds the lock that was in the way."""
    if _text(event, "event") == Event.REQUEST_FAILED:
        return "a fault of Holdfast"
    error, holder = _text(event, "error"), known.holder(event)
    return f"{error} by {holder}" if error in _HELD and holder else trail_texts.refusal(error)


def _facts(event: Mapping[str, Any], known: _Known) -> list[str]:
    """Return what a request did: the client's operation, whose lock it was about, and serials."""
    kind, holder = _text(event, "event"), known.holder(event)
    operation = trail_texts.operation(_text(event, "operation"))
    is_own_freeze = kind in _FREEZES and event.get("held_by") == event.get("principal")
    trust = f"trust {_text(event, 'trust')}"
    return [
        "" if (kind, operation) in _USUAL or kind in _OF_ANOTHER else operation,
        f"{'frozen' if kind in _FREEZES else 'held'} by {holder}" if holder and not is_own_freeze else "",
        trust if kind == Event.SESSION_CREATED and event.get("trust") and trust != known.name(event) else "",
        _serials(event),
    ]


def _serials(event: Mapping[str, Any]) -> str:
    """Return which serial was written; and which was restored, or was there before if it is not the next."""
    serial, before = _text(event, "serial"), _text(event, "serial_before")
    if serial and _text(event, "event") in _SAY_IT:
        restored = _text(event, "restored_serial")
        return f"serial {serial}, restored from serial {restored}" if restored else f"serial {serial}"
    is_jump = before.isdecimal() and serial.isdecimal() and int(serial) not in (int(before), int(before) + 1)
    return f"serial {before} to {serial}" if is_jump else f"serial {serial}" if serial else ""


def _of_record(event: Mapping[str, Any]) -> str:
    """Return whose record was changed, and whether it was removed; S3 says this of an object."""
    token = _text(event, "token")
    is_removed = _text(event, "operation").startswith("ObjectRemoved")
    parts = [short_person(f"token:{token}", "", "") if token else "", "removed" if is_removed else ""]
    return " ".join(filter(None, parts))


def _age(event: Mapping[str, Any], now: datetime) -> str:
    try:
        return ages.span(timestamp.parse(_text(event, "time")), now)
    except ValueError:
        return _text(event, "time")


def _cells(event: Mapping[str, Any], now: datetime | None = None) -> list[str]:
    return [_time(event, now), _text(event, "event"), _who(event), _text(event, "state"), _details(event)]


def _time(event: Mapping[str, Any], now: datetime | None) -> str:
    try:
        return output.word(timestamp.parse(_text(event, "time")), now)
    except ValueError:
        return _text(event, "time")


def _who(event: Mapping[str, Any]) -> str:
    """Return the principal with its owner, or the subject of a caller who was denied before having one."""
    principal = _text(event, "principal") or _text(event, "subject")
    return named(principal, _text(event, "owner"))


def _text(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _details(event: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_detail(text)}" for name in DETAILS if (text := _text(event, name)))


def _detail(text: str) -> str:
    """Return a value in quotes if it could pass for several fields: clients type `who`, for example."""
    return claimed(text) if " " in text and "=" in text else text
