"""Staged uploads: where a client puts a document before its commit reads it.

The staging bucket has no versions, and S3 removes what lies there after a day. A key holds the state's name,
who may commit it and 128 random bits, so that no ID reaches what somebody else has uploaded.
"""

import hashlib
from contextlib import suppress
from typing import Final

from holdfast.access import Caller
from holdfast.errors import Unsettled
from holdfast.names import StateName
from holdfast.s3.presigned import Presigned
from holdfast.s3.store import Larger, Object, Store

UPLOAD_SECONDS: Final = 900
"""How long after its creation an upload may begin."""

_PRINCIPAL_DIGITS: Final = 32


def state_key(name: str, principal: str, key: str) -> str:
    return f"uploads/{_place(name, principal, key)}"


def json_key(name: str, principal: str, key: str) -> str:
    """Return the key of the document in JSON format that clients upload beside the state. Nobody reads it."""
    return f"json/{_place(name, principal, key)}"


def _place(name: str, principal: str, key: str) -> str:
    digest = hashlib.sha256(principal.encode()).hexdigest()[:_PRINCIPAL_DIGITS]
    return f"{name}/{digest}/{key}"


def addresses(presigned: Presigned, name: StateName, caller: Caller, key: str) -> tuple[str, str]:
    """Return the addresses at which a client puts the state and its JSON format."""
    return (
        presigned.put(state_key(name.value, caller.principal, key), UPLOAD_SECONDS),
        presigned.put(json_key(name.value, caller.principal, key), UPLOAD_SECONDS),
    )


def read(staging: Store, name: StateName, caller: Caller, key: str, limit: int) -> Object | Larger | None:
    """Read a staged state document, or None if there is none; of one above the limit only the length."""
    return staging.read_at_most(state_key(name.value, caller.principal, key), limit)


def discard(staging: Store, name: StateName, caller: Caller, key: str) -> None:
    """Delete both objects of an upload. A failure is none of the commit: S3 removes them after a day."""
    for staged in (state_key, json_key):
        with suppress(Unsettled):
            staging.discard(staged(name.value, caller.principal, key))
