"""Invokes the function `watch` of a deployed team, as its schedule does every hour."""

import json
from typing import Any

from local_aws.server import LocalAws
from tests.support.deployed import client, function_name


def look(aws: LocalAws, team: str) -> dict[str, Any]:
    """Return what the function has found."""
    invoked = client(aws, "lambda").invoke(
        FunctionName=function_name(aws, f"Holdfast-{team}", "watch"), Qualifier="live", Payload=b"{}"
    )
    found: dict[str, Any] = json.load(invoked["Payload"])
    assert "FunctionError" not in invoked, found
    return found
