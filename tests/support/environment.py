"""The environment of the functions: every variable that a deployment sets for any function."""

from typing import Final

import pytest

SETTINGS: Final = {
    "HOLDFAST_ACCOUNT": "123456789012",
    "HOLDFAST_AUDIT_GROUP": "/holdfast/network/audit",
    "HOLDFAST_BUCKET": "bucket",
    "HOLDFAST_MAX_STATE_MB": "100",
    "HOLDFAST_NEW_STATES": "any",
    "HOLDFAST_OWN_LOCKS": "named",
    "HOLDFAST_PROBED_API": "https://api.example.com",
    "HOLDFAST_REQUIRE_LOCK": "true",
    "HOLDFAST_STAGING_BUCKET": "staging",
    "HOLDFAST_TEAM": "network",
    "HOLDFAST_TRANSFERS_ROLE": "arn:aws:iam::123456789012:role/Holdfast-network-eu-central-1-transfers",
    "HOLDFAST_VERSION": "1.2.3+abc",
    "POWERTOOLS_SERVICE_NAME": "holdfast",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def set_environment(patch: pytest.MonkeyPatch, **more: str) -> None:
    """Set the environment of a function, with made-up credentials.

    `more` has optional variables, and variables with other values than in `SETTINGS`.
    """
    for name, value in {**SETTINGS, **CREDENTIALS, **more}.items():
        patch.setenv(name, value)
