"""Read the current state's revision and metadata, with which a write is compared.

Holdfast stores the revision in user metadata of each version, so reading one byte of the object is enough. A
version of another program is read whole.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.access import Caller
from holdfast.errors import InvalidState
from holdfast.s3 import object_metadata
from holdfast.s3.objects import ObjectVersion
from holdfast.state import document
from holdfast.state.document import Revision, StateDocument
from holdfast.state.held import HeldLock
from holdfast.work import Work


@dataclass(frozen=True, slots=True)
class Superseded:
    """The superseded revision, as a version's metadata stores it.

    Attributes:
        revision: the last acknowledged revision.
        over_refused: whether an unacknowledged version is between that revision and the new version. Without
            it, a refused forced push would look acknowledged if it has the revision of the version before.
    """

    revision: Revision
    over_refused: bool


@dataclass(frozen=True, slots=True)
class CurrentState:
    """The current version of a state, without its content.

    Attributes:
        revision: None if it is not a state document.
        superseded: the last acknowledged revision that it replaced; None if its metadata does not name it.
        lock_id: the ID of the lock under which it was written; empty for an unlocked write.
        fenced: whether Holdfast wrote it.
        upload: the key of the upload whose commit wrote it; empty for a write in one request.
        restored_from: the version whose content a restore wrote again; empty for other verbs.
        over_refused: whether it was written over a version that was never acknowledged.
    """

    version: ObjectVersion
    sha256: str
    revision: Revision | None
    superseded: Revision | None
    lock_id: str
    fenced: bool
    upload: str = ""
    restored_from: str = ""
    over_refused: bool = False


def read_current(work: Work) -> CurrentState | None:
    """Read the current version; None if it does not exist. Another program's version takes two requests."""
    key = work.name.state_key
    version = work.store.read_version(key)
    if version is None:
        return None
    current = parse_metadata(version)
    if current is not None:
        return current
    stored = work.store.read(key)
    if stored is None:
        return None
    current = parse_metadata(stored.version)
    if current is not None:
        return current  # Holdfast wrote it between the two requests
    try:
        revision = document.parse(stored.body).revision
    except InvalidState:
        revision = None
    return CurrentState(
        stored.version, hashlib.sha256(stored.body).hexdigest(), revision, None, "", fenced=False
    )


def parse_metadata(version: ObjectVersion) -> CurrentState | None:
    """Parse the user metadata of a version that Holdfast wrote; return None for another program's version."""
    metadata = version.metadata
    revision = _revision(metadata, "serial", "lineage")
    if revision is None or "sha256" not in metadata:
        return None
    superseded = _revision(metadata, "over-serial", "over-lineage")
    return CurrentState(
        version,
        metadata["sha256"],
        revision,
        superseded,
        metadata.get("lock-id", ""),
        fenced=True,
        upload=metadata.get("upload", ""),
        restored_from=metadata.get("restored-from", ""),
        over_refused="over-refused" in metadata,
    )


def _revision(metadata: Mapping[str, str], serial: str, lineage: str) -> Revision | None:
    value = metadata.get(serial, "")
    return Revision(int(value), metadata.get(lineage, "")) if value.isdecimal() else None


def version_metadata(
    new: StateDocument,
    sha256: str,
    superseded: Superseded | None,
    lock: HeldLock | None,
    caller: Caller,
    notes: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the user metadata of a new state version, without empty values.

    Args:
        notes: further metadata of the verb: `upload`, or `restored-from` and `reason`.
    """
    info = lock.info if lock else None
    metadata = {
        "sha256": sha256,
        "serial": str(new.revision.serial),
        "lineage": new.revision.lineage,
        "terraform-version": new.terraform_version,
        "lock-id": info.id if info else "",
        "who": info.who if info else "",
        "operation": info.operation if info else "",
        "written-by": caller.principal,
        **(notes or {}),
    }
    if superseded is not None:
        metadata |= {
            "over-serial": str(superseded.revision.serial),
            "over-lineage": superseded.revision.lineage,
            "over-refused": "yes" if superseded.over_refused else "",
        }
    present = {name: value for name, value in metadata.items() if value}
    return object_metadata.with_owner(present, caller.owner)
