"""Invokes the function `watch` of a deployed team, as its schedule does every hour."""

import json
from typing import Any

from holdfast import watching
from local_aws.server import LocalAws
from tests.support import documents
from tests.support.deployed import client, function_name
from tests.support.team import Team


def look(aws: LocalAws, team: str) -> dict[str, Any]:
    """Return what the function has found."""
    invoked = client(aws, "lambda").invoke(
        FunctionName=function_name(aws, f"Holdfast-{team}", "watch"), Qualifier="live", Payload=b"{}"
    )
    found: dict[str, Any] = json.load(invoked["Payload"])
    assert "FunctionError" not in invoked, found
    return found


def drive_watch(aws: LocalAws, team: Team, state: str) -> None:
    """Let the function read a lock, a token and its credentials, and publish a finding: a failed probe."""
    info = documents.lock_info()
    writer = team.client("writer")
    assert writer.lock(state, info).status == 200
    team.put(watching.secret_key("any"), watching.secret("any", "wrong"))
    assert look(aws, team.name)["probe"] == "403 for PUT /locks"
    team.s3.delete_object(Bucket=team.bucket, Key=watching.secret_key("any"))
    assert writer.unlock(state, info).status == 200
