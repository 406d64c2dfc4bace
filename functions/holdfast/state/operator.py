"""Check the values that operators send: version IDs, reasons, and command IDs, which identify retries."""

import re
from typing import Final

from holdfast.errors import InvalidRequest, NoSuchVersion
from holdfast.names import StateName

MAX_REASON: Final = 200
"""Characters of the longest reason."""
LONGEST_VERSION_ID: Final = 128
"""Characters of the longest version ID. S3's have 32; a longer ID may not fit into metadata."""

_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


def check_reason(reason: str) -> str:
    """Return a reason unchanged; raise `InvalidRequest` unless it is one line, at most `MAX_REASON` long."""
    if not reason.strip():
        raise InvalidRequest("The reason must not be blank: the audit trail shows it.")
    if len(reason) > MAX_REASON:
        raise InvalidRequest(f"The reason has {len(reason)} characters; at most {MAX_REASON} are allowed.")
    if not reason.isprintable():
        raise InvalidRequest("The reason must be one line of text, without control characters.")
    return reason


def check_id(command_id: str) -> str:
    """Return a command ID unchanged; raise `InvalidRequest` unless it is 32 hexadecimal digits."""
    if not _ID.fullmatch(command_id):
        raise InvalidRequest(
            "'id' must be a random text of 32 hexadecimal digits in lower case. Send a new one with each "
            "command."
        )
    return command_id


def check_version_id(version_id: str) -> str:
    """Return a version ID unchanged.

    Raises:
        InvalidRequest: it is empty or too long, or a reference, which could mean another version in a retry.
    """
    if version_id.startswith("@"):
        raise InvalidRequest(
            f"{version_id[:60]!r} is a reference, and the version that it means can change. Send the exact "
            "ID of a version, which GET /manage/v1/resolve/NAME?version=REFERENCE returns."
        )
    if not 0 < len(version_id) <= LONGEST_VERSION_ID:
        raise InvalidRequest(f"The ID of a version must have 1 to {LONGEST_VERSION_ID} characters.")
    return version_id


def no_such_version(name: StateName, version_id: str) -> NoSuchVersion:
    """Return the error for a version that the state does not have."""
    return NoSuchVersion(
        f"The state '{name}' has no version {version_id[:60]}. Perhaps the ID is mistyped, or it belongs to "
        "a delete marker or to another state, or a lifecycle rule has removed the version. 'holdfast state "
        f"history {name}' shows the versions of the state."
    )
