"""Reads a team's audit log."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from holdfast import json_object
from holdfast import team as teams
from holdfast.audit import audit_log_group
from holdfast_cli.aws_errors import as_command_errors
from holdfast_cli.errors import CommandError
from holdfast_cli.stack import CLIENT_CONFIG

if TYPE_CHECKING:
    import boto3

    from holdfast_cli.output import Progress

Event = dict[str, Any]

_LONGEST_PATTERN: Final = 1024
"""Characters of a filter (API reference of FilterLogEvents)."""

_IN_FULL = {"principal": "subject"}
"""Field to the field with its full text: a long principal is a digest."""
_TOKEN: Final = "token:"  # noqa: S105 the prefix of a token's principal


@dataclass(frozen=True, slots=True)
class Search:
    """The events to find.

    Attributes:
        fields: name to the value that an event must have there.
        since: the beginning of the time span, included.
        until: its end, excluded.
    """

    fields: Mapping[str, str]
    since: datetime
    until: datetime


def read(session: "boto3.Session", team: str, search: Search, progress: "Progress") -> list[Event]:
    """Find events, each once, oldest first.

    Raises:
        CommandError: there is no such log, or AWS does not allow it or does not respond.
    """
    name = audit_log_group(team)
    found: dict[str, Event] = {}
    with as_command_errors():
        logs = session.client("logs", config=CLIENT_CONFIG)
        pages = logs.get_paginator("filter_log_events").paginate(
            logGroupName=name,
            startTime=_milliseconds(search.since),
            endTime=_milliseconds(search.until) - 1,
            filterPattern=_pattern(search.fields),
        )
        try:
            for page in pages:
                if "events" not in page:  # the SDK reads a missing body as an empty one
                    raise CommandError(f"The response about {name} was cut short: run the command again.")
                for line in page["events"]:
                    event = _event(line["message"])
                    if event is not None and _matches(event, search.fields):
                        # An event is delivered at least once; a duplicate has the same ID.
                        found.setdefault(str(event.get("id", line["eventId"])), event)
                progress.show(f"{len(found)} events so far in {name}")
        except ClientError as error:
            if error.response["Error"].get("Code") != "ResourceNotFoundException":
                raise
            raise CommandError(
                f"There is no log group {name} in {session.region_name}: check the team and AWS_REGION, and "
                f"deploy the stack with `npx cdk deploy {teams.stack_name(team)}`."
            ) from error
        finally:
            progress.end()
    return sorted(found.values(), key=lambda event: str(event.get("time", "")))


def _milliseconds(time: datetime) -> int:
    return max(0, int(time.timestamp() * 1000))


def _pattern(fields: Mapping[str, str]) -> str:
    """Return a filter that matches every event with these values, and few others.

    A quoted term matches anywhere in the line. See
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
    """
    pattern = ""
    for value in fields.values():
        # The line of a refused token has only its ID.
        term = f'"{value.removeprefix(_TOKEN)}"'
        longer = f"{pattern} {term}".lstrip()
        # The line has characters escaped by JSON in another form: such a value is left out of the filter.
        if json.dumps(value.removeprefix(_TOKEN)) == term and len(longer) <= _LONGEST_PATTERN:
            pattern = longer
    return pattern


def _event(message: str) -> Event | None:
    try:
        return json_object.parse(message.encode())
    except ValueError:
        return None


def _matches(event: Event, fields: Mapping[str, str]) -> bool:
    return all(
        value in (event.get(name), event.get(_IN_FULL.get(name, name))) or _tried(event, name, value)
        for name, value in fields.items()
    )


def _tried(event: Event, name: str, value: str) -> bool:
    """Return whether somebody was refused with a token's ID: such an event has no principal."""
    return name == "principal" and event.get(name) is None and value == f"{_TOKEN}{event.get('token')}"
