"""The lock info document, which Terraform sends to lock and unlock, and which the lock object contains.

Its form is `statemgr.LockInfo` in Terraform's and OpenTofu's sources.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from holdfast import json_object, timestamp
from holdfast.access import Caller, on_one_line
from holdfast.errors import InvalidLockInfo, TooLarge
from holdfast.s3 import object_metadata

MAX_BYTES: Final = 64 * 1024
"""Bytes of the largest lock info document; Terraform's have some 300."""

FREEZE: Final = "freeze"
"""The operation of a freeze, for display. The metadata decides whether a lock is a freeze."""

_FIELDS: Final = ("ID", "Operation", "Info", "Who", "Version", "Created", "Path")
_INFINITE: Final = (math.inf, -math.inf)
"""The values of numbers such as 1e999, which are valid JSON."""
ZERO_TIME: Final = "0001-01-01T00:00:00Z"
"""The time of a lock info that says none: that of a verb's lock, for example."""
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


class Verb(StrEnum):
    """The verbs that acquire a lock of their own, as the operations of their locks."""

    DELETE = "delete"
    UNDELETE = "undelete"
    UNDECLARE = "undeclare"
    RESTORE = "restore"


VERBS: Final = frozenset(map(str, Verb))


@dataclass(frozen=True, slots=True)
class LockInfo:
    """A lock info document with an ID: the JSON object, unknown fields included.

    Attributes:
        operation: the client's operation, such as `OperationTypeApply`; empty if it did not send one.
        who: the user and machine, such as `ada@laptop`; empty if the client did not send them.
        text: `Info`, a free text of the client; empty if it did not send one.
    """

    document: Mapping[str, Any]
    id: str = field(init=False, compare=False)
    operation: str = field(init=False, compare=False)
    who: str = field(init=False, compare=False)
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", str(self.document["ID"]))
        object.__setattr__(self, "operation", _text(self.document, "Operation"))
        object.__setattr__(self, "who", _text(self.document, "Who"))
        object.__setattr__(self, "text", _text(self.document, "Info"))

    @property
    def names_only_its_id(self) -> bool:
        """Return whether all fields except the ID are absent or zero, as in OpenTofu's `force-unlock`."""
        return all(value in ("", None, ZERO_TIME) for field, value in self.document.items() if field != "ID")

    def at(self, path: str) -> "LockInfo":
        """Return the same lock info, with `Path` filled in if it is empty, as `backend "s3"` does."""
        return self if self.document.get("Path") else LockInfo({**self.document, "Path": path})

    def to_json(self) -> bytes:
        """Return the document for storage; only a filled-in `Path` can make it longer than received."""
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":")).encode()

    def for_client(self) -> dict[str, str]:
        """Return the seven fields that Terraform parses, all as text."""
        fields = {field: _text(self.document, field) for field in _FIELDS}
        return {**fields, "Created": _time(fields["Created"])}

    def for_refused(self, principal: str | None, owner: str) -> dict[str, str]:
        """Return the seven fields for a client that the lock keeps out.

        `Info` begins with who holds the lock, and has the holder's own text in quotes. The other fields are
        the holder's, each on one line: a client prints them line by line, so none can pass for another.
        """
        fields = {field: on_one_line(text) for field, text in self.for_client().items()}
        if principal:
            proved = f"principal {json.dumps(principal)}, verified by Holdfast"
        else:
            proved = "no principal: the lock was acquired without Holdfast"
        parts = [
            proved,
            *([f"owner {json.dumps(on_one_line(owner), ensure_ascii=False)}"] if owner else []),
            *([f"info {json.dumps(fields['Info'], ensure_ascii=False)}"] if fields["Info"] else []),
        ]
        return {**fields, "Info": "; ".join(parts)}


def of_verb(version: str, caller: Caller, *, operation: Verb, info: str) -> LockInfo:
    """Return the lock info of a verb that acquires its own lock. It depends on the arguments alone.

    `version` identifies the object version on which the verb acts: `<bucket>/<key>?versionId=<id>`. Clients
    that find the state locked show `info`.
    """
    return LockInfo(
        {
            "ID": str(uuid5(NAMESPACE_URL, f"{version}#{caller.principal}")),
            "Operation": operation.value,
            "Info": info,
            "Who": caller.principal,
            "Version": "",
            "Created": ZERO_TIME,
            "Path": "",
        }
    )


