"""The lock info document: what Terraform sends to lock and unlock, and what lies in the lock object.

Its form is `statemgr.LockInfo` in Terraform's and OpenTofu's sources.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from holdfast import json_object
from holdfast.access import Caller
from holdfast.errors import InvalidLockInfo, TooLarge
from holdfast.s3 import object_metadata

MAX_BYTES: Final = 64 * 1024
"""The most bytes that a lock info document may have; Terraform's have some 300."""

FREEZE: Final = "freeze"
"""The operation of a freeze. It is only shown: that a lock is a freeze, its metadata tells."""

_FIELDS: Final = ("ID", "Operation", "Info", "Who", "Version", "Created", "Path")
_ZERO_TIME: Final = "0001-01-01T00:00:00Z"
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class LockInfo:
    """A lock info document with an ID: the JSON object, unknown fields included."""

    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.document["ID"])

    @property
    def operation(self) -> str:
        """Return what the client wants to do, such as `OperationTypeApply`; empty if it does not say."""
        return _text(self.document, "Operation")

    @property
    def who(self) -> str:
        """Return who the client says that it is, such as `ada@laptop`; empty if it does not say."""
        return _text(self.document, "Who")

    @property
    def text(self) -> str:
        """Return the free text of the client; empty if it does not say anything."""
        return _text(self.document, "Info")

    @property
    def names_only_its_id(self) -> bool:
        """Return whether every other field is absent or zero: what OpenTofu's `force-unlock` sends."""
        return all(value in ("", None, _ZERO_TIME) for field, value in self.document.items() if field != "ID")

    def at(self, path: str) -> "LockInfo":
        """Return the same lock info with `Path` filled where it came empty, as `backend "s3"` does."""
        return self if self.document.get("Path") else LockInfo({**self.document, "Path": path})

    def to_json(self) -> bytes:
        """Return the document as it is stored; only `Path` can make it longer than it was received."""
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":")).encode()

    def for_client(self) -> dict[str, str]:
        """Return the seven fields that Terraform parses, each of the type that it expects."""
        fields = {field: _text(self.document, field) for field in _FIELDS}
        return {**fields, "Created": _time(fields["Created"])}


def of_verb(version: str, caller: Caller, *, operation: str, info: str) -> LockInfo:
    """Return the lock info of a verb that acquires a lock of its own: a function of the arguments alone.

    `version` is what the verb is about, `<bucket>/<key>?versionId=<id>`, and `info` what a client that finds
    the state locked shows its user.
    """
    return LockInfo(
        {
            "ID": str(uuid5(NAMESPACE_URL, f"{version}#{caller.principal}")),
            "Operation": operation,
            "Info": info,
            "Who": caller.principal,
            "Version": "",
            "Created": _ZERO_TIME,
            "Path": "",
        }
    )


def of_freeze(freeze_id: str, reason: str, until: datetime | None, caller: Caller) -> LockInfo:
    """Return the lock info of a freeze, a function of the arguments alone.

    Every client shows its user `ID` and `Info`, older ones the ID alone.
    """
    ends = f" until {until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if until else ""
    # An ID that is longer than metadata takes could not be sent back by a client that unlocks.
    end = f"{ends} [{freeze_id}]"
    left = object_metadata.VALUE_LIMIT - len(object_metadata.encode(end, limit=None))
    shown = object_metadata.cut(f"frozen: {reason}", left)
    return LockInfo(
        {
            "ID": f"{shown}{end}",
            "Operation": FREEZE,
            "Info": f"frozen{ends}: {reason}",
            "Who": caller.principal,
            "Version": "",
            "Created": _ZERO_TIME,
            "Path": "",
        }
    )


def reason_of_freeze(info: LockInfo) -> str:
    return info.text.partition(": ")[2]


def parse(body: bytes) -> LockInfo:
    if len(body) > MAX_BYTES:
        raise TooLarge(f"The lock info has {len(body)} bytes; at most {MAX_BYTES} are accepted.")
    try:
        document = json_object.parse(body)
    except ValueError as error:
        raise InvalidLockInfo(
            f"The lock info {error}; send the JSON object that Terraform sends, with an ID."
        ) from None
    # What is accepted must come back the same from the bucket, or its owner could not release it.
    if not all(_is_plain(value) for pair in document.items() for value in pair):
        raise InvalidLockInfo(
            "The lock info may hold only Unicode text, finite numbers, true, false and null, not nested."
        )
    if not _has_id(document):
        raise InvalidLockInfo("The lock info has no ID; send a JSON object with a text in 'ID'.")
    if not object_metadata.fits(document["ID"]):
        raise InvalidLockInfo(
            f"The ID of the lock info is longer than {object_metadata.VALUE_LIMIT} bytes, percent-encoded."
        )
    return LockInfo(document)


def _has_id(document: Mapping[str, Any]) -> bool:
    return bool(_text(document, "ID"))


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return json_object.is_unicode(value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int)


def read_stored(body: bytes, *, path: str, created: datetime) -> LockInfo:
    """Parse the lock object at `path` (`<bucket>/<key>`), which S3 stored when it was `created`.

    A lock object that is not lock info, as another program's, is a lock all the same: it gets a made-up
    document that says so, with an ID by which force-unlock can name it.
    """
    try:
        document = json_object.parse(body)
    except ValueError:
        document = {}
    if not _has_id(document):
        document = {
            "ID": f"unreadable-{hashlib.sha256(body).hexdigest()[:16]}",
            "Operation": "unknown",
            "Info": f"The lock object {path} is not a lock info document; force-unlock removes it.",
            "Who": "unknown",
            "Version": "",
            "Created": created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "Path": path,
        }
    return LockInfo(document)


def _text(document: Mapping[str, Any], field: str) -> str:
    value = document.get(field)
    return value if isinstance(value, str) else ""


def _time(text: str) -> str:
    """Return the time if Go can parse it, else the zero time: a client that fails to parse the holder's
    lock info takes the response for a fault instead of waiting."""
    if not _RFC_3339.fullmatch(text):
        return _ZERO_TIME
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return _ZERO_TIME
    return text
