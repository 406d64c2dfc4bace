"""The audit trail of a deployed team, read from its log group."""

import json
import time
from typing import Any

from tests.support.aws_caller import aws_client
from tests.support.team import Team


def events(team: Team) -> list[dict[str, Any]]:
    """Return all events so far, oldest first."""
    pages = aws_client(team, "logs").get_paginator("filter_log_events")
    found = [
        json.loads(event["message"])
        for page in pages.paginate(logGroupName=f"/holdfast/{team.name}/audit")
        for event in page["events"]
    ]
    return sorted(found, key=lambda event: str(event["time"]))


def wait_for_events(team: Team, count: int, **fields: str) -> list[dict[str, Any]]:
    """Wait until `count` events have these fields, and return them; after a time limit, return fewer."""
    ends = time.monotonic() + 60
    while True:
        found = [event for event in events(team) if fields.items() <= event.items()]
        if len(found) >= count or time.monotonic() > ends:
            return found
        time.sleep(0.2)
