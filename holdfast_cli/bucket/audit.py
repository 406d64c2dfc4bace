"""Reads a team's audit log. Reading raises `UnavailableError` while AWS does not respond."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from botocore.exceptions import ClientError

from holdfast import audit_log
from holdfast import team as teams
from holdfast.audit import READINGS, audit_log_group
from holdfast.audit_log import FIRST_SPAN, GROWTH, milliseconds
from holdfast.names import RESERVED
from holdfast_cli.bucket.aws_errors import as_command_errors, code_of
from holdfast_cli.bucket.stack import CLIENT_CONFIG
from holdfast_cli.clock import Clock
from holdfast_cli.errors import CommandError, UnavailableError

if TYPE_CHECKING:
    from holdfast_cli.bucket.stack import Session
    from holdfast_cli.terminal.output import Progress

Event = Mapping[str, Any]
Events = dict[str, Event]
"""Events by ID, oldest first."""

_LONGEST_PATTERN: Final = 1024
"""The largest number of characters of a filter (API reference of FilterLogEvents)."""

_IN_FULL = {"principal": "subject"}
"""Field -> another field with the full text, because an event has only a digest of a long principal."""
NOTHING_TO_READ: Final = frozenset(
    {
        *("no_state", "no_version", "no_versions", "no_such_version", "no_resource", "no_workspace"),
        *("unreadable_state", "unreadable_version", "encrypted_state", "unknown_route"),
    }
)
"""The errors of requests that found nothing to read."""
_OF_A_WRITE: Final = ("lock_id", "held_by", "serial", "serial_before", "operation")
"""The fields of a refused request that would have changed something."""
_TOKEN: Final = "token:"  # noqa: S105 the prefix of a token's principal


LATEST: Final = timedelta(minutes=10)
"""The longest delay at which an event still counts as new. Lambda retries a failed delivery after one minute
and after two more minutes. The rest allows for clocks that differ: a signature may differ by five minutes."""


@dataclass(frozen=True, slots=True)
class Search:
    """The filter of a search for events.

    Attributes:
        fields: the value that an event must have, by the field's name.
        until: the end of the searched time, excluded; None for no end. `since`, the beginning, is included.
        kinds: the values that the field `event` may have; None for all values. With these, an event of a
            probe of `holdfast doctor` does not match.
    """

    fields: Mapping[str, str]
    since: datetime
    until: datetime | None = None
    kinds: Collection[str] | None = None


class LogsClient(Protocol):
    """The part of a CloudWatch Logs client that reading needs: FilterLogEvents, page by page."""

    def get_paginator(self, operation_name: Any, /) -> Any: ...


class Source(Protocol):
    """Events of the audit trail, and the clock of the server that has them."""

    def now(self) -> datetime:
        """Return the time by the server's clock."""

    def read(self, search: Search, progress: "Progress | None" = None) -> Events:
        """Return the events that match the search."""

    def newest(self, search: Search, count: int, progress: "Progress") -> Events:
        """Return the newest events that match, at most `count`."""


@dataclass(frozen=True, slots=True)
class Log:
    """The audit log of a team; `region` is the client's region, for messages."""

    client: LogsClient
    team: str
    region: str | None
    clock: Clock

    def now(self) -> datetime:
        """Return the time by AWS's clock. If AWS has not responded yet, a second of the log is read."""
        if not self.clock.is_heard:
            now = self.clock.now()
            self.read(Search({}, now, now + timedelta(seconds=1)))
        return self.clock.now()

    def read(self, search: Search, progress: "Progress | None" = None) -> Events:
        """Return the events that match the search."""
        name = audit_log_group(self.team)
        end = {} if search.until is None else {"endTime": milliseconds(search.until) - 1}
        found: Events = {}
        with as_command_errors():
            pages = self.client.get_paginator("filter_log_events").paginate(
                logGroupName=name, startTime=milliseconds(search.since), filterPattern=_pattern(search), **end
            )
            try:
                for page in pages:
                    if not audit_log.is_complete(page):
                        raise UnavailableError(
                            f"AWS returned only a part of the events in {name}. Run the command again."
                        )
                    for line in audit_log.lines(page):
                        if matches(line.event, search):
                            found.setdefault(line.id, line.event)
                    if progress:
                        progress.count(len(found), None, f"events read in {name}")
            except ClientError as error:
                if code_of(error) != "ResourceNotFoundException":
                    raise
                raise CommandError(
                    f"There is no log group {name} in {self.region}. Check the team and the region; "
                    "`holdfast "
                    "configure list` shows where they come from. If the stack is not deployed, run `npx cdk "
                    f"deploy {teams.stack_name(self.team)}`."
                ) from error
            finally:
                if progress:
                    progress.end()
        return ordered(found)

    def newest(self, search: Search, count: int, progress: "Progress") -> Events:
        """Return the newest events that match, at most `count`, without reading all older events."""
        # The log is read in adjoining time spans, from the newest span back to the oldest span.
        # Since June 2026 FilterLogEvents itself can begin with the newest event; the local AWS and older
        # SDKs cannot.
        found: Events = {}
        until, end, span = search.until, search.until or self.now(), FIRST_SPAN
        while len(found) < count:
            start = end - min(span, end - search.since)
            found |= self.read(replace(search, since=start, until=until), progress)
            if start <= search.since:
                break
            until, end, span = start, start, span * GROWTH
        return dict(list(ordered(found).items())[-count:])


