"""The audit trail of a deployed team, as it lies in its log group."""

import json
from typing import Any

from local_aws.server import LocalAws
from tests.support.deployed import client
from tests.support.team import Team


def audit_group(team: Team) -> str:
    """The name of the log group."""
    return f"/holdfast/{team.name}/audit"


def audit_events(aws: LocalAws, team: Team) -> list[dict[str, Any]]:
    """Every event so far, oldest first; each delivered event once, however often it was delivered."""
    logs = client(aws, "logs")
    found: dict[str, dict[str, Any]] = {}
    # The local AWS gives everything in one answer, up to 10,000 events; it has no pages.
    for line in logs.filter_log_events(logGroupName=audit_group(team))["events"]:
        event = json.loads(line["message"])
        found.setdefault(event["id"], event)
    return sorted(found.values(), key=lambda event: event["time"])
