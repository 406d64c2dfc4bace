"""Write, list and read the versions that a state had in another place before it was moved here.

S3 has no version in the past: an old version at the state's key would be current until the next write. So
each imported version is an object of its own, written once and never replaced. It needs no lock, and it
creates no state: any name may have imported versions, also if it is not declared, or its pattern is frozen.
"""

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.access import Action, Caller
from holdfast.api import form
from holdfast.errors import InvalidRequest, NoSuchVersion, UnreadableVersion
from holdfast.names import StateName
from holdfast.s3 import object_metadata
from holdfast.s3.retention import Retention
from holdfast.s3.store import IfAbsent, Larger, Object, ObjectVersion, PreconditionFailed, Store
from holdfast.state import cursor as cursors
from holdfast.state import document
from holdfast.state.document import SERIAL_END
from holdfast.state.operator import IMPORTED

PAGE: Final = 20
"""The most versions on a page."""

_AT_ONCE: Final = 8
_DIGITS: Final = 16
_NUMBER: Final = re.compile(rf"(0|[1-9][0-9]{{0,19}})-([0-9a-f]{{{_DIGITS}}})", re.ASCII)
_PLACE: Final = re.compile(rf"([0-9]{{20}})-([0-9a-f]{{{_DIGITS}}})\.tfstate", re.ASCII)


@dataclass(frozen=True, slots=True)
class Number:
    """The number of an imported version. Equal content of a state has an equal number.

    Attributes:
        digest: the first digits of the content's SHA-256.
    """

    serial: int
    digest: str

    def __str__(self) -> str:
        return f"{self.serial}-{self.digest}"

    def key(self, name: StateName) -> str:
        """Return the key of the object. The serial counts down, so that S3 lists the highest serial first."""
        return f"{name.imported_folder}{SERIAL_END - 1 - self.serial:020}-{self.digest}.tfstate"


@dataclass(frozen=True, slots=True)
class Claims:
    """The importing client's claims about a version, which nobody verified.

    Attributes:
        author: who wrote the version in its old place.
        time: when they wrote it.
        source: the address of the old place, without a secret.
    """

    author: str = ""
    time: datetime | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Put:
    """The version is stored; `created` is False if it was stored before."""

    number: Number
    created: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported version without its content."""

    number: Number
    version: ObjectVersion


@dataclass(frozen=True, slots=True)
class Page:
    """A page of imported versions, the highest serial first; `next` is the cursor of the next page."""

    versions: Sequence[Imported]
    next: str | None


def parse(version: str) -> Number | None:
    """Parse the name of an imported version; return None for the ID of another version.

    >>> str(parse("imported:12-0123456789abcdef")), parse("L4kqtJlcpXroDTDmpUMLUo")
    ('12-0123456789abcdef', None)
    """
    if not version.startswith(IMPORTED):
        return None
    found = _NUMBER.fullmatch(version.removeprefix(IMPORTED))
    if found is None or int(found[1]) >= SERIAL_END:
        raise InvalidRequest(
            f"{version[:60]!r} is no number of an imported version, as '{IMPORTED}12-0123456789abcdef' is; "
            "'holdfast state history' shows the numbers."
        )
    return Number(int(found[1]), found[2])


def put(
    store: Store,
    name: StateName,
    body: bytes,
    claims: Claims,
    caller: Caller,
    *,
    retention: Retention | None = None,
) -> Put:
    """Store an old version of a state. A retry, and a later import of the same version, change nothing.

    Raises:
        InvalidState: the body is not a state document.
        UnreadableVersion: another object has the key.
    """
    caller.require(Action.IMPORT_HISTORY, name)
    revision = document.parse(body).revision
    sha256 = hashlib.sha256(body).hexdigest()
    number = Number(revision.serial, sha256[:_DIGITS])
    metadata = {
        "sha256": sha256,
        "serial": str(revision.serial),
        "lineage": revision.lineage,
        "imported-by": caller.principal,
        "says-author": claims.author,
        "says-time": form.time(claims.time) if claims.time else "",
        "says-from": claims.source,
    }
    stored = store.write(
        number.key(name),
        body,
        IfAbsent(),
        metadata=object_metadata.with_owner(
            {of: value for of, value in metadata.items() if value}, caller.owner
        ),
        retention=retention,
    )
    if not isinstance(stored, PreconditionFailed):
        return Put(number, created=True)
    found = store.read_version(number.key(name))
    if found is None or found.metadata.get("sha256") != sha256:
        raise UnreadableVersion(
            f"The object {number.key(name)} in the bucket is not this version of the state '{name}': another "
            "program wrote or removed it. Nothing was replaced."
        )
    # If S3's response to an attempt was lost, that attempt may have created it.
    return Put(number, created="PutObject" in store.unconfirmed)


def page(store: Store, name: StateName, cursor: str | None, caller: Caller, *, page_size: int = PAGE) -> Page:
    """Read a page of a state's imported versions, with one request for the list and one for each version.

    Objects that Holdfast did not write are left out.
    """
    caller.require(Action.READ_HISTORY, name)
    after = _begin(name, cursor) if cursor else ""
    listed = store.keys_page(name.imported_folder, after=after, page_size=page_size)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        read = pool.map(store.read_version, [one.key for one in listed.keys])
        versions = [
            Imported(number, version)
            for one, version in zip(listed.keys, read, strict=True)
            if (number := _number(name, one.key)) and version and "sha256" in version.metadata
        ]
    more = cursors.encode("imported", [name.value, listed.last]) if listed.last else None
    return Page(versions, more)


def read(
    store: Store, name: StateName, number: Number, caller: Caller, *, limit: int
) -> Object | ObjectVersion:
    """Read an imported version with its content. If it is larger than the limit, read only its metadata."""
    caller.require(Action.READ, name)
    found: Object | Larger | ObjectVersion | None = store.read_at_most(number.key(name), limit)
    if isinstance(found, Larger):
        found = store.read_version(number.key(name))
    if found is None:
        raise NoSuchVersion(
            f"The state '{name}' has no imported version {number}. 'holdfast state history {name} --all' "
            "shows its versions."
        )
    return found


def _number(name: StateName, key: str) -> Number | None:
    found = _PLACE.fullmatch(key.removeprefix(name.imported_folder))
    return Number(SERIAL_END - 1 - int(found[1]), found[2]) if found and int(found[1]) < SERIAL_END else None


def _begin(name: StateName, cursor: str) -> str:
    of, after = cursors.decode("imported", cursor, str, str)
    if of != name.value or not isinstance(after, str) or not after.startswith(name.imported_folder):
        raise cursors.invalid()
    return after
