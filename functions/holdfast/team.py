"""The rule for team names, and what a team's stack and its functions must name or know alike."""

import re
from datetime import timedelta
from typing import Final

NAME_RULE: Final = "1 to 25 lower-case letters, digits and '-', with a letter first"
"""The rule of `is_name` in words, for messages and documents."""

STACK_PREFIX: Final = "Holdfast-"
"""The beginning of a stack's name; the team's name follows."""
TAG: Final = "holdfast:team"
"""The tag of a stack and its resources; its value is the team's name."""

API_ADDRESS: Final = "ApiAddress"
"""The stack's output with the base URL of the API."""
BUCKET_NAME: Final = "BucketName"
"""The stack's output with the name of the state bucket."""
NETWORKS: Final = "Networks"
"""The stack's output with the networks from which requests are accepted; missing without the setting."""
STATE_RETENTION: Final = "StateRetention"
"""The stack's output with the retention of each write; missing without retention."""
WATCHED: Final = "Watched"
"""The stack's output with the seconds after which a held lock is a finding of the function `watch`."""

LAMBDA_PYTHON: Final = "3.14"
"""The Python of the stack's functions on AWS."""

LAMBDA_PAYLOAD: Final = 6_291_456
"""The maximum size of a function's event and of its response, as JSON, in bytes (Lambda quotas)."""

CREDENTIALS_CACHED: Final = timedelta(seconds=60)
"""The time for which API Gateway caches an authentication. A revocation takes effect within this time."""

WARM_UP: Final = {"holdfast": "keep warm"}
"""The event of the schedule that keeps a process running. Compare the whole event with it: a client fills
headers, path, query and body of an event, and never its top level."""

LOGGED_PRINCIPAL: Final = "access_log"
"""The text of the authorizer's context that API Gateway writes to its access log."""

# The bucket's name, at most 63 characters, contains it.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,24}", re.ASCII)


def is_name(text: str) -> bool:
    """Return whether a text is a valid name of a team.

    >>> is_name("payments"), is_name("Payments")
    (True, False)
    """
    return _NAME.fullmatch(text) is not None


def stack_name(team: str) -> str:
    return f"{STACK_PREFIX}{team}"


def replica_stack_name(team: str) -> str:
    """Return the name of the stack with a team's replica; no team's stack has such a name."""
    return f"HoldfastReplica-{team}"


def bucket_name(team: str, account: str, region: str) -> str:
    return f"holdfast-{team}-{account}-{region}"


def transfers_role(team: str, region: str) -> str:
    """Return the name of the role that signs addresses, by which operators know it in AWS's findings."""
    return f"{stack_name(team)}-{region}-transfers"


def replication_role(team: str, region: str) -> str:
    """Return the name of the role by which S3 copies a team's state bucket of a region to its replica."""
    return f"{stack_name(team)}-{region}-replication"