def of_freeze(freeze_id: str, reason: str, until: datetime | None, principal: str) -> LockInfo:
    """Return the lock info of a freeze. It depends on the arguments alone.

    Clients show the user `ID` and `Info`, older clients the ID alone.
    """
    ends = f" until {timestamp.write(until)}" if until else ""
    # `parse` rejects an ID that does not fit into metadata, so a client could not send it back to unlock.
    end = f"{ends} [{freeze_id}]"
    left = object_metadata.VALUE_LIMIT - len(object_metadata.encode(end, limit=None))
    shown = object_metadata.cut(f"frozen: {reason}", left)
    return LockInfo(
        {
            "ID": f"{shown}{end}",
            "Operation": FREEZE,
            "Info": f"frozen{ends}: {reason}",
            "Who": principal,
            "Version": "",
            "Created": ZERO_TIME,
            "Path": "",
        }
    )


def reason_of_freeze(info: LockInfo) -> str:
    return info.text.partition(": ")[2]


def parse(body: bytes) -> LockInfo:
    if len(body) > MAX_BYTES:
        raise TooLarge(f"The lock info has {len(body)} bytes; at most {MAX_BYTES} are accepted.")
    try:
        document = json_object.parse_unicode(body)
    except json_object.NotUnicodeError:
        raise _not_plain() from None
    except ValueError as error:
        raise InvalidLockInfo(
            f"The lock info {error}. Send the JSON object that Terraform sends, with an ID."
        ) from None
    # The stored document must equal the received document, or its owner could not release the lock.
    if any(isinstance(value, dict | list) or value in _INFINITE for value in document.values()):
        raise _not_plain()
    if not _has_id(document):
        raise InvalidLockInfo("The lock info has no ID; send a JSON object with a string in 'ID'.")
    if not object_metadata.fits(document["ID"]):
        raise InvalidLockInfo(
            f"The ID of the lock info is longer than {object_metadata.VALUE_LIMIT} bytes in percent-encoding."
        )
    return LockInfo(document)


def of_release(body: bytes, lock_id: str | None) -> LockInfo | None:
    """Return the lock info of a release; None if it names no lock.

    Args:
        body: the document that acquired the lock, a document with only an ID, or empty.
        lock_id: the ID in the query. With an empty body it names the lock, as a document with only an ID.
    """
    if not body:
        return None if lock_id is None else parse(json.dumps({"ID": lock_id}).encode())
    info = parse(body)
    if lock_id not in (None, info.id):
        raise InvalidLockInfo(
            "The query and the lock info in the body have different IDs. Nothing was unlocked; send the "
            "same ID in both, or an ID in only one of them."
        )
    return info


def _has_id(document: Mapping[str, Any]) -> bool:
    return bool(_text(document, "ID"))


def _not_plain() -> InvalidLockInfo:
    return InvalidLockInfo(
        "The values of the lock info may only be Unicode text, finite numbers, true, false and null; "
        "objects and lists are not allowed."
    )


def read_stored(body: bytes, *, path: str, created: datetime) -> LockInfo:
    """Parse the lock object at `path` (`<bucket>/<key>`), which S3 stored at the time `created`.

    A lock object without lock info, such as another program's, also locks the state. The result is then a
    generated document that explains this, with an ID for force-unlock.
    """
    try:
        document = json_object.parse(body)
    except ValueError:
        document = {}
    if not _has_id(document):
        document = {
            "ID": f"unreadable-{hashlib.sha256(body).hexdigest()[:16]}",
            "Operation": "unknown",
            "Info": f"The lock object {path} has no valid lock info. A force-unlock removes the object.",
            "Who": "unknown",
            "Version": "",
            "Created": timestamp.write(created),
            "Path": path,
        }
    return LockInfo(document)


def _text(document: Mapping[str, Any], field: str) -> str:
    value = document.get(field)
    return value if isinstance(value, str) else ""


def _time(text: str) -> str:
    """Return the time if Go can parse it, else the zero time. A client that cannot parse the holder's lock
    info reports a fault instead of waiting."""
    if not _RFC_3339.fullmatch(text):
        return ZERO_TIME
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return ZERO_TIME
    return text