def of_team(session: "Session", team: str) -> Log:
    """Return the audit log of a team."""
    with as_command_errors():
        return Log(session.client("logs", config=CLIENT_CONFIG), team, session.region_name, session.clock)


class Gap(NamedTuple):
    """Events of one log stream that are missing, by their numbers; `before` and `after` are times."""

    function: str
    stream: str
    first: int
    last: int
    before: str
    after: str


def gaps(events: Iterable[Event]) -> list[Gap]:
    """Return the numbers that are missing between the numbered events of each log stream.

    A process numbers its events from 1. Lambda may start another process with the same log stream.
    """
    streams: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for event in events:
        if isinstance(event.get("number"), int):
            streams.setdefault((event["function"], event["stream"]), []).append(
                (event["time"], event["number"])
            )
    found = []
    for (function, stream), numbered in streams.items():
        for (before, previous), (after, number) in pairwise(sorted(numbered)):
            expected = previous + 1 if number > previous else 1
            if number > expected:
                found.append(Gap(function, stream, expected, number - 1, before, after))
    return found


class Following:
    """Returns the new events of a source, each event once.

    Events can arrive late, so each call of `new` reads again the last minutes before the previous call. It
    leaves out the events that the previous call found; only the IDs of those events are kept.
    """

    def __init__(self, source: Source, search: Search) -> None:
        """Follow a source; the search must have no end."""
        self._source = source
        self._search = search
        self._known: Collection[str] = frozenset()

    def begin(self, count: int | None, progress: "Progress") -> Events:
        """Return the newest `count` events so far, or all if `count` is None. `new` returns later events."""
        whole = self._search
        self._search = replace(whole, since=max(whole.since, self._source.now() - LATEST))
        recent = self.new()  # before the older events, so that no event is missed in between
        source = self._source
        begun = source.read(whole, progress) if count is None else source.newest(whole, count, progress)
        self._known = {*recent, *begun}
        return begun

    def new(self) -> Events:
        """Return the events that arrived since the last call that did not fail."""
        now = self._source.now()
        found = self._source.read(self._search)
        new = {name: event for name, event in found.items() if name not in self._known}
        self._known = frozenset(found)
        self._search = replace(self._search, since=max(self._search.since, now - LATEST))
        return new


def ordered(events: Events) -> Events:
    """Return events in the order of their times."""
    return dict(sorted(events.items(), key=lambda item: str(item[1].get("time", ""))))


def _pattern(search: Search) -> str:
    """Return a CloudWatch Logs filter that matches every event of the search, and few other events.

    A quoted term matches anywhere in the line. See
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
    """
    if search.kinds is not None and not search.fields:
        # Quoted terms cannot be joined by "and" and "or", so a filter for fields leaves out the kinds.
        return "{ " + " || ".join(f'($.event = "{kind}")' for kind in search.kinds) + " }"
    pattern = ""
    for value in search.fields.values():
        # The log line about a refused token has only the token's ID, without the prefix of a principal.
        term = f'"{value.removeprefix(_TOKEN)}"'
        longer = f"{pattern} {term}".lstrip()
        # JSON escapes some characters in the log line: the filter leaves out a value with such characters.
        if json.dumps(value.removeprefix(_TOKEN)) == term and len(longer) <= _LONGEST_PATTERN:
            pattern = longer
    return pattern


def matches(event: Event, search: Search) -> bool:
    """Return whether an event has the fields and the kind that a search asks for, whatever its time.

    The doctor's probes have no kind that is asked for.
    """
    is_wanted = search.kinds is None or (event.get("event") in search.kinds and not _is_probe(event))
    return is_wanted and all(
        value in (event.get(name), event.get(_IN_FULL.get(name, name))) or _tried(event, name, value)
        for name, value in search.fields.items()
    )


def is_reading(event: Event) -> bool:
    """Return whether an event is of a request that only read, found nothing to read, or was the doctor's."""
    return (
        event.get("event") in READINGS
        or _is_probe(event)
        or (event.get("error") in NOTHING_TO_READ and not any(event.get(name) for name in _OF_A_WRITE))
    )


def _is_probe(event: Event) -> bool:
    return str(event.get("state", "")).startswith(f"{RESERVED}/")


def _tried(event: Event, name: str, value: str) -> bool:
    """Return whether an event reports the refusal of the token whose principal is `value`."""
    return name == "principal" and event.get(name) is None and value == f"{_TOKEN}{event.get('token')}"
