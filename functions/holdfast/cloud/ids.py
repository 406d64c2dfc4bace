"""The protocol's IDs, which clients pass from one call to the next.

An ID contains everything that the next call needs, so that nothing is stored between two calls. It is not
signed: each call checks that the caller may access the named state, so a forged ID gives no more access.
"""

import base64
import binascii
import json
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from holdfast import json_object, names, timestamp
from holdfast.cloud.names import organization_and_workspace
from holdfast.errors import InvalidId, InvalidName
from holdfast.names import StateName
from holdfast.state.document import SERIAL_END
from holdfast.state.guards import Upload

_OF_UPLOAD: Final = "upload-"
_RANDOM: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_LARGEST: Final = 4096
"""Characters of the longest ID. API Gateway accepts 10,240 bytes of request line and headers."""


@dataclass(frozen=True, slots=True)
class WorkspaceId:
    """The ID of a workspace. Every read by name mints a new ID, so each command of a client has its own ID.

    Attributes:
        lock_id: 128 random bits; the ID of the lock that is acquired with this ID.
        minted_at: seconds since 1970.
        seen_lock: the version ID of the lock object; empty if there was no lock, or it was not read.
    """

    name: StateName
    lock_id: str
    minted_at: int
    seen_lock: str

    @classmethod
    def mint(cls, name: StateName, seen_lock: str = "") -> "WorkspaceId":
        now = int(datetime.now(UTC).timestamp())
        return cls(name, secrets.token_hex(16), now, seen_lock)

    def __str__(self) -> str:
        return _encode("ws-", [self.name.value, self.lock_id, self.minted_at, self.seen_lock])

    @classmethod
    def parse(cls, text: str) -> "WorkspaceId":
        name, lock_id, minted_at, seen_lock = _decode("ws-", text, 4)
        return cls(_name(name), _random(lock_id), _integer(minted_at, timestamp.END), _text(seen_lock))


@dataclass(frozen=True, slots=True)
class VersionId:
    """The ID of a version of a state."""

    name: StateName
    version_id: str
    size: int

    def __str__(self) -> str:
        return _encode("sv-", [self.name.value, self.version_id, self.size])

    @classmethod
    def parse(cls, text: str) -> "VersionId":
        name, version_id, size = _decode("sv-", text, 3)
        return cls(_name(name), _version_id(version_id), _integer(size, 2**63))


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadId(Upload):
    """The ID of an upload: the lock and version that its creation found, and the announced document.

    The commit compares all of these. The lineage is empty if the client did not announce it. The keys of the
    staged objects contain the upload's key.
    """

    name: StateName
    serial: int
    lineage: str
    md5: str

    @staticmethod
    def new_key() -> str:
        return secrets.token_hex(16)

    def __str__(self) -> str:
        where = [self.name.value, self.lock_id, self.lock_version, self.base or ()]
        return _encode(_OF_UPLOAD, [*where, self.serial, self.lineage, self.md5, self.force, self.key])

    @classmethod
    def parse(cls, text: str) -> "UploadId":
        name, lock_id, lock_version, base, serial, lineage, md5, force, key = _decode(_OF_UPLOAD, text, 9)
        if not isinstance(force, bool) or not isinstance(base, list) or len(base) not in (0, 2):
            raise _invalid()
        return cls(
            name=_name(name),
            lock_id=_random(lock_id),
            lock_version=_text(lock_version),
            base=(_text(base[0]), _text(base[1])) if base else None,
            serial=_integer(serial, SERIAL_END),
            lineage=_text(lineage),
            md5=_random(md5),
            force=force,
            key=_random(key),
        )


def parse_version(text: str) -> VersionId | UploadId:
    """Parse the ID of a version, or of the upload that becomes one."""
    return UploadId.parse(text) if text.startswith(_OF_UPLOAD) else VersionId.parse(text)


@dataclass(frozen=True, slots=True)
class OutputId:
    """The ID of an output value of a version."""

    version: VersionId
    output: str

    @property
    def name(self) -> StateName:
        return self.version.name

    def __str__(self) -> str:
        version = self.version
        return _encode("wsout-", [version.name.value, version.version_id, version.size, self.output])

    @classmethod
    def parse(cls, text: str) -> "OutputId":
        name, version_id, size, output = _decode("wsout-", text, 4)
        return cls(VersionId(_name(name), _version_id(version_id), _integer(size, 2**63)), _text(output))


def _encode(prefix: str, fields: list[Any]) -> str:
    # `json.dumps` writes ASCII, so that a lone surrogate can be encoded too.
    document = json.dumps(fields, separators=(",", ":")).encode()
    return prefix + base64.urlsafe_b64encode(document).decode().rstrip("=")


def _decode(prefix: str, text: str, length: int) -> list[Any]:
    """Return the fields of an ID; raise `InvalidId` if `_encode` would not write exactly this text."""
    if not text.startswith(prefix) or len(text) > _LARGEST:
        raise _invalid()
    coded = text.removeprefix(prefix)
    try:
        fields = json.loads(base64.b64decode(coded + "=" * (-len(coded) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise _invalid() from None
    if not isinstance(fields, list) or len(fields) != length or _encode(prefix, fields) != text:
        raise _invalid()
    return fields


def _name(value: object) -> StateName:
    try:
        name = names.parse(_text(value))
    except InvalidName:
        raise _invalid() from None
    if organization_and_workspace(name) is None:
        raise _invalid()
    return name


def _random(value: object) -> str:
    text = _text(value)
    if not _RANDOM.fullmatch(text):
        raise _invalid()
    return text


def _version_id(value: object) -> str:
    text = _text(value)
    if not json_object.is_unicode(text):  # it becomes part of an address
        raise _invalid()
    return text


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _invalid()
    return value


def _integer(value: object, end: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < end:
        raise _invalid()
    return value


def _invalid() -> InvalidId:
    return InvalidId(
        "This API did not create this ID. Run the command again: the client then requests a new ID."
    )
