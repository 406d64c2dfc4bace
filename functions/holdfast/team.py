"""The name of a team, and what the command knows of its CloudFormation stack."""

import re
from datetime import timedelta
from typing import Final

NAME_RULE: Final = "1 to 25 lower-case letters, digits and '-', with a letter first"
"""The rule of `is_name`, for messages and documents."""

STACK_PREFIX: Final = "Holdfast-"
"""The beginning of every stack's name; the team's name follows."""
TAG: Final = "holdfast:team"
"""The tag of a stack and of everything in it; its value is the team's name."""

SHARED_TRAIL: Final = "HoldfastTokenTrail"
"""The name of the trail that the teams of an account and region share, and of its stack. A team's stack, and
the trail that it once had, begin otherwise."""

API_ADDRESS: Final = "ApiAddress"
"""The stack's output with the base URL of the API."""
BUCKET_NAME: Final = "BucketName"
"""The stack's output with the name of the state bucket."""
STATE_RETENTION: Final = "StateRetention"
"""The stack's output with the retention of each write; a stack without retention does not have it."""

LAMBDA_PYTHON: Final = "3.14"
"""The Python of the stack's functions on AWS."""

CREDENTIALS_CACHED: Final = timedelta(seconds=60)
"""How long API Gateway caches what credentials may do: the time until a revocation takes effect."""

# The bucket's name, at most 63 characters, is made of it.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,24}", re.ASCII)


def is_name(text: str) -> bool:
    """Return whether a text is a valid name of a team.

    >>> is_name("payments"), is_name("Payments")
    (True, False)
    """
    return _NAME.fullmatch(text) is not None


def stack_name(team: str) -> str:
    return f"{STACK_PREFIX}{team}"


def bucket_name(team: str, account: str, region: str) -> str:
    return f"holdfast-{team}-{account}-{region}"
