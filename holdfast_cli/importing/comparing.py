"""Compare a state in the source with the state of its new name, and decide what an import may do."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.api import v1
from holdfast.errors import InvalidState
from holdfast.state import document
from holdfast.state.document import Revision
from holdfast_cli.api.state_texts import moment, writer
from holdfast_cli.errors import CommandError
from holdfast_cli.importing.journal import Imported
from holdfast_cli.importing.new_place import OPERATION


@dataclass(frozen=True, slots=True)
class Content:
    """A state in the source."""

    body: bytes
    revision: Revision
    sha256: str


@dataclass(frozen=True, slots=True)
class Absent:
    """The new name has no state: the import writes it."""


@dataclass(frozen=True, slots=True)
class Same:
    """Both places have the same bytes; `version` is the version in the new place."""

    version: str


@dataclass(frozen=True, slots=True)
class MovedOn:
    """Only the source was written since the import: the import may replace the imported version."""


@dataclass(frozen=True, slots=True)
class InUse:
    """Only the new place was written since the import: there is nothing to import."""


@dataclass(frozen=True, slots=True)
class Differs:
    """The import may not write; `why` says what is there, and who wrote it."""

    why: str


Verdict = Absent | Same | MovedOn | InUse | Differs


def parse(state: str, body: bytes | None) -> Content:
    """Parse what the source returned for a state; raise `CommandError` if it cannot be imported."""
    if body is None:
        raise CommandError(
            f"{state}: the source has no such state, or an empty one. Remove its table from the plan."
        )
    try:
        found = document.parse(body)
    except InvalidState as error:
        raise CommandError(
            f"{state}: this is not a whole state of Terraform 0.12 or later: {error.message} Repair it "
            "there, or remove its table from the plan."
        ) from None
    return Content(body, found.revision, hashlib.sha256(body).hexdigest())


def compare(
    old: Content,
    new: v1.StateDescription | None,
    imported: Imported | None,
    read_new: Callable[[], tuple[str, str]],
) -> Verdict:
    """Decide what an import may do.

    Args:
        new: the state of the new name; None if it has no current version.
        imported: the journal's last imported version.
        read_new: returns the current version's ID and SHA-256; called only if the serials are equal.
    """
    if new is None:
        return Absent()
    here = Revision(new.serial or 0, new.lineage or "")
    if new.serial is None or not old.revision.same_lineage(here):
        return Differs(
            f"the name {new.name} has another state, of lineage {new.lineage or 'unknown'}, written by "
            f"{_writer(new)}: choose another name, or remove the table"
        )
    if old.revision.serial == here.serial:
        known = imported is not None and imported.version == new.version
        version, sha256 = (imported.version, imported.sha256) if imported and known else read_new()
        if sha256 == old.sha256:
            # A version that was never acknowledged does not count: the import writes it again.
            return MovedOn() if new.status == v1.NEVER_ACKNOWLEDGED else Same(version)
    is_untouched = (imported is not None and imported.version == new.version) or new.operation == OPERATION
    if is_untouched and old.revision.serial > here.serial:
        return MovedOn()
    if imported is not None and imported.sha256 == old.sha256 and not is_untouched:
        return InUse()
    both = (
        f"the source has serial {old.revision.serial}, and {new.name} serial {here.serial}, written by "
        f"{_writer(new)}"
    )
    if is_untouched:
        return Differs(
            f"{both} from a higher serial of the source, which went back since: compare both by hand"
        )
    return Differs(f"both were written: {both}. Compare them, and push the right one to both")


def _writer(new: v1.StateDescription) -> str:
    return f"{writer(new) or 'another program'} at {moment(new, 'modified') or 'an unknown time'}"
