"""The lock info document: what Terraform sends to lock and unlock, and what lies in the lock object.

Its form is `statemgr.LockInfo` in Terraform's and OpenTofu's sources.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from holdfast import json_object
from holdfast.errors import InvalidLockInfo, TooLarge
from holdfast.store import METADATA_VALUE_LIMIT, encode_metadata

MAX_BYTES: Final = 64 * 1024
"""Bytes of a lock info document; Terraform's have some 300."""

_FIELDS: Final = ("ID", "Operation", "Info", "Who", "Version", "Created", "Path")
_ZERO_TIME: Final = "0001-01-01T00:00:00Z"
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class LockInfo:
    """A lock info document with an ID.

    Attributes:
        document: the JSON object, fields that we do not know included.
    """

    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The lock's ID."""
        return str(self.document["ID"])

    @property
    def operation(self) -> str:
        """What the client wants to do, such as `OperationTypeApply`; empty if it does not say."""
        return _text(self.document, "Operation")

    @property
    def who(self) -> str:
        """Who the client says that it is, such as `ada@laptop`; empty if it does not say."""
        return _text(self.document, "Who")

    @property
    def names_only_its_id(self) -> bool:
        """Whether every other field is absent or zero: what OpenTofu's `force-unlock` sends."""
        return all(value in ("", None, _ZERO_TIME) for field, value in self.document.items() if field != "ID")

    def at(self, path: str) -> "LockInfo":
        """The same lock info with `Path` filled where it came empty, as `backend "s3"` does."""
        return self if self.document.get("Path") else LockInfo({**self.document, "Path": path})

    def to_json(self) -> bytes:
        """The document as it is stored."""
        return json.dumps(self.document, ensure_ascii=False).encode()

    def for_client(self) -> dict[str, str]:
        """The seven fields that Terraform parses, each of the type that it expects."""
        fields = {field: _text(self.document, field) for field in _FIELDS}
        return {**fields, "Created": _time(fields["Created"])}


def parse(body: bytes) -> LockInfo:
    """Read the lock info of a request.

    Raises:
        InvalidLockInfo: it is no JSON object with an ID.
        TooLarge: it is larger than MAX_BYTES.
    """
    if len(body) > MAX_BYTES:
        raise TooLarge(f"The lock info has {len(body)} bytes; at most {MAX_BYTES} are taken.")
    try:
        document = json_object.parse(body)
        # Text that is no Unicode (a lone surrogate) could be neither stored nor given back.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        reason = "holds text that is no Unicode" if isinstance(error, UnicodeError) else error
        raise InvalidLockInfo(
            f"The lock info {reason}; send the JSON object that Terraform sends, with an ID."
        ) from None
    lock_id = document.get("ID")
    if not isinstance(lock_id, str) or not lock_id:
        raise InvalidLockInfo("The lock info has no ID; send a JSON object with a text in 'ID'.")
    if len(encode_metadata(lock_id, limit=None)) > METADATA_VALUE_LIMIT:
        raise InvalidLockInfo(
            f"The ID of the lock info is longer than {METADATA_VALUE_LIMIT} bytes, percent-encoded."
        )
    return LockInfo(document)


def read_stored(body: bytes, *, path: str, created: datetime) -> LockInfo:
    """Read a lock object as it lies in the bucket, whoever wrote it.

    A lock object that is no lock info is a lock all the same: it gets a made-up document that says so,
    with an ID by which force-unlock can name it.

    Args:
        body: the object.
        path: `<bucket>/<key>`, to say where it lies.
        created: when S3 took it.
    """
    try:
        return parse(body)
    except (InvalidLockInfo, TooLarge):
        return LockInfo(
            {
                "ID": f"unreadable-{hashlib.sha256(body).hexdigest()[:16]}",
                "Operation": "unknown",
                "Info": f"The lock object {path} is no lock info document; force-unlock removes it.",
                "Who": "unknown",
                "Version": "",
                "Created": created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "Path": path,
            }
        )


def _text(document: Mapping[str, Any], field: str) -> str:
    value = document.get(field)
    return value if isinstance(value, str) else ""


def _time(text: str) -> str:
    """The time if Go can parse it, else the zero time: a client that fails to parse the holder's lock
    info takes the answer for a fault instead of waiting."""
    if not _RFC_3339.fullmatch(text):
        return _ZERO_TIME
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return _ZERO_TIME
    return text
