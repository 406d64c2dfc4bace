"""What an operator sends with a restore or a freeze: a reason, and an ID by which a retry is known."""

import re
from typing import Final

from holdfast import json_object
from holdfast.errors import InvalidRequest

MAX_REASON: Final = 200
"""Characters of a reason."""

_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


def check_reason(reason: str) -> str:
    """Return a reason unchanged if every client can show it in one line.

    Raises:
        InvalidRequest: with the rule that it breaks.
    """
    if not reason.strip():
        raise InvalidRequest("Give a reason: clients and the audit trail show it.")
    if len(reason) > MAX_REASON:
        raise InvalidRequest(f"The reason has {len(reason)} characters; at most {MAX_REASON} are allowed.")
    if not reason.isprintable() or not json_object.is_unicode(reason):
        raise InvalidRequest("The reason must be one line of text, without control characters.")
    return reason


def check_id(command_id: str) -> str:
    """Return the ID of a command unchanged if it has the form of one.

    Raises:
        InvalidRequest: it does not.
    """
    if not _ID.fullmatch(command_id):
        raise InvalidRequest("'id' must be 32 hexadecimal digits in lower case, random for each command.")
    return command_id
