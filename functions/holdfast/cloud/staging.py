"""Staged uploads: a client puts a document into the staging bucket, and its commit reads it there.

The staging bucket has no versions, and S3 removes its objects after a day. A key consists of the state's
name, a hash of the uploader's principal and 128 random bits, so nobody can commit somebody else's upload.
"""

import hashlib
from contextlib import suppress
from typing import Final

from holdfast.access import Caller
from holdfast.cloud.ids import UploadId
from holdfast.errors import Unsettled
from holdfast.s3.objects import Larger, Object
from holdfast.s3.presigned import Presigned
from holdfast.s3.store import Store

UPLOAD_SECONDS: Final = 900
"""Seconds within which a client must begin an upload after its creation."""

_PRINCIPAL_DIGITS: Final = 32


def state_key(name: str, principal: str, key: str) -> str:
    return f"uploads/{_place(name, principal, key)}"


def json_key(name: str, principal: str, key: str) -> str:
    """Return the key of the JSON output format that clients also upload. Holdfast does not read it."""
    return f"json/{_place(name, principal, key)}"


def _place(name: str, principal: str, key: str) -> str:
    digest = hashlib.sha256(principal.encode()).hexdigest()[:_PRINCIPAL_DIGITS]
    return f"{name}/{digest}/{key}"


def addresses(presigned: Presigned, upload: UploadId, caller: Caller) -> tuple[str, str]:
    """Return presigned addresses to which the client uploads the state and its JSON output format."""
    return (
        presigned.put(state_key(upload.name.value, caller.principal, upload.key), UPLOAD_SECONDS),
        presigned.put(json_key(upload.name.value, caller.principal, upload.key), UPLOAD_SECONDS),
    )


def read(staging: Store, upload: UploadId, caller: Caller, limit: int) -> Object | Larger | None:
    """Read a staged state document. Return only its size if it exceeds the limit; None if it is missing."""
    return staging.read_at_most(state_key(upload.name.value, caller.principal, upload.key), limit)


def discard(staging: Store, upload: UploadId, caller: Caller) -> None:
    """Delete both objects of an upload. A failure is ignored, because S3 removes them after a day."""
    for key_of in (state_key, json_key):
        with suppress(Unsettled):
            staging.discard(key_of(upload.name.value, caller.principal, upload.key))
