"""List the events of the audit trail, newest first, page by page.

CloudWatch Logs returns the oldest events first. So the search goes backwards in spans of time. A span ends
where the span before began. If the search found many events, the next span is shorter, else longer.
CloudWatch Logs may return many empty responses with a token before the first event of a span (API reference
of FilterLogEvents). Then the cursor contains the token, and the next page continues with this span.

Each day has log streams of its own. A request names those of its span, so that CloudWatch Logs does not
search all others. It refuses names that do not exist, as for a day without events: then the same span is
searched without names.
"""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, Protocol

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from gateway.responses import Response
from holdfast import audit, audit_log, names, timestamp
from holdfast.access import Action, Caller, check_pattern
from holdfast.api import v1
from holdfast.audit_log import FIRST_SPAN, GROWTH, Line, milliseconds
from holdfast.errors import InvalidName, InvalidRequest, OutcomeUnknown, StorageRefused
from holdfast.names import StateName
from holdfast.policy import Deployment
from holdfast.s3.sdk import sdk_session
from holdfast.state.freezing import patterns
from management import documents
from management.requests import Request, moment

_AUDIT_GROUP: Final = Deployment.from_environment("audit_group").audit_group

PAGE: Final = 200
"""The most events of a page, unless more happened in a single millisecond."""
MAX_REQUESTS: Final = 10
"""The most requests to CloudWatch Logs for one page."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULT_SINCE: Final = timedelta(hours=24)
_MILLISECOND: Final = timedelta(milliseconds=1)
_CLOCKS: Final = timedelta(minutes=1)
"""The most by which another function's clock may be ahead of this function's clock."""
_SECONDS: Final = 12.0
"""The time after which no request to CloudWatch Logs begins. A request can take 14 seconds with its retry."""
_RETRIED: Final = frozenset(
    {"ThrottlingException", "LimitExceededException", "ServiceUnavailableException", "InternalFailure"}
)
_CURSOR: Final = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9]{1,15})(?:([-/])([!-~]{0,2048}))?", re.ASCII)
_NOT_A_CURSOR: Final = (
    "This 'cursor' is not the 'next' of an earlier page of this list. Request the first page again, without "
    "'cursor'."
)


class LogsClient(Protocol):
    """The requests to CloudWatch Logs that this function sends."""

    def filter_log_events(self, **request: Any) -> dict[str, Any]: ...


@cache
def connect() -> LogsClient:
    """Return a client, created on first use: the SDK's description of CloudWatch Logs takes long to load."""
    config = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 2})
    create: Any = sdk_session().create_client
    client: LogsClient = create("logs", config=config)
    return client


@dataclass(frozen=True, slots=True)
class Place:
    """The time that is still to be searched, in milliseconds since 1970.

    Attributes:
        since: the beginning, included.
        until: the end, excluded.
        span: the milliseconds before the end that the next step searches.
        token: the token of CloudWatch Logs with which that step continues; empty for a new step.
        named: whether that step names its log streams. A token continues only the request that returned it.
    """

    since: int
    until: int
    span: int
    token: str = ""
    named: bool = True

    @property
    def start(self) -> int:
        """Return the beginning of the next look, in milliseconds since 1970."""
        return max(self.since, self.until - self.span)

    def __str__(self) -> str:
        return f"{self.since}-{self.until}-{self.span}{'/' if self.named else '-'}{self.token}"

    @classmethod
    def parse(cls, cursor: str) -> "Place":
        """Parse a cursor of an earlier page; raise `InvalidRequest` for any other text."""
        matched = _CURSOR.fullmatch(cursor)
        if matched is None:
            raise InvalidRequest(_NOT_A_CURSOR)
        since, until, span = (int(number) for number in matched.group(1, 2, 3))
        if not since < until or not span:
            raise InvalidRequest(_NOT_A_CURSOR)
        return cls(since, until, span, matched[5] or "", named=matched[4] != "-")

    def next(self, **changes: int) -> "Place":
        """Return the place of a new step."""
        return replace(self, token="", named=True, **changes)


def read(request: Request) -> Response:
    """Respond with events of the audit trail within the caller's scope."""
    parameters, caller = request.parameters, request.caller
    caller.require_somewhere(Action.READ_ACTIVITY)
    state = names.parse(parameters["state"]) if "state" in parameters else None
    if state:
        caller.require(Action.READ_ACTIVITY, state)
    lines, rest = _page(_place(parameters, datetime.now(UTC)), state, caller)
    return Response(
        documents.answer(
            v1.Activity(events=tuple(_fields(line.event) for line in lines), next=str(rest) if rest else None)
        ),
        {"state": state.value if state else None},
    )


