"""Invokes the function `watch` of a deployed team, as its schedule does every hour."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast import watching
from holdfast.access import Role
from holdfast.identity.tokens import Token
from local_aws.server import LocalAws
from tests.support import documents
from tests.support.access_records import new_token
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


def ending_token(team: Team) -> Token:
    """Create a token that has begun to end soon a moment ago."""
    token, _ = new_token(team, Role.READER)
    now = datetime.now(UTC)
    ending = replace(token, created=now - timedelta(days=80), expires=now + watching.ENDS_SOON)
    team.put(token.key, ending.to_json())
    return token


def drive_watch(aws: LocalAws, team: Team, state: str) -> None:
    """Let the function read a lock, a token and its credentials, and publish a finding."""
    info = documents.lock_info()
    writer = team.client("writer")
    assert writer.lock(state, info).status == 200
    ending = ending_token(team).key
    team.put(watching.secret_key("any"), watching.secret("any", "wrong", watching.new_probe()))
    try:
        looked = look(aws, team.name)
        assert looked["probe"] == "the API responded to PUT /locks with 403", looked["probe"]
        assert looked["attention"] == 2  # the token, and credentials without one
    finally:
        for key in (ending, watching.secret_key("any")):
            team.s3.delete_object(Bucket=team.bucket, Key=key)
        assert writer.unlock(state, info).status == 200
