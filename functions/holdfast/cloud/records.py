"""The stored record of a workspace. It holds the tags, and makes a workspace exist before it has a state."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from holdfast import json_object, timestamp
from holdfast.errors import InvalidDocument, UnreadableRecord, WorkspaceExists
from holdfast.names import RECORDS, StateName
from holdfast.s3.objects import IfAbsent, IfMatch, Object, PreconditionFailed
from holdfast.s3.store import Store

MAX_TAGS: Final = 50

_SCHEMA: Final = 1
# The characters that HCP Terraform accepts in a tag's key and value, ASCII.
_KEY: Final = re.compile(r"[A-Za-z0-9_.:@=+\- ]{1,128}", re.ASCII)
_VALUE: Final = re.compile(r"[A-Za-z0-9_.:@=+/\- ]{0,256}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a workspace; `created_by` is a principal, `created_at` is in whole seconds."""

    tags: Mapping[str, str]
    created_by: str
    created_at: datetime

    def to_json(self) -> bytes:
        document = {
            "schema": _SCHEMA,
            "tags": dict(sorted(self.tags.items())),
            "created_by": self.created_by,
            "created": self.created_at.isoformat(timespec="seconds"),
        }
        return json.dumps(document).encode()

    @classmethod
    def from_json(cls, body: bytes) -> "Record":
        """Parse a stored record; raise `ValueError` if the JSON is not a valid record."""
        document: Mapping[str, Any] = json_object.parse(body)
        try:
            tags = check_tags(document["tags"])
            created_by, created = document["created_by"], timestamp.parse(document["created"])
        except (KeyError, TypeError, InvalidDocument) as error:
            raise ValueError("is not a workspace's record") from error
        if not isinstance(created_by, str):
            raise ValueError("is not a workspace's record")  # noqa: TRY004 a wrong value, not a programming error
        return cls(tags, created_by, created)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A stored record, with its ETag, which is the condition of the next change."""

    record: Record
    etag: str


def check_tags(tags: object) -> Mapping[str, str]:
    """Return tags unchanged; raise `InvalidDocument` if one is invalid or there are too many."""
    if not isinstance(tags, Mapping) or len(tags) > MAX_TAGS:
        raise InvalidDocument(f"A workspace can have at most {MAX_TAGS} tags.")
    for key, value in tags.items():
        if not (isinstance(key, str) and _KEY.fullmatch(key)):
            raise InvalidDocument(
                "The key of a tag must have 1 to 128 characters: letters, digits, spaces and . _ : @ = + - "
                "(ASCII)."
            )
        if not (isinstance(value, str) and _VALUE.fullmatch(value)):
            raise InvalidDocument(
                "The value of a tag must have at most 256 characters: letters, digits, spaces and "
                ". _ : @ = + - / (ASCII)."
            )
    return tags


def listed(store: Store, prefix: str) -> Iterator[StateName]:
    """Yield the names of the states that have a record and whose names begin with a prefix.

    The prefix is a text such as `network/`. Other objects than records are skipped.
    """
    for key in store.list_keys(RECORDS.prefix + prefix):
        if name := RECORDS.name(key):
            yield name


def read(store: Store, name: StateName) -> StoredRecord | None:
    """Read a record; return None if it does not exist.

    Raises:
        UnreadableRecord: the object is not a valid record.
    """
    stored = store.read(name.record_key)
    return _stored(stored, name) if stored else None


def create(store: Store, name: StateName, tags: Mapping[str, str], principal: str) -> Record:
    """Create a record. A record with the same tags that this caller has created counts as created.

    Raises:
        WorkspaceExists: another record exists.
    """
    record = Record(tags, principal, datetime.now(UTC).replace(microsecond=0))
    key = name.record_key
    if isinstance(store.write(key, record.to_json(), IfAbsent(), metadata={}), PreconditionFailed):
        # Either our own first attempt, whose response was lost, or somebody else's workspace.
        existing = read(store, name)
        if existing and (existing.record.tags, existing.record.created_by) == (tags, principal):
            return existing.record
        raise WorkspaceExists(f"The workspace of the state '{name}' exists already. Run the command again.")
    return record


def change(store: Store, name: StateName, seen: StoredRecord, tags: Mapping[str, str]) -> Record | None:
    """Replace the tags of a record; return None if another request has changed it since it was read."""
    record = Record(tags, seen.record.created_by, seen.record.created_at)
    stored = store.write(name.record_key, record.to_json(), IfMatch(seen.etag), metadata={})
    return None if isinstance(stored, PreconditionFailed) else record


def delete(store: Store, name: StateName, seen: Object) -> bool:
    """Delete the record that was read, and return True.

    A record that has changed since then is not deleted, because somebody is using the workspace.
    """
    return not isinstance(store.delete(name.record_key, IfMatch(seen.version.etag)), PreconditionFailed)


def _stored(stored: Object, name: StateName) -> StoredRecord:
    try:
        return StoredRecord(Record.from_json(stored.body), stored.version.etag)
    except ValueError:
        raise UnreadableRecord(
            f"The object {name.record_key} in the bucket, which stores the tags of the workspace, is "
            "damaged. Delete the object, which removes the tags, and then write the tags again. S3 keeps the "
            "earlier versions of the object."
        ) from None