def _place(parameters: Mapping[str, str], now: datetime) -> Place:
    """Return the time to search, from the cursor or from `since` and `until`."""
    latest = now + _CLOCKS
    until = (
        min(max(moment(parameters["until"], "until"), _EPOCH), latest) if "until" in parameters else latest
    )
    since = (
        moment(parameters["since"], "since") if "since" in parameters else min(until, now) - _DEFAULT_SINCE
    )
    if since >= until:
        end = "'until'" if "until" in parameters else "the current time"
        raise InvalidRequest(f"'since' must be before {end}, but it is {timestamp.write(since)}.")
    if "cursor" in parameters:
        return Place.parse(parameters["cursor"])
    return Place(milliseconds(since), milliseconds(until), FIRST_SPAN // _MILLISECOND)


def _page(place: Place, state: StateName | None, caller: Caller) -> tuple[list[Line], Place | None]:
    """Return events, newest first, and the time that is still to be searched; None if all is searched.

    The events may be empty if the searched time contains only events that the caller may not see.
    """
    events: list[Line] = []
    begun, budget = place, _Budget()
    while len(events) < PAGE and place.since < place.until and not budget.is_spent:
        try:
            lines, token = _look(place, state, caller, budget)
        except _NoSuchStreamError:
            place = replace(place, token="", named=False)
            continue
        except OutcomeUnknown:
            if place == begun:
                raise
            break  # keep the events so far; the next page continues
        if token and lines and place.span > 1:
            # The remaining requests were not enough, and they returned the oldest events: shorten the span.
            place = replace(place, span=max(1, (place.until - place.start) // GROWTH), token="")
            continue
        events += sorted(lines, key=lambda line: line.timestamp, reverse=True)
        if token:  # no event came yet, or all events are from one millisecond
            return events, replace(place, token=token)
        place = place.next(until=place.start, span=place.span * GROWTH)
    if len(events) > PAGE:
        events, end = _cut(events)
        place = place.next(until=end, span=place.span // GROWTH)
    return events, place if place.since < place.until else None


def _cut(lines: list[Line]) -> tuple[list[Line], int]:
    """Return the events of one page, and the time at which the next page ends.

    A page ends between two milliseconds, so that every event is on exactly one page.
    """
    end = lines[PAGE].timestamp
    kept = [line for line in lines if line.timestamp > end]
    if kept:
        return kept, end + 1
    return [line for line in lines if line.timestamp == end], end


class _NoSuchStreamError(Exception):
    """A request named a log stream that does not exist."""


class _Budget:
    """The requests to CloudWatch Logs that a page may send."""

    def __init__(self) -> None:
        self._left = MAX_REQUESTS
        self._end = time.monotonic() + _SECONDS

    @property
    def is_spent(self) -> bool:
        return self._left == 0 or time.monotonic() >= self._end

    def spend(self) -> None:
        self._left -= 1


def _look(place: Place, state: StateName | None, caller: Caller, budget: _Budget) -> tuple[list[Line], str]:
    """Return the next span's events that the caller may see, without duplicates, and a token.

    The token continues the span. It is empty if these are all events of the span.
    """
    request: dict[str, Any] = {
        "logGroupName": _AUDIT_GROUP,
        "startTime": place.start,
        "endTime": place.until - 1,
        # A phrase matches anywhere in a line. No character of a name needs escaping.
        **({"filterPattern": f'"{state}"'} if state else {}),
    }
    if place.named and (streams := audit_log.streams(place.start, place.until - 1)):
        request["logStreamNames"] = streams
    by_id: dict[str, Line] = {}
    token = place.token
    while True:  # at least one request: without a response, the span would seem to have no events
        budget.spend()
        page = _filtered({**request, "nextToken": token} if token else request)
        for line in _in_scope(audit_log.lines(page), caller):
            if state is None or line.event.get("state") == state.value:
                by_id.setdefault(line.id, line)
        token = page.get("nextToken", "")
        if not token or budget.is_spent:
            return list(by_id.values()), token


def _filtered(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        page = connect().filter_log_events(**request)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "ResourceNotFoundException" and "logStreamNames" in request:
            raise _NoSuchStreamError from error
        if code in _RETRIED or error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
            raise _unknown(code) from error
        if code == "InvalidParameterException" and "nextToken" in request:
            raise InvalidRequest(_NOT_A_CURSOR) from error
        raise StorageRefused(
            f"CloudWatch Logs refused to return the audit trail ({code}). This is a fault of the deployment: "
            "check the role of the function 'management' and the log group of the audit trail, then deploy "
            "again."
        ) from error
    except BotoCoreError as error:
        raise _unknown(type(error).__name__) from error
    if not audit_log.is_complete(page):
        raise _unknown("the response was cut short")
    return page


def _unknown(why: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"CloudWatch Logs could not return the audit trail ({why}). A retry is safe.")


def _in_scope(lines: Iterable[Line], caller: Caller) -> Iterable[Line]:
    """Return the events that the caller may read; the scope `*` also covers events without a state."""
    everything = caller.everywhere(Action.READ_ACTIVITY)
    return (line for line in lines if everything or _may_see(line.event.get("state"), caller))


def _may_see(state: object, caller: Caller) -> bool:
    try:
        if isinstance(state, str) and "*" in state:  # the pattern of a freeze
            return patterns.covers(caller, Action.READ_ACTIVITY, check_pattern(state))
        return isinstance(state, str) and caller.may(Action.READ_ACTIVITY, names.parse(state))
    except (InvalidName, ValueError):
        return False


def _fields(event: Mapping[str, Any]) -> Mapping[str, Any]:
    named = ((name, event.get(name)) for name in (*audit.ADDED_FIELDS, *audit.FIELDS))
    return {name: value for name, value in named if value is not None}
